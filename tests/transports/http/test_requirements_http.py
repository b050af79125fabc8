"""What the specification demands of Streamable HTTP, in both eras."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http import HttpClient, HttpServer, Serve
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import META_PREFIX, modern_meta, text_of

TOKEN = "0123456789abcdef0123456789abcdef"
NOT_LISTED = {"Origin": "https://evil.example"}
REBOUND = {"Host": "evil.example"}
ENDLESS = 'echo $$ > "$MCPGREEN_PROJECT_ROOT/pid"; exec sleep 600'
# A message to a client that is short, so that it is written before any other; then the script waits for a file.
TALKS = """source "$MCP_SDK/tool-sdk.sh"
mcp_progress 10 "$NAME"
until [ -e "$MCPGREEN_PROJECT_ROOT/on" ]; do sleep 0.01; done
echo done"""


def methods_of(client: HttpClient, headers: dict[str, str]) -> dict[str, int]:
    """The status of each method with these headers."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    replies = {
        "POST": client.post(ping, headers=headers),
        "GET": client.get(headers=headers),
        "OPTIONS": client.send("OPTIONS", headers=headers),
        "health": client.send("GET", path="/healthz", headers=headers),
        "metrics": client.send("GET", path="/metrics", headers=headers),
        "nothing": client.send("GET", path="/", headers=headers),
        "DELETE": client.delete(headers=headers),
    }
    statuses = {name: reply.status for name, reply in replies.items()}
    for reply in replies.values():
        reply.close()
    return statuses


@pytest.mark.requirement("H-01")
@pytest.mark.parametrize("headers", [NOT_LISTED, REBOUND], ids=["origin", "host"])
def test_names_that_are_not_let_in_are_refused_whatever_the_method(
    shared_server: HttpServer, headers: dict[str, str]
) -> None:
    client = shared_server.session()

    assert set(methods_of(client, headers).values()) == {403}
    assert client.result("ping") == {}  # the session is still there: not even its DELETE came in


@pytest.mark.requirement("H-01")
@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "https://app.example"])
def test_names_of_this_machine_and_those_that_are_listed_come_in(serve: Serve, origin: str) -> None:
    client = serve(http_allowed_origins="https://app.example").session(headers={"Origin": origin})

    with client.start("ping") as reply:
        assert reply.status == 200
        assert reply.headers["Access-Control-Allow-Origin"] == origin


@pytest.mark.requirement("H-02")
def test_without_a_host_the_server_listens_on_this_machine_alone(project: ProjectBuilder) -> None:
    with HttpServer(project.root, address=":0") as server:
        assert server.url.startswith("http://127.0.0.1:")
        with socket.socket() as other, pytest.raises(OSError):
            # Another address of this machine: only who listens on all of them would answer here.
            other.connect(("127.0.0.2", server.port))


