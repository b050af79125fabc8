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
        for pid, row in {dev.pid: ("own", True, "in-process"), other.pid: (str(other.pid), False, "stdio")}.items():
            assert (rows[pid]["id"], rows[pid]["own"], rows[pid]["transport"]) == row
            assert rows[pid]["project"] == os.path.realpath(project.root)
        own, others = dev.events(), dev.events(str(other.pid))
        answer = dev.play("stats").wait_for("answer")
        assert text_of(other.result("tools/call", {"name": "stats"})) == "3 lines"
        numbers = [until_the_call_ended(events, pid) for events, pid in ((own, dev.pid), (others, other.pid))]
        assert numbers[0] == answer["call"]
        assert dev.send("GET", "/api/events?server=1").status == 404


def until_the_call_ended(events: Iterator[tuple[str, Json]], pid: int) -> int:
    """Read the events of a server until its call of `stats` has ended. Return the number of the call."""
    server = next(event for name, event in events if not name)
    queued = next(event for _, event in events if event.get("name") == "stats")
    kinds: Json = {}
    while not {"ended", "frame"} <= kinds.keys():
        _, event = next(events)
        if event.get("call") == queued["call"] or event["kind"] == "frame":
            kinds[event["kind"]] = event
    assert (server["kind"], server["pid"], queued["kind"]) == ("server", pid, "queued")
    assert {"started", "output"} <= kinds.keys() and kinds["exited"]["exit"] == 0
    return int(queued["call"])
