"""Is there room on disk for what the server itself has to write?

Every part that writes reports failures here. A full disk is reported loudly, once; from then on no call is begun until
writing works again, because a script that finds half of its arguments is worse than none. Lists and running calls go
on. A directory that may not be written to is no full disk, and its owner's business.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.files.regular_files import new_file, unguessable

# A file that may not grow any more (a limit of the process) is as good as a full disk; a disk that fails is worse.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
PROBE = bytes(4096)
PROBE_PAUSE_SECS = 1.0


class Storage:
    """The directories that are full. `on_news` hears a level and a sentence without paths, when that changes."""

    def __init__(self, *, on_news: Callable[[str, str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._on_news = on_news
        self._clock = clock
        self._full: dict[str, str] = {}  # what to tell clients, by directory
        self._probed_at = 0.0

    def failed(self, error: OSError, *, directory: str, what: str) -> InternalError | None:
        """Note a failed write; return what to tell the client if the disk is full, else None."""
        if error.errno not in FULL:
            return None
        self._probed_at = self._clock()
        is_news = directory not in self._full
        trouble = "fails" if error.errno == errno.EIO else "is full"
        self._full[directory] = f"The disk {trouble}: {what} cannot be written ({error.strerror})."
        if is_news:
            journal.critical("%s No call is begun until %s can be written to", self._full[directory], directory)
            self._on_news("critical", self._full[directory])
        return self._refusal()

    def succeeded(self, directory: str) -> None:
        if self._full.pop(directory, None) is not None:
            journal.warning("there is room again in %s", directory)
            self._on_news("notice", "The disk can be written to again.")

    def require_room(self) -> None:
        """Raises InternalError while a directory is full. From time to time a small write is tried."""
        if not self._full:
            return
        if self._clock() - self._probed_at >= PROBE_PAUSE_SECS:
            self._probed_at = self._clock()
            for directory in list(self._full):
                if _has_room(directory):
                    self.succeeded(directory)
        if self._full:
            raise self._refusal()

    def _refusal(self) -> InternalError:
        return InternalError(f"{next(iter(self._full.values()))} Calls are served again when writing works.")


def _has_room(directory: str) -> bool:
    path = os.path.join(directory, f".mcpgreen.probe.{unguessable()}")
    try:
        with open(new_file(path), "wb", buffering=0) as file:
            os.unlink(path)
            return file.write(PROBE) == len(PROBE)
    except OSError as error:
        return error.errno not in FULL  # gone or forbidden by now: the next write there will report it
