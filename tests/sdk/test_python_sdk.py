"""The Python SDK, run by real scripts in the environment of a call."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.waiting import eventually, is_alive

from .conftest import SDK, Bench

SOURCE = SDK / "python" / "mcp_tool.py"
UGLY = 'quote " backslash \\ newline \n one \x01 ü 日 🎈'


@pytest.fixture
def bench(minimal: Bench) -> Bench:
    """The Python SDK never needs a JSON tool."""
    return minimal


def failure(message: str, code: int = -32602) -> dict[str, object]:
    return {"code": code, "message": message, "data": None}


FILES = sorted([*SOURCE.parent.glob("mcp_tool*.py"), *SOURCE.parent.glob("mcp_tool*/*.py")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_sdk_parses_as_python_3_10(file: Path) -> None:
    ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 10))


def test_the_sdk_imports_only_what_every_call_needs() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    imported = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    assert imported == ["json", "os", "sys"]


def test_other_files_of_the_sdk_are_loaded_when_they_are_needed(bench: Bench) -> None:
    body = """
def loaded(): return sorted(name for name in sys.modules if name.startswith("mcp_tool"))
first = loaded()
sys.path.remove(os.environ["MCP_SDK"])
mcp_tool.roots_count()
mcp_tool.emit_json([first, loaded(), mcp_tool.roots_count is sys.modules["mcp_tool_roots"].roots_count])"""
    assert bench.python(body).result == [["mcp_tool"], ["mcp_tool", "mcp_tool_roots"], True]


def test_the_table_of_the_sdk_names_what_its_files_export() -> None:
    modules = [*SOURCE.parent.glob("mcp_tool_*.py"), *SOURCE.parent.glob("mcp_tool_*/__init__.py")]
    exported = {(file.parent if file.stem == "__init__" else file).stem: sorted(exports_of(file)) for file in modules}
    script = "import json, mcp_tool; print(json.dumps({k: sorted(v.split()) for k, v in mcp_tool._ELSEWHERE.items()}))"
    ended = subprocess.run(
        [sys.executable, "-B", "-c", script], env={"PYTHONPATH": str(SDK)}, capture_output=True, check=True, timeout=120
    )
    assert json.loads(ended.stdout) == exported


def exports_of(file: Path) -> list[str]:
    """The value of `__all__`, which is what type checkers see."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            value: list[str] = ast.literal_eval(node.value)
            return value
    return []


def test_an_unknown_name_is_an_attribute_error(bench: Bench) -> None:
    run = bench.python("mcp_tool.elict")
    assert "AttributeError: module 'mcp_tool' has no attribute 'elict'" in run.stderr


def test_every_exported_name_is_there_and_listed(bench: Bench) -> None:
    run = bench.python(
        "mcp_tool.emit_json([n for n in mcp_tool.__all__ if n not in dir(mcp_tool) or not getattr(mcp_tool, n)])"
    )
    assert run.result == []


def test_the_sdk_needs_nothing_but_its_own_place() -> None:
    script = "from mcp_tool import *; progress(5); log_info('a', 'b'); print(args(), meta(), roots(), is_cancelled())"
    ended = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", script],
        env={"PYTHONPATH": str(SDK)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "{} {} [] False\n", "")


def test_the_first_example_of_the_page_works(bench: Bench) -> None:
    page = (SDK.parents[1] / "docs" / "sdk-python.md").read_text(encoding="utf-8")
    example = page.split("```python\n")[1].split("```")[0]
    run = bench.python(example, {"name": "Ada"})
    assert run.result["structuredContent"]["result"] == {"greeting": "Hello Ada"}
    assert bench.python(example).error == failure("name is required")


def test_arguments_come_from_the_environment(bench: Bench) -> None:
    assert json.loads(bench.python("mcp_tool.emit_json(mcp_tool.args())", {"a": UGLY}).stdout) == {"a": UGLY}


def test_arguments_come_from_the_file_when_they_were_spilled(bench: Bench) -> None:
    spilled = bench.directory / "args.json"
    spilled.write_text('{"a":"ü"}', encoding="utf-8")
    run = bench.python("mcp_tool.emit_text(mcp_tool.arg('a'))", MCP_TOOL_ARGS_JSON="", MCP_TOOL_ARGS_FILE=str(spilled))
    assert run.stdout == "ü"


def test_metadata_comes_from_the_request(bench: Bench) -> None:
    assert bench.python("print(mcp_tool.meta()['k'])", MCP_TOOL_META_JSON='{"k":"v"}').stdout == "v\n"


