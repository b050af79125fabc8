"""The process that cleans up when the server is killed: what scripts can do to it, and what comes of that."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from mcpgreen.running.processes.guardian import SCRIPT
from tests.support.processes import children_of, command_of
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Start, Wire, text_of

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked for in /proc")


def guardian_of(wire: Wire) -> int | None:
    """The living guardian of a server, if it has one."""
    guardians = [each for each in children_of(wire.process.pid) if command_of(each).startswith("mcpgreen-guardian")]
    return next(filter(is_alive, guardians), None)


def new_guardian(wire: Wire, *old: int | None) -> int:
    return eventually(lambda: (pid := guardian_of(wire)) not in (None, *old) and pid)  # type: ignore[return-value]


@pytest.fixture
def server(project: ProjectBuilder, start: Start, tmp_path: Path) -> Wire:
    project.tool("where", 'printf %s "$MCPBASH_STATE_DIR"')
    project.tool("hold", "echo $$ > pid.new; mv pid.new pid; sleep 600")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return start(tmp_root=scratch, KILL_GRACE_SECS=0.1).greeted()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV])
def test_a_guardian_that_is_killed_or_stopped_is_replaced_and_its_successor_does_the_work(
    server: Wire, project: ProjectBuilder, number: int
) -> None:
    directory = Path(text_of(server.call_tool("where")))
    first = new_guardian(server)
    os.kill(first, number)
    second = new_guardian(server, first)
    server.start_request("tools/call", {"name": "hold"})
    eventually((project.root / "pid").exists)
    held = int(project.read("pid"))
    server.kill()

    eventually(lambda: not is_alive(held))
    eventually(lambda: not directory.exists())
    eventually(lambda: not is_alive(second))
    assert not is_alive(first)


def test_guardians_are_not_replaced_for_ever_at_once(server: Wire) -> None:
    server.call_tool("where")
    killed: list[int] = []
    for _ in range(5):
        killed.append(new_guardian(server, *killed))
        os.kill(killed[-1], signal.SIGKILL)
    eventually(lambda: "a new one starts in" in server.stderr)

    assert guardian_of(server) is None
    assert text_of(server.call_tool("where"))
    assert server.stop() == 0


def test_an_orderly_end_takes_the_guardian_along(server: Wire) -> None:
    server.call_tool("where")
    first = new_guardian(server)
    os.kill(first, signal.SIGKILL)
    second = new_guardian(server, first)
    assert server.stop() == 0

    eventually(lambda: not is_alive(second))


@pytest.mark.parametrize("what", ["goodbye", "state /", "hold"])
def test_a_script_cannot_speak_to_the_guardian_in_the_servers_place(
    server: Wire, project: ProjectBuilder, what: str
) -> None:
    """It wrote "goodbye" to the pipe by its entry in /proc, or held that open so that its end never came."""
    directory = Path(text_of(server.call_tool("where")))
    guardian = new_guardian(server)
    project.python_tool(
        "attack",
        "import glob, os, time\n"
        "opened = []\n"
        f"for path in glob.glob('/proc/{guardian}/fd/*'):\n"
        "    if not os.readlink(path).startswith('/dev/null'):\n"
        "        try: opened.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))\n"
        "        except OSError as error: print(error.strerror)\n"
        f"[os.write(fd, b'{what}\\n') for fd in opened if '{what}' != 'hold']\n"
        "open('pid', 'w').write(str(os.getpid()))\n"
        "time.sleep(600)\n",
    )
    server.start_request("tools/call", {"name": "attack"})
    eventually(lambda: (project.root / "pid").exists() and project.read("pid"))
    attacker = int(project.read("pid"))
    assert server.result("ping") == {}
    assert guardian_of(server) == guardian
    server.kill()

    eventually(lambda: not is_alive(attacker))
    eventually(lambda: not directory.exists())
    eventually(lambda: not is_alive(guardian))


def test_a_process_whose_first_thread_has_ended_is_not_taken_for_dead(server: Wire, project: ProjectBuilder) -> None:
    project.python_tool(
        "threads",
        "import ctypes, os, threading, time\n"
        "open('pid', 'w').write(str(os.getpid()))\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "ctypes.CDLL(None).syscall(60, 0)\n",  # exit of this thread alone, on x86-64
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the system call is that of x86-64")
    server.start_request("tools/call", {"name": "threads"})
    eventually(lambda: (project.root / "pid").exists() and project.read("pid"))
    pid = int(project.read("pid"))
    eventually(lambda: not is_alive(pid))  # to whom looks at its first thread only
    threads = Path(f"/proc/{pid}/task")
    server.kill()

    eventually(lambda: not threads.exists() or len(os.listdir(threads)) < 2)


def test_the_process_that_started_the_server_is_left_alone(tmp_path: Path) -> None:
    """A server that was killed while it started a script carried the tag of that script itself, and so did the script
    before it had a session of its own. The guardian killed their group: that of the client, with all its processes."""
    tag = f"{os.getpid():07d}{os.urandom(3).hex()}"  # nobody else's, and it ends with no digits
    starting = f"sleep 600 & MCPGREEN_CALL={tag} sleep 600 & echo $! >{tmp_path}/script; wait"
    with subprocess.Popen(["/bin/sh", "-c", starting], start_new_session=True) as client:
        script = int(eventually(lambda: (tmp_path / "script").exists() and (tmp_path / "script").read_text()))
        eventually(lambda: tag in Path(f"/proc/{script}/environ").read_text())
        try:
            guardian = ["/bin/sh", "-c", f"exec 3</dev/null\n{SCRIPT}", "mcpgreen-guardian", tag, str(client.pid)]
            subprocess.run(guardian, timeout=30, check=True)

            assert not is_alive(script)
            assert is_alive(client.pid)
        finally:
            os.killpg(client.pid, signal.SIGKILL)
