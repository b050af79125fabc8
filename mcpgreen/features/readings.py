"""What a subscribed resource is like: a read that all share who want to know at the same time, and the stamp of a file.

Equal stamps of a file mean equal content, unless the stamp is so young that the next write might leave the same one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from gevent.event import Event
from gevent.lock import Semaphore

from mcpgreen import journal, jsontext
from mcpgreen.catalog.survey import SETTLING_NS
from mcpgreen.errors import InternalError, RpcError
from mcpgreen.providers.reading import Providers, Request

READS_AT_A_TIME = 4

Stamp = tuple[int, ...]
GONE: Stamp = ()
UNSETTLED: Stamp = (0,)


class State(NamedTuple):
    """What a look saw: the digest of the content, or the code of the error."""

    digest: str | None
    error_code: int | None


UNKNOWN = State(None, None)  # whatever is seen next differs from it


class Reading:
    """One read, its outcome, and the stamp of the file before it: what is written meanwhile has another."""

    def __init__(self, stamp: Stamp) -> None:
        self.began_at = time.monotonic()
        self.stamp = stamp
        self.state: State | None = None  # None while it is under way, and if it was broken off
        self.error: Exception | None = None
        self.is_over = Event()

    @property
    def is_broken_off(self) -> bool:
        """Whether the greenlet that was reading has been ended."""
        return self.state is None and bool(self.is_over.is_set())


class Readings:
    """The reads of one server."""

    def __init__(self, providers: Callable[[], Providers]) -> None:
        self._providers = providers
        self._slots = Semaphore(READS_AT_A_TIME)
        self._latest: WeakValueDictionary[Any, Reading] = WeakValueDictionary()  # as long as a watch remembers them

    def read(self, request: Request, path: str | None, *, since: float) -> Reading:
        """A read that began then or later: somebody else's, if there is one, else an own."""
        key = (*request[:2], tuple(sorted(request.variables.items())), request.path, tuple(request.allowed))
        while True:
            reading = self._latest.get(key)
            if reading is None or reading.began_at < since or reading.is_broken_off:
                self._latest[key] = reading = Reading(stamp_of(path))
                self._fill(reading, request)
                return reading
            reading.is_over.wait()  # a provider has its own time limit
            if not reading.is_broken_off:
                return reading

    def _fill(self, reading: Reading, request: Request) -> None:
        try:
            if self._providers().runs_script(request.provider):
                with self._slots:
                    digest = self._digest(request)
            else:
                digest = self._digest(request)
            reading.state = State(digest, None)
        except Exception as error:  # whatever it is, it is the outcome for all who share this read
            reading.error, reading.state = error, failed(error)
        finally:
            reading.is_over.set()

    def _digest(self, request: Request) -> str:
        content = self._providers().read(request)
        try:
            return jsontext.digest_of_chunks(content.chunks())
        finally:
            content.close()


def failed(error: Exception) -> State:
    """What a look saw that ended like this. Nobody is above a watch to hear of an error that was not foreseen."""
    if isinstance(error, RpcError):
        return State(None, error.code)
    journal.exception("a subscribed resource cannot be read")
    return State(None, InternalError.code)


def stamp_of(path: str | None) -> Stamp:
    """What a stat can tell about the content. `UNSETTLED` while the next write might leave the same stamp."""
    stamp = exact_stamp_of(path)
    return stamp if is_settled(stamp) else UNSETTLED


def is_settled(stamp: Stamp) -> bool:
    return not stamp or stamp[0] <= time.time_ns() - SETTLING_NS


def exact_stamp_of(path: str | None) -> Stamp:
    if path is None:
        return GONE
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return GONE
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
