"""The Python SDK, run by real scripts in the environment of a call."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import threading
from pathlib import Path

import pytest

from tests.support.programs import completed
from tests.support.waiting import eventually, is_alive

from .conftest import SDK, Bench, failure

SOURCE = SDK / "python" / "mcp_tool.py"
UGLY = 'quote " backslash \\ newline \n one \x01 ü 日 🎈'


FILES = sorted([*SOURCE.parent.glob("mcp_tool*.py"), *SOURCE.parent.glob("mcp_tool*/*.py")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_sdk_parses_as_python_3_10(file: Path) -> None:
    ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 10))


def test_the_sdk_imports_only_what_every_call_needs() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    imported = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    assert imported == ["json", "os", "sys"]


def test_the_sdk_needs_nothing_but_its_own_place() -> None:
    script = "from mcp_tool import *; progress(5); log_info('a', 'b'); print(args(), meta(), roots(), is_cancelled())"
    ended = completed([sys.executable, "-B", "-W", "error", "-c", script], env={"PYTHONPATH": str(SDK)})
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "{} {} [] False\n", "")


def test_arguments_come_from_the_file_when_they_were_spilled(bench: Bench) -> None:
    spilled = bench.directory / "args.json"
    spilled.write_text('{"a":"ü"}', encoding="utf-8")
    run = bench.python("mcp_tool.emit_text(mcp_tool.arg('a'))", MCP_TOOL_ARGS_JSON="", MCP_TOOL_ARGS_FILE=str(spilled))
    assert run.stdout == "ü"


def test_who_calls_comes_from_the_claims(bench: Bench) -> None:
    read = "print(mcp_tool.auth(), mcp_tool.auth_get('sub', 'nobody'), mcp_tool.auth_get('none', 5))"
    known = bench.python(read, MCP_AUTH_JSON='{"sub":"ada","none":null}', MCP_AUTH_FILE="/etc/hostname")
    assert known.stdout == "{'sub': 'ada', 'none': None} ada 5\n"
    assert bench.python(read).stdout == "{} nobody 5\n"


def test_raw_documents_are_the_text_that_came(bench: Bench) -> None:
    spilled = bench.directory / "meta.json"
    spilled.write_text('{ "m" : 1.0 }', encoding="utf-8")
    body = "print(mcp_tool.args_raw(), mcp_tool.meta_raw())"
    run = bench.python(body, MCP_TOOL_ARGS_JSON='{"a": 1}', MCP_TOOL_META_JSON="", MCP_TOOL_META_FILE=str(spilled))
    assert run.stdout == '{"a": 1} { "m" : 1.0 }\n'
    assert bench.python(body, MCP_TOOL_ARGS_JSON="", MCP_TOOL_META_JSON="").stdout == "{} {}\n"


@pytest.mark.parametrize("target", ["", "/nonexistent/log"])
def test_a_debug_log_that_cannot_be_written_does_not_stop_the_script(bench: Bench, target: str) -> None:
    run = bench.python("mcp_tool.debug('x'); print('went on')", MCPBASH_DEBUG_LOG=target)
    assert (run.stdout, run.stderr) == ("went on\n", "")


ARGUMENTS: dict[str, object] = {"name": "Ada", "ugly": UGLY, "nothing": None, "no": False, "yes": True, "blank": ""}
ARGUMENTS |= {"one": 1, "one_text": "1", "minus": "-08", "round": 5.0}
VALUES: dict[str, object] = {
    "args()": ARGUMENTS,
    "arg('name')": "Ada",
    "arg('absent')": None,
    "arg('absent', 5)": 5,
    "arg('nothing', 5)": 5,
    "arg('no', 5)": False,
    "arg('blank', 5)": "",
    "require('name')": "Ada",
    "require('no')": False,
    "arg_bool('yes')": True,
    "arg_bool('one')": True,
    "arg_bool('one_text')": True,
    "arg_bool('no', default=True)": False,
    "arg_bool('name')": False,
    "arg_bool('absent', True)": True,
    "arg_int('one', min=1, max=1)": 1,
    "arg_int('one_text')": 1,
    "arg_int('minus')": -8,
    "arg_int('round')": 5,
    "arg_int('absent', 7, max=7)": 7,
    "meta()": {"k": "v", "nothing": None},
    "meta_get('k', 5)": "v",
    "meta_get('nothing', 5)": 5,
    "meta_get('absent', 5)": 5,
}


def test_arguments_and_metadata_are_read_by_type(bench: Bench) -> None:
    expressions = ", ".join(f"mcp_tool.{expression}" for expression in VALUES)
    run = bench.python(f"mcp_tool.emit_json([{expressions}])", ARGUMENTS, MCP_TOOL_META_JSON='{"k":"v","nothing":null}')
    assert dict(zip(VALUES, json.loads(run.stdout), strict=True)) == VALUES


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("require('absent')", "absent is required"),
        ("require('blank')", "blank is required"),
        ("require('absent', 'Give me one')", "Give me one"),
        ("arg_bool('absent')", "absent is required"),
        ("arg_int('absent')", "absent is required"),
        ("arg_int('name')", "name must be an integer"),
        ("arg_int('half')", "half must be an integer"),
        ("arg_int('yes')", "yes must be an integer"),
        ("arg_int('one', min=2)", "one must be >= 2"),
        ("arg_int('one', max=0)", "one must be <= 0"),
        ("arg_int('absent', 9, max=5)", "absent must be <= 5"),
        ("arg_int('one', min=3, max=2)", "arg_int: min cannot exceed max"),
        ("require_path('absent')", "absent is required"),
        ("require_path('one')", "one must be a path"),
    ],
)
def test_the_call_ends_for_arguments_that_cannot_be_accepted(bench: Bench, call: str, message: str) -> None:
    run = bench.python(
        f"mcp_tool.{call}\nprint('went on')", {"name": "Ada", "blank": "", "half": 1.5, "yes": True, "one": 1}
    )
    assert (run.exit_code, run.stderr) == (1, f"{message}\n")
    assert run.error == run.result == failure(message)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("encoding", ["", "latin-1"])
def test_text_is_printed_in_utf_8_whatever_the_locale(bench: Bench, locale: str, encoding: str) -> None:
    run = bench.python(
        f"print('first'); mcp_tool.emit_text({UGLY!r})", LANG=locale, LC_ALL=locale, PYTHONIOENCODING=encoding
    )
    assert run.stdout == f"first\n{UGLY}"


def test_a_lone_surrogate_does_not_break_the_output(bench: Bench) -> None:
    run = bench.python("mcp_tool.result_success('\\udc80'); mcp_tool.emit_text('\\udc80')")
    assert (run.exit_code, run.stdout.endswith("\n?")) == (0, True)


@pytest.mark.parametrize("value", [{"a": [1, None, UGLY]}, [], "text", 0, False, None])
def test_success_wraps_one_value(bench: Bench, value: object) -> None:
    run = bench.python(f"mcp_tool.result_success({value!r})")
    envelope = {"success": True, "result": value}
    [content] = run.result["content"]
    assert run.stdout.count("\n") == 1
    assert (run.result["structuredContent"], run.result["isError"]) == (envelope, False)
    assert (content["type"], json.loads(content["text"])) == ("text", envelope)


@pytest.mark.parametrize(
    ("value", "summary"),
    [
        ([1, 2, 3], "Success: array with 3 items"),
        ({"a": 1, "b": 2}, "Success: object with 2 keys"),
        ("ü" * 200, "Success: " + "ü" * 100),
        (True, "Success: true"),
    ],
)
def test_success_summarises_what_is_too_long_for_the_text(bench: Bench, value: object, summary: str) -> None:
    run = bench.python(f"mcp_tool.result_success({value!r}, 10)")
    assert run.result["content"] == [{"type": "text", "text": summary}]
    assert run.result["structuredContent"]["result"] == value


@pytest.mark.parametrize(
    ("call", "configured", "is_whole"),
    [
        ("result_success([1])", "", True),
        ("result_success([1])", "5", False),
        ("result_success([1], 29)", "5", True),
        ("result_success([1], 28)", "", False),
        ("result_success([1])", "many", True),
    ],
)
def test_the_text_limit_is_argument_then_setting_then_default(
    bench: Bench, call: str, configured: str, is_whole: bool
) -> None:
    run = bench.python(f"mcp_tool.{call}", MCPBASH_MAX_TEXT_BYTES=configured)
    assert (run.result["content"][0]["text"] == '{"success":true,"result":[1]}') is is_whole


@pytest.mark.parametrize(("value", "problem"), [("object()", "TypeError"), ("float('nan')", "ValueError")])
def test_success_of_what_json_cannot_express_raises_and_prints_nothing(bench: Bench, value: str, problem: str) -> None:
    run = bench.python(f"mcp_tool.result_success({value})")
    assert (run.exit_code, run.stdout) == (1, "")
    assert problem in run.stderr


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("{}", {"type": "internal_error", "message": "Unknown error"}),
        ("{'type': 'gone', 'message': 'No row', 'row': 5}", {"type": "gone", "message": "No row", "row": 5}),
        ("'disk full'", {"type": "internal_error", "message": "disk full"}),
        ("OSError('disk full')", {"type": "internal_error", "message": "disk full"}),
        ("KeyboardInterrupt()", {"type": "internal_error", "message": "KeyboardInterrupt"}),
    ],
)
def test_an_error_is_completed_and_the_script_goes_on(bench: Bench, given: str, error: dict[str, object]) -> None:
    run = bench.python(f"mcp_tool.result_error({given})\nprint('went on', file=sys.stderr)")
    assert (run.exit_code, run.stderr) == (0, "went on\n")
    assert run.result == {
        "content": [{"type": "text", "text": error["message"]}],
        "structuredContent": {"success": False, "error": error},
        "isError": True,
    }


def test_error_builds_the_result_from_its_parts_and_logs_the_hint(bench: Bench) -> None:
    run = bench.python("mcp_tool.error('denied', 'no', hint='ask', data={'row': 5})")
    assert run.result["structuredContent"]["error"] == {
        "type": "denied",
        "message": "no",
        "hint": "ask",
        "data": {"row": 5},
    }
    assert run.result["content"] == [{"type": "text", "text": "no\nHint: ask"}]
    assert run.params == [{"level": "warning", "logger": "bench", "data": "denied: no (ask)"}]


@pytest.mark.parametrize(
    ("value", "printed"),
    [("{'name': 'Zoë'}", '{"name":"Zoë"}\n'), (r"'Zo\u00eb \ud800'", '"Zo\\u00eb \\ud800"\n')],
)
def test_json_is_printed_as_people_read_it_if_it_can_be(bench: Bench, value: str, printed: str) -> None:
    """It was "Zo\\u00eb" in one function and "Zoë" in another. Half a character cannot be printed otherwise."""
    assert bench.python(f"mcp_tool.emit_json({value})").stdout == printed


def test_embedded_resources_are_listed_for_the_server(bench: Bench) -> None:
    (bench.directory / "a b.txt").write_text("hello", encoding="utf-8")
    run = bench.python(
        "import pathlib\n"
        "with_type = {'path': 'a b.txt', 'mimeType': 'text/x-a', 'uri': 'ui://a'}\n"
        "mcp_tool.result_text_with_resource('ok', with_type, 'a b.txt', pathlib.Path('a b.txt'))"
    )
    path = str(bench.directory / "a b.txt")
    assert run.result["structuredContent"] == {"success": True, "result": "ok"}
    assert run.resources == [{"path": path, "mimeType": "text/x-a", "uri": "ui://a"}, {"path": path}, {"path": path}]


def test_unreadable_resources_are_skipped_with_a_warning(bench: Bench) -> None:
    run = bench.python("mcp_tool.result_text_with_resource('ok', 'gone', '', {'uri': 'ui://a'})")
    assert run.result["isError"] is False
    assert run.resources == []
    assert [params["level"] for params in run.params] == ["warning"] * 3


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("fail(-32001, 'Not now')", failure("Not now", -32001)),
        ("fail(7)", failure("Tool failed", 7)),
        ("fail_invalid_args()", failure("Invalid params")),
        ("fail(7, 'x', {'a': 1})", {"code": 7, "message": "x", "data": {"a": 1}}),
    ],
)
def test_fail_tells_the_server_and_passes_except_clauses(bench: Bench, call: str, error: dict[str, object]) -> None:
    run = bench.python(f"try:\n    mcp_tool.{call}\nexcept Exception:\n    print('caught')")
    assert (run.exit_code, run.stderr) == (1, f"{error['message']}\n")
    assert run.error == run.result == error


def test_fail_still_speaks_on_stdout_when_the_error_file_cannot_be_written(bench: Bench) -> None:
    run = bench.python("mcp_tool.fail(7, 'no')", MCP_TOOL_ERROR_FILE="/nonexistent/error.json")
    assert (run.exit_code, run.result) == (1, failure("no", 7))


PROGRESS: dict[str, dict[str, object]] = {
    "50, 'half', 200": {"progress": 50, "message": "half", "total": 200},
    "150": {"progress": 100},
    "-1": {"progress": 0},
    "33.9": {"progress": 33},
    "float('inf')": {"progress": 100},
    "float('nan')": {"progress": 0},
    "'x'": {"progress": 0},
    "None, 'on'": {"progress": 0, "message": "on"},
    "'40'": {"progress": 40},
    "120, total=150": {"progress": 120, "total": 150},
    "7, total=5": {"progress": 5, "total": 5},
    "0.5, total=1": {"progress": 0.5, "total": 1},
    "3, 12": {"progress": 3, "total": 12},
    "3, 12, 'as in FastMCP'": {"progress": 3, "total": 12, "message": "as in FastMCP"},
}


def test_progress_is_a_percentage_or_a_part_of_a_total(bench: Bench) -> None:
    run = bench.python("\n".join(f"mcp_tool.progress({arguments})" for arguments in PROGRESS))
    assert {line["method"] for line in run.lines} == {"notifications/progress"}
    assert run.params == [{"total": 100, **params} for params in PROGRESS.values()]  # clients draw a bar by the total


@pytest.mark.parametrize("token", [7, "7", "abc"])
def test_progress_keeps_the_type_of_the_token(bench: Bench, token: object) -> None:
    run = bench.python("mcp_tool.progress(1)", MCP_TOOL_META_JSON=json.dumps({"progressToken": token}))
    assert run.params == [{"progress": 1, "total": 100, "progressToken": token}]


LOGGED: list[tuple[str, str, object]] = [
    ("log('NOTICE', 'x', {'a': [1]})", "notice", {"a": [1]}),
    ("log('loud', 'x', 1)", "info", 1),
    ("log(None, 'x', 'y')", "info", "y"),
    (f"log_debug('x', {UGLY!r})", "debug", UGLY),
    (f"log_info('x', {UGLY!r})", "info", UGLY),
    (f"log_warn('x', {UGLY!r})", "warning", UGLY),
    (f"log_error('x', {UGLY!r})", "error", UGLY),
    ("log_error('x', OSError('disk full'))", "error", "disk full"),
    ("log('info', 'text')", "info", "text"),
    ("debug('a', 5)", "debug", "a 5"),
    ("info({'a': 1})", "info", {"a": 1}),
    ("warning('text')", "warning", "text"),
    ("error('text')", "error", "text"),
]
NOT_LOGGED = "mcp_tool.log_error('x', float('nan')); mcp_tool.log_info('x', {(1, 2): 3}); print('went on')"


def test_log_lines_carry_level_logger_and_data(bench: Bench) -> None:
    run = bench.python("\n".join([*(f"mcp_tool.{call}" for call, _, _ in LOGGED), NOT_LOGGED]))
    assert (run.exit_code, run.stdout) == (0, "went on\n")
    assert "unknown level loud" in run.stderr
    assert {line["method"] for line in run.lines} == {"notifications/message"}
    loggers = ["x" if "'x'" in call else "bench" for call, _, _ in LOGGED]  # the name of the tool, if there is none
    assert [each["logger"] for each in run.params] == loggers
    assert [(each["level"], each["data"]) for each in run.params] == [(level, data) for _, level, data in LOGGED]


SPEAK = "mcp_tool.progress(1, 'x'); mcp_tool.log_info('x', 'y'); print('went on')"


def test_a_server_that_has_gone_does_not_stop_the_script(bench: Bench) -> None:
    run = bench.python(SPEAK, is_heard=False)
    assert (run.exit_code, run.stdout, run.stderr) == (0, "went on\n", "")


def test_cancelled_is_when_the_file_exists(bench: Bench) -> None:
    assert bench.python("print(mcp_tool.is_cancelled())").stdout == "False\n"
    bench.cancel_file.touch()
    assert bench.python("print(mcp_tool.is_cancelled())").stdout == "True\n"


def run_call(script: str, options: str) -> str:
    """A tool that runs a bash script with progress and prints the result as JSON."""
    return (
        f"result = mcp_tool.run_with_progress(['bash', '-c', {script!r}], {options})\n"
        "mcp_tool.emit_json([result.returncode, result.stdout, result.stderr])"
    )


@pytest.mark.parametrize(
    ("options", "lines", "values"),
    [
        ("'([0-9.]+)%'", "10% 45.9% 250% .%", [10, 45, 100, 100]),
        ("'at_(.*)', total=50", "at_10 at_12.5 at_50", [20, 25, 100]),
        ("'(.*)/(.*)', extract='ratio'", "1/3 2/3 3/3 1/0 x/y", [33, 66, 100, 100, 100]),
        ("'%'", "10%", [0]),
    ],
)
def test_a_matching_line_becomes_progress(bench: Bench, options: str, lines: str, values: list[int]) -> None:
    run = bench.python(run_call(f"printf '%s\\n' {lines} >&2", options))
    assert ([params["progress"] for params in run.params], run.result) == (values, [0, "", ""])
    assert [params["message"] for params in run.params] == lines.split()


def test_a_json_line_carries_progress_and_message(bench: Bench) -> None:
    script = """echo '{"progress":5.9,"message":"a"}' >&2; echo '{"progress":"20"}' >&2; echo '{}' >&2; echo '{' >&2"""
    run = bench.python(run_call(script, "'^{', extract='json'"))
    assert [(params["progress"], params["message"]) for params in run.params] == [
        (5, "a"),
        (20, "Working..."),
        (20, "Working..."),
        (20, "Working..."),
    ]


MISUSED = {
    "TOUCH, ''": "ValueError",
    "TOUCH, '('": re.error.__name__,
    "TOUCH, 'x', extract='loud'": "ValueError",
    "TOUCH, 'x', total=0": "ValueError",
    "TOUCH, 'x', total=-1": "ValueError",
    "TOUCH, 'x', interval=0": "ValueError",
    "TOUCH, 'x', interval=-1": "ValueError",
    "TOUCH, 'x', stdout_file='/nonexistent/x'": "FileNotFoundError",
    "TOUCH, 'x', stderr_file='/nonexistent/x'": "FileNotFoundError",
    "TOUCH, 'x', progress_file='/nonexistent/x'": "FileNotFoundError",
    "['/nonexistent/program'], 'x'": "FileNotFoundError",
    "[], 'x'": "ValueError",
    "'touch started', 'x'": "ValueError",
    "None, 'x'": "ValueError",
}


def test_the_result_of_a_run_is_what_the_command_said(bench: Bench) -> None:
    run = bench.python(run_call("echo ü; echo one >&2; printf '5%%\\r6%%\\n' >&2; printf two >&2; exit 7", "'(.)%'"))
    assert run.result == [7, "ü\n", "one\ntwo\n"]
    assert [params["progress"] for params in run.params] == [5, 6]


def test_progress_comes_from_a_file_that_is_followed(bench: Bench) -> None:
    """The command goes on when its first report has been heard: it was heard while the command ran."""
    (bench.directory / "p").write_text("99%\n", encoding="utf-8")
    stream = bench.directory / "stream"
    script = "echo 10% >p; until grep -qs 10 stream; do sleep 0.01; done; printf 95%% >>p; echo 3% >&2"
    run = bench.python(run_call(script, "'([0-9]+)%', progress_file='p'"), MCP_PROGRESS_STREAM=str(stream))
    lines = [json.loads(line)["params"]["progress"] for line in stream.read_text(encoding="utf-8").splitlines()]
    assert (lines, run.result) == ([10, 95], [0, "", "3%\n"])


def test_files_take_what_the_command_says(bench: Bench) -> None:
    for name in ("out.txt", "err.txt"):
        (bench.directory / name).write_text("old", encoding="utf-8")
    options = "'(.)%', stdout_file='out.txt', stderr_file='err.txt'"
    run = bench.python(run_call("echo ü; printf 'one\\n5%%\\ntwo\\n' >&2", options))
    assert run.result == [0, "", ""]
    assert (bench.directory / "out.txt").read_text(encoding="utf-8") == "ü\n"
    assert (bench.directory / "err.txt").read_text(encoding="utf-8") == "one\ntwo\n"


@pytest.mark.parametrize(("options", "logged"), [("", ["one", "two"]), (", quiet=True", [])])
def test_what_is_no_progress_goes_to_the_debug_log_unless_it_is_quiet(
    bench: Bench, options: str, logged: list[str]
) -> None:
    bench.python(run_call("printf 'one\\n5%%\\ntwo\\n' >&2", f"'(.)%'{options}"))
    lines = bench.debug_log.read_text(encoding="utf-8").splitlines() if bench.debug_log.exists() else []
    assert [line.partition("] ")[2] for line in lines] == logged


def test_a_call_that_is_cancelled_already_starts_nothing(bench: Bench) -> None:
    bench.cancel_file.touch()
    run = bench.python(run_call("touch started", "'x'"))
    assert (run.result, (bench.directory / "started").exists()) == ([130, "", ""], False)


def test_a_job_left_behind_does_not_hold_the_run(bench: Bench) -> None:
    status, stdout, _ = bench.python(run_call("sleep 600 & echo $!", "'y'")).result
    os.kill(int(stdout), 9)
    assert status == 0


@pytest.mark.parametrize("trap", ["", "trap : TERM;"])
def test_a_cancelled_run_is_stopped_with_its_children(bench: Bench, trap: str) -> None:
    pids, scratch = bench.directory / "pids", bench.directory / "scratch"
    scratch.mkdir()
    canceller = threading.Thread(target=lambda: eventually(pids.exists) and bench.cancel_file.touch())
    canceller.start()
    script = f"{trap} sleep 600 & echo $$ $! >p; mv p pids; while :; do sleep 0.1; done"
    run = bench.python(run_call(script, "'y'"), TMPDIR=str(scratch))
    canceller.join()
    assert run.result == [130, "", ""]
    assert not any(map(is_alive, pids.read_text(encoding="utf-8").split()))
    assert list(scratch.iterdir()) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a link that leads out, and a neighbour with the same prefix."""
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (tmp_path / "root-neighbour").mkdir()
    (tmp_path / "entry").symlink_to(root)
    (root / "exit").symlink_to("../root-neighbour")
    return root


