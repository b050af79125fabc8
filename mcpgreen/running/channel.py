"""The control pipe from a child: lines of JSON in, verbs out.

Old scripts append complete JSON-RPC notifications to MCP_PROGRESS_STREAM and MCP_LOG_STREAM; both lead here. A line is
parsed and only its meaning is handed on, never its text: a script cannot put a message of its own onto the wire.
"""

from __future__ import annotations

from typing import Any, Protocol

from mcpgreen import journal, jsontext
from mcpgreen.running.deadline import MAX_SECS

MAX_LINE_BYTES = 1 << 20


class Listener(Protocol):
    """Who hears what a script reports."""

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: str, logger: str | None, data: Any) -> None: ...

    def ask(self, asked: Any, reply: Any, timeout_secs: float | None) -> None: ...


class Channel:
    """Cuts the bytes of the pipe into lines and turns each into a call on the listener."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._rest = b""
        self._has_warned = False

    def feed(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                self._hear(line)
        if len(self._rest) > MAX_LINE_BYTES:
            self._warn(f"of more than {MAX_LINE_BYTES} bytes")
            self._rest = b""

    def _hear(self, line: bytes) -> None:
        try:
            message = jsontext.loads(line)
        except ValueError:
            self._warn("that is not JSON")
            return
        if isinstance(message, dict) and "ask" in message:
            secs = _number(message.get("timeoutSecs"))
            patience_secs = min(secs, MAX_SECS) if secs and secs > 0 else None
            self._listener.ask(message["ask"], message.get("reply"), patience_secs)
            return
        params = message.get("params") if isinstance(message, dict) else None
        if not isinstance(params, dict):
            return
        if message.get("method") == "notifications/progress":
            self._hear_progress(params)
        elif message.get("method") == "notifications/message":
            self._hear_log(params)

    def _warn(self, what: str) -> None:
        """Once a call: a script that writes rubbish writes a lot of it."""
        if not self._has_warned:
            self._has_warned = True
            journal.warning("a script wrote a control line %s; such lines are ignored", what)

    def _hear_progress(self, params: dict[str, Any]) -> None:
        progress, total, message = _number(params.get("progress")), _number(params.get("total")), params.get("message")
        if progress is not None:
            self._listener.progress(progress, total, message if isinstance(message, str) else None)

    def _hear_log(self, params: dict[str, Any]) -> None:
        level, logger = params.get("level"), params.get("logger")
        if level not in journal.LEVELS or params.get("data") is None:
            return
        if not jsontext.is_writable(params["data"]):
            self._warn("with a number that is too large")
            return
        self._listener.log(level, logger if isinstance(logger, str) else None, params["data"])


def _number(value: Any) -> float | None:
    return value if type(value) in (int, float) and abs(value) != float("inf") else None
