"""A server that was forked is one as if it had been started: this is what all other tests rest on."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.support.project import ProjectBuilder
from tests.support.wire import Wire, clean_environment, nursery, text_of

# Also the number of a call: a handshake is one of them, unless it came early enough to be answered before all else.
OF_ONE_PROCESS = r"mcpgreen\.state\.\w+\.\w+/call\.\d|mcpgreen\.state\.\w+\.\w+|(?<=MCPGREEN_CALL\": \")\d+"
OF_ONE_PROCESS += r"|(?<=/proc/)\d+/task/\d+"
# It may be looked into, and starts nothing while it is.
LOOKED_AT = {"MCPGREEN_CORE_DUMPS": "true", "MCPGREEN_WARM_PYTHON": "false", "MINE": "ü"}
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked at through /proc")

LOOK = """
import json, os, time
server = f"/proc/{os.getppid()}"

def seen():
    status = dict(line.split(":", 1) for line in open(server + "/status").read().splitlines())
    links = [os.readlink(f"{server}/fd/{fd}") for fd in os.listdir(server + "/fd")]
    return {
        "signals": [status[name].strip() for name in ("SigBlk", "SigIgn", "SigCgt")],
        "pipes": [each[:4] for each in links].count("pipe"),
        "limits": open(server + "/limits").read(),
    }

# The server may still be about to start this script: it has the tag of the call, and both ends of the pipes.
before, now = None, seen()
while now != before:
    time.sleep(0.1)
    before, now = now, seen()
print(json.dumps({"environment": dict(os.environ), "here": os.getcwd(), **now}))
"""


@needs_proc
def test_a_forked_server_and_its_scripts_see_what_a_fresh_one_sees(project: ProjectBuilder) -> None:
    project.python_tool("look", LOOK)
    seen = []
    for is_fresh in (False, True):
        with Wire(project.root, is_fresh=is_fresh, env=LOOKED_AT).greeted() as wire:
            text = text_of(wire.call_tool("look"))
            seen.append(json.loads(re.sub(OF_ONE_PROCESS, "", text)))

    assert seen[0] == seen[1]


def test_a_command_prints_and_fails_as_it_would(tmp_path: Path) -> None:
    done = nursery().run(["no-such-command"], clean_environment(), str(tmp_path), timeout=120)

    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-command" in done.stderr or "Usage" in done.stderr
