"""Function tools among the other files of a project: which are tools, how they are run, and who has the last word."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.functions import expressions, reading, syntax
from mcpgreen.catalog.tools import Tool
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


@pytest.fixture
def tree(tmp_path: Path) -> TreeBuilder:
    return TreeBuilder(tmp_path / "project")


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

    reason = "the parameter times takes anything: the type Times is not known here"
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


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is parsed in a test."""
    sources: list[bytes] = []
    compiled = syntax._compiled

    def recorded(source: bytes, mode: str) -> ast.AST:
        sources.append(source)
        return compiled(source, mode)

    monkeypatch.setattr(syntax, "_compiled", recorded)
    monkeypatch.setattr(reading, "FEW", 0)
    monkeypatch.setattr(reading, "_known", reading.Known())
    monkeypatch.setattr(expressions, "_kept", {})
    return sources


def test_only_the_head_of_a_function_is_parsed(tree: TreeBuilder, parsed: list[bytes]) -> None:
    """Whole files are not parsed for their signatures: that would take four times as long as the same in JSON."""
    body = "\n".join(f"    value = [str(number) for number in range({n}) if number % 3]" for n in range(20))
    helper = "def helper(text: str) -> str:\n    return text\n\n\n@mcp_tool"
    source = GREET.replace("    return", f"{body}\n    return").replace("@mcp_tool", helper)
    tree.write("tools/greet.py", ENV + source, mode=0o755)

    assert only_tool(tree).definition["inputSchema"] == FIELDS["inputSchema"]
    assert sorted(parsed) == [b"1", b"int", b"list[str]", b"mcp_tool.tool(read_only=True)", b"str"]


def test_patterns_for_many_tools_are_not_compiled_for_a_few(tree: TreeBuilder, parsed: list[bytes]) -> None:
    """They would take longer than the trees of all functions that most projects have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "FEW", 2)
        for number in range(4):
            tree.write(f"tools/greet{number}.py", f"{ENV}# {number}\n{GREET}", mode=0o755)
        assert len(discovered(tree).items) == 4

    assert [b"def greet" in source for source in parsed[:3]] == [True, True, False]


def test_a_type_that_is_written_in_the_same_way_is_parsed_once_for_all_files(
    tree: TreeBuilder, parsed: list[bytes]
) -> None:
    """Trees of whole heads took a third of the time in which 1,000 tools are read for the first time."""
    for number in range(20):
        source = GREET.replace("greet", f"greet{number}").replace("somebody", f"number {number}")
        tree.write(f"tools/greet{number}.py", f"{ENV}# {number}\n{source}", mode=0o755)

    descriptions = {tool.definition["description"] for tool in discovered(tree).items}
    assert descriptions == {f"Greet number {number}." for number in range(20)}
    assert len(parsed) == 5


def test_a_file_that_has_not_changed_is_not_read_again(tree: TreeBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []
    read = reading._read

    def recorded(source: bytes, *, is_one_of_many: bool) -> reading.FunctionTool | None:
        looked_at.append(source)
        return read(source, is_one_of_many=is_one_of_many)

    monkeypatch.setattr(reading, "_read", recorded)
    monkeypatch.setattr(reading, "_known", reading.Known())
    tree.write("tools/greet.py", ENV + GREET, mode=0o755)
    tree.write("tools/hello.py", ENV + GREET.replace("greet", "hello"), mode=0o755)
    first = discovered(tree).items
    assert discovered(tree).items == first
    assert len(looked_at) == 2

    tree.write("tools/hello.py", ENV + GREET.replace("greet", "welcome"), mode=0o755)
    assert len(discovered(tree).items) == 2
    assert len(looked_at) == 3

    monkeypatch.setattr(reading, "MAX_KNOWN_BYTES", len(ENV + GREET))  # room for one of them
    assert len(discovered(tree).items) == 2
    assert len(looked_at) == 3
    tree.write("tools/hello.py", ENV + GREET.replace("greet", "hi"), mode=0o755)
    assert len(discovered(tree).items) == 2
    assert len(discovered(tree).items) == 2
    assert len(looked_at) == 6


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
    "of two functions": GREET.replace("read_only=True", "scopes=['a']") + "@mcp_tool.tool\ndef other(): 0\n",
    "for a newer Python": GREET.replace("read_only=True", "scopes=['a']") + "match = :=\n",
    "too long": GREET.replace("read_only=True", "scopes=['a']") + "x = 1\n" * 50_000,
}


@pytest.mark.parametrize("source", UNREADABLE.values(), ids=UNREADABLE)
def test_a_tool_whose_scopes_cannot_be_read_is_served_to_nobody(tree: TreeBuilder, source: str) -> None:
    """Else a typing error would open it for everybody."""
    tree.write("tools/greet.py", ENV + source, mode=0o755)
    found = discovered(tree)

    assert found.items == []
    assert any("scopes" in warning for warning in found.warnings)


def test_a_tool_that_says_that_it_needs_no_scopes_needs_none(tree: TreeBuilder) -> None:
    tree.write("tools/greet.py", ENV + GREET.replace("read_only=True", "scopes=None"), mode=0o755)

    assert only_tool(tree).description.scopes == ()
