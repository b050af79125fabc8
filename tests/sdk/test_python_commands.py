"""`mcp_tool.CommandLine`: the words of a command, and what becomes of its end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.sdk.conftest import Bench, Run

# Calls, the arguments of the tool, and the words that they add.
WORDS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("command.flag('a', '--all')", {"a": True}, ["--all"]),
    ("command.flag('a', '--all')", {"a": False}, []),
    ("command.flag('a', '--all', off='--no-all')", {"a": False}, ["--no-all"]),
    ("command.flag('a', '--all', off='--no-all')", {}, []),
    ("command.count('v', '-v')", {"v": 3}, ["-v", "-v", "-v"]),
    ("command.count('v', '-v')", {}, []),
    ("command.option('n', '--n={}')", {"n": "-x y"}, ["--n=-x y"]),
    ("command.option('n', '--n={}')", {"n": ""}, ["--n="]),
    ("command.option('n', '--n={}')", {"n": 5.0}, ["--n=5"]),
    ("command.option('n', '--n={}')", {"n": 1.5}, ["--n=1.5"]),
    ("command.option('n', '--n={}')", {"n": False}, ["--n=false"]),
    ("command.option('n', '--n={}')", {"n": "{}"}, ["--n={}"]),
    ("command.option('n', '-n', '{}')", {"n": "x"}, ["-n", "x"]),
    ("command.option('n', '-n', '{}')", {"n": -5}, ["-n", "-5"]),
    ("command.option('n', '-n{}')", {"n": 5}, ["-n5"]),
    ("command.option('n', '--n={}')", {"n": ["a", "b"]}, ["--n=a", "--n=b"]),
    ("command.option('n', '--n={}')", {"n": []}, []),
    ("command.option('n', '--n={}', bare='--n')", {"n": ""}, ["--n"]),
    ("command.option('n', '--n', '{}', '{}')", {"n": ["a", "b"]}, ["--n", "a", "b"]),
    ("command.option('n', '--n', '{}', '{}')", {"n": [["a", "b"], ["c", "d"]]}, ["--n", "a", "b", "--n", "c", "d"]),
    ("command.option('n', '--n', '{}...')", {"n": ["a", "b"]}, ["--n", "a", "b"]),
    ("command.operand('f')", {"f": "x"}, ["x"]),
    ("command.operand('f')", {"f": "-"}, ["-"]),
    ("command.operand('f')", {"f": ["x", ""]}, ["x", ""]),
    ("command.end_of_options(); command.operand('f')", {"f": ["-x", "--"]}, ["--", "-x", "--"]),
    ("command.end_of_options(); command.operand('f')", {}, []),
    ("command.operand('r'); command.end_of_options(); command.operand('f')", {"f": "x"}, ["--", "x"]),
]
# The same with the beginning of the reason why it is refused.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("command.operand('f')", {"f": "-x"}, "f must not begin with '-'"),
    ("command.operand('f')", {"f": ["a", "--x"]}, "f must not begin with '-'"),
    ("command.operand('f')", {"f": -5}, "f must not begin with '-'"),
    ("command.option('n', '-n', '{}')", {"n": "-x"}, "n must not begin with '-'"),
    ("command.option('n', '--n', '{}...')", {"n": ["a", "-x"]}, "n must not begin with '-'"),
    ("command.option('n', '-n{}')", {"n": ""}, "n must not be empty."),
    ("command.option('n', '--n', '{}', '{}')", {"n": ["a"]}, "n needs 2 values."),
    ("command.operand('a'); command.operand('b')", {"b": "x"}, "b can only be given together with a"),
    *[
        # A newline ends a command of a shell, and the pattern of a value may be too wide.
        (f"command.words = [{program!r}]; command.option('n', 'N={{}}'); command.run()", {"n": value}, "A value has a ")
        for program in ("make", "/usr/bin/gmake", "just", "npm", "pnpm", "yarn", "bun")
        for value in ("a\n", "\na", "a\rb", "a\x00", "a\x7f", "a\x9b", ["a", "b\n"])
    ],
]
# All rows in one process: starting it takes longer than anything else here.
EACH_ROW = """
import contextlib, io, json
outcomes = []
for calls, arguments in ROWS:
    os.environ["MCP_TOOL_ARGS_JSON"] = json.dumps(arguments)
    command = mcp_tool.CommandLine("prog")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(calls)
        except SystemExit as left:
            outcomes.append([left.code, json.loads(printed.getvalue())])
        else:
            outcomes.append(command.words[1:])
