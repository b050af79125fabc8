"""All children of one server: run each to its end, and leave no process behind.

Rule: whoever leaves `Runner.run` (end, deadline, cancel, too much output) leaves nothing running. When the leaving
greenlet is being killed, the stopping goes on in a greenlet of its own, which cannot be killed a second time.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from resource import struct_rusage
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.running.processes.guardian import Guardian
from mcpgreen.running.processes.output_places import OutputPlace, OutputPlaces
from mcpgreen.running.processes.process import Child, Ending, Outcome, RunningScript
from mcpgreen.running.processes.reaper import reaper
from mcpgreen.running.processes.spawning import Directory, PosixSpawner, Spawner
from mcpgreen.running.processes.stopping import (
    KILL_PATIENCE_SECS,
    is_anything_left,
    signal_all_of,
    signal_process,
    wait_or_kill,
)
from mcpgreen.running.processes.strays import Strays, adopted_strays
from mcpgreen.running.processes.tags import VARIABLE, Tags
from mcpgreen.running.scripts.launch import ScriptRun
from mcpgreen.running.system import prctl
from mcpgreen.running.system.allocator import keep_large_blocks_apart
from mcpgreen.running.system.cpu_placement import Processors
from mcpgreen.running.system.descriptor_limit import descriptor_limit, has_room_for_helpers
from mcpgreen.running.turns import Starts
from mcpgreen.running.warm.warm_python import WarmPython

MANY_DESCRIPTORS = 65536
QUIET_LOOKS = 2
SWEEP_PAUSE_SECS = 0.001
LEAVING_SECS = 0.5  # it takes less than one thousandth of that


class Runner:
    """Starts children and knows all that are alive, so that the server can stop them together."""

    def __init__(self, *, directory: str, is_open_to_others: bool = False, keeps_warm: bool = False) -> None:
        """`is_open_to_others`: whether other processes of the user, as debuggers are, may look into this one.
        `keeps_warm`: whether Python scripts are forked from helpers."""
        self._directory = Directory(directory)
        self._is_open_to_others = is_open_to_others
        self.tags = Tags()
        self.spawner = PosixSpawner(self._directory, self.tags)
        self._processors: Processors | None = None
        self._is_prepared = False
        self._strays: Strays | None = None  # None where orphans are not adopted
        self._leaders: dict[int, Child] = {}  # those that we started; all that one starts carries its tag
        self._leaving: dict[int, Child] = {}  # those of them that have said that they are over
        self._leaving_timer: Any = None
        self._known: set[bytes] = set()  # our children, the guardian too, as the kernel writes their numbers
        self._guardian = Guardian(self.tags.prefix, self._known)
        self._stoppers: set[Any] = set()
        self.expected_tags: set[int] = set()  # of helpers that are forking
        self.starts = Starts()
        self._warm = WarmPython(self) if keeps_warm and self.tags.are_limits and has_room_for_helpers() else None
        self._output_places = OutputPlaces()

    def next_serial(self) -> int:
        """A number for a run that nobody has numbered."""
        return self.tags.next_serial()

    def run(self, run: ScriptRun) -> Outcome:
        """Run to the end, with its tag added to its environment. Raises OSError when it cannot be started."""
        if not self._is_prepared:
            self._prepare()
        tag = self.tags.of(run.serial)
        run.env[VARIABLE] = b"%d" % tag
        running = self._started_warm(run, tag)
        if running is None:
            with self.starts:
                running = self._started(run, self.spawner, tag)
        child = running.child
        try:
            if self._processors is not None and not child.is_warm:
                self._processors.make_way(child.pid, scripts=len(self._leaders))
            ended_by = running.wait(run.deadline)
            if ended_by == Ending.TOLD:
                if self._strays is not None and not self._strays.are_there():
                    return self._without_waiting(running, run)
                ended_by = running.wait_until_gone(run.deadline)
            if ended_by == Ending.EXIT:
                running.drain(run.limits.drain_secs)
            if is_anything_left(child, self._strays):
                signal_all_of(child, signal.SIGTERM, self._strays)
                wait_or_kill(child, run.limits.kill_grace_secs, self._strays)
                running.take_the_rest()
            never_began = running.never_began
        except BaseException:
            # The first signal goes out now: a cancelled tool should not live until the next turn of the hub.
            signal_all_of(child, signal.SIGTERM, self._strays)
            self._in_background(self._end, running, run.limits.kill_grace_secs)
            raise
        self._close(running)
        if never_began:  # somebody killed a process that was waiting for its script
            return self.run(run._replace(script=run.script._replace(warm=None)))
        self._tell_of(child, run)
        return running.outcome(ended_by)

    def _without_waiting(self, running: RunningScript, run: ScriptRun) -> Outcome:
        """It has said all, and nobody is left of it but its process, which is about to go."""
        child = running.child
        running.take_the_rest()
        running.close()
        self._tell_of(child, run)
        self._leaving[child.pid] = child
        child.on_gone = partial(self._forget, child)
        if self._leaving_timer is None:
            self._leaving_timer = gevent.get_hub().loop.timer(LEAVING_SECS, ref=False)
            self._leaving_timer.start(self._look_after_leaving)
        return running.outcome(Ending.EXIT)

    def _look_after_leaving(self) -> None:
        """In the hub: who has said that it is over, and is still there, is ended."""
        self._leaving_timer.close()
        self._leaving_timer = None
        late_at = time.monotonic() - LEAVING_SECS
        for child in [each for each in self._leaving.values() if each.ended_at <= late_at]:
            del self._leaving[child.pid]
            self._in_background(self._end_late, child)
        if self._leaving:
            self._leaving_timer = gevent.get_hub().loop.timer(LEAVING_SECS, ref=False)
            self._leaving_timer.start(self._look_after_leaving)

    def _end_late(self, child: Child) -> None:
        journal.info("process %d has said that it is over, and is still there; it is stopped", child.pid)
        signal_all_of(child, signal.SIGKILL, self._strays)
        wait_or_kill(child, 0, self._strays)

    def _started_warm(self, run: ScriptRun, tag: int) -> RunningScript | None:
        """None if it needs a fresh start. May wait for a moment."""
        spare = self._warm.spare_for(run) if self._warm is not None else None
        if spare is None:
            return None
        try:
            return self._started(run, spare, tag)
        except OSError:
            return None  # it has died meanwhile, or cannot be told so much

    def _started(self, run: ScriptRun, spawner: Spawner, tag: int) -> RunningScript:
        running = RunningScript(run, spawner=spawner, tag=tag, place=OutputPlace(self._output_places))
        self._leaders[running.child.pid] = running.child
        self._known.add(b"%d" % running.child.pid)
        return running

    def _tell_of(self, child: Child, run: ScriptRun) -> None:
        if not journal.tells_frames:
            return
        how = ", warm" if child.is_warm else ""
        if not child.is_warm and self._warm is not None and (reason := self._warm.why_fresh(run)):
            how = f", started afresh: {reason}"
        took_ms = (child.ended_at - child.began_at) * 1000
        journal.debug("call %d: %s was process %d for %d ms%s", run.serial, run.script.label, child.pid, took_ms, how)

    def process_of(self, serial: int) -> int | None:
        """The process that runs for the call with this number."""
        tag = self.tags.of(serial)
        return next((pid for pid, child in self._leaders.items() if child.tag == tag), None)

    def stop_all(self, *, grace_secs: float) -> None:
        """Stop every child and wait until all are gone."""
        if self._warm is not None:
            self._warm.end()
        self._signal_all(signal.SIGTERM)
        give_up_at = time.monotonic() + grace_secs
        while not self.is_idle and time.monotonic() < give_up_at:
            gevent.sleep(0.005)
        while not self.is_idle and time.monotonic() < give_up_at + KILL_PATIENCE_SECS:
            self._signal_all(signal.SIGKILL)
            gevent.sleep(0.005)
        self._sweep(heeds_calls=False)

    def after_stopping(self, action: Callable[[], None]) -> None:
        """Do this when the children that are being stopped now are gone."""
        waiting_for = list(self._stoppers)

        def wait_and_act() -> None:
            gevent.joinall(waiting_for)
            action()

        self._in_background(wait_and_act)

    def protect(self, directory: str) -> None:
        """This directory is removed if the server is killed, instead of an earlier one."""
        self._guardian.protect(os.fsencode(directory))

    def close(self, *, is_clean: bool) -> None:
        """After `stop_all`: let go of the guardian and the directory. If files are left, the guardian removes them."""
        self._guardian.dismiss(is_clean=is_clean)
        if self._strays is not None:
            self._strays.close()
        self._directory.close()

    def know(self, pid: int, *, is_spare: bool = False) -> None:
        """A child that is no script, and nobody's stray, until it ends or `end_known` ends it. A spare that somebody
        stops is ended: a call would have to wait for it."""
        number = b"%d" % pid
        self._known.add(number)
        if self._strays is not None:
            self._strays.note_known(pid)

        def on_change(status: int, usage: struct_rusage) -> None:
            if not os.WIFSTOPPED(status):
                self._known.discard(number)
            elif is_spare:
                self.end_known(pid)

        reaper().watch(pid, on_change)

    def knows(self, pid: int) -> bool:
        """Whether it has not ended yet; else somebody else may have the number by now."""
        return b"%d" % pid in self._known

    def end_known(self, pid: int) -> None:
        if self.knows(pid):
            signal_process(pid, signal.SIGKILL)

    @property
    def is_idle(self) -> bool:
        return not self._leaders and not self._stoppers

    def prepare(self) -> None:
        """Before the first script, and before the first file of a call: see to it that both are cleaned up. Raises
        InternalError when that cannot be now."""
        if not self._is_prepared:
            try:
                self._prepare()
            except OSError as error:
                journal.error("no script can be run now: %s", error.strerror)
                raise InternalError(f"No script can be run now: {error.strerror}.") from error

    def _prepare(self) -> None:
        if not self._is_open_to_others:
            prctl.shut_out_others()
        reaper()  # before there is anybody to be reaped
        _keep_descriptors_from_scripts()
        if self._strays is None:
            self._strays = adopted_strays(self._known, self.expected_tags)
        self._processors = Processors.found()
        keep_large_blocks_apart()
        self._guardian.start()
        self._is_prepared = True

    def _sweep(self, *, heeds_calls: bool = True) -> None:
        """Kill whoever is below us and not known, until two looks in a row find nobody, or a call begins whose
        processes they might be."""
        give_up_at = time.monotonic() + KILL_PATIENCE_SECS
        quiet_looks = 0
        while quiet_looks < QUIET_LOOKS and not (heeds_calls and self._leaders):
            if time.monotonic() >= give_up_at:
                journal.error("processes that scripts have left do not die")
                return
            quiet_looks = 0 if self._strays is not None and self._strays.kill() else quiet_looks + 1
            gevent.sleep(SWEEP_PAUSE_SECS)

    def _in_background(self, function: Callable[..., None], *values: Any) -> None:
        stopper = gevent.spawn(function, *values)
        self._stoppers.add(stopper)
        stopper.rawlink(self._stoppers.discard)

    def _end(self, running: RunningScript, grace_secs: float) -> None:
        """After the first signal. The pipes stay open meanwhile: a script that cleans up may still write."""
        wait_or_kill(running.child, grace_secs, self._strays)
        self._close(running)

    def _close(self, running: RunningScript) -> None:
        running.close()
        self._forget(running.child)

    def _forget(self, child: Child) -> None:
        """It is gone."""
        self._leaving.pop(child.pid, None)
        self._leaders.pop(child.pid, None)
        self._known.discard(b"%d" % child.pid)
        # Whoever is left when no call is running has shed its tag: only now can it be told from the others' processes.
        if not self._leaders and self._strays is not None and self._strays.kill():
            self._in_background(self._sweep)

    def _signal_all(self, number: int) -> None:
        for leader in list(self._leaders.values()):
            signal_all_of(leader, number, self._strays)


def _keep_descriptors_from_scripts() -> None:
    """What we inherited from whoever started us is for nobody else."""
    try:
        numbers: Iterable[int] = map(int, os.listdir("/dev/fd"))
    except FileNotFoundError:
        limit = descriptor_limit()
        numbers = range(min(limit, MANY_DESCRIPTORS) if limit >= 0 else MANY_DESCRIPTORS)
    for number in numbers:
        if number > 2:
            with suppress(OSError):  # that of the listing itself, closed by now, or one that never was
                os.set_inheritable(number, False)
