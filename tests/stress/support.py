"""What the stress tests share: servers that can be told apart in /proc, scripts that leave things behind, a plain peer.

Leftovers are searched without the server's own means: everything that belongs to one server carries a mark of ours in
its command line, be it the path of the project, of its temporary directory or the argument of a `sleep`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mcpgreen.events import places
from tests.support.constants import variables_of
from tests.support.descriptors import descriptors_of, new_descriptors
from tests.support.processes import children_of, command_of, proc_text
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import LATEST_HANDSHAKE, Json, Wire

ROUNDS = int(os.environ.get("MCPGREEN_STRESS_ROUNDS", "3"))
IS_FULL = ROUNDS >= 100
GONE_WITHIN_SECS = 60.0
GUARDIAN = "mcpgreen-guardian"
SETTINGS = {"KILL_GRACE_SECS": 0.2, "DRAIN_SECS": 0.1, "EOF_GRACE_SECS": 0.2, "default_tool_timeout": 120}

_numbers = itertools.count(1)

SOCKETS = f"mcpgreen-{os.geteuid()}"  # the directory
DAEMON = """import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        time.sleep(300)
    os._exit(0)
os.wait()
open("{up}/{name}.%d" % os.getpid(), "w").close()
"""

# A parent that is gone before anybody can look twice, in a new session each time.
RUNAWAY = """import os, time
if os.fork():
    print("done", flush=True)
    os._exit(0)
os.closerange(0, 256)
stop_at = time.monotonic() + 0.5
open("{up}/{name}.%d" % os.getpid(), "w").close()
while time.monotonic() < stop_at:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.001)
time.sleep(300)
"""

UP = ': > "{up}/{name}.$$"\n'

# They stay until somebody stops them. {mark} is a number of seconds for `sleep`, {up} where they say that they are up.
STAYING = {
    "jobs": "sleep {mark} &\nsleep {mark} &\n" + UP + "wait\n",
    "stubborn": "trap '' TERM\nsleep {mark} &\n" + UP + "while :; do sleep {mark}; done\n",
    "stopped": "sleep {mark} &\n" + UP + "kill -STOP $$\nwait\n",
    "sessions": "setsid sleep {mark} &\nsetsid -f sleep {mark} </dev/null >/dev/null 2>&1\n" + UP + "wait\n",
    "daemon": f"#!{sys.executable} -SE\n{DAEMON}time.sleep(300)\n",
    "forking": UP + "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep {mark} & done\nwait\n",
}
# They end at once and leave something behind.
LEAVING = {
    "holding": "sleep {mark} &\necho done\n",
    "detaching": "setsid sleep {mark} </dev/null >/dev/null 2>&1 &\necho done\n",
    "departing": f"#!{sys.executable} -SE\n{DAEMON}print('done')\n",
    "running-away": f"#!{sys.executable} -SE\n{RUNAWAY}",
}
# They shed the marks by which a server could know them: nothing but the parent tells whose they are.
SCRUBBED_STAYING = "env -i setsid sleep {mark} </dev/null >/dev/null 2>&1 97>&- &\n" + UP + "wait\n"


class Stand:
    """A project of its own, a temporary directory of its own, and a mark that both carry in their paths."""

    def __init__(self, base: Path, **settings: Any) -> None:
        self.mark = f"300.{os.getpid():07d}{next(_numbers):05d}"
        self.project = ProjectBuilder(base / self.mark / "project")
        self.tmp = base / self.mark / "tmp"
        self.up = base / self.mark / "up"
        self.tmp.mkdir()
        self.up.mkdir()
        self.env = variables_of({**SETTINGS, **settings})
        self.env["TMPDIR"] = str(self.tmp)
        self.env["MCPGREEN_CORE_DUMPS"] = "true"  # else only root sees what a server has open
        self._started: list[Wire] = []

    def script(self, name: str, body: str, **fields: Any) -> None:
        text = body.replace("{mark}", self.mark).replace("{up}", str(self.up)).replace("{name}", name)
        self.project.tool(name, text, **fields)

    def scripts(self, bodies: dict[str, str]) -> None:
        for name, body in bodies.items():
            self.script(name, body)

    def start(self) -> Wire:
        """A server after its handshake."""
        wire = Wire(self.project.root, env=self.env)
        self._started.append(wire)
        return wire.greeted()

    def start_peer(self, *, reads: bool = True, capabilities: Json | None = None) -> Peer:
        peer = Peer(self.project.root, env=self.env, reads=reads, capabilities=capabilities)
        self._started.append(peer)
        return peer

    def ups(self, name: str = "") -> list[str]:
        """The scripts that have said since the last `forget_ups` that they are up."""
        return [entry for entry in os.listdir(self.up) if entry.startswith(name)]

    def forget_ups(self) -> None:
        for entry in os.listdir(self.up):
            os.unlink(self.up / entry)

    def descriptors_of(self, pid: int) -> list[str]:
        """Those of a server, as soon as it has its socket for viewers."""
        environ = {**os.environ, **self.env}
        eventually(lambda: pid in [number for number, _ in places.sockets(environ)])
        return descriptors_of(pid)

    def call_dirs(self) -> list[str]:
        return [str(path) for path in self.tmp.glob("mcpgreen.state.*/*")]

    def close(self) -> None:
        """Also after a failed test nothing of ours goes on."""
        for started in self._started:
            started.kill()
        for pid, _ in processes_with(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


class Peer(Wire):
    """A client without manners: it reads when it wants to, and keeps all that it reads."""

    def __init__(self, root: Path, *, env: dict[str, str], reads: bool, capabilities: Json | None = None) -> None:
        self._may_read = threading.Event()
        super().__init__(root, env=env)
        self.send(*greeting(capabilities))
        if reads:
            self.read()

    def send_aside(self, *values: Any) -> None:
        """Send without waiting for the server to take it."""

        def send() -> None:
            with contextlib.suppress(BrokenPipeError, ValueError):  # the server has been stopped meanwhile
                self.send(*values)

        self._begin_thread(send)

    def read(self) -> None:
        """Begin to read."""
        self._may_read.set()

    def receive_until(self, is_enough: Callable[[Json], bool], *, within_secs: float = 60.0) -> None:
        """Take messages into `seen` until one is enough."""
        give_up_at = time.monotonic() + within_secs
        while not is_enough(self._next_message(give_up_at)):
            pass

    def answer(self, id: str | int) -> Json:
        """The response with this id, now or when it comes."""
        return self.answers([id])[id]

    def answers(self, ids: Iterable[str | int]) -> dict[str | int, Json]:
        """The responses to all of these; fails when one comes twice."""
        wanted = set(ids)
        got: dict[str | int, Json] = {}

        def note(message: Json) -> bool:
            if "method" not in message and message.get("id") in wanted:
                assert message["id"] not in got, f"answered twice: {message['id']}"
                got[message["id"]] = message
            return len(got) == len(wanted)

        if not any(note(message) for message in self.seen):
            self.receive_until(note)
        return got

    def kill(self) -> None:
        self.read()
        super().kill()

    def _read(self) -> None:
        self._may_read.wait()
        super()._read()


def request(id: str | int, method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def greeting(capabilities: Json | None = None) -> list[Json]:
    """What a client of the handshake era says first."""
    client = {"name": "peer", "version": "1"}
    about = {"protocolVersion": LATEST_HANDSHAKE, "capabilities": capabilities or {}, "clientInfo": client}
    return [request("hello", "initialize", about), notification("notifications/initialized")]


def call(id: str | int, name: str, **params: Any) -> Json:
    return request(id, "tools/call", {"name": name, "arguments": {}, **params})


def notification(method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def cancel(id: str | int) -> Json:
    return notification("notifications/cancelled", {"requestId": id})


def processes_with(*marks: str) -> list[tuple[int, str]]:
    """Processes, zombies not counted, that have one of the marks in their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            command = command_of(entry)
            if command.startswith(GUARDIAN):
                command += f" in {_directory_of(entry)}"  # it does not say in its arguments whose it is
            if any(mark in command for mark in marks):
                found.append((int(entry), command))
    return found