mcp_tool.emit_json(outcomes)
"""


def outcomes(bench: Bench, rows: Sequence[tuple[str, dict[str, Any], Any]]) -> list[Any]:
    body = EACH_ROW.replace("ROWS", repr([row[:2] for row in rows]))
    return bench.python(body).result  # type: ignore[no-any-return]


def test_arguments_become_words(bench: Bench) -> None:
    for (calls, arguments, expected), added in zip(WORDS, outcomes(bench, WORDS), strict=True):
        assert added == expected, (calls, arguments)


def test_what_could_be_taken_for_something_else_is_refused(bench: Bench) -> None:
    for (calls, arguments, reason), (status, result) in zip(REFUSED, outcomes(bench, REFUSED), strict=True):
        assert (status, result["isError"]) == (1, True), (calls, arguments)
        assert result["content"][0]["text"].startswith(reason)


def ran(bench: Bench, script: str, arguments: dict[str, Any] | None = None, *, calls: str = "", limit: str = "") -> Run:
    body = f"command = mcp_tool.CommandLine('sh', '-c', {script!r}, 'x')\n{calls}\ncommand.run({limit})"
    return bench.python(body, arguments or {})


def texts(run: Run) -> list[str]:
    return [block["text"] for block in run.result["content"]]


def test_what_it_prints_is_the_result(bench: Bench) -> None:
    run = ran(bench, "echo ä; echo warning >&2")

    assert (run.exit_code, texts(run), run.result["isError"], run.stderr) == (0, ["ä\n"], False, "warning\n")


@pytest.mark.parametrize(("script", "text"), [("echo said >&2", "said"), ("true", "It printed nothing.")])
def test_without_output_there_is_a_result_too(bench: Bench, script: str, text: str) -> None:
    assert texts(ran(bench, script)) == [text]


def test_a_failure_is_told_with_the_end_of_stderr(bench: Bench) -> None:
    run = ran(bench, "echo out; seq 100000 >&2; echo reason >&2; exit 9")

    assert (run.exit_code, run.result["isError"]) == (9, True)
    told, printed = texts(run)
    assert told.startswith("sh failed with exit status 9.\n") and told.endswith("\n100000\nreason")
    assert len(told) < 4100
    assert printed == "out\n"


def test_a_signal_is_a_failure(bench: Bench) -> None:
    run = ran(bench, "kill -9 $$")

    assert (run.exit_code, texts(run)) == (137, ["sh failed with exit status 137."])


def test_too_much_output_ends_the_command(bench: Bench) -> None:
    run = ran(bench, "while :; do echo more; done", limit="1000")

    assert run.exit_code == 1
    assert texts(run)[0] == "sh was stopped: it printed more than 1000 bytes."
    assert len(texts(run)[1]) == 1000


def test_stdin_is_what_the_argument_says(bench: Bench) -> None:
    assert texts(ran(bench, "cat", {"stdin": "a\nb"}, calls="command.stdin('stdin')")) == ["a\nb"]
    assert texts(ran(bench, "cat")) == ["It printed nothing."]


@pytest.mark.parametrize(
    ("command", "arguments", "status", "reason"),
    [
        ("no-such-program", {}, 127, "no-such-program cannot be found."),
        ("/", {}, 126, "/ cannot be started: Permission denied"),
        ("true", {"f": "a\0b"}, 126, "true cannot be started: embedded null byte"),
        ("true", {"f": "x" * 200_000}, 126, "true cannot be started: Argument list too long"),
    ],
)
def test_what_cannot_be_started_is_told(
    bench: Bench, command: str, arguments: dict[str, Any], status: int, reason: str
) -> None:
    (bench.directory / "args.json").write_text(json.dumps(arguments), encoding="utf-8")
    body = f"command = mcp_tool.CommandLine({command!r})\ncommand.operand('f')\ncommand.run()"
    run = bench.python(body, MCP_TOOL_ARGS_FILE=str(bench.directory / "args.json"))

    assert (run.exit_code, run.result["isError"]) == (status, True)
    assert texts(run)[0].startswith(reason)
