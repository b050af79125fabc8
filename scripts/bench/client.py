"""One MCP client for all subjects: raw pipes, one JSON message a line, the clock in the caller's hand.

It does as little as possible while time is being taken: requests are encoded before, answers are checked after. It also
looks at processes from outside: their descendants, what they use, when they have ended. Linux only.

Rule: every wait has a deadline, and leaving a server leaves no process behind, whatever the server did.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from figures import SubjectError

Json = dict[str, Any]
Wanted = Callable[[bytes], bool]

WAIT_SECS = 60.0
EXIT_SECS = 3.0
READ_BYTES = 1 << 20
REVISION = "2025-11-25"
NOTHING: Mapping[str, Any] = {}
AnyServer = TypeVar("AnyServer", bound="RunningServer")


class RunningServer:
    """A server that has been started. Leaving it ends it, and ends by force what is left a moment later."""

    pipe = subprocess.PIPE

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, stderr: Path) -> None:
        self._stderr = stderr
        with stderr.open("wb") as log:
            self.started_at = time.perf_counter()
            self.process = subprocess.Popen(
                command,
                stdin=self.pipe,
                stdout=self.pipe,
                stderr=log,
                env=env,
                cwd=cwd,
                bufsize=0,
                start_new_session=True,
            )
        self.pid = self.process.pid

    def __enter__(self: AnyServer) -> AnyServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with handles([self.pid, *descendants(self.pid)]) as everybody:
            self.ask_to_end()
            if not wait_until_gone(everybody, timeout_secs=EXIT_SECS):
                kill(everybody)
        self.process.wait()

    def ask_to_end(self) -> None:
        self.process.terminate()

    def last_words(self) -> str:
        lines = self._stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "nothing on stderr"


class Session(RunningServer):
    """A server at the other end of two pipes."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, stderr: Path) -> None:
        super().__init__(command, env=env, cwd=cwd, stderr=stderr)
        self.calls_made = 0
        self._next_id = 0
        self._partial: list[bytes] = []
        self._lines: list[bytes] = []
        assert self.process.stdin is not None and self.process.stdout is not None
        self._stdin = self.process.stdin.fileno()
        self._stdout = self.process.stdout.fileno()
        os.set_blocking(self._stdin, False)

    def ask_to_end(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()

    def encode(self, method: str, params: Mapping[str, Any] | None = None) -> bytes:
        """One request line with an id of its own."""
        self._next_id += 1
        message: Json = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        return encoded(message if params is None else {**message, "params": params})

    def encode_call(self, name: str, arguments: Mapping[str, Any] = NOTHING) -> bytes:
        self.calls_made += 1
        return self.encode("tools/call", {"name": name, "arguments": arguments})

    def encode_cancel(self) -> bytes:
        """A cancel of the request that was encoded last."""
        params = {"requestId": self._next_id, "reason": "benchmark"}
        return encoded({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def initialize(self) -> None:
        """Complete the handshake up to the answer. `confirm` is the rest of it."""
        client = {"name": "bench", "version": "1"}
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
        result_of(self.ask(self.encode("initialize", params)))

    def confirm(self) -> None:
        self.send(encoded({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def list_tools(self, expected: int | None = None) -> None:
        """Ask for all tools, page by page."""
        answer = self.ask(self.encode("tools/list"))
        count = answer.count(b'"inputSchema"')
        while b'"nextCursor"' in answer:
            answer = self.ask(self.encode("tools/list", {"cursor": result_of(answer)["nextCursor"]}))
            count += answer.count(b'"inputSchema"')
        if expected not in (None, count):
            raise SubjectError(f"listed {count} tools instead of {expected}")

    def get_ready(self) -> None:
        """Handshake, list, and a ping, since a first list may come before the server is up."""
        self.initialize()
        self.confirm()
        self.list_tools()
        result_of(self.ask(self.encode("ping")))

    def send(self, data: bytes) -> None:
        """Write a few small messages. Many at once go through `exchange`, which reads while it writes."""
        try:
            is_written = os.write(self._stdin, data) == len(data)
        except BrokenPipeError:
            raise SubjectError(f"the server ended: {self.last_words()}") from None
        if not is_written:
            raise SubjectError("the server does not read its stdin")

    def ask(self, request: bytes) -> bytes:
        """Send one request and wait for the next answer."""
        self.send(request)
        return self.next_line(is_answer)

    def exchange(self, requests: Sequence[bytes], *, in_flight: int) -> list[bytes]:
        """Send all requests, never more than `in_flight` unanswered; return the answers as they came."""
        answers: list[bytes] = []
        sent = min(in_flight, len(requests))
        outgoing = memoryview(b"".join(requests[:sent]))
        while len(answers) < len(requests):
            ready = self._wait(WAIT_SECS, is_writing=bool(outgoing))
            if self._stdin in ready:
                outgoing = outgoing[os.write(self._stdin, outgoing) :]
            if self._stdout not in ready:
                continue
            self._read()
            answers += filter(is_answer, self._lines)
            self._lines.clear()
            due = requests[sent : len(answers) + in_flight]
            if due:
                sent += len(due)
                outgoing = memoryview(bytes(outgoing) + b"".join(due))
        return answers

    def next_line(self, is_wanted: Wanted, *, timeout_secs: float = WAIT_SECS) -> bytes:
        """The next message that `is_wanted`; others are dropped."""
        while True:
            while self._lines:
                line = self._lines.pop(0)
                if is_wanted(line):
                    return line
            self._wait(timeout_secs)
            self._read()

    def _wait(self, timeout_secs: float, *, is_writing: bool = False) -> list[int]:
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if is_writing:
            poll.register(self._stdin, select.POLLOUT)
        ready = poll.poll(timeout_secs * 1000)
        if not ready:
            raise SubjectError(f"no answer within {timeout_secs:g} s")
        return [descriptor for descriptor, _ in ready]

    def _read(self) -> None:
        chunk = os.read(self._stdout, READ_BYTES)
        if not chunk:
            raise SubjectError(f"the server ended: {self.last_words()}")
        first, *others = chunk.split(b"\n")
        self._partial.append(first)
        if others:
            self._lines.append(b"".join(self._partial))
            self._lines += others[:-1]
            self._partial = [others[-1]]


def encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def is_answer(line: bytes) -> bool:
    # Only a notification has a method, and inside a string the quotes would be escaped.
    return b'"method":' not in line[:500]


def result_of(answer: bytes) -> Json:
    message = json.loads(answer)
    if "result" not in message:
        raise SubjectError(f"error instead of a result: {message.get('error')}")
    result: Json = message["result"]
    return result


def text_of(answer: bytes) -> str:
    result = result_of(answer)
    if result.get("isError") or not result["content"]:
        raise SubjectError(f"the call failed: {json.dumps(result)[:200]}")
    text: str = result["content"][0]["text"]
    return text


def cpu_ms(pid: int) -> float:
    """CPU time of the process itself, without its children.

    The same figure as utime + stime in /proc/PID/stat, but in nanoseconds instead of hundredths of a second: the
    kernel numbers the CPU clock of each process like this (clock_getcpuclockid).
    """
    return time.clock_gettime((~pid << 3) | 2) * 1000


def memory_mb(pid: int, *, field: str = "Pss:", has_helpers: bool = True) -> float:
    """Memory of the process and of every helper and script below it, or of the process alone. With `Pss:`, what they
    share counts once; with `Rss:`, once for each."""
    kib = 0
    for member in (pid, *(descendants(pid) if has_helpers else ())):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            words = Path(f"/proc/{member}/smaps_rollup").read_text(encoding="ascii").split()
            kib += int(words[words.index(field) + 1]) if field in words else 0
    return kib * 1024 / 1e6


def descendants(pid: int) -> list[int]:
    """Children, their children and so on; also those that have ended and are not reaped yet."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may end while we look
        for thread in os.listdir(f"/proc/{pid}/task"):
            children = Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii")
            for child in map(int, children.split()):
                found += [child, *descendants(child)]
    return found


@contextlib.contextmanager
def handles(pids: Iterable[int]) -> Iterator[list[int]]:
    """Descriptors that stand for these processes, even after their numbers are used again."""
    descriptors: list[int] = []
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                descriptors.append(os.pidfd_open(pid))
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def wait_until_gone(descriptors: Iterable[int], *, timeout_secs: float) -> bool:
    """Return True once every process has ended; a zombie has ended. The kernel wakes us, nothing is polled."""
    deadline = time.monotonic() + timeout_secs
    for descriptor in descriptors:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return False
    return True


def kill(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
