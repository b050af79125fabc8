"""The table of revisions: which request exists where, and what is agreed."""

from __future__ import annotations

import pytest
from mcp_types import methods as official

from mcpgreen.protocol import revisions
from mcpgreen.protocol.revisions import BY_NAME, REVISIONS

OUR_LIFECYCLE = {"shutdown", "exit"}  # of the handshake era; MCP does not know them
TASKS = "tasks/"  # the official types leave them out
NAMES = [revision.name for revision in REVISIONS]


@pytest.mark.requirement("P-043")
@pytest.mark.parametrize("name", NAMES)
def test_a_revision_has_the_requests_that_the_official_types_have(name: str) -> None:
    known = {method for method, version in official.CLIENT_REQUESTS if version == name}

    ours = {each for each in BY_NAME[name].requests - OUR_LIFECYCLE if not each.startswith(TASKS)}
    assert ours - revisions.EXTENSION_OF.keys() == known


@pytest.mark.requirement("G-minimal")
def test_minimal_mode_offers_logging_only() -> None:
    assert revisions.capabilities(revisions.offered_capabilities(is_minimal=True), revisions.FIFTH) == {"logging": {}}
