"""`initialize` in all its forms."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import termios
from typing import Any

import pytest

from tests.support.client import HANDSHAKE_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import LATEST_HANDSHAKE, MODERN, Json, Start, Wire, clean_environment, modern_meta


def params_for(version: Any, **more: Any) -> Json:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}, **more}


@pytest.mark.requirement("P-040", "P-041")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_handshake_revision_is_agreed_as_asked(wire: Wire, revision: str) -> None:
    result = wire.handshake(revision)

    assert result["protocolVersion"] == revision
    assert result["serverInfo"]["name"] == "test-project"
    assert result["serverInfo"]["version"] == "1.2.3"
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert result["capabilities"]["logging"] == {}


@pytest.mark.requirement("P-042")
@pytest.mark.parametrize("version", ["2026-07-28", "2031-01-01", "2024-10-07", "garbage", ""])
def test_any_other_version_is_answered_with_the_latest_handshake_revision(wire: Wire, version: str) -> None:
    assert wire.result("initialize", params_for(version))["protocolVersion"] == LATEST_HANDSHAKE


@pytest.mark.requirement("G-initialize-params")
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("params", [None, {}, {"capabilities": {}}, {"protocolVersion": None}], ids=str)
def test_without_a_version_the_latest_handshake_revision_is_offered(wire: Wire, params: Any, is_first: bool) -> None:
    """Smoke scripts for mcp-bash send empty parameters; the first message is answered before the engine is there."""
    if not is_first:
        wire.request("ping")

    assert wire.result("initialize", params)["protocolVersion"] == LATEST_HANDSHAKE
    wire.notify("notifications/initialized")
    assert "tools" in wire.result("tools/list")


@pytest.mark.requirement("G-initialize-params")
@pytest.mark.parametrize(
    "params",
    [
        params_for(5),
        params_for([LATEST_HANDSHAKE]),
        params_for(LATEST_HANDSHAKE, capabilities=[]),
        params_for(LATEST_HANDSHAKE, clientInfo="c"),
    ],
    ids=str,
)
def test_ill_typed_params_are_refused(shared_speak: Speak, params: Any) -> None:
    wire = shared_speak(MODERN).wire  # no handshake has been made on it

    assert wire.error("initialize", params)["code"] == -32602


@pytest.mark.requirement("G-initialize-params")
def test_after_a_refused_initialize_a_second_try_may_succeed(wire: Wire) -> None:
    assert wire.error("initialize", params_for(5))["code"] == -32602
    assert wire.handshake()["protocolVersion"] == LATEST_HANDSHAKE


@pytest.mark.requirement("G-initialize-params")
def test_unknown_capabilities_are_accepted(wire: Wire) -> None:
    capabilities = {"extensions": {"io.modelcontextprotocol/ui": {}}, "novelty": True, "roots": {"listChanged": True}}

    assert wire.handshake(capabilities=capabilities)["protocolVersion"] == LATEST_HANDSHAKE


@pytest.mark.requirement("G-initialize-once")
@pytest.mark.parametrize("is_ready", [False, True])
def test_a_second_initialize_is_refused_and_changes_nothing(wire: Wire, is_ready: bool) -> None:
    wire.result("initialize", params_for("2024-11-05"))
    if is_ready:
        wire.notify("notifications/initialized")

    assert wire.error("initialize", params_for(LATEST_HANDSHAKE))["code"] == -32600

    wire.notify("notifications/initialized")
    assert "tools" in wire.result("tools/list")


@pytest.mark.requirement("P-045")
def test_ping_is_answered_at_any_time(wire: Wire) -> None:
    assert wire.request("ping")["result"] == {}
    wire.result("initialize", params_for(LATEST_HANDSHAKE))
    assert wire.request("ping")["result"] == {}
    wire.notify("notifications/initialized")
    assert wire.request("ping")["result"] == {}


@pytest.mark.requirement("P-001")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
def test_results_without_content_are_empty(wire: Wire, revision: str) -> None:
    wire.handshake(revision)

    assert wire.result("ping") == {}
    assert wire.result("logging/setLevel", {"level": "debug"}) == {}
    assert wire.result("shutdown") == {}


@pytest.mark.requirement("P-046", "P-260")
def test_initialize_cannot_be_cancelled(wire: Wire) -> None:
    wire.send(
        {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params_for(LATEST_HANDSHAKE)},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "hello"}},
    )

    assert wire.response("hello")["result"]["protocolVersion"] == LATEST_HANDSHAKE
    wire.notify("notifications/initialized")
    assert "tools" in wire.result("tools/list")


@pytest.mark.requirement("P-040", "P-043")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_the_server_introduces_itself_as_far_as_the_revision_allows(
    project: ProjectBuilder, start: Start, revision: str
) -> None:
    about = {
        "name": "demo",
        "title": "Demo",
        "version": "9",
        "description": "shows",
        "websiteUrl": "https://example.com",
        "icons": [{"src": "data:image/png;base64,AAAA"}],
    }
    project.write("server.d/server.meta.json", json.dumps(about))
    project.write("server.d/server.instructions.md", "Be kind.\n")
    result = start().handshake(revision)

    known = {"2025-06-18": {"title"}, "2025-11-25": {"title", "description", "websiteUrl", "icons"}}
    assert set(result["serverInfo"]) == {"name", "version"} | known.get(revision, set())
    assert result["instructions"] == "Be kind."


@pytest.mark.requirement("P-068")
def test_an_initialize_without_handshake_params_does_not_exist_for_a_stateless_client(wire: Wire) -> None:
    assert wire.error("initialize", {"_meta": modern_meta()})["code"] == -32601


@pytest.mark.requirement("P-041", "P-068")
def test_an_initialize_that_also_carries_the_envelope_is_a_handshake(wire: Wire) -> None:
    wire.start_request("initialize", params_for("2025-06-18", _meta=modern_meta()), id="both")
    wire.modern_marks.clear()  # the answer is that of a handshake

    assert wire.response("both")["result"]["protocolVersion"] == "2025-06-18"


def test_a_long_greeting_is_written_whole_where_writing_does_not_wait(project: ProjectBuilder) -> None:
    """Whoever made the pipe may have made it non-blocking."""
    project.write("server.d/server.instructions.md", "Be kind. " * 50_000)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    command = [sys.executable, "-m", "mcpgreen", "serve", "--project-root", str(project.root)]
    greeting = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params_for(LATEST_HANDSHAKE)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writing, env=clean_environment(None)) as server:
        os.close(writing)
        assert server.stdin is not None
        server.stdin.write(json.dumps(greeting).encode() + b"\n")
        server.stdin.flush()
        eventually(lambda: bytes_in(reading) >= 65536)
        server.stdin.write(b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}\n')
        server.stdin.close()
        with open(reading, "rb") as output:
            answers = [json.loads(line) for line in output]

    assert answers[0]["result"]["instructions"].startswith("Be kind. ")
    assert answers[1:] == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


def bytes_in(pipe: int) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
