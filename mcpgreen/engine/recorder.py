"""Record a session: a line of JSON for each frame, with its time, for `mcpgreen replay`.

The first line has the project, and rules for comparing, which people may edit. A frame is kept as it is, apart from
its secrets, which are hidden as in the log. Sealed states get a number instead.

Rule: recording never holds or stops a call. Frames wait, within a limit, for a greenlet that hides what is secret in
turns, and lines are written in a thread. What does not fit is counted.
"""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.errors import RpcError
from mcpgreen.events import stream as events
from mcpgreen.features.call import Call
from mcpgreen.features.services import Services
from mcpgreen.files.regular_files import new_file
from mcpgreen.logs.secrets import HIDDEN, Secrets
from mcpgreen.protocol.messages import Line, size_of, whole
from mcpgreen.running.shares import Turns
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

VERSION = 1
MAX_FRAME_BYTES = 1 << 20  # a longer one is only mentioned
MAX_TEXT_CHARS = 1 << 16  # that can be searched for secrets without holding the server; the rest is hidden
MAX_WAITING_BYTES = 16 << 20
MAX_FILE_BYTES = 256 << 20
MAX_NAMES = 1000  # of files that exist already
LAST_WRITE_SECS = 2.0
STATE = "requestState"
# What two sessions may differ in. Values of these members are different each time, and clients send some of them back.
VOLATILE = (STATE, "taskId", "nextCursor", "elicitationId", "createdAt", "lastUpdatedAt", "statusMessage", "pid")
RULES: Json = {
    "members": list(VOLATILE),
    "texts": [
        [r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?", "<time>"],
        [r"\b\d\d:\d\d:\d\d([.,]\d+)?\b", "<time>"],
        [r"\b(pid|PID)([ =:]+)\d+", r"\1\2<pid>"],
        [r"/tmp/[\w./+-]+", "<temporary>"],
    ],
    "notifications": ["notifications/message", "notifications/progress"],
    "waitSecs": 30,
}


class Recorder:
    def __init__(self, services: Services, path: str) -> None:
        """Raises OSError if the file cannot be made."""
        self._services = services
        self.path, self._fd = _new(path)
        self._began_at = time.monotonic()
        self._waiting: deque[tuple[float, str, Line, Call | None]] = deque()
        self._waiting_bytes = self._written_bytes = self._lost = 0
        self._states: dict[str, str] = {}
        self._news = Event()
        self._is_over = False
        at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        about = {"root": services.project.root, "server": services.identity.info}
        self._head: Json = {"recording": VERSION, "at": at, **about, "rules": RULES}
        self._greenlet = gevent.spawn(self._run)

    def take(self, event: events.Event) -> None:
        """Record a frame; it is written later."""
        told = event.fields
        self._add("client" if told["way"] == "in" else "server", told["line"], event.call)

    def close(self) -> None:
        """Write what waits, for a moment at most."""
        self._is_over = True
        self._news.set()
        self._greenlet.join(LAST_WRITE_SECS)
        self._greenlet.kill(block=False)
        with suppress(OSError):
            os.close(self._fd)

    def _add(self, sender: str, line: Line, call: Call | None) -> None:
        size = size_of(line)
        if self._waiting_bytes + size > MAX_WAITING_BYTES:
            self._lost += 1
            return
        self._waiting_bytes += size
        self._waiting.append((time.monotonic() - self._began_at, sender, line, call))
        self._news.set()

    def _run(self) -> None:
        turns = Turns()
        is_open = self._write(self._head)
        while is_open and (self._waiting or not self._is_over):
            self._news.wait()
            self._news.clear()
            while is_open and self._waiting:
                secs, sender, line, call = self._waiting.popleft()
                self._waiting_bytes -= size_of(line)
                is_open = self._write({"secs": round(secs, 4), "from": sender, **self._about(line, call, turns)})
            if self._lost:
                lost, self._lost = self._lost, 0
                is_open = is_open and self._write({"lost": lost})

    def _about(self, line: Line, call: Call | None, turns: Turns) -> Json:
        try:
            frame = jsontext.loads(whole(line)) if size_of(line) <= MAX_FRAME_BYTES else None
        except ValueError:  # it has too many parts
            frame = None
        if frame is None:
            return {"tooLong": size_of(line)}
        return {"frame": self._without_secrets(frame, self._secrets_of(frame, call), turns)}

    def _secrets_of(self, frame: object, call: Call | None) -> Secrets:
        confidential = self._services.confidential
        if call is not None:
            return confidential.of(call.method, {**call.params, "arguments": call.arguments})
        found = confidential.always
        for each in frame if isinstance(frame, list) else [frame]:
            if isinstance(each, dict) and isinstance(params := each.get("params"), dict):
                if confidential.is_unknown(each.get("method"), params):
                    with suppress(RpcError, OSError):
                        self._services.snapshot("tools")  # its schema says what is secret
                found = found.with_those([confidential.of(each.get("method"), params)])
        return found

    def _without_secrets(self, value: Any, secrets: Secrets, turns: Turns) -> Any:
        turns.pause()
        if isinstance(value, str):
            shown = secrets.text(value, limit_chars=MAX_TEXT_CHARS, turn=turns.pause)
            return shown + HIDDEN if len(value) > MAX_TEXT_CHARS else shown
        if isinstance(value, list):
            return [self._without_secrets(each, secrets, turns) for each in value]
        if not isinstance(value, dict):
            return value
        copy: Json = {}
        for name, each in value.items():
            if name == STATE and isinstance(each, str):
                copy[name] = self._states.setdefault(each, f"state-{len(self._states) + 1}")
            elif secrets.hides_in(value, name) and not isinstance(each, bool):
                copy[name] = HIDDEN
            else:
                copy[name] = self._without_secrets(each, secrets, turns)
        return copy

    def _write(self, value: Json) -> bool:
        """Write a line; return False if it was the last."""
        line = jsontext.dumps(value) + b"\n"
        self._written_bytes += len(line)
        is_full = self._written_bytes > MAX_FILE_BYTES
        try:
            gevent.get_hub().threadpool.apply(os.write, (self._fd, b'{"full":true}\n' if is_full else line))
        except OSError as error:
            journal.warning("the recording %s ends here: %s", self.path, error.strerror)
            return False
        return not is_full


def _new(path: str) -> tuple[str, int]:
    """Create a file that only we can read; if the name is taken, with a number in it."""
    stem, suffix = os.path.splitext(path)
    for number in range(1, MAX_NAMES):
        name = path if number == 1 else f"{stem}-{number}{suffix}"
        with suppress(FileExistsError):
            return name, new_file(name)
    raise FileExistsError(17, "there are too many recordings of this name", path)
