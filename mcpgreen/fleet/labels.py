"""Labels: what a tool needs of the machine that it runs on, and what a worker has. Also how the two compare a tool.

The calls of all tools with the same labels wait in one queue, which is named after them: `gpu+host=a`, or `any`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from mcpgreen.text import jsontext

ANY = "any"
DIGEST_CHARS = 12


def queue_of(labels: str | Iterable[str]) -> str:
    """Return the queue of the tools that need these labels."""
    named = {labels} if isinstance(labels, str) else set(labels)
    return "+".join(sorted(named - {ANY})) or ANY


def fits(queue: str, labels: Collection[str]) -> bool:
    """Tell whether a worker with these labels may take what waits in the queue."""
    return queue == ANY or all(each in labels for each in queue.split("+"))


def queue_by_patterns(tool: str, patterns: Iterable[str]) -> str:
    """Return the queue that the setting `fleet_tools` has for a tool, as in `render-*:gpu+host=a`; "" if none."""
    for pattern in patterns:
        name, _, wanted = pattern.partition(":")
        if fnmatchcase(tool, name):
            return queue_of(wanted.split("+") if wanted else ANY)
    return ""


class Digests:
    """Tells whether two machines have the same tool. A file is read again only if it has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int, int], str]] = {}

    def of(self, path: str, entry_json: bytes) -> str:
        """Return a digest of a tool's file and description; of the latter alone if the file cannot be read."""
        try:
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                status = os.fstat(file.fileno())
                seen = status.st_mtime_ns, status.st_size, status.st_ino
                known = self._known.get(path)
                if known is None or known[0] != seen:
                    chunks = iter(lambda: file.read(1 << 16), b"")
                    known = self._known[path] = seen, jsontext.digest_of_chunks(chunks)
                content = known[1]
        except OSError:
            content = ""
        return jsontext.digest_of_chunks([content.encode("ascii"), entry_json])[:DIGEST_CHARS]
