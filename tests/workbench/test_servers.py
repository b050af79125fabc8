"""The events of the page's own server and of others, as the page gets them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Start, text_of
from tests.workbench.dev_server import Dev, Json


def test_the_page_sees_its_own_calls_and_those_of_a_server_of_the_same_user(
    project: ProjectBuilder, start: Start, tmp_path: Path
) -> None:
    project.tool("stats", "printf '3 lines'")
    env = {"XDG_RUNTIME_DIR": str(tmp_path)}
    tmp_path.chmod(0o700)
    other = start(env=env).greeted()
    with Dev(project.root, env=env) as dev:
        dev.enter()
        rows = eventually(
            lambda: other.pid in (found := {each["pid"]: each for each in dev.get("/api/servers")}) and found
        )
        for pid, row in {dev.pid: ("own", "in-process"), other.pid: (str(other.pid), "stdio")}.items():
            assert (rows[pid]["id"], rows[pid]["transport"]) == row
            assert rows[pid]["project"] == os.path.realpath(project.root)
        own, others = dev.events(), dev.events(str(other.pid))
        answer = dev.play("stats").wait_for("answer")
        assert text_of(other.result("tools/call", {"name": "stats"})) == "3 lines"
        numbers = [until_the_call_ended(events, pid) for events, pid in ((own, dev.pid), (others, other.pid))]
        assert numbers[0] == answer["call"]
        assert dev.send("GET", "/api/events?server=1").status == 404


def until_the_call_ended(events: Iterator[tuple[str, Json]], pid: int) -> int:
    """Read the events of a server until its call of `stats` is answered. Return the number of the call."""
    plain = (event for name, event in events if name == "message")
    server = next(plain)
    seen: list[Json] = []
    while not (seen and seen[-1].get("way") == "out" and "3 lines" in seen[-1]["frame"]):
        seen.append(next(plain))
    queued = next(event for event in seen if event["kind"] == "queued" and event.get("name") == "stats")
    kinds = {event["kind"] for event in seen if event.get("call") == queued["call"]}
    assert (server["kind"], server["pid"]) == ("server", pid)
    assert {"queued", "started", "exited", "output", "ended"} <= kinds
    assert any("stats" in event["frame"] for event in seen if event.get("way") == "in")
    return int(queued["call"])
