"""Tools that take too long."""

from __future__ import annotations

import json

import pytest

from tests.support import ways
from tests.support.client import ALL_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

way, project = ways.way, ways.project
REPORT = json.dumps({"method": "notifications/progress", "params": {"progress": 1}})
SINCE_STRUCTURE = ("2025-06-18", "2025-11-25", "2026-07-28")


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-timeout")
def test_a_tool_past_its_time_is_stopped_with_its_children(project: ProjectBuilder, speak: Speak, way: str) -> None:
    project.tool("stuck", "sleep 600 & echo $! >> children; echo late >&2; wait", timeoutSecs=1.5)
    clients = {revision: speak(revision) for revision in ALL_REVISIONS}
    ids = {revision: client.start_tool("stuck") for revision, client in clients.items()}
    results = {revision: clients[revision].wire.response(id)["result"] for revision, id in ids.items()}

    children = project.read("children").split()
    if way == "resident":  # it was told, and has a moment to go on with other calls
        eventually(lambda: not any(map(is_alive, children)))
    assert (len(children), any(map(is_alive, children))) == (len(ALL_REVISIONS), False)
    for result in results.values():
        assert result["isError"] is True
        assert text_of(result) == "Tool timed out after 1.5s"
        assert result["_meta"]["stderr"] == "late\n"
    for result in map(results.__getitem__, SINCE_STRUCTURE):
        assert result["structuredContent"] == {
            "success": False,
            "error": {
                "type": "timeout",
                "message": "Tool timed out after 1.5s",
                "timeoutSecs": 1.5,
                "reason": "fixed",
                "exitCode": result["_meta"]["exitCode"],
            },
        }
        assert result["_meta"]["exitCode"] in (124, 137, 143)


@pytest.mark.requirement("G-timeout")
def test_a_hint_is_passed_on(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("stuck", "sleep 600", timeoutSecs=0.1, timeoutHint="try less")
    result = speak().call_tool("stuck")

    assert text_of(result) == "Tool timed out after 0.1s\n\nSuggestion: try less"
    assert result["structuredContent"]["error"]["hint"] == "try less"


@pytest.mark.requirement("G-timeout")
def test_the_request_decides_over_the_tool_and_the_tool_over_the_setting(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("own", "sleep 600", timeoutSecs=0.2)
    project.tool("none", "sleep 600")
    client = speak(default_tool_timeout=0.3)

    assert "after 0.1s" in text_of(client.result("tools/call", {"name": "own", "timeoutSecs": 0.1}))
    assert "after 0.2s" in text_of(client.call_tool("own"))
    assert "after 0.3s" in text_of(client.call_tool("none"))


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-timeout")
def test_a_client_cannot_hold_a_place_for_longer_than_the_operator_allows(
    project: ProjectBuilder, speak: Speak
) -> None:
    """With enough requests of this kind nobody else was served any more."""
    project.tool("plain", "sleep 600")
    project.tool("short", "sleep 600", maxTimeoutSecs=0.1)
    project.tool("long", "sleep 600", timeoutSecs=0.4)
    project.prompt("stuck.sh", "#!/bin/sh\nexec sleep 600\n")
    project.program("prompts/stuck.completion", "exec sleep 600")
    client = speak(default_tool_timeout=0.1, resource_timeout_secs=1, max_timeout_secs=0.2)

    asked = {"ref": {"type": "ref/prompt", "name": "stuck"}, "argument": {"name": "a", "value": ""}}
    completion = client.start("completion/complete", {**asked, "timeoutSecs": 1e9})
    secs = {name: client.start("tools/call", {"name": name, "timeoutSecs": 1e9}) for name in ("plain", "short", "long")}
    texts = {name: text_of(client.wire.response(id)["result"]) for name, id in secs.items()}
    assert "after 0.2s" in texts["plain"]
    assert "after 0.1s" in texts["short"]
    assert "after 0.4s" in texts["long"]  # as it may have without asking
    assert client.error("prompts/get", {"name": "stuck", "timeoutSecs": 1e9})["message"].endswith("after 0.2s")
    assert client.wire.response(completion)["error"]["message"].endswith("after 1s")


@ways.per_call("signals")
@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-timeout")
def test_a_tool_that_ignores_the_polite_signal_is_killed(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("deaf", "trap '' TERM; echo $$ > deaf.pid; while :; do sleep 0.05; done", timeoutSecs=1.5)
    result = speak(KILL_GRACE_SECS=0.1).call_tool("deaf")

    assert result["_meta"]["exitCode"] == 137
    assert not is_alive(project.read("deaf.pid"))


@ways.cheapest(way=["fresh"])  # test_ways.py has it for the others
@pytest.mark.requirement("G-timeout-progress")
def test_progress_extends_the_time_of_a_tool_that_says_so(project: ProjectBuilder, speak: Speak) -> None:
    # Twelve reports, each within the time, together far beyond it.
    script = f"""for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
      echo '{REPORT}' >> "$MCP_PROGRESS_STREAM"; sleep 0.2; done; echo done"""
    project.tool("steady", script, timeoutSecs=2, progressExtendsTimeout=True)

    assert text_of(speak().call_tool("steady")) == "done\n"


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-timeout-progress")
def test_a_tool_that_falls_silent_has_timed_out_for_lack_of_progress(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("silent", "sleep 600", timeoutSecs=0.2, progressExtendsTimeout=True, maxTimeoutSecs=60)
    result = speak().call_tool("silent")

    assert text_of(result) == "Tool timed out after 0.2s (no progress reported)"
    error = result["structuredContent"]["error"]
    assert (error["reason"], error["progressExtendsTimeout"], error["maxTimeoutSecs"]) == ("idle", True, 60)


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-timeout-progress")
def test_progress_does_not_extend_the_time_beyond_its_cap(project: ProjectBuilder, speak: Speak) -> None:
    script = f"""while :; do echo '{REPORT}' >> "$MCP_PROGRESS_STREAM"; sleep 0.02; done"""
    project.tool("endless", script, timeoutSecs=1.5, maxTimeoutSecs=1.6)
    result = speak(progress_extends_timeout="true").call_tool("endless")

    assert text_of(result) == "Tool exceeded maximum runtime of 1.6s"
    assert result["structuredContent"]["error"]["reason"] == "max_exceeded"


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-timeout-progress")
def test_without_the_setting_progress_does_not_extend_the_time(project: ProjectBuilder, speak: Speak) -> None:
    script = f"""while :; do echo '{REPORT}' >> "$MCP_PROGRESS_STREAM"; sleep 0.02; done"""
    project.tool("endless", script, timeoutSecs=0.3)

    assert text_of(speak().call_tool("endless")) == "Tool timed out after 0.3s"


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-timeout")
def test_waiting_for_a_slot_does_not_count(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("first", "touch running; sleep 1.2; echo first")
    project.tool("second", "echo second")
    client = speak(max_concurrent_requests=1)
    first = client.start_tool("first")
    eventually(lambda: (project.root / "running").exists())
    second = client.start("tools/call", {"name": "second", "timeoutSecs": 1})

    assert text_of(client.wire.response(first)["result"]) == "first\n"
    assert text_of(client.wire.response(second)["result"]) == "second\n"