def test_who_calls_comes_from_the_claims(bench: Bench) -> None:
    read = "print(mcp_tool.auth(), mcp_tool.auth_get('sub', 'nobody'), mcp_tool.auth_get('none', 5))"
    known = bench.python(read, MCP_AUTH_JSON='{"sub":"ada","none":null}', MCP_AUTH_FILE="/etc/hostname")
    assert known.stdout == "{'sub': 'ada', 'none': None} ada 5\n"
    assert bench.python(read).stdout == "{} nobody 5\n"


@pytest.mark.parametrize(("name", "value"), [("k", "v"), ("nothing", 5), ("absent", 5)])
def test_one_member_of_the_metadata_has_a_default(bench: Bench, name: str, value: object) -> None:
    run = bench.python(
        f"mcp_tool.emit_json(mcp_tool.meta_get({name!r}, 5))", MCP_TOOL_META_JSON='{"k":"v","nothing":null}'
    )
    assert json.loads(run.stdout) == value


def test_raw_documents_are_the_text_that_came(bench: Bench) -> None:
    spilled = bench.directory / "meta.json"
    spilled.write_text('{ "m" : 1.0 }', encoding="utf-8")
    body = "print(mcp_tool.args_raw(), mcp_tool.meta_raw())"
    run = bench.python(body, MCP_TOOL_ARGS_JSON='{"a": 1}', MCP_TOOL_META_JSON="", MCP_TOOL_META_FILE=str(spilled))
    assert run.stdout == '{"a": 1} { "m" : 1.0 }\n'
    assert bench.python(body, MCP_TOOL_ARGS_JSON="", MCP_TOOL_META_JSON="").stdout == "{} {}\n"


def test_debug_lines_go_to_the_log_of_the_call(bench: Bench) -> None:
    bench.python("mcp_tool.debug('one', 2); mcp_tool.debug('ü')")
    lines = bench.debug_log.read_text(encoding="utf-8").splitlines()
    assert [line.partition("] ")[2] for line in lines] == ["one 2", "ü"]


@pytest.mark.parametrize("target", ["", "/nonexistent/log"])
def test_a_debug_log_that_cannot_be_written_does_not_stop_the_script(bench: Bench, target: str) -> None:
    run = bench.python("mcp_tool.debug('x'); print('went on')", MCPBASH_DEBUG_LOG=target)
    assert (run.stdout, run.stderr) == ("went on\n", "")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("mcp_tool.arg('name')", "Ada"),
        ("mcp_tool.arg('absent')", None),
        ("mcp_tool.arg('absent', 5)", 5),
        ("mcp_tool.arg('nothing', 5)", 5),
        ("mcp_tool.arg('no', 5)", False),
        ("mcp_tool.arg('blank', 5)", ""),
        ("mcp_tool.require('name')", "Ada"),
        ("mcp_tool.require('no')", False),
        ("mcp_tool.arg_bool('yes')", True),
        ("mcp_tool.arg_bool('one')", True),
        ("mcp_tool.arg_bool('one_text')", True),
        ("mcp_tool.arg_bool('no', default=True)", False),
        ("mcp_tool.arg_bool('name')", False),
        ("mcp_tool.arg_bool('absent', True)", True),
        ("mcp_tool.arg_int('one', min=1, max=1)", 1),
        ("mcp_tool.arg_int('one_text')", 1),
        ("mcp_tool.arg_int('minus')", -8),
        ("mcp_tool.arg_int('round')", 5),
        ("mcp_tool.arg_int('absent', 7, max=7)", 7),
    ],
)
def test_arguments_are_read_by_type(bench: Bench, expression: str, value: object) -> None:
    arguments: dict[str, object] = {
        "name": "Ada",
        "nothing": None,
        "no": False,
        "yes": True,
        "blank": "",
        "one": 1,
        "one_text": "1",
    }
    arguments.update({"minus": "-08", "round": 5.0})
    run = bench.python(f"mcp_tool.emit_json({expression})", arguments)
    assert json.loads(run.stdout) == value


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


def test_text_goes_to_a_replaced_stdout(bench: Bench) -> None:
    body = "import io\nsys.stdout = io.StringIO()\nmcp_tool.emit_text('x')\nsys.stderr.write(sys.stdout.getvalue())"
    assert bench.python(body).stderr == "x"


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


@pytest.mark.parametrize("hint", ["", ", hint=''"])
def test_without_a_hint_the_text_is_the_message(bench: Bench, hint: str) -> None:
    assert bench.python(f"mcp_tool.error('denied', 'no'{hint})").result["content"][0]["text"] == "no"


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


