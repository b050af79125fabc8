"""Clients that begin with a handshake: their sessions, headers and streams."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.http import BOTH_TYPES, HttpClient, HttpServer, Serve
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LISTED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"
ENDLESS = 'echo $$ > "$MCPGREEN_PROJECT_ROOT/pid"; exec sleep 600'
WALKS = 'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 10; mcp_progress 20; echo done'


def ping(id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


@pytest.mark.requirement("G-http-version-header")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_session_has_the_revision_that_it_has_agreed_on_also_without_the_header(
    shared_server: HttpServer, revision: str
) -> None:
    """Gemini CLI sends none."""
    client = shared_server.session(revision)
    headers = {"MCP-Protocol-Version": None}

    assert client.result("ping", headers={"MCP-Protocol-Version": revision}) == {}
    assert client.result("ping", headers=headers) == {}
    assert client.post([ping()], headers=headers).status == (200 if revision == "2025-03-26" else 400)
    assert client.get(headers=headers).status == 200
    assert client.delete(headers=headers).status == 204


@pytest.mark.requirement("G-http-initialized")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", ["tools/list", "resources/list", "logging/setLevel"])
def test_the_first_request_is_served_without_the_end_of_the_handshake(
    shared_server: HttpServer, revision: str, method: str
) -> None:
    """Some gateways swallow `notifications/initialized`."""
    client = shared_server.client()
    client.initialize(revision)

    client.result(method)
    assert client.notify("notifications/initialized").status == 202
    client.result(method)


@pytest.mark.requirement("G-http-initialized")
def test_changes_are_told_from_the_first_request_on(project: ProjectBuilder, serve: Serve) -> None:
    client = serve().client()
    client.initialize()
    standing = client.get()
    assert standing.status == 200
    client.result("tools/list")

    project.tool("late", "echo")

    standing.notice(LISTED)


@pytest.mark.requirement("G-http-initialized")
def test_the_first_call_asks_for_roots_and_a_late_end_of_the_handshake_does_not(
    project: ProjectBuilder, trusting: HttpServer
) -> None:
    place = project.root / "tools"
    client = trusting.client()
    client.initialize(capabilities={"roots": {}})
    call = client.start_tool("where")

    client.answer(call.asked("roots/list"), {"roots": [{"uri": place.as_uri()}]})

    assert text_of(call.result()) == str(place)
    client.notify("notifications/initialized")
    again = client.start_tool("where", headers={"Accept": "text/event-stream"})
    assert text_of(again.result()) == str(place)
    assert len(again.seen) == 1


@pytest.mark.requirement("G-http-session-id")
@pytest.mark.parametrize("session_id", [None, ""])
def test_a_request_without_a_session_is_400(shared_server: HttpServer, session_id: str | None) -> None:
    client = shared_server.session()
    headers = {"Mcp-Session-Id": session_id}

    replies = [client.post(ping(), headers=headers), client.get(headers=headers), client.delete(headers=headers)]

    assert [reply.status for reply in replies] == [400, 400, 400]
    assert "Mcp-Session-Id" in replies[0].error()["message"]


@pytest.mark.requirement("G-http-session-id")
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_handshake_that_is_refused_makes_no_session(shared_server: HttpServer, accept: str) -> None:
    """A client that takes only events was told nothing: the reason was forgotten with the session."""
    with shared_server.client().start("initialize", {"protocolVersion": 5}, headers={"Accept": accept}) as reply:
        assert reply.error()["code"] == -32602
        assert "Mcp-Session-Id" not in reply.headers


@pytest.mark.requirement("G-http-delete")
def test_delete_ends_the_calls_and_streams_of_its_session_and_of_no_other(
    project: ProjectBuilder, serve: Serve
) -> None:
    project.tool("endless", ENDLESS)
    server = serve()
    client, other = server.session(), server.session()
    streams = [client.get(), client.start_tool("endless")]
    other_stream = other.get()
    assert [streams[0].status, other_stream.status] == [200, 200]
    pid = eventually(lambda: (project.root / "pid").exists() and project.read("pid"))

    assert client.delete().status == 204

    eventually(lambda: not is_alive(pid))
    assert streams[0].rest() == []
    assert streams[1].status in (200, 202) and not re.search(b'"result"', streams[1].body)
    project.tool("late", "echo")
    other_stream.notice(LISTED)


@pytest.mark.requirement("G-http-accept")
@pytest.mark.parametrize("accept", [BOTH_TYPES, "*/*", None, "application/json;q=0.5, text/event-stream"])
def test_a_client_that_takes_both_gets_json_for_a_quick_answer_and_events_otherwise(
    project: ProjectBuilder, serve: Serve, accept: str | None
) -> None:
    project.tool("walk", WALKS)
    client = serve().session()

    with client.start("ping", headers={"Accept": accept}) as reply:
        assert (reply.type, reply.result()) == ("application/json", {})
    with client.start_tool("walk", headers={"Accept": accept}, meta={"progressToken": 1}) as reply:
        assert reply.is_stream
        assert text_of(reply.result()) == "done\n"
        assert [each["params"]["progress"] for each in reply.seen[:-1]] == [10, 20]


@pytest.mark.requirement("G-http-accept")
def test_a_client_that_takes_events_alone_gets_them(shared_server: HttpServer) -> None:
    with shared_server.session().start("ping", headers={"Accept": "text/event-stream"}) as reply:
        assert reply.is_stream
        assert reply.headers["X-Accel-Buffering"] == "no"
        assert reply.headers["Cache-Control"] == "no-cache, no-transform"
        assert [message["result"] for message in reply.rest()] == [{}]


@pytest.mark.requirement("G-http-accept")
def test_a_client_that_takes_json_alone_gets_the_answer_and_nothing_else(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("walk", WALKS + "; sleep 1.1")  # longer than it takes until others get a stream
    client = serve().session()

    with client.start_tool("walk", headers={"Accept": "application/json"}, meta={"progressToken": 1}) as reply:
        assert (reply.type, text_of(reply.result())) == ("application/json", "done\n")


@pytest.mark.requirement("G-http-accept")
def test_a_client_that_takes_json_alone_is_not_asked(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("ask", 'source "$MCP_SDK/tool-sdk.sh"; mcp_elicit_confirm "Sure?"; echo "status $?"')
    client = serve().session(capabilities={"elicitation": {}})

    with client.start_tool("ask", headers={"Accept": "application/json"}) as reply:
        result = reply.result()

    assert "status 0" not in text_of(result)


@pytest.mark.requirement("G-http-accept")
@pytest.mark.parametrize("accept", ["text/html", "application/xml, image/*", "application/json;q=0"])
def test_what_cannot_be_answered_as_wanted_is_406(shared_server: HttpServer, accept: str) -> None:
    client = shared_server.session()

    assert client.start("ping", headers={"Accept": accept}).status == 406
    assert client.get(headers={"Accept": "application/json"}).status == 406


@pytest.mark.requirement("G-http-no-answer")
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/unheard/of"},
        {"jsonrpc": "2.0", "id": "never asked", "result": {}},
        {"jsonrpc": "2.0", "id": "never asked", "error": {"code": 1, "message": "no"}},
    ],
    ids=["notification", "unknown", "result", "error"],
)
def test_what_needs_no_answer_is_202_without_a_body(shared_server: HttpServer, message: Any) -> None:
    with shared_server.session().post(message) as reply:
        assert (reply.status, reply.body) == (202, b"")


@pytest.mark.requirement("G-http-no-answer")
@pytest.mark.parametrize("accept", [BOTH_TYPES, "application/json", "text/event-stream"])
@pytest.mark.parametrize(
    "body",
    [
        *(b"{", b"", b'"text"', b"5", b"null", b"[]", b"\xff{}", b"{}"),
        *(b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","id":null,"method":"ping"}'),
        *(b'{"jsonrpc":"2.0","id":1.5,"method":"initialize"}', b'{"jsonrpc":"2.0","id":{},"method":"tools/call"}'),
        *(b'{"jsonrpc":"2.0","method":5}', b'{"jsonrpc":"1.0","method":"notifications/cancelled"}'),
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    ],
)
def test_what_is_no_message_is_400(shared_server: HttpServer, body: bytes, accept: str) -> None:
    """With status 200 a client waits for an answer that has its id."""
    with shared_server.session("2025-06-18").post(body, headers={"Accept": accept}) as reply:
        assert reply.status == 400
        assert reply.json()["error"]["code"] in (-32700, -32600)


@pytest.mark.requirement("G-http-no-answer", "G-http-batches")
def test_a_batch_is_400_if_none_of_its_answers_has_an_id(shared_server: HttpServer) -> None:
    client = shared_server.session("2025-03-26")

    assert client.post([5, None]).status == 400
    assert client.post([5, ping()]).status == 200


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b'"\xff"', b"9" * 5000])
def test_a_request_with_what_is_no_json_in_it_is_answered_with_its_id(shared_server: HttpServer, value: bytes) -> None:
    body = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"f","arguments":{"x":' + value + b"}}}"
    for client in (shared_server.session(), shared_server.stateless()):
        with client.post(body) as reply:
            assert (reply.status, reply.json()["id"], reply.json()["error"]["code"]) == (400, 5, -32700)


@pytest.mark.requirement("G-http-no-answer")
def test_a_body_that_does_not_say_that_it_is_json_is_415(shared_server: HttpServer) -> None:
    client = shared_server.session()

    assert client.post(ping(), headers={"Content-Type": "text/plain"}).status == 415
    assert client.post(ping(), headers={"Content-Type": None}).status == 415
    assert client.post(ping(), headers={"Content-Type": "Application/JSON; charset=utf-8"}).status == 200


@pytest.mark.requirement("G-http-batches")
def test_a_batch_is_answered_as_one_in_a_session_that_has_them(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("hello", "echo hello")
    client = serve().session("2025-03-26")
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "hello"}}

    with client.post([ping(1), call, {"jsonrpc": "2.0", "method": "notifications/unheard/of"}]) as reply:
        assert reply.status == 200
        answers = reply.json() if not reply.is_stream else reply.rest()[0]

    assert sorted(answer["id"] for answer in answers) == [1, 2]


@pytest.mark.requirement("G-http-batches")
def test_a_batch_of_what_needs_no_answer_is_202(shared_server: HttpServer) -> None:
    with shared_server.session("2025-03-26").post([{"jsonrpc": "2.0", "method": "notifications/unheard/of"}]) as reply:
        assert (reply.status, reply.body) == (202, b"")


@pytest.mark.requirement("G-http-standing-stream")
def test_what_came_before_the_first_get_is_told_there(project: ProjectBuilder, serve: Serve) -> None:
    client = serve().session()
    client.result("tools/list")
    project.tool("early", "echo")
    eventually(lambda: client.result("tools/list")["tools"])

    with client.get() as stream:
        stream.notice(LISTED)


@pytest.mark.requirement("G-http-standing-stream")
def test_a_stream_on_which_nothing_happens_is_kept_alive(serve: Serve) -> None:
    client = serve(KEEP_ALIVE_SECS=0.1).session("2025-06-18")

    with client.get() as stream:
        events = [stream.next_event() for _ in range(3)]

    assert all(event is not None and event.comment is not None and event.data is None for event in events)


@pytest.mark.requirement("G-http-priming")
@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_a_stream_begins_with_a_place_to_go_on_from_where_clients_know_that(
    project: ProjectBuilder, serve: Serve, revision: str
) -> None:
    project.tool("walk", WALKS)
    client = serve(KEEP_ALIVE_SECS=0.1).session(revision)

    streams = [client.get(), client.start_tool("walk", meta={"progressToken": 1})]

    for stream in streams:
        event = stream.next_event()
        assert event is not None
        if revision >= "2025-11-25":
            assert event.data == "" and event.id and event.retry
        else:
            assert event.data != ""  # older clients would take it for a message


@pytest.mark.requirement("G-http-resuming")
def test_the_ids_of_events_are_different_in_all_streams_of_a_session(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("walk", WALKS)
    client = serve().session()
    streams = [client.start_tool("walk", meta={"progressToken": token}) for token in (1, 2)]
    for stream in streams:
        stream.rest()
    standing = client.get()
    project.tool("late", "echo")
    standing.notice(LISTED)

    ids = [event.id for stream in (*streams, standing) for event in stream.events]

    assert None not in ids
    assert len(set(ids)) == len(ids)


@pytest.mark.requirement("G-http-framing")
def test_each_message_is_one_line_of_its_event_whatever_it_contains(project: ProjectBuilder, serve: Serve) -> None:
    text = "one\ntwo\r\nthree\u2028four\u0085five\n\nid: 9\ndata: x\n"
    project.write("text", text)
    project.tool(
        "speak",
        """source "$MCP_SDK/tool-sdk.sh"
