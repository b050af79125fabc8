from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import mcpgreen, run_tool
from tests.support.prerequisites import without_privileges
from tests.support.project import ProjectBuilder


def health(project: ProjectBuilder, *arguments: str, command: str = "health", **options: Any) -> tuple[int, Any, str]:
    """Status, report and stderr."""
    done = mcpgreen(command, "--project-root", str(project.root), *arguments, **options)
    return done.returncode, json.loads(done.stdout), done.stderr


def checks(project: ProjectBuilder, script: str, *arguments: str, mode: int = 0o644, **options: Any) -> Any:
    project.write("server.d/health-checks.sh", script).chmod(mode)
    return health(project, *arguments, **options)


@pytest.mark.parametrize("command", ["health", "ready", "--health", "--ready"])
def test_a_project_that_can_be_served_is_well(project: ProjectBuilder, command: str) -> None:
    project.tool("a", "echo")
    status, report, stderr = health(project, command=command)

    assert (status, stderr) == (0, "")
    assert report.pop("jsonTool") in ("jq", "gojq", "none")
    assert report == {
        "status": "ok",
        "mode": "full",
        "tools": "ok",
        "resources": "ok",
        "prompts": "ok",
        "projectChecks": "none",
    }


def test_nothing_is_written(project: ProjectBuilder) -> None:
    project.tool("a", "echo")
    health(project)

    assert sorted(os.listdir(project.root)) == ["server.d", "tools"]


def test_a_registration_that_cannot_be_used_is_unhealthy(project: ProjectBuilder) -> None:
    project.write("server.d/register.json", "{}").chmod(0o644)
    status, report, stderr = health(project)

    assert (status, report["status"], report["tools"]) == (1, "unhealthy", "failed")
    assert "server.d/register.json: version must be 1" in stderr
    assert report["resources"] == report["prompts"] == "failed"
    assert stderr.count("register.json") == 1


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("MCPBASH_REMOTE_TOKEN", "short", "bad_remote_token"),
        ("MCPBASH_ROOTS", "/nope", "bad_roots"),
        ("MCPBASH_TMP_ROOT", "/nope", "bad_tmp_root"),
    ],
)
def test_what_keeps_a_server_from_starting_is_told(
    project: ProjectBuilder, variable: str, value: str, reason: str
) -> None:
    """Probes were told that all is well, and serve refused to start."""
    env = {variable: value}
    status, report, stderr = health(project, env=env)

    assert (status, report) == (2, {"status": "error", "reason": reason})
    served = mcpgreen("serve", "--project-root", str(project.root), env=env)
    assert (served.returncode, served.stderr) == (1, stderr)


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
def test_a_kind_that_cannot_be_listed_has_failed(project: ProjectBuilder, kind: str) -> None:
    shutil.rmtree(project.root / kind, ignore_errors=True)
    project.write(kind, "no directory")
    status, report, stderr = health(project)

    assert (status, report["status"], report[kind]) == (1, "unhealthy", "failed")
    assert f"{kind} cannot be listed: Not a directory" in stderr


def test_a_directory_that_may_not_be_read_has_failed(project: ProjectBuilder) -> None:
    (project.root / "tools").chmod(0)
    status, report, _ = health(project, prefix=without_privileges())
    (project.root / "tools").chmod(0o755)

    assert (status, report["tools"], report["prompts"]) == (1, "failed", "ok")


def test_an_empty_path_does_not_mean_this_directory(project: ProjectBuilder) -> None:
    project.write("gojq", "#!/bin/sh\n").chmod(0o755)
    reports = [health(project, env={"PATH": path}, cwd=project.root)[1] for path in ("", "/usr/bin:/bin")]

    assert reports[0] == reports[1]


def test_the_project_s_own_checks_have_helpers(project: ProjectBuilder) -> None:
    script = "mcp_health_check_command bash && mcp_health_check_env HOME 'a home' && echo printed"
    status, report, stderr = checks(project, script)

    assert (status, report["projectChecks"]) == (0, "ok")
    assert stderr == "ok: the command bash is there\nok: a home\nprinted\n"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("mcp_health_check_command no-such-program 'the engine'", "failed: the engine: there is no command no-such"),
        ("mcp_health_check_env NO_SUCH_VARIABLE", "failed: variable NO_SUCH_VARIABLE: the variable NO_SUCH_VARIABLE"),
        ("exit 4", "server.d/health-checks.sh: it exited with status 4"),
        ("if then", "syntax error"),
    ],
)
def test_a_check_that_fails_is_unhealthy(project: ProjectBuilder, script: str, told: str) -> None:
    status, report, stderr = checks(project, script)

    assert (status, report["status"], report["projectChecks"]) == (1, "unhealthy", "failed")
    assert told in stderr


def test_checks_that_take_too_long_are_unhealthy(project: ProjectBuilder) -> None:
    status, _, stderr = checks(project, "sleep 600", "--timeout", "0.2")

    assert status == 1
    assert "it took longer than 0.2 s" in stderr


def test_checks_that_others_may_write_to_are_skipped(project: ProjectBuilder) -> None:
    status, report, stderr = checks(project, "touch ran; false", mode=0o666)

    assert (status, report["projectChecks"]) == (0, "skipped")
    assert "server.d/health-checks.sh is not run: it can be written to by others" in stderr
    assert not (project.root / "ran").exists()


def test_run_tool_names_a_file_that_cannot_be_sourced(project: ProjectBuilder, tmp_path: Path) -> None:
    project.tool("show", "echo")
    done = run_tool(project, "show", "--source", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such file" in done.stderr

    (tmp_path / "bad").write_text("exit 3", encoding="utf-8")
    done = run_tool(project, "show", "--source", str(tmp_path / "bad"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "it exited with status 3" in done.stderr


def test_run_tool_runs_what_register_sh_registers(project: ProjectBuilder) -> None:
    project.tool("a", "echo hello")
    hook = project.write("server.d/register.sh", """mcp_register_tool '{"name": "b", "path": "a"}'""")
    hook.chmod(0o755)
    done = run_tool(project, "b", env={"MCPGREEN_ALLOW_PROJECT_HOOKS": "true"})

    assert json.loads(done.stdout)["content"][0]["text"] == "hello\n"
