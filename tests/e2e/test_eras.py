"""The stateless envelope, and both eras on one pipe."""

from __future__ import annotations

import pytest

from tests.support.client import HANDSHAKE_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import META_PREFIX, MODERN, Json, Start, Wire, modern_meta

VERSION = META_PREFIX + "protocolVersion"
CAPABILITIES = META_PREFIX + "clientCapabilities"
CLIENT_INFO = META_PREFIX + "clientInfo"
LOG_LEVEL = META_PREFIX + "logLevel"
SERVER_INFO = META_PREFIX + "serverInfo"


@pytest.mark.requirement("P-063", "P-065", "P-265")
def test_discover_works_as_the_very_first_message(project: ProjectBuilder, start: Start) -> None:
    project.write("server.d/server.instructions.md", "Be kind.\n")
    result = start(tasks="auto").modern("server/discover")["result"]

    assert result["resultType"] == "complete"
    assert result["supportedVersions"] == [MODERN, *reversed(HANDSHAKE_REVISIONS)]
    assert result["capabilities"] == {
        "logging": {},
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "extensions": {
            "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]},
            "io.modelcontextprotocol/tasks": {},
        },
    }
    assert result["instructions"] == "Be kind."
    assert result["ttlMs"] == 60_000
    assert result["cacheScope"] == "private"
    assert result["_meta"][SERVER_INFO]["name"] == "test-project"


@pytest.mark.requirement("P-063")
def test_discover_says_the_same_at_any_time(wire: Wire) -> None:
    first = wire.modern("server/discover")["result"]
    wire.modern("tools/list")
    wire.handshake()

    assert wire.modern("server/discover")["result"] == first


@pytest.mark.requirement("P-064", "P-112")
def test_what_discover_advertises_is_served(wire: Wire) -> None:
    offered = wire.modern("server/discover")["result"]["capabilities"]
    for kind in ("tools", "prompts", "resources"):
        assert kind in offered
        assert wire.modern(f"{kind}/list")["result"][kind] == []


@pytest.mark.requirement("P-065", "P-265", "P-266")
def test_every_stateless_result_is_stamped(project: ProjectBuilder, wire: Wire) -> None:
    project.tool("hello", "echo hello")
    listed = wire.modern("tools/list")["result"]
    called = wire.modern("tools/call", {"name": "hello"})["result"]

    for result in (listed, called):
        assert result["resultType"] == "complete"
        assert result["_meta"][SERVER_INFO] == {"name": "test-project", "title": "Test Project", "version": "1.2.3"}
    assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
    assert not called.keys() & {"ttlMs", "cacheScope"}


@pytest.mark.requirement("P-060", "P-014")
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "server/discover", "subscriptions/listen", "no/such"])
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({VERSION: 5}, -32602),
        ({VERSION: None}, -32602),
        ({VERSION: "2031-01-01", CAPABILITIES: ...}, -32022),
        ({VERSION: "2025-11-25"}, -32022),
        ({CAPABILITIES: ...}, -32602),
        ({CAPABILITIES: None}, -32602),
        ({CAPABILITIES: "none"}, -32602),
        ({CAPABILITIES: {"sampling": 1}}, -32602),
        ({LOG_LEVEL: "loud"}, -32602),
        ({LOG_LEVEL: 3}, -32602),
        ({"progressToken": {}}, -32602),
    ],
    ids=str,
)
def test_a_flawed_envelope_is_refused_whatever_the_method(
    shared_speak: Speak, method: str, change: Json, code: int
) -> None:
    meta = {key: value for key, value in {**modern_meta(), **change}.items() if value is not ...}

    assert shared_speak(MODERN).wire.error(method, {"_meta": meta, "notifications": {}})["code"] == code


