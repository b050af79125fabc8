"""Python scripts without the start of an interpreter: which of them, and the helpers that they are forked from.

A helper is started soon after the first script that could use it, which is started afresh. So no call ever waits for
the start of one, and a server without Python scripts has none.

Only a first line that names a Python, directly or by `env`, and nothing else, is spared its start. Options, other
programs in between (`uv run`) and variables that make a start differ are left to a fresh start.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gevent

from mcpgreen import journal
from mcpgreen.files.regular_files import without_waiting
from mcpgreen.running.scripts.shebang import LINE_BYTES, MARK
from mcpgreen.running.warm.helpers import Helper, Spare

if TYPE_CHECKING:
    from mcpgreen.running.processes.run import Script, ScriptRun
    from mcpgreen.running.runner import Runner

MAX_HELPERS = 4
DELAY_SECS = 0.05  # the first script should not have to share its processor with the start of a helper
IDLE_SECS = 300.0
LOOK_SECS = 15.0
RETRY_SECS = 60.0  # after one that could not be used
SETTLED_SECS = 5.0  # one that was used so recently is not given up for another
# The variables that a helper is started with: what the start of an interpreter, its libraries and usual packages depend
# on. All scripts that it forks have them in memory, so there is none here that may hold a secret, or belongs to a call.
LASTING = frozenset(
    b"PATH HOME USER LOGNAME SHELL LANG LANGUAGE LOCPATH TZ TZDIR TMPDIR TMP TEMP VIRTUAL_ENV CONDA_PREFIX "
    b"CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION GLIBC_TUNABLES OPENSSL_CONF OPENSSL_MODULES COVERAGE_PROCESS_START "
    b"OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS MPLBACKEND MPLCONFIGDIR".split()
)
LASTING_PREFIXES = (b"PYTHON", b"LC_", b"LD_", b"MALLOC_", b"XDG_")
# Variables that a helper obeys in the same way at its own start.
OBEYED = frozenset(
    b"PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED "
    b"PYTHONWARNINGS PYTHONNOUSERSITE PYTHONOPTIMIZE PYTHONCOERCECLOCALE PYTHONPYCACHEPREFIX "
    b"PYTHONINTMAXSTRDIGITS PYTHONUSERBASE PYTHONPLATLIBDIR".split()
)
_PYTHON = re.compile(r"python(3(\.\d+)?)?")

Words = tuple[str, ...]
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
        if helper.refusal is not None:
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


def interpreter_of(path: str, command: Sequence[str]) -> Words | None:
    """The words that start the interpreter of the script at `path`, which is run by this command; None if its start
    cannot be spared."""
    if command[-1] != path:
        return None  # it has arguments
    try:
        return plain_python(_first_words(path, command))
    except OSError:
        return None


def plain_python(words: Sequence[str]) -> Words | None:
    """The words, if they are a Python, or `env` and a Python, and nothing else."""
    names = [os.path.basename(word) for word in words]
    if len(words) == 2 and names[0] == "env" and names[1] == words[1]:
        names = names[1:]
    return tuple(words) if len(names) == 1 and _PYTHON.fullmatch(names[0]) else None


def lasting(env: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The variables of an environment that a helper is started with."""
    return {name: value for name, value in env.items() if name in LASTING or name.startswith(LASTING_PREFIXES)}


def unusual_variables(env: Mapping[bytes, bytes]) -> list[str]:
    """Names of variables that ask for a start that a helper could not make in the same way."""
    return [os.fsdecode(name) for name in env if name.startswith(b"PYTHON") and name not in OBEYED]


def why_fresh(script: Script, env: Mapping[bytes, bytes]) -> str | None:
    """Say why each run of this Python script starts its interpreter; empty if there is no reason for that, and None if
    it is no Python script."""
    try:
        words = _first_words(script.path, script.command)
    except OSError:
        return None
    if not any(os.path.basename(word).startswith("python") for word in words):
        return None
    if script.warm is None:
        return "its description says so"
    if plain_python(words) is None or script.command[-1] != script.path:
        return "its first line asks for more than a Python"
    names = unusual_variables(env)
    return f"{names[0]} is set" if names else ""


def _first_words(path: str, command: Sequence[str]) -> Sequence[str]:
    """The words that start the interpreter: those before the path, or those of the first line. Raises OSError."""
    if len(command) > 1:
        return command[:-1]
    with open(path, "rb", opener=without_waiting) as file:
        head = file.read(LINE_BYTES)
    line, newline, _ = head.partition(b"\n")
    if not line.startswith(MARK) or not newline or line.endswith(b"\r"):
        return ()
    return [os.fsdecode(word) for word in line[len(MARK) :].split()]
