"""Shell files of a project: what they export, what they record, and how they fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.errors import ProjectError
from mcpgreen.running import hooks
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Start, Wire, text_of

GIVEN = {"PATH": os.environ["PATH"], "HOME": "/home/me", "KEPT": "as it was"}


Source = Callable[[str], hooks.Sourced]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """Write a shell file and give what it exports and takes away."""

    def write_and_source(text: str) -> hooks.Sourced:
        path = tmp_path / "env.sh"
        path.write_text(text, encoding="utf-8")
        return hooks.sourced_variables(str(path), GIVEN, directory=str(tmp_path))

    return write_and_source


def register(tmp_path: Path, text: str, *, secs: float = 30, limit_bytes: int = 1 << 20) -> hooks.HookEnd:
    path = tmp_path / "register.sh"
    path.write_text(text, encoding="utf-8")
    hook = hooks.Hook("register", str(path), secs, limit_bytes)
    return hooks.run_blocking(hook, env=GIVEN, directory=str(tmp_path))


def test_new_and_changed_exports_count_and_nothing_else(source: Source) -> None:
    text = "export NEW=1 HOME=/elsewhere\nPRIVATE=2\nexport KEPT='as it was'"

    assert source(text) == ({"NEW": "1", "HOME": "/elsewhere"}, frozenset())


@pytest.mark.parametrize("text", ["unset KEPT", "export -n KEPT", "declare +x KEPT", "unset PATH KEPT; PATH=/nowhere"])
def test_what_is_not_exported_any_more_is_gone(source: Source, text: str) -> None:
    assert source(text) == ({}, {"KEPT", "PATH"} if "PATH" in text else {"KEPT"})


def test_what_the_shell_does_by_itself_is_not_the_file_s_doing(tmp_path: Path) -> None:
    own = {"PS1": "> ", "PS2": "> ", "PPID": "1", "RANDOM": "4", "SHLVL": "3", "OLDPWD": "/", "not-a-name": "x"}
    path = tmp_path / "env.sh"
    path.touch()

    assert hooks.sourced_variables(str(path), {**GIVEN, **own}, directory=str(tmp_path)) == ({}, frozenset())


@pytest.mark.parametrize("end", ["return 0", "exit 0", "return", "true"])
def test_a_file_may_end_in_any_way(source: Source, end: str) -> None:
    assert source(f"export A=1\n{end}\nexport B=2" if end != "true" else "export A=1").changed == {"A": "1"}


def test_it_sees_what_is_given_and_may_build_on_it(source: Source) -> None:
    assert source('export PATH="/opt/bin:$PATH"').changed == {"PATH": f"/opt/bin:{GIVEN['PATH']}"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("export A=1\nreturn 3", "it exited with status 3"),
        ("export A=1\nexit 4", "it exited with status 4"),
        ("export A=1\nset -e\nfalse\ntrue", "it exited with status 1"),
        ("export A=1\nkill -9 $$", "it exited with status 137"),
        ("export A=1\nif then", "it exited with status"),
    ],
)
def test_a_file_that_fails_exports_nothing(source: Source, text: str, reason: str) -> None:
    with pytest.raises(ProjectError) as caught:
        source(text)

    assert caught.value.reason.startswith(reason)


def test_a_file_that_takes_too_long_is_stopped_with_what_it_started(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "ENVIRONMENT_SECS", 0.3)

    with pytest.raises(ProjectError, match=r"it took longer than 0\.3 s"):
        source(f"sleep 600 & echo $! > {tmp_path}/pid\nwait")

    pid = (tmp_path / "pid").read_text(encoding="utf-8")
    eventually(lambda: not is_alive(pid))


def test_a_background_job_that_keeps_the_pipe_is_not_waited_for(source: Source, tmp_path: Path) -> None:
    """If it were, the time would be up first."""
    assert source(f"sleep 60 & echo $! > {tmp_path}/pid\nexport A=1").changed == {"A": "1"}

    os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)


def test_without_bash_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="bash cannot be started"):
        hooks.sourced_variables(str(tmp_path / "x"), {"PATH": str(tmp_path)}, directory=str(tmp_path))


def test_what_was_recorded_before_a_failure_is_known(tmp_path: Path) -> None:
    end = register(tmp_path, "mcp_register_tool 1\necho printed\necho because >&2\nexit 7")

    assert end == ("it exited with status 7", b"item tools\x001\x00", b"printed\n", b"because\n")


def test_a_hook_that_says_too_much_is_told_so(tmp_path: Path) -> None:
    end = register(tmp_path, "for i in {1..9}; do mcp_register_tool 0123456789; done", limit_bytes=50)

    assert end.failure == "it printed more than 50 bytes"


@pytest.fixture
def call(project: ProjectBuilder, start: Start) -> Callable[..., tuple[str, Wire]]:
    """Start the server with this env.sh and give what a tool sees of a variable."""

    def call_show(script: str, name: str, **options: object) -> tuple[str, Wire]:
        if script:
            project.write("server.d/env.sh", script).chmod(0o644)
        project.tool("show", f'printf %s "${name}"')
        wire = start(**options).greeted()
        return text_of(wire.call_tool("show")), wire

    return call_show


READ_ONLY = {"MCPGREEN_TOOL_ENV_MODE": "allowlist", "MCPGREEN_TOOL_ENV_ALLOWLIST": "READ_ONLY", "READ_ONLY": "false"}
AS_ERROR = {"MCPBASH_LOG_LEVEL": "error"}
LEVELS = "MCP_LEVEL_THEN $MCPBASH_LOG_LEVEL $MCPGREEN_LOG_LEVEL"
LEVEL_THEN = 'export MCP_LEVEL_THEN="$MCPBASH_LOG_LEVEL"'
# What else is in server.d/, env.sh, what a tool shows, how the server is started, and what is seen then.
SEEN: dict[str, tuple[dict[str, str], str, str, dict[str, Any], str]] = {
    "an export": ({}, "echo noise; export MCP_A=green", "MCP_A", {}, "green"),
    "what is built on": ({}, 'export MCP_A="at $(basename "$MCPGREEN_PROJECT_ROOT")"', "MCP_A", {}, "at project"),
    "an ordinary variable": ({}, 'export PATH="/of/mine:$PATH"', "{PATH%%:*}", {}, "/of/mine"),
    # A project normalises "false" to unset, and its tools went on to see "false".
    "what is taken away": (
        {"env": "MCP_B=file\n"},
        "unset READ_ONLY MCP_B",
        "{READ_ONLY-gone} ${MCP_B-gone}",
        {"env": READ_ONLY},
        "gone gone",
    ),
    "no setting is taken away": ({}, "unset MCPGREEN_PAGE_SIZE", "MCPGREEN_PAGE_SIZE", {"page_size": 3}, "3"),
    "no setting is changed": ({}, "export MCPGREEN_PAGE_SIZE=7", "MCPGREEN_PAGE_SIZE", {"page_size": 3}, "3"),
    "more than env": ({"env": "MCP_A=file\nMCP_B=file\n"}, 'export MCP_A="shell, $MCP_B"', "MCP_A", {}, "shell, file"),
    "a debug marker": ({".debug": ""}, LEVEL_THEN, LEVELS, {}, "debug debug debug"),
    "a level beside it": (
        {".debug": ""},
        LEVEL_THEN,
        LEVELS,
        {"env": {"MCPBASH_LOG_LEVEL": "error"}},
        "error error error",
    ),
    "a level after it": ({".debug": ""}, "export MCPBASH_LOG_LEVEL=error", LEVELS, {}, " error error"),
}


@pytest.mark.parametrize("case", SEEN)
def test_env_sh_and_what_else_there_is_decide_what_tools_see(
    project: ProjectBuilder, call: Callable[..., tuple[str, Wire]], case: str
) -> None:
    files, script, shown, options, seen = SEEN[case]
    for name, text in files.items():
        project.write(f"server.d/{name}", text)

    assert call(script, shown, **options)[0] == seen


def test_env_sh_can_take_back_a_setting_of_env(project: ProjectBuilder, call: Callable[..., tuple[str, Wire]]) -> None:
    project.write("server.d/env", "MCPGREEN_PAGE_SIZE=1\n")
    _, wire = call("unset MCPGREEN_PAGE_SIZE", "{HOME}")

    project.tool("other", "echo")
    assert eventually(lambda: len(wire.result("tools/list")["tools"]) == 2)


@pytest.mark.parametrize(
    ("script", "mode", "reason"),
    [
        ("export MCP_A=1", 0o666, "can be written to by others"),
        ("export MCP_A=1; false", 0o644, "exited with status 1"),
    ],
)
def test_an_env_sh_that_cannot_be_used_is_ignored_and_named(
    project: ProjectBuilder, call: Callable[..., tuple[str, Wire]], script: str, mode: int, reason: str
) -> None:
    project.write("server.d/env.sh", script).chmod(mode)
    text, wire = call("", "MCP_A")

    assert text == ""
    eventually(lambda: "env.sh is ignored: it " in wire.stderr and reason in wire.stderr)
