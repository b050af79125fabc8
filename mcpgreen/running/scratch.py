"""Temporary files: one directory for the server's life, and names in it that belong to one call.

A script finds spilled arguments there and leaves error, resource and cancel files. Most calls leave nothing, so a call
gets no directory of its own: making and removing one would cost a third of a quick call.
"""

from __future__ import annotations

import os
import stat
import time

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.regular_files import without_waiting
from mcpgreen.running.storage import Storage

ERROR_FILE = b"error.json"
RESOURCES_FILE = b"resources"
CANCEL_FILE = b"cancelled"
DEBUG_FILE = b"debug.log"
REPLIES = b"reply"
MAX_REPORT_BYTES = 1 << 20
COARSE_NS = 50_000_000


class StateDir:
    """The server's own directory, created when the first call needs it and removed with the server."""

    def __init__(self, parent: str, *, token: str, is_kept: bool, storage: Storage) -> None:
        self.path = os.path.join(parent, f"mcpgreen.state.{os.getpid()}.{token}")
        self.encoded_path = os.fsencode(self.path) + b"/"
        self._parent = parent
        self._storage = storage
        self.is_kept = is_kept
        self._exists = False
        self._count = 0

    def require(self) -> int | None:
        """Make sure that the directory is there. Raises InternalError when the disk is full. When it was changed last;
        None while that says nothing: timestamps are coarse, right after a change another one need not show."""
        self._storage.require_room()
        changed_at_ns = self.changed_at_ns()
        if changed_at_ns is None:
            self.restore()
        elif time.time_ns() - changed_at_ns <= COARSE_NS:
            return None
        return changed_at_ns

    def new_call(self) -> CallFiles:
        """Raises InternalError when the disk is full."""
        changed_at_ns = self.require()
        self._count += 1
        return CallFiles(self, b"call.%d." % self._count, known_change_ns=changed_at_ns)

    def changed_at_ns(self) -> int | None:
        """When anybody made or removed a file here last; None if the directory is not there."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_mtime_ns if stat.S_ISDIR(status.st_mode) else None

    def restore(self) -> None:
        """Make the directory, also when somebody has cleaned the temporary directory while we were running."""
        try:
            if self._exists and not os.path.isdir(self.path):
                _remove(self.path)
            os.makedirs(self.path, mode=0o700, exist_ok=True)
        except OSError as error:
            raise self.failure(error) from error
        self._exists = True

    def failure(self, error: OSError) -> InternalError:
        """What a call is told when one of its files cannot be written."""
        full = self.fullness(error)
        if full is not None:
            return full
        journal.error("%s cannot be written to: %s", self.path, error.strerror)
        return InternalError(f"A temporary file cannot be written: {error.strerror}.")

    def fullness(self, error: OSError) -> InternalError | None:
        """The same if it is the disk that is full, else None."""
        return self._storage.failed(error, directory=self._parent, what="a temporary file")

    def remove(self) -> None:
        if not self._exists:
            return
        if self.is_kept:
            journal.warning("state is kept in %s", self.path)
            return
        _remove(self.path)


class CallFiles:
    """The files of one call. `place` is how their paths begin."""

    __slots__ = ("_known_change_ns", "_prefix", "_state", "place")

    def __init__(self, state: StateDir, prefix: bytes, *, known_change_ns: int | None) -> None:
        self._state = state
        self._prefix = prefix
        self._known_change_ns = known_change_ns
        self.place = state.encoded_path + prefix

    @property
    def reply_prefix(self) -> str:
        """How the places begin at which the script waits for answers."""
        return os.fsdecode(self.place + REPLIES)

    def spill(self, name: bytes, content: bytes) -> bytes:
        path = self.place + name
        self._state.restore()
        try:
            with open(path, "wb", opener=without_waiting) as file:
                file.write(content)
        except OSError as error:
            raise self._state.failure(error) from error
        return path

    def mark_cancelled(self) -> None:
        try:
            open(self.place + CANCEL_FILE, "ab", opener=without_waiting).close()
        except OSError as error:
            if self._state.fullness(error) is None:
                journal.debug("no cancel file: %s", error)  # the signal that follows says the same

    def take_reports(self) -> tuple[bytes, bytes]:
        """What the script left as error and as embedded resources; both usually empty. All its files go."""
        if self._known_change_ns is not None and self._state.changed_at_ns() == self._known_change_ns:
            return b"", b""
        names = self._names()
        if not names:
            return b"", b""
        reports = self._content(ERROR_FILE, names), self._content(RESOURCES_FILE, names)
        self.remove()
        return reports

    def remove(self) -> None:
        if self._state.is_kept:
            return
        for name in self._names():
            _remove(self._state.encoded_path + name)

    def _names(self) -> list[bytes]:
        try:
            return [name for name in os.listdir(self._state.encoded_path) if name.startswith(self._prefix)]
        except OSError:
            return []  # whoever removed the directory, or put something else there, removed the files

    def _content(self, name: bytes, names: list[bytes]) -> bytes:
        if self._prefix + name not in names:
            return b""
        try:
            with open(self.place + name, "rb", opener=without_waiting) as file:
                return file.read(MAX_REPORT_BYTES)
        except OSError as error:
            journal.warning("a script's %s cannot be read: %s", name.decode(), error)
            return b""


def new_token() -> str:
    return os.urandom(8).hex()  # `secrets` would cost 3 ms at start


def _remove(path: str | bytes) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError:
        import shutil

        shutil.rmtree(path, ignore_errors=True)
        if os.path.lexists(path):
            journal.warning("could not remove %s", os.fsdecode(path))