mcp_progress 10 "$(printf 'a\\n\\ndata: b')"
exec cat "$MCPGREEN_PROJECT_ROOT/text" """,
    )
    client = serve().session()

    with client.start_tool("speak", headers={"Accept": "text/event-stream"}, meta={"progressToken": 1}) as reply:
        result = reply.result()

    assert text_of(result) == text
    assert [event.data is not None and "\n" not in event.data for event in reply.events] == [True] * len(reply.events)


@pytest.mark.requirement("G-http-quiet")
def test_ordinary_traffic_leaves_nothing_on_stderr_and_stdout(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("hello", "echo hello; echo aside >&2")
    server = serve()
    client = server.session()
    stream = client.get()
    assert stream.status == 200
    client.call_tool("hello")
    client.delete()
    server.stateless().call_tool("hello")
    server.stateless().listen(toolsListChanged=True).close()

    assert server.stop() == 0

    assert [line for line in server.stderr_lines if "aside" not in line] == [f"mcpgreen: serving {server_url(server)}"]
    assert server.stdout == ""


def server_url(server: HttpServer) -> str:
    found = re.search(r"http://\S+", server.stderr)
    assert found is not None
    return found[0]


@pytest.mark.requirement("G-http-meta")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_meta_goes_to_the_script_and_comes_from_it(project: ProjectBuilder, serve: Serve, era: str) -> None:
    project.tool("meta", 'printf \'{"content":[],"_meta":{"com.example/back":%s}}\' "$MCP_TOOL_META_JSON"')
    server = serve()
    client: HttpClient = server.session() if era == "handshake" else server.stateless()

    result = client.call_tool("meta", meta={"com.example/trace": {"id": "Zürich", "n": 1}})

    assert result["_meta"]["com.example/back"]["com.example/trace"] == {"id": "Zürich", "n": 1}


def test_roots_of_a_remote_client_are_not_asked_for(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("where", 'printf %s "$MCP_ROOTS_PATHS"')
    client = serve().session(capabilities={"roots": {"listChanged": True}})

    with client.start_tool("where", headers={"Accept": "text/event-stream"}) as reply:
        assert text_of(reply.result()) == str(project.root)
        assert all("id" not in message or "method" not in message for message in reply.seen)


@pytest.fixture
def trusting(project: ProjectBuilder, serve: Serve) -> HttpServer:
    project.tool("where", 'printf %s "$MCP_ROOTS_PATHS"')
    return serve(http_trust_client_roots=True, DEBOUNCE_SECS=0)


def test_roots_that_have_changed_are_asked_for_again(project: ProjectBuilder, trusting: HttpServer) -> None:
    client = trusting.session(capabilities={"roots": {"listChanged": True}})
    for place in (project.root / "tools", project.root):
        call = client.start_tool("where")
        client.answer(call.asked("roots/list"), {"roots": [{"uri": place.as_uri()}]})
        assert text_of(call.result()) == str(place)
        client.notify("notifications/roots/list_changed")


def test_a_client_that_cannot_be_asked_for_its_roots_does_not_wait(
    project: ProjectBuilder, trusting: HttpServer
) -> None:
    client = trusting.session(capabilities={"roots": {}})

    call = client.start_tool("where", headers={"Accept": "application/json"})

    assert text_of(call.result()) == str(project.root)


def test_an_answer_that_cannot_be_read_ends_its_question(serve: Serve, project: ProjectBuilder) -> None:
    project.tool("confirm", 'source "${MCP_SDK:?}/tool-sdk.sh"\nmcp_elicit_confirm "Go on?"')
    client = serve().session(capabilities={"elicitation": {}})
    running = client.start_tool("confirm")
    question = running.asked("elicitation/create")
    client.post(b'{"jsonrpc":"2.0","id":%d,"result":{"action":"accept","content":{"n":NaN}}}' % question["id"])

    assert "The client's answer cannot be read" in str(running.result())