def sleepers(stand: Stand) -> list[int]:
    """The processes that the scripts of this stand have put to sleep."""
    return [pid for pid, command in processes_with(stand.mark) if command.startswith(f"sleep {stand.mark}")]


def guardian_of(stand: Stand) -> int:
    """The process that watches over the server of this stand."""
    return next(pid for pid, command in processes_with(stand.mark) if command.startswith(GUARDIAN))


def _state_of(pid: int) -> str:
    fields = proc_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[0] if fields else ""


def _directory_of(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def require_all_gone(stands: Sequence[Stand]) -> None:
    """No server, script or guardian of these stands, and nothing in their temporary directories but an empty one for
    the sockets of all servers of the user."""
    settle(
        lambda: [command for _, command in processes_with(*(stand.mark for stand in stands))],
        "processes are left",
    )
    settle(
        lambda: [str(path) for stand in stands for path in stand.tmp.rglob("*") if path.name != SOCKETS],
        "temporary files are left",
    )


def require_only_server(stand: Stand, pid: int) -> None:
    """The server lives on; of its calls nothing is left."""
    spared = {pid, guardian_of(stand)}
    settle(lambda: [found for found in processes_with(stand.mark) if found[0] not in spared], "processes are left")
    settle(stand.call_dirs, "temporary files are left")
    settle(lambda: [child for child in children_of(pid) if _state_of(child) == "Z"], "zombies are left")


def settle(leftovers: Callable[[], list[Any]], complaint: str, *, within_secs: float = GONE_WITHIN_SECS) -> None:
    """Wait until there are no leftovers."""
    give_up_at = time.monotonic() + within_secs
    while left := leftovers():
        assert time.monotonic() < give_up_at, f"{complaint} after {within_secs} s: {left}"
        time.sleep(0.01)


def require_no_new_descriptors(pid: int, before: list[str]) -> None:
    settle(lambda: new_descriptors(pid, before), "descriptors are left")


def wait_until_up(stands: Iterable[Stand], count: int) -> None:
    for stand in stands:
        eventually(lambda stand=stand: len(stand.ups()) >= count)  # type: ignore[misc]
