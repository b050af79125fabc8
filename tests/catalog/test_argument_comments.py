"""`@arg` comments of shell scripts: the schema that they give, and what is said of those that make no sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.descriptions.in_script import ScriptDescription, arguments_of, read_script, variable_of
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.tools import discover_tools
from mcpgreen.catalog.tree_scan import survey
from tests.catalog.trees import TreeBuilder


def told(*lines: str, path: str = "/p/tool.sh", first: str = "#!/usr/bin/env bash") -> ScriptDescription:
    found = read_script(path, "\n".join([first, *lines, "echo done", ""]).encode())
    assert found is not None
    return found


def properties(*lines: str) -> dict[str, Any]:
    found: dict[str, Any] = told(*lines).fields["inputSchema"]["properties"]
    return found


def test_comments_about_arguments_give_description_and_schema() -> None:
    fields, complaints, hints = told(
        "# Greet somebody.",
        "# @arg name!                   Who is greeted",
        "# @arg times=1 int             How often",
        "# @arg tone[warm|cool]=warm    In which tone",
        "# @arg dry-run bool            Only say what would be done",
    )

    assert fields == {
        "description": "Greet somebody.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Who is greeted"},
                "times": {"type": "integer", "description": "How often", "default": 1},
                "tone": {"type": "string", "description": "In which tone", "enum": ["warm", "cool"], "default": "warm"},
                "dry-run": {"type": "boolean", "description": "Only say what would be done"},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    }
    assert (complaints, hints) == ([], [])


@pytest.mark.parametrize(
    ("line", "schema"),
    [
        ("a", {"type": "string"}),
        ("a string", {"type": "string"}),
        ("a  Some text", {"type": "string", "description": "Some text"}),
        ("a stringent text", {"type": "string", "description": "stringent text"}),
        ("a int", {"type": "integer"}),
        ("a=-3 int", {"type": "integer", "default": -3}),
        ("a=1.50 number", {"type": "number", "default": 1.5}),
        ("a=true bool", {"type": "boolean", "default": True}),
        ("a=3 integer", {"type": "integer", "default": 3}),
        ("a[1|2]=2 integer", {"type": "integer", "enum": [1, 2], "default": 2}),
        ("a=false boolean", {"type": "boolean", "default": False}),
        ("a=", {"type": "string", "default": ""}),
        ("a=int", {"type": "string", "default": "int"}),
        ("a=two", {"type": "string", "default": "two"}),
        ('a="two words"  Text', {"type": "string", "default": "two words", "description": "Text"}),
        ("a='say \"hi\"'", {"type": "string", "default": 'say "hi"'}),
        ("a[1|2]=2 int", {"type": "integer", "enum": [1, 2], "default": 2}),
        ("a[one two | three]", {"type": "string", "enum": ["one two", "three"]}),
        ("a list", {"type": "array", "items": {"type": "string"}}),
        ("a=x,y list", {"type": "array", "items": {"type": "string"}, "default": ["x", "y"]}),
        ('a=["x,y"] list', {"type": "array", "items": {"type": "string"}, "default": ["x,y"]}),
        ("a[x|y]=x list", {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "default": ["x"]}),
        ("a json", {}),
        ("a='{\"k\": [1, null]}' json", {"default": {"k": [1, None]}}),
        ("a  Größe in €", {"type": "string", "description": "Größe in €"}),
    ],
)
def test_each_kind_of_argument_has_its_schema(line: str, schema: dict[str, Any]) -> None:
    assert properties(f"# @arg {line}") == {"a": schema}


def test_the_text_goes_on_in_deeper_lines() -> None:
    found = properties(
        "# @arg a int  One,", "#        and two.", "# @arg b", "#   Three.", "# Not part of it.", "#   Nor this."
    )
    assert {name: schema.get("description") for name, schema in found.items()} == {"a": "One, and two.", "b": "Three."}


@pytest.mark.parametrize(
    ("lines", "description"),
    [
        (["# One.", "#", "# Two.", "#   * three", "#", "# @arg a"], "One.\n\nTwo.\n  * three"),
        (["# Licence.", "", "# Says hello.", "# @arg a"], "Says hello."),
        (["# Licence.", "", "# Says hello.", "", "# @arg a"], "Says hello."),
        (["# shellcheck disable=SC2034", "# Says hello.", "# @author me", "# @arg a"], "Says hello."),
        (["# mcp:", "#   title: Hello", "# Says hello.", "# @arg a"], "Says hello."),
        (["# Says hello.", '# mcp: {"title": "Hello"}', "# @arg a"], "Says hello."),
        (["# A remark.", '# mcp: {"description": "Says hello."}', "# @arg a"], "Says hello."),
        (["# @arg a", "# Below is nothing."], None),
    ],
)
def test_the_comment_above_describes_the_tool(lines: list[str], description: str | None) -> None:
    assert told(*lines).fields.get("description") == description


def test_an_mcp_comment_adds_the_rest_also_after_many_arguments() -> None:
    many = [f"# @arg a{number}  One of many" for number in range(20)]
    fields = told("# Says hello.", *many, "#", "# mcp:", "#   title: Hello", "#   timeoutSecs: 5").fields
    assert len(fields["inputSchema"]["properties"]) == 20
    assert (fields["title"], fields["timeoutSecs"]) == ("Hello", 5)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["# @arg"], "@arg has no valid name (line 2, column 3)"),
        (["#", "#   @arg 1st  One"], "@arg has no valid name (line 3, column 5)"),
        (["# @arg a[x"], "@arg a[x is not understood (line 2, column 3)"),
        (["# @arg a?  One"], "@arg a? is not understood (line 2, column 3)"),
        (['# @arg a="x  One'], '@arg a="x is not understood (line 2, column 3)'),
        (["# @arg a=x int"], "@arg a has a default that is not of type int; it is ignored (line 2, column 3)"),
        (["# @arg a= int  One"], "@arg a has a default that is not of type int; it is ignored (line 2, column 3)"),
        (["# @arg a=yes bool"], "@arg a has a default that is not of type bool; it is ignored (line 2, column 3)"),
        (
            ["# @arg a=1e999 number"],
            "@arg a has a default that is not of type number; it is ignored (line 2, column 3)",
        ),
        (["# @arg a={ json"], "@arg a has a default that is not of type json; it is ignored (line 2, column 3)"),
        (["# @arg a=[1] list"], "@arg a has a default that is not of type list; it is ignored (line 2, column 3)"),
        (["# @arg a[x|y]=z"], "@arg a has a default that is not one of its choices; it is ignored (line 2, column 3)"),
        (["# @arg a[x|y] int"], "@arg a has choices that are not of type int; they are ignored (line 2, column 3)"),
        (["# @arg a[x|y] bool"], "@arg a has choices that are not of type bool; they are ignored (line 2, column 3)"),
        (["# @arg a!=x"], "@arg a is required, so its default is left out (line 2, column 3)"),
        (
            ["# @arg a integr  How many"],
            "@arg a is read as a string, because integr is not a type; write int (line 2, column 3)",
        ),
        (
            ["# @arg a=5 nubmer Count"],
            "@arg a is read as a string, because nubmer is not a type; write number (line 2, column 3)",
        ),
        (
            ["# @arg a[1|2]=1 integr"],
            "@arg a is read as a string, because integr is not a type; write int (line 2, column 3)",
        ),
        (
            ["# @arg a strng"],
            "@arg a is read as a string, because strng is not a type; write string (line 2, column 3)",
        ),
        (
            ["# @arg a!\tdate  When"],
            "@arg a is read as a string, because date is not a type; use string, int, number, bool, list, json "
            "(line 2, column 3)",
        ),
        (
            ["# @arg a Integer  One"],
            "@arg a is read as a string, because Integer is not a type; write int (line 2, column 3)",
        ),
        *(
            (
                [f"# @arg a {row}"],
                f"@arg a is read as a string, because {row.split()[0]} is not a type; {remedy} (line 2, column 3)",
            )
            for row, remedy in (
                ("number[]  Some", "write json"),
                ("array<int> Some", "write json"),
                ("list[str] Some", "write list"),
                ("string[]", "write list"),
                ("enum(a,b) One of them", "write a[a|b]"),
                ("int=5  How many", "write a=5 int"),
                ("Integer=5", "write a=5 int"),
                ("string|null Some", "write string"),
            )
        ),
        (["# @arg a", "# @arg a int"], "@arg a appears twice, and only the first one is used (line 3, column 3)"),
        (
            ["# @arg dry-run", "# @arg dry_run"],
            "@arg dry_run sets the same variable as dry-run, and only the first one is used (line 3, column 3)",
        ),
        (
            ["# @arg a", '# mcp: {"inputSchema": {}}'],
            "inputSchema is ignored: the @arg comments define the arguments",
        ),
    ],
)
def test_what_makes_no_sense_is_told_with_its_place(lines: list[str], complaint: str) -> None:
    assert told(*lines).complaints == [complaint]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/p/tool.py", "#!/usr/bin/env python3\n# @arg a\n"),
        ("/p/tool.rb", "# @arg a\n"),
        ("/p/tool.sh", "#!/usr/bin/env node\n# @arg a\n"),
        ("/p/tool.sh", "#!/bin/sh\necho\n# @arg a\n"),
        ("/p/tool.sh", "#!/bin/sh\n# @argument a\n"),
        ("/p/tool.sh", "#!/bin/sh\n# @arg $1 string  A value\n"),
        ("/p/tool.sh", "#!/bin/sh\n# see @arg a\n"),
    ],
    ids=["python", "unknown language", "node", "after code", "other word", "shdoc", "in a sentence"],
)
def test_arguments_are_read_in_leading_comments_of_shell_scripts_only(path: str, text: str) -> None:
    assert read_script(path, text.encode()) is None


@pytest.mark.parametrize("first", ["#!/bin/sh", "#!/usr/bin/env bash", "#!/bin/dash", "#!/usr/bin/env -S zsh -f", ""])
def test_the_first_line_then_the_suffix_tells_a_shell(first: str) -> None:
    assert told("# @arg a", first=first).fields["inputSchema"]["properties"] == {"a": {"type": "string"}}


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        *((name, name) for name in ("name", "path", "Path", "mcp", "home", "proxy", "arg_x")),
        ("dry-run", "dry_run"),
        *(
            (name, f"arg_{name}")
            for name in ("PATH", "IFS", "BASH_ENV", "LD_PRELOAD", "MCP_SDK", "X", "_", "_x", "http_proxy", "histchars")
        ),
    ],
)
def test_a_variable_that_means_something_to_the_shell_gets_a_prefix(name: str, variable: str) -> None:
    assert variable_of(name) == variable


def test_the_prefix_is_told_as_a_hint() -> None:
    assert told("# @arg PATH  Where").hints == [
        "@arg PATH sets arg_PATH, because the shell may use PATH itself (line 2, column 3)"
    ]


def discovered(tree: TreeBuilder) -> Discovery:
    return discover_tools(tree.project, survey(tree.project, [tree.project.tools_dir]))


def test_a_script_with_arguments_is_a_tool_without_the_bit(tmp_path: Path) -> None:
    tree = TreeBuilder(tmp_path / "project")
    tree.write("tools/greet.sh", "# Says hello.\n# @arg name!\n# @arg x=y int\necho hi\n")

    found = discovered(tree)

    (tool,) = found.items
    assert tool.definition["inputSchema"]["required"] == ["name"]
    assert found.warnings == [
        "tools/greet.sh: @arg x has a default that is not of type int; it is ignored (line 3, column 3)"
    ]


@pytest.mark.parametrize(
    ("row", "schema"),
    [
        ("count integer How many", {"type": "integer", "description": "How many"}),
        ("loud boolean  Loud?", {"type": "boolean", "description": "Loud?"}),
    ],
)
def test_the_words_of_json_schema_are_types_as_well(row: str, schema: dict[str, object]) -> None:
    found = arguments_of("greet.sh", f"#!/bin/bash\n# @arg {row}\n".encode())

    assert found is not None
    assert (list(found.schema["properties"].values()), found.complaints) == ([schema], [])


@pytest.mark.parametrize("text", ["number(s) of items", "text, or none", "list (a, b)", "x=5 int"])
def test_what_only_looks_like_a_type_is_text(text: str) -> None:
    found = arguments_of("greet.sh", f"#!/bin/bash\n# @arg a  {text}\n".encode())

    assert found is not None
    assert found.complaints == []


def test_a_type_of_another_language_is_complained_of_also_close_to_the_text() -> None:
    found = arguments_of("greet.sh", b"#!/bin/bash\n# @arg share float How much\n")

    assert found is not None
    assert found.complaints == [
        "@arg share is read as a string, because float is not a type; write number (line 2, column 3)"
    ]
