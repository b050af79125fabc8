"""What viewers see while the official clients are at work: all viewers the same, with the figures of the clients."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.clients import scenario
from tests.clients.asynchronous import run
from tests.support.http import HttpServer
from tests.support.prerequisites import require_module
from tests.support.waiting import eventually
from tests.support.wire import clean_environment
from tests.workbench.dev_server import Dev

mcp = require_module("mcp")
COMMAND = [sys.executable, "-m", "mcpgreen"]
CALLS = {"greet": "ok", "broken": "failed", "nap": "ok", "weigh": "ok"}
Json = dict[str, Any]


def viewing(*words: str, root: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([*COMMAND, *words], stdout=pipe, stderr=pipe, text=True, env=clean_environment(), cwd=root)


def ends_in(events: list[Json]) -> list[tuple[int, str, str]]:
    return sorted((each["call"], each["name"], each["outcome"]) for each in events if is_end(each))


def is_end(event: Json) -> bool:
    return event["kind"] == "ended" and "call" in event and event["method"] == "tools/call"


def read_page(dev: Dev, pid: int, seen: list[Json]) -> None:
    """Keep what the page sees, until the server ends."""
    for name, event in dev.events(str(pid)):
        if name == "message":
            seen.append(event)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Dev]:
    (tmp_path / "own" / "tools").mkdir(parents=True)
    with Dev(tmp_path / "own") as dev:
        yield dev.enter()


def visit_with_python(url: str) -> float:
    """Call the tools, and return how long the client saw `nap` take."""

    async def act() -> float:
        async with mcp.Client(url) as client:
            await client.call_tool("greet", {"name": "Ada"})
            await client.call_tool("broken", {})
            began_at = time.monotonic()
            await client.call_tool("nap", {})
            return time.monotonic() - began_at

    took_secs: float = run(act)
    return took_secs


@pytest.mark.alone
def test_watch_trace_and_the_page_show_the_same_calls_of_the_official_clients(
    drivers: Path, tmp_path: Path, page: Dev
) -> None:
    project = scenario.build(tmp_path / "project")
    project.tool("nap", "sleep 0.8")
    trace, seen = tmp_path / "trace.jsonl", list[Json]()
    with ThreadPoolExecutor(1) as threads, HttpServer(project.root) as server:  # whose end ends the thread
        pid = server.process.pid
        eventually(lambda: pid in [each["pid"] for each in page.get("/api/servers")])
        watching = viewing("watch", str(pid), "--json", root=tmp_path)
        tracing = viewing("trace", str(trace), str(pid), root=tmp_path)
        reading = threads.submit(read_page, page, pid, seen)
        assert watching.stdout is not None and json.loads(watching.stdout.readline())["kind"] == "server"
        eventually(lambda: seen and trace.exists() and trace.read_text())
        took_secs = visit_with_python(server.url)
        scenario.driven(drivers / "client2.mjs", "default", project, url=server.url)
        server.stop()
        reading.result(timeout=30)
        printed, _ = watching.communicate(timeout=30)
        assert tracing.wait(30) == 0
        tracing.communicate()

    watched, traced = ([json.loads(line) for line in text.splitlines()] for text in (printed, trace.read_text()))
    ends = ends_in(seen)
    assert ends == ends_in(watched) == ends_in(traced)
    outcomes = {(name, outcome) for _, name, outcome in ends}
    assert CALLS.items() <= outcomes
    clients = {each["client"]["name"] for each in traced if each["kind"] == "opened"}
    assert "client-tests" in clients and len(clients) >= 2
    nap = next(each for each in traced if is_end(each) and each["name"] == "nap")
    assert sum(nap[part] for part in ("queue_ms", "run_ms", "write_ms")) == pytest.approx(took_secs * 1000, rel=0.1)
