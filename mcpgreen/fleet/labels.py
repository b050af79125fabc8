"""Labels: what a tool needs of the machine that it runs on, and what a worker has. Also how the two compare a tool.

The calls of all tools with the same labels wait in one queue, which is named after them: `gpu+host=a`, or `any`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from mcpgreen.text import jsontext

ANY = "any"
DIGEST_CHARS = 12


def queue_of(labels: str | Iterable[str]) -> str:
    """Return the queue of the tools that need these labels."""
    named = {labels} if isinstance(labels, str) else set(labels)
    return "+".join(sorted(named - {ANY})) or ANY


def queue_by_patterns(tool: str, patterns: Iterable[str]) -> str:
    """Return the queue that the setting `fleet_tools` has for a tool, as in `render-*:gpu+host=a`; "" if none."""
    found = (pattern.partition(":")[2] for pattern in patterns if fnmatchcase(tool, pattern.partition(":")[0]))
    wanted = next(found, None)
    return "" if wanted is None else queue_of((wanted or ANY).split("+"))


def fits(queue: str, labels: Collection[str]) -> bool:
    """Tell whether a worker with these labels may take what waits in the queue."""
    return queue == ANY or all(each in labels for each in queue.split("+"))


def digest_of(path: str, entry_json: bytes) -> str:
    """Return a digest of a tool's file and description; of the latter alone if the file cannot be read."""
    try:
        status = os.stat(path)
        content = _digest(path, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        content = ""
    return jsontext.digest_of_chunks([content.encode("ascii"), entry_json])[:DIGEST_CHARS]


@lru_cache(1000)
def _digest(path: str, *version: int) -> str:
    with open(path, "rb") as file:
        return jsontext.digest_of_chunks(iter(lambda: file.read(1 << 16), b""))
