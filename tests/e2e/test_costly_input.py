"""Input that would cost the server much more than it costs whoever sends it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.support.client import Speak
from tests.support.processes import MIB, peak_bytes
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Start, Wire, text_of

WITH_BATCHES = "2025-03-26"
TOKEN = "0123456789abcdef0123456789abcdef"
SMALL_BYTES = 120 * MIB  # what a server may take at its worst here; what it was made to take was a multiple


def is_refusal(message: dict[str, Any]) -> bool:
    return "id" not in message and message.get("error", {}).get("code") in (-32700, -32600)


def write(wire: Wire, data: bytes) -> None:
    """As `send_bytes`, but our own side does not try to understand it."""
    assert wire.process.stdin is not None
    wire.process.stdin.write(data)
    wire.process.stdin.flush()


@pytest.mark.requirement("G-parse-error")
@pytest.mark.parametrize(
    "costly",
    [b"[" + b"[]," * (5 * MIB), b"[" + b"[]," * MIB + b"[]]", b'[{"a":' * (2 * MIB), b"[" + b"NaN," * MIB],
    ids=["unclosed", "closed", "deep", "NaN"],
)
def test_a_line_of_many_small_parts_is_refused_before_it_is_parsed(wire: Wire, costly: bytes) -> None:
    """Also before anybody had to say who they are: 16 MiB took 839 MB and 15 s."""
    write(wire, costly + b"\n")

    assert wire.receive(is_refusal)
    assert wire.request("ping")["result"] == {}
    assert peak_bytes(wire.process.pid) < SMALL_BYTES


def test_arguments_of_many_parts_are_served_up_to_the_limit(project: ProjectBuilder, client: Wire) -> None:
    project.tool("size", 'wc -c < "$MCP_TOOL_ARGS_FILE"')

    assert int(text_of(client.call_tool("size", {"numbers": list(range(200_000))}))) > 10**6


@pytest.mark.parametrize("ending", ["", "]"], ids=["unclosed", "closed"])
def test_output_of_many_small_parts_is_text(project: ProjectBuilder, client: Wire, ending: str) -> None:
    project.tool("brackets", f"printf '['; yes '[],' | head -n 3000000 | tr -d '\\n'; printf '[]{ending}'")

    result = client.call_tool("brackets")

    assert "structuredContent" not in result
    assert text_of(result).startswith("[[],[],[],")
    assert peak_bytes(client.process.pid) < SMALL_BYTES


@pytest.mark.requirement("P-031")
def test_a_batch_of_too_many_members_is_refused_as_one(speak: Speak) -> None:
    """A line of ones became 744 MiB of answers."""
    wire = speak(WITH_BATCHES).wire
    write(wire, b"[" + b"1," * 200_000 + b"1]\n")

    refusal = wire.receive(is_refusal)
    assert "1000 members" in refusal["error"]["message"]
    assert wire.request("ping")["result"] == {}
    assert peak_bytes(wire.process.pid) < SMALL_BYTES


@pytest.mark.requirement("P-031")
def test_others_get_their_turn_while_a_batch_is_served(project: ProjectBuilder, speak: Speak) -> None:
    """A call that began before the batch is answered before it, although its members need not wait for anything."""
    project.prompt("long", "é" * 4000)
    project.tool("quick", "echo quick")
    wire = speak(WITH_BATCHES).wire
    wire.request("prompts/list")
    long = {"method": "prompts/get", "params": {"name": "long"}}
    members = [{"jsonrpc": "2.0", "id": f"m{number}", **long} for number in range(1000)]
    wire.send({"jsonrpc": "2.0", "id": "quick", "method": "tools/call", "params": {"name": "quick"}}, members)

    assert json.loads(wire.next_line())["id"] == "quick"
    assert wire.next_line().startswith(b"[{")


@pytest.mark.requirement("G-remote-token")
def test_members_that_are_no_objects_are_strangers(start: Start) -> None:
    wire = start(remote_token=TOKEN, compat_batches="true")
    wire.send([1, "x", None, [], {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}])
    answers = wire.receive(lambda message: "batch" in message)["batch"]

    assert {answer["error"]["message"] for answer in answers} == {"Remote token missing or invalid"}


@pytest.mark.parametrize(
    "arguments",
    [b'{"x":"' + b"x" * MIB + b'"}', b'{"x":[' + b"[]," * 6500 + b"1]}"],
    ids=["long", "many parts"],
)
def test_requests_that_wait_are_weighed_and_do_not_keep_a_ping_waiting(
    project: ProjectBuilder, start: Start, arguments: bytes
) -> None:
    """150 calls of 15 MiB each took 2.1 GB. Then nothing was read while they waited, be it a ping or a cancellation."""
    project.tool("wait", "until [ -e go ]; do sleep 0.01; done; echo done")
    wire = start(max_concurrent_requests=1, MAX_QUEUED_BYTES=2 * MIB).greeted()
    ids = range(100, 110)
    request = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":%s}}\n'
    wire.methods.update(dict.fromkeys(ids, "tools/call"))
    write(wire, b"".join(request % (id, arguments) for id in ids))

    assert wire.request("ping")["result"] == {}  # it comes last, and nothing is over yet
    wire.notify("notifications/cancelled", {"requestId": ids[1]})
    project.write("go", "")
    answers = [wire.response(id) for id in ids if id != ids[1]]
    refused = [answer["error"]["message"] for answer in answers if "error" in answer]
    assert all(text_of(answer["result"]) == "done\n" for answer in answers[: -len(refused)])
    assert set(refused) == {"Too many requests are waiting; try again later."}
    assert 4 <= len(refused) <= 6  # one runs, and what takes four MiB waits
    assert peak_bytes(wire.process.pid) < SMALL_BYTES


def test_reading_goes_on_while_the_client_is_asked(project: ProjectBuilder, speak: Speak) -> None:
    """Its answer may be what all the others wait for."""
    project.tool(
        "ask",
        """
        . "$MCP_SDK/tool-sdk.sh"
        mcp_elicit_string "Who?" >/dev/null
        touch answered
        """,
    )
    project.tool("wait", "touch waiting; until [ -e go ]; do sleep 0.01; done; echo done")
    wire = speak(
        capabilities={"elicitation": {}}, max_concurrent_requests=1, MAX_QUEUED_BYTES=64 * 1024, MAX_QUEUED_REQUESTS=3
    ).wire
    asking = wire.start_request("tools/call", {"name": "ask"})
    question = wire.receive(lambda message: message.get("method") == "elicitation/create")
    calls = [wire.start_request("tools/call", {"name": "wait", "arguments": {"x": "y" * 100_000}}) for _ in range(3)]
    eventually(lambda: (project.root / "waiting").exists())

    assert wire.request("ping")["result"] == {}
    wire.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"value": "Ada"}}})
    project.write("go", "")
    assert {wire.response(id)["id"] for id in [asking, *calls]} == {asking, *calls}
    assert (project.root / "answered").exists()


def test_a_message_without_memory_is_refused_and_the_next_one_is_served(project: ProjectBuilder, start: Start) -> None:
    """It ended the server, with status 0 as if the client had left."""
    limited = ["sh", "-c", f'ulimit -v 200000; exec {sys.executable} -m mcpgreen serve "$@"', "sh"]
    wire = start(max_line_bytes=1 << 30, wire={"command": limited}).greeted()
    write(wire, b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + b"x" * (180 * MIB) + b'"}}\n')

    refusal = wire.receive(is_refusal)
    assert "memory" in refusal["error"]["data"]
    assert wire.request("ping")["result"] == {}
