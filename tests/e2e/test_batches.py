"""Arrays of messages: one revision has them, a setting allows them elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Json, Start, Wire

WITH_BATCHES = "2025-03-26"
PINGS = [{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in ("a", "b")]


def batch_of(wire: Wire) -> list[Json]:
    return wire.receive(lambda message: "batch" in message)["batch"]


def refusal_of(wire: Wire) -> Json:
    refusal = wire.receive(lambda message: "error" in message)
    assert "id" not in refusal
    return refusal["error"]


@pytest.mark.requirement("P-031")
def test_the_answers_to_a_batch_come_as_one_array(speak: Speak) -> None:
    wire = speak(WITH_BATCHES).wire
    wire.send([*PINGS, {"jsonrpc": "2.0", "id": "c", "method": "no/such"}])

    answers = {answer["id"]: answer for answer in batch_of(wire)}
    assert answers["a"]["result"] == answers["b"]["result"] == {}
    assert answers["c"]["error"]["code"] == -32601


@pytest.mark.requirement("P-031")
def test_a_batch_waits_for_its_slowest_member_while_other_requests_go_on(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("wait", "until [ -e go ]; do sleep 0.01; done; echo done")
    wire = speak(WITH_BATCHES).wire
    wire.send([PINGS[0], {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "wait"}}])
    assert not any("batch" in message for message in wire.settle())
    project.write("go", "")

    assert {answer["id"] for answer in batch_of(wire)} == {"a", "slow"}


@pytest.mark.requirement("P-031")
def test_progress_of_a_member_does_not_wait_for_the_others(project: ProjectBuilder, speak: Speak) -> None:
    progress = '{"method":"notifications/progress","params":{"progress":1}}'
    project.tool("wait", f"echo '{progress}' > $MCP_PROGRESS_STREAM; until [ -e go ]; do sleep 0.01; done")
    wire = speak(WITH_BATCHES).wire
    params = {"name": "wait", "_meta": {"progressToken": "t"}}
    wire.send([PINGS[0], {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": params}])
    wire.notice("notifications/progress")
    project.write("go", "")

    assert {answer.get("id") for answer in batch_of(wire)} == {"a", "slow"}


@pytest.mark.requirement("P-031")
def test_a_batch_of_notifications_is_not_answered(speak: Speak) -> None:
    wire = speak(WITH_BATCHES).wire
    seen_before = len(wire.seen)
    wire.send([{"jsonrpc": "2.0", "method": "notifications/whatever"}] * 2)

    assert wire.settle()[seen_before:] == []


@pytest.mark.requirement("P-031")
def test_an_empty_batch_is_one_error(speak: Speak) -> None:
    wire = speak(WITH_BATCHES).wire
    wire.send([])

    assert refusal_of(wire)["code"] == -32600


@pytest.mark.requirement("P-031")
@pytest.mark.parametrize("member", [5, "x", None, [], {}, {"jsonrpc": "2.0", "id": None, "method": "ping"}], ids=str)
def test_an_impossible_member_is_refused_by_itself(speak: Speak, member: Any) -> None:
    wire = speak(WITH_BATCHES).wire
    wire.send([PINGS[0], member, PINGS[1]])

    answers = batch_of(wire)
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32600]
    assert [answer["id"] for answer in answers if "id" in answer] == ["a", "b"]


@pytest.mark.requirement("P-031")
def test_a_malformed_member_does_not_split_the_answers(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("wait", "until [ -e go ]; do sleep 0.01; done; echo done")
    wire = speak(WITH_BATCHES).wire
    slow = {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "wait"}}
    wire.send([{"jsonrpc": "2.0", "id": "odd"}, slow])
    wire.settle()
    project.write("go", "")

    assert {answer["id"] for answer in batch_of(wire)} == {"odd", "slow"}


@pytest.mark.requirement("P-031")
def test_a_response_inside_a_batch_is_ignored(speak: Speak) -> None:
    wire = speak(WITH_BATCHES).wire
    wire.send([PINGS[0], {"jsonrpc": "2.0", "id": 99, "result": {}}])

    assert [answer["id"] for answer in batch_of(wire)] == ["a"]


@pytest.mark.requirement("P-031")
def test_initialize_cannot_be_part_of_a_batch(start: Start) -> None:
    wire = start(compat_batches="true")
    wire.send([{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": WITH_BATCHES}}])

    assert [answer["error"]["code"] for answer in batch_of(wire)] == [-32600]
    assert wire.handshake(WITH_BATCHES)


@pytest.mark.requirement("P-031")
def test_a_cancelled_member_is_left_out(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("stuck", "touch running; sleep 60")
    wire = speak(WITH_BATCHES).wire
    wire.send([PINGS[0], {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "stuck"}}])
    eventually(lambda: (project.root / "running").exists())
    wire.notify("notifications/cancelled", {"requestId": "slow"})

    assert [answer["id"] for answer in batch_of(wire)] == ["a"]


@pytest.mark.requirement("P-032")
@pytest.mark.parametrize("revision", [name for name in ALL_REVISIONS if name not in (WITH_BATCHES, "2024-11-05")])
def test_there_are_no_batches_in_other_revisions(speak: Speak, revision: str) -> None:
    wire = speak(revision).wire
    wire.send(PINGS)

    assert refusal_of(wire)["code"] == -32600


@pytest.mark.requirement("P-032")
def test_there_are_no_batches_before_the_handshake(wire: Wire) -> None:
    wire.send(PINGS)

    assert refusal_of(wire)["code"] == -32600


@pytest.mark.requirement("G-compat-batches")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_setting_allows_batches_everywhere(speak: Speak, revision: str) -> None:
    wire = speak(revision, compat_batches="true").wire
    wire.send(PINGS)

    assert [answer["id"] for answer in batch_of(wire)] == ["a", "b"]
