"""Messages that are wrong in one place, or in two: every member of every kind of message, over HTTP and over a pipe."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from mcpgreen.protocol.messages import normal_id
from tests.support.http import BOTH_TYPES, NAMED_BY, HttpServer
from tests.support.project import ProjectBuilder
from tests.support.wire import MODERN, Json, Wire, modern_meta
from tests.transports.http.attacking import Answer, head, raw

Path = tuple[str | int, ...]

SEED = 23
PAIRS = 300  # of mistakes in one message

ABSENT = object()
TOO_LARGE = float("inf")  # sent as 1e400: a number that can be read, but not written
ODD: list[Any] = [ABSENT, None, True, 0, -1, 1.5, TOO_LARGE, 10**400, "", "odd", "\ud800", [], [[]], ["odd"], {}]
ODD += [{"odd": []}]

SCHEMA = {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "count"}}}
GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {"listChanged": True}, "extensions": {"x": {}}},
    "clientInfo": {"name": "c", "version": "1"},
}
CALL = {
    "name": "hello",
    "arguments": {"count": 1},
    "inputResponses": {"a": {"action": "accept", "content": {}}},
    "requestState": "x",
}
REQUESTS: dict[str, Json] = {
    "initialize": GREETING,
    "ping": {},
    "server/discover": {},
    "tools/list": {"cursor": "x", "limit": 5},
    "tools/call": CALL,
    "resources/read": {"uri": "absent://x"},
    "resources/subscribe": {"uri": "absent://x"},
    "resources/unsubscribe": {"uri": "absent://x"},
    "prompts/get": {"name": "note", "arguments": {"who": "me"}},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "note"},
        "argument": {"name": "who", "value": ""},
        "context": {"arguments": {"a": "b"}},
    },
    "logging/setLevel": {"level": "info"},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["absent://x"]}},
    "no/such": {},
}
NOTIFICATIONS: dict[str, Json] = {
    "notifications/initialized": {},
    "notifications/cancelled": {"requestId": "none", "reason": "why"},
    "notifications/roots/list_changed": {},
    "notifications/progress": {"progressToken": 1, "progress": 1},
}
RESPONSES: list[Json] = [
    {"jsonrpc": "2.0", "id": 1, "result": {"roots": []}},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no", "data": 1}},
]
NO_OBJECTS: list[Any] = [None, True, 5, 1.5, "odd", [], [[]], [5, None], [{}], [{"id": [], "method": []}]]


def good_messages(*, is_stateless: bool) -> Iterator[Json]:
    meta = modern_meta(capabilities={"elicitation": {}}, log_level="info") if is_stateless else {}
    for number, (method, params) in enumerate(REQUESTS.items()):
        full = {**params, "_meta": {**meta, "progressToken": "p", "com.example/x": 1}}
        yield {"jsonrpc": "2.0", "id": f"good {number}", "method": method, "params": full}
    for method, params in NOTIFICATIONS.items():
        yield {"jsonrpc": "2.0", "method": method, "params": params}
    yield from RESPONSES


def odd_messages(*, is_stateless: bool) -> list[Any]:
    odd: list[Any] = []
    for message in good_messages(is_stateless=is_stateless):
        odd += (changed(message, path, value) for path in places(message) for value in ODD)
    luck = random.Random(SEED)
    twice = [each for each in luck.choices(odd, k=PAIRS) if each]
    odd += (changed(each, luck.choice(list(places(each))), luck.choice(ODD)) for each in twice)
    for number, message in enumerate(odd):
        if str(message.get("id")).startswith("good"):
            message["id"] = f"good {number}"  # a request that is still running does not share its id
    return [*NO_OBJECTS, *odd]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The way to every member, however deep."""
    members = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    for key, each in members:
        yield (*path, key)
        yield from places(each, (*path, key))


def changed(message: Json, path: Path, value: Any) -> Json:
    message = copy.deepcopy(message)
    *way, last = path
    holder: Any = message
    for key in way:
        holder = holder[key]
    if value is ABSENT:
        del holder[last]
    else:
        holder[last] = value
    return message


def encoded(message: Any) -> bytes:
    return json.dumps(message).replace("Infinity", "1e400").encode()


def id_to_answer(message: Any) -> str | int | None:
    """None for what is no request with a usable id."""
    is_request = type(message) is dict and type(message.get("method")) is str
    found = normal_id(message.get("id")) if is_request else None
    return "\ufffd" if found == "\ud800" else found