@pytest.mark.requirement("H-03")
def test_who_has_the_token_is_served_in_both_eras(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("hello", "echo hello")
    server = serve(http_token=TOKEN)

    assert text_of(server.session(token=TOKEN).call_tool("hello")) == "hello\n"
    assert text_of(server.stateless(token=TOKEN).call_tool("hello")) == "hello\n"


@pytest.mark.requirement("H-04", "G-http-delete")
def test_a_session_that_is_unknown_or_was_ended_is_404_to_every_method(shared_server: HttpServer) -> None:
    unknown, ended = shared_server.client(revision="2025-11-25"), shared_server.session()
    unknown.session_id = "0" * 32
    assert ended.delete().status == 204

    for client in (unknown, ended):
        assert [client.start("ping").status, client.get().status, client.delete().status] == [404, 404, 404]


@pytest.mark.requirement("H-04")
def test_a_session_that_nobody_uses_is_over_after_a_while(serve: Serve) -> None:
    client = serve(http_session_idle_secs=0.1).session()

    # Asked in a way that is no use of the session: while it is there, that is 400.
    eventually(lambda: client.get(headers={"MCP-Protocol-Version": "1999-01-01"}).status == 404)


@pytest.mark.requirement("H-05")
@pytest.mark.parametrize("version", ["1999-01-01", "", "2025-06-18", "2025-11-25x", "DRAFT"])
def test_a_bad_version_in_the_header_is_400_to_every_method(shared_server: HttpServer, version: str) -> None:
    client = shared_server.session("2025-11-25")
    headers = {"MCP-Protocol-Version": version}

    replies = [client.start("ping", headers=headers), client.get(headers=headers), client.delete(headers=headers)]

    assert [reply.status for reply in replies] == [400, 400, 400]
    assert client.result("ping") == {}


@pytest.mark.requirement("H-06")
@pytest.mark.parametrize("method", ["no/such", "initialize", "ping", "logging/setLevel", "resources/subscribe"])
@pytest.mark.parametrize("id", [7, "seven", 0])
def test_a_method_that_does_not_exist_is_404_under_its_id(shared_server: HttpServer, method: str, id: Any) -> None:
    with shared_server.stateless().start(method, id=id) as reply:
        assert reply.status == 404
        answer = reply.json()
        assert (answer["id"], type(answer["id"]), answer["error"]["code"]) == (id, type(id), -32601)


BAD_HEADERS = {
    "no version": {"MCP-Protocol-Version": None},
    "another version": {"MCP-Protocol-Version": "2025-11-25"},
    "no method": {"Mcp-Method": None},
    "another method": {"Mcp-Method": "tools/list"},
    "method in another case": {"Mcp-Method": "Tools/Call"},
    "no name": {"Mcp-Name": None},
    "another name": {"Mcp-Name": "other"},
    "name in another case": {"Mcp-Name": "Never"},
    "not base64": {"Mcp-Name": "=?base64?never!?="},
    "no param": {"Mcp-Param-String": None},
    "another param": {"Mcp-Param-String": "us"},
}


@pytest.fixture(scope="module")
def marked(shared_project: ProjectBuilder) -> Iterator[HttpServer]:
    """With tools whose arguments have headers."""
    region, count = ({"type": kind, "x-mcp-header": kind} for kind in ("string", "integer"))
    schema = {"type": "object", "properties": {"region": region, "count": count}}
    # As a reference the mark is not where the author's schema has the property, but clients are sent it there.
    referring = {
        "type": "object",
        "properties": {"region": {"$ref": "#/$defs/region"}, "count": count},
        "$defs": {"region": region},
    }
    shared_project.tool("never", 'touch "$MCPGREEN_PROJECT_ROOT/ran"', inputSchema=referring)
    shared_project.tool("hello", "echo", inputSchema=schema)
    user = {"type": "integer", "x-mcp-header": "user_id"}
    shared_project.tool("under", "echo", inputSchema={"type": "object", "properties": {"user": user}})
    with HttpServer(shared_project.root) as server:
        yield server


@pytest.mark.requirement("H-07")
@pytest.mark.parametrize("headers", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_headers_that_differ_from_the_body_are_refused_and_nothing_runs(
    marked: HttpServer, headers: dict[str, str | None]
) -> None:
    client = marked.stateless()

    with client.start_tool("never", {"region": "eu"}, headers={"Mcp-Param-String": "eu", **headers}) as reply:
        assert reply.status == 400
        assert reply.error()["code"] == -32020
    assert not (marked.root / "ran").exists()


@pytest.mark.requirement("H-07")
@pytest.mark.parametrize(
    ("value", "sent"),
    [("eu", "eu"), ("Zürich", "=?base64?WsO8cmljaA==?="), ("eu", "=?base64?ZXU=?=")],
)
def test_headers_that_say_the_same_are_taken_also_encoded(marked: HttpServer, value: str, sent: str) -> None:
    with marked.stateless().start_tool("hello", {"region": value}, headers={"Mcp-Param-String": sent}) as reply:
        assert reply.status == 200


@pytest.mark.requirement("H-07")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Mcp-Param-User_Id": "5"}, 200),
        ({"Mcp-Param-User-Id": "5"}, 400),
        ({"Mcp-Param-User_Id": "5", "Mcp-Param-User-Id": "6"}, 200),
        ({"Mcp-Param-User_Id": "6", "Mcp-Param-User-Id": "5"}, 400),
    ],
)
def test_an_underscore_in_the_name_of_a_header_is_no_hyphen(
    marked: HttpServer, headers: dict[str, str | None], status: int
) -> None:
    with marked.stateless().start_tool("under", {"user": 5}, headers=headers) as reply:
        assert reply.status == status


@pytest.mark.requirement("H-07")
def test_headers_come_before_the_version(shared_server: HttpServer) -> None:
    """A version that nobody knows, and headers that say another: the headers are what is told."""
    client = shared_server.stateless()
    strange = modern_meta(**{META_PREFIX + "protocolVersion": "2031-01-01"})

    with client.start("tools/list", meta=strange) as reply:
        assert (reply.status, reply.error()["code"]) == (400, -32020)
    with client.start("tools/list", meta=strange, headers={"MCP-Protocol-Version": "2031-01-01"}) as reply:
        assert (reply.status, reply.error()["code"]) == (400, -32022)


