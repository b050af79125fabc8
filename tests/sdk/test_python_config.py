"""The Python SDK: configuration, and JSON of other programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import Bench


@pytest.fixture
def bench(minimal: Bench) -> Bench:
    for name, value in (("example.json", {"a": 1, "b": 1, "c": 1}), ("file.json", {"b": 2, "c": 2, "s": {"port": 80}})):
        (minimal.directory / name).write_text(json.dumps(value), encoding="utf-8")
    (minimal.directory / "broken.json").write_text("{", encoding="utf-8")
    (minimal.directory / "list.json").write_text("[]", encoding="utf-8")
    (minimal.directory / "binary.json").write_bytes(b"\xff")
    return minimal


def loaded(bench: Bench, options: str, **env: str) -> Any:
    run = bench.python(f"mcp_tool.emit_json(mcp_tool.config_load({options}))", **env)
    assert run.exit_code == 0, run.stderr
    return run.result


def test_the_stronger_source_of_a_configuration_wins_member_by_member(bench: Bench) -> None:
    options = "env='SETUP', file='file.json', example='example.json', defaults={'a': 0, 'd': 0, 's': {'host': 'h'}}"

    assert loaded(bench, options, SETUP='{"c": 3}') == {"a": 1, "b": 2, "c": 3, "d": 0, "s": {"port": 80}}


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ("file='broken.json'", "config_load: skipped broken.json: it is not valid JSON\n"),
        ("example='list.json'", "config_load: skipped list.json: it is not a JSON object\n"),
        ("file='binary.json'", "config_load: skipped binary.json: it cannot be read as text\n"),
        ("file='.'", "config_load: skipped .: it cannot be read as text\n"),
        ("env='SETUP'", "config_load: skipped the variable SETUP: it is not valid JSON\n"),
    ],
)
def test_what_cannot_be_used_is_skipped_with_a_warning(bench: Bench, options: str, warning: str) -> None:
    run = bench.python(f"mcp_tool.emit_json(mcp_tool.config_load({options}, defaults={{'a': 0}}))", SETUP="{")

    assert (run.result, run.stderr) == ({"a": 0}, warning)


@pytest.mark.parametrize("options", ["", "file='gone.json'", "file='broken.json', defaults={}", "env='UNSET'"])
def test_no_configuration_at_all_is_a_lookup_error(bench: Bench, options: str) -> None:
    run = bench.python(f"mcp_tool.config_load({options})")

    assert "LookupError: config_load: there is no configuration" in run.stderr


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("config_get('s.port')", 80),
        ("config_get('.s.port')", 80),
        ("config_get('s')", {"port": 80}),
        ("config_get('no', True)", False),
        ("config_get('nothing', 5)", 5),
        ("config_get('absent.deeper', 5)", 5),
        ("config_get('s.port.deeper', 5)", 5),
        ("config_get('absent', None)", None),
    ],
)
def test_a_value_is_found_by_its_path(bench: Bench, call: str, value: object) -> None:
    load = "mcp_tool.config_load(file='file.json', defaults={'no': False, 'nothing': None})\n"
    run = bench.python(f"{load}mcp_tool.emit_json(mcp_tool.{call})")

    assert json.loads(run.stdout) == value


@pytest.mark.parametrize("path", ["absent", "s.absent", "nothing"])
def test_an_absent_value_without_default_is_a_key_error(bench: Bench, path: str) -> None:
    load = "mcp_tool.config_load(file='file.json', defaults={'nothing': None})\n"

    assert bench.python(f"{load}mcp_tool.config_get({path!r})").stderr.endswith(f"KeyError: '{path}'\n")


def test_programs_that_a_tool_starts_see_its_configuration(bench: Bench) -> None:
    body = "mcp_tool.config_load(file='file.json')\nos.execvp('sh', ['sh', '-c', 'echo \"$MCP_CONFIG_JSON\"'])"

    assert bench.python(body).result["s"] == {"port": 80}


@pytest.mark.parametrize(
    ("stdout", "stderr", "sentence"),
    [
        ('{"error": {"message": "inner"}, "message": "outer"}', "err", "inner"),
        ('{"error": "plain"}', "err", "plain"),
        ('{"success": false, "message": "m"}', "err", "m"),
        ('{"ok": false, "message": "m"}', "err", "m"),
        ('{"status": "error", "message": "m"}', "err", "m"),
        ('{"message": "all is well"}', "err", "err"),
        ('{"errors": [{"message": "first"}, {"message": "second"}]}', "err", "first"),
        ('{"errors": ["odd"]}', " err\n", "err"),
        ("[]", "err", "err"),
        ("no JSON", "", "CLI exited with code 7"),
    ],
)
def test_the_most_telling_sentence_of_a_failed_program_is_found(
    bench: Bench, stdout: str, stderr: str, sentence: str
) -> None:
    assert bench.python(f"print(mcp_tool.extract_cli_error({stdout!r}, {stderr!r}, 7))").stdout == f"{sentence}\n"


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        ("[1, 2, 3], 7", {"result": [1, 2, 3], "truncated": False, "kept": 3, "total": 3}),
        ("{'results': []}, 50", {"result": {"results": []}, "truncated": False, "kept": 0, "total": 0}),
        ("{'a': [1]}, 50, array_path='a'", {"result": {"a": [1]}, "truncated": False, "kept": 1, "total": 1}),
        ("{'a': [1]}, 50", {"result": {"a": [1]}, "truncated": False}),
        ("[1, 2, 3], 6", {"result": [1, 2], "truncated": True, "kept": 2, "total": 3}),
        ("['long'], 5", {"result": [], "truncated": True, "kept": 0, "total": 1}),
        ("[1], 1", {"result": None, "truncated": False, "error": "output_too_large"}),
        (
            "{'results': [1, 2], 'n': 2}, 21",
            {"result": {"results": [1], "n": 2}, "truncated": True, "kept": 1, "total": 2},
        ),
        ("{'a': {'b': [1, 2]}}, 15", {"result": None, "truncated": False, "error": "output_too_large"}),
        (
            "{'a': {'b': [1, 2]}}, 15, array_path='.a.b'",
            {"result": {"a": {"b": [1]}}, "truncated": True, "kept": 1, "total": 2},
        ),
        ("{'a': 5}, 50, array_path='a'", {"result": None, "truncated": False, "error": "invalid_array_path"}),
        ("{'a': 5}, 50, array_path='b'", {"result": None, "truncated": False, "error": "path_not_found"}),
        ("'long text', 5", {"result": None, "truncated": False, "error": "output_too_large"}),
    ],
)
def test_a_long_value_is_cut_to_what_fits(bench: Bench, call: str, outcome: dict[str, object]) -> None:
    assert bench.python(f"mcp_tool.emit_json(mcp_tool.json_truncate({call}))").result == outcome
