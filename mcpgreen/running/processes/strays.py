"""Processes that scripts leave behind: to which call they belong, and how they are killed (Linux).

Most carry the tag of their call. One that has removed it on purpose cannot be told from the processes of other calls;
so all that are not known are killed when no call is running, and when the server ends.
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

LOOKS = 20  # at a time: a script may fork as fast as we look
LONGEST_HUNT_SECS = 0.01  # at a time: there may be thousands, and others wait
MANY = 200  # so many of a call are signalled one by one; the rest is met when their parents are gone


class Strays:
    """Our children, orphaned descendants included, that are not known."""

    def __init__(self, children: OwnChildren, known: set[bytes], expected_tags: set[int]) -> None:
        """`known` are the processes that we start ourselves, as the kernel writes their numbers. The program that
        became us by `exec` may have left more children; they are not ours to stop. One with an expected tag is about to
        be known.
        """
        self._children = children
        self._known = known
        self._expected_tags = expected_tags
        self._expected: dict[int, int | None] = {}  # those of our children that carried one when we looked, and which
        self._is_cut_short = False
        known.update(b"%d" % pid for pid in children.others_than(set()))

    def are_there(self) -> bool:
        """Tell whether there are any, without those that are about to be known."""
        others = self._children.others_than(self._known)
        return bool(others) and not all(map(self._is_expected, others))

    def is_any_of(self, tag: int) -> bool:
        """Tell whether a process with the tag of a call is alive, or may be: there may be too many to look at."""
        return any(self._is_of(pid, tag) and is_alive(pid) for pid in self._hunt()) or self._is_cut_short

    def of_call(self, tag: int) -> list[int]:
        """Processes with the tag of a call; some of them, if there are many."""
        found = (pid for pid in self._hunt() if self._is_of(pid, tag) and is_alive(pid))
        return list(islice(found, MANY))

    def kill(self, tag: int | None = None) -> bool:
        """Kill those of one call, or all; return whether there were any. Each is killed in the moment in which it is
        recognised: one that forks again and again, and ends, is gone if one looks at all of them first."""
        groups: set[int] = set()
        is_any_found = False
        for pid in self._hunt():
            if self._is_of(pid, tag):
                is_any_found = True
                self._kill(pid, groups)
        return is_any_found

    def kill_tagged(self, tags: range, *, running: set[int]) -> bool:
        """Kill those with one of these tags, unless it is that of a running call, or expected; return whether there
        were any."""
        groups: set[int] = set()
        is_any_found = False
        for pid in self._hunt():
            tag = tag_of(pid)
            if tag is not None and tag in tags and tag not in running and tag not in self._expected_tags:
                is_any_found = True
                self._kill(pid, groups)
        return is_any_found

    def note_known(self, pid: int) -> None:
        """Note that an expected process has come."""
        self._expected.pop(pid, None)

    def close(self) -> None:
        self._children.close()

    def _is_of(self, pid: int, tag: int | None) -> bool:
        return tag_of(pid) == tag if tag is not None else not self._is_expected(pid)

    def _is_expected(self, pid: int) -> bool:
        if not self._expected_tags:
            self._expected.clear()
        elif pid not in self._expected and (tag := tag_of(pid)) in self._expected_tags:
            self._expected[pid] = tag
        return self._expected.get(pid) in self._expected_tags

    def _hunt(self) -> Iterator[int]:
        """Yield each of them once, and look again until there is no new one: a process that ends while we look hands
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
        """Kill it with its group, unless that is our own or has been killed already. It is our child, and is not reaped
        while we look: its number cannot belong to another process by now."""
        try:
            # The session first: a process that leaves ours between the two questions has left our groups by the second.
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
    """The strays of this process; None where orphans are not adopted. Raises OSError if that fails only now."""
    try:
        return Strays(OwnChildren(), known, expected_tags)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        # Linux without /proc is worth a warning: it should be mounted.
        tell = journal.warning if sys.platform.startswith("linux") else journal.info
        tell("processes that scripts leave behind outside their group are not found here: %s", error)
        return None


def signal_group(leader: int, number: int) -> bool:
    """Signal a group; return whether there was any process in it."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # one of them has changed its user; it is out of our reach but alive
    return True
