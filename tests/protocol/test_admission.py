"""The ladder from a request to the view under which it is served: order and outcome of each rung."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.errors import RpcError
from mcpgreen.protocol.admission import (
    CLIENT_CAPABILITIES,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    ClientView,
    Handshake,
    admit,
    progress_token,
)
from mcpgreen.protocol.revisions import BY_NAME, offered_capabilities

Json = dict[str, Any]

OFFERED = offered_capabilities(is_minimal=False)
ENVELOPE: Json = {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}}


def agreed(revision: str = "2025-11-25", *, is_ready: bool = True, is_shutting_down: bool = False) -> Handshake:
    handshake = Handshake()
    handshake.view = ClientView(BY_NAME[revision], {}, "info")
    handshake.is_ready = is_ready
    handshake.is_shutting_down = is_shutting_down
    return handshake


def refusal(method: str, params: Json, handshake: Handshake | None = None) -> RpcError:
    with pytest.raises(RpcError) as caught:
        admit(method, params, handshake or Handshake(), OFFERED)
    return caught.value


@pytest.mark.requirement("P-060")
@pytest.mark.parametrize(
    ("method", "meta", "code"),
    [
        ("no/such", {PROTOCOL_VERSION: "2031-01-01"}, -32022),  # the version before the missing capabilities
        ("no/such", {PROTOCOL_VERSION: "2026-07-28"}, -32602),  # the envelope before the method
        ("no/such", {**ENVELOPE, LOG_LEVEL: "loud"}, -32602),
        ("no/such", ENVELOPE, -32601),
    ],
)
def test_the_first_failing_rung_decides(method: str, meta: Json, code: int) -> None:
    assert refusal(method, {"_meta": meta}).code == code


@pytest.mark.requirement("P-064")
def test_a_method_whose_capability_is_not_offered_does_not_exist() -> None:
    minimal = offered_capabilities(is_minimal=True)
    for params, handshake in (({"_meta": ENVELOPE}, Handshake()), ({}, agreed())):
        with pytest.raises(RpcError) as caught:
            admit("tools/list", params, handshake, minimal)
        assert caught.value.code == -32601


@pytest.mark.requirement("P-255")
@pytest.mark.parametrize(
    ("token", "taken"), [(0, 0), ("0", "0"), ("", ""), (7, 7), (True, None), (1.5, None), ([], None), (None, None)]
)
def test_a_progress_token_is_a_string_or_an_integer(token: Any, taken: Any) -> None:
    found = progress_token({"_meta": {"progressToken": token}})

    assert found == taken
    assert type(found) is type(taken)
