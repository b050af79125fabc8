"""Processes that scripts leave behind: whose they are, and how they are killed (Linux).

Most carry the tag of their call. Who has shed it on purpose cannot be told from the processes of other calls; so all
that are not known are killed when no call is running, and when the server ends.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Iterator
from itertools import islice

from mcpgreen import journal
from mcpgreen.running.processes.tags import is_alive, tag_of
from mcpgreen.running.system.descendants import OwnChildren

LOOKS = 20  # at a time: somebody may fork as fast as we look
LONGEST_HUNT_SECS = 0.01  # at a time: there may be thousands, and others wait
MANY = 200  # so many of a call are signalled one by one; the rest is met when their parents are gone


class Strays:
    """Our children, orphaned descendants included, that are not known."""

    def __init__(self, children: OwnChildren, known: set[bytes], expected_tags: set[int]) -> None:
        """`known` are those that we start ourselves, as the kernel writes their numbers. Whoever became us by `exec`
        may have left more children; they are not ours to stop. One that carries an expected tag is about to be known.
        """
        self._children = children
        self._known = known
        self._expected_tags = expected_tags
        self._expected: set[int] = set()  # those of our children that carried one when we looked
        self._is_cut_short = False
        known.update(b"%d" % pid for pid in children.others_than(set()))

    def are_there(self) -> bool:
        """Not counting those that are about to be known."""
        others = self._children.others_than(self._known)
        return bool(others) and not all(map(self._is_expected, others))

    def is_any_of(self, tag: int) -> bool:
        """Whether one that carries the tag of a call is alive. If there are too many to look at, there may be."""
        return any(self._is_of(pid, tag) and is_alive(pid) for pid in self._hunt()) or self._is_cut_short

    def of_call(self, tag: int) -> list[int]:
        """Those that carry the tag of a call; some, if there are many."""
        found = (pid for pid in self._hunt() if self._is_of(pid, tag) and is_alive(pid))
        return list(islice(found, MANY))

    def kill(self, tag: int | None = None) -> bool:
        """Those of one call, or all; whether there was anybody. Each in the moment in which it is recognised: who forks
        again and again, and ends, is gone if one looks at all of them first."""
        groups: set[int] = set()
        is_anybody_found = False
        for pid in self._hunt():
            if self._is_of(pid, tag):
                is_anybody_found = True
                self._kill(pid, groups)
        return is_anybody_found

    def note_known(self, pid: int) -> None:
        """It is what it was expected to be."""
        self._expected.discard(pid)

    def close(self) -> None:
        self._children.close()

    def _is_of(self, pid: int, tag: int | None) -> bool:
        return tag_of(pid) == tag if tag is not None else not self._is_expected(pid)

    def _is_expected(self, pid: int) -> bool:
        if not self._expected_tags:
            self._expected.clear()
        elif pid not in self._expected and tag_of(pid) in self._expected_tags:
            self._expected.add(pid)
        return pid in self._expected

    def _hunt(self) -> Iterator[int]:
        """One after the other, each once, and again until nobody new has come: a process that ends while we look hands
        its children over to us. Not for ever: afterwards `_is_cut_short` says whether there may be more."""
        give_up_at = time.monotonic() + LONGEST_HUNT_SECS
        looked_at = set(self._known)
        self._is_cut_short = True
        for _ in range(LOOKS):
            fresh = self._children.others_than(looked_at)
            if not fresh:
                self._is_cut_short = False
                return
            for pid in fresh:
                yield pid
                if time.monotonic() >= give_up_at:
                    return
            looked_at.update(b"%d" % pid for pid in fresh)

    def _kill(self, pid: int, groups: set[int]) -> None:
        """With its group, unless that is our own or among those that are killed already. It is our child, and nobody
        takes note of its end while we look: its number cannot belong to somebody else by now."""
        try:
            # The session first: who leaves ours between the two questions is in no group of ours by the second.
            is_of_our_session = os.getsid(pid) == os.getsid(0)
            group = os.getpgid(pid)
            if group not in groups and not is_of_our_session:
                groups.add(group)
                signal_group(group, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        except PermissionError:
            journal.warning("process %d, left by a script, belongs to another user and is not stopped", pid)
            self._known.add(b"%d" % pid)


def adopted_strays(known: set[bytes], expected_tags: set[int]) -> Strays | None:
    """None where there is no adoption. Raises OSError when it only cannot be had now."""
    try:
        return Strays(OwnChildren(), known, expected_tags)
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
        pass  # somebody there has changed its user; it is out of our reach but alive
    return True
