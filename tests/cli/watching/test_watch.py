"""`watch` and `trace` beside a running server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, Speak
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.terminal import at_terminal
from tests.support.viewer import socket_of
from tests.support.waiting import eventually
from tests.support.wire import clean_environment

COMMAND = [sys.executable, "-m", "mcpgreen"]
SECRET = "hunter2-very-secret"


@pytest.fixture
def client(project: ProjectBuilder, speak: Speak) -> Client:
    project.tool("stats", "echo seven; printf '\\033[31mred' >&2")
    project.tool("fails", "echo oops >&2; exit 3")
    client = speak("2025-11-25")
    client.tools()
    socket_of(client.wire.pid)
    return client


def run(*words: str) -> Any:
    return completed([*COMMAND, *words], env=clean_environment())


def reading(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True, env=clean_environment())


def test_without_a_name_the_running_servers_are_listed(client: Client) -> None:
    pid, root = client.wire.pid, str(client.wire.root)
    listed = {each["pid"]: each for each in json.loads(run("watch", "--json").stdout)}

    assert listed[pid].items() >= {"project": root, "transport": "stdio", "client": "tests"}.items()
    assert any(line.split()[0] == str(pid) for line in run("watch").stdout.splitlines() if line.split())
    assert run("watch", "no-such-server").returncode == 2


def test_calls_are_printed_as_they_end_and_events_for_programs(client: Client) -> None:
    pid = str(client.wire.pid)
    lines, events = reading("watch", pid, "--filter", "status:error"), reading("watch", pid, "--json")
    assert events.stdout is not None
    first = json.loads(events.stdout.readline())
    eventually(lambda: b"watch" in Path(f"/proc/{lines.pid}/cmdline").read_bytes() and len(_sockets(lines.pid)) > 0)
    client.call_tool("stats", {"password": SECRET})
    client.call_tool("fails")
    assert lines.stdout is not None
    printed = lines.stdout.readline()  # it may look for the server only now, which remembers the call
    client.wire.stop()

    printed += lines.stdout.read()
    lines.communicate(timeout=60)
    told, _ = events.communicate(timeout=60)
    assert first["kind"] == "server"
    assert {"queued", "started", "exited", "ended"} <= {json.loads(line)["kind"] for line in told.splitlines()}
    assert "fails" in printed
    assert "Tool failed: oops" in printed
    assert "stats" not in printed
    assert SECRET not in told


def _sockets(pid: int) -> list[str]:
    """The sockets of a process: it has connected as soon as there is one."""
    fds = Path(f"/proc/{pid}/fd")
    return [str(fd) for fd in fds.iterdir() if str(fd.readlink()).startswith("socket:")]


def test_a_trace_is_shown_and_exported(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    tracing = subprocess.Popen(
        [*COMMAND, "trace", str(file), str(client.wire.pid)], stderr=subprocess.PIPE, text=True, env=clean_environment()
    )
    eventually(lambda: file.exists() and file.stat().st_size)
    client.call_tool("stats", {"password": SECRET})
    client.call_tool("fails")
    client.wire.stop()
    assert tracing.wait(60) == 0
    assert tracing.stderr is not None
    tracing.stderr.close()

    assert file.stat().st_mode & 0o777 == 0o600
    shown = run("trace", str(file), "--show", "--filter", "tool:*").stdout
    assert [line.split()[2:4] for line in shown.splitlines() if line] == [["stats", "ok"], ["fails", "failed"]]
    spans = json.loads(run("trace", str(file), "--otlp").stdout)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    by_name = {each["name"]: each for each in spans}
    assert by_name["tools/call fails"]["status"]["code"] == 2
    assert {"key": "gen_ai.tool.name", "value": {"stringValue": "stats"}} in by_name["tools/call stats"]["attributes"]
    entries = json.loads(run("trace", str(file), "--har").stdout)["log"]["entries"]
    failed = next(each for each in entries if each["_call"] and "fails" in each["request"]["url"])
    assert failed["response"]["status"] == 500
    assert json.loads(failed["request"]["postData"]["text"])["params"]["name"] == "fails"
    assert SECRET not in file.read_text()
    assert run("trace", str(file), str(client.wire.pid)).returncode != 0  # nothing is overwritten
    file.write_text("{}\n")
    assert "line 1 is not an event" in run("trace", str(file), "--show").stderr


def test_at_a_terminal_a_call_is_chosen_and_opened(client: Client) -> None:
    client.call_tool("stats")
    client.call_tool("fails")
    answers = [
        ("q leave", "/"),
        ("/▏", "tool:stats\r"),
        ("filter: tool:stats", "\x1b[A"),
        ("stats", "\r"),
        ("events", "q"),
    ]
    seen = at_terminal(["watch", str(client.wire.pid)], cwd=client.wire.root, answers=answers)

    assert seen.status == 0
    assert "1 failed" in seen.text
    assert "waited" in seen.text
    assert "\x1b[31mred" not in seen.raw  # what a script prints does not reach the terminal as it is
    assert seen.raw.rstrip().endswith("\x1b[?25h") or "\x1b[?1049l" in seen.raw  # the terminal is as it was
