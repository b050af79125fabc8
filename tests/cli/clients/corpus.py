"""Files as clients and people leave them, and what becomes of each when an entry is put in."""

from __future__ import annotations

from typing import NamedTuple

BOM = b"\xef\xbb\xbf"


class Case(NamedTuple):
    name: str
    client: str
    content: bytes
    replaces: bool = False  # something gives way to the entry: a null, or an older entry
    refused: str = ""  # a part of the reason


def _deep(depth: int) -> bytes:
    return b'{"deep": ' + b"[" * depth + b"]" * depth + b"}\n"


OTHERS = b"""{
  "theme": "dark",
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"]
    },
    "files": {"command": "uvx", "args": ["mcp-files"]}
  },
  "after": [1, 2.50, 1e3, true, null, "\\u00fc \\/ \xc3\xbc"]
}
"""

COMMENTED = b"""// My servers
{
  // first of all
  "inputs": [], /* none */
  "servers": {
    "github": { // from the web
      "type": "http",
      "url": "https://example.org/mcp//path" // with slashes
    } // that was it
    // "old": {"command": "gone"}
  }
  /* the end */
}
// really
"""

ZED = b"""{
\t"theme": "One Dark",
\t"context_servers": {
\t\t"other": {
\t\t\t"command": "x",
\t\t\t"args": [],
\t\t},
\t},
\t"vim_mode": true,
}
"""

CODEX = b"""# Codex, as I like it
model = "gpt-5"   # the large one
notify = [
  "notify-send",  # a comment inside
  "Codex [done]",
]

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]

  [mcp_servers.docs.env]
  KEY = 'a#b'

[tui]
text = \"\"\"
[mcp_servers.not-a-table]
\\"\"\" still text
\"\"\"
"""

GOOSE = b"""# Goose
GOOSE_PROVIDER: openai
extensions:
  developer:   # built in
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin

  # the memory
  memory: {enabled: false, type: builtin, name: memory}
# how it thinks
GOOSE_MODEL: gpt-4.1
"""

CONTINUE = b"""name: Local Config
version: 1.0.0
schema: v1
models:
  - name: Llama
    provider: ollama
mcpServers:
  - name: SQLite   # a database
    command: npx
    args:
      - "-y"
      - mcp-sqlite
rules:
  - Be brief
"""

