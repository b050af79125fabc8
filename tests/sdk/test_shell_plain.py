"""Plain arguments and results of the shell SDK: without a process, they are the same as with a JSON tool."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from mcpgreen.running.scripts.environment import table_of
from mcpgreen.text import jsontext
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

from .conftest import ANY_TOOL, Bench
from .test_shell_sdk import UGLY

HOSTILE: dict[str, Any] = {
    "plain": "Ada",
    "empty": "",
    "null": None,
    "text_null": "null",
    "yes": True,
    "no": False,
    "text_false": "false",
    "zero": 0,
    "minus": -15,
    "large": 999_999_999_999_999,
    "larger": 10**15,
    "huge": 10**30,
    "half": 0.5,
    "whole": 1.0,
    "tiny": 1e-9,
    "command": "$(touch hit) `touch hit` ${x} $x ; touch hit & | > hit",
    "quotes": "'; touch hit; ' \" \\' \\\" \\\\ \\n \\x41 \\u0041 %s %b %d",
    "escape_at_end": "a\\",
    "newline": "a\nb\n\n",
    "newlines": "\n\n",
    "looks_like_a_row": "x\n.plain=sEve\n.plain=s",
    "looks_like_json": '{"plain":"Eve"}\n',
    "blanks": "  two  words\t",
    "glob": "* ? [a-z] ~ !",
    "option": "-n",
    "equals": "a=b=c",
    "ugly": UGLY.replace("\x7f", ""),
    "unicode": "ü€日😀\u2028\ufeff\uffff",
    "control": "".join(map(chr, range(1, 32))) + "\x80",
    "nul": "a\0b",
    "long": "x" * 1200,
    "list": ["a b", "", "it's\n", "*", 1, None, False, "$(touch hit)"],
    "items": [],
    "nested": [["x"], {"a": 1}],
    "object": {"a": "x", "b": {"c": {"d": {"e": 5}}}, "n": None, "dry-run": 1, "l": [1]},
    "plain.sub": "odd",
    "a=b": "odd",
    "x y": "odd",
    ".plain": "odd",
    "": "odd",
    "plain\nname": "odd",
    "Plain": "upper",
    "plai": "shorter",
    "plainer": "longer",
    "dry-run": True,
    "ünlich": "odd",
    "if": "keyword",
    "_under9": "x",
}
PATHS = """
    .plain .empty .null .text_null .yes .no .text_false .zero .minus .large .half .command .quotes .newline
    .escape_at_end .newlines .looks_like_a_row .looks_like_json .blanks .glob .option .equals .ugly .unicode
    .control .long .Plain .plai .plainer .if ._under9 .absent .absent.deeper .null.member .object.a
