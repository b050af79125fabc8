"""The control pipe from a child: turns lines of JSON into actions.

Old scripts append complete JSON-RPC notifications to MCP_PROGRESS_STREAM and MCP_LOG_STREAM; both lead here. A line is
parsed and only its meaning is handed on, never its text: a script cannot put a message of its own onto the wire.

Rule: a script may write as much and as fast as it can, and holds up only itself. Its lines are heard in turns,
for a share of the time, and none while it has as many input requests open as it may. So `feed` says how long to leave
the pipe alone; meanwhile it fills, and the script waits.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

from mcpgreen import journal
from mcpgreen.running.system import MAX_SECS
from mcpgreen.text import jsontext

MAX_LINE_BYTES = 1 << 20
TURN_SECS = 0.004
BURST_SECS = 0.02  # of our time, before a script is slowed down
SHARE = 0.1  # of our time, for one script that writes all the time
NEXT_TURN_SECS = 0.0005
FULL_PAUSE_SECS = 0.02


class Listener(Protocol):
    """Receives what a script reports. `has_room`: it may ask once more."""

    @property
    def has_room(self) -> bool: ...

    def begin_task(self) -> None: ...

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: str, logger: str | None, data: Any) -> None: ...

    def ask(self, asked: Any, reply: Any, timeout_secs: float | None, *, size_bytes: int) -> None: ...


class Channel:
    """Cuts the bytes of the pipe into lines and turns each into a call on the listener."""

    max_line_bytes = MAX_LINE_BYTES

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._begun: list[bytes] = []  # pieces of a line without its end
        self._begun_bytes = 0
        self._is_skipping = False  # to the end of a line that is too long
        self._lines: list[bytes] = []  # that have yet to be heard, the last one first
        self.credit_secs = BURST_SECS
        self._counted_at = 0.0
        self._has_warned = False

    def feed(self, chunk: bytes) -> float:
        """Take what was read, or nothing, and hear as much as is due. Return the seconds for which nothing more may be
        read, after which it is to be called again; 0 if all has been heard."""
        if chunk:
            self._cut(chunk)
        return self._hear_some() if self._lines else 0.0

    def _cut(self, chunk: bytes) -> None:
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"" if self._is_skipping else b"".join([*self._begun, lines[0]])
            lines.reverse()
            self._lines[:0] = lines
            self._is_skipping = False
            self._begun.clear()
            self._begun_bytes = 0
        if rest and not self._is_skipping:
            self._begun.append(rest)
            self._begun_bytes += len(rest)
            if self._begun_bytes > self.max_line_bytes:
                self._warn(f"of more than {self.max_line_bytes} bytes")
                self._is_skipping = True
                self._begun.clear()

    def _hear_some(self) -> float:
        began_at, used_before_secs = time.monotonic(), time.thread_time()
        while self._lines and time.monotonic() - began_at < TURN_SECS:
            if not self._listener.has_room:
                return FULL_PAUSE_SECS
            line = self._lines.pop()
            if line.strip():
                self._hear(line)
        earned_secs = (began_at - self._counted_at) * SHARE
        # Not the clock: the script is not to blame if other processes had their turn meanwhile.
        used_secs = time.thread_time() - used_before_secs
        self.credit_secs = min(BURST_SECS, self.credit_secs + earned_secs) - used_secs
        self._counted_at = began_at
        if self.credit_secs < 0:
            return -self.credit_secs / SHARE
        return NEXT_TURN_SECS if self._lines else 0.0

    def _hear(self, line: bytes) -> None:
        try:
            message = jsontext.loads(line.decode("utf-8", "replace"))  # it may be cut within a character
        except ValueError:
            self._warn("that is not JSON")
            return
        fault = report(self._listener, message, message.get("reply"), len(line)) if isinstance(message, dict) else ""
        if fault:
            self._warn(fault)

    def _warn(self, what: str) -> None:
        """Log it once a call: a script that writes rubbish writes a lot of it."""
        if not self._has_warned:
            self._has_warned = True
            journal.warning("ignored a control line %s from a script", what)


def report(listener: Listener, message: dict[str, Any], reply: Any, size_bytes: int) -> str:
    """Pass on a question, progress, a log message or the beginning of a task. Return what is wrong with the line, if
    that is known."""
    params, method = message.get("params"), message.get("method")
    progress = params if method == "notifications/progress" else message.get("progress")
    log = params if method == "notifications/message" else message.get("log")
    if "ask" in message:
        secs = _number(message.get("timeoutSecs"))
        patience_secs = min(secs, MAX_SECS) if secs and secs > 0 else None
        listener.ask(message["ask"], reply, patience_secs, size_bytes=size_bytes)
    elif message.get("task") == "begin":
        listener.begin_task()
    elif isinstance(progress, dict):
        done, total, text = _number(progress.get("progress")), _number(progress.get("total")), progress.get("message")
        if done is not None:
            listener.progress(done, total, text if isinstance(text, str) else None)
    elif isinstance(log, dict) and log.get("level") in journal.LEVELS and log.get("data") is not None:
        if not jsontext.is_writable(log["data"]):
            return "with a number that is too large"
        logger = log.get("logger")
        listener.log(log["level"], logger if isinstance(logger, str) else None, log["data"])
    return ""


def _number(value: Any) -> float | None:
    return value if type(value) in (int, float) and abs(value) != float("inf") else None