CASES = [
    # JSON, as clients write it
    Case("empty", "cursor", b""),
    Case("blank", "cursor", b"\n \n"),
    Case("only a mark", "cursor", BOM),
    Case("braces", "cursor", b"{}"),
    Case("braces and a line end", "claude-desktop", b"{}\n"),
    Case("braces on two lines", "cursor", b"{\n}\n"),
    Case("no servers yet", "cursor", b'{\n  "mcpServers": {}\n}\n'),
    Case("no servers on two lines", "windsurf", b'{\n    "mcpServers": {\n    }\n}'),
    Case("no root", "claude-code", b'{\n  "numStartups": 3,\n  "projects": {"/a": {"mcpServers": {}}}\n}\n'),
    Case("other servers", "cursor", OTHERS),
    Case("without a line end", "cursor", OTHERS.rstrip()),
    Case("windows line ends", "cursor", OTHERS.replace(b"\n", b"\r\n")),
    Case("carriage returns", "cursor", OTHERS.replace(b"\n", b"\r")),
    Case("byte order mark", "cursor", BOM + OTHERS),
    Case("tabs", "cline", OTHERS.replace(b"  ", b"\t")),
    Case("four spaces", "copilot", OTHERS.replace(b"  ", b"    ")),
    Case("one line", "cursor", b'{"mcpServers": {"a": {"command": "a"}}, "b": 1}'),
    Case("one tight line", "cursor", b'{"mcpServers":{"a":{"command":"a"}},"b":1}\n'),
    Case("one line without servers", "cursor", b'{"mcpServers":{}}'),
    Case("one line without root", "gemini", b'{ "theme": "x" }\n'),
    Case("spaces before it", "cursor", b' \n\t{"a": 1}'),
    Case("deep nesting", "cursor", _deep(150)),
    Case("null", "cursor", b'{\n  "mcpServers": null,\n  "x": 1\n}\n', replaces=True),
    Case("null on one line", "cursor", b'{"mcpServers":null}', replaces=True),
    Case(
        "an entry of that name",
        "cursor",
        b'{\n  "mcpServers": {\n    "demo": {"command": "old" , "args": [ ]},\n    "b": {}\n  }\n}\n',
        replaces=True,
    ),
    Case("an entry with odd characters", "cursor", b'{"mcpServers": {"d\\u0065mo": 5}}', replaces=True),
    Case("a key twice elsewhere", "cursor", b'{"a": 1, "a": {"b": 2, "b": 3}, "mcpServers": {"x": 1, "x": 2}}\n'),
    Case("names inside of texts", "cursor", b'{"a": "{\\"mcpServers\\": {", "mcpServers": {"b": {"c": "}"}}}\n'),
    Case("the root twice", "cursor", b'{"mcpServers": {}, "mcpServers": {}}', refused="twice"),
    Case("the name twice", "cursor", b'{"mcpServers": {"demo": 1, "demo": 2}}', refused="twice"),
    Case("a list for a root", "cursor", b'{"mcpServers": []}', refused="not an object"),
    Case("a text for a root", "cursor", b'{"mcpServers": "none"}', refused="not an object"),
    Case("a list", "cursor", b"[]", refused="must be an object"),
    Case("two values", "cursor", b"{} {}", refused="line 1 column 4"),
    Case("not closed", "cursor", b'{"a": {', refused="line 1 column 8"),
    Case("not JSON", "cursor", b"mcpServers: {}\n", refused="not valid JSON"),
    Case("not a number", "cursor", b'{"a": NaN}', refused="not valid JSON"),
    Case("a leading zero", "cursor", b'{"a": 01}', refused="not valid JSON"),
    Case("a raw line end in a text", "cursor", b'{"a": "b\nc"}', refused="not valid JSON"),
    Case("a wrong escape", "cursor", b'{"a": "\\x"}', refused="not valid JSON"),
    Case("a comma and no more", "cursor", b'{"a": 1,, "b": 2}', refused="not valid JSON"),
    Case("brackets that do not match", "cursor", b'{"a": [}', refused="not valid JSON"),
    Case("comments where none may be", "cursor", b"{\n  // mine\n}\n", refused="comment at line 2 column 3"),
    Case("a comma too many", "claude-desktop", b'{"a": 1,}\n', refused="a trailing comma"),
    Case("too deep", "cursor", _deep(100_000), refused="nested too deeply"),
    Case("not UTF-8", "cursor", b'{"a": "\xff"}', refused="UTF-8"),
    Case("sixteen bits", "cursor", '{"a": 1}'.encode("utf-16"), refused="UTF-8"),
    Case("too large", "cursor", b'{"a": "' + b"x" * (4 << 20) + b'"}', refused="4 MiB"),
    Case("just not too large", "cursor", b'{"a": "' + b"x" * ((4 << 20) - 4096) + b'"}'),
    Case("many values", "cursor", b'{"a": [' + b"0," * 50_000 + b"0]}"),
    # JSON with comments
    Case("comments", "vscode", COMMENTED),
    Case("comments with windows line ends", "vscode", COMMENTED.replace(b"\n", b"\r\n")),
    Case("comments and a mark", "vscode", BOM + COMMENTED),
    Case("only a comment", "vscode", b"// nothing yet\n"),
    Case("only a comment, no line end", "zed", b"/* nothing yet */"),
    Case("a comment in the root", "vscode", b'{\n  "servers": {\n    // none yet\n  }\n}\n'),
    Case("a comment behind the last", "vscode", b'{\n  "servers": {\n    "a": {} // mine\n  }\n}\n'),
    Case("a comment before the comma", "vscode", b'{"servers": {"a": {} /* , */ , } }'),
    Case("trailing commas and tabs", "zed", ZED),
    Case("a trailing comma on one line", "zed", b'{"context_servers": {"a": {},},}\n'),
    Case("comments for one that reads them", "gemini", b'{\n  // dark\n  "theme": "x"\n}\n'),
    Case("commas for one that reads only comments", "gemini", b'{"theme": "x",}\n', refused="a trailing comma"),
    Case("comments and commas for opencode", "opencode", b'{\n  // mine\n  "mcp": {"a": {"type": "local",},},\n}\n'),
    Case("commas for qwen", "qwen", b'{"theme": "x",}\n', refused="a trailing comma"),
    Case("a comment that does not end", "vscode", b'{} /* "', refused="not valid JSON"),
    # TOML
    Case("empty TOML", "codex", b""),
    Case("TOML with comments", "codex", CODEX),
    Case("TOML with windows line ends", "codex", CODEX.replace(b"\n", b"\r\n")),
    Case("TOML with a mark", "codex", BOM + CODEX),
    Case("TOML without a line end", "codex", b'model = "x" # y'),
    Case("TOML with an empty root", "codex", b"[mcp_servers]\n\n[tui]\nx = 1\n"),
    Case(
        "TOML with an inline root",
        "codex",
        b"mcp_servers = { a = { command = 'x' } } # mine\nb = 1\n",
        refused="by hand",
    ),
    Case("TOML with an empty inline root", "codex", b"mcp_servers = {}\n", refused="by hand"),
    Case("TOML with a table of that name", "codex", b'[mcp_servers.demo]\ncommand = "old" # c\n[x]\n', replaces=True),
    Case(
        "TOML with tables of that name",
        "codex",
        b'[mcp_servers."demo"]\ncommand = "old"\n\n# why\n[ mcp_servers . demo . env ]\nA = "b"\n\n# next\n[x]\n',
        replaces=True,
    ),
    Case(
        "TOML with a value of that name",
        "codex",
        b'[mcp_servers]\ndemo = { command = "old" } # c\n',
        refused="demo as a table",
    ),
    Case("TOML with dots", "codex", b'[mcp_servers]\ndemo.command = "old"\n', refused="demo as a table"),
    Case("TOML with dots at the top", "codex", b'mcp_servers.demo.command = "old"\n', refused="demo as a table"),
    Case(
        "TOML with scattered tables",
        "codex",
        b'[mcp_servers.demo]\ncommand = "a"\n[x]\n[mcp_servers.demo.env]\n',
        replaces=True,
    ),
    Case("TOML with a list of tables", "codex", b"[[mcp_servers]]\na = 1\n", refused="not a table"),
    Case("TOML with a key twice", "codex", b"a = 1\na = 2\n", refused="not valid TOML"),
    Case("no TOML", "codex", b"{}\n", refused="not valid TOML"),
    Case("TOML too deep", "codex", b"a = " + b"[" * 100_000, refused="not valid TOML"),
    Case("TOML with texts that never end", "codex", b'"""\n' + b'\\"""\n' * 100_000, refused="not valid TOML"),
    Case("TOML with too many dots", "codex", b"a" + b".a" * 1_000_000 + b" = 1\n", refused="dots"),
    Case("TOML with numbers", "codex", b"a = [" + b"1.5, " * 100 + b"]\n"),
    # YAML
    Case("empty YAML", "goose", b""),
    Case("only a YAML comment", "goose", b"# nothing\n"),
    Case("only a YAML start", "goose", b"---\n"),
    Case("YAML with comments", "goose", GOOSE),
    Case("YAML with windows line ends", "goose", GOOSE.replace(b"\n", b"\r\n")),
    Case("YAML with a mark", "goose", BOM + GOOSE),
    Case("YAML without a line end", "goose", GOOSE.rstrip()),
    Case("YAML without a root", "goose", b"GOOSE_MODEL: x # y"),
    Case("YAML with an end", "goose", b"---\nGOOSE_MODEL: x\n...\n", refused="by hand"),
    Case("YAML with nothing below the root", "goose", b"extensions: # mine\n# next\nGOOSE_MODEL: x\n"),
    Case("YAML with a null root", "goose", b"extensions: null # mine\nGOOSE_MODEL: x\n", replaces=True),
    Case("YAML with an empty root", "goose", b"extensions: {} # mine\nGOOSE_MODEL: x\n"),
    Case("YAML with a root in braces", "goose", b"extensions: {a: {name: a}, b: {}}\n", refused="uses braces"),
    Case("YAML with four spaces", "goose", b"extensions:\n    a:\n        name: a\n"),
    Case("YAML with a block of text", "goose", b"extensions:\n  a:\n    name: |+\n      text\n\n\n# c\nb: 1\n"),
    Case(
        "YAML with an entry of that name",
        "goose",
        b"extensions:\n  demo: # old\n    cmd: old\n  b: {}\n",
        replaces=True,
    ),
    Case("YAML with that name in braces", "goose", b"extensions: {demo: {cmd: old}, b: {}}\n", refused="uses braces"),
    Case("YAML with an alias", "goose", b"x: &x {a: 1}\nextensions:\n  a: *x\n  b:\n    <<: *x\n"),
    Case("YAML with an alias for the root", "goose", b"x: &x\n  a: {}\nextensions: *x\n", refused="by hand"),
    Case("YAML with that name for an alias", "goose", b"x: &x {a: 1}\nextensions:\n  demo: *x # y\n", replaces=True),
    Case("YAML with that name for an anchor", "goose", b"extensions:\n  demo: &x {a: 1}\nx: *x\n", refused="not valid"),
    Case("YAML with several documents", "goose", b"a: 1\n---\nb: 2\n", refused="single document"),
    Case("YAML with the root twice", "goose", b"extensions: {}\nextensions: {}\n", refused="twice"),
    Case("YAML with another key twice", "goose", b"extensions:\n# next\nA: 1\nA: 2\n", refused="twice"),
    Case("YAML with a list for a root", "goose", b"extensions: [a]\n", refused="not a mapping"),
    Case("YAML that is a list", "goose", b"- a\n", refused="not a mapping"),
    Case("YAML in braces", "goose", b'{"extensions": {}}\n', refused="by hand"),
    Case("no YAML", "goose", b"a: [\n", refused="not valid YAML"),
    Case("YAML with tabs", "goose", b"a:\n\tb: 1\n", refused="not valid YAML"),
    Case("YAML too deep", "goose", b"a: " + b"[" * 5000, refused="deeper"),
    Case(
        "YAML that grows",
        "goose",
        b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 40)),
        refused="counting each alias",
    ),
    Case("YAML with too many values", "goose", b"a: [" + b"0," * 400_000 + b"]\n", refused="5000 values"),
    Case("a list in YAML", "continue", CONTINUE),
    Case("a list at the margin", "continue", CONTINUE.replace(b"\n  ", b"\n")),
    Case("an empty list in YAML", "continue", b"name: a\nmcpServers: []\n"),
    Case("a list in brackets", "continue", b"name: a\nmcpServers: [{name: x, command: y}]\n", refused="uses braces"),
    Case("nothing below the list", "continue", b"name: a\nmcpServers:\n"),
    Case("no list yet", "continue", b"name: a\n"),
    Case(
        "an item of that name",
        "continue",
        b"mcpServers:\n  -   command: x\n      name: demo\n  - name: y\n",
        replaces=True,
    ),
    Case("servers for LibreChat", "librechat", b"version: 1.2.1\n\nmcpServers:\n  a:\n    url: http://x\n\n# end\n"),
]
