"""One MCP client for all subjects: raw pipes, one JSON message a line, the clock in the caller's hand.

It does as little as possible while time is being taken: requests are encoded before, answers are checked after.

Rule: every wait has a deadline, and leaving a `Session` leaves no process behind, whatever the server did.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import processes

Json = dict[str, Any]
Wanted = Callable[[bytes], bool]

WAIT_SECS = 60.0
EXIT_SECS = 2.0
READ_BYTES = 1 << 20
REVISION = "2025-11-25"
NO_ARGUMENTS: Mapping[str, Any] = {}


class SubjectError(Exception):
    """The server under test did not do what was asked."""


class Session:
    """A running server that has been started, and maybe greeted."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, stderr: Path) -> None:
        self.calls_made = 0
        self._stderr = stderr
        self._next_id = 0
        self._partial: list[bytes] = []
        self._lines: list[bytes] = []
        with stderr.open("ab") as log:
            self.started_at = time.perf_counter()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=env,
                cwd=cwd,
                bufsize=0,
                start_new_session=True,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin = self._process.stdin.fileno()
        self._stdout = self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)
        self._readable = select.poll()
        self._readable.register(self._stdout, select.POLLIN)
        self._either = select.poll()
        self._either.register(self._stdout, select.POLLIN)
        self._either.register(self._stdin, select.POLLOUT)

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server by closing its stdin; end whatever is left a moment later by force."""
        process = self._process
        with processes.handles([process.pid, *processes.descendants(process.pid)]) as everybody:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.stdout.close()
            if not processes.wait_until_gone(everybody, timeout_secs=EXIT_SECS):
                processes.kill(everybody)
        process.wait()

    def encode(self, method: str, params: Json | None = None) -> bytes:
        """One request line with an id of its own."""
        self._next_id += 1
        message: Json = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        if params is not None:
            message["params"] = params
        return encoded(message)

    def encode_call(self, name: str, arguments: Mapping[str, Any] = NO_ARGUMENTS, *, progress: bool = False) -> bytes:
        self.calls_made += 1
        params: Json = {"name": name, "arguments": dict(arguments)}
        if progress:
            params["_meta"] = {"progressToken": self.calls_made}
        return self.encode("tools/call", params)

    def encode_cancel(self) -> bytes:
        """A cancel of the request that was encoded last."""
        params = {"requestId": self._next_id, "reason": "benchmark"}
        return encoded({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def initialize(self) -> None:
        """Send `initialize` and wait for its answer. `confirm` completes the handshake."""
        client = {"name": "bench", "version": "1"}
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
        result_of(self.ask(self.encode("initialize", params)))

    def confirm(self) -> None:
        self.send(encoded({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def send(self, data: bytes) -> None:
        """Write a few small messages. Many at once go through `exchange`, which reads while it writes."""
        if os.write(self._stdin, data) != len(data):
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
            ready = wait(self._either if outgoing else self._readable, timeout_secs=WAIT_SECS)
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
            wait(self._readable, timeout_secs=timeout_secs)
            self._read()

    def last_words(self) -> str:
        lines = self._stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "nothing on stderr"

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


def wait(poll: select.poll, *, timeout_secs: float) -> list[int]:
    ready = poll.poll(timeout_secs * 1000)
    if not ready:
        raise SubjectError(f"no answer within {timeout_secs:g} s")
    return [descriptor for descriptor, _ in ready]


def encoded(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def is_answer(line: bytes) -> bool:
    # Only a notification has a method, and inside a string the quotes would be escaped.
    return b'"method":' not in line[:500]


def is_notice(method: str) -> Wanted:
    wanted = f'"{method}"'.encode()
    return lambda line: wanted in line[:500]


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