"""
ANSWERED = [
    *PATHS.split(),
    *(".object.b.c.absent", ".object.n.x", ".plain // empty", ".absent // empty", ".no // empty", ".null // 5"),
    *(".absent // true", ".zero // 7", '.absent // "World"', '.no // "x y, z!"', ".absent // null", ".no // false"),
    *(".text_false // empty", '.empty // "x"'),
]
ASKED = [
    *(".larger", ".huge", ".whole", ".tiny", ".nul", ".list", ".items", ".nested", ".object", ".object.b.c.d.e"),
    *(".plain.member", ".list.member", '.absent // "a\\tb"', ".absent // .plain", ".plain//1", ".absent // 007"),
    *(".", ".plain?", ".dry-run", '."dry-run"', '.["a=b"]', ".plain | length", ".1a", ".ünlich", ".plain.", "..plain"),
    *(".plain, .no", ".object[]", ".plain\t", " .plain", "empty", ".object.dry-run", ".Ünlich // 1"),
]
QUICK_TOOL = ANY_TOOL


def environment(arguments: dict[str, Any]) -> dict[str, str]:
    """The variables in which the server passes them on."""
    encoded = jsontext.dumps(arguments)
    return {"MCP_TOOL_ARGS_JSON": encoded.decode("ascii"), "MCP_TOOL_ARGS_TABLE": table_of(encoded).decode("ascii")}


def outcomes(bench: Bench, setup: str, loop: str, words: Sequence[str], **env: str) -> list[tuple[str, str]]:
    """What the lines do with each word, printed and status: first the plain way, then with a JSON tool. One bash takes
    many words, but not so many that it could take too long with a slow tool on a busy machine."""
    body = f"""{setup}
      attempt() {{ {loop}
      }}
      set +e
      while IFS= read -r -d '' word; do
        printf '%s\\0' "$(attempt 2>&1; printf 'status %s' "$?")"
        printf '%s\\0' "$(by_the_tool; attempt 2>&1; printf 'status %s' "$?")"
      done <words 2>/dev/null"""
    printed: list[str] = []
    for start in range(0, len(words), 15):
        some = "".join(f"{word}\0" for word in words[start : start + 15])
        (bench.directory / "words").write_text(some, encoding="utf-8")
        printed += bench.shell(body, **env).stdout.split("\0")[:-1]
    assert len(printed) == 2 * len(words)
    return list(zip(printed[::2], printed[1::2], strict=True))


def require_equal(words: Sequence[str], found: list[tuple[str, str]]) -> None:
    assert [(word, *pair) for word, pair in zip(words, found, strict=True) if pair[0] != pair[1]] == []


@pytest.fixture
def recording(full: Bench) -> Bench:
    """A host whose JSON tool does nothing but leave a trace."""
    tool = full.directory / "recorder"
    tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>"{full.directory}/asked"\nexit 1\n', encoding="utf-8")
    tool.chmod(0o755)
    full.env["MCPBASH_JSON_TOOL_BIN"] = str(tool)
    return full


def was_asked(bench: Bench) -> bool:
    return (bench.directory / "asked").exists()


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_plain_arguments_are_what_the_json_tool_prints(each: Bench, locale: str) -> None:
    env = environment(HOSTILE)
    assert env["MCP_TOOL_ARGS_TABLE"]
    filters = "".join(f"{each_filter}\0" for each_filter in ANSWERED)
    (each.directory / "filters").write_text(filters, encoding="utf-8")
    body = """while IFS= read -r -d '' filter; do mcp_args_get "$filter"; printf '<|>'; done <filters"""
    run = each.shell(body, **env, MCPBASH_JSON_TOOL_BIN="/bin/false", LANG=locale)
    program = ", ".join(f'(({each_filter}) | ., "\\n"), "<|>"' for each_filter in ANSWERED)
    tool = [each.env["MCPBASH_JSON_TOOL_BIN"], "-j", program]
    told = subprocess.run(
        tool, input=env["MCP_TOOL_ARGS_JSON"].encode(), env=each.env, stdout=subprocess.PIPE, check=True
    )
    expected = told.stdout.decode("utf-8").split("<|>")[:-1]
    pairs = zip(ANSWERED, run.stdout.split("<|>")[:-1], expected, strict=True)
    assert (run.exit_code, run.stderr) == (0, "")
    assert [pair for pair in pairs if pair[1] != pair[2]] == []


CALLS = [
    'mcp_args_get "$filter"',
    'mcp_args_get "$filter" --default "d  e"',
    'mcp_args_require "$filter"',
    'mcp_args_require "$filter" "Say it"',
    'mcp_args_bool "$filter" --default 1',
    'mcp_args_int "$filter" --min -20',
    'mcp_require_path "$filter" --allow-empty',
]


def test_every_call_has_the_same_outcome_with_and_without_the_table(full: Bench) -> None:
    """Values that would do harm if they were evaluated, and names that look like paths or rows."""
    words = [f"{CALLS[number % len(CALLS)]}\t{each}" for number, each in enumerate(ANSWERED)]
    setup = "by_the_tool() { unset MCP_TOOL_ARGS_TABLE; }"
    loop = "local call=${word%%$'\\t'*} filter=${word#*$'\\t'}\n(eval \"$call\")"
    found = outcomes(full, setup, loop, words, **environment(HOSTILE), MCPBASH_JSON_TOOL_BIN=QUICK_TOOL)
    require_equal(words, found)
    assert not (full.directory / "hit").exists()
    assert found[0][0] == "Ada\nstatus 0"  # they did look


def test_filters_and_values_that_are_not_plain_are_left_to_the_json_tool(recording: Bench) -> None:
    (recording.directory / "filters").write_text("".join(f"{each}\0" for each in ASKED), encoding="utf-8")
    body = """while IFS= read -r -d '' filter; do mcp_args_get "$filter" || :; done <filters"""
    run = recording.shell(body, **environment(HOSTILE))
    asked = (recording.directory / "asked").read_text(encoding="utf-8").splitlines()
    assert (run.exit_code, run.stdout) == (0, "")
    assert asked == [f"-rc --arg default  {each}" for each in ASKED]


PARSED = """\
# @arg name        Text
# @arg times=1 int
# @arg share=0.5 number
# @arg dry-run bool
# @arg tags=a,,b list
# @arg more=["c","d"] list
# @arg filter json
# @arg need!
"""
SETS: list[dict[str, Any]] = [
    {},
    {"need": ""},
    {"need": None},
    {"need": "x", "name": None, "times": None, "share": None, "dry-run": None, "tags": None, "filter": None},
    {"need": "x", "name": "$(touch hit)`touch hit`'\"\\", "times": 3, "share": 2.25, "dry-run": True, "more": []},
    {"need": "x", "tags": ["a b", "", "it's\n", "*", "\\", "\t", "$(touch hit)", 1, None, True], "more": ["x"]},
    {"need": "x", "tags": [], "more": "one", "filter": "text"},
    {"need": "x", "tags": "$(touch hit) one", "more": 5, "filter": 5},
    {"need": "x", "tags": [["x"]], "more": None},
    {"need": "x", "filter": {"times": 7, "name": "inner"}},
    {"need": "x", "filter": [1, "a"], "name": ["a", "b"], "more": []},
    {"need": {"a": 1}, "name": False, "times": "08", "more": []},
    {"need": "a\n\n", "name": "\n.need=sother", "times": 10**20, "share": 1e-7, "more": []},
    {"need": UGLY, "name": "ü😀", "times": 1.5, "share": -3, "more": []},
    {"need": "\0", "more": []},
    {"need": "x:o:j:a", "name": "a", "x.y": 1, "need=": 2, "more": ["o", "j"]},
]


def test_parsed_arguments_are_the_same_with_and_without_the_table(full: Bench) -> None:
    full.env["MCPBASH_JSON_TOOL_BIN"] = QUICK_TOOL
    words = ["\x1d".join(environment(arguments).values()) for arguments in SETS]
    setup = "by_the_tool() { has_table=; }; has_table=yes"
    loop = """MCP_TOOL_ARGS_JSON=${word%%$'\\035'*} MCP_TOOL_ARGS_TABLE=""
      [[ -z $has_table ]] || MCP_TOOL_ARGS_TABLE=${word#*$'\\035'}
      mcp_args_parse
      declare -p name times share dry_run tags more filter need"""
    found = outcomes(full, setup, loop, words, comments=PARSED)
    require_equal(words, found)
    assert not (full.directory / "hit").exists()
    assert [pair for pair in found if pair[0].endswith("status 0")]


def test_a_number_is_not_taken_from_an_inner_object(full: Bench) -> None:
    """An absent number was the one that an inner object had under the same name."""
    run = full.shell("mcp_args_parse; echo $times", {"need": "x", "filter": {"times": 7}}, comments=PARSED)
    assert run.stdout == "1\n"


PLAIN_TEXTS = [
    *("{}", "[]", '""', "0", "-5", "null", "true", '"text"', '{"a":"b"}', '["a","]"]'),
    *(
        ' {\n "a" : 1 ,\t"b": "x, }" }\n',
        "1" * 15,
        '"\\\\"',
        '"\\"\\n\\t\\r"',
        '"ü€日😀"',
        '{"type":"t","message":"m \\" x"}',
        '{"type":"t"}',
    ),
    *('{"message":"m"}', '{"type":5,"message":"m"}', '{"type":"t","message":null}', '{"a":"`touch hit`"}'),
    *('{"a":"x,","message":"m","type":"t"}', '{"a":",\\"message\\":\\"n\\"","type":"t"}', '"$(touch hit)"'),
    *(json.dumps(dict.fromkeys("abcdefgh" * 9)), json.dumps({f"k{number}": number for number in range(60)})),
]
TEXTS = [
    *PLAIN_TEXTS,
    *('{"a":1,"a":2}', '{"a":1,"b":2,"a":3}', '{"a":[1]}', '{"a":{}}', "[1]", '["a",1]', "{", "}", "[}", "{]", '{"a"}'),
    *('{"a":1,}', "{,}", '["a",]', "[,]", '{"a":1}}', '{"a":1} {}', '"a" "b"', "1 2", "", " ", "-", "-0", "01", "1.0"),
    *("1.5", "1e3", "1" * 16, "nul", "NULL", "True", "nan", "'a'", '"a', '"\\"', '"\\/"', '"\\b"', '"\\u0041"'),
    *(
        '"\\ud800"',
        '"\\x"',
        '"a\tb"',
        '"a\nb"',
        '"\x7f"',
        '{"ü":"\u2028"}',
        json.dumps("x" * 5000),
        json.dumps({"a": UGLY}),
    ),
]
PRINTERS = [
    "mcp_emit_json",
    "mcp_result_success",
    "mcp_result_error",
    "mcp_error a b --data",
    "mcp_is_valid_json",
    "mcp_fail 1 x",
]


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_results_are_the_same_with_and_without_a_json_tool(full: Bench, locale: str) -> None:
    texts = TEXTS if locale == "C" else [text for text in TEXTS if not text.isascii()]
    words = [f"{PRINTERS[number % len(PRINTERS)]}\t{text}" for number, text in enumerate(texts)]
    words += [f"mcp_emit_json\t{text}" for text in texts]
    setup = """__mcp_load errors; eval "original_$(declare -f __mcp_compact_plain)"
      by_the_tool() { __mcp_compact_plain() { return 1; }; }"""
    loop = """local call=${word%%$'\\t'*} text=${word#*$'\\t'}
      original___mcp_compact_plain "$text" || { echo left to the tool; return; }
      ($call "$text")"""
    found = outcomes(full, setup, loop, words, MCPBASH_JSON_TOOL_BIN=QUICK_TOOL, LANG=locale)
    require_equal(words, [(_value(plain), _value(by_tool)) for plain, by_tool in found])
    assert not (full.directory / "hit").exists()
    # U+2028 is a control character in some locales.
    taken = {word.partition("\t")[2] for word, pair in zip(words, found, strict=True) if "left to" not in pair[0]}
    assert {text for text in taken if "\u2028" not in text} == set(PLAIN_TEXTS) & set(texts)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(pairs) if len(dict(pairs)) == len(pairs) else {"named twice": pairs}


def _value(printed: str) -> str:
    """Some JSON tools sort the names of members, also in a text that is JSON."""
    first, separator, rest = printed.partition("\n")
    try:
        value = json.loads(first, object_pairs_hook=_members)
    except ValueError:
        return printed
    for block in value.get("content", []) if isinstance(value, dict) else []:
        block["text"] = _value(block["text"])
    return json.dumps(value, sort_keys=True) + separator + rest


ONE_ARGUMENT = 'name=$(mcp_args_require .name)\nmcp_emit_text "Hello $name"'
SEVERAL = """name=$(mcp_args_require .name); times=$(mcp_args_int .times --default 1 --max 9)
loud=$(mcp_args_bool .loud); tone=$(mcp_args_get '.tone // "warm"')
width=$(mcp_args_get .size.width --default 5)
mcp_progress 50 "half of it"; mcp_log_info greet "$name"
mcp_result_success "$(mcp_json_obj name "$name" times "$times" loud "$loud" tone "$tone" width "$width")\""""
BY_COMMENTS = """mcp_args_parse
mcp_emit_json "{\\"need\\": $(mcp_json_escape "$need"), \\"times\\": $times, \\"tags\\": ${#tags[@]}}\""""


@pytest.mark.parametrize(
    ("body", "printed"),
    [
        (ONE_ARGUMENT, "Hello Ada ü"),
        (SEVERAL, {"name": "Ada ü", "times": "1", "loud": "true", "tone": "warm", "width": "7"}),
        (BY_COMMENTS, {"need": "x", "times": 1, "tags": 2}),
        ('mcp_result_error \'{"type":"gone","message":"No row"}\'', {"type": "gone", "message": "No row"}),
        ("mcp_error gone 'No row' --data '{ \"row\": 5 }'", {"type": "gone", "message": "No row", "data": {"row": 5}}),
        ("mcp_meta_get .absent --default x", "x\n"),
        ("mcp_args_get .name >/dev/null; mcp_is_valid_json '{\"a\": 1}' && echo yes", "yes\n"),
    ],
)
def test_plain_tools_start_no_json_tool(recording: Bench, body: str, printed: object) -> None:
    arguments = {"name": "Ada ü", "loud": True, "size": {"width": 7}, "need": "x", "tags": ["a", "b"], "more": []}
    run = recording.shell(body, comments=PARSED, **environment(arguments))
    found: Any = run.stdout
    if isinstance(printed, dict):
        found = run.result.get("structuredContent", run.result)
        found = found.get("result", found.get("error", found))
    assert (run.exit_code, run.stderr, found) == (0, "", printed)
    assert not was_asked(recording)


@pytest.mark.parametrize(
    "change",
    [
        'MCP_TOOL_ARGS_JSON=\'{"name":"Eve"}\'',
        'export MCP_TOOL_ARGS_JSON=\'{"name":"Eve"}\'; exec bash -c \'. "$MCP_SDK/tool-sdk.sh"; mcp_args_get .name\'',
        'echo \'{"name":"Eve"}\' >args; MCP_TOOL_ARGS_FILE=args',
    ],
    ids=["variable", "another script", "file"],
)
def test_the_table_counts_for_its_own_arguments_only(full: Bench, change: str) -> None:
    assert full.shell(f"{change}; mcp_args_get .name", **environment({"name": "Ada"})).stdout == "Eve\n"


def test_a_script_that_ignores_case_reads_the_names_that_it_writes(full: Bench) -> None:
    run = full.shell("shopt -s nocasematch; mcp_args_get .NAME; mcp_args_get .name", **environment({"name": "Ada"}))
    assert run.stdout == "null\nAda\n"


def test_a_trace_has_no_value_of_the_table(recording: Bench) -> None:
    reads = ["mcp_args_get .need", "mcp_args_require .need", "mcp_args_get .object.key", "mcp_require_path .need"]
    body = "set -x\n" + "".join(f"{read} >>out\n" for read in reads) + "mcp_args_parse\necho on"
    secret = "hush-4711"
    env = environment({"need": secret, "object": {"key": secret}, "tags": [secret], "more": []})
    run = recording.shell(body, comments=PARSED, **env)

    assert (run.exit_code, run.stdout) == (0, "on\n")
    assert secret not in run.stderr
    assert (recording.directory / "out").read_text(encoding="utf-8").count(secret) == len(reads)
    assert not was_asked(recording)


def test_scripts_of_a_server_start_no_json_tool(recording: Bench, project: ProjectBuilder, speak: Speak) -> None:
    source = 'source "$MCP_SDK/tool-sdk.sh"\n'
    project.tool("one", source + ONE_ARGUMENT)
    project.tool("several", source + SEVERAL)
    project.prompt("greet.sh", f"#!/usr/bin/env bash\n{source}{ONE_ARGUMENT}", arguments=[{"name": "name"}])
    client = speak(json_tool_bin=recording.env["MCPBASH_JSON_TOOL_BIN"])

    assert text_of(client.call_tool("one", {"name": "Ada 'n' $(x)"})) == "Hello Ada 'n' $(x)"
    said = client.call_tool("several", {"name": "Ada\n", "loud": False, "size": {"width": 7}})
    told = {"name": "Ada", "times": "1", "loud": "false", "tone": "warm", "width": "7"}
    assert said["structuredContent"] == {"success": True, "result": told}
    prompt = client.result("prompts/get", {"name": "greet", "arguments": {"name": "Eve"}})
    assert prompt["messages"][0]["content"]["text"] == "Hello Eve"
    assert not was_asked(recording)
