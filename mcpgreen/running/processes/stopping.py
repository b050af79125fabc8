"""Stop a script and everything that it started, even processes that have left its process group.

Each call has a number, its *tag*, which every process below it carries: it shows to which call a process belongs.
Session, environment and descriptors can be lost by accident: `env -i setsid` is all it takes. A resource limit stays,
through fork and exec, unless a process changes it on purpose. So the tag is put where it does no harm: into the soft
limit of CPU time for real-time processes, as some hundred thousand years. Where that limit cannot be set, the same
number is put into the environment.

On Linux the server is a *subreaper*: a process that daemonises becomes our child again instead of init's. Such *strays*
are killed with their call. A stray that has removed its tag on purpose looks like a process of any other call; so all
unknown children are killed when no call is running, and when the server ends. On other systems, only the process group
is stopped, and None takes the place of `Strays`.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import gevent

from mcpgreen import journal
from mcpgreen.running import system

if TYPE_CHECKING:
    from mcpgreen.running.processes.process import Child

VARIABLE = b"MCPGREEN_CALL"
CALL_DIGITS = 8
CALLS: int = 10**CALL_DIGITS
THREADS = 17  # the field of /proc/PID/stat, counted from the state
LIMIT_LINE = b"Max realtime timeout"
READ_BYTES = 4096
LOOKS = 20  # at a time: a script may fork as fast as we look
LONGEST_HUNT_SECS = 0.01  # at a time: there may be thousands, and others wait
MANY_STRAYS = 200  # of a call, signalled one by one; the rest are found when their parents are gone
MANY_DESCENDANTS = 1000
KILL_PATIENCE_SECS = 5.0


class Tags:
    """The tags of one server: all begin with the same digits."""

    def __init__(self) -> None:
        self.prefix = f"8{int.from_bytes(os.urandom(8), 'big') % 10**10:010d}"
        self._first = int(self.prefix) * CALLS
        self.all = range(self._first, self._first + CALLS)
        limits = resource.getrlimit(resource.RLIMIT_RTTIME) if hasattr(resource, "RLIMIT_RTTIME") else (0, 0)
        # To go back to; None where the soft limit cannot be set.
        self._limits = limits if limits[1] == resource.RLIM_INFINITY else None

    def of(self, serial: int) -> int:
        """Return the tag of the call that has this number."""
        return self._first + serial % CALLS

    @property
    def are_limits(self) -> bool:
        """Tell whether processes carry them where they cannot be lost by accident."""
        return self._limits is not None

    def put_on(self, tag: int) -> None:
        """Have every process that is started carry the tag. No greenlet may switch until it is taken off."""
        if self._limits is not None:
            resource.setrlimit(resource.RLIMIT_RTTIME, (tag, self._limits[1]))

    def take_off(self) -> None:
        if self._limits is not None:
            resource.setrlimit(resource.RLIMIT_RTTIME, self._limits)


def tag_of(pid: int) -> int | None:
    """Return the tag of a process, even of a zombie; None if it has no tag or is gone."""
    try:
        words = _content_of(f"/proc/{pid}/limits").partition(LIMIT_LINE)[2].split(None, 1)
        if words and words[0].isdigit():
            return int(words[0])
        for entry in _content_of(f"/proc/{pid}/environ").split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name == VARIABLE and value.isdigit():
                return int(value)
    except OSError:
        pass
    return None


def is_alive(pid: int) -> bool:
    """Tell whether a process is neither gone nor a zombie."""
    try:
        fields = _content_of(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] != b"Z" or int(fields[THREADS]) > 1  # else only its first thread has ended


def with_descendants(pids: Collection[int]) -> list[int]:
    """These processes and everything below them, parents first. If there are very many, some of them."""
    found = dict.fromkeys(pids)  # a set that keeps its order
    unseen = list(found)
    for pid in unseen:
        if len(unseen) >= MANY_DESCENDANTS:
            break
        fresh = [child for child in _children_of(pid) if child not in found]
        found.update(dict.fromkeys(fresh))
        unseen.extend(fresh)
    return unseen


def _children_of(pid: int) -> list[int]:
    """Return the direct children of all threads of a process; empty when it is gone."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.extend(map(int, _content_of(f"/proc/{pid}/task/{thread}/children").split()))
    return found


