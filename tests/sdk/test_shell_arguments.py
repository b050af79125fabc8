"""`mcp_args_parse`: the arguments that the `@arg` comments of a script declare, as variables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpgreen.catalog.descriptions.in_script import read_script, variable_of

from .conftest import Bench, Run
from .test_shell_sdk import UGLY

COMMENTS = """\
# Greets somebody.
# @arg name!                 Who is greeted
# @arg times=1 int           How often
# @arg share number          How much
# @arg tone[warm|cool]=warm  In which tone
# @arg dry-run bool          Whether nothing is done
# @arg tags list             Words
# @arg filter json           Anything
# @arg note="two words"      A text
"""
NAMES = ("name", "times", "share", "tone", "dry_run", "filter", "note")


def parsed(bench: Bench, arguments: Any, *, comments: str = COMMENTS, names: tuple[str, ...] = NAMES) -> list[str]:
    """The values of the variables, then the elements of the list."""
    shown = " ".join(f'"${name}"' for name in names)
    body = f"mcp_args_parse\nprintf '%s\\0' {shown} ${{tags[@]+\"${{tags[@]}}\"}}"
    run = bench.shell(body, arguments, comments=comments)
    assert (run.exit_code, run.stderr) == (0, ""), run.stdout
    return run.stdout.split("\0")[:-1]


def test_each_declared_argument_is_a_variable(each: Bench) -> None:
    arguments = {
        "name": UGLY,
        "times": 3,
        "share": 0.25,
        "tone": "cool",
        "dry-run": True,
        "filter": {"a": [1, None, "it's"]},
        "note": "",
        "tags": ["a b", "", "it's\n", "*"],
    }
    assert parsed(each, arguments) == [
        UGLY,
        "3",
        "0.25",
        "cool",
        "true",
        '{"a":[1,null,"it\'s"]}',
        "",
        *("a b", "", "it's\n", "*"),
    ]


def test_what_is_absent_is_empty_or_has_its_default(each: Bench) -> None:
    expected = ["Ada", "1", "", "warm", "", "", "two words"]
    assert parsed(each, {"name": "Ada"}) == expected
    absent = {"name": "Ada", "times": None, "share": None, "dry-run": None, "tags": None, "note": None}
    assert parsed(each, absent) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "$(touch x)", "`touch x`", "a'b\"c\\", "\n\n", "trailing\n", "-n", "null", "true", "1.0", "%s"),
        *("ü€\U0001f600", "\\u0041", "a\tb\r", "'; touch x; '", "x" * 200_000),
    ],
)
def test_texts_arrive_as_they_are(full: Bench, text: str) -> None:
    arguments = json.dumps({"name": text})
    (full.directory / "args.json").write_text(arguments, encoding="utf-8")
    is_long = len(text) > 1000
    if is_long:
        full.env["MCP_TOOL_ARGS_FILE"] = str(full.directory / "args.json")
    assert parsed(full, {} if is_long else {"name": text}, names=("name",)) == [text]
    assert not (full.directory / "x").exists()


@pytest.mark.parametrize(
    "written",
    [
        "0",
        "-1",
        "1.0",
        "1.50",
        "1e3",
        "1E-7",
        "12345678901234567890",
        "100000000000000000000000",
        "0.1000000000000000055",
    ],
)
def test_numbers_arrive_as_they_are_written(each: Bench, written: str) -> None:
    arguments = f'{{"name": "\\"share\\": 5", "times": {written}, "share" : {written}}}'
    run = each.shell('mcp_args_parse; echo "$times $share"', comments=COMMENTS, MCP_TOOL_ARGS_JSON=arguments)
    assert run.stdout == f"{written} {written}\n"


def test_a_required_argument_that_is_missing_ends_the_tool(full: Bench) -> None:
    run = full.shell("mcp_args_parse; echo went on", {"times": 1}, comments=COMMENTS)
    assert (run.exit_code, run.error["code"], run.error["message"]) == (1, -32602, "name is required")
    assert "went on" not in run.stdout


def test_a_character_that_no_variable_can_hold_is_refused(each: Bench) -> None:
    run = each.shell("mcp_args_parse; echo went on", {"name": "a\0b"}, comments=COMMENTS)
    assert run.error["message"] == "name has a character that a variable cannot contain: U+0000"
    assert "went on" not in run.stdout


@pytest.mark.parametrize("arguments", ["[1]", "{", "5"])
def test_arguments_that_are_no_object_are_refused(full: Bench, arguments: str) -> None:
    run = full.shell("mcp_args_parse", comments=COMMENTS, MCP_TOOL_ARGS_JSON=arguments)
    assert (run.exit_code, run.error["code"]) == (1, -32602)


def test_without_a_json_tool_the_tool_says_so(minimal: Bench) -> None:
    run = minimal.shell("mcp_args_parse", {"name": "x"}, comments=COMMENTS)
    assert run.error["message"] == "mcp_args_parse requires JSON tooling"


def test_names_that_steer_the_shell_get_a_prefix(full: Bench) -> None:
    names = ("PATH", "IFS", "BASH_ENV", "MCP_SDK", "LD_PRELOAD", "_", "http_proxy", "HOME", "UID")
    comments = "".join(f"# @arg {name}\n" for name in names)
    shown = " ".join(f'"$arg_{name}"' for name in names)
    run = full.shell(f"mcp_args_parse; echo {shown}; echo $UID | cat", dict.fromkeys(names, "bad"), comments=comments)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines()[0].split() == ["bad"] * len(names)
    assert "bad" not in run.stdout.splitlines()[1]


def test_no_value_is_shown_where_the_script_traces_itself(full: Bench) -> None:
    run = full.shell(
        "set -x; mcp_args_parse; { set +x; } 2>/dev/null; echo $name", {"name": "s3cret"}, comments=COMMENTS
    )
    assert run.stdout == "s3cret\n"
    assert "s3cret" not in run.stderr


def test_local_variables_of_a_function_stay_local(full: Bench) -> None:
    body = 'main() { local name; mcp_args_parse; echo "$name"; }; main; echo "${name-unset}"'
    assert full.shell(body, {"name": "Ada"}, comments=COMMENTS).stdout == "Ada\nunset\n"


# Lines that the server and the SDK have to understand alike, or both not.
LINES = [
    *(
        "a",
        "a!",
        "a!  Text",
        "a=1 int",
        "a=x",
        "a='x y'  T",
        'a="x y"  T',
        "a[x|y]=x  T",
        "a[x|y]!  T",
        "a= list",
        "a=,",
    ),
    *(
        "a stringent",
        "a string",
        "a bool",
        "a?",
        "1a",
        "a[x",
        'a="x',
        "a='x'y",
        "a=x'y",
        "$1 string",
        "",
        "a-b",
        "A",
        "a_",
    ),
    *("a json", "a list  of things", "a\tint\tT", "a" * 64, "a" * 65, 'a="x\'y"', "ä", "aä", "a ä", "a=ä", "a number"),
]


@pytest.mark.parametrize("line", LINES)
def test_server_and_script_understand_the_same(full: Bench, line: str) -> None:
    comments = f"# @arg {line}\n# @arg last=x\n"
    told = read_script("/p/tool.sh", comments.encode())
    assert told is not None
    schema = told.fields["inputSchema"]["properties"]
    required = told.fields["inputSchema"].get("required", [])
    arguments = dict.fromkeys(required, "x")
    run: Run = full.shell("mcp_args_parse; compgen -v", arguments, comments=comments)
    before: Run = full.shell("mcp_args_parse; compgen -v", comments="# @arg last=x\n")
    assert run.exit_code == 0, run.stdout
    new = set(run.stdout.split()) - set(before.stdout.split())
    assert new == {variable_of(name) for name in schema if name != "last"}
    for name, about in schema.items():
        if isinstance(about.get("default"), (str, int)):
            shown = full.shell(f'mcp_args_parse; printf %s "${variable_of(name)}"', arguments, comments=comments)
            assert shown.stdout == str(about["default"])
