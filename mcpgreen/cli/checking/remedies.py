"""Explain the problems that the catalog reports: a code for programs, a fix, and the place in the file.

The catalogue writes sentences to the log that begin with a file. `validate` needs more, so each kind of sentence has a
row here.

Rule: a new complaint of the catalogue gets a row here. Without one it has the code `description` and a general fix.
"""

from __future__ import annotations

import json
import os
import re
from typing import NamedTuple

from mcpgreen.catalog.descriptions.in_script import keys_in
from mcpgreen.catalog.tree_scan import Loss
from mcpgreen.cli.checking.findings import Finding, Position
from mcpgreen.cli.checking.places import Description, bad_byte_in, description_beside, description_in
from mcpgreen.cli.checking.scripts import FROM_FASTMCP, content_of
from mcpgreen.project.project import Project
from mcpgreen.text.json_offsets import Keys

# Sentences that say that something is not served, besides warnings of the type Loss.
_LOST = re.compile(r"no permission to read| there is no script with the same name")


class Remedy(NamedTuple):
    pattern: str
    code: str
    fix: str
    keys: Keys = ()  # the member that is wrong, where the sentence does not begin with it


_ROWS: tuple[tuple[str, str, str] | tuple[str, str, str, Keys], ...] = (
    (r"accepts any value: |is not described: ", "open-type", "use one of the types in docs/python-tools.md"),
    (r"^line \d+: it is not clear which function", "functions", "mark each tool with @mcp_tool.tool"),
    (r"functions?(;| are called)|on line \d+ names one|cannot be called", "functions", "see docs/python-tools.md"),
    (r"^line \d+: the arguments of its", "unread", "correct or shorten the file, or put a .meta.json next to it"),
    (r"of mcp_tool\.tool is ignored", "option", "correct it, or remove it"),
    (r"mcp_tool\.tool has no option", "option", "remove it; hints are read_only, destructive, idempotent, open_world"),
    (r"^root .* is skipped: ", "root", "correct the path, create the directory, or remove the entry"),
    (r"^name must be .*, as its folder", "skill-name", "give the folder and name in SKILL.md the same name"),
    (r"^the folder of a skill", "skill-name", "rename the folder, and change name in SKILL.md"),
    (r"^description must be a text", "skill-description", "say what it is for and when, in 1024 characters"),
    (r"^it has no SKILL.md", "skill-missing", "write one with name and description, or remove the folder"),
    (r"front matter must|begin with front matter", "front-matter", "begin with ---, name: …, description: … and ---"),
    (r"bytes together|files or folders|than \d+ folders;|than \d+ skills", "skill-large", "move some of it elsewhere"),
    (r"UTF-8|utf-8|can't decode", "not-utf8", "save the file as UTF-8, without a byte order mark"),
    (r"not valid JSON", "json-syntax", "fix the JSON: double quotes, no trailing commas, no comments"),
    (r"not valid YAML", "yaml-syntax", "fix the YAML: indent with spaces, and quote strings that contain : or #"),
    (r"mcp: comment must end within", "comment-long", "move the description to a .meta.json next to the script"),
    (r"^@arg .* is read as a string, ", "arg-type", "write int, number, bool, string, list or json after the name"),
    (r"^@arg .* (default|choices)", "arg-value", "fix or remove it: NAME[a|b]=default TYPE"),
    (r"^@arg .* only the first one is used", "arg-double", "remove or rename one of the two"),
    (r"^@arg ", "arg-syntax", "write it as # @arg NAME[!][[a|b]][=default] [TYPE]  TEXT"),
    (r"is ignored: the @arg comments", "arg-schema", "use either @arg comments or an mcp: comment, not both"),
    (r"^@env ", "env", "write it as # @env NAME, or # @env NAME! if the tool cannot do without it"),
    (r"^env: ", "env", "remove it from env"),
    (r"nothing is indented below mcp:", "comment-empty", "write JSON after mcp:, or indented YAML below it"),
    (r"^must be an object, (found|such as)", "not-an-object", "write it as an object: { … }, or lines of name: value"),
    (r"larger than \d+ bytes|more than \d+ values", "too-large", "shorten the description"),
    (r"cannot be read", "unreadable", "make it readable by the user who runs the server (chmod u+r)"),
    (r"no permission to read", "unreadable", "make it readable by the user who runs the server (chmod u+rx)"),
    (r"no (script|template) with the same name", "lonely", "put a file with the same name next to it, or remove it"),
    (r"neither executable nor a script", "not-executable", "make it executable (chmod +x), or add a shebang (#!)"),
    (r"already (provides|has)|already has the name|an earlier one has", "double", "rename one of the two"),
    (r"appears twice", "double", "remove one of the two", ("arguments",)),
    (r"^not a folder", "not-a-folder", "rename it, and create a folder in its place"),
    (r"link to a directory", "link", "replace the link with the directory itself"),
    (r"(symbolic link|it links) to a file outside", "link", "replace the link with a copy of the file"),
    (r"is a symbolic link", "link", "replace the link with the file itself"),
    (r"levels or \d+ folders", "too-many", "move files that don't belong to the project elsewhere"),
    (r"because its name", "file-name", "rename the file, using printable characters in UTF-8"),
    (r"did you mean (\S+)\?", "unknown-field", "rename it to {0}, or remove it"),
    (r"^unknown key ", "unknown-field", "use a known name, or remove it"),
    (r"is unknown and left out", "unknown-field", "use a known name, or remove it"),
    (r"has a type that does not exist", "schema-type", "use string, number, integer, boolean, array, object or null"),
    (r"pattern that is not a regular", "schema-pattern", "fix the regular expression; in JSON, write \\\\ for each \\"),
    (r"refers to another document", "schema-ref", "copy the referenced schema into this one"),
    (r"refers to a place", "schema-ref", "define it there, or correct the reference"),
    (r"names a dialect", "schema-dialect", "remove $schema, or name a draft from 4 to 2020-12"),
    (r'must have the type "object"', "schema-root", 'set "type": "object", and put the schema under properties'),
    (r"icons? ", "icon", "use an image of up to 64 KiB in the same folder, or an https: or data: URL", ("icons",)),
    (r"^annotations\.", "annotation", "correct the value, or remove it"),
    (r"^role must", "role", "write user or assistant"),
    (r"^every argument must", "argument", "make each argument an object with a name", ("arguments",)),
    (r"^every message|^content type", "message", "give each message a role and content", ("messages",)),
    (r"^inputRequests", "input-request", "write the request as shown in docs/asking.md"),
    (r"^uri: it is missing", "uri", "give it a uri or a uriTemplate, or put the file next to it"),
    (r"has both uri and", "uri", "remove one of the two", ("uriTemplate",)),
    (r"^uri(Template)?: ", "uri", "fix the URI: a scheme, a colon, no spaces, and variables as {name}"),
    (r"there is no (\S+), and template is not", "app", "add that file, or set template"),
    (r"template must be one of|config\.", "app", "write the template as shown in docs/ui.md"),
    (r"entrypoint", "app", "name a file in the MCP App's directory"),
    (r"there is no file|path (must|.+ is (outside|not a))", "path", "use a file inside that directory", ("path",)),
    (r"must be ", "field", "correct the value, or remove it"),
)
ROWS = [Remedy(*row) for row in _ROWS]
GENERAL = Remedy("", "description", "correct the description, or remove it")
NOT_EXECUTABLE = "if it should be a tool, make it executable (chmod +x)"
NO_FIRST_LINE = "if it should be a tool, add a shebang, such as #!/usr/bin/env python3"
_IMPORTS_FASTMCP = re.compile(rb"(?m)^\s*(?:from|import)\s+(?:mcp\.server\.)?fastmcp\b")
_LINE = re.compile(r"line (\d+): ")
_JSON_PLACE = re.compile(r"line \d+ column \d+")
_OWN_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")  # in a comment
_QUOTED = re.compile(r"'([^']{1,80})'")
_REGISTERED = re.compile(r"the (?:resource )?(\w+) (.+?)(?: is left out)?: (.*)", re.DOTALL)
_KIND_OF = {"tool": "tools", "prompt": "prompts", "resource": "resources", "template": "resourceTemplates"}


