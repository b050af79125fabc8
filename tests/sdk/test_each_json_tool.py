"""Whatever the shell SDK has a JSON tool do, with each of them: jq, gojq and our own. The rest is tested with one."""

from __future__ import annotations

import json
from typing import Any

from .conftest import Bench, Run
from .test_shell_asking import ACCEPTED, CAPABLE, SEVERAL, SPOKEN, answered
from .test_shell_documents import LOAD
from .test_shell_sdk import RUN, UGLY, whole_example


def values(run: Run) -> list[Any]:
    assert run.exit_code == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_arguments_and_metadata(each: Bench) -> None:
    body = """mcp_args_get .object; mcp_args_get '.name, .count' ; mcp_args_get .absent --default "a \\"b\\""
      mcp_args_get '.name # remark' --default x; mcp_args_get .no --default x; mcp_args_get .name.first || echo failed
      mcp_args_require .name; mcp_args_bool .no; mcp_args_int .count --min 3; mcp_meta_get .k; mcp_require_path .path
      mcp_args_get '.long | length'"""
    arguments = {
        "name": UGLY,
        "count": 3,
        "object": {"a": [1, "ü"]},
        "no": False,
        "path": "/x/../y",
        "long": "ü" * 9999,
    }
    run = each.shell(body, arguments, MCP_TOOL_META_JSON='{"k":"v"}')
    assert run.exit_code == 0, run.stderr
    assert run.stdout == f'{{"a":[1,"ü"]}}\n{UGLY}\n3\na "b"\n{UGLY}\nfalse\nfailed\n{UGLY}\nfalse\n3\nv\n/y\n9999\n'


def test_values_are_checked_and_compacted(each: Bench) -> None:
    body = """for text in '{}' null false '' '1 2' '{x'; do mcp_is_valid_json "$text" && echo true || echo false; done
      mcp_emit_json '{ "a" : [ 1, "ü" ] }'"""
    assert values(each.shell(body)) == [True, True, True, False, False, False, {"a": [1, "ü"]}]


def test_results(each: Bench) -> None:
    body = """mcp_result_success "$VALUE"; mcp_result_success '[1,2,3]' 10; mcp_result_success '{"a":1}' 10
      mcp_result_success "\\"$(printf '%0200d' 0)\\"" 10; mcp_result_success 123456 3; mcp_result_success '{x'
      mcp_result_success '1 2 3'"""
    first, *others = values(each.shell(body, VALUE=json.dumps({"a": [1, None, UGLY]}, indent=1)))
    envelope = {"success": True, "result": {"a": [1, None, UGLY]}}
    assert first == {"content": first["content"], "structuredContent": envelope, "isError": False}
    assert json.loads(first["content"][0]["text"]) == envelope
    assert [result["content"][0]["text"] for result in others] == [
        "Success: array with 3 items",
        "Success: object with 1 keys",
        "Success: " + "0" * 100,
        "Success: 123456",
        "Invalid JSON passed to mcp_result_success",
        "Error: input must be single JSON value",
    ]
    assert others[-1]["structuredContent"]["error"]["count"] == 3


def test_results_larger_than_one_argument_may_be(each: Bench) -> None:
    run = each.shell('mcp_result_success "[\\"$(printf \'%0300000d\' 0)\\"]"')
    assert run.result["content"][0]["text"] == "Success: array with 1 items"


def test_errors(each: Bench) -> None:
    body = """mcp_result_error '{"type":"gone","message":"No row","row":5}'; mcp_result_error '{}'
      mcp_result_error '[1]'; mcp_error denied no --data '{ "row": 5 }'; mcp_error denied no --data '{x'
      mcp_fail 1 x '{ "a": 1 }'"""
    run = each.shell(body)
    *results, failure = [json.loads(line) for line in run.stdout.splitlines()]
    assert [result["structuredContent"]["error"] for result in results] == [
        {"type": "gone", "message": "No row", "row": 5},
        {"type": "internal_error", "message": "Unknown error"},
        {**results[2]["structuredContent"]["error"], "type": "internal_error", "raw": "[1]"},
        {"type": "denied", "message": "no", "data": {"row": 5}},
        {"type": "denied", "message": "no", "data": {"_invalid_json": "{x"}},
    ]
    assert failure == run.error == {"code": 1, "message": "x", "data": {"a": 1}}


def test_content(each: Bench) -> None:
    body = """mcp_result_resource_link file:///x n --text 'See "r"'
      mcp_result_text_with_resource '{"ok":true}' --path a"""
    (each.directory / "a").write_text("hello\n", encoding="utf-8")
    link, embedded = values(each.shell(body))
    assert [block["type"] for block in link["content"]] == ["text", "resource_link"]
    assert embedded["structuredContent"]["result"] == {"ok": True}


