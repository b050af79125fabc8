"""The extension for user interfaces: who hears of it, and who says that he knows it."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.protocol import admission, revisions
from mcpgreen.protocol.admission import Handshake
from mcpgreen.protocol.revisions import UI_EXTENSION

OFFERED = frozenset({"logging", "tools", "resources"})
IDENTITY = admission.Identity({"name": "server", "version": "1"}, None)
SHOWN = {UI_EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]}}


def capabilities_for(version: str, client: dict[str, Any], offered: frozenset[str] = OFFERED) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": client}
    return admission.initialize(params, Handshake(), IDENTITY, offered=offered, log_level="info")["capabilities"]


@pytest.mark.parametrize("settings", [{}, {"mimeTypes": ["text/html;profile=mcp-app"]}, True])
def test_a_client_that_knows_pages_hears_of_them(settings: Any) -> None:
    assert capabilities_for("2025-11-25", {"extensions": {UI_EXTENSION: settings}})["extensions"] == SHOWN


@pytest.mark.parametrize("client", [{}, {"extensions": {}}, {"extensions": {UI_EXTENSION: None}}, {"extensions": []}])
def test_other_clients_of_the_handshake_era_do_not(client: dict[str, Any]) -> None:
    assert "extensions" not in capabilities_for("2025-11-25", client)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_older_revisions_have_no_extensions(version: str) -> None:
    assert "extensions" not in capabilities_for(version, {"extensions": {UI_EXTENSION: {}}})


def test_without_resources_there_are_no_pages() -> None:
    offered = frozenset({"logging", "tools"})

    assert "extensions" not in capabilities_for("2025-11-25", {"extensions": {UI_EXTENSION: {}}}, offered)
    assert "extensions" not in admission.discover(IDENTITY, offered=offered)["capabilities"]


def test_a_stateless_client_is_told_whenever_it_asks() -> None:
    assert admission.discover(IDENTITY, offered=OFFERED)["capabilities"]["extensions"] == SHOWN


def test_each_client_gets_a_copy_of_the_extension_of_its_own() -> None:
    """A greeting that is changed on its way must not change the next one."""
    revisions.capabilities(OFFERED, revisions.FIFTH, has_ui=True)["extensions"][UI_EXTENSION]["more"] = 1

    assert admission.discover(IDENTITY, offered=OFFERED)["capabilities"]["extensions"] == SHOWN
