"""Ids of requests: which are accepted, how they come back, and what happens to those in use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Wire, modern_meta


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    shared_project.tool("echo", 'printf %s "$MCP_TOOL_ARGS_JSON"')


@pytest.mark.requirement("P-013", "P-026")
@pytest.mark.parametrize("id", [0, -1, "", "1", 1, 2**60, -(2**63), 10**30, "\u20ac", "a b\n", "x" * 10_000], ids=ascii)
def test_a_request_is_answered_under_its_own_id(shared_speak: Speak, id: Any) -> None:
    wire = shared_speak().wire

    assert wire.request("ping", id=id)["result"] == {}
    assert wire.error("no/such", id=id)["code"] == -32601


@pytest.mark.requirement("P-026")
@pytest.mark.parametrize("id", [0, "", "listen-1", 2**60], ids=ascii)
def test_a_stateless_request_is_answered_under_its_own_id(shared_speak: Speak, id: Any) -> None:
    assert shared_speak("2026-07-28").request("tools/list", id=id)["result"]["tools"]


@pytest.mark.requirement("P-027")
@pytest.mark.parametrize("id", ["null", "true", "false", "1.5", "{}", "[]", "[1]", '{"a":1}'])
def test_an_impossible_id_is_refused_without_an_id(shared_speak: Speak, id: str) -> None:
    wire = shared_speak().wire
    wire.send_bytes(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % id.encode())
    refusal = wire.receive(lambda message: "error" in message)

    assert refusal["error"]["code"] == -32600
    assert "id" not in refusal


@pytest.mark.requirement("P-027")
def test_one_point_zero_is_answered_as_one(shared_speak: Speak) -> None:
    wire = shared_speak().wire
    wire.methods[1] = "ping"
    wire.send_bytes(b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}\n')

    assert wire.response(1)["result"] == {}
    assert json.loads(wire.raw_lines[-1])["id"] == 1
    assert b'"id":1,' in wire.raw_lines[-1].replace(b" ", b"")


@pytest.mark.requirement("P-028")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_number_and_its_text_are_two_requests(shared_speak: Speak, revision: str) -> None:
    client = shared_speak(revision)
    client.start_tool("echo", {"from": "number"}, id=1000)
    client.start_tool("echo", {"from": "text"}, id="1000")

    assert "number" in client.wire.response(1000)["result"]["content"][0]["text"]
    assert "text" in client.wire.response("1000")["result"]["content"][0]["text"]


@pytest.mark.requirement("P-029")
@pytest.mark.parametrize("id", [0, "five"])
def test_an_id_in_use_is_refused_and_the_first_request_goes_on(project: ProjectBuilder, client: Wire, id: Any) -> None:
    project.tool("wait", "touch running; until [ -e go ]; do sleep 0.01; done; echo done")
    client.start_request("tools/call", {"name": "wait"}, id=id)
    eventually(lambda: (project.root / "running").exists())

    assert client.error("ping", id=id)["code"] == -32600

    client.methods[id] = "tools/call"
    project.write("go", "")
    assert client.response(id)["result"]["content"][0]["text"] == "done\n"


@pytest.mark.requirement("P-029")
def test_an_id_is_free_again_after_the_answer(project: ProjectBuilder, client: Wire) -> None:
    project.tool("hello", "echo hello")

    for _ in range(3):
        assert client.result("tools/call", {"name": "hello"}, id=77)["content"][0]["text"] == "hello\n"


@pytest.mark.requirement("P-029")
def test_the_id_of_an_open_listen_is_in_use(wire: Wire) -> None:
    meta = modern_meta()
    wire.start_request("subscriptions/listen", {"notifications": {}, "_meta": meta}, id="listen")
    wire.notice("notifications/subscriptions/acknowledged")

    assert wire.error("tools/list", {"_meta": meta}, id="listen")["code"] == -32600


@pytest.mark.requirement("P-024")
def test_each_of_many_pipelined_requests_gets_exactly_one_answer(client: Wire) -> None:
    client.send(*({"jsonrpc": "2.0", "id": f"n{number}", "method": "ping"} for number in range(500)))

    for number in range(500):
        assert client.response(f"n{number}")["result"] == {}
    client.settle()
    assert len({str(message["id"]) for message in client.seen}) == len(client.seen)
