"""With a remote token set, nothing is served to who does not carry it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, accept
from tests.support.waiting import PATIENCE_SECS, eventually, is_alive
from tests.support.wire import Json, Start, Wire, clean_environment, modern_meta, text_of

SECRET = "correct-horse-battery-staple-4711"
RIGHT = {"mcpbash/remoteToken": SECRET}
REFUSED = "Remote token missing or invalid"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
SHOW = "import os\nprint(dict(os.environ))"


def handshake(wire: Wire, meta: Json = RIGHT, *, revision: str = "2025-11-25") -> None:
    wire.result("initialize", {**HELLO, "protocolVersion": revision, "_meta": dict(meta)})
    wire.notify("notifications/initialized", {"_meta": dict(meta)})


@pytest.fixture
def guarded(start: Start) -> Start:
    def start_guarded(**settings: Any) -> Wire:
        return start(remote_token=SECRET, **settings)

    return start_guarded


@pytest.mark.requirement("G-remote-token")
@pytest.mark.parametrize("key", ["mcpbash/remoteToken", "remoteToken"])
def test_who_carries_the_token_is_served(project: ProjectBuilder, guarded: Start, key: str) -> None:
    project.tool("hello", "echo hello")
    wire = guarded()
    handshake(wire, {key: SECRET})

    assert wire.result("ping", {"_meta": {key: SECRET}}) == {}
    assert text_of(wire.result("tools/call", {"name": "hello", "_meta": {key: SECRET}})) == "hello\n"


@pytest.mark.requirement("G-remote-token")
@pytest.mark.parametrize("meta", [None, {}, {"mcpbash/remoteToken": SECRET + "x"}, {"mcpbash/remoteToken": 1}])
@pytest.mark.parametrize("method", ["initialize", "ping", "tools/list", "shutdown", "no/such"])
def test_who_does_not_is_refused_whatever_is_asked(guarded: Start, method: str, meta: Json | None) -> None:
    params = {**HELLO, **({} if meta is None else {"_meta": meta})}
    error = guarded().error(method, params)

    assert error == {"code": -32602, "message": REFUSED}


@pytest.mark.requirement("G-remote-token")
def test_a_refused_greeting_may_be_tried_again(guarded: Start) -> None:
    wire = guarded()
    assert wire.error("initialize", HELLO)["message"] == REFUSED
    handshake(wire)

    assert wire.result("tools/list", {"_meta": dict(RIGHT)})["tools"] == []


@pytest.mark.requirement("G-remote-token")
def test_stateless_requests_need_it_too(project: ProjectBuilder, guarded: Start) -> None:
    project.tool("hello", "echo hello")
    wire = guarded()

    assert wire.modern("server/discover")["error"]["message"] == REFUSED
    assert "result" in wire.modern("server/discover", meta=RIGHT)
    assert wire.modern("tools/call", {"name": "hello"})["error"]["message"] == REFUSED
    assert text_of(wire.modern("tools/call", {"name": "hello"}, meta=RIGHT)["result"]) == "hello\n"


@pytest.mark.requirement("G-remote-token")
def test_the_first_stateless_request_may_carry_it(guarded: Start) -> None:
    assert "result" in guarded().modern("server/discover", meta=RIGHT)


@pytest.mark.requirement("G-remote-token")
def test_notifications_without_it_are_dropped(project: ProjectBuilder, guarded: Start) -> None:
    project.tool("wait", "echo $$ > pid.new; mv pid.new pid; until [ -e go ]; do sleep 0.01; done; echo done")
    wire = guarded()
    wire.result("initialize", {**HELLO, "_meta": dict(RIGHT)})
    wire.notify("notifications/initialized")
    assert wire.error("tools/list", {"_meta": dict(RIGHT)})["code"] == -32000

    wire.notify("notifications/initialized", {"_meta": dict(RIGHT)})
    wire.start_request("tools/call", {"name": "wait", "_meta": dict(RIGHT)}, id="wait")
    eventually(lambda: (project.root / "pid").exists())
    wire.notify("notifications/cancelled", {"requestId": "wait"})
    wire.result("ping", {"_meta": dict(RIGHT)})
    assert is_alive(project.read("pid"))
    project.write("go", "")

    assert text_of(wire.response("wait")["result"]) == "done\n"


@pytest.mark.requirement("G-remote-token")
def test_each_member_of_a_batch_needs_it(guarded: Start) -> None:
    wire = guarded()
    handshake(wire, revision="2025-03-26")
    wire.send(
        [
            {"jsonrpc": "2.0", "id": "with", "method": "ping", "params": {"_meta": dict(RIGHT)}},
            {"jsonrpc": "2.0", "id": "without", "method": "ping"},
        ]
    )
    batch = wire.receive(lambda message: "batch" in message)["batch"]

    assert {answer["id"]: answer.get("error", {}).get("message") for answer in batch} == {
        "with": None,
        "without": REFUSED,
    }


@pytest.mark.requirement("G-remote-token")
def test_a_response_needs_none(guarded: Start) -> None:
    wire = guarded()
    handshake(wire)
    wire.send({"jsonrpc": "2.0", "id": 5, "result": {}})
    wire.result("ping", {"_meta": dict(RIGHT)})

    assert not [message for message in wire.seen if "error" in message]


@pytest.mark.requirement("G-remote-token")
def test_too_many_failures_are_throttled_and_the_client_is_not(guarded: Start) -> None:
    wire = guarded(MAX_FAILURES_PER_MIN=2)
    told = [wire.error("ping")["message"] for _ in range(3)]

    assert told == [REFUSED, REFUSED, f"{REFUSED} (throttled)"]
    assert wire.result("ping", {"_meta": dict(RIGHT)}) == {}


@pytest.mark.requirement("G-remote-token")
def test_the_key_can_be_chosen(guarded: Start) -> None:
    wire = guarded(remote_token_key="acme/key")

    assert wire.result("ping", {"_meta": {"acme/key": SECRET}}) == {}
    assert wire.result("ping", {"_meta": {"remoteToken": SECRET}}) == {}
    assert wire.error("ping", {"_meta": {"mcpbash/remoteToken": SECRET}})["message"] == REFUSED


@pytest.mark.requirement("G-remote-token", "P-253")
@pytest.mark.parametrize("key", ["mcpbash/remoteToken", "remoteToken"])
@pytest.mark.parametrize("mode", ["minimal", "inherit"])
def test_neither_tools_nor_logs_see_the_token(project: ProjectBuilder, guarded: Start, key: str, mode: str) -> None:
    project.python_tool("show", SHOW)
    wire = guarded(stderr_level="debug", log_level="debug", tool_env_mode=mode, tool_env_inherit_allow="true")
    wire.error("ping", {"_meta": {key: SECRET + "x"}})
    meta = {key: SECRET, "com.example/kept": "yes"}
    shown = wire.modern("tools/call", {"name": "show"}, meta=meta)["result"]
    wire.stop()

    assert "com.example/kept" in text_of(shown)
    assert SECRET not in text_of(shown)
    assert SECRET.encode() not in b"".join(wire.raw_lines)
    assert SECRET not in wire.stderr


@pytest.mark.requirement("G-remote-token")
def test_a_weak_token_keeps_the_server_from_starting(project: ProjectBuilder) -> None:
    weak = "only-thirty-one-characters-long"
    assert len(weak) == 31
    done = completed(
        [sys.executable, "-m", "mcpgreen", "serve", "--project-root", str(project.root)],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        env=clean_environment({"MCPBASH_REMOTE_TOKEN": weak}),
        timeout=PATIENCE_SECS,
        encoding=None,
    )

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"at least 32 characters" in done.stderr
    assert weak.encode() not in done.stderr


@pytest.mark.requirement("G-remote-token")
def test_a_listen_without_it_is_not_opened(guarded: Start) -> None:
    wire = guarded()
    params = {"notifications": {}, "_meta": modern_meta()}

    assert wire.error("subscriptions/listen", params)["message"] == REFUSED


GUESSES: list[Any] = [*range(100), *map(str, range(100))]


@pytest.mark.requirement("G-remote-token")
def test_a_stranger_cannot_answer_what_the_client_is_asked(project: ProjectBuilder, guarded: Start) -> None:
    """Responses carry no token. Our ids were 1, 2, 3, so whoever could write to the pipe answered forms, and chose the
    roots."""
    inside = project.root / "inside"
    inside.mkdir()
    project.python_tool("asker", f"{ASK}\nprint(ask({{'who': form('Who?', name=TEXT)}})['who']['result'])")
    project.tool("show", 'printf %s "$MCP_ROOTS_PATHS"')
    wire = guarded(ANSWER_SECS=600)
    capabilities = {"roots": {}, "elicitation": {}}
    wire.result("initialize", {**HELLO, "capabilities": capabilities, "_meta": dict(RIGHT)})
    wire.notify("notifications/initialized", {"_meta": dict(RIGHT)})
    wire.start_request("tools/call", {"name": "show", "_meta": dict(RIGHT)}, id="show")
    roots = wire.notice("roots/list")

    wire.send(*({"jsonrpc": "2.0", "id": id, "result": {"roots": []}} for id in GUESSES))
    wire.send({"jsonrpc": "2.0", "id": roots["id"], "result": {"roots": [{"uri": inside.as_uri()}]}})
    assert text_of(wire.response("show")["result"]) == str(inside)

    wire.start_request("tools/call", {"name": "asker", "_meta": dict(RIGHT)}, id="asker")
    asked = wire.notice("elicitation/create")
    wire.send(*({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}} for id in GUESSES))
    wire.send(*({"jsonrpc": "2.0", "id": id, "result": accept(name="Mallory")} for id in GUESSES))
    wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": accept(name="Alice")})
    assert "Alice" in text_of(wire.response("asker")["result"])
    assert asked["id"] != roots["id"]
    assert all(len(request["id"]) >= 32 for request in (asked, roots))


@pytest.mark.requirement("G-remote-token")
def test_a_question_is_taken_back_under_the_id_that_it_was_asked_under(guarded: Start) -> None:
    wire = guarded(ANSWER_SECS=0.1)
    wire.result("initialize", {**HELLO, "capabilities": {"roots": {}}, "_meta": dict(RIGHT)})
    wire.notify("notifications/initialized", {"_meta": dict(RIGHT)})
    asked = wire.notice("roots/list")

    assert wire.notice("notifications/cancelled")["params"]["requestId"] == asked["id"]