def require_good(said: Json, message: Any) -> None:
    assert said["jsonrpc"] == "2.0" and ("result" in said) != ("error" in said), (said, message)
    if "error" in said:
        code, text = said["error"]["code"], said["error"]["message"]
        assert -32700 < code <= -32000 and type(text) is str and text, (said, message)
        assert code != -32603, (said, message)  # a mistake of the client is not ours


def require_quiet(stderr: str) -> None:
    assert "Traceback" not in stderr and "unexpectedly" not in stderr, stderr[-5000:]


@pytest.fixture(scope="module")
def odd_project(shared_project: ProjectBuilder) -> ProjectBuilder:
    shared_project.tool("hello", "echo hello", inputSchema=SCHEMA)
    shared_project.prompt("note.txt", "Hello {{who}}")
    return shared_project


@pytest.fixture(scope="module")
def server(odd_project: ProjectBuilder) -> Iterator[HttpServer]:
    with HttpServer(odd_project.root) as server:
        yield server


@pytest.mark.requirement("G-http-no-answer", "P-013", "P-024")
@pytest.mark.parametrize("sender", ["2025-11-25", "2025-03-26", MODERN, "nobody"])
def test_over_http_an_odd_message_is_answered_with_an_error_and_its_status(server: HttpServer, sender: str) -> None:
    lines = []
    if sender not in (MODERN, "nobody"):
        lines = [f"Mcp-Session-Id: {server.session(sender).session_id}"]
    with raw(server) as connection:
        for message in odd_messages(is_stateless=sender == MODERN):
            body = encoded(message)
            repeated = lines_repeating(message) if sender == MODERN else []
            # No stream that would stay open.
            accept = "application/json" if "subscriptions/listen" in str(message) else BOTH_TYPES
            own = ("Content-Type: application/json", f"Accept: {accept}", f"Content-Length: {len(body)}")
            connection.send(head("POST", "/mcp", *own, *lines, *repeated) + body)
            require_good_answer(connection.answer(), message, has_sender=sender != "nobody")
    require_quiet(server.stderr)


def lines_repeating(message: Any) -> list[str]:
    """What the headers of a stateless request repeat of its body, as far as they can say it."""
    members = object_or_empty(message)
    params = object_or_empty(members.get("params"))
    arguments = object_or_empty(params.get("arguments"))
    said = {
        "Mcp-Method": members.get("method"),
        "Mcp-Name": params.get(NAMED_BY.get(str(members.get("method")), "")),
        "Mcp-Param-Count": json.dumps(arguments["count"]) if "count" in arguments else None,
    }
    lines = [f"{name}: {value}" for name, value in said.items() if type(value) is str and value.isascii()]
    return [f"MCP-Protocol-Version: {MODERN}", *lines]


def object_or_empty(value: Any) -> Json:
    return value if type(value) is dict else {}


def require_good_answer(answer: Answer, message: Any, *, has_sender: bool) -> None:
    where = (answer.status, answer.body[:500], message)
    assert answer.status < 500, where
    if answer.status == 202:
        assert not answer.body and id_to_answer(message) is None, where
        return
    said = json.loads(answer.body.rpartition(b"data: ")[2])  # of an event, or all
    for each in said if type(said) is list else [said]:
        require_good(each, message)
    has_id = type(said) is dict and "id" in said
    assert has_id or 400 <= answer.status < 500, where
    if has_sender and id_to_answer(message) is not None and answer.status != 406:
        assert has_id and said["id"] == id_to_answer(message), where


@pytest.mark.requirement("P-013", "P-024")
@pytest.mark.parametrize("sender", ["2025-11-25", MODERN])
def test_over_a_pipe_every_odd_request_is_answered_with_an_error_under_its_id(
    odd_project: ProjectBuilder, sender: str
) -> None:
    messages = odd_messages(is_stateless=sender == MODERN)
    by_id = {id_to_answer(each): each for each in messages if "listen" not in str(each)}
    waiting = {each for each in by_id if str(each).startswith("good")}  # the other ids come more than once
    with Wire(odd_project.root) as wire:
        if sender != MODERN:
            wire.handshake(sender)
        assert wire.process.stdin is not None
        wire.process.stdin.write(b"".join(encoded(each) + b"\n" for each in messages))
        wire.process.stdin.flush()
        while waiting:
            said = json.loads(wire.next_line())
            if "method" not in said:
                require_good(said, by_id.get(said.get("id")))
                waiting.discard(said.get("id"))
        require_quiet(wire.stderr)
