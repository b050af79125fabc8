"""The shell SDK, run by real bash scripts in the environment of a call."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path

import pytest

from tests.docs.reader import blocks_of
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Start, text_of

from .conftest import SDK, Bench, Run, failure

SOURCE = SDK / "tool-sdk.sh"
PAGE = SDK.parents[1] / "docs" / "sdk-shell.md"
SOURCES = sorted(SDK.glob("*.sh"))
UGLY = 'quote " backslash \\ tab \t newline \n bell \a escape \x1b one \x01 unit \x1f delete \x7f amp & ü 日 🎈'


def test_the_sdk_needs_nothing_but_its_own_place() -> None:
    script = (
        'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 5 x; mcp_log_info a b; mcp_debug d; mcp_is_cancelled || echo on'
    )
    ended = completed(["bash", "-uc", script], env={"MCP_SDK": str(SDK)})
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "on\n", "")


def test_sourcing_turns_on_strict_mode(either: Bench) -> None:
    run = either.shell("[[ $- == *e* && $- == *u* ]] && shopt -qo pipefail && echo strict")
    assert run.stdout == "strict\n"


def test_a_script_at_the_desk_finds_the_json_tool_on_path(full: Bench) -> None:
    run = full.shell("mcp_args_get .a", {"a": 1}, MCPBASH_JSON_TOOL="", MCPBASH_JSON_TOOL_BIN="", MCPBASH_MODE="")
    assert run.stdout == "1\n"


@pytest.mark.parametrize(("chosen", "program"), [("", "jq"), ("jq", "jq"), ("gojq", "gojq"), ("odd", "jq")])
def test_a_script_at_the_desk_uses_the_json_tool_that_was_chosen(full: Bench, chosen: str, program: str) -> None:
    for name in ("jq", "gojq", "odd"):
        (full.directory / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (full.directory / name).chmod(0o755)
    env = {"PATH": f"{full.directory}:{full.env['PATH']}", "MCPBASH_JSON_TOOL": chosen, "MCPBASH_JSON_TOOL_BIN": ""}
    assert full.shell('echo "$MCPBASH_JSON_TOOL_BIN"', **env).stdout == f"{full.directory}/{program}\n"


@pytest.mark.parametrize(
    "construct",
    [
        r"\b(declare|local|typeset)\s+-[a-zA-Z]*[Agnlu]",
        r"\b(mapfile|readarray|coproc)\b",
        r"\$\{[A-Za-z_@*0-9]+(\^|,)",
        r"\$\{[A-Za-z_@*0-9]+@[A-Za-z]\}",
        r"\bwait\s+-n",
        r"&>>|\|&|;;&|;&",
        r"\[\[?\s+-v\s",
        r"\bEPOCH(SECONDS|REALTIME)\b|\bBASHPID\b|\bSRANDOM\b",
        r"\$\{\w+:[^-:}]+:\s*-|\bexec \{",
    ],
)
def test_the_sdk_keeps_to_the_grammar_of_bash_3_2(construct: str) -> None:
    lines = [line for source in SOURCES for line in source.read_text(encoding="utf-8").splitlines()]
    code = [line for line in lines if not line.lstrip().startswith("#")]
    assert [line for line in code if re.search(construct, line)] == []


def test_every_function_that_is_loaded_late_is_in_its_file() -> None:
    """One that is not would load the file again and again."""
    stubs = re.findall(r"^(mcp_\w+)\(\) \{ __mcp_load ([\w-]+); \1 ", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(stubs) > 20
    for name, file in stubs:
        assert f"\n{name}() {{" in (SDK / f"{file}.sh").read_text(encoding="utf-8")


def whole_example() -> str:
    return next(block.text for block in blocks_of(PAGE) if "mcp_elicit" in block.text)


@pytest.fixture
def counting(full: Bench) -> Bench:
    for folder, lines in (("docs", 2), ("notes", 3)):
        (full.directory / folder).mkdir()
        (full.directory / folder / "a.txt").write_text("x\n" * lines, encoding="utf-8")
    full.env.update(MCP_ELICIT_SUPPORTED="1", MCP_ASK_REPLY=str(full.directory / "reply"), MCP_PROGRESS_TOKEN="t")
    return full


def end_of_question(**end: object) -> str:
    return json.dumps({"question": end})


ACCEPTED = end_of_question(status="answered", result={"action": "accept", "content": {"folder": "notes"}})
UNSUPPORTED = end_of_question(status="unsupported", message="no")
DECLINED = end_of_question(status="answered", result={"action": "decline"})
REPORTS = ["notifications/progress", "notifications/message"]


@pytest.mark.parametrize(
    ("answer", "arguments", "env", "result", "said"),
    [
        (ACCEPTED, {}, {}, {"folder": "notes", "lines": 3}, ["ask", *REPORTS]),
        (ACCEPTED, {"folder": "notes"}, {}, {"folder": "notes", "lines": 3}, REPORTS),
        (UNSUPPORTED, {}, {}, {"folder": "docs", "lines": 2}, ["ask", *REPORTS]),
        (DECLINED, {}, {}, "cancelled", ["ask"]),
        (ACCEPTED, {"folder": "gone"}, {"MCP_ELICIT_SUPPORTED": "0"}, "No folder gone", []),
    ],
    ids=["asks", "was told", "cannot ask", "is refused", "finds nothing"],
)
def test_the_whole_example_asks_reports_and_answers(
    counting: Bench, answer: str, arguments: dict[str, object], env: dict[str, str], result: object, said: list[str]
) -> None:
    counting.answer = lambda _: answer
    run = counting.shell(whole_example(), arguments, **env)
    content = run.result["structuredContent"]
    assert run.exit_code == 0
    if content["success"]:
        assert content["result"] == result
        assert [line.get("method", "ask") for line in run.lines] == said
    else:
        assert result in content["error"].values()


def test_raw_arguments_come_from_the_environment(either: Bench) -> None:
    assert json.loads(either.shell("mcp_args_raw", {"a": 1}).stdout) == {"a": 1}


def test_raw_arguments_come_from_the_file_when_they_were_spilled(either: Bench) -> None:
    spilled = either.directory / "args.json"
    spilled.write_text('{"a":"from file"}', encoding="utf-8")
    run = either.shell("mcp_args_raw", MCP_TOOL_ARGS_JSON="", MCP_TOOL_ARGS_FILE=str(spilled))
    assert run.stdout == '{"a":"from file"}'


def test_a_filter_reads_spilled_arguments_of_any_size(full: Bench) -> None:
    spilled = full.directory / "args.json"
    spilled.write_text(json.dumps({"text": "x" * 300_000}), encoding="utf-8")
    run = full.shell("mcp_args_get '.text | length'", MCP_TOOL_ARGS_JSON="", MCP_TOOL_ARGS_FILE=str(spilled))
    assert run.stdout == "300000\n"


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        ("mcp_args_get .name", "Ada\n"),
        ("mcp_args_get .absent", "null\n"),
        ("mcp_args_get .object", '{"a":[1,2]}\n'),
        ("mcp_args_get '.name, .count'", "Ada\n3\n"),
        ("mcp_args_get .absent --default 'a \"b\"'", 'a "b"\n'),
        ("mcp_args_get .nothing --default x", "x\n"),
        ("mcp_args_get .no --default x", "false\n"),
        ("mcp_args_get .blank --default x", "\n"),
        ("mcp_args_get '.name # remark' --default x", "Ada\n"),
        ("mcp_args_get .name whatever else", "Ada\n"),
    ],
)
def test_args_get_prints_what_the_filter_finds(full: Bench, call: str, printed: str) -> None:
    arguments = {"name": "Ada", "count": 3, "object": {"a": [1, 2]}, "nothing": None, "no": False, "blank": ""}
    run = full.shell(call, arguments)
    assert (run.exit_code, run.stdout) == (0, printed)


def test_args_get_warns_and_fails_when_the_filter_fails(full: Bench) -> None:
    run = full.shell("mcp_args_get .name.first || echo status $?", {"name": "Ada"})
    assert re.fullmatch(r"status [1-9]\n", run.stdout)
    assert "mcp_args_get: cannot read .name.first" in run.stderr


def test_args_get_without_a_json_tool_warns_and_fails(minimal: Bench) -> None:
    run = minimal.shell("mcp_args_get .name", {"name": "Ada"})
    assert (run.exit_code, run.stdout) == (1, "")
    assert "no JSON tool" in run.stderr


def test_meta_get_reads_the_request_metadata(full: Bench) -> None:
    assert full.shell("mcp_meta_raw; mcp_meta_get .k", MCP_TOOL_META_JSON='{"k":"v"}').stdout == '{"k":"v"}\nv\n'


def test_auth_get_reads_who_calls(full: Bench) -> None:
    read = 'mcp_auth_raw; mcp_auth_get .sub; mcp_auth_get .gone --default "no claim"'
    assert full.shell(read, MCP_AUTH_JSON='{"sub":"ada"}').stdout == '{"sub":"ada"}\nada\nno claim\n'
    assert full.shell("mcp_auth_raw; mcp_auth_get .sub --default nobody").stdout == "{}\nnobody\n"


def test_auth_get_reads_no_file(full: Bench) -> None:
    (full.directory / "claims").write_text('{"sub":"root"}', encoding="utf-8")
    run = full.shell("mcp_auth_get .sub", MCP_AUTH_JSON='{"sub":"ada"}', MCP_AUTH_FILE=str(full.directory / "claims"))
    assert run.stdout == "ada\n"


def test_require_prints_the_value(full: Bench) -> None:
    assert full.shell('v=$(mcp_args_require .v); echo "<$v>"', {"v": "null"}).stdout == "<null>\n"


@pytest.mark.parametrize("arguments", [{}, {"v": None}, {"v": ""}])
def test_require_ends_the_tool_when_the_value_is_missing(full: Bench, arguments: dict[str, object]) -> None:
    run = full.shell("v=$(mcp_args_require .v)\necho went on", arguments)
    assert (run.exit_code, run.stdout, run.error) == (1, "", failure(".v is required"))
    assert run.stderr == ".v is required\n"


@pytest.mark.parametrize(
    ("value", "printed"),
    [(True, "true"), (1, "true"), ("true", "true"), (False, "false"), (0, "false"), ("yes", "false"), (2, "false")],
)
def test_bool_is_true_for_true_and_one(full: Bench, value: object, printed: str) -> None:
    assert full.shell("mcp_args_bool .flag", {"flag": value}).stdout == printed + "\n"


@pytest.mark.parametrize(("default", "printed"), [("true", "true"), ("1", "true"), ("false", "false"), ("no", "false")])
def test_bool_falls_back_to_its_default(either: Bench, default: str, printed: str) -> None:
    assert either.shell(f"mcp_args_bool .flag --default {default}").stdout == printed + "\n"


def test_bool_without_value_and_default_ends_the_tool(full: Bench) -> None:
    run = full.shell("mcp_args_bool .flag")
    assert (run.exit_code, run.error) == (1, failure(".flag is required"))


@pytest.mark.parametrize("call", ["mcp_args_bool .v", "mcp_args_int .v"])
def test_typed_arguments_without_a_json_tool_need_a_default(minimal: Bench, call: str) -> None:
    assert minimal.shell(call, {"v": 1}).error == failure(".v requires JSON tooling or a default")


@pytest.mark.parametrize(
    ("value", "options", "printed"),
    [(5, "", "5"), (-5, "--min -5", "-5"), ("08", "--min 8 --max 9", "08"), (None, "--default 7 --max 7", "7")],
)
def test_int_prints_integers_within_bounds(full: Bench, value: object, options: str, printed: str) -> None:
    assert full.shell(f"mcp_args_int .n {options}", {"n": value}).stdout == printed + "\n"


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (None, "", ".n is required"),
        (1.5, "", ".n must be an integer"),
        ("five", "", ".n must be an integer"),
        (True, "", ".n must be an integer"),
        (0, "--min 1", ".n must be >= 1"),
        (11, "--max 10", ".n must be <= 10"),
        (None, "--default 11 --max 10", ".n must be <= 10"),
        (None, "--default x", ".n must be an integer"),
        ("9" * 30, "--max 10", ".n is out of range"),
        (5, "--min 3 --max 2", "mcp_args_int: --min cannot exceed --max"),
        (5, "--min x", "mcp_args_int: --min must be an integer"),
        (5, "--max", "mcp_args_int: --max needs a value"),
    ],
)
def test_int_ends_the_tool_for_what_it_cannot_accept(full: Bench, value: object, options: str, message: str) -> None:
    run = full.shell(f"mcp_args_int .n {options}\necho went on", {"n": value})
    assert (run.exit_code, run.error) == (1, failure(message))
    assert "went on" not in run.stdout


def test_an_unknown_option_is_reported_and_ignored(full: Bench) -> None:
    run = full.shell("mcp_args_int .n --step 2", {"n": 4})
    assert (run.exit_code, run.stdout) == (0, "4\n")
    assert "mcp_args_int: ignored --step" in run.stderr


def test_text_is_printed_as_it_stands(either: Bench) -> None:
    assert either.shell(r"mcp_emit_text $'%s \\n -n\n\n'").stdout == "%s \\n -n\n\n"


def test_json_is_compacted_when_valid_and_left_alone_otherwise(full: Bench) -> None:
    run = full.shell("mcp_emit_json '{ \"a\" : [ 1 ] }'; mcp_emit_json '{a}'; mcp_emit_json '1 2'")
    assert run.stdout == '{"a":[1]}\n{a}\n1 2\n'


@pytest.mark.parametrize("value", [{"a": [1, None, 'ü " \\ \n']}, [], "text", 0, False, None])
def test_success_wraps_one_value(either: Bench, value: object) -> None:
    run = either.shell('mcp_result_success "$VALUE"', VALUE=json.dumps(value, indent=1))
    envelope = {"success": True, "result": value}
    assert run.stdout.count("\n") == 1
    assert run.result["structuredContent"] == envelope
    assert run.result["isError"] is False
    [content] = run.result["content"]
    assert (content["type"], json.loads(content["text"])) == ("text", envelope)


@pytest.mark.parametrize(
    ("value", "summary"),
    [
        ([1, 2, 3], "Success: array with 3 items"),
        ({"a": 1, "b": 2}, "Success: object with 2 keys"),
        ("ü" * 200, "Success: " + "ü" * 100),
        (123456, "Success: 123456"),
    ],
)
def test_success_summarises_what_is_too_long_for_the_text(full: Bench, value: object, summary: str) -> None:
    run = full.shell('mcp_result_success "$VALUE" 10', VALUE=json.dumps(value))
    assert run.result["content"] == [{"type": "text", "text": summary}]
    assert run.result["structuredContent"]["result"] == value


@pytest.mark.parametrize(
    ("call", "configured", "is_whole"),
    [
        ('mcp_result_success "[1]"', "", True),
        ('mcp_result_success "[1]"', "5", False),
        ('mcp_result_success "[1]" 500', "5", True),
        ('mcp_result_success "[1]" many', "5", False),
        ('mcp_result_success "[1]"', "many", True),
        ('mcp_result_success "[1]" 29', "", True),
        ('mcp_result_success "[1]" 28', "", False),
    ],
)
def test_the_text_limit_is_argument_then_setting_then_default(
    either: Bench, call: str, configured: str, is_whole: bool
) -> None:
    run = either.shell(call, MCPBASH_MAX_TEXT_BYTES=configured)
    whole = ('{"success":true,"result":[1]}', '{"result":[1],"success":true}')  # gojq sorts
    assert (run.result["content"][0]["text"] in whole) is is_whole


@pytest.mark.parametrize("data", ["''", "'  '"])
def test_success_of_nothing_is_an_error(either: Bench, data: str) -> None:
    run = either.shell(f"mcp_result_success {data}")
    message = "Empty data passed to mcp_result_success"
    assert run.exit_code == 0
    assert run.result["isError"] is True
    assert run.result["content"][0]["text"] == message
    assert run.result["structuredContent"]["error"] == {"type": "internal_error", "message": message}


def test_success_of_invalid_json_is_an_error_and_the_script_goes_on(full: Bench) -> None:
    run = full.shell("mcp_result_success '{x' >&2; echo went on")
    result = json.loads(run.stderr)
    assert run.stdout == "went on\n"
    assert result["isError"] is True
    assert result["structuredContent"]["error"] == {
        "type": "internal_error",
        "message": "Invalid JSON passed to mcp_result_success",
    }


def test_success_of_several_values_is_an_error_that_counts_them(full: Bench) -> None:
    result = full.shell("mcp_result_success '1 2 3'").result
    assert result["isError"] is True
    assert result["content"][0]["text"] == "Error: input must be single JSON value"
    assert result["structuredContent"]["error"] == {
        "type": "internal_error",
        "message": "Input contained multiple JSON values",
        "count": 3,
    }


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, {"type": "internal_error", "message": "Unknown error"}),
        ({"type": "gone", "message": "No such row", "row": 5}, {"type": "gone", "message": "No such row", "row": 5}),
        ({"message": None, "type": "x"}, {"type": "x", "message": "Unknown error"}),
    ],
)
def test_an_error_object_is_completed(full: Bench, given: object, error: dict[str, object]) -> None:
    run = full.shell('mcp_result_error "$GIVEN"', GIVEN=json.dumps(given))
    assert run.exit_code == 0
    assert run.result == {
        "content": [{"type": "text", "text": error["message"]}],
        "structuredContent": {"success": False, "error": error},
        "isError": True,
    }


@pytest.mark.parametrize("raw", ["", "[1]", "{x", "{} {}", 'disk "full"'])
def test_an_error_that_is_no_object_is_kept_raw(full: Bench, raw: str) -> None:
    result = full.shell('mcp_result_error "$RAW"', RAW=raw).result
    assert result["isError"] is True
    assert result["structuredContent"]["error"]["type"] == "internal_error"
    assert result["structuredContent"]["error"]["raw"] == raw


def test_mcp_error_builds_the_error_from_its_parts(either: Bench) -> None:
    run = either.shell(
        'mcp_error denied "$UGLY" --hint \'Ask "root"\' --data \'{ "row": 5 }\'\necho went on >&2', UGLY=UGLY
    )
    assert (run.exit_code, run.stderr) == (0, "went on\n")
    assert run.result["isError"] is True
    assert run.result["content"] == [{"type": "text", "text": f'{UGLY}\nHint: Ask "root"'}]
    assert run.result["structuredContent"]["error"] == {
        "type": "denied",
        "message": UGLY,
        "hint": 'Ask "root"',
        "data": {"row": 5},
    }


def test_mcp_error_logs_a_warning_only_with_a_hint(either: Bench) -> None:
    assert either.shell("mcp_error denied no").lines == []
    [params] = either.shell("mcp_error denied no --hint ask").params
    assert (params["level"], params["logger"], params["data"]) == ("warning", "bench", "denied: no (ask)")


def test_embedded_resources_are_listed_for_the_server(either: Bench) -> None:
    (either.directory / "a b.txt").write_text("hello", encoding="utf-8")
    (either.directory / "b").write_text("hello", encoding="utf-8")
    first = "--path 'a b.txt' --mime text/x-a --uri ui://a"
    run = either.shell(f'mcp_result_text_with_resource \'{{"ok":true}}\' {first} --path "$PWD/b" --mime text/x-b')
    assert run.result["structuredContent"] == {"success": True, "result": {"ok": True}}
    assert run.resources == [
        {"path": str(either.directory / "a b.txt"), "mimeType": "text/x-a", "uri": "ui://a"},
        {"path": str(either.directory / "b"), "mimeType": "text/x-b"},
    ]


def test_unreadable_resources_are_skipped_with_a_warning(either: Bench) -> None:
    run = either.shell("mcp_result_text_with_resource 1 --path gone --path '' --path .")
    assert run.result["isError"] is False
    assert run.resources == []
    assert [params["level"] for params in run.params] == ["warning"] * 3


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("mcp_fail -32001 'Not now'", failure("Not now", -32001)),
        ("mcp_fail 7", failure("Tool failed", 7)),
        ("mcp_fail oops 'Not now'", failure("Not now", -32603)),
        ("mcp_fail 007 x", failure("x", -32603)),
        ("mcp_fail", failure("Tool failed", -32603)),
        ("mcp_fail_invalid_args", failure("Invalid params")),
        ("mcp_fail_invalid_args 'Bad \"x\"'", failure('Bad "x"')),
    ],
)
def test_fail_tells_the_server_and_ends_the_script(either: Bench, call: str, error: dict[str, object]) -> None:
    run = either.shell(f"{call}\necho went on")
    assert run.exit_code == 1
    assert run.error == run.result == error
    assert run.stderr == f"{error['message']}\n"


def test_fail_still_speaks_on_stdout_when_the_error_file_cannot_be_written(either: Bench) -> None:
    run = either.shell("mcp_fail 7 no", MCP_TOOL_ERROR_FILE="/nonexistent/error.json")
    assert (run.exit_code, run.result, run.stderr) == (1, failure("no", 7), "no\n")


@pytest.mark.parametrize("text", ["", "plain", UGLY, UGLY * 100, "&\\&" * 1000], ids=str.__len__)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_escaping_survives_the_round_trip(either: Bench, text: str, locale: str) -> None:
    assert json.loads(either.shell('mcp_json_escape "$TEXT"', TEXT=text, LANG=locale).stdout) == text


def test_every_control_character_is_escaped(either: Bench) -> None:
    text = "".join(map(chr, range(1, 128)))
    assert json.loads(either.shell('mcp_json_escape "$TEXT"', TEXT=text).stdout) == text


def test_objects_and_arrays_hold_strings(either: Bench) -> None:
    run = either.shell("mcp_json_obj; mcp_json_obj 'a\"' 1 b ''; mcp_json_arr; mcp_json_arr 1 'x y' '\"'")
    assert run.stdout == '{}{"a\\"":"1","b":""}[]["1","x y","\\""]'


def test_an_object_of_an_odd_count_ends_the_script(either: Bench) -> None:
    run = either.shell("mcp_json_obj a 1 b\necho went on")
    assert (run.exit_code, run.stdout) == (1, "")
    assert "mcp_json_obj" in run.stderr


@pytest.mark.parametrize(
    ("text", "is_valid"), [("{}", True), ("null", True), ("false", True), ("", False), ("1 2", False), ("{x", False)]
)
def test_valid_means_exactly_one_value(full: Bench, text: str, is_valid: bool) -> None:
    assert full.shell(f"mcp_is_valid_json '{text}' && echo yes || echo no").stdout == ("yes\n" if is_valid else "no\n")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_length_is_counted_in_bytes(either: Bench, locale: str) -> None:
    assert either.shell("mcp_byte_length 'aü🎈'; mcp_byte_length ''", LANG=locale).stdout == "7\n0\n"


@pytest.mark.parametrize(
    ("arguments", "params"),
    [
        ("50 half 200", {"progress": 50, "total": 200, "message": "half"}),
        ("150 over", {"progress": 100, "message": "over"}),
        ("99999999999999999999 over", {"progress": 100, "message": "over"}),
        ("-1 below", {"progress": 0, "message": "below"}),
        ("3.5 part", {"progress": 0, "message": "part"}),
        ("008 eight", {"progress": 8, "message": "eight"}),
        ("10 total null", {"progress": 10, "message": "total"}),
        ("10", {"progress": 10}),
    ],
)
def test_progress_is_a_whole_percentage(either: Bench, arguments: str, params: dict[str, object]) -> None:
    run = either.shell(f"mcp_progress {arguments}")
    expected = {"total": 100, **params}  # so that clients can draw a bar
    assert run.lines == [{"jsonrpc": "2.0", "method": "notifications/progress", "params": expected}]


@pytest.mark.parametrize(("token", "written"), [("7", 7), ("abc", "abc"), ('a"b', 'a"b'), ("007", "007")])
def test_progress_carries_the_token(either: Bench, token: str, written: object) -> None:
    assert either.shell("mcp_progress 1 x", MCP_PROGRESS_TOKEN=token).params[0]["progressToken"] == written


def test_progress_messages_may_hold_any_text(either: Bench) -> None:
    assert either.shell('mcp_progress 1 "$UGLY"', UGLY=UGLY).params[0]["message"] == UGLY


def test_log_lines_carry_level_logger_and_data(either: Bench) -> None:
    run = either.shell("mcp_log NOTICE 'my \"logger\"' $'{\\n  \"a\": 1\\r\\n}'")
    assert run.lines == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "notice", "logger": 'my "logger"', "data": {"a": 1}},
        }
    ]


def test_an_unknown_level_is_info_with_a_warning(either: Bench) -> None:
    run = either.shell("mcp_log loud x 1")
    assert run.params[0]["level"] == "info"
    assert "unknown level loud" in run.stderr


def test_parallel_writers_do_not_mix_their_lines(either: Bench) -> None:
    run = either.shell('for i in {1..20}; do mcp_log_info x "$(printf \'%01000d\' "$i")" & done; wait')
    assert sorted(int(params["data"]) for params in run.params) == list(range(1, 21))


SPEAK = "mcp_progress 1 x; mcp_log_info x y; echo went on"


def test_a_server_that_has_gone_does_not_stop_the_script(either: Bench) -> None:
    run = either.shell(SPEAK, is_heard=False)
    assert (run.exit_code, run.stdout, run.stderr) == (0, "went on\n", "")


def test_a_closed_descriptor_does_not_stop_the_script(either: Bench) -> None:
    run = either.shell(f"exec 97>&-; {SPEAK}")
    assert (run.exit_code, run.stdout, run.stderr, run.lines) == (0, "went on\n", "", [])


def test_debug_lines_are_appended_with_the_time(either: Bench) -> None:
    either.shell("IFS=,; mcp_debug one two; mcp_debug three")
    assert re.fullmatch(
        r"\[\d\d:\d\d:\d\d\] one two\n\[\d\d:\d\d:\d\d\] three\n", either.debug_log.read_text(encoding="utf-8")
    )


def test_cancelled_is_when_the_file_exists(either: Bench) -> None:
    ask = "if mcp_is_cancelled; then echo yes; else echo no; fi"
    assert either.shell(ask).stdout == "no\n"
    either.cancel_file.touch()
    assert either.shell(ask).stdout == "yes\n"


RUN = "mcp_run_with_progress --pattern"
PERCENT = f"{RUN} '([0-9.]+)%' --extract match1"


def reports(run: Run) -> list[object]:
    return [params["progress"] for params in run.params]


@pytest.mark.parametrize(
    ("options", "lines", "values"),
    [
        ("'([0-9.]+)%' --extract match1", "10% 45.9% 250% .%", [10, 45, 100, 100]),
        ("'([0-9]*)%' --extract match1", "08% %", [8, 8]),
        ("'at_([0-9.]+)' --extract match1 --total 50", "at_10 at_12.5 at_50", [20, 25, 100]),
        ("'us=([0-9]+)' --extract match1 --total 7200000000", "us=3600000000", [50]),
        ("'([0-9]+)/([0-9]+)' --extract ratio", "1/3 2/3 3/3 1/0", [33, 66, 100, 100]),
        ("'[0-9]+%' --extract match1", "10%", [0]),
    ],
)
def test_a_matching_line_becomes_progress(minimal: Bench, options: str, lines: str, values: list[int]) -> None:
    run = minimal.shell(f"{RUN} {options} -- bash -c 'printf \"%s\\n\" {lines} >&2'")
    assert run.exit_code == 0
    assert reports(run) == values
    assert [params["message"] for params in run.params] == lines.split()


def test_a_json_line_carries_progress_and_message(full: Bench) -> None:
    events = [{"progress": 5.9, "message": "a\nb"}, {"progress": "20"}, {"step": 3, "message": "on"}, {"progress": 700}]
    text = "".join(json.dumps(event) + "\n" for event in events) + '{"progress": 1'
    run = full.shell(f"{RUN} '^\\{{' -- bash -c 'printenv TEXT >&2'", TEXT=text)
    assert [(params["progress"], params["message"]) for params in run.params] == [
        (5, "a b"),
        (20, "Working..."),
        (20, "on"),
        (100, "Working..."),
        (100, "Working..."),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-- true", "--pattern is required"),
        ("--pattern", "--pattern needs a value"),
        ("--pattern '(' --extract match1 -- true", "--pattern is not a regular expression: ("),
        ("--pattern x --extract loud -- true", "unknown extract mode loud"),
        ("--pattern x -- true", "--extract json needs a JSON tool"),
        ("--pattern x --extract match1 --total 0 -- true", "--total must be positive integer"),
        ("--pattern x --extract match1 --total 1.5 -- true", "--total must be positive integer"),
        ("--pattern x --extract match1 --interval 0.0 -- true", "--interval must be a positive number"),
        ("--pattern x --extract match1 --interval soon -- true", "--interval must be a positive number"),
        ("--pattern x --extract match1 --stdout /nonexistent/f -- true", "cannot write /nonexistent/f"),
        ("--pattern x --extract match1 --progress-file /nonexistent/f -- true", "cannot write /nonexistent/f"),
        ("--pattern x --extract match1 --loud -- true", "unknown option --loud"),
        ("--pattern x --extract match1 --", "a command is required"),
    ],
)
def test_a_misused_run_starts_nothing(minimal: Bench, arguments: str, message: str) -> None:
    run = minimal.shell(f"mcp_run_with_progress {arguments} || echo status $?")
    assert (run.stdout, run.stderr) == ("status 1\n", f"mcp_run_with_progress: {message}\n")


def test_the_status_of_a_run_is_that_of_the_command(minimal: Bench) -> None:
    body = "for command in true 'exit 7' 'kill -9 $$' nonexistent; do"
    run = minimal.shell(f'{body} {PERCENT} -- bash -c "$command" && echo 0 || echo $?; done; {PERCENT} false; echo on')
    assert (run.exit_code, run.stdout, run.stderr) == (1, "0\n7\n137\n127\n", "")


def test_a_command_may_be_a_function_with_its_own_variables(minimal: Bench) -> None:
    body = 'pattern=mine; work() { echo "50%" >&2; echo "$pattern $*"; false; echo went on; }'
    run = minimal.shell(f"{body}; {PERCENT} -- work a 'b c'; echo went on")
    assert (run.exit_code, run.stdout, reports(run)) == (1, "mine a b c\n", [50])


CHATTER = "bash -c 'echo one >&2; echo 5% >&2; printf two >&2'"


def test_other_lines_go_to_the_stderr_file_and_the_debug_log(minimal: Bench) -> None:
    run = minimal.shell(f"{PERCENT} --stderr-file err -- {CHATTER}")
    assert (run.stderr, reports(run)) == ("", [5])
    assert (minimal.directory / "err").read_text(encoding="utf-8") == "one\ntwo\n"
    assert re.sub(r"\[.*?\]", "", minimal.debug_log.read_text(encoding="utf-8")) == " one\n two\n"


def test_the_status_arrives_whole_however_short_the_interval(minimal: Bench) -> None:
    """The clock could strike between two characters of the status; a success became a failure, now and then."""
    run = minimal.shell(
        f"for _ in {{1..25}}; do {PERCENT} --interval 0.001 -- bash -c 'sleep 0.01; exit 143' || echo $?; done"
    )
    assert run.stdout == "143\n" * 25


def test_progress_comes_from_a_file_that_is_followed(minimal: Bench) -> None:
    """The command goes on when its first report has been heard: it was heard while the command ran."""
    (minimal.directory / "p").write_text("99%\n", encoding="utf-8")
    stream = minimal.directory / "stream"
    script = "echo 10% >p; until grep -q 10 stream; do sleep 0.01; done; echo 90% >>p; printf 95%% >>p; echo 3% >&2"
    run = minimal.shell(
        f"{PERCENT} --progress-file p --interval 0.01 --stderr-file err -- bash -c '{script} 2>/dev/null' && "
        f"{PERCENT} --progress-file q --stderr-file err -- {CHATTER}",
        MCP_PROGRESS_STREAM=str(stream),
    )
    lines = [json.loads(line)["params"]["progress"] for line in stream.read_text(encoding="utf-8").splitlines()]
    assert (run.exit_code, lines) == (0, [10, 90, 95])
    assert (minimal.directory / "err").read_text(encoding="utf-8") == "one\n5%\ntwo\n"


@pytest.mark.parametrize("option", ["", "--progress-file bar"])
def test_a_bar_that_is_redrawn_is_read_while_it_grows(minimal: Bench, option: str) -> None:
    """It was one line, of which the first number counted, at its end. Here it goes on only when it was heard."""
    stream = minimal.directory / "stream"
    target = "bar" if option else "/dev/stderr"
    body = f"""work() {{
      printf 'begin\\r10%%\\r' >>{target}
      until [[ -s stream ]]; do sleep 0.01; done
      printf '20%%\\r30%%\\r\\nend\\r\\n' >>{target}
    }}
    {PERCENT} {option} --stderr-file err -- work"""
    run = minimal.shell(body, MCP_PROGRESS_STREAM=str(stream))
    lines = [json.loads(line)["params"]["progress"] for line in stream.read_text(encoding="utf-8").splitlines()]
    assert (run.exit_code, lines) == (0, [10, 20, 30])
    assert (minimal.directory / "err").read_text(encoding="utf-8") == ("" if option else "begin\nend\n")


def test_large_output_on_both_streams_does_not_block(minimal: Bench) -> None:
    half = "head -c 200000 /dev/zero | tr '\\0' x | fold -w 99"
    minimal.shell(f"big() {{ {half}; {half} >&2; }}; {PERCENT} --quiet --stdout out --stderr-file err -- big")
    assert [(minimal.directory / name).stat().st_size // 1000 for name in ("out", "err")] == [202, 202]


def test_a_job_left_behind_does_not_hold_the_run(minimal: Bench) -> None:
    run = minimal.shell(f"{PERCENT} -- bash -c 'sleep 600 >/dev/null 97>&- & echo $!'; echo on")
    os.kill(int(run.stdout.split()[0]), 9)
    assert run.stdout.endswith("\non\n")


def test_a_server_that_has_gone_does_not_stop_a_run(either: Bench) -> None:
    run = either.shell(f"{PERCENT} -- bash -c 'echo 5% >&2; exit 3' || echo $?", is_heard=False)
    assert (run.stdout, run.stderr) == ("3\n", "")


@pytest.mark.parametrize("trap", ["", "trap : TERM;"])
def test_a_cancelled_run_is_stopped_with_its_children(minimal: Bench, trap: str) -> None:
    pids, scratch = minimal.directory / "pids", minimal.directory / "scratch"
    scratch.mkdir()
    canceller = threading.Thread(target=lambda: eventually(pids.exists) and minimal.cancel_file.touch())
    canceller.start()
    script = f"{trap} sleep 600 & echo $$ $! >p; mv p pids; while :; do sleep 0.1; done"
    run = minimal.shell(f"{PERCENT} -- bash -c '{script}' || echo status $?", TMPDIR=str(scratch))
    canceller.join()
    assert (run.stdout, run.stderr) == ("status 130\n", "")
    assert not any(map(is_alive, pids.read_text(encoding="utf-8").split()))
    assert list(scratch.iterdir()) == []


def test_a_call_that_is_cancelled_already_starts_nothing(minimal: Bench) -> None:
    minimal.cancel_file.touch()
    assert minimal.shell(f"{PERCENT} -- echo started || echo status $?").stdout == "status 130\n"


def test_a_run_with_progress_outlives_the_timeout_of_its_tool(project: ProjectBuilder, start: Start) -> None:
    script = """source "${MCP_SDK:?}/tool-sdk.sh"
      work() { for n in 1 2 3 4 5 6 7; do echo "progress=$((n * 10))" >&2; sleep 0.4; done; echo done; }
      mcp_run_with_progress --pattern 'progress=([0-9]+)' --extract match1 -- work"""
    project.tool("steady", script, timeoutSecs=2, progressExtendsTimeout=True)
    client = start().greeted()

    result = client.call_tool("steady", _meta={"progressToken": "t"})

    assert text_of(result) == "done\n"
    values = [notice["params"]["progress"] for notice in client.notices("notifications/progress")]
    assert values == [10, 20, 30, 40, 50, 60, 70]


def test_roots_are_listed_and_counted(either: Bench) -> None:
    assert either.shell("mcp_roots_list; mcp_roots_count").stdout == "0\n"
    either.roots(Path("/a b"), Path("/c"))
    assert either.shell("mcp_roots_list; mcp_roots_count").stdout == "/a b\n/c\n2\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a link that leads out, one that leads to itself, and a neighbour with the same prefix."""
    root = tmp_path / "root[1]"
    (root / "inner").mkdir(parents=True)
    (tmp_path / "root[1]-neighbour").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "entry").symlink_to(root)
    (root / "exit").symlink_to("../outside")
    (root / "absolute").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to("loop")
    (root / "back").symlink_to("inner/../inner")
    return root


