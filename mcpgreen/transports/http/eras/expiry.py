"""A stream that is open for days ends when the token expires with which it was asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import gevent

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal

LONGEST_SECS = 1e6  # for a timer; whoever comes with a token that is good for longer may stay


@contextmanager
def ended_with_token(principal: Principal | None, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` when the time of the caller is over, if that is while this is in use."""
    expires_at = None if principal is None else principal.expires_at
    secs = LONGEST_SECS if expires_at is None else expires_at - time.time()
    if secs >= LONGEST_SECS:
        yield
        return
    timer = gevent.spawn_later(max(0.0, secs), end)
    try:
        yield
    finally:
        timer.kill(block=False)
