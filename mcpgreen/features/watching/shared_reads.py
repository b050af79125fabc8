"""Reads of subscribed resources that several watches share, and the stamps of files.

Equal stamps of a file mean equal content, unless the stamp is so young that the next write might leave the same one.

A read by a script costs a process, so it has a budget: after each read the resource is left alone, so long that all
reads together take no more than a fifth of the time of one place (`rest_secs`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from weakref import WeakValueDictionary

from gevent.event import Event

from mcpgreen import journal
from mcpgreen.catalog.tree_scan import SETTLING_NS
from mcpgreen.errors import InternalError, RpcError
from mcpgreen.providers.reading import Providers, Request
from mcpgreen.running.shares import OneAtATime, Places
from mcpgreen.text import jsontext

READS_AT_A_TIME = 4
SHARE = 0.1  # see `rest_secs`

Stamp = tuple[int, ...]
GONE: Stamp = ()
UNSETTLED: Stamp = (0,)
State = str | int  # what a read found: the digest of the content, or the code of the error
UNKNOWN: State = ""  # differs from every other state


class SharedRead:
    """One read, its outcome, and the stamp of the file before it, so that a write during the read is noticed."""

    def __init__(self, stamp: Stamp, *, took_secs: float = 0.0, owner: Hashable = None) -> None:
        self.waits_for: Hashable = owner  # the owner in whose line it waits; None once it has a place
        self.began_at = time.monotonic()
        self.took_secs = took_secs  # of a script; while it runs, the time of the read before
        self.rested_at = 0.0  # the resource is not read again before
        self.stamp = stamp
        self.state = UNKNOWN  # while it runs, and if it was interrupted
        self.error: Exception | None = None
        self.is_over = Event()


class SharedReads:
    """The shared reads of one server."""

    def __init__(self, providers: Callable[[], Providers]) -> None:
        self._providers = providers
        self._slots = Places(READS_AT_A_TIME)
        self.turn = OneAtATime()  # for reads that take no process
        # As long as a watch keeps them.
        self._latest: WeakValueDictionary[Any, SharedRead] = WeakValueDictionary()
        self._of_scripts: WeakValueDictionary[Any, SharedRead] = WeakValueDictionary()

    def read(self, request: Request, path: str | None, *, since: float, may_wait: bool) -> SharedRead:
        """Return a read that began then or later: a running or finished one that can be shared, else a new one. A read
        without a process takes turns with other ones, if the caller may wait for that."""
        key = (*request[:2], tuple(sorted(request.variables.items())), request.path, tuple(request.allowed))
        while True:
            shared = self._latest.get(key)
            if shared is not None and shared.began_at >= since and shared.waits_for in (None, request.owner):
                shared.is_over.wait()  # a provider has its own time limit
                if shared.state != UNKNOWN:
                    return shared
            if shared is self._latest.get(key):
                took_secs = 0.0 if shared is None else shared.took_secs
                is_script = self._providers().needs_process(request.provider)
                owner = request.owner if is_script else None
                self._latest[key] = shared = SharedRead(stamp_of(path), took_secs=took_secs, owner=owner)
                if is_script:
                    self._of_scripts[key] = shared
                self._fill(shared, request, is_script=is_script, may_wait=may_wait)
                return shared

    def _fill(self, shared: SharedRead, request: Request, *, is_script: bool, may_wait: bool) -> None:
        try:
            with self._place_for(shared) if is_script else self.turn if may_wait else nullcontext():
                began_at = time.monotonic()
                try:
                    shared.state = self._digest(request, may_wait=may_wait)
                finally:
                    if is_script:
                        shared.took_secs = time.monotonic() - began_at
                        shared.rested_at = time.monotonic() + self._rest_after(shared)
        except Exception as error:  # it is the outcome for all watches that share this read
            shared.error, shared.state = error, failed(error)
        finally:
            shared.is_over.set()

    @contextmanager
    def _place_for(self, shared: SharedRead) -> Iterator[None]:
        with self._slots.held_by(shared.waits_for):
            shared.waits_for = None
            yield

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
        """How many seconds a script's resource is left alone. A little different for each resource, so that reads that
        began at the same time do not stay together."""
        others = list(self._of_scripts.values())
        secs = rest_secs(shared.took_secs, count=len(others), all_secs=sum(each.took_secs for each in others))
        return secs * (1 + shared.began_at * 1000 % 1)


def rest_secs(took_secs: float, *, count: int, all_secs: float) -> float:
    """How long a resource is left alone whose last read took `took_secs`. There are `count` such resources, and one
    read of each takes `all_secs` together.

    Each resource may have the same part of the time: `took_secs * count / SHARE`. But then a slow one among many would
    wait for hours, so it is also read when each of the others could have been read once: `all_secs / SHARE`. The
    shorter one counts. By either rule alone reads take `SHARE` of the time, so by both they take twice that at most.
    """
    return min(took_secs * count, all_secs) / SHARE


def failed(error: Exception) -> State:
    """The state of a resource that could not be read. An unexpected error is logged here, because no caller does it."""
    if isinstance(error, RpcError):
        return error.code
    journal.exception("a subscribed resource cannot be read")
    return InternalError.code


def stamp_of(path: str | None) -> Stamp:
    """The stamp of a file's content, or `UNSETTLED` while the next write might leave the same stamp."""
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