@pytest.mark.parametrize(
    ("arguments", "params"),
    [
        ("50, 'half', 200", {"progress": 50, "message": "half", "total": 200}),
        ("150", {"progress": 100}),
        ("-1", {"progress": 0}),
        ("33.9", {"progress": 33}),
        ("float('inf')", {"progress": 100}),
        ("float('nan')", {"progress": 0}),
        ("'x'", {"progress": 0}),
        ("None, 'on'", {"progress": 0, "message": "on"}),
        ("'40'", {"progress": 40}),
    ],
)
def test_progress_is_a_whole_percentage(bench: Bench, arguments: str, params: dict[str, object]) -> None:
    run = bench.python(f"mcp_tool.progress({arguments})")
    expected = {"total": 100, **params}  # so that clients can draw a bar
    assert run.lines == [{"jsonrpc": "2.0", "method": "notifications/progress", "params": expected}]


@pytest.mark.parametrize("token", [7, "7", "abc"])
def test_progress_keeps_the_type_of_the_token(bench: Bench, token: object) -> None:
    run = bench.python("mcp_tool.progress(1)", MCP_TOOL_META_JSON=json.dumps({"progressToken": token}))
    assert run.params == [{"progress": 1, "total": 100, "progressToken": token}]


def test_log_lines_carry_level_logger_and_data(bench: Bench) -> None:
    run = bench.python("mcp_tool.log('NOTICE', 'x', {'a': [1]})")
    assert run.lines == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "notice", "logger": "x", "data": {"a": [1]}},
        }
    ]


def test_an_unknown_level_is_info_with_a_warning(bench: Bench) -> None:
    run = bench.python("mcp_tool.log('loud', 'x', 1)")
    assert run.params[0]["level"] == "info"
    assert "unknown level loud" in run.stderr


@pytest.mark.parametrize(
    ("function", "level"),
    [("log_debug", "debug"), ("log_info", "info"), ("log_warn", "warning"), ("log_error", "error")],
)
def test_text_is_logged_at_its_level(bench: Bench, function: str, level: str) -> None:
    run = bench.python(f"mcp_tool.{function}('x', {UGLY!r})")
    assert run.params == [{"level": level, "logger": "x", "data": UGLY}]


def test_any_object_can_be_logged(bench: Bench) -> None:
    run = bench.python("mcp_tool.log_error('x', OSError('disk full')); mcp_tool.log_error('x', float('nan'))")
    assert (run.exit_code, [params["data"] for params in run.params]) == (0, ["disk full"])


def test_what_cannot_be_logged_does_not_stop_the_script(bench: Bench) -> None:
    run = bench.python("mcp_tool.log_info('x', {(1, 2): 3}); mcp_tool.log(None, 'x', 'y'); print('went on')")
    assert (run.exit_code, run.stdout, [params["level"] for params in run.params]) == (0, "went on\n", ["info"])


SPEAK = "mcp_tool.progress(1, 'x'); mcp_tool.log_info('x', 'y'); print('went on')"


def test_a_server_that_has_gone_does_not_stop_the_script(bench: Bench) -> None:
    run = bench.python(SPEAK, is_heard=False)
    assert (run.exit_code, run.stdout, run.stderr) == (0, "went on\n", "")


def test_a_closed_descriptor_does_not_stop_the_script(bench: Bench) -> None:
    run = bench.python(f"os.close(97); {SPEAK}")
    assert (run.exit_code, run.stdout, run.stderr, run.lines) == (0, "went on\n", "", [])


def test_a_stream_may_be_a_file(bench: Bench) -> None:
    target = bench.directory / "stream"
    bench.python(SPEAK, MCP_PROGRESS_STREAM=str(target), MCP_LOG_STREAM=str(target))
    methods = [json.loads(line)["method"] for line in target.read_text(encoding="utf-8").splitlines()]
    assert methods == ["notifications/progress", "notifications/message"]


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


@pytest.mark.parametrize(
    "options", ["''", "'x', extract='loud'", "'x', total=0", "'x', total=-1", "'x', interval=0", "'x', interval=-1"]
)
def test_a_misused_run_starts_nothing(bench: Bench, options: str) -> None:
    run = bench.python(run_call("touch started", options))
    assert (run.exit_code, (bench.directory / "started").exists()) == (1, False)
    assert "ValueError: run_with_progress" in run.stderr


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


def test_all_of_stderr_goes_to_its_file_when_another_file_tells_the_progress(bench: Bench) -> None:
    run = bench.python(run_call("echo 5% >p; echo 6% >&2", "'(.)%', progress_file='p', stderr_file='err.txt'"))
    assert ([params["progress"] for params in run.params], run.result) == ([5], [0, "", ""])
    assert (bench.directory / "err.txt").read_text(encoding="utf-8") == "6%\n"


@pytest.mark.parametrize("files", ["stdout_file", "stderr_file", "progress_file"])
def test_a_file_that_cannot_be_written_starts_nothing(bench: Bench, files: str) -> None:
    run = bench.python(run_call("touch started", f"'x', {files}='/nonexistent/x'"))
    assert "FileNotFoundError" in run.stderr
    assert not (bench.directory / "started").exists()


