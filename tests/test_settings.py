"""Where a setting's value comes from, and what becomes of a bad one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpgreen.settings.rows import (
    Values,
    choice,
    directory,
    flag,
    integer,
    names,
    resolve,
    seconds,
    setting,
    text,
)
from mcpgreen.settings.settings import FORMER, ROWS, load

REPOSITORY = Path(__file__).parent.parent


class Sized(Values):
    size = setting(integer, 10, low=1, high=20, aliases=("MCP_OLD_SIZE",))


class Loud(Sized):
    loud = setting(flag, False)
    pause = setting(seconds, 1.0, low=0, high=10)
    key = setting(integer, 0, secret=True)


def resolved(
    *,
    flags: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    project_env: dict[str, str] | None = None,
) -> Loud:
    return resolve(Loud, flags or {}, environ or {}, project_env or {})


def test_a_setting_that_is_not_set_has_its_default() -> None:
    settings = resolved(environ={"PATH": "/bin"})

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
        settings = resolved(flags=flags, environ=environ, project_env=project_env)
        assert (settings.size, settings.origin("size")) == (value, origin)
        del source[key]


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_value_counts_as_not_set(empty: str) -> None:
    settings = resolved(environ={"MCPGREEN_SIZE": empty, "MCPBASH_SIZE": "7"})

    assert settings.size == 7
    assert settings.notes == ()


@pytest.mark.parametrize("absent", [None, False, ""])
def test_a_flag_that_was_not_given_hides_nothing(absent: Any) -> None:
    flags = {"size": absent, "loud": absent}
    settings = resolved(flags=flags, environ={"MCPGREEN_SIZE": "3", "MCPGREEN_LOUD": "1"})

    assert settings.size == 3
    assert settings.loud is True


@pytest.mark.parametrize(("given", "used"), [("0", 1), ("-5", 1), ("21", 20), ("99999999999999999999", 20)])
def test_a_value_out_of_bounds_is_moved_to_the_bound_with_a_note(given: str, used: int) -> None:
    settings = resolved(environ={"MCPBASH_SIZE": given})

    assert settings.size == used
    assert settings.origin("size") == "MCPBASH_SIZE"
    (note,) = settings.notes
    assert "MCPBASH_SIZE" in note
    assert given in note
    assert f"using {used}" in note


def test_an_unreadable_value_is_replaced_by_the_default_with_a_note() -> None:
    settings = resolved(flags={"size": "many"}, environ={"MCPGREEN_SIZE": "5"})

    assert settings.size == 10
    assert settings.origin("size") == "default"
    (note,) = settings.notes
    assert note == "--size: 'many' is not a whole number; using 10."


def test_a_note_never_shows_a_secret() -> None:
    (note,) = resolved(environ={"MCPGREEN_KEY": "hunter2"}).notes

    assert "MCPGREEN_KEY" in note
    assert "hunter2" not in note


def test_a_misspelt_variable_is_noticed_and_corrected() -> None:
    (note,) = load({}, {"MCPGREEN_MAX_CONCURENT_REQUESTS": "3"}, {}).notes

    assert "MCPGREEN_MAX_CONCURENT_REQUESTS is not a setting" in note
    assert "did you mean MCPGREEN_MAX_CONCURRENT_REQUESTS?" in note


def test_unknown_variables_of_others_are_none_of_our_business() -> None:
    settings = load({}, {"MCPBASH_HOME": "/x", "MCP_REGISTRY_URL": "y", "MCPFOO": "z"}, {})

    assert settings.notes == ()


def test_what_a_server_gives_its_own_scripts_is_not_a_typo() -> None:
    """A tool that started a server of its own saw a warning for each of these."""
    twins = {"MCPGREEN_HOME": "/x", "MCPBASH_HOME": "/x"}

    assert load({}, {"MCPGREEN_CALL": "1", "MCPGREEN_PYTHON": "/x", **twins}, {}).notes == ()


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
        assert not {row.name for row in ROWS} & set(dir(Values))

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


@pytest.mark.parametrize(
    ("word", "permission"),
    [("allow", "allow"), ("ALL", "allow"), ("deny", "deny"), ("denied", "deny"), ("alow", "deny")],
)
def test_a_typo_in_a_permission_denies(word: str, permission: str) -> None:
    assert load({}, {"MCPGREEN_TOOL_ALLOW_DEFAULT": word}, {}).tool_allow_default == permission


def test_the_limit_of_a_response_follows_that_of_the_output() -> None:
    output = {"MCPGREEN_MAX_TOOL_OUTPUT_SIZE": "50000000"}
    assert load({}, {}, {}).max_response_bytes == 31 << 20
    assert load({}, {"MCPGREEN_MAX_TOOL_OUTPUT_SIZE": "5"}, {}).max_response_bytes == 31 << 20
    assert load({}, output, {}).max_response_bytes == 3 * 50_000_000


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
    assert note == "MCPBASH_JSON_TOOL: 'yq' is not one of jq, gojq, none; it is ignored."


@pytest.mark.parametrize(
    ("variables", "name", "expected"),
    [
        ({"MCPBASH_CI_MODE": "true"}, "idle_timeout_secs", 0),
        ({"MCPGREEN_CI_MODE": "1"}, "orphan_check_interval_secs", 0),
        ({"MCPGREEN_CI_MODE": "no"}, "idle_timeout_secs", 3600),
        ({"MCPBASH_IDLE_TIMEOUT_ENABLED": "false", "MCPBASH_IDLE_TIMEOUT": "60"}, "idle_timeout_secs", 0),
        ({"MCPBASH_IDLE_TIMEOUT_ENABLED": "true", "MCPBASH_IDLE_TIMEOUT": "60"}, "idle_timeout_secs", 60),
        ({"MCPBASH_ORPHAN_CHECK_ENABLED": "false"}, "orphan_check_interval_secs", 0),
        ({"MCPBASH_TOOL_STDERR_CAPTURE": "false"}, "tool_stderr_tail_limit", 0),
        ({"MCPBASH_HTTPS_ALLOW_ALL": "true", "MCPBASH_HTTPS_ALLOW_HOSTS": "a.example"}, "https_allow_hosts", ("*",)),
        ({"MCPBASH_GIT_ALLOW_ALL": "true", "MCPGREEN_GIT_ALLOW_ALL": "false"}, "git_allow_hosts", ()),
        ({"MCPBASH_STATIC_REGISTRY": "1"}, "watch_files", "never"),
        ({"MCPGREEN_HTTP_MAX_BODY_BYTES": "2048"}, "max_line_bytes", 2048),
        ({"MCPGREEN_REGISTRY_POLL_SECS": "1"}, "tools_ttl", 1),
    ],
)
def test_a_setting_has_taken_over_another_variable(variables: dict[str, str], name: str, expected: Any) -> None:
    settings = load({}, variables, {})

    assert getattr(settings, name) == expected
    assert settings.notes == ()


def test_a_switch_that_cannot_be_read_counts_as_not_set() -> None:
    settings = load({}, {"MCPGREEN_CI_MODE": "perhaps"}, {})

    assert settings.idle_timeout_secs == 3600
    assert settings.notes == ("MCPGREEN_CI_MODE: 'perhaps' is neither true nor false; the variable is ignored.",)


def test_the_variable_of_a_former_setting_is_told() -> None:
    notes = load({}, {"MCPGREEN_KILL_GRACE_SECS": "3"}, {"MCPBASH_CORRUPTION_WINDOW": "9"}).notes

    assert notes == (
        "MCPGREEN_KILL_GRACE_SECS is no longer a setting; it has no effect.",
        "project file: MCPBASH_CORRUPTION_WINDOW is no longer a setting; it has no effect.",
    )


def test_no_former_setting_is_one_today() -> None:
    variables = {name for row in ROWS for name in row.all_variables}

    assert not {f"{prefix}_{name.upper()}" for name in FORMER for prefix in ("MCPGREEN", "MCPBASH")} & variables
