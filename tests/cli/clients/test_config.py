"""`mcpgreen config` as a person or a script runs it."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml

from mcpgreen.cli.clients.table import CLIENTS, Client
from tests.cli.test_commands import mcpgreen
from tests.support.prerequisites import require_frameworks_of_node
from tests.support.project import ProjectBuilder
from tests.support.wire import CHECKOUT, Wire, clean_environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.usefixtures("default_tasks")
Config = Callable[..., subprocess.CompletedProcess[str]]
BEFORE = '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home of Ada"
    place.mkdir()
    return place


@pytest.fixture
def config(project: ProjectBuilder, home: Path) -> Config:
    def run(*arguments: str, env: dict[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        return mcpgreen(
            "config", *arguments, env={"HOME": str(home), **(env or {})}, cwd=more.pop("cwd", project.root), **more
        )

    project.write("server.d/server.meta.json", json.dumps({"name": "demo", "description": "Greets"}))
    project.tool("greet", "echo hi")
    return run


def test_an_entry_in_the_file_starts_the_server(config: Config, home: Path) -> None:
    """From nowhere in particular, and without an environment: as a program with windows does it."""
    done = config("--client", "cursor", "--install")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Installed demo for Cursor: {home}/.cursor/mcp.json\n" in done.stdout

    entry = json.loads((home / ".cursor/mcp.json").read_bytes())["mcpServers"]["demo"]
    assert entry["args"][0] == "serve"
    assert all(os.path.isabs(path) for path in (entry["command"], entry["args"][-1]))
    command = ["env", "-i", *(f"{name}={value}" for name, value in entry.get("env", {}).items()), entry["command"]]
    wire = Wire(None, command=[*command, *entry["args"]], cwd="/")
    try:
        assert wire.handshake()["serverInfo"]["name"] == "demo"
        assert wire.call_tool("greet")["content"][0]["text"] == "hi\n"
    finally:
        wire.end()


@pytest.mark.parametrize("client", ["opencode", "qwen"])
def test_the_program_of_a_client_connects_by_its_entry(config: Config, home: Path, client: str) -> None:
    node, packages = require_frameworks_of_node()
    assert config("--client", client, "--install").returncode == 0

    done = subprocess.run(
        [packages / ".bin" / client, "mcp", "list"],
        cwd=home,
        env={"HOME": str(home), "PATH": f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )

    assert re.search(r"✓\S* demo\b", done.stdout), done


def test_there_and_back(config: Config, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(BEFORE, encoding="utf-8")
    path.chmod(0o640)

    done = config("--client", "cursor", "--install")

    assert done.returncode == 0
    assert f"Backup: {path}.mcpgreen-backup\n" in done.stdout
    assert '-    "other": {"command": "x"}\n+    "other": {"command": "x"},\n+    "demo": {\n' in done.stdout
    assert done.stdout.index("+++") < done.stdout.index("Installed")
    assert config("--client", "cursor", "--install").stdout == f"demo is already in {path}\n"

    done = config("--client", "cursor", "--uninstall")
    assert done.returncode == 0
    assert f"Uninstalled demo for Cursor: {path}\n" in done.stdout
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == (BEFORE, 0o640)
    assert config("--client", "cursor", "--uninstall").stdout == f"demo is not in {path}\n"


def test_what_cannot_be_read_is_refused_with_a_reason(config: Config, home: Path) -> None:
    path = home / "mcp.json"
    path.write_text("{ // mine\n}", encoding="utf-8")
    done = config("--client", "claude-desktop", "--install", "--file", str(path))
    assert (done.returncode, done.stdout) == (1, "")
    reason = "it has a comment at line 1 column 3, which this client cannot read; the file was not changed"
    assert done.stderr == f"mcpgreen: error: {path}: {reason}\n"
    assert path.read_text(encoding="utf-8") == "{ // mine\n}"

    report = json.loads(config("--client", "claude-desktop", "--install", "--file", str(path), "--json").stdout)
    assert (report["changed"], report["file"]) == (False, str(path))
    assert "comment" in report["error"]


@pytest.mark.parametrize("action", ["--install", "--uninstall"])
@pytest.mark.parametrize("client", ["jetbrains", "librechat"])
def test_who_has_no_file_needs_one_named(config: Config, home: Path, client: str, action: str) -> None:
    done = config("--client", client, action)
    assert (done.returncode, done.stdout) == (1, "")
    assert "name" in done.stderr
    assert "--file" in done.stderr
    assert config("--client", client, action, "--file", str(home / "file")).returncode == 0


def test_a_file_with_a_relative_name_is_in_the_current_directory(config: Config, tmp_path: Path) -> None:
    config("--client", "librechat", "--install", "--file", "x.yaml")
    done = config("--client", "librechat", "--install", "--file", "chat.yaml", "--json")
    report = json.loads(done.stdout)
    assert report["file"].endswith("/chat.yaml")
    document = yaml.safe_load(Path(report["file"]).read_bytes())
    assert document["version"]
    assert document["mcpServers"]["demo"]["type"] == "stdio"


def test_codex_takes_no_odd_names(config: Config, home: Path) -> None:
    done = config("--client", "codex", "--install", "--name", "my server")
    assert done.returncode == 1
    assert "--name" in done.stderr
    assert not (home / ".codex").exists()
    assert config("--client", "codex", "--install", "--name", "my-server").returncode == 0
    assert tomllib.loads((home / ".codex/config.toml").read_text(encoding="utf-8"))["mcp_servers"].keys() == {
        "my-server"
    }


def test_continue_keeps_reading_its_older_file(config: Config, home: Path) -> None:
    (home / ".continue").mkdir()
    (home / ".continue" / "config.json").touch()
    done = config("--client", "continue", "--install")
    assert done.returncode == 1
    assert "would ignore it once" in done.stderr
    assert not (home / ".continue" / "config.yaml").exists()


def test_the_file_that_is_there_is_taken(config: Config, home: Path) -> None:
    older = home / ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
    older.parent.mkdir(parents=True)
    older.write_text("{}", encoding="utf-8")
    assert json.loads(config("--client", "cline", "--install", "--json").stdout)["file"] == str(older)


@pytest.mark.parametrize(
    ("client", "place"),
    [("claude-cli", ".mcp.json"), ("vscode", ".vscode/mcp.json"), ("continue", ".continue/mcpServers/demo.yaml")],
)
def test_the_scope_of_a_project_is_its_own_file(
    config: Config, project: ProjectBuilder, client: str, place: str
) -> None:
    assert config("--client", client, "--install", "--scope", "project").returncode == 0
    assert "demo" in project.read(place)
    assert config("--client", client, "--uninstall", "--scope", "project").returncode == 0
    assert not (project.root / place).exists()


def test_who_knows_no_projects_refuses_their_scope(config: Config) -> None:
    done = config("--client", "windsurf", "--install", "--scope", "project")
    assert done.returncode == 1
    assert "has no project-level file" in done.stderr


def test_an_entry_can_go_when_the_project_is_gone(config: Config, home: Path, tmp_path: Path) -> None:
    config("--client", "cursor", "--install")
    assert config("--client", "cursor", "--uninstall", "--name", "demo", cwd=tmp_path).returncode == 0
    assert list((home / ".cursor").iterdir()) == []


@pytest.mark.parametrize("client", ["cursor", "codex", "goose", "opencode"])
def test_variables_go_into_the_entry_and_not_onto_the_screen(
    config: Config, home: Path, project: ProjectBuilder, client: str
) -> None:
    project.write("keys.env", "# for the service\nFILE_KEY='of the file'\n")
    given = ["--env", "HERE_KEY", "--env", "city=Bonn: a=b", "--env-file", "keys.env"]
    done = config("--client", client, "--install", *given, env={"HERE_KEY": "of the shell"})
    secrets = ("of the shell", "Bonn", "of the file")

    assert (done.returncode, done.stderr) == (0, "")
    path = Path(re.search(r": (/.*)\nBackup", done.stdout)[1])  # type: ignore[index]
    assert all(secret in path.read_text() and secret not in done.stdout for secret in secrets)
    assert "serve" in done.stdout

    config("--client", client, "--install")
    again = config("--client", client, "--install", "--env", "HERE_KEY=changed")
    assert "of the file" in path.read_text()  # what is in the entry stays
    assert "changed" in path.read_text()
    gone = config("--client", client, "--uninstall")
    shared = config("--client", "cursor", "--install", "--scope", "project", "--env", "A_KEY=1")
    assert "keep it out of version control" in shared.stderr
    assert not any(secret in again.stdout + gone.stdout for secret in ("of the shell", "of the file", "changed"))


def test_a_key_that_a_tool_needs_is_asked_for_and_kept_from_others(
    config: Config, home: Path, project: ProjectBuilder
) -> None:
    project.tool("weather", "echo sunny", env=["WEATHER_KEY!", "OTHER_KEY!", "PLACE"])
    project.write("server.d/env.sh", "export OTHER_KEY=1\n")
    missing = config("--client", "cursor", "--install").stderr
    assert "does not set: WEATHER_KEY; set it in this shell (export WEATHER_KEY=…), then run /" in missing
    assert "/mcpgreen config --client cursor --install --env WEATHER_KEY\n" in missing
    shared = config("--client", "cursor", "--install", "--scope", "project", "--name", "my own").stderr
    assert " config --client cursor --install --scope project --name 'my own' --env WEATHER_KEY\n" in shared

    file = home / ".cursor/mcp.json"
    file.chmod(0o664)
    given = config("--client", "cursor", "--install", "--env", "WEATHER_KEY=k")
    assert f"other users can read {file}, which contains WEATHER_KEY; run chmod 600 on it" in given.stderr
    assert "does not set" not in given.stderr

    file.chmod(0o600)
    assert config("--client", "cursor", "--install").stderr == ""


def test_a_dry_run_writes_nothing(config: Config, home: Path) -> None:
    done = config("--client", "cursor", "--install", "--dry-run")
    assert done.returncode == 0
    assert '+    "demo": {' in done.stdout
    assert list(home.iterdir()) == []
    report = json.loads(config("--client", "cursor", "--install", "--dry-run", "--json").stdout)
    assert (report["dryRun"], report["changed"]) == (True, False)
    assert "demo" in report["diff"]


def test_settings_go_along_and_secrets_do_not(config: Config, project: ProjectBuilder) -> None:
    env = {
        "MCPGREEN_TOOL_ALLOWLIST": "greet",
        "MCPBASH_DEFAULT_TOOL_TIMEOUT": "90",
        "MCP_TOOLS_TTL": "9",
        "MCPBASH_TOOL_ALLOWLIST": "*",  # our own name counts
        "MCPBASH_HOME": "/opt/mcp-bash",
        "MCPGREEN_REMOTE_TOKEN": "t" * 40,
        "MCPBASH_STATE_KEY": "k" * 40,
        "MCPGREEN_OTHER_TOKEN": "secret",
        "MCPGREEN_TOOL_ENV_ALLOWLIST": "API_KEY,UNSET",
        "API_KEY": "secret",
        "UNRELATED": "x",
    }
    done = config("--client", "codex", "--json", env=env)
    report = json.loads(done.stdout)
    assert report["env"] == {
        "MCPGREEN_TOOL_ALLOWLIST": "greet",
        "MCPGREEN_DEFAULT_TOOL_TIMEOUT": "90",
        "MCPGREEN_TOOLS_TTL": "9",
        "MCPGREEN_TOOL_ENV_ALLOWLIST": "API_KEY,UNSET",
    }
    assert report["leftOut"] == ["MCPBASH_STATE_KEY", "MCPGREEN_OTHER_TOKEN", "MCPGREEN_REMOTE_TOKEN", "API_KEY"]
    assert report["entry"]["tool_timeout_sec"] == 95
    assert "secret: MCPBASH_STATE_KEY, " in config("--client", "codex", "--install", env=env).stderr


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.word)
def test_an_entry_contains_what_is_needed_and_nothing_else(config: Config, client: Client) -> None:
    report = json.loads(config("--client", client.word, "--json").stdout)
    assert report["env"] == {}
    assert not {"env", "environment"} & report["entry"].keys()


@pytest.mark.parametrize(
    ("client", "word"),
    [("vscode", "${workspaceFolder}"), ("cursor", "${workspaceFolder}"), ("claude-code", "${CLAUDE_PROJECT_DIR:-.}")],
)
def test_an_entry_for_everybody_names_the_open_folder(
    config: Config, project: ProjectBuilder, client: str, word: str
) -> None:
    env = {"MCPGREEN_ROOTS": f"{project.root}/data"}
    report = json.loads(config("--client", client, "--scope", "project", "--json", env=env).stdout)
    assert report["entry"]["args"] == ["serve", "--project-root", word]
    assert report["entry"]["env"] == {"MCPGREEN_ROOTS": f"{word}/data"}
    assert str(project.root) not in report["snippet"]
    own = json.loads(config("--client", client, "--json", env=env).stdout)["entry"]
    assert own["args"][-1] == str(project.root)
    config("--client", client, "--scope", "project", "--install")
    done = mcpgreen("doctor", "--as", client, "--json", "--project-root", str(project.root), env={"HOME": "/nowhere"})
    started = [check["status"] for check in json.loads(done.stdout)["checks"] if check["name"] == "start"]
    assert started == ["ok"]


def test_what_is_printed_is_a_whole_file(config: Config, home: Path) -> None:
    done = config("--client", "claude-desktop")
    entry = json.loads(done.stdout)["mcpServers"]["demo"]
    assert entry["command"].endswith("mcpgreen")
    assert f"This goes into {home}/.config/Claude/claude_desktop_config.json." in done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.word)
def test_what_is_printed_for_a_client_can_be_read_by_a_program(config: Config, client: Client) -> None:
    """A link or a command line came behind it, and `jq` gave up."""
    printed = config("--client", client.word).stdout
    assert printed == json.loads(config("--client", client.word, "--json").stdout)["snippet"]
    if client.format == "json":
        assert isinstance(json.loads(printed), dict)


def test_without_a_client_all_are_shown(config: Config) -> None:
    shown = config("--show").stdout
    assert shown == config().stdout
    for title in ("Claude Desktop", "Cursor", "Claude Code", "Windsurf", "LibreChat", "Codex CLI"):
        assert f"# {title}\n" in shown


def test_the_links_hold_the_entry(config: Config) -> None:
    report = json.loads(config("--client", "cursor", "--json").stdout)
    (link,) = report["links"]
    assert link in config("--client", "cursor").stderr
    assert link.startswith("cursor://anysphere.cursor-deeplink/mcp/install?")
    query = parse_qs(urlsplit(link).query)
    assert query["name"] == ["demo"]
    assert json.loads(base64.b64decode(query["config"][0])) == report["entry"]

    report = json.loads(config("--client", "vscode", "--json").stdout)
    (link,) = report["links"]
    assert link in config("--client", "vscode").stderr
    scheme, _, payload = link.partition("?")
    assert scheme == "vscode:mcp/install"
    assert json.loads(unquote(payload)) == {"name": "demo", **report["entry"]}


def test_the_lines_for_the_clients_own_commands(config: Config, project: ProjectBuilder) -> None:
    def words(client: str) -> list[str]:
        (line,) = json.loads(config("--client", client, "--json").stdout)["commands"]
        assert line in config("--client", client).stderr
        return shlex.split(line)

    start = ["--", str(CHECKOUT / "scripts/mcpgreen"), "serve", "--project-root", str(project.root)]
    assert words("claude-code")[:6] == ["claude", "mcp", "add", "--scope", "user", "demo"]
    assert words("claude-code")[-5:] == words("codex")[-5:] == words("copilot")[-5:] == start
    assert words("codex")[:5] == ["codex", "mcp", "add", "demo", "--"]
    assert words("vscode")[:2] == ["code", "--add-mcp"]
    assert json.loads(words("vscode")[2])["name"] == "demo"


def test_the_line_for_the_inspector(config: Config, project: ProjectBuilder) -> None:
    (line,) = config("--inspector").stdout.splitlines()
    assert shlex.split(line)[:2] == ["npx", "@modelcontextprotocol/inspector"]
    assert shlex.split(line)[-2:] == ["--project-root", str(project.root)]


@pytest.mark.parametrize("option", ["--wrapper", "--wrapper-env"])
def test_a_wrapper_serves_the_project_that_it_lies_in(
    config: Config, project: ProjectBuilder, home: Path, option: str
) -> None:
    (home / ".profile").write_text("echo noise; read line; export FROM_PROFILE=1\n", encoding="utf-8")
    (home / ".bash_profile").write_text(". ~/.profile\n", encoding="utf-8")
    wrapper = project.write("serve it.sh", config(option).stdout)
    wrapper.chmod(0o755)
    wire = Wire(
        None,
        command=[str(wrapper)],
        cwd="/",
        env={"HOME": str(home), "SHELL": "/bin/bash", "MCPGREEN_PYTHON": sys.executable},
    )
    try:
        assert wire.handshake()["serverInfo"]["name"] == "demo"
    finally:
        wire.end()


def test_at_a_terminal_a_wrapper_is_written_once(config: Config, project: ProjectBuilder, home: Path) -> None:
    def at_a_terminal() -> int:
        main, terminal = pty.openpty()
        try:
            return subprocess.run(
                [sys.executable, "-m", "mcpgreen", "config", "--wrapper", "--project-root", str(project.root)],
                stdin=subprocess.DEVNULL,
                stdout=terminal,
                stderr=subprocess.DEVNULL,
                env=clean_environment({"HOME": str(home)}),
                timeout=120,
                check=False,
            ).returncode
        finally:
            os.close(main)
            os.close(terminal)

    assert at_a_terminal() == 0
    written = project.read("demo.sh")
    assert os.access(project.root / "demo.sh", os.X_OK)
    assert written == config("--wrapper").stdout
    assert at_a_terminal() == 1


def test_an_unknown_client_gets_the_nearest_and_the_list(config: Config) -> None:
    done = config("--client", "cursr", "--install")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown client: cursr; did you mean cursor? Choose from claude-desktop, " in done.stderr
    assert "did you mean claude-code?" in config("--client", "claude").stderr
    assert "did you mean" not in config("--client", "zzzzzz").stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--install"], "--install needs --client"),
        (["--uninstall"], "--uninstall needs --client"),
        (["--client", "cursor", "--scope", "world"], "--scope is user or project"),
        (["--client", "cursor", "--name", ""], "--name needs"),
        (["--client", "cursor", "--name", "a\nb"], "--name needs"),
        (["--client", "cursor", "--name", "x" * 200], "--name needs"),
        (["--client", "cursor", "--file", ""], "--file needs"),
        (["--client", "cursor", "--install", "--uninstall"], "--uninstall cannot be used with --install"),
        (["--client", "cursor", "--env", "A=1"], "--env and --env-file need --install"),
        (["--client", "cursor", "--install", "--env", "A_KEY"], "--env A_KEY: it is not set here"),
        (["--client", "cursor", "--install", "--env", "A-KEY=1"], "--env A-KEY: this is not a valid variable name"),
        (["--client", "cursor", "--install", "--env-file", "tools/greet"], "line 2 is not KEY=VALUE"),
    ],
)
def test_what_makes_no_sense_is_said(config: Config, arguments: list[str], said: str) -> None:
    done = config(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_installs_at_the_same_time_lose_none(config: Config, project: ProjectBuilder, home: Path) -> None:
    names = [f"server-{number}" for number in range(6)]
    command = [sys.executable, "-m", "mcpgreen", "config", "--project-root", str(project.root), "--client", "zed"]
    environment = clean_environment({"HOME": str(home)})
    running = [
        subprocess.Popen([*command, "--install", "--name", name], stdout=subprocess.DEVNULL, env=environment)
        for name in names
    ]
    assert [each.wait(60) for each in running] == [0] * len(names)
    path = home / ".config" / "zed" / "settings.json"
    assert sorted(json.loads(path.read_bytes())["context_servers"]) == names

    for name in names:
        config("--client", "zed", "--uninstall", "--name", name)
    assert not path.exists()