INSIDE = ["{root}", "{root}/", "{root}/inner/new/file", "{root}//./inner/..", "{root}/../entry/inner"]
OUTSIDE = ["", "/", "{root}/..", "{root}/exit", "{root}/exit/../x", "{root}-neighbour"]


def test_containment_follows_links(bench: Bench, tree: Path) -> None:
    bench.roots(Path("/nonexistent"), tree)
    paths = [path.format(root=tree) for path in (*INSIDE, *OUTSIDE)]
    run = bench.python(f"mcp_tool.emit_json([mcp_tool.roots_contains(path) for path in {paths!r}])")
    assert run.result == [True] * len(INSIDE) + [False] * len(OUTSIDE)


def test_the_root_of_all_does_not_contain_the_kernels_files(bench: Bench) -> None:
    bench.roots(Path("/"))
    paths = ["/development", "/proc", "/proc/self/environ", "/sys/x", "/dev/null", "//dev"]
    assert (
        bench.python(f"print([each for each in {paths} if mcp_tool.roots_contains(each)])").stdout
        == "['/development']\n"
    )


def test_require_path_gives_the_physical_path(bench: Bench, tree: Path) -> None:
    bench.roots(tree)
    run = bench.python("print(mcp_tool.require_path('p'))", {"p": "entry/./inner/new"})
    assert run.stdout == f"{os.path.realpath(tree)}/inner/new\n"


