"""Function tools among the other files of a project: which are tools, how they are run, and who has the last word."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog import tree_scan
from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.functions import reading
from mcpgreen.catalog.functions.reading import FunctionTool
from mcpgreen.catalog.manual.items import READERS
from mcpgreen.catalog.prompts import discover_prompts
from mcpgreen.catalog.tools import Tool
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.errors import ProjectError
from tests.catalog.test_tools import discovered, only_tool
from tests.catalog.trees import TreeBuilder

GREET = '''\
import mcp_tool

@mcp_tool.tool(read_only=True)
def greet(name: str, times: int = 1) -> list[str]:
    """Greet somebody.

    Args:
        name: Who is greeted
        times: How often
    """
    return [name] * times
'''
FIELDS: dict[str, Any] = {
    "description": "Greet somebody.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who is greeted"},
            "times": {"type": "integer", "default": 1, "description": "How often"},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"type": "string"}}},
        "required": ["result"],
    },
    "annotations": {"readOnlyHint": True},
}
ENV = "#!/usr/bin/env python3\n"


def test_a_signature_says_what_a_description_beside_the_script_says(tree: TreeBuilder) -> None:
    tree.write("tools/a/greet.py", ENV + GREET, mode=0o755)
    by_signature = only_tool(tree)
    (tree.root / "tools/a/greet.py").unlink()
    tree.write("tools/b/greet.py", f"{ENV}print(1)\n", mode=0o755)
    tree.write("tools/b/greet.meta.json", json.dumps(FIELDS))

    assert only_tool(tree).definition == by_signature.definition == {"name": "greet", **FIELDS}


@pytest.mark.parametrize(
    ("name", "head", "mode", "program"),
    [
        ("greet.py", ENV, 0o755, ""),
        ("greet", ENV, 0o755, ""),
        ("greet.py", ENV, 0o644, "/usr/bin/env"),
        ("greet.py", "", 0o644, "env"),
        ("greet.py", "", 0o755, "env"),
        ("greet", "#!/usr/bin/env -S uv run --script\n", 0o755, ""),
        ("greet", "#!/opt/bin/python3.13 -u\n", 0o755, ""),
    ],
)
def test_the_first_line_and_then_the_suffix_tell_the_language(
    tree: TreeBuilder, name: str, head: str, mode: int, program: str
) -> None:
    path = tree.write(f"tools/{name}", head + GREET, mode=mode)
    tool = only_tool(tree)

    assert tool.definition == {"name": "greet", **FIELDS}
    assert tool.command[0] == (program or str(path))


@pytest.mark.parametrize(("name", "head"), [("greet.py", "#!/bin/sh\n"), ("greet.rb", "#!/usr/bin/env ruby\n")])
def test_another_language_is_not_read_as_python(tree: TreeBuilder, name: str, head: str) -> None:
    tree.write(f"tools/{name}", head + GREET, mode=0o755)

    assert only_tool(tree).definition == {"name": "greet", "inputSchema": {"type": "object", "properties": {}}}


def test_a_library_in_python_is_no_tool(tree: TreeBuilder) -> None:
    tree.write("tools/lib.py", "import mcp_tool\n\ndef helper(): ...\n")

    assert discovered(tree).items == []


def test_a_description_wins_field_by_field(tree: TreeBuilder) -> None:
    tree.write("tools/greet.py", ENV + GREET, mode=0o755)
    tree.write("tools/greet.meta.json", '{"description": "Says hello", "timeoutSecs": 5}')
    beside = only_tool(tree)
    assert beside.definition == {"name": "greet", **FIELDS, "description": "Says hello"}
    assert beside.description.timeout_secs == 5

    tree.write("tools/greet.meta.json", '{"arguments": {"type": "object", "properties": {"x": {}}}}')
    schema = {"type": "object", "properties": {"x": {}}}
    assert only_tool(tree).definition == {"name": "greet", **FIELDS, "inputSchema": schema}

    (tree.root / "tools/greet.meta.json").unlink()
    tree.write("tools/greet.py", f'{ENV}# mcp: {{"name": "hello", "title": "Hello"}}\n{GREET}', mode=0o755)
    assert only_tool(tree).definition == {"name": "hello", "title": "Hello", **FIELDS}


def test_a_decorator_may_name_the_tool(tree: TreeBuilder) -> None:
    tree.write("tools/greet.py", ENV + GREET.replace("read_only=True", 'name="hello"'), mode=0o755)

    assert only_tool(tree).name == "hello"


def test_what_cannot_be_read_is_told_with_its_line(tree: TreeBuilder) -> None:
    tree.write("tools/greet.py", ENV + GREET.replace("times: int", "times: Times"), mode=0o755)
    found = discovered(tree)

    reason = "the parameter times accepts any value: the type Times is not supported"
    assert found.warnings == [f"tools/greet.py: line 5: {reason}"]
    (tool,) = found.items
    assert isinstance(tool, Tool)
    assert tool.definition["inputSchema"]["properties"]["times"] == {"default": 1, "description": "How often"}


def test_a_keyword_that_is_wrong_costs_the_tool(tree: TreeBuilder) -> None:
    wrong = GREET.replace("name: str", 'name: typing.Annotated[str, mcp_tool.Arg(pattern="(")]')
    tree.write("tools/greet.py", f"{ENV}import typing\n{wrong}", mode=0o755)
    found = discovered(tree)

    assert found.items == []
    assert "inputSchema has a pattern that is not a regular expression" in found.warnings[0]


def test_the_mark_of_a_function_may_come_late_in_a_file(tree: TreeBuilder) -> None:
    tree.write("tools/greet.py", ENV + "#" * 70_000 + "\n" + GREET, mode=0o755)

    assert only_tool(tree).definition == {"name": "greet", **FIELDS}


def test_only_files_that_have_changed_are_read_again(tree: TreeBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []
    read = reading.function_tools

    def recorded(source: bytes) -> list[FunctionTool]:
        looked_at.append(source)
        return read(source)

    monkeypatch.setattr(reading, "function_tools", recorded)
    monkeypatch.setattr(tree_scan, "SETTLING_NS", 0)  # else files that are this young are read again
    tree.write("tools/greet.py", ENV + GREET, mode=0o755)
    tree.write("tools/hello.py", ENV + GREET, mode=0o755)
    catalog = Catalog(tree.project, ttl_secs=0, max_bytes=1 << 20)
    catalog.refresh("tools")
    assert len(looked_at) == 2

    tree.write("tools/hello.py", ENV + GREET.replace("Greet somebody", "Say hello"), mode=0o755)
    catalog.refresh("tools")
    assert len(looked_at) == 3
    assert [each.definition["description"] for each in catalog.snapshot("tools").items] == [
        "Greet somebody.",
        "Say hello.",
    ]

    tree.write("tools/greet.meta.json", '{"description": "Greet"}')
    catalog.refresh("tools")
    assert len(looked_at) == 4
    assert catalog.snapshot("tools").items[0].definition["description"] == "Greet"


def test_a_file_that_would_do_harm_when_it_is_imported_does_none(tree: TreeBuilder, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    harm = f"import os\nopen({str(trace)!r}, 'w').close()\nos._exit(3)\n"
    tree.write("tools/greet.py", f"{ENV}{harm}{GREET}{harm}", mode=0o755)
    tree.write("tools/broken.py", f"{ENV}{harm}{GREET}def (", mode=0o755)
    found = discovered(tree)

    broken, greet = found.items
    assert isinstance(broken, Tool)
    assert isinstance(greet, Tool)
    assert greet.definition == {"name": "greet", **FIELDS}
    assert broken.definition["inputSchema"] == {"type": "object", "properties": {}}
    assert "cannot be parsed" in found.warnings[0]
    assert not trace.exists()


SCOPES = ["files:read", "files:write"]
JSON_SCOPES = json.dumps(SCOPES)
FORMS = {
    "meta.json": {"tools/greet.sh": "#!/bin/sh\n", "tools/greet.meta.json": f'{{"scopes": {JSON_SCOPES}}}'},
    "meta.yaml": {"tools/greet.sh": "#!/bin/sh\n", "tools/greet.meta.yaml": "scopes:\n- files:read\n- files:write\n"},
    "comment": {"tools/greet.sh": f'#!/bin/sh\n# mcp: {{"scopes": {JSON_SCOPES}}}\n'},
    "comment in YAML": {"tools/greet.sh": "#!/bin/sh\n# mcp:\n#   scopes: [files:read, files:write]\n"},
    "decorator": {"tools/greet.py": ENV + GREET.replace("read_only=True", f"scopes={SCOPES!r}")},
    "constant": {
        "tools/greet.py": f"{ENV}BOTH = {SCOPES!r}\n" + GREET.replace("read_only=True", "scopes=BOTH"),
    },
    "beside a function": {
        "tools/greet.py": ENV + GREET.replace("read_only=True", "scopes=computed()"),
        "tools/greet.meta.json": f'{{"scopes": {JSON_SCOPES}}}',
    },
}


@pytest.mark.parametrize("files", FORMS.values(), ids=FORMS)
def test_scopes_may_stand_in_every_form_of_a_description(tree: TreeBuilder, files: dict[str, str]) -> None:
    for path, text in files.items():
        tree.write(path, text, mode=0o755 if ".meta." not in path else 0o644)
    tool = only_tool(tree)

    assert tool.description.scopes == SCOPES
    assert "scopes" not in tool.definition


UNREADABLE = {
    "computed": GREET.replace("read_only=True", "scopes=computed()"),
    "no list": GREET.replace("read_only=True", "scopes='files:read'"),
    "among options": GREET.replace("read_only=True", "**OPTIONS"),
    "of two functions": "import mcp_tool\n@mcp_tool.tool(scopes=f())\ndef a(): 0\n@mcp_tool.tool(**B)\ndef b(): 0\n",
    "for a newer Python": GREET.replace("read_only=True", "scopes=['a']") + "match = :=\n",
    "too long": GREET.replace("read_only=True", "scopes=['a']") + "x = 1\n" * 50_000,
    "too long, another name": "from mcp_tool import tool as t\n@t(scopes=['a'])\ndef f(): 0\n" + "x = 1\n" * 50_000,
    "scope": GREET.replace("read_only=True", "scope=['a']"),
    "Scopes": GREET.replace("read_only=True", "Scopes=['a']"),
    "scoeps": GREET.replace("read_only=True", "scoeps=['a']"),
    "an alias": GREET.replace("@mcp_tool.tool(", "mark = mcp_tool.tool\n@mark(").replace(
        "read_only=True", "scopes=['a']"
    ),
    "a mark made before": "import mcp_tool\nadmin = mcp_tool.tool(scopes=['a'])\n@admin\ndef f(): 0\n",
    "partial": "import functools, mcp_tool\n@functools.partial(mcp_tool.tool, scopes=['a'])()\ndef f(): 0\n",
    "partial beside a mark": "from functools import partial\n"
    + GREET
    + "admin = partial(mcp_tool.tool, scopes=['a'])\n@admin()\ndef other(): 0\n",
    "under its own name": "from mcp_tool import tool\ntool = tool(scopes=['a'])\n@tool\ndef f(): 0\n",
    "a call": "import mcp_tool\ndef f(): 0\nmcp_tool.tool(scopes=['a'])(f)\n",
    "a dictionary": "import mcp_tool\nOPTIONS = {'scopes': ['a']}\ndef f(): 0\nmcp_tool.tool(**OPTIONS)(f)\n",
    "a function that marks": "import mcp_tool\ndef admin(f):\n    return mcp_tool.tool(scopes=['a'])(f)\n"
    "@admin\ndef f(): 0\nmcp_tool.run(f)\n",
    "a nested function": "import mcp_tool\ndef make():\n    @mcp_tool.tool(scopes=['a'])\n    def f(): 0\nmake()\n",
    "in a loop": "import mcp_tool\nfor _ in [1]:\n    @mcp_tool.tool(scopes=['a'])\n    def f(): 0\n",
    "in a class": "import mcp_tool\nclass C:\n    @mcp_tool.tool(scopes=['a'])\n    def f(): 0\n",
    "one of two": "import mcp_tool\nif 1:\n    @mcp_tool.tool(scopes=['a'])\n    def f(): 0\nelse:\n"
    "    @mcp_tool.tool\n    def f(): 0\n",
}


@pytest.mark.parametrize("source", UNREADABLE.values(), ids=UNREADABLE)
def test_a_tool_whose_scopes_cannot_be_read_is_served_to_nobody(tree: TreeBuilder, source: str) -> None:
    """Else a typing error would open it for everybody."""
    tree.write("tools/greet.py", ENV + source, mode=0o755)
    found = discovered(tree)

    assert found.items == []
    assert any("scopes" in warning for warning in found.warnings)


FAULTY_DESCRIPTIONS = {
    "scope": {"tools/a.sh": "#!/bin/sh\n", "tools/a.meta.json": '{"scope": ["a"]}'},
    "Scopes": {"tools/a.sh": "#!/bin/sh\n", "tools/a.meta.yaml": "Scopes: [a]\n"},
    "required_scopes": {"tools/a.sh": '#!/bin/sh\n# mcp: {"required_scopes": ["a"]}\n'},
    "scops": {"tools/a.sh": '#!/bin/sh\n# mcp: {"scops": ["a"]}\n'},
    "null": {"tools/a.sh": "#!/bin/sh\n", "tools/a.meta.json": '{"scopes": null}'},
    "in annotations": {"tools/a.sh": "#!/bin/sh\n", "tools/a.meta.json": '{"annotations": {"scopes": ["a"]}}'},
    "in a comment that is broken": {"tools/a.sh": '#!/bin/sh\n# mcp: {"scopes": ["a"]\n', "tools/a.meta.json": "{}"},
    "in a comment too far below": {
        "tools/a.sh": "#!/bin/sh\n" + "\n" * 12 + '# mcp: {"scopes": ["a"]}\n',
        "tools/a.meta.json": "{}",
    },
    "another name": {"tools/a.sh": "#!/bin/sh\n", "tools/a.meta.json": '{"auth_scopes": ["a"]}'},
    "twice": {"tools/a.sh": "#!/bin/sh\n", "tools/a.meta.json": '{"scopes": ["a"], "scopes": []}'},
    "as a tag": {"tools/a.sh": "#!/bin/sh\n# @scopes files:write\n"},
    "in a second description": {
        "tools/a.sh": "#!/bin/sh\n",
        "tools/a.meta.json": "{}",
        "tools/a.meta.yaml": "scopes: [a]\n",
    },
    "wrong in a comment": {"tools/a.sh": '#!/bin/sh\n# mcp: {"scope": ["a"]}\n', "tools/a.meta.json": "{}"},
}


FAULTY_FIELDS = {
    "requiredScope": '{"requiredScope": ["a"]}',
    "scopesRequired": '{"scopesRequired": ["a"]}',
    "scopeList": '{"scopeList": ["a"]}',
    "in security": '{"security": {"scopes": ["a"]}}',
    "in auth": '{"auth": {"required": [{"scope": "a"}]}}',
    "in _meta": '{"_meta": {"securitySchemes": [{"type": "oauth2", "scopes": ["a"]}]}}',
    "twice, one escaped": r'{"scopes": ["a"], "s\u0063opes": []}',
    "around it twice": '{"auth": {"scopes": ["a"]}, "auth": {}}',
    "twice in YAML": "scopes: [a]\nscopes: []\n",
    "twice in YAML, one escaped": 'scopes: [a]\n"s\\x63opes": []\n',
}
FAULTY_COMMENTS = {
    "a blank line inside": "# mcp:\n#  description: d\n\n#  scopes: [a]\n",
    "a list after a blank line": "# mcp:\n#  description: d\n\n#  scopes:\n#   - a\n",
    "not indented": "# mcp:\n#  description: d\n# scopes:\n#   - a\n",
    "above": "# scopes: [a]\n# mcp:\n#  description: d\n",
    "two comments": '# mcp: {"description": "d"}\n# mcp: {"scopes": ["a"]}\n',
    "in capitals": "# MCP:\n#  scopes: [a]\n",
    "a space before the colon": '# mcp : {"scopes": ["a"]}\n',
    "a list too far below": "#\n" * 10 + "# mcp:\n#  scopes:\n#   - a\n",
    "JSON over lines": '# mcp: {"description": "d",\n#  "title": "t", "scopes": ["a"]}\n',
    "JSON of one letter escaped, over lines": '# mcp: {\n#  "s\\u0063opes": ["a"]}\n',
    "escaped and broken": '# mcp: {"s\\u0063opes": ["a"]\n',
    "with another name": "# mcp:\n#  description: d\n# required_scopes: [a]\n",
    "in a block, not indented": "/* mcp:\n  description: d\nscopes: [a]\n*/\n",
    "as one word": "# mcp-scopes: a\n",
    "one, not indented": "# mcp:\n#  description: d\n# scope: a\n",
    "one, in capitals": "# MCP:\n#  scope: a b c\n",
    "lines that end as on Windows": "# mcp:\r\n#  description: d\r\n\r\n# scopes:\r\n#  - a\r\n",
    "without a colon": '# mcp {"scopes": ["a"]}\n',
    "as a mark": "# @mcp scopes: [a]\n",
    "nested": "# mcp:\n#  auth:\n#   scopes: [a]\n",
    "twice": "# mcp:\n#  scopes: [a]\n#  scopes: []\n",
}
FAULTY_DESCRIPTIONS |= {
    name: {"tools/a.sh": "#!/bin/sh\n", f"tools/a.meta.{'json' if text[0] == '{' else 'yaml'}": text}
    for name, text in FAULTY_FIELDS.items()
}
FAULTY_DESCRIPTIONS |= {f"{name} #": {"tools/a.sh": f"#!/bin/sh\n{text}"} for name, text in FAULTY_COMMENTS.items()}
FAULTY_DESCRIPTIONS |= {
    f"{name} # beside a file": {"tools/a.sh": f"#!/bin/sh\n{text}", "tools/a.meta.json": '{"description": "d"}'}
    for name, text in FAULTY_COMMENTS.items()
}


@pytest.mark.parametrize("files", FAULTY_DESCRIPTIONS.values(), ids=FAULTY_DESCRIPTIONS)
def test_a_description_that_almost_names_scopes_costs_the_tool(tree: TreeBuilder, files: dict[str, str]) -> None:
    """The tool was open for every caller."""
    for path, text in files.items():
        tree.write(path, text, mode=0o755 if ".meta." not in path else 0o644)
    found = discovered(tree)

    assert found.items == []
    assert any("scope" in warning or "a } is missing" in warning for warning in found.warnings)


@pytest.mark.parametrize("kind", ["link out", "dangling link", "link to itself", "folder", "fifo"])
def test_a_description_that_is_no_file_of_the_project_costs_the_tool(
    tree: TreeBuilder, tmp_path: Path, kind: str
) -> None:
    """It was left out, and the tool was served without its scopes."""
    tree.write("tools/a.sh", "#!/bin/sh\n", mode=0o755)
    description = tree.root / "tools/a.meta.json"
    outside = tmp_path / "outside.json"
    if kind == "folder":
        description.mkdir()
    elif kind == "fifo":
        os.mkfifo(description)
    else:
        if kind == "link out":
            outside.write_text('{"scopes": ["a"]}')
        description.symlink_to(description if kind == "link to itself" else outside)
    found = discovered(tree)

    assert found.items == []
    assert any("the description and its scopes cannot be read" in warning for warning in found.warnings)


def test_a_description_counts_for_a_registered_tool_as_well(tree: TreeBuilder) -> None:
    path = tree.write("tools/a.sh", "#!/bin/sh\n", mode=0o755)
    tree.write("tools/a.meta.json", '{"scopes": ["b"]}')

    fields = {"name": "a", "path": "a.sh", "scopes": ["a"]}

    tool = READERS["tools"].read(tree.project, fields, [])
    assert tool.path == str(path)
    assert tool.description.scopes == ["a", "b"]


BESIDE = {
    "a comment": {"tools/greet.sh": '#!/bin/sh\n# mcp: {"scopes": ["b"]}\n'},
    "a YAML comment": {"tools/greet.sh": "#!/bin/sh\n# mcp:\n#   scopes: [b]\n"},
    "a decorator": {"tools/greet.py": ENV + GREET.replace("read_only=True", "scopes=['b']")},
    "a list over lines": {"tools/greet.sh": "#!/bin/sh\n# mcp:\n#   scopes:\n#     - b\n"},
    "a list on the next line": {"tools/greet.sh": "#!/bin/sh\n# mcp:\n#   scopes:\n#     [b]\n"},
    "a remark": {"tools/greet.sh": "#!/bin/sh\n# mcp:\n#   scopes: # who may\n#   - b\n"},
    "an anchor": {"tools/greet.sh": "#!/bin/sh\n# mcp:\n#   scopes: &a [b]\n"},
    "a tag": {"tools/greet.sh": "#!/bin/sh\n# mcp:\n#   scopes: !!seq [b]\n"},
    "a question mark": {"tools/greet.sh": "#!/bin/sh\n# mcp:\n#   ? scopes\n#   : [b]\n"},
    "an escape": {"tools/greet.sh": '#!/bin/sh\n# mcp: {"s\\u0063opes": ["b"]}\n'},
    "a docstring": {"tools/greet.py": f'{ENV}"""mcp:\n  scopes: [b]\n"""\n'},
    "a block": {"tools/greet.js": "#!/usr/bin/env node\n/* mcp:\n  scopes: [b]\n*/\n"},
    "a block with stars": {"tools/greet.js": "#!/usr/bin/env node\n/**\n * mcp:\n *   scopes:\n *     - b\n */\n"},
    "a block of Lua": {"tools/greet.lua": "#!/usr/bin/env lua\n--[[ mcp:\n  scopes: [b]\n]]\n"},
}


@pytest.mark.parametrize("files", BESIDE.values(), ids=BESIDE)
def test_scopes_of_the_script_count_beside_those_of_its_description(tree: TreeBuilder, files: dict[str, str]) -> None:
    for path, text in files.items():
        tree.write(path, text, mode=0o755)
    tree.write("tools/greet.meta.json", '{"description": "Greet"}')
    assert only_tool(tree).description.scopes == ["b"]

    tree.write("tools/greet.meta.json", '{"scopes": ["a", "b"]}')
    assert only_tool(tree).description.scopes == ["a", "b"]


def test_the_scopes_of_another_library_are_none_of_ours(tree: TreeBuilder) -> None:
    source = GREET + "\ndef connect():\n    return Credentials.from_file('x', scopes=['https://example.com/a'])\n"
    tree.write("tools/greet.py", ENV + "# OAuth scopes: see the console\n" + source, mode=0o755)
    tree.write("tools/other.sh", "#!/bin/sh\n# scopes: none\n", mode=0o755)

    assert [tool.description.scopes for tool in discovered(tree).items] == [(), ()]


HARMLESS = {
    "an argument": '# mcp: {"inputSchema": {"properties": {"scope": {"enum": ["scopes"]}}}}\n',
    "an argument that is explained": '# mcp: {"description": "d"}\n# Arguments:\n#   scope: where to look\n',
    "an @arg comment": "# Search.\n# @arg scope!  Where to look\n# mcp:\n#   title: t\n",
    "prose": '# mcp: {"description": "Search in a scope"}\n# The scopes of the token do not matter, see scope.md.\n',
    "a list of words": '# mcp: {"description": "d"}\n# Finds files, symbols, scopes\n# and more, in a scope\n',
    "code": '# mcp: {"description": "d"}\necho "\nscopes: [user]\n"\n',
    "a comment far below": '# mcp: {"description": "d"}\ntrue\n# scopes: [repo]\n',
    "no annotation": "# scopes: [repo]\n# See the MCP specification.\n",
    "a second list for the client": '# mcp: {"scopes": [], "_meta": {"securitySchemes": [{"scopes": []}]}}\n',
    "an example": '# mcp: {"examples": [{"scope": "repo"}], "outputSchema": {"properties": {"scopes": {}}}}\n',
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_a_tool_may_speak_of_scopes(tree: TreeBuilder, text: str) -> None:
    tree.write("tools/a.sh", f"#!/bin/sh\n{text}", mode=0o755)

    assert not only_tool(tree).description.scopes


PROMPTS = {
    "a comment": {"prompts/p.sh": '#!/bin/sh\n# mcp: {"scopes": ["b"]}\n'},
    "a YAML comment": {"prompts/p.sh": "#!/bin/sh\n# mcp:\n#  scopes:\n#   - b\n"},
    "a template": {"prompts/p.md": '<!-- mcp: {"scopes": ["b"]} -->\n'},
}


@pytest.mark.parametrize("files", PROMPTS.values(), ids=PROMPTS)
@pytest.mark.parametrize("is_registered", [False, True])
def test_scopes_in_a_prompt_count_beside_its_description(
    tree: TreeBuilder, files: dict[str, str], is_registered: bool
) -> None:
    """The comment was not read, and everybody got the prompt."""
    for path, text in files.items():
        tree.write(path, text, mode=0o755 if path.endswith(".sh") else 0o644)
        file_name = path.partition("/")[2]
    tree.write("prompts/p.meta.json", '{"description": "d", "scopes": ["a"]}')
    if is_registered:
        prompt = READERS["prompts"].read(tree.project, {"name": "p", "path": file_name}, [])
        assert prompt.scopes == ["a", "b"]
    else:
        (prompt,) = discover_prompts(tree.project, survey(tree.project, [tree.project.prompts_dir])).items
        assert prompt.scopes == ["a", "b"]


@pytest.mark.parametrize("text", ["scopes: [a]\nscopes: []\n", "auth: {scopes: [a]}\n"])
def test_a_prompt_whose_scopes_are_not_clear_is_left_out(tree: TreeBuilder, text: str) -> None:
    tree.write("prompts/p.md", "Secret")
    tree.write("prompts/p.meta.yaml", text)
    found = discover_prompts(tree.project, survey(tree.project, [tree.project.prompts_dir]))

    assert found.items == []
    assert "scopes" in found.warnings[0]


def test_a_function_that_is_defined_twice_takes_anything(tree: TreeBuilder) -> None:
    """It was described by one definition and run by the other."""
    source = (
        "import mcp_tool\nif mcp_tool:\n    @mcp_tool.tool\n    def greet(name: str): 0\n"
        "else:\n    @mcp_tool.tool\n    def greet(count: int): 0\n"
    )
    tree.write("tools/greet.py", ENV + source, mode=0o755)
    found = discovered(tree)

    (tool,) = found.items
    assert tool.definition["inputSchema"] == {"type": "object", "properties": {}}
    assert "greet is defined more than once" in found.warnings[0]


TWO = "@mcp_tool.tool\n    def greet(count: int): 0\n"
AGAIN = {
    "match": "match 1:\n  case 1:\n    " + TWO,
    "for": "for _ in [1]:\n    " + TWO,
    "while": "while True:\n    " + TWO + "    break\n",
    "finally": "try: pass\nfinally:\n    " + TWO,
    "a nested block": "with open('x'):\n  for _ in [1]:\n    " + TWO,
    "assigned": "greet = print\n",
    "unpacked": "(greet, other) = print, print\n",
    "a loop variable": "for greet in [print]: pass\n",
    "a context": "with open('x') as greet: pass\n",
    "a walrus": "(greet := print)\n",
    "imported": "from other import greet\n",
    "renamed": "import other as greet\n",
    "caught": "try: pass\nexcept ValueError as greet: pass\n",
    "captured": "match 1:\n  case greet: pass\n",
    "a class": "class greet: pass\n",
    "deleted": "del greet\n",
    "global": "def other():\n    global greet\n    greet = print\nother()\n",
}
if sys.version_info >= (3, 11):
    AGAIN["except*"] = "try: pass\nexcept* ValueError:\n    " + TWO


@pytest.mark.parametrize("way", AGAIN)
@pytest.mark.parametrize("is_marked", [True, False])
def test_so_does_one_whose_name_gets_another_meaning(tree: TreeBuilder, way: str, is_marked: bool) -> None:
    first = "import mcp_tool\n" + "@mcp_tool.tool\n" * is_marked + "def greet(name: str): 0\n"
    again = AGAIN[way] if is_marked else AGAIN[way].replace("@mcp_tool.tool\n    ", "") + "mcp_tool.run(greet)\n"
    tree.write("tools/greet.py", ENV + first + again, mode=0o755)
    found = discovered(tree)

    (tool,) = found.items
    assert tool.definition["inputSchema"] == {"type": "object", "properties": {}}
    assert re.search(
        "greet is defined more than once, or replaced|not clear which function is the tool", found.warnings[0]
    )


DECORATORS = {
    "replaces": ("def change(f):\n    def other(count): return count\n    return other\n", "@change\n", False),
    "wraps": (
        "import functools\ndef change(f):\n    @functools.wraps(f)\n    def g(*a): return f(*a)\n    return g\n",
        "@change\n",
        True,
    ),
    "registers": ("def change(f):\n    print(f)\n    return f\n", "@change\n", True),
    "is of a library": ("import functools\n", "@functools.cache\n", True),
}


@pytest.mark.parametrize("way", DECORATORS)
def test_so_does_one_that_a_decorator_replaces(tree: TreeBuilder, way: str) -> None:
    before, decorator, is_known = DECORATORS[way]
    source = f"import mcp_tool\n{before}@mcp_tool.tool\n{decorator}def greet(name: str): 0\n"
    tree.write("tools/greet.py", ENV + source, mode=0o755)
    found = discovered(tree)

    (tool,) = found.items
    assert ("name" in tool.definition["inputSchema"]["properties"]) is is_known
    assert any("or replaced" in warning for warning in found.warnings) is not is_known


def test_a_name_that_means_something_else_only_inside_is_clear(tree: TreeBuilder) -> None:
    inside = "def other():\n    greet = 1\n    return [greet for greet in (greet,)]\nx = [greet for greet in (1,)]\n"
    tree.write("tools/greet.py", ENV + GREET + inside + "class A:\n    greet = 1\n", mode=0o755)

    assert only_tool(tree).definition["inputSchema"]["properties"]


def test_a_tool_that_says_that_it_needs_no_scopes_needs_none(tree: TreeBuilder) -> None:
    tree.write("tools/greet.py", ENV + GREET.replace("read_only=True", "scopes=None"), mode=0o755)

    assert only_tool(tree).description.scopes == ()


MATHS = """\
import mcp_tool

