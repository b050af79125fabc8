"""A day's mix of tools: of ten calls six are shell with the SDK, three are Python and one is another script; arguments
of 200 bytes, results of 2 KB, one in ten with progress.

The peers answer with functions in their own process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

from client import Session, SubjectError, encoded, text_of
from real_tools import IN_FLIGHT, REST_SECS
from shell_tools import HEAD, SOURCE
from stand import Stand, Values, greet, list_tools, since_ms

PROJECT = "mix"
TEXT = "two hundred bytes, " * 10 + "as they are"[:10]
TIMES = 10
DAY = ("repeat", "reverse", "repeat", "repeat", "fixed", "reverse", "repeat", "repeat-slowly", "reverse", "repeat")
SLOW = "repeat-slowly"  # the one with progress

SHELL = f"text=$(mcp_args_require .text)\nresult=\nfor ((i = 0; i < {TIMES}; i++)); do result+=$text; done\n"
SCRIPTS = {
    "repeat.sh": HEAD + SOURCE + SHELL + 'mcp_emit_text "$result"\n',
    "repeat-slowly.sh": HEAD + SOURCE + SHELL + 'mcp_progress 50 "half of it"\nmcp_emit_text "$result"\n',
    "reverse.py": f"#!{sys.executable}\nimport mcp_tool\n"
    f'mcp_tool.emit_text(mcp_tool.require("text")[::-1] * {TIMES})\n',
    "fixed.sh": f"#!/bin/sh\nprintf %s '{'fixed' * 400}'\n",
}
FUNCTIONS: dict[str, Callable[[str], str]] = {
    "repeat": lambda text: text * TIMES,
    "repeat-slowly": lambda text: text * TIMES,
    "reverse": lambda text: text[::-1] * TIMES,
    "fixed": lambda text: "fixed" * 400,
}


def write_mix(root: Path) -> None:
    tools = root / "tools"
    tools.mkdir(parents=True)
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    for file, script in SCRIPTS.items():
        path = tools / file
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)
        path.with_suffix(".meta.json").write_bytes(encoded({"name": path.stem, "inputSchema": schema}).rstrip())


def mixed_calls(stand: Stand) -> Values:
    """One by one with a rest in between, and many at a time."""
    count = stand.counts.mixed_calls
    with stand.start(PROJECT) as session:
        greet(session)
        list_tools(session)
        for name in DAY * 4:
            _timed(session, name)
        durations = [_timed(session, DAY[number % len(DAY)]) for number in range(count)]
        requests = [_request(session, DAY[number % len(DAY)]) for number in range(2 * count)]
        start = time.perf_counter()
        answers = session.exchange(requests, in_flight=IN_FLIGHT)
        took_ms = since_ms(start)
        for answer in answers:
            if len(text_of(answer)) != len(TEXT) * TIMES:
                raise SubjectError(f"wrong answer: {answer[:200]!r}")
    return {
        "mix_p50": median(durations),
        "mix_p99": quantiles(durations, n=100)[-1],
        "mix_16": len(requests) / took_ms * 1000,
    }


def _timed(session: Session, name: str) -> float:
    request = _request(session, name)
    time.sleep(REST_SECS)
    start = time.perf_counter()
    answer = session.ask(request)
    took_ms = since_ms(start)
    if text_of(answer) != FUNCTIONS[name](TEXT):
        raise SubjectError(f"wrong answer: {answer[:200]!r}")
    return took_ms


def _request(session: Session, name: str) -> bytes:
    return session.encode_call(name, {"text": TEXT}, progress=name == SLOW)
