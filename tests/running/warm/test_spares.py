"""The server's end of a spare."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scripts are forked on Linux only")

# A spare that has been killed. Whoever was forked right after it still has its socket.
KILLED = """
import os, signal, socket, gevent
from mcpgreen.running.processes.run import Deadline, Limits, Script, ScriptRun, unheard
from mcpgreen.running.runner import Runner
from mcpgreen.running.warm_python import Spare

runner = Runner(directory=".")
runner.prepare()
pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
runner.know(pid)
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
told = []
spare = Spare(runner, pid, ours, lambda: told.append("used"))
os.kill(pid, signal.SIGKILL)
with gevent.Timeout(60):
    while runner.knows(pid):
        gevent.sleep(0.01)
script = Script("A script", "/bin/true", ["/bin/true"])
run = ScriptRun(script, {}, Deadline(60), Limits(1000, 1000), 1, unheard)
try:
    spare.spawn(run, outputs=[1, 1, 1], tag=1)
except OSError as error:
    told.append(error.strerror)
print(*told)
runner.stop_all(grace_secs=0)
runner.close(is_clean=True)
"""


def test_a_spare_that_has_been_killed_gets_no_job() -> None:
    """Nobody would hear of its end: it has been seen already, and the call would wait for ever."""
    ran = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=60, check=False)

    assert (ran.stdout, ran.stderr) == ("used No such process\n", "")
