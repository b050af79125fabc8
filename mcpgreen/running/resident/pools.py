"""The resident processes of all tools: which of them serves a call, and when one is started, replaced or let go.

A pool has the processes of one script for one scope: the server, a session, or a caller. A call that has its turn (see
`Pool.places`) takes the process with most room; if none has any, another one is started, up to `workers`. While starts
fail, calls fail at once with the last reason, and the next try waits longer each time.

Rule: a process never serves two scopes. One that is worn out serves until another is ready.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable
from contextlib import suppress
from typing import Any, NamedTuple

import gevent
from gevent.event import Event as Bell

from mcpgreen import journal
from mcpgreen.errors import InternalError, McpgreenError, ToolFailure
from mcpgreen.running.processes.run import KILL_GRACE_SECS, ScriptRun, Stays
from mcpgreen.running.resident.process import Resident, State
from mcpgreen.running.runner import Runner
from mcpgreen.running.shares import Places
from mcpgreen.running.system import descriptor_limit, residents_that_fit

LOOK_SECS = 1.0  # between two looks for processes that are idle or have grown too large
FIRST_PAUSE_SECS = 1.0  # after a start that has failed; twice as long after the next one
LONGEST_PAUSE_SECS = 60.0
SESSION_GRACE_SECS = 0.4  # for the processes of a session that is over, and as much again after SIGTERM
PAGE_KIB = 4
WANTED = (State.STARTING, State.READY, State.BUSY)

Start = Callable[[], ScriptRun]  # what a new process runs
Tools = Callable[[], Collection[tuple[str, Stays | None]]]  # the script of each tool, and how it stays


class Key(NamedTuple):
    """What makes a pool: a script, how it stays, and for whom. `owner` is the caller that it counts for."""

    path: str
    stays: Stays
    scope: Hashable
    owner: Hashable = None


class Pool:
    """The processes of one key. `version` is of the script and of what describes it. A pool that `is_over` starts no
    more of them."""

    def __init__(self, residents: Residents, key: Key) -> None:
        self.key = key
        self.is_over = False
        self.version: object = None
        self.processes: list[Resident] = []
        self.places = Places(key.stays.workers * key.stays.concurrency)
        self._residents = residents
        self._changed = Bell()
        self._waiting = 0  # calls
        self.forget_failures()

    def is_unused(self, now: float) -> bool:
        return not self.processes and not self.places.taken and now > self._not_before + LONGEST_PAUSE_SECS

    def take(self, version: object, start: Start) -> Resident:
        """Return a process with room for a call; while none can be started, the last one that failed. May wait for one
        to be ready. Raises ToolFailure and RpcError."""
        if version != self.version:
            self.version = version
            self.forget_failures()
            self.retire()
        self._waiting += 1
        try:
            while True:
                best = max(self.processes, key=lambda each: (each.room > 0, not each.is_worn, each.room), default=None)
                if best is not None and best.room > 0:
                    if best.is_worn:
                        with suppress(McpgreenError):  # it serves until another one is ready
                            self._start_if_needed(start)
                    return best
                if (failed := self._start_if_needed(start)) is not None:
                    return failed
                self._changed.clear()
                self._changed.wait()
        finally:
            self._waiting -= 1

    def retire(self) -> None:
        """Let all processes go; calls that run go on."""
        for each in list(self.processes):
            each.retire()

    def forget_failures(self) -> None:
        self._failures = 0  # starts in a row
        self._failed: Resident | None = None  # the last one that did not become ready
        self._not_before = 0.0  # for the next try

    def look(self, now: float) -> None:
        """Let processes go that are idle, and replace one that has grown too large."""
        stays = self.key.stays
        for each in list(self.processes):
            if each.state == State.READY and now - each.used_at >= stays.idle_secs:
                each.retire()
            elif stays.max_memory_mb and memory_kib(each.pid) > stays.max_memory_mb * 1024:
                each.is_worn = True

    def _start_if_needed(self, start: Start) -> Resident | None:
        """Start another process, unless enough are on their way. Return the last one if starts fail. Raises ToolFailure
        and RpcError if there may be no more."""
        fresh = [each for each in self.processes if each.state in WANTED and not each.is_worn]
        coming = sum(each.state == State.STARTING for each in fresh) * self.key.stays.concurrency
        if len(fresh) >= self.key.stays.workers or coming >= self._waiting:
            return None
        if time.monotonic() < self._not_before:
            return self._failed
        self._residents.require_room(self)
        run = start()
        try:
            process = Resident(self._residents.runner, run, self.key.stays, self._on_change)
        except OSError as error:
            raise InternalError(f"{run.script.label} could not be started: {error.strerror}.") from error
        self.processes.append(process)
        self._residents.living.add(process)
        return None

    def _on_change(self, process: Resident) -> None:
        """A process is ready, has room, or is gone. May be called in the hub."""
        if process.state == State.GONE:
            self.processes.remove(process)
            self._residents.living.remove(process)
            if not process.pid and not process.is_unwanted:
                self._failed, self._failures = process, self._failures + 1
                pause_secs = min(LONGEST_PAUSE_SECS, FIRST_PAUSE_SECS * 2 ** min(self._failures - 1, 10))
                self._not_before = time.monotonic() + pause_secs
                journal.warning("%s: %s; the next try is in %g s", process.label, process.fault, pause_secs)
        elif process.state == State.READY and not process.served:
            self.forget_failures()
            if worn := next((each for each in self.processes if each.is_worn), None):
                worn.retire()
        most = self.key.stays.max_calls
        process.is_worn = process.is_worn or bool(most and process.served >= most)
        self._changed.set()


class Residents:
    """All pools of one server."""

    def __init__(self, runner: Runner, tools: Tools, most_per_owner: int) -> None:
        self.runner = runner
        self._tools = tools
        self._most = residents_that_fit(descriptor_limit())
        self._most_per_owner = most_per_owner
        self.living: set[Resident] = set()
        self._pools: dict[Key, Pool] = {}
        self._looker: Any = None

    def pool(self, key: Key) -> Pool:
        found = self._pools.get(key)
        if found is None:
            found = self._pools[key] = Pool(self, key)
            self._looker = self._looker or gevent.spawn(self._look)
        return found

    def end_scope(self, scope: Hashable) -> None:
        """End the processes of a session: it is over, and so are its calls."""
        pools = [pool for key, pool in self._pools.items() if key.scope == scope]
        for process in [each for pool in pools for each in pool.processes]:
            gevent.spawn_later(SESSION_GRACE_SECS, process.kill)
            gevent.spawn_later(2 * SESSION_GRACE_SECS, process.kill_now)
        self._end(pools)

    def require_room(self, pool: Pool) -> None:
        """Raises ToolFailure if there are as many processes as there may be, of the caller or of all; InternalError if
        the session is over, or the server stops."""
        key = pool.key
        if pool.is_over:
            raise InternalError("The session is over.")
        if len(self.living) >= self._most:
            raise ToolFailure(f"Too many processes are kept on this server already ({self._most}). Try again later.")
        keys = [other for other in self._pools if other.scope is not None and other.owner == key.owner]
        held = sum(len(self._pools[other].processes) for other in keys)
        if key.scope is not None and held >= self._most_per_owner:
            text = f"Too many processes are kept for you already ({held}, resident_max_per_principal)."
            raise ToolFailure(f"{text} End a session, or try again when one has been idle for a while.")

    def close(self) -> None:
        """Let all processes go, and wait for a moment until they have ended by themselves."""
        self._end(list(self._pools.values()))
        give_up_at = time.monotonic() + KILL_GRACE_SECS
        while self.living and time.monotonic() < give_up_at:
            gevent.sleep(0.005)

    def _end(self, pools: Collection[Pool]) -> None:
        for pool in pools:
            if not pool.is_over:
                del self._pools[pool.key]
            pool.is_over = True
            pool.retire()

    def _look(self) -> None:
        while self._pools:
            gevent.sleep(LOOK_SECS)
            now = time.monotonic()
            tools = self._tools()
            for key, pool in list(self._pools.items()):
                pool.look(now)
                is_gone = key[:2] not in tools and not pool.places.taken
                if is_gone or pool.is_unused(now):
                    self._end([pool])
                gevent.sleep(0)  # there may be many
        self._looker = None


def memory_kib(pid: int) -> int:
    """Return how much memory a process holds; 0 where that cannot be seen."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE_KIB
    except OSError:
        return 0
