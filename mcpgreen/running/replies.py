"""Hand an answer to a script that waits for it: through a FIFO that it made, or as a file if it made none.

Nobody knows when a script begins to read, and one that never does must not stop us: everything here is tried without
blocking, for a while.
"""

from __future__ import annotations

import errno
import os
import stat
import time

import gevent

from mcpgreen import journal

PATIENCE_SECS = 10.0
PAUSE_SECS = 0.005


def deliver(path: str, answer: bytes) -> None:
    """Write one line to the FIFO at `path`, or put a file there in one step."""
    try:
        is_fifo = stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        is_fifo = False
    try:
        if is_fifo:
            _write_to_fifo(path, answer + b"\n")
        else:
            _put_file(path, answer + b"\n")
    except OSError as error:
        journal.warning("a script does not take its answer: %s", error.strerror)


def _put_file(path: str, content: bytes) -> None:
    draft = f"{path}.draft"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
    os.rename(draft, path)


def _write_to_fifo(path: str, content: bytes) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECS
    descriptor = _opened(path, give_up_at)
    try:
        rest = memoryview(content)
        while rest:
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:
                _wait_until(give_up_at)
    finally:
        os.close(descriptor)


def _opened(path: str, give_up_at: float) -> int:
    """For writing, as soon as somebody reads."""
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        _wait_until(give_up_at)


def _wait_until(give_up_at: float) -> None:
    if time.monotonic() >= give_up_at:
        raise TimeoutError(errno.ETIMEDOUT, "nobody reads it")
    gevent.sleep(PAUSE_SECS)
