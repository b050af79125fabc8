"""A tool can ask whether the client that calls it shows pages."""

from __future__ import annotations

import pytest

from tests.support import ways
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import MODERN, Wire, modern_meta

way, project = ways.way, ways.project

SHOWS_PAGES = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}


@pytest.mark.parametrize(("capabilities", "expected"), [({}, "0"), (SHOWS_PAGES, "1")])
def test_a_tool_sees_what_the_client_said_in_its_handshake(
    project: ProjectBuilder, wire: Wire, capabilities: dict[str, object], expected: str
) -> None:
    project.tool("ask", 'echo "$MCPBASH_CLIENT_SUPPORTS_UI"')
    wire.handshake(capabilities=capabilities)

    assert wire.call_tool("ask")["content"][0]["text"].strip() == expected


def test_on_one_connection_each_call_counts_for_itself(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("ask", 'echo "$MCPBASH_CLIENT_SUPPORTS_UI"')
    client = speak(MODERN, env={"MCPBASH_CLIENT_SUPPORTS_UI": "yes"})

    answers = [
        client.call_tool("ask", meta=modern_meta(capabilities=capabilities))["content"][0]["text"].strip()
        for capabilities in ({}, SHOWS_PAGES, {})
    ]

    assert answers == ["0", "1", "0"]
