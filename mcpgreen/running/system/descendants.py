"""Find what a child has left behind, also when it left its process group (Linux).

The server is made a *subreaper*: a process that daemonises becomes our child again instead of init's. Elsewhere nothing
is found here, and stopping the process group has to do.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress

from mcpgreen.running.system import prctl

READ_BYTES = 4096
MANY = 1000


class OwnChildren:
    """The children of this process, orphaned descendants included, from one file that stays open.

    All are the main thread's: it starts them, and the kernel gives it the orphans. Raises OSError at birth where there
    is no such file or no such adoption.
    """

    def __init__(self) -> None:
        prctl.adopt_orphans()
        path = f"/proc/self/task/{os.getpid()}/children"
        try:
            self._fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError as error:
            raise OSError(error.errno, f"{path} is missing; mount /proc") from error

    def others_than(self, known: set[bytes]) -> list[int]:
        """Children with a number, as text, that is not known. None is missed: a child leaves the list only when we reap
        it, and one that loses its parent meanwhile comes last."""
        content = os.pread(self._fd, READ_BYTES, 0)
        while len(content) % READ_BYTES == 0 and (more := os.pread(self._fd, READ_BYTES, len(content))):
            content += more
        return list(map(int, set(content.split()) - known))

    def close(self) -> None:
        os.close(self._fd)


def children_of(pid: int) -> list[int]:
    """The direct children of all threads of a process; empty when it is gone."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.extend(map(int, content_of(f"/proc/{pid}/task/{thread}/children").split()))
    return found


def with_descendants(pids: Collection[int]) -> list[int]:
    """These processes and everything below them, parents first. If there are very many, some of them."""
    found = dict.fromkeys(pids)  # a set that keeps its order
    unseen = list(found)
    for pid in unseen:
        if len(unseen) >= MANY:
            break
        fresh = [child for child in children_of(pid) if child not in found]
        found.update(dict.fromkeys(fresh))
        unseen.extend(fresh)
    return unseen


def content_of(path: str) -> bytes:
    """A whole file of /proc, read without the cost of a file object."""
    fd = os.open(path, os.O_RDONLY)
    try:
        content = b""
        while chunk := os.read(fd, 65536):
            content += chunk
        return content
    finally:
        os.close(fd)
