"""Documents of others: errors of programs, long JSON, configuration; and retries and paths of shell tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Bench


@pytest.mark.parametrize(
    ("out", "err", "reason"),
    [
        ('{"error":{"message":"deep"},"message":"x"}', "err", "deep"),
        ('{"error":"flat"}', "err", "flat"),
        ('{"success":false,"message":"no luck"}', "err", "no luck"),
        ('{"ok":false,"message":"not ok"}', "err", "not ok"),
        ('{"status":"error","message":"bad"}', "err", "bad"),
        ('{"status":"fine","message":"not an error"}', "err", "err"),
        ('{"errors":[{"message":"first"},{"message":"second"}]}', "err", "first"),
        ('{"errors":["plain"]}', "err", "plain"),
        ('{"error":null}', "from stderr", "from stderr"),
        ("[1]", "from stderr", "from stderr"),
        ("{x", "from\nstderr", "from\nstderr"),
        ("", " \n", "CLI exited with code 7"),
        ("{}", "", "CLI exited with code 7"),
    ],
)
def test_the_reason_of_a_program_is_found(full: Bench, out: str, err: str, reason: str) -> None:
    run = full.shell('mcp_extract_cli_error "$OUT" "$ERR" 7', OUT=out, ERR=err)
    assert (run.exit_code, run.stdout) == (0, f"{reason}\n")


def truncated(bench: Bench, value: str, arguments: str = "") -> Any:
    run = bench.shell(f'mcp_json_truncate "$VALUE" {arguments}', VALUE=value)
    assert (run.exit_code, run.stderr) == (0, "")
    return run.result


@pytest.mark.parametrize(
    ("value", "arguments", "result"),
    [
        ("[1, 2]", "100", {"result": [1, 2], "truncated": False, "kept": 2, "total": 2}),
        ("[1,2]", "", {"result": [1, 2], "truncated": False, "kept": 2, "total": 2}),
        ('{"results":[1]}', "", {"result": {"results": [1]}, "truncated": False, "kept": 1, "total": 1}),
        ('{"d":[]}', "--array-path .d", {"result": {"d": []}, "truncated": False, "kept": 0, "total": 0}),
        ('{"d":[1]}', "", {"result": {"d": [1]}, "truncated": False}),
        ("false", "100", {"result": False, "truncated": False}),
        ("[10,20,30,40]", "10", {"result": [10, 20, 30], "truncated": True, "kept": 3, "total": 4}),
        ("[10,20,30,40]", "9", {"result": [10, 20], "truncated": True, "kept": 2, "total": 4}),
        ('["üü","x"]', "10", {"result": ["üü"], "truncated": True, "kept": 1, "total": 2}),
        (
            '{"results":[1,2,3,4,5,6],"n":1}',
            "25",
            {"result": {"results": [1, 2, 3], "n": 1}, "truncated": True, "kept": 3, "total": 6},
        ),
        (
            '{"d":{"i":[1,2,3,4]}}',
            "17 --array-path .d.i",
            {"result": {"d": {"i": [1, 2]}}, "truncated": True, "kept": 2, "total": 4},
        ),
        ('{"d":[1]}', "--array-path .d 100", {"result": {"d": [1]}, "truncated": False, "kept": 1, "total": 1}),
        ("[1,2]", "many", {"result": [1, 2], "truncated": False, "kept": 2, "total": 2}),
    ],
)
def test_json_is_shortened_to_what_fits(full: Bench, value: str, arguments: str, result: dict[str, Any]) -> None:
    assert truncated(full, value, arguments) == result


@pytest.mark.parametrize(
    ("value", "arguments", "kind"),
    [
        ("[1]", "5 --array-path d", "invalid_path_syntax"),
        ("[1]", "5 --array-path '.d[0]'", "invalid_path_syntax"),
        ("[1]", "5 --array-path ''", "invalid_path_syntax"),
        ("[1]", "5 --array-path", "invalid_path_syntax"),
        ('{"d":[1]}', "5 --array-path .e", "path_not_found"),
        ("[1]", "5 --array-path .e", "path_not_found"),
        ('{"d":{"e":1}}', "500 --array-path .d.e", "invalid_array_path"),
        ('{"d":"xxxxxxxxxx"}', "10", "output_too_large"),
        ('"xxxxxxxxxxxxxxx"', "10", "output_too_large"),
        ('{"d":[1],"long":"xxxxxxxxxx"}', "12 --array-path .d", "output_too_large"),
        ("{x", "10", "invalid_json"),
        ("", "10", "invalid_json"),
        ("1 2", "10", "invalid_json"),
    ],
)
def test_what_cannot_be_shortened_says_why(full: Bench, value: str, arguments: str, kind: str) -> None:
    found = truncated(full, value, arguments)
    assert (found["result"], found["truncated"], found["error"]["type"]) == (None, False, kind)
    assert found["error"]["message"]
    assert found["error"].get("raw") == (value if kind == "invalid_json" else None)
    assert "raw" not in found


def test_without_a_json_tool_nothing_is_shortened(minimal: Bench) -> None:
    found = truncated(minimal, "[1,\n2]", "3")
    assert "minimal" in found.pop("_warning")
    assert found == {"result": [1, 2], "truncated": False}


@pytest.fixture
def config(full: Bench) -> Bench:
    (full.directory / "c.json").write_text('{"b": {"file": 1}, "c": "file"}', encoding="utf-8")
    (full.directory / "e.json").write_text('{"a": "example", "b": "example"}', encoding="utf-8")
    (full.directory / "bad.json").write_text("{x", encoding="utf-8")
    return full


LOAD = 'mcp_config_load --env MY_CONFIG --file c.json --example e.json --defaults \'{"a":0,"z":null,"f":false}\''


def test_configuration_is_merged_and_the_later_wins(config: Bench) -> None:
    run = config.shell(f'{LOAD}; printenv MCP_CONFIG_JSON; mcp_emit_text ""', MY_CONFIG='{"c": "variable"}')
    assert run.result == {"a": "example", "b": {"file": 1}, "c": "variable", "z": None, "f": False}


def test_pieces_that_are_no_objects_are_skipped_with_a_warning(config: Bench) -> None:
    run = config.shell(
        "mcp_config_load --file bad.json --example e.json --env MY --defaults '[1]' --loud; mcp_config_get .a",
        MY="/nonexistent.json",
    )
    assert run.stdout == "example\n"
    assert run.stderr.splitlines() == [
        "mcp_config_load: ignored --loud",
        "mcp_config_load: skipped the defaults, which is not a JSON object",
        "mcp_config_load: skipped bad.json, which is not a JSON object",
        "mcp_config_load: skipped /nonexistent.json, which cannot be read",
    ]


@pytest.mark.parametrize(
    "call", ["mcp_config_load", "mcp_config_load --file gone.json", "mcp_config_load --env UNSET_VARIABLE --file"]
)
def test_nothing_to_load_is_a_failure(config: Bench, call: str) -> None:
    assert config.shell(f"{call} || echo $?").stdout == "1\n"


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        (".c", "file\n"),
        (".b", '{"file":1}\n'),
        (".b.file", "1\n"),
        (".f", "false\n"),
        (".f --default true", "false\n"),
        (".z || echo absent", "absent\n"),
        (".z --default d", "d\n"),
        (".none.deeper --default ''", "\n"),
        (".none || echo absent", "absent\n"),
        (".a.b || echo absent", "absent\n"),
    ],
)
def test_a_setting_is_read_or_absent(config: Bench, call: str, printed: str) -> None:
    run = config.shell(f"{LOAD}; mcp_config_get {call}")
    assert (run.exit_code, run.stdout) == (0, printed)


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        (".s", "text, with: \n"),
        (".n", "-1.5\n"),
        (".t", "true\n"),
        (".u || echo absent", "absent\n"),
        (".u --default d", "d\n"),
        (".o.x --default d", "d\n"),
        (".q || echo absent", "absent\n"),
    ],
)
def test_without_a_json_tool_only_plain_members_are_read(minimal: Bench, call: str, printed: str) -> None:
    document = '{"s": "text, with: ", "n": -1.5,\n "t": true, "o": {"x": 1, "u": 2}, "q": 5}'
    run = minimal.shell(f"mcp_config_load --defaults '{document}'; mcp_config_get {call}")
    assert run.stdout == printed


COUNTED = 'try() { echo run >>runs; [[ $(wc -l <runs) -lt $1 ]] || return 0; return "$2"; }; '


@pytest.mark.parametrize(
    ("arguments", "attempts", "status"),
    [
        ("3 0 -- try 9 7", 3, 7),
        ("5 0.001 -- try 3 7", 3, 0),
        ("5 0 try 2 3", 2, 0),
        ("5 0 -- try 9 1", 1, 1),
        ("5 0 -- try 9 2", 1, 2),
        ("1 0 -- try 9 9", 1, 9),
    ],
)
def test_a_command_is_tried_again_when_that_may_help(either: Bench, arguments: str, attempts: int, status: int) -> None:
    run = either.shell(f"{COUNTED} mcp_with_retry {arguments} && echo 0 || echo $?")
    assert run.stdout == f"{status}\n"
    assert (either.directory / "runs").read_text(encoding="utf-8") == "run\n" * attempts


@pytest.mark.parametrize("arguments", ["", "0 1 -- true", "x 1 -- true", "3 -1 -- true", "3 x -- true", "3 1 --"])
def test_a_misused_retry_runs_nothing(either: Bench, arguments: str) -> None:
    run = either.shell(f"mcp_with_retry {arguments} || echo $?")
    assert run.stdout == "1\n"
    assert run.stderr.startswith("mcp_with_retry: ")


def test_a_cancelled_call_is_not_tried_again(either: Bench) -> None:
    either.cancel_file.touch()
    assert either.shell(f"{COUNTED} mcp_with_retry 5 0 -- try 9 7 || echo $?").stdout == "7\n"
    assert (either.directory / "runs").read_text(encoding="utf-8") == "run\n"


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/inner")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path.resolve()


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        ("mcp_path_normalize link/../x", "{here}/real/x"),
        ("mcp_path_normalize --physical link", "{here}/real/inner"),
        ("mcp_path_normalize --logical link/../x", "{here}/x"),
        ("mcp_path_normalize /a/x/./y//../z/", "/a/x/z"),
        ("mcp_path_normalize /../..", "/"),
        ("mcp_path_normalize 'with blank'", "{here}/with blank"),
        ("mcp_path_collapse link/../x", "{here}/x"),
        ("mcp_path_collapse /a//b/./../c", "/a/c"),
        ("mcp_path_collapse /", "/"),
    ],
)
def test_paths_become_absolute_and_plain(either: Bench, linked: Path, call: str, printed: str) -> None:
    run = either.shell(f"cd {linked}; {call}")
    assert (run.exit_code, run.stdout) == (0, printed.format(here=linked) + "\n")


@pytest.mark.parametrize("call", ["mcp_path_normalize", "mcp_path_normalize loop", "mcp_path_collapse ''"])
def test_a_path_that_leads_nowhere_is_a_failure(either: Bench, linked: Path, call: str) -> None:
    assert either.shell(f"cd {linked}; {call} || echo $?").stdout == "1\n"


def test_the_sdk_may_be_sourced_twice_and_from_elsewhere(either: Bench) -> None:
    body = """cd "$MCP_SDK" && source tool-sdk.sh && cd / && source "$MCP_SDK/tool-sdk.sh" && mcp_path_collapse /a/../b
      mcp_with_retry 1 0 -- mcp_emit_text "$(mcp_tool_meta_with_ui ui://x app)" """
    run = either.shell(body)
    assert run.exit_code == 0
    first, second = run.stdout.splitlines()
    assert (first, json.loads(second)["ui"]["visibility"]) == ("/b", ["app"])
