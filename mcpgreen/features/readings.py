"""What a subscribed resource is like: a read that all share who want to know at the same time, and the stamp of a file.

Equal stamps of a file mean equal content, unless the stamp is so young that the next write might leave the same one.

A look at what a script provides costs a process. So there is a budget: after a look the resource has a rest, and rests
are so long that all looks together take no more than a fifth of one place's time (`rest_secs`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from gevent.event import Event

from mcpgreen import journal, jsontext
from mcpgreen.catalog.survey import SETTLING_NS
from mcpgreen.errors import InternalError, RpcError
from mcpgreen.providers.reading import Providers, Request
from mcpgreen.running.turns import OneAtATime, Queue

READS_AT_A_TIME = 4
SHARE = 0.1  # see `rest_secs`

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

    def __init__(self, stamp: Stamp, *, took_secs: float = 0.0) -> None:
        self.began_at = time.monotonic()
        self.took_secs = took_secs  # of a script; until it is known, what the last one took
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
        self._slots = Queue(READS_AT_A_TIME)
        self.turn = OneAtATime()  # of whoever looks here, in the server
        # As long as a watch remembers them.
        self._latest: WeakValueDictionary[Any, Reading] = WeakValueDictionary()
        self._of_scripts: WeakValueDictionary[Any, Reading] = WeakValueDictionary()

    def read(self, request: Request, path: str | None, *, since: float, may_wait: bool) -> Reading:
        """A read that began then or later: somebody else's, if there is one, else an own. What takes no process is
        read in turns with others, if the caller may wait for that."""
        key = (*request[:2], tuple(sorted(request.variables.items())), request.path, tuple(request.allowed))
        while True:
            reading = self._latest.get(key)
            if reading is None or reading.began_at < since or reading.is_broken_off:
                took_secs = 0.0 if reading is None else reading.took_secs
                self._latest[key] = reading = Reading(stamp_of(path), took_secs=took_secs)
                if self._providers().runs_script(request.provider):
                    self._of_scripts[key] = reading
                    self._fill(reading, partial(self._digest_by_script, reading, request))
                else:
                    self._fill(reading, partial(self._digest_in_turns if may_wait else self._digest, request))
                return reading
            reading.is_over.wait()  # a provider has its own time limit
            if not reading.is_broken_off:
                return reading

    def rest_after(self, reading: Reading) -> float:
        """For how many seconds there is to be no other look at what was read. The same for all who share it, and a
        little different for each resource: what began at the same time must not stay together."""
        if not reading.took_secs:
            return 0.0
        others = list(self._of_scripts.values())
        secs = rest_secs(reading.took_secs, count=len(others), all_secs=sum(each.took_secs for each in others))
        return secs * (1 + reading.began_at * 1000 % 1)

    def _fill(self, reading: Reading, digest: Callable[[], str]) -> None:
        try:
            reading.state = State(digest(), None)
        except Exception as error:  # whatever it is, it is the outcome for all who share this read
            reading.error, reading.state = error, failed(error)
        finally:
            reading.is_over.set()

    def _digest_by_script(self, reading: Reading, request: Request) -> str:
        with self._slots:
            began_at = time.monotonic()
            try:
                return self._digest(request)
            finally:
                reading.took_secs = time.monotonic() - began_at

    def _digest_in_turns(self, request: Request) -> str:
        with self.turn:
            return self._digest(request, pause=self.turn.pause)

    def _digest(self, request: Request, *, pause: Callable[[], None] = lambda: None) -> str:
        content = self._providers().read(request)
        try:
            return jsontext.digest_of_chunks(_with_pauses(content.chunks(), pause))
        finally:
            content.close()


def rest_secs(took_secs: float, *, count: int, all_secs: float) -> float:
    """How long a resource whose last look took so long is left alone. There are `count` in all, whose looks take
    `all_secs` together.

    Each may have the same part of the time: `took_secs * count / SHARE`. But a slow one among many would have to wait
    for hours; so it may also have its look when each of the others could have had one: `all_secs / SHARE`. The shorter
    one counts. By either rule alone looks take the share of the time, so by both they take twice that at most.
    """
    return min(took_secs * count, all_secs) / SHARE


def _with_pauses(chunks: Iterator[bytes], pause: Callable[[], None]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        pause()


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
