"""A server in another process, and the lines between it and us.

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
from mcpgreen.cli.client import Client
from mcpgreen.errors import McpgreenError
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_LINE_BYTES = 64 << 20
STDERR_BYTES = 600
LAST_WORDS_SECS = 0.2
END_SECS = 2.0  # for the server to end by itself


class NoAnswer(McpgreenError):
    """The server did not do what a client needs. The text says what."""


class Connection:
    def __init__(
        self, words: Sequence[str], *, env: Mapping[str, str], cwd: str, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        """Raises NoAnswer if the program cannot be started."""
        self._max_line_bytes = max_line_bytes
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes it)
        try:
            self._child = children.start(words, env=env, cwd=cwd, stdin=subprocess.PIPE, stderr=self._said.fileno())
        except (OSError, ValueError) as error:
            self._said.close()
            raise NoAnswer(f"{words[0]} cannot be started: {error}") from error
        assert self._child.stdin is not None and self._child.stdout is not None
        self._stdin = self._child.stdin
        self._pipes = [self._child.stdout.fileno()]
        self._unread = bytearray()
        self._searched = 0  # how much of it has no end of line

    def send(self, message: Json) -> None:
        """Raises NoAnswer if the server does not read any more."""
        try:
            self._stdin.write(jsontext.dumps({"jsonrpc": "2.0", **message}) + b"\n")
        except OSError as error:
            raise NoAnswer("it exited without an answer") from error

    def receive(self, until: float) -> Any:
        """Return the next message, or None if the time is over. Raises NoAnswer if none will come."""
        while (end := self._unread.find(b"\n", self._searched)) < 0:
            self._searched = len(self._unread)
            heard = children.hear(self._pipes, until)
            if not heard:
                return None
            if not self._pipes:
                raise NoAnswer("it exited without an answer")
            self._unread += heard[0][1]
            if len(self._unread) > self._max_line_bytes:
                raise NoAnswer(f"an answer of more than {self._max_line_bytes >> 20} MiB")
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        self._searched = 0
        try:
            return jsontext.loads(line)
        except ValueError:
            shown = line[:80].decode("utf-8", "replace")
            raise NoAnswer(f"a line of its output is not JSON: {shown!r}") from None

    def last_words(self) -> str:
        """Return the exit status of the server, if it ended, and the end of its stderr, as the end of a sentence."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(LAST_WORDS_SECS)
        status = f" (status {self._child.returncode})" if self._child.returncode else ""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - STDERR_BYTES))
        tail = self._said.read(STDERR_BYTES).decode("utf-8", "replace").strip()
        return f"{status}; its stderr: {tail}" if tail else status

    def close(self) -> None:
        """Leave as a client does, and kill what is left then."""
        with suppress(OSError):
            self._stdin.close()
        give_up_at = time.monotonic() + END_SECS
        with suppress(subprocess.TimeoutExpired):
            # The server may still write: it would wait for us, and we for it.
            while self._pipes and children.hear(self._pipes, give_up_at):
                pass
            self._child.wait(max(0.0, give_up_at - time.monotonic()))
        children.end(self._child)
        self._said.close()


class ProcessClient(Client):
    """A client over a connection, which it closes. Raises NoAnswer where the server ends."""

    def __init__(self, connection: Connection, *, give_up_at: float, **options: Any) -> None:
        self.connection = connection
        try:
            super().__init__(give_up_at=give_up_at, **options)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.connection.close()

    def exchange(self, method: str, params: Json) -> Json:
        try:
            return super().exchange(method, params)
        except NoAnswer as error:
            raise NoAnswer(f"{method}: {error}{self.connection.last_words()}") from error

    def send(self, message: Json) -> None:
        self.connection.send(message)

    def hear(self, until: float) -> None:
        message = self.connection.receive(until)
        if message is not None:
            self.take(message)
