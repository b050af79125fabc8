"""Many requests at once, each of which takes a while: who comes behind them does not have to wait for all of them."""

from __future__ import annotations

from typing import Any

from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import Wire

MANY = 600  # take a multiple of the time that is theirs in one go
WITH_BATCHES = "2025-03-26"


def request(id: str | int, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def note(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def looks(project: ProjectBuilder) -> list[dict[str, Any]]:
    """Requests that each look at the disk."""
    project.resource("note.txt", "a note\n", uri="notes:note")
    return [request(number, "resources/read", {"uri": "notes:note"}) for number in range(MANY)]


def acquainted(client: Client) -> Wire:
    """Who knows the catalogue already: the first who asks for it may have to wait, which is another matter."""
    assert "result" in client.request("resources/read", {"uri": "notes:note"})
    return client.wire


def ids_until(wire: Wire, count: int) -> list[Any]:
    """Of so many answers, in the order in which they come."""
    return [wire.receive(lambda message: "method" not in message)["id"] for _ in range(count)]


def test_a_ping_overtakes_a_burst_and_everything_else_keeps_its_order(project: ProjectBuilder, speak: Speak) -> None:
    messages = looks(project)
    wire = acquainted(speak())

    wire.send(*messages, request("ping", "ping"), request("list", "tools/list"))
    ids = ids_until(wire, MANY + 2)

    assert ids.index("ping") < MANY / 2
    assert [id for id in ids if id != "ping"] == [*range(MANY), "list"]


def test_what_is_cancelled_before_its_turn_is_never_begun(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("leave", "touch left")
    messages = looks(project)
    wire = acquainted(speak())

    wire.send(
        *messages,
        request("call", "tools/call", {"name": "leave"}),
        note("notifications/cancelled", {"requestId": "call"}),
        request("list", "tools/list"),
    )

    assert ids_until(wire, MANY + 1) == [*range(MANY), "list"]
    assert wire.request("tools/call", {"name": "none"})["error"]["code"] == -32602
    assert not (project.root / "left").exists()


def test_a_burst_is_answered_after_the_end_of_input(project: ProjectBuilder, speak: Speak) -> None:
    messages = looks(project)
    wire = acquainted(speak())

    wire.send(*messages)
    wire.close_stdin()

    assert ids_until(wire, MANY) == [*range(MANY)]
    assert wire.wait() == 0


def test_a_batch_within_a_burst_is_answered_in_its_place(project: ProjectBuilder, speak: Speak) -> None:
    """It lets others have their turns while it is served, and what comes after it must still go out."""
    messages = looks(project)
    wire = acquainted(speak(WITH_BATCHES))
    members = [request(f"member-{number}", "resources/read", {"uri": "notes:note"}) for number in range(100)]

    wire.send(*messages, members, request("list", "tools/list"))

    assert ids_until(wire, MANY) == [*range(MANY)]
    batch = wire.receive(lambda message: True)["batch"]
    assert [answer["id"] for answer in batch] == [member["id"] for member in members]
    assert ids_until(wire, 1) == ["list"]


def test_a_ping_overtakes_a_long_batch_whose_members_can_be_cancelled(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("leave", "touch left")
    messages = looks(project)
    wire = acquainted(speak(WITH_BATCHES))
    batch = [*messages, request("call", "tools/call", {"name": "leave"})]

    wire.send(batch, note("notifications/cancelled", {"requestId": "call"}), request("ping", "ping"))

    assert ids_until(wire, 1) == ["ping"]
    answers = wire.receive(lambda message: True)["batch"]
    assert [answer["id"] for answer in answers] == [*range(MANY)]
    assert not (project.root / "left").exists()
