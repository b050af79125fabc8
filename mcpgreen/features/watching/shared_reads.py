"""What a subscribed resource is like: a read that all share who want to know at the same time, and the stamp of a file.

Equal stamps of a file mean equal content, unless the stamp is so young that the next write might leave the same one.

A look at what a script provides costs a process. So there is a budget: after a look the resource has a rest, and rests
are so long that all looks together take no more than a fifth of one place's time (`rest_secs`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from weakref import WeakValueDictionary

from gevent.event import Event

from mcpgreen import journal
from mcpgreen.catalog.tree_scan import SETTLING_NS
from mcpgreen.errors import InternalError, RpcError
from mcpgreen.providers.reading import Providers, Request
from mcpgreen.running.turns import OneAtATime, Queue
from mcpgreen.text import jsontext

READS_AT_A_TIME = 4
SHARE = 0.1  # see `rest_secs`

Stamp = tuple[int, ...]
GONE: Stamp = ()
UNSETTLED: Stamp = (0,)
State = str | int  # what a look saw: the digest of the content, or the code of the error
UNKNOWN: State = ""  # whatever is seen next differs from it


class SharedRead:
    """One read, its outcome, and the stamp of the file before it: what is written meanwhile has another."""

    def __init__(self, stamp: Stamp, *, took_secs: float = 0.0) -> None:
        self.began_at = time.monotonic()
        self.took_secs = took_secs  # of a script; until it is known, what the last one took
        self.rested_at = 0.0  # before that there is to be no other look
        self.stamp = stamp
        self.state = UNKNOWN  # while it is under way, and if it was broken off
        self.error: Exception | None = None
        self.is_over = Event()


class SharedReads:
    """The reads of one server."""

    def __init__(self, providers: Callable[[], Providers]) -> None:
        self._providers = providers
        self._slots = Queue(READS_AT_A_TIME)
        self.turn = OneAtATime()  # of whoever looks here, in the server
        # As long as a watch remembers them.
        self._latest: WeakValueDictionary[Any, SharedRead] = WeakValueDictionary()
        self._of_scripts: WeakValueDictionary[Any, SharedRead] = WeakValueDictionary()

    def read(self, request: Request, path: str | None, *, since: float, may_wait: bool) -> SharedRead:
        """A read that began then or later: somebody else's, if there is one, else an own. What takes no process is
        read in turns with others, if the caller may wait for that."""
        key = (*request[:2], tuple(sorted(request.variables.items())), request.path, tuple(request.allowed))
        while True:
            shared = self._latest.get(key)
            if shared is not None and shared.began_at >= since:
                shared.is_over.wait()  # a provider has its own time limit
                if shared.state != UNKNOWN:
                    return shared
            if shared is self._latest.get(key):
                took_secs = 0.0 if shared is None else shared.took_secs
                self._latest[key] = shared = SharedRead(stamp_of(path), took_secs=took_secs)
                is_script = self._providers().runs_script(request.provider)
                if is_script:
                    self._of_scripts[key] = shared
                self._fill(shared, request, is_script=is_script, may_wait=may_wait)
                return shared

    def _fill(self, shared: SharedRead, request: Request, *, is_script: bool, may_wait: bool) -> None:
        try:
            with self._slots if is_script else self.turn if may_wait else nullcontext():
                began_at = time.monotonic()
                try:
                    shared.state = self._digest(request, may_wait=may_wait)
                finally:
                    if is_script:
                        shared.took_secs = time.monotonic() - began_at
                        shared.rested_at = time.monotonic() + self._rest_after(shared)
        except Exception as error:  # whatever it is, it is the outcome for all who share this read
            shared.error, shared.state = error, failed(error)
        finally:
            shared.is_over.set()

    def _digest(self, request: Request, *, may_wait: bool) -> str:
        content = self._providers().read(request)
        try:
            chunks = content.chunks()
            return jsontext.digest_of_chunks(self._in_turns(chunks) if may_wait else chunks)
        finally:
            content.close()

    def _in_turns(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            yield chunk
            self.turn.pause()

    def _rest_after(self, shared: SharedRead) -> float:
        """For how many seconds there is to be no other look at what a script was run for. The same for all who share
        it, and a little different for each resource: what began at the same time must not stay together."""
        others = list(self._of_scripts.values())
        secs = rest_secs(shared.took_secs, count=len(others), all_secs=sum(each.took_secs for each in others))
        return secs * (1 + shared.began_at * 1000 % 1)


def rest_secs(took_secs: float, *, count: int, all_secs: float) -> float:
    """How long a resource whose last look took so long is left alone. There are `count` in all, whose looks take
    `all_secs` together.

    Each may have the same part of the time: `took_secs * count / SHARE`. But a slow one among many would have to wait
    for hours; so it may also have its look when each of the others could have had one: `all_secs / SHARE`. The shorter
    one counts. By either rule alone looks take the share of the time, so by both they take twice that at most.
    """
    return min(took_secs * count, all_secs) / SHARE


def failed(error: Exception) -> State:
    """What a look saw that ended like this. Nobody is above a watch to hear of an error that was not foreseen."""
    if isinstance(error, RpcError):
        return error.code
    journal.exception("a subscribed resource cannot be read")
    return InternalError.code


def stamp_of(path: str | None) -> Stamp:
    """What a stat can tell about the content. `UNSETTLED` while the next write might leave the same stamp."""
    stamp = exact_stamp_of(path)
    return stamp if not stamp or stamp[0] <= time.time_ns() - SETTLING_NS else UNSETTLED


def exact_stamp_of(path: str | None) -> Stamp:
    if path is None:
        return GONE
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return GONE
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