@pytest.mark.requirement("P-060")
@pytest.mark.parametrize("key", [CAPABILITIES, CLIENT_INFO])
def test_half_an_envelope_before_a_handshake_is_told_what_is_missing(wire: Wire, key: str) -> None:
    error = wire.error("tools/list", {"_meta": {key: {}}})

    assert error["code"] == -32602
    assert VERSION in error["message"]


@pytest.mark.requirement("P-014", "P-015")
@pytest.mark.parametrize("version", ["2031-01-01", "2025-11-25", "garbage", ""])
def test_an_unsupported_version_is_told_what_discover_tells(shared_speak: Speak, version: str) -> None:
    client = shared_speak(MODERN)
    error = client.error("tools/list", meta={VERSION: version})

    assert error["code"] == -32022
    assert error["data"]["requested"] == version
    assert error["data"]["supported"]
    assert set(error["data"]["supported"]) <= set(client.result("server/discover")["supportedVersions"])


@pytest.mark.requirement("P-061")
@pytest.mark.parametrize("info", [None, {"name": "x", "version": "1"}, {"name": "y", "version": "2", "novelty": 1}])
def test_who_the_client_is_makes_no_difference(shared_speak: Speak, info: Json | None) -> None:
    client = shared_speak(MODERN)

    assert client.result("tools/list", meta={CLIENT_INFO: info} if info else {}) == client.result("tools/list")


@pytest.mark.requirement("P-062", "P-251")
def test_nothing_of_an_earlier_request_is_remembered(project: ProjectBuilder, wire: Wire) -> None:
    log = '{"method":"notifications/message","params":{"level":"error","data":"said"}}'
    project.tool("say", f"echo '{log}' > \"$MCP_LOG_STREAM\"; sleep 0.05; echo done")
    wire.handshake()
    wire.result("logging/setLevel", {"level": "debug"})
    wire.modern("tools/call", {"name": "say"}, meta={LOG_LEVEL: "debug"})
    assert len(wire.notices("notifications/message")) == 1

    wire.modern("tools/call", {"name": "say"})
    assert len(wire.notices("notifications/message")) == 1


@pytest.mark.requirement("P-066")
def test_the_list_is_the_same_for_everybody(project: ProjectBuilder, start: Start) -> None:
    for name in ("b", "a", "c"):
        project.tool(name, "echo")
    one, two = start(), start()
    one.handshake()
    first = one.modern("tools/list")["result"]
    one.call_tool("a")

    assert one.modern("tools/list", meta={CLIENT_INFO: {"name": "x", "version": "1"}})["result"] == first
    assert two.modern("tools/list")["result"] == first
    assert [tool["name"] for tool in first["tools"]] == ["a", "b", "c"]


@pytest.mark.requirement("P-068")
@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "shutdown", "exit"],
)
def test_a_removed_method_does_not_exist_even_after_a_handshake(shared_speak: Speak, method: str) -> None:
    assert shared_speak("2025-11-25").wire.modern(method, {"level": "info", "uri": "a:b"})["error"]["code"] == -32601


@pytest.mark.requirement("P-062", "P-042")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_handshake_may_follow_stateless_requests(project: ProjectBuilder, wire: Wire, revision: str) -> None:
    project.tool("list", "echo '[1]'", title="List", outputSchema={"type": "array"})
    modern_before = wire.modern("tools/list")["result"]["tools"]
    wire.handshake(revision)
    handshake = wire.result("tools/list")
    modern_after = wire.modern("tools/call", {"name": "list"})["result"]

    assert "outputSchema" in modern_before[0]
    assert "outputSchema" not in handshake["tools"][0]
    assert modern_after["structuredContent"] == [1]
    assert "structuredContent" not in wire.call_tool("list")


@pytest.mark.requirement("P-062")
def test_stateless_requests_may_follow_a_handshake_that_was_never_completed(wire: Wire) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    wire.result("initialize", hello)

    assert wire.error("tools/list")["code"] == -32000
    assert wire.modern("tools/list")["result"]["tools"] == []
