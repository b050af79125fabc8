"""`mcp:` comments of several lines, in YAML, in the comments of any language."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcpgreen.catalog.descriptions import comments
from mcpgreen.catalog.descriptions.metadata import read_inline
from mcpgreen.catalog.tools import discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.errors import ProjectError
from tests.catalog.trees import TreeBuilder

SAID = {"description": "Add two numbers", "inputSchema": {"properties": {"a": {"type": "number"}}}}

LINE_COMMENT = """\
{0} mcp:
{0}   description: Add two numbers
{0}
{0}   inputSchema:
{0}     properties:
{0}       a: {{type: number}}
{0} Something else: not part of it.
"""


@pytest.mark.parametrize("marker", ["#", "//", "--", ";", "%", "##", ";;", "REM", " *", "\t#"])
def test_yaml_goes_on_in_the_comment_lines_that_are_indented(marker: str) -> None:
    assert read_inline("/p/a", LINE_COMMENT.format(marker).encode()) == SAID


YAML = """
  description: Add two numbers

  inputSchema:
    properties:
      a: {type: number}
"""


@pytest.mark.parametrize(
    "text",
    [
        f'#!/usr/bin/env python3\n"""mcp:{YAML}"""\nprint()\n',
        f"'''mcp:{YAML}'''\n",
        f'"""Adds.\n\nmcp:{YAML}\nNot part of it.\n"""\n',
        f'r"""\nmcp:{YAML.rstrip()} """\n',
        f"/* mcp:{YAML}*/\nint main() {{}}\n",
        f"/*\nmcp:{YAML}*/\n",
        "/** mcp:\n *   description: Add two numbers\n"
        " *   inputSchema:\n *     properties: {a: {type: number}}\n * Rest.\n */\n",
        "/**\n * mcp:\n *   description: Add two numbers\n *   inputSchema: {properties: {a: {type: number}}} */\n",
        f"--[[ mcp:{YAML}]]\n",
        f"--[[\nmcp:{YAML}]]\n",
        f"#!/usr/bin/env ruby\n=begin\nmcp:{YAML}=end\nputs 1\n",
        f"#!/usr/bin/perl\n=begin comment\n\nmcp:{YAML}\n=end comment\n\n=cut\n",
        f"=pod mcp:{YAML}=cut\n",
        f"<!-- mcp:{YAML}-->\n",
        f"{{- mcp:{YAML}-}}\n",
        f"(* mcp:{YAML}*)\n",
        f"<# mcp:{YAML}#>\n",
        LINE_COMMENT.format("#").replace("\n", "\r\n"),
        '#!/bin/sh\n# mcp:\n#   {"description": "Add two numbers",\n'
        '#    "inputSchema": {"properties": {"a": {"type": "number"}}}}\n',
    ],
)
def test_yaml_stands_in_the_comments_that_a_language_has(text: str) -> None:
    assert read_inline("/p/a", text.encode()) == SAID


@pytest.mark.parametrize(
    "text",
    [
        '"""Talks to servers.\n\nmcp:\nthe protocol\n"""\n',
        "mcp:\n  description: no comment\n",
        "x = 1\nmcp:\n  description: no comment\n",
        '"""A docstring."""\nmcp:\n  description: after it\n',
        "#!/bin/sh\n" + "#\n" * 9 + "# mcp:\n#   description: too late\n",
    ],
    ids=["headline", "first line", "code", "after a docstring", "eleventh line"],
)
def test_what_is_no_comment_or_says_nothing_is_no_yaml(text: str) -> None:
    assert read_inline("/p/a", text.encode()) is None


def test_one_line_of_json_is_followed_by_nothing() -> None:
    text = '# mcp: {"description": "one"}\n#   description: two\n'
    assert read_inline("/p/a", text.encode()) == {"description": "one"}


@pytest.mark.parametrize("text", ["# mcp:\nrun\n", "# mcp:\n# not indented: x\n", '"""mcp:\n"""\n'])
def test_mcp_with_nothing_below_it_says_what_is_missing(text: str) -> None:
    with pytest.raises(ProjectError, match="nothing is indented below mcp:"):
        read_inline("/p/a", text.encode())


def test_prose_may_have_a_headline_and_a_comment() -> None:
    assert read_inline("/p/a.md", b"# mcp:\n#   the protocol\n", is_prose=True) is None
    assert read_inline("/p/a.md", b"* mcp:\n  * one\n", is_prose=True) is None
    described = b"<!-- mcp:\n  description: Notes\n-->\n# Notes\n"
    assert read_inline("/p/a.md", described, is_prose=True) == {"description": "Notes"}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("#   description: [1", r"not valid YAML: .*line 4, column 1"),
        ("#   a: 1\n#    b: 2", r"not valid YAML: mapping values are not allowed .*line 4, column 7"),
        ("#\ttitle: x", r"not valid YAML: .*line 3, column 2"),
        ("#   just words", r"must be an object"),
        ("#   a: !!python/object/apply:os.getcwd []", r"not valid YAML: .*line 3, column 8"),
    ],
)
def test_what_cannot_be_read_names_the_line_and_column_of_the_script(lines: str, reason: str) -> None:
    with pytest.raises(ProjectError, match=reason):
        read_inline("/p/a", f"#!/bin/sh\n# mcp:\n{lines}\nrun\n".encode())


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))], "each alias"),
        (["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 17))], "merged"),
        (["a: " + "[" * 200], "nested deeper than 64 levels"),
        (["a: [" + "1," * 6000 + "1]"], "more than 5000 values"),
    ],
    ids=["aliases", "merges", "deep", "many"],
)
def test_yaml_in_a_comment_is_bounded(lines: list[str], reason: str) -> None:
    text = "# mcp:\n" + "".join(f"#   {line}\n" for line in lines)
    with pytest.raises(ProjectError, match=reason):
        read_inline("/p/a", text.encode())


def test_a_long_comment_is_read_and_one_that_is_cut_off_asks_for_a_file() -> None:
    row = b"#     " + b"x" * 100 + b"\n"
    text = b"# mcp:\n#   description: |\n" + row * 290
    assert 30_000 < len(text) < comments.HEAD_BYTES
    found = read_inline("/p/a", text)
    assert found is not None
    assert len(found["description"]) == 290 * 101
    with pytest.raises(ProjectError, match=r"use a \.meta\.json file"):
        read_inline("/p/a", (text + row * 100)[: comments.HEAD_BYTES])


def test_a_field_of_the_wrong_type_is_placed_in_the_script(tmp_path: Path) -> None:
    script = "#!/bin/sh\n# mcp:\n#   description: Waits\n#   timeoutSecs: soon\nexec sleep 1\n"
    deep = "#!/bin/sh\n# mcp:\n#   description: Waits\n#   inputSchema:\n#     required: x\nexec sleep 1\n"
    tree = TreeBuilder(tmp_path / "project")
    tree.write("tools/a.sh", script, mode=0o755)
    tree.write("tools/b.sh", deep, mode=0o755)
    found = discover_tools(tree.project, survey(tree.project, [tree.project.tools_dir]))

    assert [str(warning) for warning in found.warnings] == [
        'tools/a.sh: timeoutSecs must be a positive number, found "soon" (line 4, column 5); the tool is left out',
        'tools/b.sh: inputSchema.required must be an array of strings, found "x" (line 5, column 7); '
        "the tool is left out",
    ]


def test_yaml_is_imported_only_for_those_who_use_it() -> None:
    program = (
        "import sys\nfrom mcpgreen.catalog.descriptions.metadata import read_inline\n"
        "read_inline('/p/a', b'# mcp: {\"name\": \"a\"}\\n')\n"
        "print('yaml' in sys.modules)\n"
        "read_inline('/p/a', b'# mcp:\\n#   name: a\\n')\n"
        "print('yaml' in sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "True"]
