"""A server in another process, and the lines between it and us. Knows JSON, but nothing of MCP.

Needs no gevent, so that other programs, such as pytest, can use it without being changed. One thread uses it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mcpgreen.cli import children
from mcpgreen.errors import McpgreenError
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_LINE_BYTES = 10 << 20  # the limit of clients
STDERR_BYTES = 600
LAST_WORDS_SECS = 0.2
END_SECS = 2.0  # for the server to end by itself


class NoAnswer(McpgreenError):
    """The server did not do what a client needs. The text says what."""


class Connection:
    def __init__(self, words: Sequence[str], *, env: Mapping[str, str], cwd: str) -> None:
        """Raises NoAnswer if the program cannot be started."""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes it)
        try:
            self._child = children.start(words, env=env, cwd=cwd, stdin=subprocess.PIPE, stderr=self._said.fileno())
        except (OSError, ValueError) as error:
            self._said.close()
            raise NoAnswer(f"{words[0]} cannot be started: {error}") from error
        assert self._child.stdin is not None and self._child.stdout is not None
        self._stdin = self._child.stdin
        self._pipes = [self._child.stdout.fileno()]
        self._unread = b""

    def send(self, message: Json) -> None:
        """Raises NoAnswer if the server does not read any more."""
        try:
            self._stdin.write(jsontext.dumps({"jsonrpc": "2.0", **message}) + b"\n")
        except OSError as error:
            raise self._failure("it exited without an answer") from error

    def receive(self, until: float) -> Any:
        """Return the next message, or None if the time is over. Raises NoAnswer if none will come."""
        while b"\n" not in self._unread:
            heard = children.hear(self._pipes, until)
            if not heard:
                return None
            if not self._pipes:
                raise self._failure("it exited without an answer")
            self._unread += heard[0][1]
            if len(self._unread) > MAX_LINE_BYTES:
                raise self._failure(f"an answer of more than {MAX_LINE_BYTES >> 20} MiB")
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            return jsontext.loads(line)
        except ValueError:
            shown = line[:80].decode("utf-8", "replace")
            raise self._failure(f"a line of its output is not JSON: {shown!r}") from None

    def close(self) -> None:
        """Leave as a client does, and kill what is left then."""
        with suppress(OSError):
            self._stdin.close()
        # The server may still write: it would wait for us, and we for it.
        children.finish(self._child, until=time.monotonic() + END_SECS, max_bytes=MAX_LINE_BYTES)
        children.end(self._child)
        self._said.close()

    def _failure(self, reason: str) -> NoAnswer:
        """Add the exit status of the server, if it ended, and the end of its stderr."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(LAST_WORDS_SECS)
        status = f" (status {self._child.returncode})" if self._child.returncode else ""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - STDERR_BYTES))
        tail = self._said.read(STDERR_BYTES).decode("utf-8", "replace").strip()
        return NoAnswer(f"{reason}{status}" + (f"; its stderr: {tail}" if tail else ""))
