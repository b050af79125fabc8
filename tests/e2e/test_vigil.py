"""The server leaves unasked when nobody needs it: after a long silence, or when its parent is gone."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.support.project import ProjectBuilder
from tests.support.waiting import PATIENCE_SECS, eventually, is_alive
from tests.support.wire import Start, Wire, clean_environment, modern_meta

IDLE_SECS = 0.5
SET_CHILD_SUBREAPER = 36

# Starts a server on its own stdin and stdout, says its process id, and waits to be killed.
PARENT = """
import subprocess, sys
server = subprocess.Popen([sys.executable, "-m", "mcpgreen", "serve", "--project-root", sys.argv[1]])
with open(sys.argv[2] + ".new", "w") as file:
    file.write(str(server.pid))
import os
os.replace(sys.argv[2] + ".new", sys.argv[2])
server.wait()
"""


@pytest.mark.requirement("G-idle")
def test_a_silent_client_is_left_with_a_word_of_warning(start: Start) -> None:
    wire = start(idle_timeout_secs=IDLE_SECS).greeted()

    message = wire.notice("notifications/message")["params"]
    assert message["level"] == "warning"
    assert message["data"] == "idle timeout after 0.5s with no client activity; exiting"
    assert wire.wait() == 0
    eventually(lambda: "idle timeout after 0.5s with no client activity; exiting" in wire.stderr)


@pytest.mark.requirement("G-idle")
def test_a_client_that_never_says_a_word_is_left_too(start: Start) -> None:
    wire = start(env={"MCPBASH_IDLE_TIMEOUT": str(IDLE_SECS)})

    assert wire.wait() == 0
    assert wire.seen == []


@pytest.mark.requirement("G-idle")
def test_input_starts_the_time_anew(start: Start) -> None:
    """On a machine that holds us up for so long that we are silent in earnest, we try again."""
    assert any(chats_on(start(idle_timeout_secs=IDLE_SECS)) for _ in range(20))


def chats_on(wire: Wire) -> bool:
    """Talk for longer than the timeout. Whether there was no pause in which the server may have left."""
    started_at = spoke_at = time.monotonic()
    longest_pause_secs = 0.0
    try:
        while time.monotonic() < started_at + 2 * IDLE_SECS:
            wire.modern("server/discover")
            time.sleep(IDLE_SECS / 10)  # time is the subject: a chatty client outlives the timeout
            longest_pause_secs = max(longest_pause_secs, time.monotonic() - spoke_at)
            spoke_at = time.monotonic()
    except (AssertionError, BrokenPipeError):
        if max(longest_pause_secs, time.monotonic() - spoke_at) < IDLE_SECS / 2:
            raise
        return False
    assert wire.wait() == 0
    return True


@pytest.mark.requirement("G-idle")
def test_a_running_call_is_no_silence(project: ProjectBuilder, start: Start) -> None:
    project.tool("slow", f"sleep {2 * IDLE_SECS}; echo done")
    wire = start(idle_timeout_secs=IDLE_SECS)

    answer = wire.modern("tools/call", {"name": "slow", "arguments": {}})
    assert answer["result"]["content"][0]["text"] == "done\n"
    assert wire.wait() == 0


@pytest.mark.requirement("G-idle")
def test_an_open_listen_is_no_silence(start: Start) -> None:
    wire = start(idle_timeout_secs=IDLE_SECS)
    listen = {"notifications": {"toolsListChanged": True}, "_meta": modern_meta()}
    wire.start_request("subscriptions/listen", listen, id="listen")
    wire.notice("notifications/subscriptions/acknowledged")
    time.sleep(2 * IDLE_SECS)  # time is the subject
    assert wire.process.poll() is None
    wire.notify("notifications/cancelled", {"requestId": "listen"})

    assert wire.wait() == 0


@pytest.mark.requirement("G-idle")
@pytest.mark.parametrize(
    "settings",
    [
        {"idle_timeout_secs": 0},
        {"idle_timeout_secs": IDLE_SECS / 3, "idle_timeout_enabled": "false"},
        {"idle_timeout_secs": IDLE_SECS / 3, "ci_mode": "true"},
    ],
    ids=["zero", "disabled", "ci"],
)
def test_the_idle_timeout_can_be_switched_off(start: Start, settings: dict[str, object]) -> None:
    wire = start(**settings).greeted()
    wire.settle()
    time.sleep(IDLE_SECS)  # time is the subject

    assert wire.result("ping") == {}


@pytest.fixture
def reaper() -> Iterator[None]:
    """Orphans become children of this process, which can then see how they end."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux lets us see how an orphan ends")
    libc = ctypes.CDLL(None)
    libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    libc.prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def orphaned_server(project: ProjectBuilder, **settings: str) -> tuple[int, subprocess.Popen[bytes]]:
    """The process id of a server whose parent has been killed while its input stays open, and the dead parent."""
    file = project.root / "server.pid"
    variables = {f"MCPGREEN_{name.upper()}": value for name, value in settings.items()}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(project.root), str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(variables),
    )
    assert parent.stdin and parent.stdout
    parent.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    parent.stdin.flush()
    assert b'"result":{}' in parent.stdout.readline()
    parent.kill()
    parent.wait(PATIENCE_SECS)
    return int(file.read_text()), parent


@pytest.mark.requirement("G-orphan")
@pytest.mark.usefixtures("reaper")
def test_a_server_whose_parent_is_gone_leaves(project: ProjectBuilder) -> None:
    pid, parent = orphaned_server(project, orphan_check_interval_secs="0.05")
    with parent:
        eventually(lambda: not is_alive(pid))

        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert parent.stdout is not None
        assert parent.stdout.read() == b""


@pytest.mark.requirement("G-orphan")
@pytest.mark.usefixtures("reaper")
@pytest.mark.parametrize("switch", [{"orphan_check_enabled": "false"}, {"ci_mode": "true"}], ids=["disabled", "ci"])
def test_an_orphan_may_be_wanted(project: ProjectBuilder, switch: dict[str, str]) -> None:
    pid, parent = orphaned_server(project, orphan_check_interval_secs="0.05", **switch)
    with parent:
        time.sleep(0.25)  # time is the subject
        assert is_alive(pid)
        assert parent.stdin is not None
        parent.stdin.close()

        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