def explained(project: Project, section: str, sentence: str, *, level: str = "") -> Finding:
    """Turn a sentence of the catalogue into a finding."""
    is_lost = type(sentence) is Loss or _LOST.search(sentence) is not None
    level = level or ("error" if is_lost else "warning")
    path, rest = _split(project, sentence)
    if path is not None and level == "info":
        code, fix = "note", None
        if "not a tool" in rest:
            code, fix = "not-a-tool", NOT_EXECUTABLE if "not executable" in rest else NO_FIRST_LINE
            if _IMPORTS_FASTMCP.search(content_of(path) or b""):
                fix = FROM_FASTMCP
        shown = project.shown(path)
        return Finding(level, section, sentence, code, fix, shown, _own_place(rest), subject=shown)
    item: Keys = ()
    if path and os.path.basename(path).startswith("register.") and (registered := _REGISTERED.match(rest)):
        item = _item(description_in(path), _KIND_OF.get(registered[1], section), registered[2])
        rest = registered[3]
    found = ((row, re.search(row.pattern, rest)) for row in ROWS)
    remedy, match = next(((row, match) for row, match in found if match), (GENERAL, None))
    fix = remedy.fix.replace("{0}", match[1]) if match and match.re.groups and match[1] else remedy.fix
    if path is None:
        return Finding(level, section, sentence, remedy.code, fix)
    source, position = located(path, rest, remedy, item)
    if position is not None and remedy.code == "json-syntax":
        # Name the place in the file; the parser may have counted from the start of a comment.
        sentence = _JSON_PLACE.sub(f"line {position.line} column {position.column}", sentence)
    subject = project.shown(path)
    return Finding(level, section, sentence, remedy.code, fix, project.shown(source), position, subject=subject)


