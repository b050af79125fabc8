"""Record a session over stdio: a line of JSON for each message, with its time, for `mcpgreen replay`.

The first line has the project, and rules for comparing, which people may edit. Messages are kept as they are, apart
from what is secret: by its name, by the schema of a tool that was called, or as a value that the client has sent as a
secret before. So the recording ends at a message of the client that is too large to be searched. A message of the
server that is too large is only mentioned.

Rule: recording never holds or stops a call. Messages wait, within a limit, for a greenlet that hides what is secret in
turns, and lines are written in a thread. If it all takes too long, the recording ends.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

import gevent
from gevent.queue import Queue

from mcpgreen import journal
from mcpgreen.errors import RpcError
from mcpgreen.events.stream import Event
from mcpgreen.features.services import Services
from mcpgreen.files.regular_files import new_file
from mcpgreen.logs.secrets import HIDDEN
from mcpgreen.protocol.messages import normal_id, whole
from mcpgreen.running.shares import Turns
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

VERSION = 1
MAX_FRAME_BYTES = 1 << 20
MAX_TEXT_CHARS = 1 << 16  # that can be searched for secrets without holding the server; the rest is hidden
MAX_WAITING_BYTES = 16 << 20
WAITING_BYTES = 256  # of memory for each message, besides its line
MAX_FILE_BYTES = 256 << 20
MAX_FILES = 1000  # with the same name, apart from their numbers
LAST_WRITE_SECS = 2.0
STATE = "requestState"
TOO_LARGE = "a message of the client is too large to be searched for secrets"
ENVELOPE = ("jsonrpc", "id", "method")  # without secrets
RULES: Json = {
    # Values of these members are different each time, and clients send some of them back.
    "members": [
        *(STATE, "taskId", "nextCursor", "elicitationId", "createdAt", "lastUpdatedAt", "statusMessage", "pid"),
        *("ttl", "ttlMs"),
    ],
    "texts": [
        [r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?", "<time>"],
        [r"\b\d\d:\d\d:\d\d([.,]\d+)?\b", "<time>"],
        [r"\b(pid|PID)([ =:]+)\d+", r"\1\2<pid>"],
        [r"/tmp/[\w./+-]+", "<temporary>"],
    ],
}


class Fields(dict[str, Any]):
    """The `properties` of a schema: what describes a secret is not secret."""


class Recorder:
    """Records what the stream of events tells of frames, from now on until `close`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._waiting: Queue[tuple[float, str, bytes] | None] = Queue()
        self._waiting_bytes = 0
        self._began_at = time.time()
        self._writing = gevent.spawn(self._write)
        services.events.read(self._take, ("frame",))

    def close(self) -> None:
        """Write what waits, for a moment at most."""
        self._waiting.put(None)
        self._writing.join(LAST_WRITE_SECS)

    def _take(self, event: Event) -> None:
        if self._waiting_bytes <= MAX_WAITING_BYTES:  # otherwise the recording ends
            # A longer line cannot be searched for secrets without holding the server.
            line = whole(event.fields["line"]) if event.fields["bytes"] <= MAX_FRAME_BYTES else b""
            self._waiting_bytes += len(line) + WAITING_BYTES
            self._waiting.put((event.at, "client" if event.fields["way"] == "in" else "server", line))

    def _write(self) -> None:
        path = os.path.join(self._services.project.root, self._services.settings.record)
        try:
            path, fd = _new_file(path)
            journal.info("recording to %s", path)
            with open(fd, "wb", buffering=0) as file:
                for value in self._values():
                    problem = gevent.get_hub().threadpool.apply(_append, (file, jsontext.dumps(value) + b"\n"))
                    if problem is not None:
                        raise problem
        except OSError as error:
            journal.error("nothing more is recorded: %s: %s", path, error.strerror)
        finally:
            self._services.events.read(self._take, ())

    def _values(self) -> Iterator[Json]:
        turns = Turns()
        about: Json = {"root": self._services.project.root, "server": self._services.identity.info}
        yield {"recording": VERSION, "at": round(self._began_at), **about, "rules": RULES}
        with suppress(RpcError, OSError):
            self._services.snapshot("tools")  # their schemas say what is secret
        while (taken := self._waiting.get()) is not None:
            at, sender, line = taken
            if self._waiting_bytes > MAX_WAITING_BYTES:
                raise OSError(errno.EFBIG, "messages come too fast")
            self._waiting_bytes -= len(line) + WAITING_BYTES
            about = {"secs": round(at - self._began_at, 4), "from": sender}
            if not line and sender == "client":
                raise OSError(errno.EFBIG, TOO_LARGE)
            try:
                frame = jsontext.loads(line, turns.pause)
            except ValueError:  # it is too long, or has too many parts
                frame = None
            for message in frame if isinstance(frame, list) else [frame]:
                turns.pause()
                is_sound = is_message(message) and jsontext.is_writable(message)
                if is_sound and sender == "client" and self._services.confidential.hear(message).hides_all:
                    raise OSError(errno.EFBIG, TOO_LARGE)
                yield {**about, "message": self._without_secrets(message, turns) if is_sound else None}

    def _without_secrets(self, message: Json, turns: Turns) -> Any:
        secrets = self._services.confidential.learned

        def without(members: Json, name: str, value: Any) -> Any:
            turns.pause()
            if members is message and name in ENVELOPE:
                return value
            if name == STATE and isinstance(value, str):
                return f"state-{jsontext.digest(value)[:16]}"
            if name == "properties" and members.get("type") == "object" and isinstance(value, dict):
                return Fields(value)
            is_schema = isinstance(members, Fields) and isinstance(value, dict)
            if secrets.hides_in(members, name) and not isinstance(value, bool) and not is_schema:
                return HIDDEN
            if not isinstance(value, str):
                return value
            shown = secrets.text(value, limit_chars=MAX_TEXT_CHARS, turn=turns.pause)
            return shown + HIDDEN if len(value) > MAX_TEXT_CHARS else shown

        return jsontext.rewritten(message, without)


def is_message(value: Any) -> bool:
    """Tell whether this is a message of JSON-RPC, with what MCP has in it."""
    if not isinstance(value, dict) or not isinstance(value.get("method", ""), str):
        return False
    params = value.get("params", {})
    is_sound = isinstance(params, dict) and isinstance(params.get("_meta", {}), dict)
    return is_sound and ("id" not in value or normal_id(value["id"]) is not None)


def _append(file: IO[bytes], line: bytes) -> OSError | None:
    """Return an error, because gevent prints what is raised in a thread."""
    try:
        is_full = file.tell() + file.write(line) > MAX_FILE_BYTES
    except OSError as error:
        return error
    return OSError(errno.EFBIG, f"it has more than {MAX_FILE_BYTES >> 20} MiB") if is_full else None


def _new_file(path: str) -> tuple[str, int]:
    """Create a file that only we can read; if the name is taken, with a number in it."""
    stem, suffix = os.path.splitext(path)
    for number in range(1, MAX_FILES):
        name = path if number == 1 else f"{stem}-{number}{suffix}"
        with suppress(FileExistsError):
            return name, new_file(name)
    raise FileExistsError(errno.EEXIST, "there are too many recordings of this name")