def test_progress_of_json_lines(each: Bench) -> None:
    events = [{"progress": 5.9, "message": "a\nb"}, {"progress": "20"}, {"step": 3, "message": "on"}, {"progress": 700}]
    text = "".join(json.dumps(event) + "\n" for event in events) + '{"progress": 1'
    run = each.shell(f"{RUN} '^\\{{' -- bash -c 'printenv TEXT >&2'", TEXT=text)
    said = [(params["progress"], params["message"]) for params in run.params]
    assert said == [(5, "a b"), (20, "Working..."), (20, "on"), (100, "Working..."), (100, "Working...")]


def test_reasons_of_programs(each: Bench) -> None:
    outputs = ['{"error":{"message":"deep"}}', '{"ok":false,"message":"not ok"}', '{"errors":["plain"]}', "{x", "[1]"]
    body = "".join(f"mcp_extract_cli_error '{output}' err 7; " for output in outputs)
    assert each.shell(body).stdout.splitlines() == ["deep", "not ok", "plain", "err", "err"]


def test_long_documents(each: Bench) -> None:
    body = """mcp_json_truncate '["üü","x"]' 10; mcp_json_truncate '{"d":{"i":[1,2,3,4]}}' 17 --array-path .d.i
      mcp_json_truncate '[1]' 5 --array-path .e; mcp_json_truncate '{x' 10; mcp_json_truncate '[1, 2]'"""
    found = values(each.shell(body))
    assert [(each["result"], each.get("kept"), each.get("error", {}).get("type")) for each in found] == [
        (["üü"], 1, None),
        ({"d": {"i": [1, 2]}}, 2, None),
        (None, None, "path_not_found"),
        (None, None, "invalid_json"),
        ([1, 2], 2, None),
    ]


def test_configuration(each: Bench) -> None:
    (each.directory / "c.json").write_text('{"b": {"file": 1}, "c": "file"}', encoding="utf-8")
    (each.directory / "e.json").write_text('{"a": "example", "b": "example"}', encoding="utf-8")
    reads = "mcp_config_get .a; mcp_config_get .b; mcp_config_get .c; mcp_config_get .z --default d; mcp_config_get .f"
    run = each.shell(f"{LOAD}; {reads}", MY_CONFIG='{"c": "variable"}')
    assert run.stdout == 'example\n{"file":1}\nvariable\nd\nfalse\n'


def test_questions(each: Bench) -> None:
    each.env.update(CAPABLE, MCP_ASK_REPLY=str(each.directory / "reply"))
    late = {"status": "timeout", "message": "9 s"}
    replies = {"question": answered(ACCEPTED), "name": answered(ACCEPTED), "sum": late}
    each.answer = lambda message: json.dumps({key: replies[key] for key in message["ask"] if key in replies})
    run = each.shell('mcp_elicit_confirm m; mcp_ask "$REQUESTS" || :', REQUESTS=json.dumps(SEVERAL))
    failed = {"status": "error", "message": "The server did not answer this question"}
    assert values(run) == [ACCEPTED, {"name": ACCEPTED, "sum": late, "roots": failed}]
    assert run.lines[1]["ask"] == {**SEVERAL, "roots": {"method": "roots/list", "params": {}}}
    replies["question"] = {"status": "timeout"}
    run = each.shell("mcp_elicit_confirm m || :; mcp_ask '{}' || :")
    assert values(run)[0]["reason"] == "timeout"
    run = each.shell('mcp_ask "$REQUESTS" || :', REQUESTS=json.dumps(SEVERAL), MCP_ASK_REPLY="")
    assert {key: value["status"] for key, value in run.result.items()} == dict.fromkeys(SEVERAL, "unsupported")


def test_sampling(each: Bench) -> None:
    each.env.update(CAPABLE, MCP_ASK_REPLY=str(each.directory / "reply"))
    each.answer = lambda _: json.dumps({"question": answered(SPOKEN)})
    run = each.shell("""mcp_sample '"6 * 7?"' 100 '{"systemPrompt": "Be brief"}'; mcp_sample '[]' 5 || echo $?""")
    assert values(run) == [SPOKEN, 2]
    assert run.lines[0]["ask"]["question"]["params"] == {
        "systemPrompt": "Be brief",
        "messages": [{"role": "user", "content": {"type": "text", "text": "6 * 7?"}}],
        "maxTokens": 100,
    }


def test_the_whole_example_of_the_page(each: Bench) -> None:
    (each.directory / "notes").mkdir()
    (each.directory / "notes" / "a.txt").write_text("x\n" * 3, encoding="utf-8")
    run = each.shell(whole_example(), {"folder": "notes"}, MCP_PROGRESS_TOKEN="t")
    assert run.result["structuredContent"]["result"] == {"folder": "notes", "lines": 3}


def test_at_the_desk_the_tool_is_found(each: Bench) -> None:
    run = each.shell("mcp_args_get .a", {"a": 1}, MCPBASH_JSON_TOOL="", MCPBASH_JSON_TOOL_BIN="", MCPBASH_MODE="")
    assert run.stdout == "1\n"