def _content_of(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


class Strays:
    """Our children, orphaned descendants included, that are not known.

    All are the main thread's: it starts them, and the kernel gives it the orphans.
    """

    def __init__(self, known: set[bytes], expected_tags: set[int]) -> None:
        """`known` are the processes that we start ourselves, as the kernel writes their numbers. The program that
        became us by `exec` may have left more children; they are not ours to stop. One with an expected tag is about to
        be known. Raises OSError where orphans are not adopted, or cannot be listed.
        """
        system.adopt_orphans()
        path = f"/proc/self/task/{os.getpid()}/children"
        try:
            self._children_fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError as error:
            raise OSError(error.errno, f"{path} is missing; mount /proc") from error
        self._known = known
        self._expected_tags = expected_tags
        self._is_cut_short = False
        known.update(b"%d" % pid for pid in self._children_but(set()))

    def are_there(self) -> bool:
        """Tell whether there are any strays, apart from processes that are about to be known."""
        return not all(map(self._is_expected, self._children_but(self._known)))

    def is_any_of(self, tag: int) -> bool:
        """Tell whether a process with the tag of a call is alive, or may be: there may be too many to look at."""
        return any(self._of_call(tag)) or self._is_cut_short

    def of_call(self, tag: int) -> list[int]:
        """Processes with the tag of a call; some of them, if there are many."""
        return list(islice(self._of_call(tag), MANY_STRAYS))

    def _of_call(self, tag: int) -> Iterator[int]:
        return (pid for pid in self._hunt() if tag_of(pid) == tag and is_alive(pid))

    def kill(self, tag: int) -> bool:
        """Kill the strays of one call; return whether there were any."""
        return self._kill(lambda pid: tag_of(pid) == tag, set())

    def kill_others(self, staying: Mapping[int, int]) -> bool:
        """Kill all but those of resident processes, which are given with their tags; say if there were any."""
        spared = {*staying.values(), *self._expected_tags}
        return self._kill(lambda pid: tag_of(pid) not in spared, set(staying))

    def kill_tagged(self, tags: range, *, running: set[int]) -> bool:
        """Kill the strays with one of these tags, unless it is expected or of a running call; say if there were any."""
        spared = running | self._expected_tags
        return self._kill(lambda pid: (tag := tag_of(pid)) is not None and tag in tags and tag not in spared, set())

    def close(self) -> None:
        os.close(self._children_fd)

    def _is_expected(self, pid: int) -> bool:
        return bool(self._expected_tags) and tag_of(pid) in self._expected_tags

    def _children_but(self, known: set[bytes]) -> list[int]:
        """Return the children whose numbers are not `known`. None is missed: a child leaves the list only when we reap
        it, and a process that loses its parent meanwhile is added at the end."""
        content = os.pread(self._children_fd, READ_BYTES, 0)
        while len(content) % READ_BYTES == 0 and (more := os.pread(self._children_fd, READ_BYTES, len(content))):
            content += more
        return list(map(int, set(content.split()) - known))

    def _hunt(self) -> Iterator[int]:
        """Yield each of them once, and look again until there is no new one: a process that ends while we look hands
        its children over to us. Not for ever: afterwards `_is_cut_short` says whether there may be more."""
        give_up_at = time.monotonic() + LONGEST_HUNT_SECS
        looked_at = set(self._known)
        self._is_cut_short = True
        for _ in range(LOOKS):
            fresh = self._children_but(looked_at)
            if not fresh:
                self._is_cut_short = False
                return
            for pid in fresh:
                yield pid
                if time.monotonic() >= give_up_at:
                    return
            looked_at.update(b"%d" % pid for pid in fresh)

    def _kill(self, is_wanted: Callable[[int], bool], groups: set[int]) -> bool:
        """Kill each process as soon as it is recognised: if all were looked at first, a process that keeps forking and
        ending would be gone. These `groups` are left alone. Return whether there were any."""
        is_any_found = False
        for pid in self._hunt():
            if is_wanted(pid):
                is_any_found = True
                self._kill_with_group(pid, groups)
        return is_any_found

    def _kill_with_group(self, pid: int, groups: set[int]) -> None:
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
            journal.warning("process %d, left behind by a script, belongs to another user and cannot be stopped", pid)
            self._known.add(b"%d" % pid)


def adopted_strays(known: set[bytes], expected_tags: set[int]) -> Strays | None:
    """Return the strays of this process; None where orphans are not adopted. Raises OSError if that fails only now."""
    try:
        return Strays(known, expected_tags)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        # Linux without /proc is worth a warning: it should be mounted.
        tell = journal.warning if sys.platform.startswith("linux") else journal.info
        tell("processes that scripts leave behind outside their process group cannot be found here: %s", error)
        return None


def wait_or_kill(leader: Child, grace_secs: float, strays: Strays | None) -> None:
    """Wait after SIGTERM until nothing is left of a script; kill what is left after the time that it has."""
    if _wait_until_gone(leader, grace_secs, strays):
        return
    give_up_at = time.monotonic() + KILL_PATIENCE_SECS
    while time.monotonic() < give_up_at:
        signal_all_of(leader, signal.SIGKILL, strays)
        if strays is not None:
            strays.kill(leader.tag)
        if _wait_until_gone(leader, 0.1, strays):
            return
    journal.error("process group %d is still running after SIGKILL", leader.pid)


def _wait_until_gone(leader: Child, secs: float, strays: Strays | None) -> bool:
    give_up_at = time.monotonic() + secs
    pause_secs = 0.0002
    while is_anything_left(leader, strays):
        if time.monotonic() >= give_up_at:
            return False
        gevent.sleep(pause_secs)
        pause_secs = min(pause_secs * 2, 0.02)
    return True


def is_anything_left(leader: Child, strays: Strays | None) -> bool:
    """Tell whether a process of a script is left: its leader, or another one."""
    if leader.returncode is None:
        return True
    if strays is None:
        return signal_group(leader.pid, 0)
    if not strays.are_there():
        return False  # all that it started would be below one of our children
    return signal_group(leader.pid, 0) or strays.is_any_of(leader.tag)


def signal_all_of(leader: Child, number: int, strays: Strays | None) -> None:
    """Signal the group at once, then the processes that have left it; each gets the signal once."""
    outsiders: list[int] = []
    if strays is not None:
        # Looked up first: once the group is dead, the tree that leads to them is gone.
        family = with_descendants([leader.pid, *strays.of_call(leader.tag)])[1:]
        outsiders = [pid for pid in family if _group_of(pid) != leader.pid]
    if not signal_group(leader.pid, number) and leader.returncode is None:
        signal_process(leader.pid, number)  # it has just been forked, and has no group of its own yet
    for pid in outsiders:
        signal_process(pid, number)


def signal_group(leader: int, number: int) -> bool:
    """Signal a group; return whether there was any process in it."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # one of them has changed its user; it is out of our reach but alive
    return True


def signal_process(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None
