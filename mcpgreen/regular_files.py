"""Open what should be a file, where somebody may have put something else in its place.

A FIFO would make the server wait for whoever is at its other end, a device for much longer.
"""

from __future__ import annotations

import errno
import os
import stat


def without_waiting(path: str | bytes, flags: int) -> int:
    """An `opener` for `open`. Raises OSError for what is no regular file."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return descriptor
