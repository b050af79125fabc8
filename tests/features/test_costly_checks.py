"""Values whose check by a schema takes long: nobody else waits for it, and it comes to an end."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Json, Start, Wire, text_of

EMAIL = r"^([a-zA-Z0-9]+[._-]?)+@example\.com$"
ENDLESS = "a" * 60 + "!"


def takes(**properties: Any) -> Json:
    return {"type": "object", "properties": properties}


def checkers_of(wire: Wire) -> list[int]:
    """The processes in which the server has values checked."""
    children = Path(f"/proc/{wire.process.pid}/task/{wire.process.pid}/children").read_text(encoding="ascii").split()
    found = []
    for pid in children:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            if b"checker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
    return found


def start_call(wire: Wire, name: str, arguments: Json) -> Any:
    return wire.start_request("tools/call", {"name": name, "arguments": arguments})


COSTLY = {
    "pattern": (takes(mail={"type": "string", "pattern": EMAIL}), {"mail": ENDLESS}),
    "propertyNames": ({"propertyNames": {"pattern": EMAIL}}, {ENDLESS: 1}),
    "patternProperties": ({"patternProperties": {EMAIL: {"type": "null"}}}, {ENDLESS: 1}),
    "additionalProperties": (
        {"patternProperties": {EMAIL: {}}, "additionalProperties": False},
        {ENDLESS: 1},
    ),
    "anyOf": (
        takes(
            x={
                "$defs": {"n": {"items": {"anyOf": [{"$ref": "#/properties/x/$defs/n"}] * 8}, "type": "array"}},
                "$ref": "#/properties/x/$defs/n",
            }
        ),
        {"x": [[[[[[[[[[1]]]]]]]]]]},
    ),
}


@pytest.mark.parametrize("case", COSTLY)
def test_an_endless_check_is_ended_while_other_calls_go_on(project: ProjectBuilder, start: Start, case: str) -> None:
    """An ordinary pattern for e-mail addresses held everything for 24 s, cancellation and the end of input included."""
    schema, arguments = COSTLY[case]
    project.tool("picky", "echo ran", inputSchema=schema)
    wire = start(CHECK_SECS=0.3).greeted()
    call = start_call(wire, "picky", arguments)

    assert wire.request("ping")["result"] == {}
    assert call not in [message.get("id") for message in wire.seen]
    result = wire.response(call)["result"]
    assert result["isError"] is True
    assert "checking it took longer than 0.3 s" in text_of(result)
    eventually(lambda: not checkers_of(wire))
    assert wire.call_tool("picky", {})["isError"] is False


def test_many_different_items_are_told_apart_quickly(project: ProjectBuilder, client: Wire) -> None:
    """3,000 objects were compared with each other, which took 15 s."""
    project.tool("unique", "echo ran", inputSchema=takes(items={"type": "array", "uniqueItems": True}))
    items = [{"id": number, "tags": ["a", "b"]} for number in range(3000)]

    assert client.call_tool("unique", {"items": items})["isError"] is False
    again = client.call_tool("unique", {"items": [*items, {"tags": ["a", "b"], "id": 7.0}]})
    assert "must not have the same item twice" in text_of(again)


@pytest.mark.parametrize("text", ["x" * 3_000_000, ["abc"] * 60_000], ids=["long", "many"])
def test_a_large_value_is_checked_elsewhere(project: ProjectBuilder, client: Wire, text: Any) -> None:
    kind = {"type": "string"} if isinstance(text, str) else {"type": "array", "items": {"type": "string"}}
    project.tool("takes", "echo ran", inputSchema=takes(text=kind, number={"type": "integer"}))
    call = start_call(client, "takes", {"text": text, "number": 1})

    assert client.request("ping")["result"] == {}
    assert call not in [message.get("id") for message in client.seen]
    assert text_of(client.response(call)["result"]) == "ran\n"
    assert "number must be integer" in text_of(client.call_tool("takes", {"text": text, "number": "x"}))


def test_a_cancelled_call_takes_its_check_with_it(project: ProjectBuilder, client: Wire) -> None:
    schema, arguments = COSTLY["pattern"]
    project.tool("picky", "echo ran", inputSchema=schema)
    call = start_call(client, "picky", arguments)
    eventually(lambda: checkers_of(client))
    client.notify("notifications/cancelled", {"requestId": call})

    eventually(lambda: not checkers_of(client))
    assert client.call_tool("picky", {})["isError"] is False


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
def test_no_check_outlives_the_server(project: ProjectBuilder, start: Start, end: str) -> None:
    schema, arguments = COSTLY["pattern"]
    project.tool("picky", "echo ran", inputSchema=schema)
    wire = start(CHECK_SECS=0.5).greeted()
    start_call(wire, "picky", arguments)
    (pid,) = eventually(lambda: checkers_of(wire))
    wire.process.send_signal(getattr(signal, end))
    wire.wait()

    eventually(lambda: not is_alive(pid))


def test_a_killed_checker_is_replaced(project: ProjectBuilder, client: Wire) -> None:
    project.tool("picky", "echo ran", inputSchema=takes(x={"pattern": "^a"}))
    client.call_tool("picky", {"x": "a"})
    (pid,) = checkers_of(client)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid))

    assert "must match the pattern" in text_of(client.call_tool("picky", {"x": "b"}))


def test_a_schema_that_cannot_be_used_is_its_authors_fault_every_time(project: ProjectBuilder, client: Wire) -> None:
    project.tool("odd", "echo ran", inputSchema=takes(x={"minLength": -1}))

    for _ in range(2):
        error = client.error("tools/call", {"name": "odd", "arguments": {"x": 1}})
        assert "invalid inputSchema" in error["message"]
