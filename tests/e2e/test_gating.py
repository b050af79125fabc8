"""What is served when: before the client is ready, after `shutdown`, and which method exists in which revision."""

from __future__ import annotations

import pytest

from tests.support.client import ALL_REVISIONS, HANDSHAKE_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import Start, Wire, modern_meta

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
NOWHERE = ("no/such", "tools/no-such", "", "rpc.discover", "sampling/createMessage")
HANDSHAKE_ONLY = ("ping", "logging/setLevel", "shutdown", "exit", "tasks/result", "tasks/list")
STATELESS_ONLY = ("server/discover", "subscriptions/listen")


@pytest.mark.requirement("G-gate-before-ready")
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "logging/setLevel"])
def test_work_is_refused_before_the_handshake(shared_speak: Speak, method: str) -> None:
    error = shared_speak("2026-07-28").wire.error(method, {})

    assert (error["code"], error["message"]) == (-32000, "Server not initialized")


@pytest.mark.requirement("G-gate-before-ready")
def test_work_is_refused_between_initialize_and_initialized(wire: Wire) -> None:
    wire.send(INITIALIZE)
    wire.response("hello")

    assert wire.error("tools/list")["code"] == -32000

    wire.send(READY)
    assert "tools" in wire.result("tools/list")


@pytest.mark.requirement("G-gate-before-ready")
def test_an_initialized_without_initialize_opens_nothing(wire: Wire) -> None:
    wire.send(READY)

    assert wire.error("tools/list")["code"] == -32000


@pytest.mark.requirement("G-gate-pipelined")
def test_a_request_directly_behind_initialized_is_served(project: ProjectBuilder, start: Start) -> None:
    project.tool("hello", "echo hello")
    wire = start()
    wire.send(
        INITIALIZE,
        READY,
        {"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "hello"}},
        {"jsonrpc": "2.0", "id": "list", "method": "tools/list"},
    )

    assert wire.response("hello")["result"]
    assert [tool["name"] for tool in wire.response("list")["result"]["tools"]] == ["hello"]
    assert wire.response("call")["result"]["content"][0]["text"] == "hello\n"


@pytest.mark.requirement("G-gate-unknown-method")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_method_that_the_revision_does_not_have_is_not_found(shared_speak: Speak, revision: str) -> None:
    client = shared_speak(revision)
    absent = [*NOWHERE]
    absent += HANDSHAKE_ONLY if revision == "2026-07-28" else ()
    absent += ("tasks/get", "tasks/list") if revision < "2025-11-25" else ()

    assert {method: client.error(method)["code"] for method in absent} == dict.fromkeys(absent, -32601)


@pytest.mark.requirement("P-060")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
@pytest.mark.parametrize("method", STATELESS_ONLY)
def test_a_stateless_method_without_its_envelope_is_told_what_is_missing(
    shared_speak: Speak, revision: str, method: str
) -> None:
    error = shared_speak(revision).error(method, {"notifications": {}})

    assert error["code"] == -32602
    assert "io.modelcontextprotocol/protocolVersion" in error["message"]


@pytest.mark.requirement("G-shutdown-refuses")
def test_after_shutdown_work_is_refused(client: Wire) -> None:
    assert client.result("shutdown") == {}

    error = client.error("tools/list")
    assert (error["code"], error["message"]) == (-32003, "Server shutting down")
    assert client.error("tools/call", {"name": "x"})["code"] == -32003
    assert client.result("shutdown") == {}


@pytest.mark.requirement("G-shutdown-refuses")
def test_after_shutdown_there_is_no_new_handshake(wire: Wire) -> None:
    assert wire.result("shutdown") == {}
    wire.send(INITIALIZE)

    assert wire.response("hello")["error"]["code"] == -32003


@pytest.mark.requirement("G-exit-before-shutdown")
def test_exit_before_shutdown_is_refused_and_the_server_goes_on(client: Wire) -> None:
    error = client.error("exit")

    assert (error["code"], error["message"]) == (-32005, "Shutdown not requested")
    client.notify("exit")
    assert client.request("ping")["result"] == {}


@pytest.mark.requirement("G-minimal")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_minimal_mode_serves_the_lifecycle_and_logging_only(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    project.tool("hello", "echo hello")
    client = speak(revision, force_minimal="true")

    assert client.error("tools/list")["code"] == -32601
    assert client.error("tools/call", {"name": "hello"})["code"] == -32601
    if revision == "2026-07-28":
        assert client.result("server/discover")["capabilities"] == {"logging": {}}
    else:
        assert client.result("ping") == {}
        assert client.result("logging/setLevel", {"level": "error"}) == {}


@pytest.mark.requirement("G-minimal", "P-231")
def test_minimal_mode_has_no_list_changes_to_listen_to(start: Start) -> None:
    wire = start(force_minimal="true")
    wire.start_request(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": modern_meta()}, id="l"
    )

    notice = wire.notice("notifications/subscriptions/acknowledged")
    assert notice["params"]["notifications"] == {}


@pytest.mark.requirement("G-minimal", "P-044")
def test_minimal_mode_agrees_on_the_requested_revision(start: Start) -> None:
    result = start(force_minimal="true").handshake("2025-03-26")

    assert result["protocolVersion"] == "2025-03-26"
    assert result["capabilities"] == {"logging": {}}
