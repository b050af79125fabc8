"""Temporary files: one directory for as long as the server runs, with separate file names for each call.

A script finds spilled arguments there and leaves error, resource and cancel files. Most calls leave nothing, so a call
gets no directory of its own: making and removing one would cost a third of a quick call.

Rule: the directory has a name that cannot be guessed, is ours alone, and is used through its descriptor. Until it
exists, only the guardian knows its name; if it is gone, a fresh one is made, because anything that has the old name by
then is not ours.

The server removes files only. A tree that a script leaves here may be deep, wide or shut, so it is put aside, and the
guardian removes it. At the end of the module: is there room on disk (`Storage`)?
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import gevent

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.files.regular_files import existing_file, new_file, private_directory, unguessable
from mcpgreen.running.shares import Turns

if TYPE_CHECKING:
    from mcpgreen.running.processes.guardian import Guardian

ERROR_FILE = b"error.json"
RESOURCES_FILE = b"resources"
CANCEL_FILE = b"cancelled"
DEBUG_FILE = b"debug.log"
REPLIES = b"reply"
REQUEST_FILE = b"elicit.request"
RESPONSE_FILE = b"elicit.response"
MAX_REPORT_BYTES = 1 << 18  # to parse it takes up to 30 ms
OWN_FILES = (ERROR_FILE, RESOURCES_FILE, CANCEL_FILE, DEBUG_FILE, REQUEST_FILE, RESPONSE_FILE)
CROWD = 5000
CLEARING_SECS = 0.5
# A file that may not grow any more (a limit of the process) is as good as a full disk; a disk that fails is worse.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
PROBE = bytes(4096)
PROBE_PAUSE_SECS = 1.0
ASIDE = b"removed."  # how the names of trees begin that wait for the guardian; `guardian.sh` knows it


class StateDir:
    """The server's own directory, created when the first call needs it and removed with the server."""

    def __init__(self, parent: str, *, is_kept: bool, storage: Storage, guardian: Guardian) -> None:
        self._parent = parent
        self._storage = storage
        self._guardian = guardian
        self.is_kept = is_kept
        self._directory: PrivateDirectory | None = None
        self._lost: set[PrivateDirectory] = set()  # directories that have been moved, until they are empty

    def require(self) -> PrivateDirectory:
        """Return the directory, and make it again if it is missing. Raises the same errors as `new_call`."""
        return self.new_call(0).directory

    def new_call(self, serial: int) -> CallFiles:
        """Prepare the files for the call of this number. Raises InternalError without a directory or disk space."""
        self._storage.require_room()
        directory = self._directory
        if directory is None or not directory.is_in_place():
            directory = self._fresh()
        return CallFiles(self, directory, b"call.%d." % serial)

    def failure(self, error: OSError) -> InternalError:
        """Return the error for a call whose file cannot be written."""
        full = self.fullness(error)
        if full is not None:
            return full
        journal.error(
            "cannot create temporary files in %s: %s; fix that, or set tmp_root", self._parent, error.strerror
        )
        return InternalError(f"A temporary file cannot be written: {error.strerror}.")

    def fullness(self, error: OSError) -> InternalError | None:
        """Return the error for a call if the disk is full, else None."""
        return self._storage.failed(error, directory=self._parent, what="a temporary file")

    def remove(self) -> bool:
        """Remove the directory; return True if it is gone, or is to be kept."""
        give_up_at = time.monotonic() + CLEARING_SECS
        for lost in self._lost:
            lost.clear(give_up_at)
        directory, self._directory = self._directory, None
        if directory is None:
            return True
        if self.is_kept:
            journal.warning("state is kept in %s", directory.path)
        else:
            directory.remove()
        is_gone = self.is_kept or not directory.is_in_place()
        directory.close()
        return is_gone

    def _fresh(self) -> PrivateDirectory:
        """Make a directory with another name: a process may have waited for the old one to be free."""
        old, self._directory = self._directory, None
        if old is not None and self.is_kept:
            old.close()
        elif old is not None:
            lost = old.hand_over()  # calls that still know it find that their files are gone
            self._lost.add(lost)
            gevent.spawn(self._empty, lost)
        path = os.path.join(self._parent, f"mcpgreen.state.{os.getpid()}.{unguessable()}")
        if not self.is_kept:
            self._guardian.protect("state", path)  # just before it is made: we may die right after
        try:
            self._directory = PrivateDirectory(path, self._guardian)
        except OSError as error:
            raise self.failure(error) from error
        return self._directory

    def _empty(self, lost: PrivateDirectory) -> None:
        """Empty a directory that may have been moved, and filled before."""
        turns = Turns()
        for name in lost.names():
            lost.remove_entry(name)
            turns.pause()
        self._lost.discard(lost)
        lost.close()