def located(path: str, rest: str, remedy: Remedy, item: Keys = ()) -> tuple[str, Position | None]:
    """Return the file that has to be changed, and where in it."""
    if line := _LINE.match(rest):
        return path, Position(int(line[1]))
    if remedy.code == "not-utf8":
        return path, bad_byte_in(path)
    if place := _own_place(rest):
        return path, place
    source = description_beside(path) or path
    description = description_in(source)
    if description is None:
        return path, None
    if remedy.code in ("json-syntax", "yaml-syntax"):
        return source, description.fault()
    keys = keys_in(rest)
    if len(keys) < len(("a list", "its element")):
        keys = remedy.keys or keys
    position = description.position_of(*item, *keys) if keys or item else None
    if position is None:
        return (source, None) if remedy.code in ("uri", "app") else (path, None)
    if remedy.code.startswith("schema-") and (quoted := _QUOTED.search(rest)):
        word = quoted[1] if description.is_yaml else f'"{quoted[1]}"'
        position = description.position_of_word(word, after=position)
    return source, position


def _own_place(rest: str) -> Position | None:
    place = _OWN_PLACE.search(rest)
    return Position(*map(int, place.groups())) if place else None


def _split(project: Project, sentence: str) -> tuple[str | None, str]:
    """Return the file that a sentence begins with, and what follows."""
    at = sentence.find(": ")
    while at > 0:
        path = os.path.join(project.root, sentence[:at])
        if os.path.lexists(path):
            return path.rstrip("/"), sentence[at + 2 :]
        at = sentence.find(": ", at + 1)
    return None, sentence


def _item(description: Description | None, kind: str, name: str) -> Keys:
    """Return the keys that lead to the registered item of this name."""
    if description is None or description.is_yaml:
        return ()
    try:
        items = json.loads(description.text, strict=False)[kind]
        return next((kind, index) for index, item in enumerate(items) if item["name"] == name)
    except (ValueError, KeyError, TypeError, StopIteration, RecursionError):
        return ()
