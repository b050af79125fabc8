"""The table of revisions: which request exists where, and what is agreed."""

from __future__ import annotations

import pytest
from mcp_types import methods as official

from mcpgreen.protocol import revisions
from mcpgreen.protocol.revisions import BY_NAME, REVISIONS

OUR_LIFECYCLE = {"shutdown", "exit"}  # of the handshake era; MCP does not know them
NAMES = [revision.name for revision in REVISIONS]


@pytest.mark.requirement("P-043")
@pytest.mark.parametrize("name", NAMES)
def test_a_revision_has_the_requests_that_the_official_types_have(name: str) -> None:
    known = {method for method, version in official.CLIENT_REQUESTS if version == name}

    assert BY_NAME[name].requests - OUR_LIFECYCLE == known


def test_there_are_five_revisions_in_order() -> None:
    assert NAMES == ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


@pytest.mark.requirement("P-041")
@pytest.mark.parametrize("name", NAMES[:-1])
def test_a_handshake_revision_is_agreed_as_requested(name: str) -> None:
    assert revisions.negotiated(name).name == name


@pytest.mark.requirement("P-042")
@pytest.mark.parametrize("requested", ["2026-07-28", "2031-01-01", "garbage", "", "2025-11-25 "])
def test_any_other_version_is_answered_with_the_latest_of_the_handshake_era(requested: str) -> None:
    assert revisions.negotiated(requested).name == "2025-11-25"


@pytest.mark.requirement("G-minimal")
def test_minimal_mode_offers_logging_only() -> None:
    assert revisions.capabilities(revisions.offered_capabilities(is_minimal=True), revisions.FIFTH) == {"logging": {}}
