"""From exec to the first list: of many tools, on a second start, and with a static registry.

What a server keeps for its next start is made ready before the clock runs. The floors and the SDKs keep nothing: for
them every start is the first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from bars import OURS
from client import SubjectError
from stand import Stand, Values, greet, list_tools, since_ms

PATIENCE_SECS = 10.0
STATIC = {"MCPGREEN_STATIC_REGISTRY": "true"}


def first_starts(stand: Stand) -> Values:
    return {"first_list_1000": exec_to_list(stand, "tools-1000", {}, tool_count=1000)}


def second_starts(stand: Stand) -> Values:
    env = cache_env(stand, "again")
    make_ready(stand, "tools-1000", env)
    return {"again_list_1000": exec_to_list(stand, "tools-1000", env, tool_count=1000)}


def static_starts(stand: Stand) -> Values:
    registry = stand.folder("static") / ".registry"
    if stand.subject.name == OURS and not (registry / "prompts.json").exists():
        run_until(stand, "static", {}, registry / "prompts.json")
    env = {**cache_env(stand, "static"), **STATIC}
    make_ready(stand, "static", env)
    return {"static_list": exec_to_list(stand, "static", env, tool_count=100)}


def exec_to_list(stand: Stand, project: str, env: Mapping[str, str], *, tool_count: int) -> float:
    durations = []
    for _ in range(stand.counts.starts):
        with stand.start(project, env) as session:
            greet(session)
            listed = list_tools(session)
            durations.append(since_ms(session.started_at))
            if listed != tool_count:
                raise SubjectError(f"listed {listed} tools instead of {tool_count}")
    return median(durations)


def cache_env(stand: Stand, name: str) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(stand.folder(f"cache-{name}")), "MCPGREEN_LIST_CACHE": "true"}


def make_ready(stand: Stand, project: str, env: Mapping[str, str]) -> None:
    """Start and list until the server has kept something; it waits with that until files are some seconds old."""
    kept = Path(env["XDG_CACHE_HOME"]) / "mcpgreen-lists"
    give_up_at = time.monotonic() + 3 * PATIENCE_SECS
    while stand.subject.name == OURS and not any(kept.glob("[0-9a-f]*")):
        if time.monotonic() > give_up_at:
            raise SubjectError("nothing is kept for the second start")
        run_until(stand, project, env, kept, patience_secs=3.0)


def run_until(
    stand: Stand, project: str, env: Mapping[str, str], path: Path, *, patience_secs: float = PATIENCE_SECS
) -> None:
    with stand.start(project, env) as session:
        greet(session)
        list_tools(session)
        give_up_at = time.monotonic() + patience_secs
        while time.monotonic() < give_up_at and not (any(path.glob("*")) if path.is_dir() else path.exists()):
            time.sleep(0.01)
        time.sleep(0.2)  # the other lists follow at once
