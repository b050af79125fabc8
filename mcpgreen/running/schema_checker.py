"""The process that checks values against schemas; `schema_checks` starts it and talks to it.

A pattern or a web of `anyOf` can take a validator hours, and nothing in a process can stop it there. So this is
another process, which the kernel ends when a check takes too long, whether or not the server is still there to do it.

One check is three lines in (what it is about, the schema, the value) and one line out. Without work for a while, and
when the server is gone, it ends.

Rule: imports as little as possible before `main`, and nothing of gevent.
"""

from __future__ import annotations

import resource
import signal
from functools import lru_cache
from typing import Any

from mcpgreen.protocol.schemas import validator
from mcpgreen.running import system
from mcpgreen.text import jsontext

MAX_MEMORY_BYTES = 512 << 20
IDLE_SECS = 60
MAX_SENTENCE_CHARS = 1000
KEPT_SCHEMAS = 256  # the last ones that were used


def main() -> None:
    """Serve checks on descriptor 0, which is a socket, until its other end is closed."""
    system.shut_out_others()  # scripts could read other calls' arguments here
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(0, "rb", closefd=False) as lines, open(0, "wb", closefd=False) as answers:
        while True:
            signal.alarm(IDLE_SECS)  # which ends this process
            about, schema, value = (lines.readline() for _ in range(3))
            signal.alarm(0)
            if not value.endswith(b"\n"):
                return
            wanted = jsontext.loads(about)
            # Of the processor, not of the clock: on a busy machine no value is refused for the load that others make.
            signal.setitimer(signal.ITIMER_PROF, wanted["secs"])
            answer = answer_to(schema, value, noun=wanted["noun"], is_lenient=wanted["is_lenient"])
            signal.setitimer(signal.ITIMER_PROF, 0)
            answers.write(jsontext.dumps(answer) + b"\n")
            answers.flush()


@lru_cache(KEPT_SCHEMAS)
def compiled(schema: bytes, noun: str) -> validator.Checker:
    return validator.compile_schema(jsontext.loads(schema), noun=noun)


def answer_to(schema: bytes, value: bytes, *, noun: str, is_lenient: bool) -> dict[str, Any]:
    """Return what is wrong with the value, or with the schema; and what was meant, as JSON, if only that is right."""
    try:
        checker, given = compiled(schema, noun), jsontext.loads(value)
        problems = checker.problems(given)
        if problems and is_lenient and (meant := checker.meant(given)) is not given:
            problems = checker.problems(meant)
            if not problems:
                return {"problems": [], "meant": jsontext.dumps(meant).decode("ascii")}
        return {"problems": [problem[:MAX_SENTENCE_CHARS] for problem in problems]}
    except validator.BadSchema as error:
        return {"fault": str(error)[:MAX_SENTENCE_CHARS]}
    except MemoryError:
        return {"problems": ["the value takes too much memory to be checked"]}