INSIDE = ["{root}", "{root}/", "{root}/inner/new/file", "{root}//./inner/..", "{root}/back/x", "{root}/../entry/inner"]
OUTSIDE = [
    "",
    "/",
    "{root}/..",
    "{root}/exit",
    "{root}/exit/../x",
    "{root}/absolute/f",
    "{root}-neighbour",
    "{root}/loop",
]


@pytest.mark.parametrize(("path", "is_inside"), [(path, True) for path in INSIDE] + [(path, False) for path in OUTSIDE])
def test_containment_follows_links(either: Bench, tree: Path, path: str, is_inside: bool) -> None:
    either.roots(Path("/nonexistent"), tree)
    run = either.shell('mcp_roots_contains "$P" && echo in || echo out', P=path.format(root=tree))
    assert run.stdout == ("in\n" if is_inside else "out\n")


@pytest.mark.parametrize("path", ["/proc", "/proc/self/environ", "/sys/x", "/dev/null"])
def test_the_root_of_all_contains_everything_but_the_kernels_files(either: Bench, path: str) -> None:
    either.roots(Path("/"))
    inside = " && ".join(f"mcp_roots_contains {each}" for each in ("/", "/etc/passwd", "/dev2"))
    assert either.shell(f"mcp_roots_contains {path} || echo out; {inside} && echo in").stdout == "out\nin\n"


