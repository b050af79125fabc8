"""All ways in which the server ends: asked to, left alone, or told by a signal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.waiting import PATIENCE_SECS, eventually, is_alive
from tests.support.wire import Start, Wire, clean_environment

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
STUCK = "trap '' TERM; echo $$ > stuck.pid.new; mv stuck.pid.new stuck.pid; while :; do sleep 0.05; done"


def call_of(tool: str, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}}


def pid_in(project: ProjectBuilder, file: str) -> int:
    eventually(lambda: (project.root / file).exists())
    return int(project.read(file))


@pytest.mark.requirement("G-roots-configured")
@pytest.mark.parametrize("variable", ["MCPGREEN_ROOTS", "MCPBASH_ROOTS"])
def test_a_bad_root_in_the_environment_keeps_the_server_from_starting(
    project: ProjectBuilder, start: Start, variable: str
) -> None:
    """Also when the greeting is there already: it must not be answered by a server that then gives up."""
    (project.root / "data").mkdir()
    wire = start(env={variable: "data:nowhere"})
    with contextlib.suppress(BrokenPipeError):
        wire.send(HELLO)

    assert wire.wait() == 1
    eventually(lambda: "nowhere" in wire.stderr)
    assert wire.stderr.count("\n") == 1
    with pytest.raises(AssertionError, match="closed its output"):
        wire.response(0)


@pytest.mark.requirement("G-exit")
@pytest.mark.parametrize("is_request", [True, False])
def test_exit_after_shutdown_ends_the_server_in_good_order(client: Wire, is_request: bool) -> None:
    client.result("shutdown")
    if is_request:
        assert client.result("exit") == {}
    else:
        client.notify("exit")

    assert client.wait() == 0


@pytest.mark.requirement("G-exit", "G-eof-delivers")
@pytest.mark.parametrize("end", ["exit", "end of input"])
def test_a_running_call_delivers_before_the_server_ends(project: ProjectBuilder, client: Wire, end: str) -> None:
    project.tool("wait", "touch running; until [ -e go ]; do sleep 0.01; done; echo done")
    client.send(call_of("wait", id="late"))
    eventually(lambda: (project.root / "running").exists())
    if end == "exit":
        client.result("shutdown")
        client.notify("exit")
    else:
        client.close_stdin()
    project.write("go", "")

    assert client.response("late")["result"]["content"][0]["text"] == "done\n"
    assert client.wait() == 0


@pytest.mark.requirement("G-shutdown-window", "G-eof-delivers")
@pytest.mark.parametrize("end", ["shutdown", "end of input"])
def test_a_server_does_not_wait_for_long_and_takes_its_scripts_along(
    project: ProjectBuilder, start: Start, end: str
) -> None:
    project.tool("stuck", STUCK)
    wire = start(shutdown_timeout=0.3, EOF_GRACE_SECS=0.2).greeted()
    wire.send(call_of("stuck"))
    pid = pid_in(project, "stuck.pid")
    if end == "shutdown":
        wire.result("shutdown")
    else:
        wire.close_stdin()

    assert wire.wait() == 0
    eventually(lambda: not is_alive(pid))


@pytest.mark.requirement("G-eof-idle")
@pytest.mark.parametrize("is_greeted", [False, True])
def test_an_idle_server_ends_with_its_input(wire: Wire, is_greeted: bool) -> None:
    if is_greeted:
        wire.handshake()

    assert wire.stop() == 0


@pytest.mark.requirement("G-eof-delivers")
def test_a_whole_conversation_may_be_piped_in(project: ProjectBuilder) -> None:
    project.tool("hello", "sleep 0.1; echo hello")
    calls = [call_of("hello", id=number) for number in range(1, 6)]
    conversation = "".join(json.dumps(message) + "\n" for message in (HELLO, READY, *calls)).rstrip("\n")
    done = completed(
        [sys.executable, "-m", "mcpgreen", "serve", "--project-root", str(project.root)],
        input=conversation.encode(),
        env=clean_environment(),
        timeout=PATIENCE_SECS,
        encoding=None,
    )

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers) == [0, 1, 2, 3, 4, 5]
    assert all("result" in answer for answer in answers)
    assert done.returncode == 0


@pytest.mark.requirement("G-signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_an_idle_server(client: Wire, number: int, status: int) -> None:
    client.settle()
    client.process.send_signal(number)

    assert client.wait() == status


@pytest.mark.requirement("G-signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_running_scripts_too(project: ProjectBuilder, client: Wire, number: int, status: int) -> None:
    project.tool("stuck", STUCK)
    client.send(call_of("stuck"))
    pid = pid_in(project, "stuck.pid")
    client.process.send_signal(number)

    assert client.wait() == status
    eventually(lambda: not is_alive(pid))


@pytest.mark.requirement("G-signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_right_after_the_greeting_is_an_orderly_end(wire: Wire, number: int, status: int) -> None:
    """A client that only probes for the era sends SIGTERM as soon as it has its answer."""
    wire.modern("server/discover")
    wire.process.send_signal(number)

    assert wire.wait() == status


@pytest.mark.requirement("G-closed-reader")
def test_a_client_that_stops_reading_ends_the_server(project: ProjectBuilder) -> None:
    with _deaf_client(project) as server:
        assert server.stdin and server.stdout
        server.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # it had something else to write, and has ended already
            os.write(server.stdin.fileno(), b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n')

        assert server.wait(PATIENCE_SECS) == 0


@pytest.mark.requirement("G-closed-reader")
def test_a_client_that_stops_reading_ends_running_scripts_too(project: ProjectBuilder) -> None:
    project.tool("stuck", STUCK)
    with _deaf_client(project) as server:
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps(call_of("stuck")).encode() + b"\n")
        server.stdin.flush()
        pid = pid_in(project, "stuck.pid")
        server.stdout.close()

        assert server.wait(PATIENCE_SECS) == 0
        eventually(lambda: not is_alive(pid))


@pytest.mark.requirement("G-state-dir")
@pytest.mark.parametrize("how", ["eof", "SIGTERM", "SIGKILL"])
def test_no_temporary_files_stay_behind(project: ProjectBuilder, start: Start, tmp_path: Path, how: str) -> None:
    project.tool("stuck", STUCK + "")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    wire = start(tmp_root=scratch, EOF_GRACE_SECS=0.1).greeted()
    wire.send(call_of("stuck"))
    pid = pid_in(project, "stuck.pid")
    assert os.listdir(scratch)
    if how == "eof":
        wire.close_stdin()
    else:
        wire.process.send_signal(signal.Signals[how])
    wire.wait()

    eventually(lambda: not is_alive(pid))
    eventually(lambda: not os.listdir(scratch))


def _deaf_client(project: ProjectBuilder) -> subprocess.Popen[bytes]:
    """A server after the handshake, whose pipes the test holds itself."""
    server = subprocess.Popen(
        [sys.executable, "-m", "mcpgreen", "serve", "--project-root", str(project.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
    )
    assert server.stdin and server.stdout
    server.stdin.write("".join(json.dumps(message) + "\n" for message in (HELLO, READY)).encode())
    server.stdin.flush()
    server.stdout.readline()
    return server