@pytest.mark.parametrize("root_count", [0, 2])
def test_require_path_does_not_choose_among_roots(bench: Bench, tree: Path, root_count: int) -> None:
    bench.roots(*[tree, tree / "inner"][:root_count])
    run = bench.python("mcp_tool.require_path('p', default_to_single_root=True)")
    assert run.error == failure("p is required when zero or multiple roots are configured")


@pytest.mark.parametrize("path", ["/etc/passwd", "root/exit/x", "root-neighbour"])
def test_require_path_refuses_what_lies_outside_the_roots(bench: Bench, tree: Path, path: str) -> None:
    bench.roots(tree)
    run = bench.python("mcp_tool.require_path('p')", {"p": path})
    assert run.error == failure("p is outside configured MCP roots")


GUARDED = {
    "a decorator": "@mcp_tool.tool(scopes=['a', 'b'])\ndef f(): return 'done'",
    "with the function": "mcp_tool.tool(f, scopes=['a', 'b'])",
    "a hidden name": "getattr(mcp_tool, 'to' + 'ol')(**{'sco' + 'pes': ['a', 'b']})(f)",
}
CALLERS: list[tuple[str, str]] = [
    ('{"scope": "a b"}', ""),
    ('{"scp": ["b", "a"]}', ""),
    ('{"scope": "a"}', "This needs the scope b, which the caller does not have."),
    ('{"scope": 5, "scp": "a b"}', "This needs the scope a b, which the caller does not have."),
    ('{"sub": "ada"}', "This needs the scope a b, which the caller does not have."),
    ("{}", ""),  # with a token that is not of an issuer
    ("", ""),  # without a token, as on stdio
]


@pytest.mark.parametrize("mark", GUARDED.values(), ids=GUARDED)
@pytest.mark.parametrize(("claims", "refusal"), CALLERS)
def test_scopes_of_a_function_are_enforced_when_it_runs(bench: Bench, mark: str, claims: str, refusal: str) -> None:
    """What the server cannot read in a source was open for every caller."""
    run = bench.python(f"def f(): return 'done'\n{mark}\nmcp_tool.run(f)", MCP_AUTH_JSON=claims)

    assert (refusal or "done") in run.stdout
    assert ("done" in run.stdout) == (not refusal)
