"""Shell tools beside their floors: what the SDK adds to bash itself."""

from __future__ import annotations

import time
from statistics import median

from client import Session, SubjectError, text_of
from real_tools import WARM_UP
from shell_tools import SHELL_TOOLS, ShellTool
from stand import Stand, Values, greet, list_tools, since_ms

METRIC_OF = {"one-argument": "shell_one", "parsed-arguments": "shell_parsed", "several-arguments": "shell_several"}


def shell_calls(stand: Stand) -> Values:
    """Tool and floor in turn, so that a noisy moment hurts both."""
    values: Values = {}
    with stand.start("shell") as session:
        greet(session)
        list_tools(session)
        for tool in SHELL_TOOLS:
            for _ in range(WARM_UP):
                _timed(session, tool, tool.name)
            took, floor = [], []
            for _ in range(stand.counts.shell_calls):
                took.append(_timed(session, tool, tool.name))
                floor.append(_timed(session, tool, tool.floor_name))
            name = METRIC_OF[tool.name]
            values[f"{name}_ms"] = median(took)
            values[name] = median(took) / median(floor)
    return values


def _timed(session: Session, tool: ShellTool, name: str) -> float:
    request = session.encode_call(name, tool.arguments)
    start = time.perf_counter()
    answer = session.ask(request)
    took_ms = since_ms(start)
    if text_of(answer) != tool.text:
        raise SubjectError(f"wrong answer: {answer[:200]!r}")
    return took_ms