def test_require_path_prints_the_physical_path(full: Bench, tree: Path) -> None:
    full.roots(tree)
    run = full.shell("mcp_require_path .p", {"p": f"{tree}/../entry/./inner/new file"})
    assert run.stdout == f"{os.path.realpath(tree)}/inner/new file\n"


@pytest.mark.parametrize(
    ("root_count", "options", "path", "message"),
    [
        (1, "", "", ".p is required"),
        (0, "--default-to-single-root", "", ".p is required when zero or multiple roots are configured"),
        (2, "--default-to-single-root", "", ".p is required when zero or multiple roots are configured"),
        (1, "", "/etc/passwd", ".p is outside configured MCP roots"),
        (1, "", "root[1]/exit/x", ".p is outside configured MCP roots"),
        (1, "", "root[1]/loop", ".p leads through too many symbolic links"),
    ],
)
def test_require_path_ends_the_tool_for_what_it_cannot_accept(
    full: Bench, tree: Path, root_count: int, options: str, path: str, message: str
) -> None:
    full.roots(*[tree, tree / "inner"][:root_count])
    run = full.shell(f"p=$(mcp_require_path .p {options})\necho went on", {"p": path})
    assert (run.exit_code, run.stdout, run.error) == (1, "", failure(message))


def test_require_path_without_a_json_tool_never_guesses(minimal: Bench, tree: Path) -> None:
    minimal.roots(tree)
    run = minimal.shell("mcp_require_path .p --default-to-single-root", {"p": "/x"})
    assert (run.exit_code, run.error) == (1, failure(".p requires JSON tooling"))
