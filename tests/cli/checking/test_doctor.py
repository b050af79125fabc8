"""`mcpgreen doctor`, and the server as a client starts it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import mcpgreen
from tests.sdk.conftest import path_without_jq  # noqa: F401 (a fixture)
from tests.support.project import ProjectBuilder

NAMES = {
    *("python", "packages", "loop", "jq", "bash", "project", "permissions", "settings", "hooks", "registry", "items"),
    "client",
}
REFUSAL = '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "go away"}}'


def doctor(project: ProjectBuilder, *flags: str, env: dict[str, str] | None = None) -> tuple[int, Any]:
    home = {"HOME": str(project.root.parent / "home")}
    done = mcpgreen("doctor", "--json", "--project-root", str(project.root), *flags, env={**home, **(env or {})})
    return done.returncode, json.loads(done.stdout)


def checks(report: Any, name: str) -> list[Any]:
    return [check for check in report["checks"] if check["name"] == name]


def as_cursor(project: ProjectBuilder, entry: Any, **options: Any) -> tuple[int, Any]:
    file = project.root.parent / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"correct": entry}}), encoding="utf-8")
    return doctor(project, "--as", "cursor", "--file", str(file), **options)


def install(project: ProjectBuilder, file: Path, client: str = "cursor", **env: str) -> None:
    arguments = ("--client", client, "--file", str(file), "--install", "--project-root", str(project.root))
    # The launcher of a checkout looks for a Python of its own, unless its entry names one.
    environ = {"HOME": str(project.root.parent / "home"), "MCPGREEN_PYTHON": sys.executable, **env}
    done = mcpgreen("config", *arguments, env=environ)
    assert done.returncode == 0, done.stderr


def test_a_healthy_project(correct: ProjectBuilder) -> None:
    status, report = doctor(correct)

    assert (status, report["status"]) == (0, "ok")
    assert {check["name"] for check in report["checks"]} == NAMES
    assert all(check.keys() == {"name", "status", "message", "fix"} for check in report["checks"])


REQUIRED: list[tuple[Any, str, str]] = [
    ({"dependencies": [{"name": "bash"}, {"or": ["no-such-jq", "jq"]}]}, "ok", "bash, no-such-jq or jq"),
    ({"dependencies": [{"name": "bash"}, {"name": "no-such-program"}]}, "error", "no-such-program is missing"),
    ({"dependencies": [{"or": ["no-such-jq", "no-such-gojq"]}]}, "error", "no-such-jq or no-such-gojq is missing"),
    ({"framework": {"minVersion": "1.3.0"}}, "ok", "no program"),
    ({"framework": {"minVersion": "1.12.0"}}, "warning", "mcp-bash 1.12.0"),
    ({"framework": {"minVersion": "x"}}, "warning", "minVersion"),
    ({"framework": []}, "warning", "framework"),
    ({"dependencies": {"name": "bash"}}, "warning", "dependencies"),
    ({"dependencies": ["bash"]}, "warning", "dependencies"),
    ({"dependencies": [{"or": []}]}, "warning", "dependencies"),
    ("{", "warning", "not valid JSON"),
    ("[]", "warning", "object"),
]


@pytest.mark.parametrize(("content", "status", "message"), REQUIRED, ids=str)
def test_what_the_project_requires_is_looked_for(
    correct: ProjectBuilder,
    path_without_jq: str,  # noqa: F811
    content: Any,
    status: str,
    message: str,
) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    correct.write("server.d/requirements.json", text).chmod(0o644)
    exit_status, report = doctor(correct, "--dry-run", env={"PATH": path_without_jq})

    (check,) = checks(report, "requirements")
    assert check["status"] == status
    assert message in check["message"]
    assert (check["fix"] is None) is (status == "ok")
    assert exit_status == (1 if status == "error" else 0)


@pytest.mark.parametrize(
    ("version", "ending"), [("jq-1.6", "takes 30 ms to start; newer versions take 4 ms"), ("jq-1.8.1", "/jq")]
)
def test_a_jq_that_is_slow_to_start_is_named(correct: ProjectBuilder, version: str, ending: str) -> None:
    tool = correct.program("bin/jq", f"#!/bin/sh\necho {version}\n")
    _, report = doctor(correct, "--dry-run", env={"PATH": f"{tool.parent}:{os.environ['PATH']}"})

    (check,) = checks(report, "jq")
    assert (check["status"], check["message"].endswith(ending)) == ("ok", True)


def test_settings_have_an_origin_and_secrets_stay_secret(correct: ProjectBuilder) -> None:
    lines = "MCPGREEN_PAGE_SIZE=7\nMCPGREEN_TOOL_ALLOWLIST=one two\nMCPGREEN_CI_MODE=yes\n"
    correct.write("server.d/env", lines).chmod(0o644)
    token = "correct-horse-battery-staple-4711"
    _, report = doctor(correct, env={"MCPGREEN_REMOTE_TOKEN": token, "MCPGREEN_PAGE_SIZ": "5"})
    messages = [check["message"] for check in checks(report, "settings")]

    assert "page_size = 7 (from project file: MCPGREEN_PAGE_SIZE)" in messages
    assert "tool_allowlist = one,two (from project file: MCPGREEN_TOOL_ALLOWLIST)" in messages
    assert "idle_timeout_secs = 0.0 (from project file: MCPGREEN_CI_MODE)" in messages
    assert "remote_token = (secret) (from MCPGREEN_REMOTE_TOKEN)" in messages
    assert report["status"] == "warning"
    assert "did you mean MCPGREEN_PAGE_SIZE?" in str(messages)


@pytest.mark.parametrize(
    ("path", "mode", "name"),
    [
        ("tools", 0o777, "permissions"),
        ("tools/greet.sh", 0o777, "permissions"),
        ("providers/table.sh", 0o757, "permissions"),
        ("server.d/policy.sh", 0o666, "permissions"),
    ],
)
def test_what_is_wrong_is_an_error_with_a_remedy(correct: ProjectBuilder, path: str, mode: int, name: str) -> None:
    (correct.root / path).chmod(mode)
    status, report = doctor(correct)

    assert (status, report["status"]) == (1, "error")
    assert [check["name"] for check in report["checks"] if check["status"] == "error"] == [name]  # told once
    assert all(check["fix"] for check in report["checks"] if check["status"] != "ok")


def test_without_a_project_it_is_2(tmp_path: Path) -> None:
    done = mcpgreen("doctor", "--json", cwd=tmp_path)

    assert done.returncode == 2
    assert json.loads(done.stdout)["status"] == "error"


def test_a_project_that_others_can_change_is_1(correct: ProjectBuilder) -> None:
    (correct.root / "server.d" / "env").chmod(0o666)
    status, report = doctor(correct)

    assert status == 1
    assert "validate --fix" in checks(report, "project")[0]["fix"]


@pytest.mark.parametrize("flags", [["--as", "curser"], ["--file", "x"], ["--as", "jetbrains"], ["--nonsense"]])
def test_wrong_usage_is_2(correct: ProjectBuilder, flags: list[str]) -> None:
    done = mcpgreen("doctor", "--project-root", str(correct.root), *flags)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("client", ["cursor", "codex", "goose", "zed", "continue", "opencode"])
def test_the_entry_of_a_client_starts(correct: ProjectBuilder, tmp_path: Path, client: str) -> None:
    file = tmp_path / "client-file"
    install(correct, file, client)
    status, report = doctor(correct, "--as", client, "--file", str(file))

    assert (status, report["status"]) == (0, "ok"), report
    (start,) = checks(report, "start")
    assert start["message"].startswith("correct answered after ") and start["message"].endswith(" ms and lists 3 tools")
    assert checks(report, "missing")[0]["message"] == "nothing"


def test_an_entry_that_undoes_what_the_project_says_is_named(correct: ProjectBuilder, tmp_path: Path) -> None:
    """An allow-list that was written after the entry was installed had no effect, and nothing said so."""
    file = tmp_path / "client-file"
    install(correct, file, MCPGREEN_TOOL_ALLOWLIST="*")
    correct.write("server.d/env", "MCPGREEN_TOOL_ALLOWLIST=greet\n").chmod(0o644)

    _, report = doctor(correct, "--as", "cursor", "--file", str(file))
    assert report["status"] == "warning"
    (warning,) = [check for check in checks(report, "entry") if check["status"] == "warning"]
    assert warning["message"].startswith("MCPGREEN_TOOL_ALLOWLIST in the entry overrides tool_allowlist")

    install(correct, file)
    assert doctor(correct, "--as", "cursor", "--file", str(file))[1]["status"] == "ok"


@pytest.mark.parametrize(
    ("entry", "name", "message"),
    [
        ({"url": "https://example.org"}, "client", "has no command"),
        ({"command": "no-such-program"}, "entry", "cannot find no-such-program"),
        ({"command": "/bin/sh", "args": ["-c", "echo oh no >&2; exit 3"]}, "start", "(status 3); its stderr: oh no"),
        ({"command": "/bin/sh", "args": ["-c", "echo hello; cat"]}, "start", "output is not JSON: 'hello'"),
        ({"command": "/bin/sh", "args": ["-c", f"echo '[]'; echo '{REFUSAL}'; cat"]}, "start", "go away"),
        ({"command": "/bin/sh", "args": ["-c", "exit 0"], "cwd": "/no/such/place"}, "entry", "does not exist"),
    ],
)
def test_an_entry_that_does_not_start(correct: ProjectBuilder, entry: Any, name: str, message: str) -> None:
    status, report = as_cursor(correct, entry)

    assert (status, checks(report, name)[-1]["status"]) == (1, "error")
    assert message in checks(report, name)[-1]["message"]
    assert checks(report, name)[-1]["fix"]


def test_a_client_s_environment_is_thin(correct: ProjectBuilder, tmp_path: Path) -> None:
    """What works in a terminal may not in an editor: neither our variables nor our PATH are there."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "my-shell").symlink_to("/bin/sh")
    correct.program("tools/add", "#!/usr/bin/env my-shell\necho 1\n")
    file = tmp_path / "mcp.json"
    install(correct, file)
    environ = {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "MCPGREEN_PAGE_SIZE": "7"}
    status, report = doctor(correct, "--as", "cursor", "--file", str(file), env=environ)

    missing = {check["status"]: check["message"] for check in checks(report, "missing")}
    assert status == 1
    assert missing["error"] == "tools/add needs the interpreter my-shell, which is not on the PATH"
    assert missing["warning"] == "these variables are set here, but not in the entry: MCPGREEN_PAGE_SIZE"


def test_a_key_that_a_tool_needs_is_missed_in_the_entry(correct: ProjectBuilder, tmp_path: Path) -> None:
    """The tool would be listed, and each of its calls would fail."""
    correct.write("server.d/env", "OTHER_KEY=1\n")
    correct.write("server.d/env.sh", 'export THIRD_KEY=1 FOURTH_KEY="$WEATHER_KEY"\n')
    correct.tool("weather", "echo 1", env=["WEATHER_KEY!", "OTHER_KEY!", "THIRD_KEY!", "FOURTH_KEY!", "LOCALE"])
    file = tmp_path / "mcp.json"
    install(correct, file)
    status, report = doctor(correct, "--as", "cursor", "--file", str(file), env={"WEATHER_KEY": "1"})

    (missing,) = checks(report, "missing")
    assert (status, missing["status"]) == (1, "error")
    assert missing["message"] == "tools need these variables, which the entry does not set: FOURTH_KEY, WEATHER_KEY"
    assert missing["fix"] == "run mcpgreen config --client cursor --install --env FOURTH_KEY --env WEATHER_KEY"
