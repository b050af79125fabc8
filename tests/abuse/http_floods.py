"""Attacks on the HTTP transport, one after the other, and how long somebody else was held up meanwhile.

    python -m tests.abuse.http_floods [NAME ...]

for three seconds each, or for MCPGREEN_FLOOD_SECS. STACKS names a file that says where long turns were.

Each attack floods a real server from a process of its own while a second client asks for `server/discover` all the
time. Two figures count: how long that client waited at the worst, which depends on how busy the machine is, and how
much processor time the longest turn of the hub took (`hub_turns`), which does not.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.abuse.hub_turns import environment
from tests.abuse.notes import Reader
from tests.support.constants import variables_of
from tests.support.project import ProjectBuilder
from tests.support.wire import MODERN, clean_environment, modern_meta
from tests.transports.http.attacking import Raw, discovery, head, mcp_lines, posted

SECS = float(os.environ.get("MCPGREEN_FLOOD_SECS", "3"))
CONNECTIONS = 50
Address = tuple[str, int]
Flood = Callable[[Address, float], None]
FLOODS: dict[str, Flood] = {}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "flood", "version": "1"}},
}


class Figures(NamedTuple):
    """Of one attack."""

    answers: int  # that the second client got
    longest_wait_secs: float
    longest_turn_secs: float


class Target:
    """A server that notes its turns."""

    def __init__(self, root: Path, **settings: str) -> None:
        self.turns = Reader()
        command = [sys.executable, "-m", "mcpgreen", "serve", "--http", "127.0.0.1:0", "--project-root", str(root)]
        self.process = subprocess.Popen(
            command,
            env=clean_environment(
                {**environment(self.turns, stacks=os.environ.get("STACKS", "")), **variables_of(settings)}
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[self.turns.fd],
        )
        assert self.process.stderr is not None
        self._stderr = self.process.stderr
        found = None
        for line in self._stderr:
            found = re.search(rb"serving http://([0-9.]+):([0-9]+)/mcp", line)
            if found is not None:
                break
        assert found is not None, "the server has not started"
        self.address = found[1].decode(), int(found[2])
        os.set_blocking(self._stderr.fileno(), False)

    @property
    def said(self) -> str:
        return (self._stderr.read() or b"").decode("utf-8", "replace")

    def close(self) -> None:
        self.process.terminate()
        self.process.terminate()
        self.process.wait()
        self._stderr.close()
        self.turns.close()


def measured(target: Target, name: str) -> Figures:
    """One attack, in a process of its own: who floods should not hold up who measures."""
    with socket.create_connection(target.address, timeout=60) as sock:
        second = Raw(sock)
        for _ in range(20):
            second.send(discovery()).answer()
        list(target.turns.fresh())
        pid = os.fork()
        if pid == 0:
            try:
                FLOODS[name](target.address, time.monotonic() + SECS)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        longest, answers = 0.0, 0
        while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
            began_at = time.perf_counter()
            assert second.send(discovery()).answer().status == 200
            longest = max(longest, time.perf_counter() - began_at)
            answers += 1
        assert ended[1] == 0, f"{name} has failed"
    turns = [turn.cpu_ns for turn in target.turns.fresh()]
    return Figures(answers, longest, max(turns, default=0) / 1e9)


def flood(act: Flood) -> Flood:
    FLOODS[act.__name__.replace("_", " ")] = act
    return act


@contextlib.contextmanager
def connections(address: Address, number: int = CONNECTIONS) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as ends:
        yield [ends.enter_context(socket.create_connection(address, timeout=60)) for _ in range(number)]


def stuff(address: Address, give_up_at: float, data: bytes, *, number: int = CONNECTIONS, is_read: bool = True) -> None:
    """The same bytes on many connections, as fast as they are taken; a connection that ends is replaced."""
    with connections(address, number) as socks:
        for sock in socks:
            sock.setblocking(False)
        while time.monotonic() < give_up_at:
            idle = True
            for index, sock in enumerate(socks):
                try:
                    if is_read:
                        with contextlib.suppress(BlockingIOError):
                            while sock.recv(1 << 20):
                                idle = False
                            raise ConnectionResetError
                    idle = sock.send(data) == 0 and idle
                except BlockingIOError:
                    continue
                except OSError:
                    sock.close()
                    socks[index] = socket.create_connection(address, timeout=60)
                    socks[index].setblocking(False)
            if idle:
                time.sleep(0.001)


@flood
def nothing(address: Address, give_up_at: float) -> None:
    time.sleep(max(0.0, give_up_at - time.monotonic()))


@flood
def connections_that_come_and_go(address: Address, give_up_at: float) -> None:
    while time.monotonic() < give_up_at:
        with connections(address, 100) as socks:
            for sock in socks[::2]:
                sock.send(b"GET / HT")


@flood
def a_thousand_half_open(address: Address, give_up_at: float) -> None:
    with connections(address, 1000) as socks:
        while time.monotonic() < give_up_at:
            for sock in socks:
                with contextlib.suppress(OSError):
                    sock.send(b"X")
            time.sleep(0.1)


@flood
def batches_of_a_thousand(address: Address, give_up_at: float) -> None:
    old = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": "2025-03-26"}}  # type: ignore[dict-item]
    with socket.create_connection(address, timeout=60) as sock:
        id = Raw(sock).send(posted(old)).answer().headers["mcp-session-id"]
    batch = b"[" + b",".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n for n in range(1000)) + b"]"
    stuff(address, give_up_at, posted(batch, f"Mcp-Session-Id: {id}"), number=10)


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": modern_meta()}}
# The bytes, and what `stuff` does with them.
STUFF: dict[str, tuple[bytes, dict[str, Any]]] = {
    "pipelined discovery of one": (discovery() * 50, {"number": 1}),
    "pipelined discovery of many": (discovery() * 50, {}),
    "pipelined lists": (posted(LIST, f"MCP-Protocol-Version: {MODERN}", "Mcp-Method: tools/list") * 50, {}),
    "pipelined refusals": (head("GET", "/x", "Origin: http://evil.example") * 200, {}),
    "heads of many lines": (head("GET", "/healthz", *(f"X-{n}: {'y' * 250}" for n in range(97))) * 2, {}),
    "heads without end": (b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 100_000, {}),
    "line ends without end": (b"\r\n" * 100_000, {}),
    "types without end": (head("POST", "/mcp", "Accept: " + "a/b;q=0," * 3900), {}),
    "tiny chunks": (head("POST", "/mcp", *mcp_lines(), "Transfer-Encoding: chunked") + b"1\r\n \r\n" * 50_000, {}),
    "large bodies": (posted(b" " * 4_000_000), {"number": 20}),
    "bodies of brackets": (posted(b"[" + b"[]," * 80_000 + b"[]]"), {"number": 20}),
    "small bodies of brackets": (posted(b"[" + b"[]," * 15_000 + b"[]]"), {}),
    "new sessions": (posted(INITIALIZE) * 20, {}),
    "answers that nobody reads": (discovery() * 50, {"is_read": False}),
}
for _name, (_data, _how) in STUFF.items():
    FLOODS[_name] = partial(stuff, data=_data, **_how)


def main(names: list[str]) -> int:
    with tempfile.TemporaryDirectory() as place:
        project = ProjectBuilder(Path(place) / "project")
        for number in range(100):
            project.tool(f"tool-{number}", "echo hello")
        target = Target(project.root, http_session_idle_secs="5")
        print(f"{'attack':32} {'answers':>8} {'longest wait':>13} {'longest turn':>13}")
        try:
            for name in names or FLOODS:
                figures = measured(target, name)
                wait_ms, turn_ms = figures.longest_wait_secs * 1000, figures.longest_turn_secs * 1000
                print(f"{name:32} {figures.answers:8} {wait_ms:10.1f} ms {turn_ms:10.1f} ms", flush=True)
        finally:
            said = target.said
            target.close()
        if "Traceback" in said:
            print(said[-3000:])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