class PrivateDirectory:
    """A new directory that only we can use. Raises OSError when it cannot be made, or is not ours."""

    def __init__(self, path: str, guardian: Guardian) -> None:
        self.path = path
        self._guardian = guardian
        self.encoded_path = os.fsencode(path)
        self.fd = private_directory(path, must_be_new=True)
        status = os.fstat(self.fd)
        self._identity = status.st_dev, status.st_ino
        with suppress(OSError):
            fcntl.flock(self.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # systemd cleans around what is locked

    def hand_over(self) -> PrivateDirectory:
        """Return the same directory as another object; for this one it is closed."""
        from copy import copy  # not needed by the first list of a client

        same = copy(self)
        self.fd = -1
        return same

    def is_in_place(self) -> bool:
        """Tell whether the directory is still where it was made."""
        try:
            status = os.lstat(self.encoded_path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity  # not used again while we have it open

    def names(self) -> Iterator[bytes]:
        """Yield the names of what is in it; none when it has been closed."""
        try:
            with os.scandir(self.fd) as entries:
                for entry in entries:
                    yield os.fsencode(entry.name)
        except OSError:
            return

    def clear(self, give_up_at: float) -> None:
        """Remove the files in it, as far as that can be done until then, without a turn for other greenlets."""
        for name in self.names():
            if time.monotonic() > give_up_at:
                return  # a script has left a lot; the guardian has more time
            self.remove_entry(name)

    def remove(self) -> None:
        self.clear(time.monotonic() + CLEARING_SECS)
        if not self.is_in_place():
            return  # whatever has its name now is not ours
        try:
            os.rmdir(self.path)
        except OSError as error:
            journal.info("%s is left to the guardian: %s", self.path, error.strerror)

    def remove_entry(self, name: bytes) -> None:
        """Remove a file, or put aside what else a script has left there."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return
        except OSError:
            if not name.startswith(ASIDE):
                self._put_aside(name)

    def _put_aside(self, name: bytes) -> None:
        try:
            os.rename(name, ASIDE + os.fsencode(unguessable()), src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except OSError as error:
            journal.warning("could not remove %s in %s: %s", os.fsdecode(name), self.path, error.strerror)
        else:
            self._guardian.clear_trees()

    def close(self) -> None:
        """Close it. Later uses fail, and touch no other descriptor that has the same number by then."""
        os.close(self.fd)
        self.fd = -1


class CallFiles:
    """The files of one call. `place` is how their paths begin."""

    def __init__(self, state: StateDir, directory: PrivateDirectory, prefix: bytes) -> None:
        self._state = state
        self._prefix = prefix
        self.directory = directory
        self.place = directory.encoded_path + b"/" + prefix

    @property
    def reply_prefix(self) -> str:
        """How the places begin at which the script waits for answers."""
        return os.fsdecode(self.place + REPLIES)

    def name_of(self, name: bytes) -> bytes:
        """Return what a file of this call is called in the directory."""
        return self._prefix + name

    def spill(self, name: bytes, content: bytes) -> bytes:
        try:
            with open(self._new_file(self._prefix + name), "wb") as file:
                file.write(content)
        except OSError as error:
            raise self._state.failure(error) from error
        return self.place + name

    def mark_cancelled(self) -> None:
        try:
            os.close(new_file(self._prefix + CANCEL_FILE, dir_fd=self.directory.fd))
        except FileExistsError:
            return
        except OSError as error:
            if self._state.fullness(error) is None:
                journal.debug("no cancel file: %s", error)  # the signal that follows says the same

    def take_reports(self) -> tuple[bytes, bytes]:
        """Return what the script left as error and as embedded resources; both usually empty. All its files go."""
        names = self._names()
        if not names:
            return b"", b""
        reports = self._content(ERROR_FILE, names), self._content(RESOURCES_FILE, names)
        self.remove()
        return reports

    def remove(self) -> None:
        if self._state.is_kept:
            return
        _remove_entries(self.directory, self._names())

    def _new_file(self, name: bytes) -> int:
        with suppress(FileExistsError):
            return new_file(name, dir_fd=self.directory.fd)
        # Another script has counted how many calls there have been.
        self.directory.remove_entry(name)
        return new_file(name, dir_fd=self.directory.fd)

    def _names(self) -> list[bytes]:
        """Return the names of this call's files. If a script has left too many to look at, return only the names that
        every call may have; the other files are removed with the server."""
        names = list(islice(self.directory.names(), CROWD + 1))
        if len(names) > CROWD:
            return [self._prefix + name for name in OWN_FILES]
        return [name for name in names if name.startswith(self._prefix)]

    def _content(self, name: bytes, names: list[bytes]) -> bytes:
        if self._prefix + name not in names:
            return b""
        try:
            with open(existing_file(self._prefix + name, dir_fd=self.directory.fd), "rb") as file:
                return file.read(MAX_REPORT_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            journal.warning("a script's %s cannot be read: %s", name.decode(), error)
            return b""


def _remove_entries(directory: PrivateDirectory, names: list[bytes]) -> None:
    """Remove them in turns: a script may leave thousands. If the greenlet is killed on the way, another one goes on."""
    turns = Turns()
    try:
        while names:
            directory.remove_entry(names.pop())
            turns.pause()
    except gevent.GreenletExit:
        gevent.spawn(_remove_entries, directory, names)
        raise


class Storage:
    """Is there room on disk for what the server itself has to write? Every part that writes reports failures here.

    A full disk is reported loudly, once: `on_news` hears a level and a sentence without paths. From then on no call is
    begun until writing works again, because a script that finds half of its arguments is worse than none. Lists and
    running calls go on. A directory that may not be written to is not a full disk; that is its owner's business.
    """

    def __init__(self, *, on_news: Callable[[str, str], None]) -> None:
        self._on_news = on_news
        self._full: dict[str, str] = {}  # what to tell clients, by directory
        self._probed_at = 0.0

    def failed(self, error: OSError, *, directory: str, what: str) -> InternalError | None:
        """Note a failed write; return what to tell the client if the disk is full, else None."""
        if error.errno not in FULL:
            return None
        self._probed_at = time.monotonic()
        is_news = directory not in self._full
        trouble = "is failing" if error.errno == errno.EIO else "is full"
        self._full[directory] = f"The disk {trouble}: {what} cannot be written ({error.strerror})."
        if is_news:
            journal.critical("%s No call is started until %s can be written to", self._full[directory], directory)
            self._on_news("critical", self._full[directory])
        return self._refusal()

    def succeeded(self, directory: str) -> None:
        if self._full.pop(directory, None) is not None:
            journal.warning("there is disk space again in %s", directory)
            self._on_news("notice", "The disk can be written to again.")

    def require_room(self) -> None:
        """Raises InternalError while a directory is full. From time to time a small write is tried."""
        if not self._full:
            return
        if time.monotonic() - self._probed_at >= PROBE_PAUSE_SECS:
            self._probed_at = time.monotonic()
            for directory in list(self._full):
                if _has_room(directory):
                    self.succeeded(directory)
        if self._full:
            raise self._refusal()

    def _refusal(self) -> InternalError:
        return InternalError(f"{next(iter(self._full.values()))} Calls are served again once it can be written to.")


def _has_room(directory: str) -> bool:
    path = os.path.join(directory, f".mcpgreen.probe.{unguessable()}")
    try:
        with open(new_file(path), "wb", buffering=0) as file:
            os.unlink(path)
            return file.write(PROBE) == len(PROBE)
    except OSError as error:
        return error.errno not in FULL  # gone or forbidden by now: the next write there will report it
