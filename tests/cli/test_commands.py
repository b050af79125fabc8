from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.forking import can_fork
from tests.support.prerequisites import without_privileges
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import CHECKOUT, Wire, clean_environment, nursery, text_of


def mcpgreen(
    *arguments: str,
    env: dict[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    cwd: Path | None = None,
    prefix: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(env)
    if stdin == subprocess.DEVNULL and not prefix and can_fork(environment):
        return nursery().run(arguments, environment, str(cwd) if cwd else None, timeout=120)
    return completed([*prefix, sys.executable, "-m", "mcpgreen", *arguments], stdin=stdin, env=environment, cwd=cwd)


def run_tool(project: ProjectBuilder, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return mcpgreen("run-tool", *arguments, "--project-root", str(project.root), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [[], ["--project-root", "."], ["--project-root=."], ["--project", "."]])
def test_without_a_command_and_a_terminal_it_serves(project: ProjectBuilder, options: list[str]) -> None:
    """Clients that were set up for mcp-bash start it so."""
    read_end, write_end = os.pipe()
    os.write(write_end, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    os.close(write_end)
    env = {} if options else {"MCPBASH_PROJECT_ROOT": str(project.root)}
    done = mcpgreen(*options, stdin=read_end, cwd=project.root if options else None, env=env)
    os.close(read_end)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"jsonrpc": "2.0", "id": 1, "result": {}})


@pytest.mark.parametrize("command", [["config"], ["help"], ["list", "--json"]], ids=" ".join)
def test_nobody_reads_what_is_printed(project: ProjectBuilder, command: list[str]) -> None:
    """`mcpgreen config | head` ended with a traceback."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "mcpgreen", *command],
            cwd=project.root,
            env=clean_environment({"PYTHONPATH": str(CHECKOUT)}),
            stdin=subprocess.DEVNULL,
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_what_is_printed_to_a_full_disk_is_a_failure() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "mcpgreen", "help"]
        done = subprocess.run(command, cwd=CHECKOUT, stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
    assert (done.returncode, done.stderr[:16]) == (1, b"mcpgreen: error:")


@pytest.mark.parametrize("flag", ["--version", "-v"])
def test_the_version_is_told(flag: str) -> None:
    from mcpgreen import __version__

    done = mcpgreen(flag)
    assert (done.returncode, done.stdout) == (0, f"mcpgreen {__version__}\n")


@pytest.mark.parametrize("arguments", [["fly"], ["scan", "--fly"], ["run-tool"], ["serve", "twice"]])
def test_a_command_line_that_makes_no_sense_is_refused_on_stderr(arguments: list[str]) -> None:
    done = mcpgreen(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "\nTry: mcpgreen " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--fly"], "--fly"),
        (["--fly=high"], "--fly"),
        (["--project-root", "--here", "--fly"], "--fly"),
        (["scan", "--filter", "-x", "-y"], "-y"),
        (["run-tool", "show", "--args", "{}", "--fly"], "--fly"),
    ],
)
def test_an_unknown_option_is_named(arguments: list[str], option: str) -> None:
    done = mcpgreen(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    meant = "serve" if arguments[0].startswith("-") else arguments[0]
    assert done.stderr == f"mcpgreen: unknown option: {option}\nTry: mcpgreen {meant} --help\n"


def test_a_project_that_does_not_exist_is_named(tmp_path: Path) -> None:
    for command in (["serve"], ["scan"], ["run-tool", "x"]):
        done = mcpgreen(*command, "--project-root", str(tmp_path / "nowhere"))
        assert (done.returncode, done.stdout) == (1, "")
        assert "nowhere" in done.stderr
        assert "Traceback" not in done.stderr


EVERY_COMMAND = pytest.mark.parametrize(
    "command",
    [["serve"], ["scan"], ["registry", "status"], ["validate"], ["run-tool", "x"], ["health"], ["config"]],
    ids=" ".join,
)


@EVERY_COMMAND
def test_a_project_that_may_not_be_entered_is_named(project: ProjectBuilder, command: list[str]) -> None:
    project.root.chmod(0)
    try:
        done = mcpgreen(*command, "--project-root", str(project.root), prefix=without_privileges())
    finally:
        project.root.chmod(0o755)
    assert done.returncode == (2 if command == ["health"] else 1)
    assert done.stderr == f"mcpgreen: error: {project.root}: no permission to enter the project directory\n"


def test_scan_writes_the_registry_and_prints_the_status(project: ProjectBuilder) -> None:
    project.tool("greet", "echo hi", description="Greets")
    done = mcpgreen("scan", "--project-root", str(project.root))
    status = json.loads(done.stdout)
    assert done.returncode == 0
    assert status["tools"] == {"status": "ok", "count": 1, "error": None}
    assert (status["mode"], status["notificationsSent"]) == ("full", False)
    registry = json.loads(project.read(".registry/tools.json"))
    assert [item["name"] for item in registry["items"]] == ["greet"]
    assert (registry["version"], registry["total"]) == (1, 1)


@pytest.mark.parametrize(
    "command",
    [["scan"], ["registry", "refresh"], ["registry", "status"], ["validate"], ["run-tool", "hello"], ["config"]],
    ids=" ".join,
)
def test_without_a_project_a_command_fails_and_says_so_once(tmp_path: Path, command: list[str]) -> None:
    """They took the bundled example, and wrote .registry into it."""
    done = mcpgreen(*command, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"mcpgreen: error: {tmp_path}: there is no project here or in a parent directory")
    assert all(remedy in done.stderr for remedy in ("`mcpgreen new NAME`", "`mcpgreen init`", "--project-root"))
    assert done.stderr.count("\n") == 1


def test_without_a_project_the_bundled_example_is_served_and_says_so(tmp_path: Path) -> None:
    with Wire(None, cwd=tmp_path, env={"HOME": str(tmp_path), "MCPGREEN_LAUNCHER": '/opt/my "own"/mcpgreen'}) as wire:
        greeting = wire.handshake()
        told = text_of(wire.call_tool("getting_started"))
        assert "using the bundled example. Create one with `mcpgreen new NAME`" in wire.stderr
    assert "no project was named and none was found" in greeting["instructions"]
    assert "`getting_started`" in greeting["instructions"]
    entry = json.loads(told[told.index("{\n") : told.rindex("}") + 1])["mcpServers"]["my-server"]
    root = f"{tmp_path}/my-server"
    assert entry == {"command": '/opt/my "own"/mcpgreen', "args": ["serve", "--project-root", root]}


@pytest.mark.parametrize("home", ["", "/proc/nobody"])
def test_a_home_is_not_needed_to_serve(project: ProjectBuilder, home: str) -> None:
    project.tool("greet", "echo hi")
    with Wire(project.root, env={"HOME": home}).greeted() as wire:
        assert text_of(wire.call_tool("greet")) == "hi\n"
        assert wire.stderr == ""


def test_what_the_bundled_example_tells_to_do_makes_a_server(tmp_path: Path) -> None:
    with Wire(None, cwd=tmp_path, env={"HOME": str(tmp_path)}).greeted() as wire:
        told = text_of(wire.call_tool("getting_started"))
    commands = [line for line in told.splitlines() if line.startswith(("mkdir", "printf", "chmod"))]
    subprocess.run(["sh", "-euc", "\n".join(commands)], check=True)
    done = mcpgreen("run-tool", "hello", cwd=tmp_path / "my-server")
    assert json.loads(done.stdout)["content"][0]["text"] == "Hello from a script.\n"


@pytest.mark.parametrize("arguments", ["[1]", "{", "@/nowhere.json"])
def test_run_tool_refuses_arguments_that_are_no_object(project: ProjectBuilder, arguments: str) -> None:
    project.tool("show", "true")
    done = run_tool(project, "show", "--args", arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mcpgreen: error: --args")


def test_an_error_of_the_protocol_is_told_apart(project: ProjectBuilder) -> None:
    done = run_tool(project, "absent")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"_mcpToolError": True, "code": -32602, "message": "Tool 'absent' not found"}


def test_run_tool_can_allow_what_the_list_forbids(project: ProjectBuilder) -> None:
    project.tool("greet", "echo hi")
    env = {"MCPGREEN_TOOL_ALLOWLIST": "other"}
    assert run_tool(project, "greet", env=env).returncode == 1
    for flags in (["--allow-self"], ["--allow", "greet"], ["--allow-all"]):
        assert run_tool(project, "greet", *flags, env=env).returncode == 0


def test_run_tool_sets_the_roots(project: ProjectBuilder, tmp_path: Path) -> None:
    project.tool("roots", 'printf "%s" "$MCP_ROOTS_PATHS"')
    (tmp_path / "data").mkdir()
    done = run_tool(project, "roots", "--roots", str(tmp_path / "data"))
    assert json.loads(done.stdout)["content"][0]["text"] == str((tmp_path / "data").resolve())
    refused = run_tool(project, "roots", "--roots", str(tmp_path / "nowhere"))
    assert refused.returncode == 1
    assert "nowhere" in refused.stderr


@pytest.mark.requirement("G-roots-configured")
def test_run_tool_without_roots_falls_back_in_order(project: ProjectBuilder) -> None:
    project.tool("roots", 'printf "%s" "$MCP_ROOTS_PATHS"')
    for name in ("flag", "variable", "file"):
        (project.root / name).mkdir()

    def roots(*flags: str, **env: str) -> str:
        text: str = json.loads(run_tool(project, "roots", *flags, env=env).stdout)["content"][0]["text"]
        return text

    assert roots() == str(project.root)
    project.write("config/roots.json", json.dumps({"roots": [{"path": "nowhere"}, {"path": "file"}]}))
    assert roots() == str(project.root / "file")
    assert roots(MCPBASH_ROOTS="variable") == str(project.root / "variable")
    assert roots("--roots", "flag,file", MCPBASH_ROOTS="variable") == f"{project.root}/flag\n{project.root}/file"


@pytest.mark.requirement("G-roots-configured")
def test_a_bad_root_in_the_environment_ends_run_tool(project: ProjectBuilder) -> None:
    project.tool("roots", "touch ran")
    done = run_tool(project, "roots", env={"MCPBASH_ROOTS": "nowhere"})
    assert done.returncode == 1
    assert done.stderr.startswith("mcpgreen: error: nowhere: ")
    assert done.stderr.count("\n") == 1
    assert not (project.root / "ran").exists()


def test_a_dry_run_runs_nothing(project: ProjectBuilder) -> None:
    project.tool("mark", "touch ran")
    done = run_tool(project, "mark", "--dry-run")
    assert done.returncode == 0
    assert "Timeout: 30\n" in done.stdout
    assert "Status: ready" in done.stdout
    assert not (project.root / "ran").exists()
    assert run_tool(project, "absent", "--dry-run").returncode == 1


def test_settings_of_the_project_hold_and_reach_its_tools(project: ProjectBuilder) -> None:
    project.write("server.d/env", "# ours\nMCPGREEN_TOOL_ALLOWLIST=greet\nMCP_GREETING='good day'\nnot a line\n")
    project.tool("greet", 'printf "%s" "$MCP_GREETING"')
    project.tool("other", "true")
    done = run_tool(project, "greet")
    assert json.loads(done.stdout)["content"][0]["text"] == "good day"
    assert "server.d/env:4" in done.stderr
    assert run_tool(project, "other").returncode == 1
