"""The process in which values are checked by their schemas: `schema_checks` starts it and talks to it.

A pattern or a web of `anyOf` can take a validator hours, and nothing in a process can stop it there. So this is
another process, which the kernel ends when a check takes too long, whether or not the server is still there to do it.

One check is three lines in (what it is about, the schema, the value) and one line out. Without work for a while, and
when the server is gone, it ends.

Rule: imports as little as possible before `main`, and nothing of gevent.
"""

from __future__ import annotations

import os
import resource
import select
import signal
from functools import lru_cache
from typing import Any

from mcpgreen.protocol.schemas import validator
from mcpgreen.running import system
from mcpgreen.text import jsontext

MAX_MEMORY_BYTES = 512 << 20
IDLE_SECS = 60.0
MAX_SENTENCE_CHARS = 1000
READ_BYTES = 1 << 18
KEPT_SCHEMAS = 256  # the last ones that were used


def main() -> None:
    """Serve checks on descriptor 0, which is a socket, until its other end is closed."""
    system.shut_out_others()  # scripts could read other calls' arguments here
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lines = Lines()
    while (about := lines.next()) is not None:
        schema, value = lines.next(), lines.next()
        if schema is None or value is None:
            return
        wanted = jsontext.loads(about)
        # Of the processor, not of the clock: on a busy machine no value is refused for the load that others make.
        signal.setitimer(signal.ITIMER_PROF, wanted["secs"])
        answer = answer_to(schema, value, noun=wanted["noun"], is_lenient=wanted["is_lenient"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(jsontext.dumps(answer) + b"\n")


@lru_cache(KEPT_SCHEMAS)
def compiled(schema: bytes, noun: str) -> validator.Checker:
    return validator.compile_schema(jsontext.loads(schema), noun=noun)


def answer_to(schema: bytes, value: bytes, *, noun: str, is_lenient: bool) -> dict[str, Any]:
    """What is wrong with the value, or with the schema."""
    try:
        return _judgement(compiled(schema, noun), jsontext.loads(value), is_lenient=is_lenient)
    except validator.BadSchema as error:
        return {"fault": str(error)[:MAX_SENTENCE_CHARS]}
    except MemoryError:
        return {"problems": ["the value takes too much memory to be checked"]}


def _judgement(checker: validator.Checker, value: Any, *, is_lenient: bool) -> dict[str, Any]:
    """What is wrong, and what was meant, as JSON, if only that is right."""
    problems = checker.problems(value)
    if problems and is_lenient:
        meant = checker.meant(value)
        if meant is not value:
            problems = checker.problems(meant)
            if not problems:
                return {"problems": [], "meant": jsontext.dumps(meant).decode("ascii")}
    return {"problems": [problem[:MAX_SENTENCE_CHARS] for problem in problems]}


class Lines:
    """The lines that come in."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def next(self) -> bytes | None:
        """The next line; None at the end, and when nothing has come for a while."""
        while not self._parts or b"\n" not in self._parts[-1]:
            if not select.select([0], [], [], IDLE_SECS)[0]:
                return None
            part = os.read(0, READ_BYTES)
            if not part:
                return None
            self._parts.append(part)
        line, _, rest = b"".join(self._parts).partition(b"\n")
        self._parts = [rest] if rest else []
        return line


def send(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(0, rest) :]
