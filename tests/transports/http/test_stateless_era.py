"""Clients of the stateless era: each request stands alone, and says all in its envelope and headers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http import BOTH_TYPES, HttpServer, Serve
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import META_PREFIX, MODERN, text_of

ASKS = 'source "$MCP_SDK/tool-sdk.sh"; mcp_elicit_confirm "Sure?" >/dev/null && echo yes'
VERSION, CAPABILITIES = META_PREFIX + "protocolVersion", META_PREFIX + "clientCapabilities"


@pytest.mark.requirement("G-http-stateless-methods")
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
def test_methods_other_than_post_are_405(shared_server: HttpServer, method: str) -> None:
    with shared_server.stateless().send(method, headers={"MCP-Protocol-Version": MODERN}) as reply:
        assert reply.status == 405
        assert reply.headers["Allow"] == "POST"


@pytest.mark.requirement("G-http-stateless-methods")
def test_no_session_is_made_and_one_that_is_named_is_ignored(shared_server: HttpServer) -> None:
    client = shared_server.stateless()

    with client.start("server/discover", headers={"Mcp-Session-Id": "0" * 32}) as reply:
        assert reply.status == 200
        assert "Mcp-Session-Id" not in reply.headers


@pytest.mark.requirement("G-http-stateless-methods")
def test_a_stream_cannot_be_gone_on_with(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("walk", 'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 10; echo done')
    client = serve().stateless()

    with client.start_tool("walk", meta={"progressToken": 1}, headers={"Last-Event-ID": "1-0"}) as reply:
        assert text_of(reply.result()) == "done\n"
        assert [event.id for event in reply.events] == [None] * len(reply.events)
        assert len(reply.seen) == 2


def answering(asked: Any) -> dict[str, Any]:
    """The call once more, with yes to all that was asked."""
    answers = {
        key: {"action": "accept", "content": dict.fromkeys(question["params"]["requestedSchema"]["properties"], True)}
        for key, question in asked["inputRequests"].items()
    }
    return {"name": "ask", "arguments": {}, "inputResponses": answers, "requestState": asked["requestState"]}


ENVELOPES: dict[str, tuple[dict[str, Any], int]] = {
    "no version": ({CAPABILITIES: {}}, -32602),
    "no capabilities": ({VERSION: MODERN}, -32602),
    "capabilities that are no object": ({VERSION: MODERN, CAPABILITIES: 5}, -32602),
    "a bad log level": ({VERSION: MODERN, CAPABILITIES: {}, META_PREFIX + "logLevel": "loud"}, -32602),
    "a bad progress token": ({VERSION: MODERN, CAPABILITIES: {}, "progressToken": []}, -32602),
    "nothing": ({}, -32602),
}


@pytest.mark.requirement("G-http-stateless-status")
@pytest.mark.parametrize(("meta", "code"), ENVELOPES.values(), ids=ENVELOPES)
@pytest.mark.parametrize("method", ["server/discover", "tools/list", "ping"])
def test_an_envelope_that_is_not_complete_is_400(
    shared_server: HttpServer, method: str, meta: dict[str, Any], code: int
) -> None:
    client = shared_server.stateless()
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}

    with client.post(message, headers={"Mcp-Method": method}) as reply:
        assert (reply.status, reply.error()["code"]) == (400, code)


@pytest.mark.requirement("G-http-stateless-status")
def test_a_capability_that_is_missing_is_400(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("ask", ASKS, needs=["elicitation.form"])
    client = serve().stateless()

    for accept in (BOTH_TYPES, "text/event-stream"):
        with client.start_tool("ask", headers={"Accept": accept}) as reply:
            assert (reply.status, reply.error()["code"]) == (400, -32021)


@pytest.mark.requirement("G-http-stateless-status")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "absent"}),
        ("resources/read", {"uri": "echo+nothing://absent"}),
        ("tools/list", {"cursor": "nonsense"}),
        ("tools/call", {"name": "hello", "requestState": "forged"}),
    ],
)
def test_what_is_wrong_with_the_request_itself_is_told_by_the_json_alone(
    project: ProjectBuilder, serve: Serve, method: str, params: dict[str, Any]
) -> None:
    project.tool("hello", "echo")

    with serve().stateless().start(method, params) as reply:
        assert (reply.status, reply.error()["code"]) == (200, -32602)


@pytest.mark.requirement("G-http-stateless-status")
@pytest.mark.parametrize(
    "message",
    [
        [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}],
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "1.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": None, "method": "tools/list"},
        5,
    ],
    ids=["batch", "response", "another JSON-RPC", "no id", "number"],
)
def test_what_is_no_request_is_400(shared_server: HttpServer, message: Any) -> None:
    with shared_server.stateless().post(message, headers={"Mcp-Method": "tools/list"}) as reply:
        assert (reply.status, reply.error()["code"]) == (400, -32600)


@pytest.mark.requirement("G-http-no-answer")
def test_a_notification_is_202_without_a_body(shared_server: HttpServer) -> None:
    with shared_server.stateless().post({"jsonrpc": "2.0", "method": "notifications/cancelled"}) as reply:
        assert (reply.status, reply.body) == (202, b"")


@pytest.mark.requirement("G-http-accept")
def test_a_client_that_takes_json_alone_gets_the_answer_alone_and_no_listen(
    project: ProjectBuilder, serve: Serve
) -> None:
    project.tool("walk", 'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 10; echo done')
    client = serve().stateless(headers={"Accept": "application/json"})

    with client.start_tool("walk", meta={"progressToken": 1}, headers={"Accept": "application/json"}) as reply:
        assert (reply.type, text_of(reply.result())) == ("application/json", "done\n")
    listen = client.start("subscriptions/listen", {"notifications": {}}, headers={"Accept": "application/json"})
    assert listen.status == 406


@pytest.mark.requirement("G-http-accept")
def test_a_call_that_asks_is_answered_with_its_question_also_as_json(project: ProjectBuilder, serve: Serve) -> None:
    """Nothing is asked on the stream in this era, so that a client which takes JSON alone can be asked as well."""
    project.tool("ask", ASKS)
    client = serve().stateless(capabilities={"elicitation": {}})

    with client.start_tool("ask", headers={"Accept": "application/json"}) as reply:
        asked = reply.result()

    assert text_of(client.result("tools/call", answering(asked))) == "yes\n"


@pytest.mark.requirement("G-http-listen")
def test_a_listen_is_acknowledged_first_kept_alive_and_told_of_what_it_wants(
    project: ProjectBuilder, serve: Serve
) -> None:
    client = serve(KEEP_ALIVE_SECS=0.1).stateless()
    listen = client.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="here")

    first = listen.next_message()
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["_meta"] == {META_PREFIX + "subscriptionId": "here"}
    assert listen.headers["X-Accel-Buffering"] == "no"
    eventually(lambda: (event := listen.next_event()) is not None and event.comment is not None)

    project.prompt("note.txt", "not wanted")
    project.tool("late", "echo")
    notice = listen.next_message()
    assert notice["method"] == "notifications/tools/list_changed"
    assert notice["params"]["_meta"] == {META_PREFIX + "subscriptionId": "here"}
