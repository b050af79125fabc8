"""Runs clients that are asynchronous, within bounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.prerequisites import require_module
from tests.support.waiting import eventually

anyio = require_module("anyio")

PATIENCE_SECS = 60.0


def run(act: Callable[[], Awaitable[Any]]) -> Any:
    """Run an asynchronous part to its end."""

    async def bounded() -> Any:
        with anyio.fail_after(PATIENCE_SECS):
            return await act()

    return anyio.run(bounded)


async def until(condition: Callable[[], Any]) -> Any:
    """`eventually`, while the client goes on working."""
    return await anyio.to_thread.run_sync(lambda: eventually(condition))
