"""Send the journal to stderr as JSON, or to a file, as the `log_format` and `log_file` settings say.

`LogFile` writes in a thread of its own, because a disk can block for ever: a caller puts its line into a bounded queue
and goes on. Lines that the disk does not take are dropped; stderr says so once, and a line in the file marks the gap.

Rule: nothing here raises, waits, or follows a link. Several servers of a project write to the same file, so `LogFile`
checks before each write whether the name still leads to its file. The server that finds the file full renames it,
under a lock, and the others follow.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from mcpgreen import journal
from mcpgreen.files.regular_files import CAREFULLY, regular
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext

MAX_FILE_BYTES = 10 << 20  # of a log file, before a new one is started
KEPT_FILES = 3  # older ones next to it
MAX_QUEUED_BYTES = 4 << 20
CLOSE_SECS = 1.0
TOLD_AGAIN_SECS = 60.0
OWNER_ONLY = 0o600
UNUSABLE: dict[int | None, str] = {errno.ELOOP: "it is a link", errno.ENXIO: "it is not a regular file"}


def set_up(settings: Settings, root: str) -> Callable[[], None]:
    """Send the journal where the settings say; return the function that ends it."""
    is_json = settings.log_format == "json"
    to_stderr: journal.Output = (lambda *line: journal.write(json_line(*line))) if is_json else journal.to_stderr
    if not settings.log_file:
        journal.send_to(to_stderr)
        return lambda: None
    line_of = json_line if is_json else dated_line
    file = LogFile(
        os.path.join(root, settings.log_file),
        max_bytes=MAX_FILE_BYTES,
        keep=KEPT_FILES,
        tell=lambda text: to_stderr("warning", journal.in_one_line(text), "", journal.NO_FIELDS),
        gap=lambda lines: line_of("warning", f"{lines} lines are missing here", "", journal.NO_FIELDS),
    )
    journal.send_to(to_stderr, lambda *line: file.write(line_of(*line)))
    return file.close


def json_line(level: str, message: str, rest: str, fields: journal.Fields) -> bytes:
    """Return a line with one JSON object. `rest` is left out: the fields have the same."""
    common = {"time": _now(), "level": level, "pid": os.getpid(), "message": message[: journal.MAX_CHARS]}
    try:
        return jsontext.dumps({**common, **fields}) + b"\n"
    except ValueError:  # a field that JSON cannot express, such as an id of a hundred digits
        return jsontext.dumps({**common, **{name: str(value) for name, value in fields.items()}}) + b"\n"


def dated_line(level: str, message: str, rest: str, fields: journal.Fields) -> bytes:
    """Return the line of stderr with the time, which a program that collects stderr adds itself."""
    return journal.as_text(level, message, rest, mark=f"{_now()} mcpgreen[{os.getpid()}]")


def _now() -> str:
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"


class LogFile:
    """A log file that is renamed when it is full. `tell` is called in the thread, at most once a minute, if the file
    cannot be written; `gap` makes the line for a number of lost lines."""

    def __init__(
        self, path: str, *, max_bytes: int, keep: int, tell: Callable[[str], None], gap: Callable[[int], bytes]
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._tell = tell
        self._gap = gap
        self._fd = -1
        self._told_at: float | None = None
        self._is_torn = False  # only a part of the last line was written
        self._missing_lines = 0
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._queued_bytes = 0  # changed by callers only, and _taken_bytes by the thread only: neither needs a lock
        self._taken_bytes = 0
        self._dropped_lines = 0
        self._told_dropped = 0
        self._thread = threading.Thread(target=self._work, name="log file", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queue a line, or drop it if the disk is far behind."""
        if self._queued_bytes - self._taken_bytes > MAX_QUEUED_BYTES:
            self._dropped_lines += 1
            return
        self._queued_bytes += len(line)
        self._lines.put(line)

    def close(self) -> None:
        """Write the queued lines, if the disk takes them soon, and end the thread."""
        self._lines.put(None)
        self._thread.join(CLOSE_SECS)

    def _work(self) -> None:
        self._try(self._require_current)
        while (line := self._lines.get()) is not None:
            self._taken_bytes += len(line)
            self._missing_lines += self._dropped_lines - self._told_dropped
            self._told_dropped = self._dropped_lines
            if not self._try(self._append, line):
                self._missing_lines += 1
        self._let_go()

    def _try(self, action: Callable[..., None], *values: bytes) -> bool:
        """Call the function; return False if it failed, and report that from time to time."""
        try:
            action(*values)
        except OSError as error:
            self._let_go()
            now = time.monotonic()
            if self._told_at is None or now - self._told_at > TOLD_AGAIN_SECS:
                self._told_at = now
                self._tell(f"log_file: {self._path} cannot be written: {error.strerror}")
            return False
        return True

    def _append(self, line: bytes) -> None:
        if self._missing_lines:
            line = self._gap(self._missing_lines) + line
        if self._is_torn:
            line = b"\n" + line
        self._require_current()
        size = os.fstat(self._fd).st_size
        if size and size + len(line) > self._max_bytes:
            self._begin_anew()
        written = os.write(self._fd, line)
        self._is_torn = written < len(line)
        if self._is_torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._missing_lines = 0

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self._path, follow_symlinks=False))
        except FileNotFoundError:
            return False

    def _require_current(self) -> None:
        """Open the file that has the name now, unless it is open. Raises OSError if it cannot be used."""
        if self._fd >= 0:
            if self._is_current():
                return
            self._let_go()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | CAREFULLY
        try:
            fd = regular(os.open(self._path, flags, OWNER_ONLY), self._path)
        except OSError as error:
            raise OSError(error.errno, UNUSABLE.get(error.errno, error.strerror)) from None
        self._fd = fd
        found = os.fstat(fd)
        if found.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "it belongs to another user")
        if stat.S_IMODE(found.st_mode) != OWNER_ONLY:
            os.fchmod(fd, OWNER_ONLY)

    def _begin_anew(self) -> None:
        """Rename the full file and the older ones, and open a new one. If that fails, empty the file."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another server is renaming it
        try:
            if not self._is_current():
                return  # another server has renamed it: a second rename would overwrite a file
            for number in range(self._keep - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.rename(f"{self._path}.{number}", f"{self._path}.{number + 1}")
            os.rename(self._path, f"{self._path}.1")
        except OSError:
            os.ftruncate(self._fd, 0)
            return
        finally:
            with suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        self._require_current()

    def _let_go(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
