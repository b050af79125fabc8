"""What callers share: whatever one of them takes, something is left for the next.

Mallory takes as much as she can get, of one pool after the other; then Ada comes, and is served while all of that is
still taken.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.http import HttpClient, HttpServer, Serve
from tests.support.issuer import RESOURCE, Issuer
from tests.support.project import ProjectBuilder
from tests.support.waiting import PATIENCE_SECS, eventually
from tests.transports.http.attacking import Raw, discovery, head, mcp_lines

TOKEN = "0123456789abcdef0123456789abcdef"
WAIT = 'touch "$MCPGREEN_PROJECT_ROOT/began-$BASHPID"; while :; do sleep 0.05; done'
SLOW = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a|a)*$"}}}
NEVER_DONE = {"text": "a" * 60 + "b"}
CHECKED = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^[a-z]+$"}}}


@pytest.fixture
def serve(project: ProjectBuilder, issuer: Issuer) -> Iterator[Serve]:
    project.tool("wait", WAIT)
    project.tool("quick", "echo done")
    project.tool("slow", "echo done", inputSchema=SLOW)
    project.tool("slow-output", 'echo "$MCP_TOOL_ARGS_JSON"', outputSchema=SLOW)
    project.tool("checked", "echo done", inputSchema=CHECKED)
    project.tool("single", WAIT, maxConcurrent=2)
    for number in range(9):
        project.resource(f"r{number}.txt", "one")
    keys = str(project.write("keys.json", json.dumps({"keys": issuer.keys})))
    oauth = {"http_oauth_issuer": issuer.name, "http_oauth_jwks_url": keys, "http_public_url": RESOURCE}
    with ExitStack() as ends:
        yield lambda **settings: ends.enter_context(HttpServer(project.root, **{**oauth, **settings}))


def stateless(server: HttpServer, issuer: Issuer, subject: str) -> HttpClient:
    return server.stateless(token=issuer.token(sub=subject))


def count_began(project: ProjectBuilder) -> int:
    return len(list(project.root.glob("began-*")))


def is_done(answer: object) -> bool:
    return isinstance(answer, dict) and answer["content"][0]["text"] == "done\n"


def test_one_caller_does_not_take_all_slots_by_several_sessions(
    serve: Serve, issuer: Issuer, project: ProjectBuilder
) -> None:
    server = serve(max_concurrent_requests=4)
    token = issuer.token(sub="mallory")
    sessions = [server.session(token=token) for _ in range(3)]
    for session in sessions * 2:
        session.start_tool("wait")
    eventually(lambda: count_began(project) == 3)

    assert is_done(stateless(server, issuer, "ada").call_tool("quick"))
    assert count_began(project) == 3


def test_one_caller_does_not_take_the_whole_line_by_several_sessions(
    serve: Serve, issuer: Issuer, project: ProjectBuilder
) -> None:
    server = serve(max_concurrent_requests=1, MAX_QUEUED_REQUESTS=8)
    token = issuer.token(sub="mallory")
    sessions = [server.session(token=token) for _ in range(8)]
    sessions[0].start_tool("wait")
    eventually(lambda: count_began(project) == 1)
    replies = [session.start_tool("wait", headers={"Accept": "application/json"}) for session in sessions]
    eventually(lambda: sum(reply.has_come for reply in replies) == 2)

    assert all("your requests" in reply.error()["message"] for reply in replies if reply.has_come)
    waiting = stateless(server, issuer, "ada").start_tool("quick")
    for session in sessions:
        session.delete()
    assert is_done(waiting.result())


def test_a_caller_who_has_one_call_does_not_wait_for_all_calls_of_another(
    serve: Serve, issuer: Issuer, project: ProjectBuilder
) -> None:
    """Of one tool that may run twice at a time: Mallory's calls hold one place of it, and stand behind Ada's."""
    server = serve()
    mallory = stateless(server, issuer, "mallory")
    for _ in range(4):
        mallory.start_tool("single")
    eventually(lambda: count_began(project) == 1)

    stateless(server, issuer, "ada").start_tool("single")

    eventually(lambda: count_began(project) == 2)


@pytest.mark.parametrize("tool", ["slow", "slow-output"])
def test_a_slow_pattern_of_one_caller_keeps_no_other_waiting(serve: Serve, issuer: Issuer, tool: str) -> None:
    server = serve(max_concurrent_requests=2, CHECK_SECS=60)
    mallory = stateless(server, issuer, "mallory")
    replies = [mallory.start_tool(tool, NEVER_DONE) for _ in range(4)]
    assert is_done(mallory.call_tool("quick"))  # whoever waits for a check holds no slot

    assert is_done(stateless(server, issuer, "ada").call_tool("checked", {"text": "abc"}))
    assert not any(reply.has_come for reply in replies)


def test_one_listen_does_not_take_all_places_for_watches(serve: Serve, issuer: Issuer, project: ProjectBuilder) -> None:
    server = serve(MAX_SUBSCRIPTIONS=8)
    uris = [(project.root / "resources" / f"r{number}.txt").as_uri() for number in range(9)]

    got = [_watched(stateless(server, issuer, subject), uris) for subject in ("mallory", "ada", "eve")]

    assert got == [uris[:6], uris[:1], uris[:1]]


def test_one_caller_does_not_hold_all_listens(serve: Serve, issuer: Issuer) -> None:
    server = serve(MAX_LISTENS=4)
    mallory = stateless(server, issuer, "mallory")
    for _ in range(3):
        mallory.listen(toolsListChanged=True)

    refusal = mallory.start("subscriptions/listen", {"notifications": {}}).error()["message"]
    assert "subscriptions/listen streams" in refusal
    stateless(server, issuer, "ada").listen(toolsListChanged=True)


def test_one_caller_does_not_open_all_sessions(serve: Serve, issuer: Issuer) -> None:
    server = serve(http_max_sessions=4)
    token = issuer.token(sub="mallory")
    for _ in range(3):
        server.session(token=token)

    assert server.client(token=token).start("initialize", {}).status == 503
    server.session(token=issuer.token(sub="ada"))


def test_one_caller_does_not_hold_all_connections(serve: Serve, issuer: Issuer) -> None:
    server = serve(http_max_connections=8, MAX_LISTENS=100)
    mallory = stateless(server, issuer, "mallory")
    for _ in range(6):
        mallory.listen(toolsListChanged=True)

    refused = mallory.start("subscriptions/listen", {"notifications": {}})

    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    assert is_done(stateless(server, issuer, "ada").call_tool("quick"))


def test_one_caller_does_not_take_the_room_of_all_bodies(serve: Serve, issuer: Issuer) -> None:
    server = serve(max_line_bytes=200_000)
    authorization = f"Authorization: Bearer {issuer.token(sub='mallory')}"
    begin = head("POST", "/mcp", authorization, *mcp_lines(), "Content-Length: 199999")
    with ExitStack() as ends:
        socks = [ends.enter_context(server.connect()) for _ in range(60)]
        for sock in socks:  # each counts from its second piece on
            sock.sendall(begin + b" " * 199_998)
        refused: list[socket.socket] = []
        eventually(lambda: refused.extend(select.select(socks, [], [], 0)[0]) or refused)
        assert refused[0].recv(100).startswith(b"HTTP/1.1 503")
        large = {"text": "a" * 150_000}

        assert is_done(stateless(server, issuer, "ada").call_tool("quick", large))


def test_an_answer_that_one_caller_leaves_unread_costs_no_other_its_own(
    serve: Serve, issuer: Issuer, project: ProjectBuilder
) -> None:
    """Ada reads at once, and lost each answer that was larger than the one that Mallory had left unread."""
    project.tool("large", "seq 1 1000000")
    project.tool("larger", "seq 1 1200000")
    server = serve(MAX_BACKLOG_BYTES=10 << 20)
    left = stateless(server, issuer, "mallory").start_tool("large", headers={"Accept": "application/json"})
    eventually(lambda: left.has_come)

    ada = stateless(server, issuer, "ada")
    for _ in range(3):
        assert ada.call_tool("larger")["content"][0]["text"] == "".join(f"{number}\n" for number in range(1, 1_200_001))
    assert "unread" not in server.stderr


@pytest.mark.parametrize("token", ["", TOKEN], ids=["none", "shared"])
def test_callers_without_a_name_are_told_apart_by_their_addresses(
    serve: Serve, project: ProjectBuilder, token: str
) -> None:
    with HttpServer(project.root, max_concurrent_requests=4, http_token=token) as server:
        for _ in range(5):
            server.stateless(token=token).start_tool("wait")
        eventually(lambda: count_began(project) == 3)

        assert is_done(server.stateless(token=token, source="127.0.0.2").call_tool("quick"))


def test_connections_make_way_at_the_address_that_has_most(serve: Serve, project: ProjectBuilder) -> None:
    """The oldest one went, so whoever opened many pushed out the request that somebody else was just sending."""
    with HttpServer(project.root, http_max_connections=8) as server, ExitStack() as ends:
        whole = discovery()
        source = "127.0.0.2", 0
        with socket.create_connection(server.address, timeout=PATIENCE_SECS, source_address=source) as early:
            early.sendall(whole[:-10])
            for _ in range(20):
                ends.enter_context(server.connect()).sendall(whole[:-10])
            assert server.stateless().request("server/discover")["result"]
            early.sendall(whole[-10:])

            assert Raw(early).answer().status == 200


def test_made_up_tokens_hold_few_connections_while_the_issuer_hangs(project: ProjectBuilder, issuer: Issuer) -> None:
    project.tool("quick", "echo done")
    with socket.create_server(("127.0.0.1", 0)) as hanging, ExitStack() as ends:
        name = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        settings = {"http_oauth_issuer": name, "http_public_url": RESOURCE, "http_max_connections": 32}
        server = ends.enter_context(HttpServer(project.root, http_token=TOKEN, **settings))
        socks = [ends.enter_context(server.connect()) for _ in range(32)]
        made_up = issuer.token(iss=name, key="made up")
        for sock in socks:
            sock.sendall(discovery(f"Authorization: Bearer {made_up}"))
        ends.enter_context(hanging.accept()[0])

        assert is_done(server.stateless(token=TOKEN).call_tool("quick"))
        refused = eventually(lambda: select.select(socks, [], [], 0)[0])
        answer = Raw(refused[0]).answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")


def _watched(client: HttpClient, uris: list[str]) -> list[str]:
    reply = client.start("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
    params = reply.notice("notifications/subscriptions/acknowledged")["params"]
    watched: list[str] = params["notifications"]["resourceSubscriptions"]
    return watched
