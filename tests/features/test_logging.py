"""Log messages for the client, in both eras."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import ways
from tests.support.client import HANDSHAKE_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import META_PREFIX, MODERN, Start, Wire, text_of

way, project, shared_project = ways.way, ways.project, ways.shared_project

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVEL = META_PREFIX + "logLevel"


def log(level: str, data: Any = "said", **more: Any) -> str:
    params = {"level": level, "data": data, **more}
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
    return f"""echo '{line}' >> "$MCP_LOG_STREAM"\n"""


def levels_of(wire: Wire, since: int = 0) -> list[str]:
    notices = [message for message in wire.seen[since:] if message.get("method") == "notifications/message"]
    return [notice["params"]["level"] for notice in notices]


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    shared_project.tool("say", "".join(map(log, LEVELS)) + "echo done")
    too_large = log("error", "NUMBER").replace('"NUMBER"', "[1e999]")
    shared_project.tool("infinite", too_large + log("error") + "echo done")
    shared_project.tool("infinite-slow", too_large + "sleep 0.2\n" + log("error") + "echo done")


@pytest.mark.requirement("P-252")
@pytest.mark.parametrize("level", LEVELS)
def test_a_handshake_client_gets_messages_from_its_level_on(shared_speak: Speak, level: str) -> None:
    client = shared_speak()
    client.result("logging/setLevel", {"level": level})
    seen_before = len(client.wire.seen)
    client.call_tool("say")

    assert levels_of(client.wire, seen_before) == LEVELS[LEVELS.index(level) :]


@pytest.mark.parametrize("name", ["infinite", "infinite-slow"])
def test_a_message_that_is_no_json_costs_itself_alone(shared_speak: Speak, name: str) -> None:
    client = shared_speak()
    client.result("logging/setLevel", {"level": "error"})
    seen_before = len(client.wire.seen)

    assert text_of(client.call_tool(name)) == "done\n"
    assert levels_of(client.wire, seen_before) == ["error"]
    assert "Traceback" not in client.wire.stderr


@pytest.mark.requirement("P-251")
@pytest.mark.parametrize("level", LEVELS)
def test_a_stateless_request_gets_messages_from_its_level_on(shared_speak: Speak, level: str) -> None:
    client = shared_speak(MODERN)
    seen_before = len(client.wire.seen)
    client.call_tool("say", meta={LOG_LEVEL: level})

    assert levels_of(client.wire, seen_before) == LEVELS[LEVELS.index(level) :]


@pytest.mark.requirement("P-251")
def test_a_stateless_request_without_a_level_gets_none(shared_speak: Speak) -> None:
    client = shared_speak(MODERN)
    seen_before = len(client.wire.seen)
    client.call_tool("say")

    assert levels_of(client.wire, seen_before) == []


@pytest.mark.requirement("P-252")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_before_a_level_is_set_messages_come_from_info_on(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    project.tool("say", log("debug") + log("info") + log("error"))
    client = speak(revision)
    client.call_tool("say")

    assert levels_of(client.wire) == ["info", "error"]


@pytest.mark.requirement("P-252")
@pytest.mark.parametrize("level", ["loud", "", 5, None, ["info"]], ids=str)
def test_a_level_that_does_not_exist_is_refused(shared_speak: Speak, level: Any) -> None:
    assert shared_speak("2025-06-18").error("logging/setLevel", {"level": level})["code"] == -32602


@pytest.mark.requirement("P-250")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_who_sends_messages_has_declared_logging(start: Start, revision: str) -> None:
    assert "logging" in start().handshake(revision)["capabilities"]


@pytest.mark.requirement("P-250", "P-251")
def test_messages_hold_what_the_script_said_and_come_before_the_response(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("say", log("info", {"any": ["json"]}, logger="mine") + log("info", None) + log("loud") + "echo")
    client = speak()
    client.call_tool("say")

    messages = client.wire.notices("notifications/message")
    assert [message["params"] for message in messages] == [
        {"level": "info", "data": {"any": ["json"]}, "logger": "mine"}
    ]
    assert "result" in client.wire.seen[-1]


@pytest.mark.requirement("G-throttle")
def test_messages_are_throttled(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("say", log("info") * 9)
    client = speak(max_logs_per_min=4)
    client.call_tool("say")

    assert len(levels_of(client.wire)) == 4


@pytest.mark.requirement("P-253")
def test_a_secret_of_the_server_reaches_neither_tools_nor_messages(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("env", "env")
    secret = "s3cret-" * 6
    client = speak(env={"MCPGREEN_STATE_KEY": secret, "MCPGREEN_STDERR_LEVEL": "debug"})
    client.result("logging/setLevel", {"level": "debug"})
    client.call_tool("env")
    client.wire.stop()

    assert secret.encode() not in b"".join(client.wire.raw_lines)
    assert secret not in client.wire.stderr


@pytest.mark.requirement("P-044", "G-bad-metadata")
def test_a_warning_about_the_project_is_logged_to_a_handshake_client(project: ProjectBuilder, client: Wire) -> None:
    client.result("tools/list")
    project.tool("bad", "echo")
    project.write("tools/bad.meta.json", "{")

    message = client.notice("notifications/message")["params"]
    assert message["level"] == "warning"
    assert "bad.meta.json" in message["data"]
