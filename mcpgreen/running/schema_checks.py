"""Check values against schemas in a separate process (`schema_checker`), which can be stopped.

Most values need no such thing: short ones that are plainly valid by a plain schema (`quick`) cost
microseconds here. For all others two processes at the most stay ready; each ends when it has been idle for a minute.
Callers have their shares of these, and a schema that takes long again and again has one of them at the most.

Rule: if a check ends early, for any reason, no process may be left in the middle of it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from typing import Any

import gevent
from gevent.os import nb_read, nb_write

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.protocol.schemas import quick, validator
from mcpgreen.protocol.schemas.lenience import Lenience
from mcpgreen.running.processes.spawning import spawn_helper
from mcpgreen.running.runner import Runner
from mcpgreen.running.shares import Places
from mcpgreen.text import jsontext

QUICK_BYTES = 16384  # up to which a value is looked at here
MEANT_BYTES = 4096  # and up to which it is read as it was meant, which takes five times as long
PROCESSES = 2
CHECK_SECS = 5.0  # of processor time for one check
SLOW_SECS = 0.5  # a check that takes longer is slow
MANY_SLOW = 2  # slow checks in a row make a schema a slow one
PATIENCE_FACTOR = 5  # by which a check may take longer on a busy machine: its time is that of the processor
START_SECS = 20.0  # for the first answer of a process, on such a machine
READ_BYTES = 65536
WRITE_BYTES = 1 << 18
KEPT_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from mcpgreen.running.schema_checker import main; main()"


class Schema:
    """One schema, and whether a value can be judged by it here. Raises `schemas.BadSchema` at birth."""

    def __init__(self, schema: Any, *, noun: str) -> None:
        self._schema = validator.clean_copy(schema)
        self._lenience = Lenience(self._schema)
        self._is_plain = quick.is_simple(self._schema)
        self.noun = noun
        self.slow_checks = 0  # in a row

    @property
    def is_slow(self) -> bool:
        return self.slow_checks >= MANY_SLOW

    def judge_at_once(self, value: Any, encoded: bytes, *, is_lenient: bool) -> bytes | None:
        """Return the JSON of a value that is certainly valid, as it was meant if we are lenient; None if in doubt."""
        if not self._is_plain or len(encoded) > QUICK_BYTES:
            return None
        if quick.matches(self._schema, value):
            return encoded
        if not is_lenient or len(encoded) > MEANT_BYTES:
            return None
        meant = self._lenience.meant(value)
        return jsontext.dumps(meant) if meant is not value and quick.matches(self._schema, meant) else None

    @cached_property
    def encoded(self) -> bytes:
        return jsontext.dumps(self._schema)


class SchemaChecks:
    """All checks of one server."""

    def __init__(self, runner: Runner, *, timeout_secs: float) -> None:
        self._runner = runner
        self._timeout_secs = timeout_secs
        self._turns = Places(PROCESSES)
        self._slow_turn = Places(1)
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()

    def judge(
        self, schema: Schema, encoded: bytes, *, is_lenient: bool, owner: Hashable = None
    ) -> tuple[list[str], bytes]:
        """Return what is wrong, in a few sentences that a model can act on, empty when nothing is; and the value as
        JSON, as it was meant if we are lenient and only that is valid. `encoded` is the value as it was sent. Waits:
        ask `schema.judge_at_once` first. Raises `schemas.BadSchema`, and InternalError when no process can be had."""
        with self._turn(schema, owner):
            began_at = time.monotonic()
            answer = self._answer(schema, encoded, is_lenient=is_lenient)
            is_slow = time.monotonic() - began_at > SLOW_SECS
            schema.slow_checks = schema.slow_checks + 1 if is_slow else 0
        if "fault" in answer:
            raise validator.BadSchema(answer["fault"])
        return answer["problems"], answer["meant"].encode("ascii") if "meant" in answer else encoded

    @contextmanager
    def _turn(self, schema: Schema, owner: Hashable) -> Iterator[None]:
        """Wait for a turn. All slow schemas share one place; a schema may prove slow while its check waits."""
        with ExitStack() as taken:
            if not schema.is_slow:
                taken.enter_context(self._turns.held_by(owner))
            if schema.is_slow:
                taken.close()
                taken.enter_context(self._slow_turn.held_by(owner))
                taken.enter_context(self._turns.held_by(owner))
            yield

    def close(self) -> None:
        for process in (*self._idle, *self._busy):
            process.end()

    def _answer(self, schema: Schema, encoded: bytes, *, is_lenient: bool) -> Any:
        is_overdue = is_new = False
        while not (is_overdue or is_new):  # an idle process may have been about to end
            is_new = not self._idle
            process = _Process(self._runner) if is_new else self._idle.pop()
            began_at = time.monotonic()
            line = None
            self._busy.add(process)
            try:
                line = process.ask(schema, encoded, is_lenient=is_lenient, secs=self._timeout_secs)
            finally:
                self._busy.discard(process)
                if line is None:
                    process.end()
            if line is not None:
                self._idle.append(process)
                return jsontext.loads(line)
            is_overdue = time.monotonic() - began_at >= self._timeout_secs
        what = f"took longer than {self._timeout_secs:g} s" if is_overdue else "failed"
        journal.warning("checking a value against its schema %s", what)
        return {"problems": [f"checking it {what}; send less data, or simpler data"]}


class _Process:
    """One process that checks, from its start to its end."""

    def __init__(self, runner: Runner) -> None:
        runner.prepare()  # what we inherited is not for this process either
        command = [sys.executable, "-I", "-c", PROGRAM, *sys.path]
        env = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        try:
            self._pid, self._fd = spawn_helper(sys.executable, command, env, as_fd=0)
        except OSError as error:
            raise InternalError(f"Values cannot be checked now: {error.strerror}.") from error
        self._is_over = False
        self._runner = runner
        runner.know(self._pid)

    def ask(self, schema: Schema, encoded: bytes, *, is_lenient: bool, secs: float) -> bytes | None:
        """Return the line that it answers; None if there is none in time, or it has ended."""
        about = {"noun": schema.noun, "is_lenient": is_lenient, "secs": secs}
        rest = memoryview(b"\n".join([jsontext.dumps(about), schema.encoded, encoded, b""]))
        line: bytes = b""
        with gevent.Timeout(PATIENCE_FACTOR * secs + START_SECS, False), suppress(OSError):
            while rest:
                rest = rest[nb_write(self._fd, rest[:WRITE_BYTES]) :]
            while part := nb_read(self._fd, READ_BYTES):
                line += part
                if line.endswith(b"\n"):
                    return line
        return None

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            os.close(self._fd)
            self._runner.end_known(self._pid)
