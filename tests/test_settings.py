"""Where a setting's value comes from, and what becomes of a bad one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.settings.settings import (
    Setting,
    Settings,
    choice,
    directory,
    flag,
    integer,
    names,
    resolve,
    seconds,
    text,
)
from mcpgreen.settings.table import ROWS, default_of, load

REPOSITORY = Path(__file__).parent.parent
SIZE = Setting("size", integer, 10, low=1, high=20, aliases=("MCP_OLD_SIZE",))


def resolved(
    *rows: Setting,
    flags: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    project_env: dict[str, str] | None = None,
) -> Settings:
    return resolve(rows, flags=flags or {}, environ=environ or {}, project_env=project_env or {})


def test_a_setting_that_nobody_mentions_has_its_default() -> None:
    settings = resolved(SIZE, environ={"PATH": "/bin"})

    assert settings.size == 10
    assert settings.origin("size") == "default"
    assert settings.notes == ()


def test_each_source_is_weaker_than_the_one_before() -> None:
    flags: dict[str, Any] = {"size": "1"}
    environ = {"MCPGREEN_SIZE": "2", "MCPBASH_SIZE": "3", "MCP_OLD_SIZE": "4"}
    project_env = {"MCPGREEN_SIZE": "5", "MCPBASH_SIZE": "6", "MCP_OLD_SIZE": "7"}
    order: list[tuple[dict[str, Any], str, str]] = [
        (flags, "size", "flag"),
        (environ, "MCPGREEN_SIZE", "MCPGREEN_SIZE"),
        (environ, "MCPBASH_SIZE", "MCPBASH_SIZE"),
        (environ, "MCP_OLD_SIZE", "MCP_OLD_SIZE"),
        (project_env, "MCPGREEN_SIZE", "project file: MCPGREEN_SIZE"),
        (project_env, "MCPBASH_SIZE", "project file: MCPBASH_SIZE"),
        (project_env, "MCP_OLD_SIZE", "project file: MCP_OLD_SIZE"),
    ]

    for value, (source, key, origin) in enumerate(order, start=1):
        settings = resolved(SIZE, flags=flags, environ=environ, project_env=project_env)
        assert (settings.size, settings.origin("size")) == (value, origin)
        del source[key]


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_value_counts_as_not_set(empty: str) -> None:
    settings = resolved(SIZE, environ={"MCPGREEN_SIZE": empty, "MCPBASH_SIZE": "7"})

    assert settings.size == 7
    assert settings.notes == ()


@pytest.mark.parametrize("absent", [None, False, ""])
def test_a_flag_that_was_not_given_hides_nothing(absent: Any) -> None:
    rows = (SIZE, Setting("loud", flag, False))
    settings = resolved(
        *rows, flags={"size": absent, "loud": absent}, environ={"MCPGREEN_SIZE": "3", "MCPGREEN_LOUD": "1"}
    )

    assert settings.size == 3
    assert settings.loud is True


def test_a_flag_may_be_a_value_that_is_already_parsed() -> None:
    settings = resolved(SIZE, Setting("loud", flag, False), flags={"size": 12, "loud": True})

    assert settings.size == 12
    assert settings.loud is True


@pytest.mark.parametrize(("given", "used"), [("0", 1), ("-5", 1), ("21", 20), ("99999999999999999999", 20)])
def test_a_value_out_of_bounds_is_moved_to_the_bound_with_a_note(given: str, used: int) -> None:
    settings = resolved(SIZE, environ={"MCPBASH_SIZE": given})

    assert settings.size == used
    assert settings.origin("size") == "MCPBASH_SIZE"
    (note,) = settings.notes
    assert "MCPBASH_SIZE" in note
    assert given in note
    assert f"using {used}" in note


def test_a_bound_is_given_the_type_of_the_setting() -> None:
    settings = resolved(Setting("pause", seconds, 1.0, low=0, high=10), environ={"MCPGREEN_PAUSE": "-1"})

    assert repr(settings.pause) == "0.0"


def test_an_unreadable_value_is_replaced_by_the_default_with_a_note() -> None:
    settings = resolved(SIZE, flags={"size": "many"}, environ={"MCPGREEN_SIZE": "5"})

    assert settings.size == 10
    assert settings.origin("size") == "default"
    (note,) = settings.notes
    assert note == "--size: 'many' is not a whole number; using 10."


def test_a_note_never_shows_a_secret() -> None:
    row = Setting("key", integer, 0, secret=True)

    (note,) = resolved(row, environ={"MCPGREEN_KEY": "hunter2"}).notes

    assert "MCPGREEN_KEY" in note
    assert "hunter2" not in note


def test_a_long_unreadable_value_is_shortened_in_its_note() -> None:
    (note,) = resolved(SIZE, environ={"MCPGREEN_SIZE": "x" * 5000}).notes

    assert len(note) < 200


def test_a_misspelt_variable_is_noticed_and_corrected() -> None:
    (note,) = load({}, {"MCPGREEN_MAX_CONCURENT_REQUESTS": "3"}, {}).notes

    assert "MCPGREEN_MAX_CONCURENT_REQUESTS is not a setting" in note
    assert "did you mean MCPGREEN_MAX_CONCURRENT_REQUESTS?" in note


def test_an_unknown_variable_that_resembles_nothing_gets_no_suggestion() -> None:
    (note,) = resolved(SIZE, project_env={"MCPGREEN_ZZZ": "3"}).notes

    assert note == "project file: MCPGREEN_ZZZ is not a setting."


def test_unknown_variables_of_others_are_none_of_our_business() -> None:
    settings = load({}, {"MCPBASH_HOME": "/x", "MCP_REGISTRY_URL": "y", "MCPFOO": "z"}, {})

    assert settings.notes == ()


def test_what_a_server_gives_its_own_scripts_is_not_a_typo() -> None:
    """A tool that started a server of its own saw a warning for each of these."""
    twins = {"MCPGREEN_HOME": "/x", "MCPBASH_HOME": "/x"}

    assert load({}, {"MCPGREEN_CALL": "1", "MCPGREEN_PYTHON": "/x", **twins}, {}).notes == ()


def test_settings_cannot_be_changed() -> None:
    settings = resolved(SIZE)

    with pytest.raises(AttributeError, match="frozen"):
        settings.size = 3
    with pytest.raises(AttributeError, match="frozen"):
        del settings.size
    assert settings.size == 10


def test_a_changed_copy_leaves_the_original_alone() -> None:
    settings = resolved(SIZE, environ={"MCPGREEN_SIZE": "99"})

    copy = settings.with_values(size=0.02)

    assert (copy.size, copy.origin("size"), copy.notes) == (0.02, "code", settings.notes)
    assert (settings.size, settings.origin("size")) == (20, "MCPGREEN_SIZE")


def test_an_unknown_setting_is_an_attribute_error() -> None:
    settings = resolved(SIZE)

    with pytest.raises(AttributeError, match="no setting 'sise'"):
        _ = settings.sise
    with pytest.raises(AttributeError, match="no setting 'sise'"):
        settings.with_values(sise=1)
    with pytest.raises(AttributeError, match="no setting 'sise'"):
        settings.origin("sise")


def test_the_representation_shows_what_was_changed_and_by_whom() -> None:
    assert repr(resolved(SIZE)) == "<Settings: all defaults>"
    assert repr(resolved(SIZE, environ={"MCPBASH_SIZE": "3"})) == "<Settings: size from MCPBASH_SIZE>"


@pytest.mark.parametrize(
    ("parser", "given", "expected"),
    [
        (integer, "+7", 7),
        (integer, "-7", -7),
        (seconds, "0.5", 0.5),
        (seconds, "3", 3.0),
        (names, "a, b c,,d", ("a", "b", "c", "d")),
        (names, ",", ()),
        (text, "/a:/b c", "/a:/b c"),
        (flag, "YES", True),
        (flag, "on", True),
        (flag, "0", False),
        (flag, "Off", False),
        (choice("a", "b"), "B", "b"),
        (choice("a", "b", synonyms={"1": "a"}), "1", "a"),
        (directory, "relative/dir", "relative/dir"),
    ],
)
def test_a_readable_value_is_parsed(parser: Any, given: str, expected: Any) -> None:
    parsed = parser(given)

    assert parsed == expected
    assert type(parsed) is type(expected)


@pytest.mark.parametrize(
    ("parser", "given"),
    [
        (integer, "1.5"),
        (integer, "1_000"),
        (integer, "٣"),
        (integer, "-"),
        (integer, "9" * 5000),
        (seconds, "soon"),
        (seconds, "nan"),
        (seconds, "inf"),
        (flag, "maybe"),
        (choice("a", "b"), "c"),
        (directory, "a\0b"),
    ],
)
def test_an_unreadable_value_is_refused_with_a_reason(parser: Any, given: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has) "):
        parser(given)


def test_a_directory_may_start_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")

    assert directory("~/server") == "/home/ann/server"


class TestCatalog:
    def test_every_default_is_what_its_own_parser_could_give(self) -> None:
        for row in ROWS:
            if row.default in ("", ()):
                continue
            parsed = row.parser(str(row.default))
            assert (parsed, type(parsed)) == (row.default, type(row.default)), row

    def test_every_default_is_within_its_bounds(self) -> None:
        for row in ROWS:
            assert row.low is None or row.low <= row.default, row
            assert row.high is None or row.default <= row.high, row

    def test_every_row_explains_itself(self) -> None:
        for row in ROWS:
            assert row.doc.endswith("."), row

    def test_no_name_is_used_twice_or_taken_by_the_settings_object(self) -> None:
        variables = [variable for row in ROWS for variable in row.variables]

        assert len(set(variables)) == len(variables)
        assert not {row.name for row in ROWS} & set(dir(resolved()))

    def test_every_variable_is_found_by_the_one_pass_over_the_environment(self) -> None:
        assert all(variable.startswith("MCP") for row in ROWS for variable in row.variables)

    @pytest.mark.parametrize(
        ("variable", "value", "name", "expected"),
        [
            ("MCP_TOOLS_TTL", "9", "tools_ttl", 9.0),
            ("MCPBASH_TOOL_ALLOWLIST", "a b", "tool_allowlist", ("a", "b")),
            ("MCPBASH_LOG_LEVEL_DEFAULT", "error", "log_level", "error"),
            ("MCPBASH_LOG_LEVEL", "true", "log_level", "debug"),
            ("MCPBASH_LOG_LEVEL", "0", "log_level", "info"),
            ("MCPBASH_TOOL_ENV_MODE", "Inherit", "tool_env_mode", "inherit"),
            ("MCPBASH_PROGRESS_EXTENDS_TIMEOUT", "true", "progress_extends_timeout", True),
            ("MCPBASH_MAX_CONCURRENT_REQUESTS", "0", "max_concurrent_requests", 1),
        ],
    )
    def test_the_names_of_old_projects_still_work(self, variable: str, value: str, name: str, expected: Any) -> None:
        assert getattr(load({}, {variable: value}, {}), name) == expected

    def test_the_default_log_level_is_weaker_than_the_log_level(self) -> None:
        settings = load({}, {"MCPBASH_LOG_LEVEL_DEFAULT": "error", "MCPBASH_LOG_LEVEL": "debug"}, {})

        assert settings.log_level == "debug"

    def test_resolving_all_rows_takes_a_few_steps_for_each_row_and_one_for_each_variable(self) -> None:
        """It is done before the first answer. Calls are counted, because the time depends on the machine."""
        environ = {f"VARIABLE_{number}": "x" for number in range(200)} | {"MCPGREEN_PAGE_SIZE": "10"}
        calls = []
        sys.setprofile(lambda _, event, called: calls.append(called) if event in ("call", "c_call") else None)
        try:
            load({}, environ, {})
        finally:
            sys.setprofile(None)

        assert len(calls) < 10 * len(ROWS) + 2 * len(environ)

    def test_loading_the_settings_imports_nothing_slow(self) -> None:
        """These modules cost 5 to 16 ms each and would delay the first answer."""
        program = (
            "import sys; from mcpgreen.settings.table import load; load({}, {'MCPGREEN_PAGE_SIZE': '1'}, {});"
            "print(*sys.modules)"
        )
        loaded = subprocess.run(
            [sys.executable, "-S", "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )

        slow = {"typing", "dataclasses", "re", "pathlib", "enum", "logging", "difflib", "collections"}
        assert not slow & set(loaded.stdout.split())


@pytest.mark.parametrize(
    ("word", "permission"),
    [("allow", "allow"), ("ALL", "allow"), ("deny", "deny"), ("denied", "deny"), ("alow", "deny")],
)
def test_a_typo_in_a_permission_denies(word: str, permission: str) -> None:
    from mcpgreen.settings.table import load

    assert load({}, {"MCPGREEN_TOOL_ALLOW_DEFAULT": word}, {}).tool_allow_default == permission


def test_where_a_row_takes_it_an_empty_value_is_a_value() -> None:
    row = Setting("second_key", text, "key", takes_empty=True)

    assert resolved(row).second_key == "key"
    assert resolved(row, environ={"MCPGREEN_SECOND_KEY": "", "MCPBASH_SECOND_KEY": "other"}).second_key == ""
    assert resolved(row, environ={"MCPBASH_SECOND_KEY": " "}).origin("second_key") == "MCPBASH_SECOND_KEY"


def test_the_limit_of_a_response_follows_that_of_the_output_unless_it_is_set() -> None:
    output = {"MCPGREEN_MAX_TOOL_OUTPUT_SIZE": "50000000"}
    assert load({}, {}, {}).max_response_bytes == default_of("max_response_bytes")
    assert load({}, {"MCPGREEN_MAX_TOOL_OUTPUT_SIZE": "5"}, {}).max_response_bytes == default_of("max_response_bytes")
    assert load({}, output, {}).max_response_bytes == 3 * 50_000_000 + (1 << 20)
    assert load({}, {**output, "MCPGREEN_MAX_RESPONSE_BYTES": "5"}, {}).max_response_bytes == 5
    assert load({}, {**output, "MCPGREEN_MAX_RESPONSE_BYTES": "0"}, {}).max_response_bytes == 0


@pytest.mark.parametrize(
    ("name", "model"), [("max_logs_per_min", "max_progress_per_min"), ("max_resource_bytes", "max_tool_output_size")]
)
def test_what_old_projects_set_once_counts_for_both(name: str, model: str) -> None:
    model_set = {f"MCPBASH_{model.upper()}": "2000"}
    assert getattr(load({}, model_set, {}), name) == 2000
    assert getattr(load({}, {**model_set, f"MCPGREEN_{name.upper()}": "50"}, {}), name) == 50
    assert load({}, {}, {}).origin(name) == "default"


def test_where_the_default_is_no_value_the_wrong_one_counts_as_not_set() -> None:
    (note,) = load({}, {"MCPBASH_JSON_TOOL": "yq"}, {}).notes
    assert note == "MCPBASH_JSON_TOOL: 'yq' is not one of jq, gojq, none; as if it were not set."
