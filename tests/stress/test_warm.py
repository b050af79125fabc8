"""Python scripts that are forked: however calls, helpers and servers end, nothing is left, and nothing grows.

Each round has 16 calls. Some are cancelled, some of their processes are killed, and so are helpers and spares.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from contextlib import suppress

import pytest

from mcpgreen.running.warm_python import KEPT_SPARES
from tests.stress.support import ROUNDS, settle
from tests.support.client import Client, Speak
from tests.support.processes import MIB, children_of, command_of, memory_bytes
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scripts are forked on Linux only")

CALLS = 16
GREET = "import mcp_tool\nmcp_tool.emit_text('Hello, ' + mcp_tool.require('name'))\n"
WAIT = "import os, time, pathlib\npathlib.Path(f'up.{os.getpid()}').touch()\ntime.sleep(600)\n"


def forked_by(pid: int) -> list[int]:
    """Helper, spares and scripts below a server."""
    return [child for child in children_of(pid) if "sdk/warm/start.py" in command_of(child)]


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
def _is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPGREEN_WARM_PYTHON", raising=False)


@pytest.fixture
def client(project: ProjectBuilder, speak: Speak) -> Client:
    project.forked_tool("greet", GREET)
    project.forked_tool("wait", WAIT)
    client = speak()
    client.call_tool("greet", {"name": "Ada"})
    eventually(lambda: len(forked_by(client.wire.process.pid)) > 1)  # the helper, and a spare
    return client


def test_nothing_is_left_of_forked_scripts(project: ProjectBuilder, client: Client) -> None:
    lot = random.Random(7)
    server = client.wire.process.pid
    memory = 0
    for number in range(ROUNDS):
        greeted = [client.start_tool("greet", {"name": f"n{n}"}) for n in range(CALLS)]
        waiting = [client.start_tool("wait") for _ in range(3)]
        for id in [*lot.sample(greeted, 4), *waiting[:2]]:
            client.wire.notify("notifications/cancelled", {"requestId": id})
        for pid in lot.sample(forked := forked_by(server), min(len(forked), lot.randrange(3))):
            kill(pid)  # a helper, a spare, or a script
        client.wire.notify("notifications/cancelled", {"requestId": waiting[2]})
        client.call_tool("greet", {"name": "Bob"})  # which may be the one that is killed
        if number == ROUNDS // 2:
            memory = memory_bytes(server)
    client.wire.settle()

    settle(lambda: forked_by(server)[1 + KEPT_SPARES :], "forks are left")
    assert memory_bytes(server) < memory + 4 * MIB
    eventually(lambda: text_of(client.call_tool("greet", {"name": "Ada"})) == "Hello, Ada")
    left = forked_by(server)
    client.wire.stop()
    settle(lambda: [pid for pid in left if is_alive(pid)], "forks outlive their server")
