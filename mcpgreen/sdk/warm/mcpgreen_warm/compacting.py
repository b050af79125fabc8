"""See to it that what forks allocate lies close together.

A fork pays for each page that it changes. Memory that was freed here and there is given out again first, so that thirty
small objects change thirty pages. Here all of that is used up: what is allocated later comes from new pools, of which
each size of object changes one page.
"""

from __future__ import annotations

import sys

POOL_BYTES = 16384 if sys.version_info >= (3, 10) else 4096
POOL_HEADER_BYTES = 48
STEP_BYTES = 16
MAX_SMALL_BYTES = 512
EMPTY_BYTES = bytes.__basicsize__  # of a bytes object without anything in it
MOST = 4000  # of a size: another allocator than Python's has no pools

used_up: list[object] = []


def use_up_free_memory() -> None:
    for size_bytes in range(STEP_BYTES, MAX_SMALL_BYTES + 1, STEP_BYTES):
        for _ in range(MOST):
            filler = _filler(size_bytes)
            if id(filler) % POOL_BYTES == POOL_HEADER_BYTES:
                break  # the first one in its pool
            used_up.append(filler)


def _filler(size_bytes: int) -> object:
    if size_bytes == STEP_BYTES:
        return object()
    if size_bytes < EMPTY_BYTES:
        return len(used_up) + 0.5
    return bytes(size_bytes - EMPTY_BYTES)