@pytest.mark.parametrize(("options", "logged"), [("", ["one", "two"]), (", quiet=True", [])])
def test_what_is_no_progress_goes_to_the_debug_log_unless_it_is_quiet(
    bench: Bench, options: str, logged: list[str]
) -> None:
    bench.python(run_call("printf 'one\\n5%%\\ntwo\\n' >&2", f"'(.)%'{options}"))
    lines = bench.debug_log.read_text(encoding="utf-8").splitlines() if bench.debug_log.exists() else []
    assert [line.partition("] ")[2] for line in lines] == logged


def test_a_dry_run_shows_the_progress_and_reports_none(bench: Bench) -> None:
    run = bench.python(run_call("printf '5%%\\nx%%\\n250%%\\n' >&2", "'(.*)%', dry_run=True"))
    assert [json.loads(line) for line in run.stderr.splitlines()] == [
        {"progress": 5, "message": "5%"},
        {"progress": 100, "message": "250%"},
    ]
    assert (run.lines, run.result) == ([], [0, "", ""])


def test_the_interval_is_how_often_the_command_is_looked_at(bench: Bench) -> None:
    """Time is the subject: with an interval longer than the command, everything is seen at the end."""
    run = bench.python(run_call("echo 5% >&2", "'(.)%', interval=0.3"))
    assert ([params["progress"] for params in run.params], run.result) == ([5], [0, "", ""])


def test_a_wrong_pattern_starts_nothing(bench: Bench) -> None:
    run = bench.python(run_call("touch started", "'('"))
    assert "re.error" in run.stderr or "PatternError" in run.stderr
    assert not (bench.directory / "started").exists()


@pytest.mark.parametrize("command", ["[]", "'echo hello'", "print", "None"])
def test_a_command_is_a_list(bench: Bench, command: str) -> None:
    run = bench.python(f"mcp_tool.run_with_progress({command}, 'x')")
    assert "ValueError: run_with_progress: the command must be a list" in run.stderr


def test_a_program_that_does_not_exist_is_an_os_error(bench: Bench) -> None:
    run = bench.python("mcp_tool.run_with_progress(['/nonexistent/program'], 'x')")
    assert "FileNotFoundError" in run.stderr


def test_a_call_that_is_cancelled_already_starts_nothing(bench: Bench) -> None:
    bench.cancel_file.touch()
    run = bench.python(run_call("touch started", "'x'"))
    assert (run.result, (bench.directory / "started").exists()) == ([130, "", ""], False)


def test_large_output_on_both_streams_does_not_block(bench: Bench) -> None:
    half = "head -c 1000000 /dev/zero | tr '\\0' x | fold -w 99"
    status, stdout, stderr = bench.python(run_call(f"{half}; {half} >&2", "'y'")).result
    assert (status, len(stdout) // 1000, len(stderr) // 1000) == (0, 1010, 1010)


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


@pytest.mark.parametrize(("path", "is_inside"), [(path, True) for path in INSIDE] + [(path, False) for path in OUTSIDE])
def test_containment_follows_links(bench: Bench, tree: Path, path: str, is_inside: bool) -> None:
    bench.roots(Path("/nonexistent"), tree)
    assert bench.python(f"print(mcp_tool.roots_contains({path.format(root=tree)!r}))").stdout == f"{is_inside}\n"


@pytest.mark.parametrize("path", ["/proc", "/proc/self/environ", "/sys/x", "/dev/null", "//dev"])
def test_the_root_of_all_does_not_contain_the_kernels_files(bench: Bench, path: str) -> None:
    bench.roots(Path("/"))
    asked = f"[mcp_tool.roots_contains({path!r}), mcp_tool.roots_contains('/development')]"
    assert bench.python(f"print({asked})").stdout == "[False, True]\n"


def test_roots_are_listed(bench: Bench) -> None:
    bench.roots(Path("/a b"), Path("/c"))
    assert bench.python("print(mcp_tool.roots(), mcp_tool.roots_count())").stdout == "['/a b', '/c'] 2\n"


def test_require_path_gives_the_physical_path(bench: Bench, tree: Path) -> None:
    bench.roots(tree)
    run = bench.python("print(mcp_tool.require_path('p'))", {"p": "entry/./inner/new"})
    assert run.stdout == f"{os.path.realpath(tree)}/inner/new\n"


def test_require_path_defaults_to_the_only_root(bench: Bench, tree: Path) -> None:
    bench.roots(tree)
    run = bench.python("print(mcp_tool.require_path('p', default_to_single_root=True))")
    assert run.stdout == f"{os.path.realpath(tree)}\n"


def test_require_path_allows_an_empty_path_on_demand(bench: Bench) -> None:
    assert bench.python("print(repr(mcp_tool.require_path('p', allow_empty=True)))").stdout == "''\n"


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
