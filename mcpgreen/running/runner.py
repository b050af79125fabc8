"""All of a server's children: run each to its end, and leave no process behind.

Tools, prompts, providers and completions are run by `run_script`: it checks that a script may run, starts it as a shell
would, and says why it cannot be started. Hooks run in a shell of their own (`hooks`).

Rule: when `Runner.run` is left (end, deadline, cancel, too much output), nothing is left running. If the greenlet is
being killed, the stopping goes on in a greenlet of its own, which cannot be killed a second time.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from itertools import count
from resource import struct_rusage
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.running import system
from mcpgreen.running.processes import stopping
from mcpgreen.running.processes.guardian import Guardian
from mcpgreen.running.processes.pipes import PLACES, OutputPlace
from mcpgreen.running.processes.process import Child, RunningScript
from mcpgreen.running.processes.run import KILL_GRACE_SECS, Outcome, Script, ScriptRun
from mcpgreen.running.processes.spawning import PosixSpawner, Processors, Spawner, reaper
from mcpgreen.running.scripts import shebang
from mcpgreen.running.shares import Shares, Starts
from mcpgreen.running.warm_python import WarmPython

MANY_DESCRIPTORS = 65536
QUIET_LOOKS = 2
SWEEP_PAUSE_SECS = 0.001
BUSY_FILE_TRIES = 20
BUSY_FILE_PAUSE_SECS = 0.01


class Runner:
    """Starts children and knows all that are alive, so that the server can stop them together."""

    def __init__(
        self,
        *,
        directory: str,
        is_open_to_others: bool = False,
        keeps_warm: bool = False,
        next_serial: Callable[[], int] | None = None,
    ) -> None:
        """`is_open_to_others`: whether other processes of the user, as debuggers are, may look into this one.
        `keeps_warm`: whether Python scripts are forked from helpers. `next_serial` numbers calls, and runs that have no
        number yet."""
        self.next_serial = next_serial or count(1).__next__
        self._is_open_to_others = is_open_to_others
        self.tags = stopping.Tags()
        self.spawner = PosixSpawner(directory, self.tags)
        self._processors: Processors | None = None
        self._is_prepared = False
        self._strays: stopping.Strays | None = None  # None where orphans are not adopted
        self._leaders: dict[int, Child] = {}  # started by us; all that one starts carries its tag
        self._known: set[bytes] = set()  # our children, the guardian too, as the kernel writes their numbers
        self.guardian = Guardian(self.tags.prefix, self._known)
        self._stoppers: set[Any] = set()
        self.expected_tags: set[int] = set()  # of helpers that are forking, and of a keeper and its guardian
        self.starts = Starts()
        can_fork = keeps_warm and self.tags.are_limits and system.descriptor_limit() >= system.ROOMY
        self._warm = WarmPython(self) if can_fork else None
        self._output_places = Shares(PLACES)

    def run(self, run: ScriptRun) -> Outcome:
        """Run to the end, with its tag added to its environment. Raises OSError when it cannot be started."""
        if not self._is_prepared:
            self._prepare()
        tag = self.tags.of(run.serial)
        run.env[stopping.VARIABLE] = b"%d" % tag
        return self._run(run, tag, self._warm)

    def _run(self, run: ScriptRun, tag: int, warm: WarmPython | None) -> Outcome:
        running = self._start(run, tag, warm)
        child = running.child
        try:
            running.wait(run.deadline)
            if running.settle(run.deadline.remaining_secs()):
                journal.warning("%s has exited, but a child is still writing; the rest is cut off", run.script.label)
            # All that a script leaves becomes our child. So without such a child, there is nothing to stop.
            is_alone = child.returncode is not None and self._strays is not None and not self._strays.are_there()
            if not is_alone and stopping.is_anything_left(child, self._strays):
                stopping.signal_all_of(child, signal.SIGTERM, self._strays)
                stopping.wait_or_kill(child, KILL_GRACE_SECS, self._strays)
            running.note_stopped()
        except BaseException:
            # The first signal goes out now: a cancelled tool should not live until the next turn of the hub.
            stopping.signal_all_of(child, signal.SIGTERM, self._strays)
            running.cancel()
            self._in_background(self._end_cancelled, running)
            raise
        never_began = running.never_began
        self._close(running, leaves_nothing=is_alone)
        if never_began:  # a process that was waiting for its script has been killed
            return self._run(run, tag, None)
        if journal.tells_frames:
            self._log(child, run)
        return running.outcome()

    def _start(self, run: ScriptRun, tag: int, warm: WarmPython | None) -> RunningScript:
        """Start it in a process that was forked ahead, or afresh. May wait for a moment. Raises OSError."""
        is_shell = run.script.wants_table
        spare = warm.spawner_for(run) if warm is not None and not is_shell and run.tail is None else None
        if spare is not None:
            with suppress(OSError):  # its process has died, or the message is too long for it
                return self._started(run, spare, tag)
        with self.starts:
            running = self._started(run, self.spawner, tag)
        if self._processors is not None:
            self._processors.make_way(running.child.pid, scripts=len(self._leaders))
        return running

    def output_place(self, owner: Hashable) -> OutputPlace:
        """Return room in memory for the output of one call, which it takes only if that is large."""
        return OutputPlace(self._output_places, owner)

    def _started(self, run: ScriptRun, spawner: Spawner, tag: int) -> RunningScript:
        running = RunningScript(run, spawner=spawner, tag=tag, place=self.output_place(run.owner))
        self._leaders[running.child.pid] = running.child
        self._known.add(b"%d" % running.child.pid)
        return running

    def _log(self, child: Child, run: ScriptRun) -> None:
        how = f", {child.way}" if child.way else ""
        if not child.way and self._warm is not None and (reason := self._warm.why_not(run)):
            how = f", in a new Python process: {reason}"
        took_ms = (child.ended_at - child.began_at) * 1000
        journal.debug("call %d: %s ran as process %d, %d ms%s", run.serial, run.script.label, child.pid, took_ms, how)

    def process_of(self, serial: int) -> int | None:
        """Return the process that runs for the call with this number."""
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
        while not self.is_idle and time.monotonic() < give_up_at + stopping.KILL_PATIENCE_SECS:
            self._signal_all(signal.SIGKILL)
            gevent.sleep(0.005)
        self._leaders.clear()  # leaders that have not died by now are not waited for
        self._sweep()

    def after_stopping(self, action: Callable[[], None]) -> None:
        """Call this when the children that are being stopped now are gone."""
        waiting_for = list(self._stoppers)

        def wait_and_act() -> None:
            gevent.joinall(waiting_for)
            action()

        self._in_background(wait_and_act)

    def close(self, *, is_clean: bool) -> None:
        """After `stop_all`: let go of the guardian and the directory. If files are left, the guardian removes them."""
        self.guardian.dismiss(is_clean=is_clean)
        if self._strays is not None:
            self._strays.close()
        self.spawner.close()

    def know(self, pid: int, on_end: Callable[[], object] = tuple) -> None:
        """Register a child that is neither a script nor a stray, until it ends or `end_known` ends it; then `on_end` is
        called, in the hub. If the child is stopped, it is ended, because a call would have to wait for it."""
        number = b"%d" % pid
        self._known.add(number)

        def on_change(status: int, usage: struct_rusage) -> None:
            if not os.WIFSTOPPED(status):
                self._known.discard(number)
                on_end()
            else:
                self.end_known(pid)

        reaper().watch(pid, on_change)

    def knows(self, pid: int) -> bool:
        """Tell whether the child is still running; otherwise another process may have its number by now."""
        return b"%d" % pid in self._known

    def end_known(self, pid: int) -> None:
        if self.knows(pid):
            stopping.signal_process(pid, signal.SIGKILL)

    def stop_expecting(self, tag: int) -> None:
        """Expect no more forks of a helper: from now on, an unknown process with its tag is a stray."""
        self.expected_tags.discard(tag)
        if self._kill_leftovers():
            self._in_background(self._sweep)

    @property
    def is_idle(self) -> bool:
        return not self._leaders and not self._stoppers

    def prepare(self) -> None:
        """Make sure that scripts, and the files of calls, will be cleaned up. Raises InternalError."""
        if not self._is_prepared:
            try:
                self._prepare()
            except OSError as error:
                journal.error("no script can be run now: %s", error.strerror)
                raise InternalError(f"No script can be run now: {error.strerror}.") from error

    def _prepare(self) -> None:
        if not self._is_open_to_others:
            system.shut_out_others()
        reaper()  # before there is a child to be reaped
        _keep_descriptors_from_scripts()
        if self._strays is None:
            self._strays = stopping.adopted_strays(self._known, self.expected_tags)
        self._processors = Processors()
        system.keep_large_blocks_apart()
        self.guardian.start()
        self._is_prepared = True

    def _sweep(self) -> None:
        """Kill what scripts have left, until two looks in a row find nothing."""
        give_up_at = time.monotonic() + stopping.KILL_PATIENCE_SECS
        quiet_looks = 0
        while quiet_looks < QUIET_LOOKS:
            if time.monotonic() >= give_up_at:
                journal.error("processes that scripts left behind are still running after SIGKILL")
                return
            quiet_looks = 0 if self._kill_leftovers() else quiet_looks + 1
            gevent.sleep(SWEEP_PAUSE_SECS)

    def _in_background(self, function: Callable[..., None], *values: Any) -> None:
        stopper = gevent.spawn(function, *values)
        self._stoppers.add(stopper)
        stopper.rawlink(self._stoppers.discard)

    def _end_cancelled(self, running: RunningScript) -> None:
        """End a cancelled run after its first signal, and read its pipes: a script that cleans up may write."""
        running.settle()
        stopping.wait_or_kill(running.child, KILL_GRACE_SECS, self._strays)
        running.note_stopped()
        self._close(running)

    def _close(self, running: RunningScript, *, leaves_nothing: bool = False) -> None:
        """Forget a script that is gone, and look for what it, or an earlier one, has left."""
        running.close()
        child = running.child
        self._leaders.pop(child.pid, None)
        self._known.discard(b"%d" % child.pid)
        if not leaves_nothing and self._kill_leftovers():
            self._in_background(self._sweep)

    def _kill_leftovers(self) -> bool:
        """Kill processes that cannot belong to a running call; return whether there were any. A process without
        its tag can be recognised only when no script runs, apart from resident processes."""
        if self._strays is None:
            return False
        tags = {pid: child.tag for pid, child in self._leaders.items()}
        if all(child.stays for child in self._leaders.values()):
            return self._strays.kill_others(tags)
        return self._strays.kill_tagged(self.tags.all, running=set(tags.values()))

    def _signal_all(self, number: int) -> None:
        for leader in list(self._leaders.values()):
            stopping.signal_all_of(leader, number, self._strays)


def _keep_descriptors_from_scripts() -> None:
    """Keep from scripts what we have inherited from the program that started us."""
    try:
        numbers: Iterable[int] = map(int, os.listdir("/dev/fd"))
    except FileNotFoundError:
        numbers = range(min(system.descriptor_limit(), MANY_DESCRIPTORS))
    for number in numbers:
        if number > 2:
            with suppress(OSError):  # of the listing itself and closed by now, or never open
                os.set_inheritable(number, False)


def run_script(runner: Runner, run: ScriptRun) -> Outcome:
    """Run to the end. Raises Denied when it may not run, InternalError when it cannot be started."""
    script = run.script
    script.require_safe()
    tries = 0
    while True:
        try:
            return runner.run(run)
        except OSError as error:
            if error.errno == errno.ENOEXEC and run.script is script:
                # An executable text without a first line that names its interpreter.
                command = [*shebang.runner_of(script.path), script.path, *script.command[1:]]
                run = run._replace(script=script._replace(command=command))
                continue
            tries += 1
            if error.errno != errno.ETXTBSY or tries > BUSY_FILE_TRIES:
                raise _not_started(script, error) from error
        gevent.sleep(BUSY_FILE_PAUSE_SECS)  # an editor or compiler is still writing the file


def _not_started(script: Script, error: OSError) -> InternalError:
    if error.errno == errno.E2BIG:
        reason = "its environment is too large"
    elif error.errno == errno.ENOENT:
        fault = shebang.fault_of(script.path, shows_directory=False)
        reason = f"its script {fault}" if fault else "the file or its interpreter does not exist"
    else:
        reason = error.strerror or str(error)
    journal.error("%s cannot be started: %s (%s)", script.label, reason, script.path)
    return InternalError(f"{script.label} could not be started: {reason}.")