@pytest.mark.requirement("H-08")
def test_what_belongs_to_a_request_is_on_its_stream_alone(project: ProjectBuilder, serve: Serve) -> None:
    for name in ("one", "two"):
        project.tool(name, TALKS.replace("$NAME", name))
    client = serve().session()
    standing = client.get()
    assert standing.next_event() is not None
    streams = {name: client.start_tool(name, meta={"progressToken": name}) for name in ("one", "two")}
    for stream in streams.values():
        stream.notice("notifications/progress")

    project.write("on", "")
    project.tool("late", "echo")  # and this belongs to no request

    for name, stream in streams.items():
        assert text_of(stream.result()) == "done\n"
        assert {each["params"]["progressToken"] for each in stream.seen if "params" in each} == {name}
    standing.notice("notifications/tools/list_changed")
    assert [each["method"] for each in standing.seen] == ["notifications/tools/list_changed"]
    assert all("list_changed" not in each.get("method", "") for stream in streams.values() for each in stream.seen)


@pytest.mark.requirement("H-08")
def test_a_question_is_on_the_stream_of_the_call_that_asks(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("ask", 'source "$MCP_SDK/tool-sdk.sh"; mcp_elicit_confirm "Sure?"')
    client = serve().session(capabilities={"elicitation": {}})
    standing = client.get()
    assert standing.next_event() is not None

    stream = client.start_tool("ask")
    question = stream.asked("elicitation/create")
    client.answer(question, {"action": "decline"})

    stream.result()
    project.tool("late", "echo")
    standing.notice("notifications/tools/list_changed")
    assert [each["method"] for each in standing.seen] == ["notifications/tools/list_changed"]


@pytest.mark.requirement("H-08")
def test_each_of_two_sessions_hears_of_its_own(project: ProjectBuilder, serve: Serve) -> None:
    uri = project.resource("note.txt", "1", mimeType="text/plain").as_uri()
    server = serve()
    subscriber, other = server.session(), server.session()
    streams = [subscriber.get(), other.get()]
    for stream in streams:
        assert stream.next_event() is not None
    subscriber.result("resources/subscribe", {"uri": uri})

    project.resource("note.txt", "2")
    streams[0].notice("notifications/resources/updated")

    project.tool("late", "echo")
    for stream in streams:
        stream.notice("notifications/tools/list_changed")
    assert [each["method"] for each in streams[1].seen] == ["notifications/tools/list_changed"]


@pytest.mark.requirement("H-09")
@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json"])
def test_a_stateless_call_ends_with_its_connection(project: ProjectBuilder, serve: Serve, accept: str) -> None:
    project.tool("endless", ENDLESS)
    call = serve().stateless().start_tool("endless", headers={"Accept": accept})
    pid = eventually(lambda: (project.root / "pid").exists() and project.read("pid"))

    call.close()

    eventually(lambda: not is_alive(pid))


@pytest.mark.requirement("H-09")
def test_a_call_of_a_session_outlives_its_connection(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("endless", ENDLESS)
    server = serve()
    stateless = server.stateless().start_tool("endless")
    first = eventually(lambda: (project.root / "pid").exists() and project.read("pid"))
    (project.root / "pid").unlink()
    session = server.session()
    kept = session.start_tool("endless", id="kept")
    second = eventually(lambda: (project.root / "pid").exists() and project.read("pid"))

    kept.close()
    stateless.close()

    eventually(lambda: not is_alive(first))  # by now the server has seen the other connection end, too
    assert is_alive(second)
    session.notify("notifications/cancelled", {"requestId": "kept"})
    eventually(lambda: not is_alive(second))


@pytest.mark.requirement("H-09")
def test_a_listen_ends_with_its_connection(project: ProjectBuilder, serve: Serve) -> None:
    server = serve(MAX_LISTENS=1)
    listen = server.stateless().listen(toolsListChanged=True)
    assert server.stateless().start("subscriptions/listen", {"notifications": {}}).error()

    listen.close()

    eventually(lambda: listens(server))


def listens(server: HttpServer) -> bool:
    reply = server.stateless().start("subscriptions/listen", {"notifications": {}})
    is_taken = reply.is_stream
    reply.close()
    return is_taken