TOTAL = 0

@mcp_tool.tool
def add(a: int, b: int) -> int:
    '''Add two numbers.'''
    return a + b

@mcp_tool.tool(name="sub", scopes=["write"], title="Minus")
def subtract(a: int, b: int) -> int:
    return a - b
"""


def test_each_marked_function_of_a_file_is_a_tool(tree: TreeBuilder) -> None:
    tree.write("tools/maths.py", f'''"""About the file."""\n{MATHS}''', mode=0o644)
    found = discovered(tree)
    add, sub = found.items

    assert (found.warnings, add.name, sub.name) == ([], "add", "sub")
    assert add.definition["description"] == "Add two numbers." and "description" not in sub.definition
    assert (list(add.description.scopes), sub.description.scopes) == ([], ["write"])
    assert sub.definition["title"] == "Minus"
    assert (add.path, add.command) == (sub.path, sub.command)


def test_a_description_of_the_file_counts_for_each_function(tree: TreeBuilder) -> None:
    tree.write("tools/maths.py", MATHS)
    tree.write("tools/maths.meta.json", '{"timeoutSecs": 5, "scopes": ["read"], "annotations": {"readOnlyHint": true}}')
    add, sub = discovered(tree).items

    assert [tool.description.timeout_secs for tool in (add, sub)] == [5, 5]
    assert (add.description.scopes, sub.description.scopes) == (["read"], ["write", "read"])

    tree.write("tools/maths.meta.json", '{"description": "Calculate"}')
    (loss,) = discovered(tree).warnings
    assert loss.startswith("tools/maths.meta.json: description cannot apply to 2 functions")


AMBIGUOUS = {
    "one name": ("name='add'", "line 6: several functions are called add; give each its own name=; the tool add is", 0),
    "another file": (
        "name='other'",
        "tools/other.sh: skipped because tools/maths.py already provides the tool other",
        2,
    ),
    "no tool name": ("name='größe'", "line 11: a tool cannot be called größe; give the function a name= made", 1),
    "no constant": ("name=computed()", "name of mcp_tool.tool is ignored", 2),
    "its scopes": (
        "scopes=computed()",
        "its scopes are not literal strings; use strings, or a description",
        1,
    ),
    "wrong scopes": ("scopes=5", "scopes must be an array of at most", 1),
    "run": ("", "mcp_tool.run on line 13 names one of several marked functions; remove the call", 0),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_is_ambiguous_costs_no_other_function(tree: TreeBuilder, case: str) -> None:
    options, warning, kept = AMBIGUOUS[case]
    source = MATHS.replace('name="sub", scopes=["write"], title="Minus"', options)
    tree.write("tools/maths.py", source + "mcp_tool.run(add)\n" * (case == "run"))
    if case == "another file":
        tree.write("tools/other.sh", "#!/bin/sh\n", mode=0o755)
    found = discovered(tree)

    assert len([tool for tool in found.items if tool.relative_path == "maths.py"]) == kept
    assert any(warning in each for each in found.warnings), found.warnings


def test_a_registered_tool_is_the_function_of_its_name(tree: TreeBuilder) -> None:
    tree.write("tools/maths.py", MATHS)
    sub = READERS["tools"].read(tree.project, {"name": "sub", "path": "maths.py"}, [])
    assert sub.description.scopes == ["write"]

    with pytest.raises(ProjectError, match="has several functions; register one by its name"):
        READERS["tools"].read(tree.project, {"name": "maths", "path": "maths.py"}, [])


def test_a_file_has_so_many_functions_and_no_more(tree: TreeBuilder) -> None:
    many = "".join(f"@mcp_tool.tool\ndef f{n}(a: int): 0\n" for n in range(reading.MAX_FUNCTIONS + 1))
    tree.write("tools/maths.py", "import mcp_tool\n" + many)
    found = discovered(tree)

    assert len(found.items) == reading.MAX_FUNCTIONS
    assert "it marks more than 100 functions; move the others to another file" in found.warnings[0]
