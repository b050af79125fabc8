"""Processes that scripts leave behind: whose they are, and how they are killed (Linux).

Most carry the mark of their call. Who has shed it on purpose cannot be told from the processes of other calls; so all
that are not known are killed when no call is running, and when the server ends.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

from mcpgreen import journal
from mcpgreen.running.descendants import OwnChildren
from mcpgreen.running.marks import is_alive, mark_of

LOOKS = 20  # at a time: somebody may fork as fast as we look


class Strays:
    """Our children, orphaned descendants included, that are not known."""

    def __init__(self, children: OwnChildren, known: set[bytes]) -> None:
        """`known` are those that we start ourselves, as the kernel writes their numbers. Whoever became us by `exec`
        may have left more children; they are not ours to stop."""
        self._children = children
        self._known = known
        known.update(b"%d" % pid for pid in children.others_than(set()))

    def are_there(self) -> bool:
        return bool(self._children.others_than(self._known))

    def of_call(self, mark: int) -> list[int]:
        """Those that carry the mark of a call."""
        found: list[int] = []
        looked_at = set(self._known)
        # Again until nobody new has come: a process that ends while we look hands its children over to us.
        for _ in range(LOOKS):
            fresh = self._children.others_than(looked_at)
            if not fresh:
                break
            looked_at.update(b"%d" % pid for pid in fresh)
            found.extend(pid for pid in fresh if is_alive(pid) and mark_of(pid) == mark)
        return found

    def kill_those_of(self, mark: int) -> None:
        """Each in the moment in which it is recognised, several times without a pause: who forks again and again, and
        ends, is gone if one looks at all of them first."""
        for _ in range(LOOKS):
            found = [pid for pid in self._children.others_than(self._known) if mark_of(pid) == mark and self._kill(pid)]
            if not found:
                return

    def kill_all(self) -> bool:
        """Whether there was anybody."""
        is_anybody_found = False
        for _ in range(LOOKS):
            found = self._children.others_than(self._known)
            if not found:
                break
            is_anybody_found = True
            for pid in found:
                self._kill(pid)
        return is_anybody_found

    def close(self) -> None:
        self._children.close()

    def _kill(self, pid: int) -> bool:
        """With its group, unless that is our own; whether we may. It is our child, and nobody takes note of its end
        while we look: its number cannot belong to somebody else by now."""
        try:
            if os.getsid(pid) != os.getsid(0):
                signal_group(os.getpgid(pid), signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return True
        except PermissionError:
            journal.warning("process %d, left by a script, belongs to another user and is not stopped", pid)
            self._known.add(b"%d" % pid)
            return False
        return True


def adopted_strays(known: set[bytes]) -> Strays | None:
    """None where there is no adoption. Raises OSError when it only cannot be had now."""
    try:
        return Strays(OwnChildren(), known)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        # Where there is no /proc it is worth a warning: somebody forgot to mount it.
        tell = journal.warning if sys.platform.startswith("linux") else journal.info
        tell("processes that scripts leave behind outside their group are not found here: %s", error)
        return None


def signal_group(leader: int, number: int) -> bool:
    """Whether there was anybody to signal."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody there has changed its user; it is out of our reach but alive
    return True
