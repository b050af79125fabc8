"""examples/proxy/systemd: started as systemd would, with the listening socket as descriptor 3."""

from __future__ import annotations

import configparser
import http.client
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment.cluster import EXAMPLES
from tests.support.prerequisites import require_program
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import MODERN, clean_environment, modern_meta

LAUNCHER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, "-m", "mcpgreen", *sys.argv[2:]])
"""
END_SECS = 20


class Unit:
    """What systemd has: a socket, and a service that may come and go."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(100)
        self.port: int = self._socket.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = arguments_of_the_unit(self._root)
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(self._socket.fileno()), *command],
            pass_fds=[self._socket.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=clean_environment(),
        )

    def announced(self) -> str:
        assert self.process is not None and self.process.stderr is not None
        return self.process.stderr.readline().decode()

    def ask_to_stop(self) -> subprocess.Popen[bytes]:
        assert self.process is not None
        self.process.terminate()
        return self.process

    def close(self) -> None:
        self._socket.close()
        if self.process is not None:
            self.process.kill()
            self.process.communicate(timeout=END_SECS)


def arguments_of_the_unit(root: Path) -> list[str]:
    """What stands behind ExecStart=, for this project."""
    service = configparser.ConfigParser(interpolation=None, strict=False)
    service.read(EXAMPLES / "systemd" / "mcpgreen.service", encoding="utf-8")
    program, *arguments = shlex.split(service["Service"]["ExecStart"])
    assert program == "/opt/mcpgreen/bin/mcpgreen"
    return [str(root) if argument == "/srv/my-server" else argument for argument in arguments]


@pytest.fixture
def unit(project: ProjectBuilder) -> Iterator[Unit]:
    unit = Unit(project.root)
    yield unit
    unit.close()


def test_who_comes_before_the_server_is_answered_by_it(unit: Unit, project: ProjectBuilder) -> None:
    project.tool("where", "echo $PPID")
    with socket.create_connection(("127.0.0.1", unit.port), timeout=END_SECS) as early:
        early.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

        unit.start()

        assert early.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
    assert unit.announced() == f"mcpgreen: serving http://127.0.0.1:{unit.port}/mcp\n"
    assert unit.process is not None
    assert called(unit.port, "where") == str(unit.process.pid)


def test_a_restart_makes_clients_wait_and_refuses_none(unit: Unit, project: ProjectBuilder) -> None:
    """A call is running when the server is told to stop: it ends well, and a request that comes meanwhile is served by
    the next server."""
    project.tool("where", "echo $PPID")
    project.tool(
        "steps",
        'cd "$MCPBASH_PROJECT_ROOT" && touch began && until [[ -e go ]]; do sleep 0.02; done && echo "$PPID"',
    )
    unit.start()
    unit.announced()
    assert unit.process is not None
    results: dict[str, str] = {}
    running = threading.Thread(target=lambda: results.update(steps=called(unit.port, "steps")))
    running.start()
    eventually((project.root / "began").exists)

    ending = unit.ask_to_stop()
    eventually(lambda: os.path.exists(f"/proc/{ending.pid}") and not is_accepted(unit.port))
    waiting = threading.Thread(target=lambda: results.update(where=called(unit.port, "where")))
    waiting.start()
    project.write("go", "")
    running.join(END_SECS)
    assert ending.wait(END_SECS) == 0
    assert ending.stderr is not None
    ending.stderr.close()
    unit.start()
    waiting.join(END_SECS)

    assert results == {"steps": str(ending.pid), "where": str(unit.process.pid)}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no systemd")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    program = require_program("systemd-analyze")
    for source in (EXAMPLES / "systemd").iterdir():
        text = source.read_text(encoding="utf-8").replace("/opt/mcpgreen/bin/mcpgreen", "/bin/true")
        (tmp_path / source.name).write_text(text, encoding="utf-8")

    done = completed([program, "verify", *map(str, tmp_path.iterdir())], timeout=END_SECS)

    assert (done.returncode, done.stderr) == (0, "")


def called(port: int, tool: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=END_SECS)
    params = {"name": tool, "arguments": {}, "_meta": modern_meta()}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    connection.request("POST", "/mcp", json.dumps(message), headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return str(answer["result"]["content"][0]["text"]).strip()


def is_accepted(port: int) -> bool:
    """Whether somebody answers within a moment."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=0.1)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
