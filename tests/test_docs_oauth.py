"""docs/oauth.md tells the truth: its setting is one, its tools need the scopes that it names and know who calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from mcpgreen.engine.server import Server
from mcpgreen.links.principal import Principal
from mcpgreen.settings.table import ROWS, load
from mcpgreen.testing import FakeLink, serving
from mcpgreen.transports.http.door import Door
from mcpgreen.transports.http.oauth.configuration import configured_resource_server
from mcpgreen.transports.http.wire.listening import Address
from tests.support.project import ProjectBuilder
from tests.test_docs_examples import CHECKOUT, blocks_of

BLOCKS = blocks_of(CHECKOUT / "docs" / "oauth.md")
TOOLS = {block.info: block.text for block in BLOCKS if block.info.startswith("tools/")}
SCOPE = "files:write"


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    for path, text in TOOLS.items():
        project.write(path, text).chmod(0o755)
    with serving(project.root) as server:
        yield server


def test_the_tools_need_the_scope_and_know_the_caller(server: Server) -> None:
    ada = FakeLink(server, principal=Principal("i|ada", frozenset({SCOPE}), {"sub": "ada"}))

    noted = ada.ask_stateless("tools/call", {"name": "note"}, id=1)["result"]
    assert noted["content"][0]["text"] == "noted for ada\n"
    forgot = ada.ask_stateless("tools/call", {"name": "forget", "arguments": {"note": "x"}}, id=2)["result"]
    assert forgot["content"][0]["text"] == "forgot x"


@pytest.mark.parametrize("tool", ["note", "forget"])
def test_a_caller_without_the_scope_gets_the_error_that_is_shown(server: Server, tool: str) -> None:
    (shown,) = (json.loads(block.text) for block in BLOCKS if '"requiredScopes"' in block.text)
    bob = FakeLink(server, principal=Principal("i|bob", frozenset({"files:read"})))

    assert bob.ask_stateless("tools/call", {"name": tool, "arguments": {"note": "x"}}, id=1)["error"] == shown


def test_whoever_has_the_other_token_needs_no_scope(server: Server) -> None:
    holder = FakeLink(server, principal=Principal("token"))

    assert "result" in holder.ask_stateless("tools/call", {"name": "note"}, id=1)


def only(info: str) -> str:
    (text,) = (block.text for block in BLOCKS if block.info == info)
    return text


def test_the_settings_that_are_shown_will_do() -> None:
    (shown,) = (block.text for block in BLOCKS if block.language == "sh")
    settings = load({}, dict(line.removeprefix("export ").split("=", 1) for line in shown.splitlines()), {})
    server = configured_resource_server(settings, resource_url=settings.http_public_url)

    assert settings.notes == ()
    assert server is not None
    Door(settings, Address("127.0.0.1", 8808), server).require_good_names({"HTTP_HOST": "mcp.example.com"})
    assert server.challenge() == only("challenge").strip()
    assert server.metadata() == json.loads(only("metadata"))


def test_the_page_has_every_setting() -> None:
    table = (CHECKOUT / "docs" / "oauth.md").read_text(encoding="utf-8")
    ours = [row.name for row in ROWS if row.name.startswith("http_oauth_")]

    assert re.findall(r"^\| `(http_oauth_\w+)` \|", table, re.MULTILINE) == ours
