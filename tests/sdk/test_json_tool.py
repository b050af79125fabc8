"""The jq that stands in: filters from a table, options, exit statuses, and what it says where it cannot work."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.sdk import json_tool
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Wire, text_of

from .conftest import OWN_TOOL

DOCUMENT = (
    '{"a":1,"b":[1,2,{"c":"x"}],"n":null,"t":true,"f":false,"s":"'
    'Hello Wörld","e":[],"o":{"z":1,"y":{"x":[true]}},"k v":3}'
)
# What filters mean is the business of the package; these are here for what is put around them.
ROWS: list[tuple[str, list[str]]] = [
    (".", [DOCUMENT]),
    ('{a, b: .b[0], "c": 1, (.s): 2, "k v"}', ['{"a":1,"b":1,"c":1,"Hello Wörld":2,"k v":3}']),
    ('"nested \\("in \\(.a + 1)")"', ['"nested in 2"']),
    ('"\\u00e9\\n\\t\\"\\\\\\/ \\ud83c\\udf88"', ['"é\\n\\t\\"\\\\/ 🎈"']),
    ("1, 1.5, -3, 1e3, .5", ["1", "1.5", "-3", "1E+3", "0.5"]),
    ("3.0, 3.5 + .5", ["3.0", "4"]),
    ("empty", []),
    ("$ENV.NOPE, env.NOPE", ["null", "null"]),
    ('[.b[] | if type == "object" then .c else . end] # a comment', ['[1,2,"x"]']),
    ("infinite | tostring", ['"1.7976931348623157e+308"']),
    ("[nan] | tojson", ['"[null]"']),
]
# Filters that fail while they run (5), and texts that are no filters (3).
FAILURES: list[tuple[str, int]] = [
    ('error("boom")', 5),
    (".a.b", 5),
    ("1 | keys", 5),
    ('"x" | tonumber', 5),
    ("{a:1", 3),
]
Ended = subprocess.CompletedProcess[str]
JSON_ON_LINES = """{
  "a": [
    1,
    {},
    []
  ],
  "b": {
    "c": "[,]"
  }
}
"""
ENV = {"PATH": os.environ["PATH"], "LANG": "C", "MCPGREEN_PYTHON": sys.executable}


def run(*arguments: str, given: str = DOCUMENT, tool: str = str(OWN_TOOL), **env: str) -> Ended:
    return completed([tool, *arguments], input=given, env={**ENV, **env})


@pytest.fixture
def filtered(tmp_path: Path) -> Callable[[str], tuple[int, list[str]]]:
    """Status and output of a filter, without a process for each."""
    document = tmp_path / "document.json"
    document.write_text(DOCUMENT, encoding="utf-8")

    def run_here(text: str) -> tuple[int, list[str]]:
        out = io.BytesIO()
        status = json_tool.run(["-c", text, str(document)], out)
        return status, out.getvalue().decode().splitlines()

    return run_here


@pytest.mark.parametrize(("text", "lines"), ROWS, ids=[text for text, _ in ROWS])
def test_a_filter_prints_what_jq_prints(
    text: str,
    lines: list[str],
    filtered: Callable[[str], tuple[int, list[str]]],
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert (*filtered(text), capfd.readouterr().err) == (0, lines, "")


@pytest.mark.parametrize(("text", "status"), FAILURES, ids=[text for text, _ in FAILURES])
def test_a_filter_that_fails_says_so(
    text: str, status: int, filtered: Callable[[str], tuple[int, list[str]]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert filtered(text) == (status, [])
    assert capfd.readouterr().err.startswith("jq: error")


def test_the_table_is_what_jq_says() -> None:
    jq = shutil.which("jq")
    if jq is None:
        pytest.skip("jq is not on PATH")
    different = [text for text, lines in ROWS if run("-c", text, tool=jq).stdout.splitlines() != lines]
    # Versions of jq differ among themselves in a few corners. The table is that of 1.8.
    allowed = 0 if "1.8" in run("--version", tool=jq).stdout else 5
    assert len(different) <= allowed, different


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (".a | frobnicate(1; 2)", "frobnicate/2 is not defined at <top-level>, line 1"),
        ("$nowhere", "$nowhere is not defined"),
        ("break $out", "$*label-out is not defined"),
        ("{a:", "syntax error"),
        ("~", "syntax error"),
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
        (("-ra", "."), '"ü"', '"\\u00fc"\n'),
        (("-c", "."), '{"b":1,"a":2,"ä":3,"b":4}', '{"b":4,"a":2,"ä":3}\n'),
        (("-CMc", "[]"), "1", "[]\n"),
        (("-S", "-c", "."), '{"b":1,"a":{"d":1,"c":2}}', '{"a":{"c":2,"d":1},"b":1}\n'),
        (("-a", "."), '"ü🎈"', '"\\u00fc\\ud83c\\udf88"\n'),
        (("--tab", "."), "[1]", "[\n\t1\n]\n"),
        (("--indent", "1", "."), "[1]", "[\n 1\n]\n"),
        (("--indent", "0", "."), "[1]", "[1]\n"),
        (("-n", "1"), "not JSON", "1\n"),
        (("-c", "."), "1 [2]\n{} ", "1\n[2]\n{}\n"),
        (("-cn", "[inputs]"), "1 2", "[1,2]\n"),
        (("-cns", "[inputs]"), "1 2", "[[1,2]]\n"),
        (("-cn", '{inputs: "inputs", x: [limit(2; inputs)]} # inputs'), "1 2 3", '{"inputs":"inputs","x":[1,2]}\n'),
        (("-rn", '"\\([inputs])"'), "1 2 3", "[1,2,3]\n"),
        ((".",), '{"a":[1,{},[]],"b":{"c":"[,]"}}', JSON_ON_LINES),
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
        (("-nc", "--arg", "x", "ü🎈", "$x"), "", '"ü🎈"\n'),
        (("-nc", "--arg", "x", "1", "--arg", "x", "2", "$x"), "", '"1"\n'),
        (("--version",), "", "jq-1.8 (json-tool of mcpgreen)\n"),
        (("-V",), "", "jq-1.8 (json-tool of mcpgreen)\n"),
        (("1, halt, 2",), "1 2", "1\n"),
        (("-n", "-(1)"), "", "-1\n"),
        (("--raw-output", "--compact-output", "."), '"x"', "x\n"),
        (("-c", "."), "\ufeff[1]", "[1]\n"),
        (
            ("-c", "."),
            "[1.0, 1e3, 0.10, 12345678901234567890, 1e1000]",
            "[1.0,1E+3,0.10,12345678901234567890,1E+1000]\n",
        ),
        (("-rn", "$ENV.MINE, env.MINE"), "", "yes\nyes\n"),
        (("",), "[]", "[]\n"),
        ((), "[]", "[]\n"),
        (("-c", "."), "", ""),
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
        ((".a",), '{"a":2} 1', 5, "2\n"),
        (("-e", ".a"), '{"a":2} 1', 5, "2\n"),
        (("-e", "select(. != 2)"), "1 2", 0, "1\n"),
        (("-c", "."), '{"a":1} xyz {"b":2}', 5, '{"a":1}\n'),
        (("-c", "."), '"\\ud800x"', 5, ""),
        (("-c", "."), "1 [", 5, "1\n"),
        (("-e", "."), "{", 5, ""),
        ((".", "--", "-c"), "1", 2, ""),
        (("1, halt_error, 2",), '"bye"', 5, "1\n"),
        (("halt_error(258)",), '"bye"', 2, ""),
        (("halt_error(3)",), '"bye"', 3, ""),
        (("input",), "1", 5, ""),
        (("[inputs]",), "1", 5, ""),
        (("-n", "first(inputs), inputs"), "1", 2, ""),
        (("--stream", "."), "1", 2, ""),
        (("-L", "/", "."), "1", 2, ""),
        (("halt_error(infinite)",), '"bye"', 5, ""),
        (("halt_error(nan)",), '"bye"', 5, ""),
        (('halt_error("x")',), "1", 5, ""),
        (("--argjson", "x", "{x", "."), "1", 2, ""),
        (("--arg", "x"), "1", 2, ""),
        (("-z", "."), "1", 2, ""),
        (("--seq", "."), "1", 2, ""),
        (("--jsonargs", ".", "{x"), "1", 2, ""),
        (("--slurpfile", "x", "/nonexistent.json", "."), "1", 2, ""),
        (("-f",), "1", 2, ""),
        (("-n", "[inputs]", "/nonexistent.json"), "1", 2, "[]\n"),
        (("--indent", "x", "."), "1", 2, ""),
        ((".", "/nonexistent.json"), "1", 2, ""),
        (("-f", "/nonexistent.jq"), "1", 2, ""),
        ((".",), "[" * 100_000, 5, ""),
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


def test_an_error_does_not_keep_others_from_being_filtered() -> None:
    ended = run(".a", given='{"a":1}\n[]\n{"a":2}\n')
    assert (ended.returncode, ended.stdout) == (0, "1\n2\n")  # as jq: the last input decides
    assert ended.stderr.startswith("jq: error: Cannot index array with")


def test_bytes_that_are_no_text_are_replaced() -> None:
    given = b'"a\xffb" "c"'
    ended = subprocess.run([OWN_TOOL, "-r", "."], input=given, capture_output=True, env=ENV)
    assert ended.stdout.decode("utf-8") == "a\ufffdb\nc\n"


def test_a_text_is_printed_as_it_is_to_its_end() -> None:
    assert run("-r", ".", given='"a\\u0000b\\n"').stdout == "a\0b\n\n"


def test_output_that_cannot_be_written_is_a_failure() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        command = [str(OWN_TOOL), "-n", "1"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=ENV)
    assert (ended.returncode, ended.stderr) == (2, "jq: error: writing output failed: No space left on device\n")


def test_a_reader_that_leaves_is_no_reason_to_complain() -> None:
    script = f'"{OWN_TOOL}" -n "range(1000000)" | head -n 1'
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, env=ENV)
    assert (ended.stdout, ended.stderr) == ("0\n", "")


def test_lines_are_answered_one_by_one() -> None:
    """A script that reports its progress is not kept waiting for the end of its output."""
    command = [str(OWN_TOOL), "-Rr", "--unbuffered", '.+ "!"']
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=ENV) as child:
        assert child.stdin and child.stdout
        for word in ("a", "b"):
            child.stdin.write(word + "\n")
            child.stdin.flush()
            assert child.stdout.readline() == word + "!\n"
        child.stdin.close()


def test_an_interrupt_ends_it_while_it_waits_for_input() -> None:
    command = [str(OWN_TOOL), "-R", "--unbuffered", "1"]
    # Tests that a shell runs in the background ignore interrupts, and their children would as well.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
    finally:
        signal.signal(signal.SIGINT, former)
    with child:
        assert child.stdin and child.stdout
        child.stdin.write(b"x\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"1\n"
        if os.path.exists("/proc/self/stat"):
            eventually(lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        child.send_signal(signal.SIGINT)
        try:
            assert child.wait(60) == -signal.SIGINT
        finally:
            child.kill()


@pytest.fixture
def other_python(tmp_path: Path) -> Path:
    """The directory of an environment without packages."""
    venv.create(tmp_path / "env", symlinks=True, with_pip=False)
    return tmp_path / "env"


def packages_of(environment: Path) -> Path:
    return environment / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"


def link_package(directory: Path) -> None:
    package = importlib.util.find_spec("jq")
    assert package and package.origin
    (directory / Path(package.origin).name).symlink_to(package.origin)


def test_the_package_is_found_wherever_this_python_finds_packages(other_python: Path, tmp_path: Path) -> None:
    (packages_of(other_python) / "elsewhere.pth").write_text(f"{tmp_path}\n", encoding="utf-8")
    link_package(tmp_path)
    ended = run("-n", "1", MCPGREEN_PYTHON=str(other_python / "bin" / "python3"))
    assert (ended.stdout, ended.stderr) == ("1\n", "")


@pytest.mark.parametrize("stand_in", [None, b"", "ujson"])
def test_where_the_package_is_missing_somebody_is_told_what_to_install(
    other_python: Path, stand_in: bytes | str | None
) -> None:
    """Also if what is there is not what it should be: no library, or another one."""
    if isinstance(stand_in, str):
        stand_in = Path(str(importlib.import_module(stand_in).__file__)).read_bytes()
    if stand_in is not None:
        (packages_of(other_python) / f"jq{EXTENSION_SUFFIXES[0]}").write_bytes(stand_in)
    python = str(other_python / "bin" / "python3")
    ended = run(".", MCPGREEN_PYTHON=python)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"jq: .+ Install one of them: apt install jq, .+ -m pip install jq\n", ended.stderr)
    assert python in ended.stderr


def test_a_python_that_cannot_do_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "signal.py").write_text("raise ImportError('no signals')", encoding="utf-8")
    for env, named in (
        ({"PYTHONPATH": str(tmp_path)}, "no signals"),
        ({"MCPGREEN_PYTHON": "/no/python"}, "/no/python"),
    ):
        ended = run(".", **env)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert re.fullmatch(rf"jq: .*{named}.* Install jq: .+\n", ended.stderr)


def test_at_the_desk_the_python_of_the_installation_is_found(other_python: Path, tmp_path: Path) -> None:
    """Nobody sets MCPGREEN_PYTHON there, and the python3 of the host does not have the package."""
    packages = packages_of(other_python)
    for name in ("json-tool", "json_tool.py"):
        link = packages / "mcpgreen" / "sdk" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(OWN_TOOL.parent / name)
    link_package(packages)
    of_the_host = tmp_path / "python3"
    of_the_host.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    of_the_host.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = run("-n", "1", tool=str(packages / "mcpgreen/sdk/json-tool"), MCPGREEN_PYTHON="", PATH=path)
    assert (ended.stdout, ended.stderr) == ("1\n", "")


def test_tools_read_json_on_a_host_without_jq(
    project: ProjectBuilder, start: Callable[..., Wire], path_without_jq: str
) -> None:
    script = """source "${MCP_SDK:?}/tool-sdk.sh"
      name=$(mcp_args_require .name)
      mcp_result_success "$("$MCPBASH_JSON_TOOL_BIN" -nc --arg name "$name" --arg mode "$MCPBASH_MODE" \
        --arg tool "$MCPBASH_JSON_TOOL" '{$name, $mode, $tool}')" """
    project.tool("greet", script)
    client = start(env={"PATH": path_without_jq}).greeted()
    result: Any = client.call_tool("greet", {"name": "Ada"})
    expected = {"name": "Ada", "mode": "full", "tool": "jq"}
    assert json.loads(text_of(result)) == {"success": True, "result": expected}
