"""Python scripts without the start of an interpreter: which of them, and the helpers that they are forked from.

A helper is started soon after the first script that could use it, which is started afresh. So no call ever waits for
the start of one, and a server without Python scripts has none.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import gevent

from mcpgreen import journal
from mcpgreen.running.warm.helpers import Helper, Spare, State
from mcpgreen.running.warm.interpreters import Words, interpreter_of, lasting, unusual_variables, why_fresh

if TYPE_CHECKING:
    from mcpgreen.running.processes.run import ScriptRun
    from mcpgreen.running.runner import Runner

MAX_HELPERS = 4
DELAY_SECS = 0.05  # the first script should not have to share its processor with the start of a helper
IDLE_SECS = 300.0
LOOK_SECS = 15.0
RETRY_SECS = 60.0  # after one that could not be used
SETTLED_SECS = 5.0  # one that was used so recently is not given up for another

Key = tuple[Words, tuple[str, ...], frozenset[tuple[bytes, bytes]]]


class WarmPython:
    """All helpers of a runner."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._helpers: dict[Key, Helper] = {}
        self._not_before: dict[Key, float] = {}  # when to try again what has failed
        self._starting: set[Key] = set()
        self._timer: Any = None
        self._is_over = False

    def why_not(self, run: ScriptRun) -> str:
        """Say why there was no spare for this script; empty if it is no Python script."""
        reason = why_fresh(run.script, run.env)
        return "no fork was ready for it" if reason == "" else reason or ""

    def spawner_for(self, run: ScriptRun) -> Spare | None:
        """A process to become this script; None if it has to be started afresh. May wait for a moment."""
        script = run.script
        words = interpreter_of(script.path, script.command) if script.warm is not None else None
        if words is None or script.warm is None:
            return None
        env = lasting(run.env)
        key = words, script.warm, frozenset(env.items())
        helper = self._helpers.get(key)
        if helper is not None and not helper.is_over:
            return helper.take()
        if key not in self._starting and not self._is_over and not unusual_variables(env) and self._make_room_for(key):
            self._starting.add(key)
            gevent.spawn_later(DELAY_SECS, self._start, key, env)
        return None

    def end(self) -> None:
        """End all helpers: the server ends."""
        self._is_over = True
        self._stop_timer()
        for helper in self._helpers.values():
            helper.end()
        self._helpers.clear()

    def _make_room_for(self, key: Key) -> bool:
        """End what has to end before another helper may start. Return False if none may start now."""
        self._drop(key)
        now = time.monotonic()
        if self._not_before.get(key, 0.0) > now:
            return False
        if len(self._helpers) + len(self._starting) >= MAX_HELPERS:
            oldest = min(self._helpers, key=lambda each: self._helpers[each].used_at, default=None)
            if oldest is None or now - self._helpers[oldest].used_at < SETTLED_SECS:
                return False
            self._drop(oldest)
        return True

    def _drop(self, key: Key) -> None:
        helper = self._helpers.pop(key, None)
        if helper is None:
            return
        helper.end()
        if helper.state == State.UNFIT:
            self._note_failure(key, helper.refusal)

    def _note_failure(self, key: Key, reason: str) -> None:
        journal.info("Python scripts for %s are started afresh: %s", " ".join(key[0]), reason or "their helper ended")
        now = time.monotonic()
        self._not_before = {each: until for each, until in self._not_before.items() if until > now}
        self._not_before[key] = now + RETRY_SECS

    def _start(self, key: Key, env: dict[bytes, bytes]) -> None:
        words, modules, _ = key
        try:
            with self._runner.starts:
                if not self._is_over:
                    self._helpers[key] = Helper(self._runner, words, modules, env)
        except OSError as error:
            self._note_failure(key, error.strerror or str(error))
        finally:
            self._starting.discard(key)
        if self._timer is None and not self._is_over:
            self._timer = gevent.get_hub().loop.timer(LOOK_SECS, LOOK_SECS, ref=False)
            self._timer.start(self._end_idle)

    def _end_idle(self) -> None:
        """In the hub, from time to time: end helpers that are of no use."""
        now = time.monotonic()
        for key, helper in list(self._helpers.items()):
            if helper.is_over or helper.is_stuck or now - helper.used_at > IDLE_SECS:
                self._drop(key)
        if not self._helpers:
            self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.close()
            self._timer = None
