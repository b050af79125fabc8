"""Processes that scripts leave behind and that hide whose they are: they end with the last call, or with the server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpgreen.running.processes.stopping import Strays, Tags
from mcpgreen.running.processes.stopping import is_alive as is_alive_here
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Start, Wire, clean_environment, text_of

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked for in /proc")

# Sheds what the server knows its processes by: the limit, the environment, session, group and descriptors.
SHED = """import ctypes, os, resource, signal, sys, time
def shed():
    resource.setrlimit(resource.RLIMIT_RTTIME, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.setsid()
def note():
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
def wait_for_a_note():
    while not (os.path.exists("pids") and os.path.getsize("pids")):
        time.sleep(0.005)
"""
# Each ends as soon as it has another: whoever looks for it finds its number gone.
CHAIN = """
def chain(pause):
    while True:
        if os.fork():
            os._exit(0)
        if os.getpid() % 7 == 0:
            os.setsid()
        time.sleep(pause)
"""
HIDING = f"""#!{sys.executable} -SE
{SHED}
if os.fork() == 0:
    shed()
    os.closerange(0, 256)
    note()
    os.execve("/bin/sleep", ["sleep", "600"], {{}})
wait_for_a_note()
"""
CHAINING = f"""#!{sys.executable} -SE
{SHED}{CHAIN}
for _ in range(3):
    if os.fork() == 0:
        PREPARE
        os.closerange(0, 256)
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            note()
            open("/proc/self/comm", "w").write("COMM")
            chain(0.0005)
        os._exit(0)
wait_for_a_note()
"""


def named(comm: str) -> list[int]:
    """The living processes of this name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text().strip() == comm and is_alive(path.parent.name):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def is_none_left(comm: str) -> bool:
    """Three looks: a chain may be between two of its links."""
    return not any(named(comm) for _ in range(3))


def noted_pids(project: ProjectBuilder) -> list[int]:
    eventually(lambda: (project.root / "pids").exists() and project.read("pids").endswith("\n"))
    return [int(line) for line in project.read("pids").split()]


@pytest.fixture
def hold(project: ProjectBuilder) -> None:
    project.tool("hold", "touch up; until [ -e go ]; do sleep 0.01; done; echo held")


@pytest.fixture
def comm() -> Iterator[str]:
    name = f"chain{os.getpid()}"
    yield name
    for pid in named(name):
        os.kill(pid, signal.SIGKILL)


RESIDENT = f"""#!{sys.executable} -S
import json, os, subprocess
own = [subprocess.Popen(["setsid", "-f", "sh", "-c", "echo $$ > daemon; exec sleep 600"]).wait()]
calls, answers = (int(os.environ[f"MCP_{{name}}_FD"]) for name in ("CALLS", "ANSWERS"))
os.write(answers, b'{{"ready":true}}\\n')
for line in os.fdopen(calls):
    os.write(answers, b'{{"result":"%d","call":%d}}\\n' % (os.getpid(), json.loads(line)["call"]))
"""


def test_a_process_that_stays_does_not_shield_one_that_hides(project: ProjectBuilder, client: Wire) -> None:
    """The daemon of a resident process carries its tag, and lives as long."""
    project.tool("resident", RESIDENT, stays="server")
    project.tool("hiding", HIDING)
    resident = text_of(client.call_tool("resident"))
    daemon = eventually(lambda: (project.root / "daemon").exists() and project.read("daemon").strip())
    client.call_tool("hiding")

    eventually(lambda: not any(map(is_alive, noted_pids(project))))
    assert is_alive(daemon)
    assert text_of(client.call_tool("resident")) == resident
    client.close_stdin()
    eventually(lambda: not is_alive(daemon) and not is_alive(resident))


def test_a_process_that_hides_whose_it_is_ends_with_a_lone_call(project: ProjectBuilder, client: Wire) -> None:
    project.tool("hiding", HIDING)
    client.call_tool("hiding")

    eventually(lambda: not any(map(is_alive, noted_pids(project))))
    assert client.result("ping") == {}


@pytest.mark.usefixtures("hold")
def test_a_process_that_hides_whose_it_is_ends_when_no_call_is_running(project: ProjectBuilder, client: Wire) -> None:
    project.tool("hiding", HIDING)
    held = client.start_request("tools/call", {"name": "hold"})
    eventually((project.root / "up").exists)
    client.call_tool("hiding")
    (pid,) = noted_pids(project)
    project.write("go", "")
    assert text_of(client.response(held)["result"]) == "held\n"

    eventually(lambda: not is_alive(pid))


@pytest.mark.alone
@pytest.mark.parametrize("prepare", ["pass", "shed()", "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)"])
def test_a_chain_of_forks_ends_with_its_call(project: ProjectBuilder, start: Start, comm: str, prepare: str) -> None:
    project.tool("chaining", CHAINING.replace("PREPARE", prepare).replace("COMM", comm))
    wire = start(KILL_GRACE_SECS=0.05).greeted()
    wire.call_tool("chaining")

    eventually(lambda: is_none_left(comm))
    assert wire.result("ping") == {}
    assert wire.stop() == 0


@pytest.mark.alone
@pytest.mark.usefixtures("hold")
@pytest.mark.parametrize("prepare", ["pass", "shed()"])
def test_a_chain_of_forks_does_not_outlive_the_server(
    project: ProjectBuilder, start: Start, comm: str, prepare: str
) -> None:
    project.tool("chaining", CHAINING.replace("PREPARE", prepare).replace("COMM", comm) + "time.sleep(600)\n")
    wire = start(EOF_GRACE_SECS=0.05, KILL_GRACE_SECS=0.05).greeted()
    wire.start_request("tools/call", {"name": "hold"})
    wire.start_request("tools/call", {"name": "chaining"})
    eventually(lambda: named(comm))
    assert wire.stop() == 0

    assert is_none_left(comm)


def test_a_stray_whose_first_thread_has_ended_is_not_taken_for_dead(project: ProjectBuilder, client: Wire) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the system call is that of x86-64")
    body = (
        f"#!{sys.executable} -SE\nimport ctypes, os, threading, time\n"
        "if os.fork():\n"
        "    while not os.path.exists('pids'): time.sleep(0.005)\n"
        "    os._exit(0)\n"
        "os.setsid()\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "os.closerange(0, 256)\n"
        "with open('new', 'w') as file: file.write(f'{os.getpid()}\\n')\n"
        "os.rename('new', 'pids')\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"
    )
    project.tool("threads", body)
    client.call_tool("threads")
    (pid,) = noted_pids(project)

    eventually(lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_process_is_dead_when_all_its_threads_are() -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the system call is that of x86-64")
    body = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"
    )
    with subprocess.Popen([sys.executable, "-SE", "-c", body]) as process:
        try:
            eventually(lambda: b") Z " in Path(f"/proc/{process.pid}/stat").read_bytes())
            assert is_alive_here(process.pid)
        finally:
            process.kill()
        eventually(lambda: not is_alive_here(process.pid))


def test_children_that_the_server_had_before_are_left_alone(project: ProjectBuilder) -> None:
    """A launcher may have started something and become the server by exec."""
    project.tool("hiding", HIDING)
    launch = (
        f'sleep 600 </dev/null >/dev/null 2>&1 & echo $! > launched; exec "{sys.executable}" -m mcpgreen serve "$@"'
    )
    with Wire(project.root, command=["/bin/sh", "-c", launch, "server"], cwd=project.root).greeted() as wire:
        launched = int(project.read("launched"))
        wire.call_tool("hiding")
        eventually(lambda: not any(map(is_alive, noted_pids(project))))
        assert wire.stop() == 0
    assert is_alive(launched)
    os.kill(launched, signal.SIGKILL)


@pytest.mark.usefixtures("hold")
def test_a_stray_process_of_another_user_does_not_hold_up_the_server(project: ProjectBuilder, client: Wire) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can leave a process of another user")
    project.tool("changing", "setsid setpriv --reuid=65534 --clear-groups sleep 600 >/dev/null 2>&1 & echo $!")
    pid = int(text_of(client.call_tool("changing")))
    assert client.stop() == 0

    assert not is_alive(pid)  # root may stop anybody


@pytest.mark.alone
def test_the_reader_goes_on_while_a_chain_is_hunted(project: ProjectBuilder, start: Start, comm: str) -> None:
    """Whoever looks until nobody new has come looks for ever if somebody always has."""
    project.tool("chaining", CHAINING.replace("PREPARE", "pass").replace("COMM", comm))
    wire = start(KILL_GRACE_SECS=0.3).greeted()
    id = wire.start_request("tools/call", {"name": "chaining"})
    noted_pids(project)
    for _ in range(20):
        assert wire.result("ping") == {}
    wire.response(id)
    eventually(lambda: is_none_left(comm))
    assert subprocess.run(["kill", "-0", str(wire.process.pid)]).returncode == 0


@pytest.mark.alone
@pytest.mark.parametrize("prepare", ["pass", "shed()"])
def test_hundreds_of_strays_end_with_their_call(project: ProjectBuilder, start: Start, prepare: str) -> None:
    """Each look took a time that grew with the square of their number, and nobody else was served."""
    project.tool(
        "many",
        f"#!{sys.executable} -SE\n{SHED}\n"
        "if os.fork() == 0:\n"
        f"    {prepare}\n"
        "    os.closerange(0, 256)\n"
        "    for _ in range(300):\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "    note()\n"
        "    os._exit(0)\n"
        "wait_for_a_note()\n",
    )
    wire = start(KILL_GRACE_SECS=0.05).greeted()
    wire.call_tool("many")
    children = Path(f"/proc/{wire.process.pid}/task/{wire.process.pid}/children")

    eventually(lambda: len(children.read_text().split()) == 1)  # the guardian
    assert wire.result("ping") == {}
    assert wire.stop() == 0


@pytest.mark.skipif(not Tags().are_limits, reason="the limit that is a tag cannot be set")
def test_one_that_is_about_to_be_known_is_left_alone() -> None:
    """A fork that has not said its number yet is none of ours by its number, but by its tag."""
    own = Tags()
    tag = own.of(1)
    expected = {tag}
    strays = Strays(set(), expected)
    own.put_on(tag)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        own.take_off()
        assert not strays.kill_others({})
        expected.clear()
        assert strays.kill_others({})
        assert process.wait() == -signal.SIGKILL
    strays.close()


# In a group of its own: if the wrong one is killed, this is who dies. It leaves our session between two questions.
LEAVING = """
import os, signal
from mcpgreen.running.processes.stopping import Strays

strays = Strays(set(), set())
told, tell = os.pipe()
hear, done = os.pipe()
child = os.fork()
if child == 0:
    os.read(told, 1)
    os.setsid()
    os.write(done, b".")
    signal.pause()

def before_it_leaves(question):
    def ask(pid):
        answer = question(pid)
        if pid == child and os.getpgid is not getpgid:
            os.getpgid, os.getsid = getpgid, getsid
            os.write(tell, b".")
            os.read(hear, 1)
        return answer
    return ask

getpgid, getsid = os.getpgid, os.getsid
os.getpgid, os.getsid = before_it_leaves(getpgid), before_it_leaves(getsid)
assert strays.kill_others({})
pid, status = os.waitpid(child, 0)
assert os.WTERMSIG(status) == signal.SIGKILL
assert os.getpgid is getpgid
"""


def test_a_stray_that_leaves_our_session_while_we_look_does_not_take_us_along() -> None:
    """Its group was asked for first, and was ours; then it was in no session of ours, so the group was killed."""
    ended = subprocess.run([sys.executable, "-c", LEAVING], env=clean_environment(), start_new_session=True)

    assert ended.returncode == 0
