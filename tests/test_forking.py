"""A server that was forked is one as if it had been started: this is what all other tests rest on."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.support.forking import can_fork
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Wire, clean_environment, nursery, text_of

# Also the number of a call: a handshake is one of them, unless it came early enough to be answered before all else.
OF_ONE_PROCESS = r"mcpgreen\.state\.\w+\.\w+/call\.\d|mcpgreen\.state\.\w+\.\w+|(?<=MCPGREEN_CALL\": \")\d+"
OF_ONE_PROCESS += r"|(?<=/proc/)\d+/task/\d+"
# It may be looked into, and starts nothing while it is.
LOOKED_AT = {"MCPGREEN_CORE_DUMPS": "true", "MCPGREEN_WARM_PYTHON": "false", "MINE": "ü"}
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked at through /proc")

LOOK = """
import json, os
server = f"/proc/{os.getppid()}"
status = dict(line.split(":", 1) for line in open(server + "/status").read().splitlines())
links = [os.readlink(f"{server}/fd/{fd}") for fd in os.listdir(server + "/fd")]
print(json.dumps({
    "environment": dict(os.environ),
    "here": os.getcwd(),
    "signals": [status[name].strip() for name in ("SigBlk", "SigIgn", "SigCgt")],
    "pipes": [each[:4] for each in links].count("pipe"),
    "limits": open(server + "/limits").read(),
}))
"""


@needs_proc
def test_a_forked_server_and_its_scripts_see_what_a_fresh_one_sees(project: ProjectBuilder) -> None:
    project.python_tool("look", LOOK)
    seen = []
    for is_fresh in (False, True):
        with Wire(project.root, is_fresh=is_fresh, env=LOOKED_AT) as wire:
            wire.handshake()
            text = text_of(wire.call_tool("look"))
            seen.append(json.loads(re.sub(OF_ONE_PROCESS, "", text)))

    assert seen[0] == seen[1]


@needs_proc
@pytest.mark.parametrize("new_session", [False, True])
def test_it_has_a_session_of_its_own_if_that_is_wanted(project: ProjectBuilder, new_session: bool) -> None:
    with Wire(project.root, new_session=new_session) as wire:
        wire.handshake()
        assert (os.getsid(wire.process.pid) != os.getsid(0)) is new_session


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_how_it_ended_is_told(project: ProjectBuilder, number: int) -> None:
    with Wire(project.root) as wire:
        wire.handshake()
        assert wire.process.poll() is None
        wire.process.send_signal(number)
        assert wire.wait() == (-number if number == signal.SIGKILL else 0)


def test_the_end_of_its_output_is_seen_while_others_live(project: ProjectBuilder) -> None:
    """No other server holds its pipes."""
    with Wire(project.root) as first, Wire(project.root) as second:
        second.handshake()
        first.handshake()
        first.process.kill()
        with pytest.raises(AssertionError, match="closed its output"):
            first.receive(lambda _: False)
        assert second.result("ping") == {}


def test_a_command_prints_and_fails_as_it_would(tmp_path: Path) -> None:
    done = nursery().run(["no-such-command"], clean_environment(), str(tmp_path), timeout=120)

    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-command" in done.stderr or "Usage" in done.stderr


@pytest.mark.parametrize("name", ["PYTHONHASHSEED", "LC_ALL", "TZ"])
def test_what_python_reads_itself_needs_a_fresh_process(name: str) -> None:
    assert not can_fork({"PATH": "/bin", name: "1"})


def test_a_server_is_not_our_child_and_goes_all_the_same(project: ProjectBuilder) -> None:
    wire = Wire(project.root)
    wire.handshake()
    wire.end()

    eventually(lambda: not os.path.exists(f"/proc/{wire.process.pid}") or not sys.platform.startswith("linux"))
