"""Where the clients have their files, and what their entries look like."""

from __future__ import annotations

import json
import os
import pwd
import sys
from pathlib import Path

import pytest

from mcpgreen.cli.clients import launch
from mcpgreen.cli.clients.config import shown
from mcpgreen.cli.clients.install import Change
from mcpgreen.cli.clients.launch import program_words
from mcpgreen.cli.clients.table import BY_WORD, CLIENTS
from tests.cli.clients.test_corpus import LAUNCH

WORDS = "claude-desktop claude-code cursor vscode windsurf zed gemini codex goose jetbrains continue cline librechat"
HOME = {"HOME": "/h"}
LIBRARY = "/h/Library/Application Support"


def test_every_client_has_its_word() -> None:
    assert [client.word for client in CLIENTS] == [*WORDS.split(), "copilot", "opencode", "qwen"]
    assert BY_WORD["claude-cli"] is BY_WORD["claude-code"]


@pytest.mark.parametrize(
    ("word", "linux", "macos"),
    [
        (
            "claude-desktop",
            "/h/.config/Claude/claude_desktop_config.json",
            f"{LIBRARY}/Claude/claude_desktop_config.json",
        ),
        ("claude-code", *["/h/.claude.json"] * 2),
        ("cursor", *["/h/.cursor/mcp.json"] * 2),
        ("vscode", "/h/.config/Code/User/mcp.json", f"{LIBRARY}/Code/User/mcp.json"),
        ("windsurf", *["/h/.codeium/windsurf/mcp_config.json"] * 2),
        ("zed", *["/h/.config/zed/settings.json"] * 2),
        ("gemini", *["/h/.gemini/settings.json"] * 2),
        ("codex", *["/h/.codex/config.toml"] * 2),
        ("goose", *["/h/.config/goose/config.yaml"] * 2),
        ("continue", *["/h/.continue/config.yaml"] * 2),
        ("cline", *["/h/.cline/data/settings/cline_mcp_settings.json"] * 2),
        ("copilot", *["/h/.copilot/mcp-config.json"] * 2),
        ("opencode", *["/h/.config/opencode/opencode.json"] * 2),
        ("qwen", *["/h/.qwen/settings.json"] * 2),
    ],
)
def test_a_file_is_where_the_system_has_it(word: str, linux: str, macos: str) -> None:
    places = [BY_WORD[word].user_places(HOME, system)[0] for system in ("linux", "darwin")]
    assert places == [linux, macos]


@pytest.mark.parametrize("word", ["jetbrains", "librechat"])
def test_some_have_no_file_of_the_user_s_own(word: str) -> None:
    assert BY_WORD[word].user_places(HOME) == []
    assert "--file" in BY_WORD[word].why_no_place


@pytest.mark.parametrize(
    ("word", "environ", "place"),
    [
        ("vscode", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("vscode", {"XDG_CONFIG_HOME": "relative"}, "/h/.config/Code/User/mcp.json"),
        ("codex", {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("copilot", {"COPILOT_HOME": "/c"}, "/c/mcp-config.json"),
        ("opencode", {"XDG_CONFIG_HOME": "/c"}, "/c/opencode/opencode.json"),
        ("qwen", {"QWEN_HOME": "/c"}, "/c/settings.json"),
        ("cline", {"CLINE_MCP_SETTINGS_PATH": "/c/{x}.json"}, "/c/{x}.json"),
    ],
)
def test_variables_move_a_file(word: str, environ: dict[str, str], place: str) -> None:
    assert BY_WORD[word].user_places({**HOME, **environ}, "linux")[0] == place


def test_a_place_in_a_project_cannot_lead_out_of_it() -> None:
    assert BY_WORD["continue"].project_place("/p", "../a b") == "/p/.continue/mcpServers/..-a-b.yaml"


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("codex", "tool_timeout_sec", 125),
        ("cline", "timeout", 125),
        ("librechat", "timeout", 125_000),
        ("goose", "timeout", 300),
        ("opencode", "timeout", 125_000),
    ],
)
def test_a_client_is_told_to_wait_in_its_own_unit(word: str, key: str, value: int) -> None:
    assert BY_WORD[word].entry(LAUNCH._replace(tool_secs=120.0))[key] == value


def test_a_client_that_waits_long_enough_is_told_nothing() -> None:
    assert all("timeout" not in BY_WORD[word].entry(LAUNCH) for word in ("gemini", "cline", "opencode", "qwen"))
    assert BY_WORD["gemini"].entry(LAUNCH._replace(tool_secs=600.0))["timeout"] == 605_000


def test_the_launcher_is_the_command_if_it_started_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = tmp_path / "anything"
    launcher.write_text("#!/bin/sh\n", encoding="utf-8")
    assert program_words({launch.LAUNCHER: str(launcher)}) != (str(launcher),)
    launcher.chmod(0o755)
    assert program_words({launch.LAUNCHER: str(launcher)}) == (str(launcher),)
    assert program_words({launch.LAUNCHER: "anything"}) != ("anything",)


def test_the_script_of_an_environment_is_the_command_if_it_started_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "mcpgreen"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name in ("./mcpgreen", "./mcpgreen-python"):
        monkeypatch.setattr(sys, "argv", [name, "config"])
        assert program_words({}) == (str(script),)


def test_without_a_script_python_is_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(launch, "PACKAGE_DIR", "/nowhere/mcpgreen")
    monkeypatch.setattr(sys, "executable", "/nowhere/bin/python")
    options = ["-P" if sys.version_info >= (3, 11) else "-I"]
    assert program_words({}) == ("/nowhere/bin/python", *options, "-m", "mcpgreen")


def test_a_difference_has_the_lines_that_change_and_one_around() -> None:
    before = "".join(f"{number}\n" for number in range(9))
    assert shown(Change("f", before, before.replace("4\n", "4\nnew\x1b\n"))) == (
        "--- f\n+++ f\n@@ -5,2 +5,3 @@\n 4\n+new\\x1b\n 5\n"
    )
    assert shown(Change("f", before, before)) == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('  "TOKEN": "abc",', '  "TOKEN": [redacted]'),
        ('{"env": {"TOKEN":"abc"}}', '{"env": {"TOKEN":[redacted]'),
        ("env = {TOKEN = 'abc'}", "env = {TOKEN = [redacted]"),
        ("    TOKEN: abc", "    TOKEN: [redacted]"),
        ('"-e", "TOKEN=abc"', '"-e", "TOKEN=[redacted]'),
        ('"${CLAUDE_PROJECT_DIR:-.}/x"', '"${CLAUDE_PROJECT_DIR:-.}/x"'),
        ('"$HOME:/x"', '"$HOME:/x"'),
    ],
)
def test_a_difference_hides_values_of_variables(line: str, expected: str) -> None:
    assert shown(Change("f", "", line)).splitlines()[-1] == f"+{expected}"


def test_a_difference_of_a_long_line_is_cut() -> None:
    before = json.dumps({"a": "x" * 1_000_000})
    assert len(shown(Change("f", before, before[:-1] + ', "b": 1}'))) < 1000


def test_an_empty_home_is_that_of_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry went into a file in the root directory of the machine."""
    monkeypatch.setenv("HOME", "")
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert BY_WORD["cursor"].user_places({"HOME": ""}, "linux") == [f"{home}/.cursor/mcp.json"]
