"""The small jq: filters from a table, compared with jq itself where it is there; options and exit statuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.sdk.json_tool.functions import OF_FILTERS, OF_VALUES
from tests.support.project import ProjectBuilder
from tests.support.wire import Wire, text_of

from .conftest import OWN_TOOL
from .filters import DOCUMENT, FAILURES, ROWS

Ended = subprocess.CompletedProcess[str]


def run(*arguments: str, given: str = DOCUMENT, tool: str = str(OWN_TOOL), **env: str) -> Ended:
    return subprocess.run(
        [tool, *arguments],
        input=given,
        capture_output=True,
        encoding="utf-8",
        env={"PATH": os.environ["PATH"], "LANG": "C", "MCPGREEN_PYTHON": sys.executable, **env},
        timeout=20,
    )


@pytest.mark.parametrize(("text", "lines"), ROWS, ids=[text for text, _ in ROWS])
def test_a_filter_prints_what_jq_prints(text: str, lines: list[str]) -> None:
    ended = run("-c", text)
    assert (ended.returncode, ended.stdout.splitlines(), ended.stderr) == (0, lines, "")


@pytest.mark.parametrize(("text", "status"), FAILURES, ids=[text for text, _ in FAILURES])
def test_a_filter_that_fails_says_so_in_a_line(text: str, status: int) -> None:
    ended = run("-c", text)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert re.fullmatch(r"json-tool: .+\n", ended.stderr)


def test_the_table_is_what_jq_says() -> None:
    jq = shutil.which("jq")
    if jq is None:
        pytest.skip("jq is not on PATH")
    different = [text for text, lines in ROWS if run("-c", text, tool=jq).stdout.splitlines() != lines]
    # Versions of jq differ among themselves in a few corners. The table is that of 1.6.
    allowed = 0 if "1.6" in run("--version", tool=jq).stdout else len(ROWS) // 20
    assert len(different) <= allowed, different


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("input_line_number", "the function input_line_number with 0 arguments"),
        (".a | frobnicate(1; 2)", "the function frobnicate with 2 arguments"),
        ("map(.x; .y)", "the function map with 2 arguments"),
        ("$nowhere", "the variable $nowhere"),
        ("@base32", "the format @base32"),
        ("break $out", "the label $out"),
        ("label $out | def f: break $in; f", "the label $in"),
        ("{a:", "the end"),
        ('"never ends', "a string does not end"),
        ('"\\q"', "\\q is no escape"),
        (". as [$a] | $b", "the variable $b"),
        ("if . then 1", "the end"),
        ("~", "'~'"),
    ],
)
def test_what_is_not_known_is_named(text: str, named: str) -> None:
    ended = run(text)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert named in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "given", "printed"),
    [
        (("-r", ".[]"), '["a\\"b",1,[2]]', 'a"b\n1\n[\n  2\n]\n'),
        (("-rc", ".[]"), '["x",[2]]', "x\n[2]\n"),
        (("-j", ".[]"), '["a","b",1]', "ab1"),
        (("-S", "-c", "."), '{"b":1,"a":{"d":1,"c":2}}', '{"a":{"c":2,"d":1},"b":1}\n'),
        (("-a", "."), '"ü🎈"', '"\\u00fc\\ud83c\\udf88"\n'),
        (("--tab", "."), "[1]", "[\n\t1\n]\n"),
        (("--indent", "1", "."), "[1]", "[\n 1\n]\n"),
        (("--indent", "0", "."), "[1]", "[1]\n"),
        (("-n", "1"), "not JSON", "1\n"),
        (("-c", "."), "1 [2]\n{} ", "1\n[2]\n{}\n"),
        (("-cn", "[inputs]"), "1 2", "[1,2]\n"),
        (("-c", "[., input]"), "1 2 3 4", "[1,2]\n[3,4]\n"),
        (("-cn", "[limit(2; inputs)], input"), "1 2 3", "[1,2]\n3\n"),
        (("-cs", "."), "1 2", "[1,2]\n"),
        (("-cs", "."), "", "[]\n"),
        (("-R", "."), "a\nb\r\nc", '"a"\n"b\\r"\n"c"\n'),
        (("-Rs", "."), "a\nb\n", '"a\\nb\\n"\n'),
        (("-Rr", "--unbuffered", "fromjson.a"), '{"a":1}\n{"a":2}\n', "1\n2\n"),
        (("-Rn", "[inputs] | length"), "a\nb\n", "2\n"),
        (("-nc", "--arg", "x", "1", "--argjson", "y", '{"z":2}', "[$x, $y, $ARGS.named.x]"), "", '["1",{"z":2},"1"]\n'),
        (("-nc", "$ARGS.positional", "--args", "a", "b"), "", '["a","b"]\n'),
        (("-nc", "--jsonargs", "$ARGS.positional", "1", "{}"), "", "[1,{}]\n"),
        (("-nc", "--args", "$ARGS.positional", "--", "a", "--b", "--", "-c"), "", '["a","--b","--","-c"]\n'),
        (("-nc", "--args", "--", "$ARGS.positional", "a", "--b"), "", '["a","--b"]\n'),
        (("-nc", "--jsonargs", "$ARGS.positional", "1", "--", "-2"), "", "[1,-2]\n"),
        (("--version",), "", "jq-1.6 (json-tool of mcpgreen)\n"),
        (("-V",), "", "jq-1.6 (json-tool of mcpgreen)\n"),
        (("1, halt, 2",), "1 2", "1\n"),
        (("-n", "-(1)"), "", "-1\n"),
        (("--raw-output", "--compact-output", "."), '"x"', "x\n"),
        (("-c", "."), "\ufeff[1]", "[1]\n"),
        (("-c", "."), '"\\ud800x"', '"\ufffdx"\n'),
        (
            ("-c", "."),
            "[1.0, 1e3, 12345678901234567890, 1e1000]",
            "[1,1000,12345678901234567890,1.7976931348623157e+308]\n",
        ),
        (("-rn", "$ENV.MINE, env.MINE"), "", "yes\nyes\n"),
        (("",), "[]", "[]\n"),
    ],
)
def test_options_mean_what_they_mean_to_jq(arguments: tuple[str, ...], given: str, printed: str) -> None:
    ended = run(*arguments, given=given, MINE="yes")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, printed, "")


def test_files_are_read_as_programs_values_and_inputs(tmp_path: Path) -> None:
    (tmp_path / "p.jq").write_text("# a remark\ndef f: . + 1;\n[.[] | f, $raw, $slurped]\n", encoding="utf-8")
    (tmp_path / "one.json").write_text("[1]", encoding="utf-8")
    (tmp_path / "two.json").write_text("[2]", encoding="utf-8")
    names = [str(tmp_path / name) for name in ("one.json", "two.json")]
    ended = run(
        "-c", "-f", str(tmp_path / "p.jq"), "--rawfile", "raw", names[0], "--slurpfile", "slurped", names[1], *names
    )
    assert ended.stdout == '[2,"[1]",[[2]]]\n[3,"[1]",[[2]]]\n'


@pytest.mark.parametrize(
    ("arguments", "given", "status", "printed"),
    [
        (("-e", "."), "null", 1, "null\n"),
        (("-e", "."), "false", 1, "false\n"),
        (("-e", "."), "0", 0, "0\n"),
        (("-e", "."), "1 null", 1, "1\nnull\n"),
        (("-e", "empty"), "1", 4, ""),
        (("-e", ".a"), "1", 5, ""),
        ((".a",), '1 {"a":2}', 5, "2\n"),
        (("-c", "."), "1 [", 5, "1\n"),
        (("-c", "."), "NaN", 5, ""),
        (("-e", "."), "{", 5, ""),
        ((".", "--", "-c"), "1", 2, ""),
        (("1, halt_error, 2",), '"bye"', 5, "1\n"),
        (("try halt_error(3) catch 1",), '"bye"', 3, ""),
        (('halt_error("x")',), "1", 5, ""),
        (("--argjson", "x", "{x", "."), "1", 2, ""),
        (("--arg", "x"), "1", 2, ""),
        (("-z", "."), "1", 2, ""),
        (("--stream", "."), "1", 2, ""),
        (("--indent", "x", "."), "1", 2, ""),
        ((), "1", 2, ""),
        ((".", "/nonexistent.json"), "1", 2, ""),
        (("-f", "/nonexistent.jq"), "1", 2, ""),
        ((".",), "[" * 100_000, 5, ""),
        (("def f: f + 1; f",), "1", 5, ""),
        (("error(null)",), "1", 5, ""),
        (('error({"a":1})',), "1", 5, ""),
    ],
)
def test_exit_statuses_tell_what_happened(arguments: tuple[str, ...], given: str, status: int, printed: str) -> None:
    ended = run(*arguments, given=given)
    assert (ended.returncode, ended.stdout) == (status, printed)
    assert "Traceback" not in ended.stderr
    assert bool(ended.stderr) == (status not in (0, 1, 4))


@pytest.mark.parametrize(
    ("given", "told"), [('"two\\nlines"', "two\nlines"), ('{"a":[1]}', '{"a":[1]}\n'), ("null", "")]
)
def test_halting_tells_the_reason_as_it_is(given: str, told: str) -> None:
    assert run("halt_error", given=given).stderr == told


ODD = ("null", "true", "-1.5", '"x"', '[1,"a"]', '{"start":"x"}', '["a",0]', "nan", "infinite")


@pytest.mark.parametrize("call", sorted({*OF_VALUES, *OF_FILTERS} - {"debug/0", "input/0", "halt/0", "halt_error/1"}))
def test_a_function_takes_whatever_value_it_gets(call: str) -> None:
    """It answers or fails as a filter does, in one run for all values."""
    name, _, count = call.partition("/")
    arguments = [f"({'; '.join([value] * int(count))})" if int(count) else "" for value in ODD]
    tried = ", ".join(
        f"({value} | try first({name}{given}) catch 1)" for value in ODD for given in dict.fromkeys(arguments)
    )
    ended = run("-nc", f"[{tried}] | length")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_reader_that_leaves_is_no_reason_to_complain() -> None:
    script = f'"{OWN_TOOL}" -n "range(1000000)" | head -n 1'
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=20)
    assert (ended.stdout, ended.stderr) == ("0\n", "")


def test_lines_are_answered_one_by_one() -> None:
    """A script that reports its progress is not kept waiting for the end of its output."""
    command = [str(OWN_TOOL), "-Rr", "--unbuffered", '.+ "!"']
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as child:
        assert child.stdin and child.stdout
        for word in ("a", "b"):
            child.stdin.write(word + "\n")
            child.stdin.flush()
            assert child.stdout.readline() == word + "!\n"
        child.stdin.close()


def test_tools_read_json_on_a_host_without_jq(
    project: ProjectBuilder, start: Callable[..., Wire], path_without_jq: str
) -> None:
    script = """source "${MCP_SDK:?}/tool-sdk.sh"
      name=$(mcp_args_require .name)
      mcp_result_success "$("$MCPBASH_JSON_TOOL_BIN" -nc --arg name "$name" --arg mode "$MCPBASH_MODE" \
        --arg tool "$MCPBASH_JSON_TOOL" '{$name, $mode, $tool}')" """
    project.tool("greet", script)
    client = start(env={"PATH": path_without_jq})
    client.handshake()
    result: Any = client.call_tool("greet", {"name": "Ada"})
    expected = {"name": "Ada", "mode": "full", "tool": "jq"}
    assert json.loads(text_of(result)) == {"success": True, "result": expected}
