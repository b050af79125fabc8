"""Have the C library give large blocks of memory back as soon as they are free (glibc).

By itself it begins to keep them among the small ones once the first has been freed, and what is small and stays holds
them there: after some megabytes of arguments or output a server would take up to twice what it needs.
"""

from __future__ import annotations

M_MMAP_THRESHOLD = -3  # mallopt(3)
LARGE_BYTES = 1 << 20


def keep_large_blocks_apart() -> None:
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
    except (AttributeError, OSError):
        return  # another C library, or a sandbox that forbids it
