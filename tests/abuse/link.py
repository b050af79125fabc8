"""The hostile end of the pipe: sends whatever it is told, and measures how long the server is held meanwhile.

One thread writes, reads and takes the times, so that no time is lost to another. While an attack prepares its bytes
nothing is under way: `send` and `wait` return only when the last ping is answered. What the server says is only looked
into as far as necessary, because reading it must not take longer than saying it.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.abuse.measure import SAMPLE_PAUSE_SECS, Probe

Json = dict[str, Any]

PING_PAUSE_SECS = 0.005
PATIENT_PAUSE_SECS = 0.5
PATIENCE_SECS = 60.0
PORTION_BYTES = 16384
READ_BYTES = 65536
KEPT_BYTES = 65536  # of a line; what is longer is only weighed
GAP_SECS = 0.002
FORGED = "forged-by-a-script"
SECRET = "in-a-file-that-is-never-served"
PULSE = "the-pulse"

PONG = b'{"jsonrpc":"2.0","id":"ping-'
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress"'
ID = re.compile(rb'"id":("(?:[^"\\]|\\.)*"|-?\d+)')


class ServerDied(Exception):
    """The server closed its output or its input, or is gone."""


class ServerHangs(Exception):
    """The server has not done in time what it should."""


class Link:
    """One connection to a server. `answer` says what its requests to us are answered with; None: nothing."""

    def __init__(
        self, process: subprocess.Popen[bytes], probe: Probe, *, token: str | None, mark: str, project: Path
    ) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self.probe = probe
        self.mark = mark  # of all that scripts leave behind
        self.project = project
        self.is_reading = True
        self.answer: Callable[[Json], Json | bytes | None] = decline
        self.faults: list[str] = []
        self.answers: dict[Any, Json | int] = {}  # of those that are wanted: the message, or the size of a long one
        self.heard = 0  # lines
        self._token = token
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._out: deque[tuple[memoryview, bool]] = deque()
        self._wanted: set[Any] = set()
        self._head = b""  # of the line that is not complete
        self._size = 0
        self._pings = self._pongs = 0
        self._ping_sent_at: float | None = None
        self._ponged_at = self._turned_at = self._counted_from = 0.0
        self._ids = 0
        self._is_amid = False  # of a line: a ping would become part of it

    def honest(self, message: Json) -> Json:
        """The message as the owner of the remote token sends it."""
        if self._token is None:
            return message
        params = message.get("params", {})
        return {**message, "params": {**params, "_meta": {**params.get("_meta", {}), "remoteToken": self._token}}}

    def new_id(self) -> str:
        self._ids += 1
        return f"id-{self._ids}"

    def request(self, method: str, params: Json | None = None, *, id: Any = None) -> Json:
        """A request of the owner of the connection; the answer to it is kept."""
        id = self.new_id() if id is None else id
        self._wanted.add(id)
        return self.honest({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})

    def call(self, name: str, arguments: Json | None = None, **params: Any) -> Json:
        return self.request("tools/call", {"name": name, "arguments": arguments or {}, **params})

    def send(self, *messages: Json | bytes, within_secs: float = PATIENCE_SECS) -> None:
        """Send all, with pings in between, and a last one behind."""
        for portion in _portions(messages):
            self._out.append((memoryview(portion), False))
            self._pump(lambda: not self._out, within_secs, f"did not take {len(portion)} bytes")
        if self.is_reading:
            self.settle(within_secs=within_secs)

    def dribble(self, line: bytes, *, pieces: int, pause_secs: float) -> None:
        """Send one line bit by bit; nothing can be sent in between."""
        self._is_amid = True
        step = max(1, len(line) // pieces)
        for start in range(0, len(line), step):
            self._out.append((memoryview(line)[start : start + step], False))
            self._pump(lambda: not self._out, PATIENCE_SECS, "did not take a piece of a line")
            time.sleep(pause_secs)
        self._is_amid = False
        self.send(b"\n")

    def offer(self, *messages: Json | bytes, secs: float) -> int:
        """Send as much as the server takes in this time, without reading. How many bytes are left."""
        self._out.extend((memoryview(portion), False) for portion in _portions(messages))
        self.is_reading = False
        self._pump(lambda: not self._out, secs, None)
        return sum(len(data) for data, _ in self._out)

    def settle(self, *, within_secs: float = PATIENCE_SECS) -> None:
        """Until the server has answered a ping that was sent behind everything else."""
        self.is_reading = True
        self._pump(lambda: not self._out and self._ping_sent_at is None, within_secs, "does not answer a ping")
        self._ping()
        self._pump(lambda: not self._out and self._ping_sent_at is None, within_secs, "does not answer a ping")

    @property
    def ping_waits_secs(self) -> float:
        """How long a ping has been waiting for its answer."""
        sent_at = self._ping_sent_at
        return 0.0 if sent_at is None else time.monotonic() - sent_at

    def wait(self, secs: float) -> None:
        """Let time pass, and ping."""
        give_up_at = time.monotonic() + secs
        self._pump(lambda: time.monotonic() >= give_up_at, secs + 1, None)
        self.settle()

    def wait_for(self, *requests: Json, within_secs: float = PATIENCE_SECS) -> list[Json | int]:
        """The answers to these."""
        ids = [request["id"] for request in requests]
        self._pump(lambda: all(id in self.answers for id in ids), within_secs, "does not answer a request")
        self.settle()
        return [self.answers.pop(id) for id in ids]

    def ask(self, request: Json) -> Json:
        """Send a request; its answer, which has to be short."""
        self.send(request)
        answer = self.wait_for(request)[0]
        if isinstance(answer, int):
            self.faults.append(f"an answer of {answer} bytes to {str(request)[:200]}")
            return {}
        return answer

    def forget_answers(self) -> None:
        self.answers.clear()
        self._wanted.clear()

    def _pump(self, is_over: Callable[[], bool], secs: float, complaint: str | None) -> None:
        now = time.monotonic()
        give_up_at = now + secs
        if now - self._turned_at > GAP_SECS:
            self._counted_from = now  # a pulse that came while we were away has waited for us, not for the server
        while not is_over():
            if time.monotonic() >= give_up_at:
                if complaint is None:
                    return
                if self._ping_sent_at is not None:
                    self.probe.figures.pinged(time.monotonic() - self._ping_sent_at)
                raise ServerHangs(f"the server {complaint} within {secs:g} s")
            self._turn()
            self._ping_if_due()

    def _turn(self) -> None:
        """One look at both pipes."""
        poller = select.poll()
        if self._out:
            poller.register(self._stdin, select.POLLOUT)
        if self.is_reading:
            poller.register(self._stdout, select.POLLIN)
        for fd, _ in poller.poll(2):
            if fd == self._stdin:
                self._write()
            else:
                self._read()
        self._turned_at = time.monotonic()
        # A look takes long where there are a thousand processes, and an answer would have to wait for us.
        self.probe.sample_if_due(pause_secs=SAMPLE_PAUSE_SECS if self._ping_sent_at is None else PATIENT_PAUSE_SECS)
        if not self.is_reading and self.process.poll() is not None:
            raise ServerDied(f"the server exited with status {self.process.returncode}")

    def _write(self) -> None:
        data, is_ping = self._out.popleft()
        try:
            written = os.write(self._stdin, data)
        except BlockingIOError:
            written = 0
        except BrokenPipeError:
            raise ServerDied("the server does not listen any more") from None
        if written < len(data):
            self._out.appendleft((data[written:], is_ping))
        elif is_ping:
            self._ping_sent_at = time.monotonic()

    def _read(self) -> None:
        try:
            chunk = os.read(self._stdout, READ_BYTES)
        except BlockingIOError:
            return
        now = time.monotonic()
        if not chunk:
            raise ServerDied("the server closed its output")
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._hear(self._head + line if self._size < KEPT_BYTES else self._head, self._size + len(line), now)
            self._head, self._size = b"", 0
        if self._size < KEPT_BYTES:
            self._head += rest
        self._size += len(rest)

    def _ping_if_due(self) -> None:
        is_under_way = self._ping_sent_at is not None or any(is_ping for _, is_ping in self._out)
        if (
            self.is_reading
            and not self._is_amid
            and not is_under_way
            and time.monotonic() - self._ponged_at >= PING_PAUSE_SECS
        ):
            self._ping()

    def _ping(self) -> None:
        if self._ping_sent_at is None and not any(is_ping for _, is_ping in self._out):
            self._pings += 1
            ping = self.honest({"jsonrpc": "2.0", "id": f"ping-{self._pings}", "method": "ping"})
            self._out.append((memoryview(json.dumps(ping).encode() + b"\n"), True))

    def _hear(self, line: bytes, size: int, now: float) -> None:
        self.heard += 1
        self.probe.figures.replied(size)
        if line.startswith(PONG):
            if self._ping_sent_at is not None and line.startswith(PONG + b'%d"' % self._pings):
                if self._ponged_at:  # the first one waits for the server to start
                    self.probe.figures.pinged(now - self._ping_sent_at)
                self._ping_sent_at, self._ponged_at = None, now
        elif line.startswith(PROGRESS) and size < 400 and PULSE.encode() in line:
            written_at = int(json.loads(line)["params"]["message"]) / 1e9
            if written_at >= self._counted_from:
                self.probe.figures.pulsed(now - written_at)
        elif FORGED.encode() in line[:1000]:
            self.faults.append("a script wrote to the client past the server")
        elif SECRET.encode() in line:
            self.faults.append("a file of server.d/ was served")
        elif self._wanted or b'"method"' in line[:400]:
            self._look_into(line, size)

    def _look_into(self, line: bytes, size: int) -> None:
        if size > len(line) or size > KEPT_BYTES:
            found = ID.search(line[:1000])
            id = json.loads(found.group(1)) if found else None
            if id in self._wanted:
                self.answers[id] = size
            return
        try:
            message = json.loads(line, parse_int=_integer)
        except (ValueError, RecursionError):
            self.faults.append(f"no line of JSON: {line[:200]!r}")
            return
        for single in message if isinstance(message, list) else [message]:
            id = single.get("id")
            if "method" not in single:
                if isinstance(id, (str, int)) and id in self._wanted:
                    self.answers[id] = single
            elif "id" in single:
                answer = self.answer(single)
                if answer is not None:
                    self._out.append((memoryview(_line_of(answer)), False))


def decline(request: Json) -> Json:
    """What a client says that has no roots and whose user wants nothing."""
    result: Json = {"roots": []} if request["method"] == "roots/list" else {"action": "decline"}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def ignore(request: Json) -> None:
    """A client that never answers."""


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < 4000 else digits


def _line_of(message: Json | bytes) -> bytes:
    line = message if isinstance(message, bytes) else json.dumps(message).encode()
    return line if line.endswith(b"\n") else line + b"\n"


def _portions(messages: Iterable[Json | bytes]) -> Iterator[bytes]:
    """Messages together, until they are worth a write."""
    held: list[bytes] = []
    held_bytes = 0
    for message in messages:
        line = _line_of(message)
        held.append(line)
        held_bytes += len(line)
        if held_bytes >= PORTION_BYTES:
            yield b"".join(held)
            held, held_bytes = [], 0
    if held:
        yield b"".join(held)
