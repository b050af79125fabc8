"""The ladder from a request to the view under which it is served: order and outcome of each rung."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.errors import RpcError
from mcpgreen.protocol.admission import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
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
    ("meta", "code"),
    [
        ({**ENVELOPE, PROTOCOL_VERSION: 5}, -32602),
        ({**ENVELOPE, PROTOCOL_VERSION: "2031-01-01"}, -32022),
        ({**ENVELOPE, PROTOCOL_VERSION: "2025-11-25"}, -32022),
        ({PROTOCOL_VERSION: "2026-07-28"}, -32602),
        ({**ENVELOPE, CLIENT_CAPABILITIES: []}, -32602),
        ({**ENVELOPE, CLIENT_CAPABILITIES: {"roots": True}}, -32602),
        ({**ENVELOPE, LOG_LEVEL: "loud"}, -32602),
        ({**ENVELOPE, LOG_LEVEL: ["info"]}, -32602),
        ({**ENVELOPE, "progressToken": 1.5}, -32602),
        ({**ENVELOPE, "progressToken": True}, -32602),
        ({CLIENT_CAPABILITIES: {}}, -32602),
        ({CLIENT_INFO: {"name": "x", "version": "1"}}, -32602),
    ],
)
def test_each_flaw_of_the_envelope_has_its_code(meta: Json, code: int) -> None:
    assert refusal("tools/list", {"_meta": meta}).code == code


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


@pytest.mark.requirement("P-060")
def test_the_missing_keys_are_named() -> None:
    message = refusal("server/discover", {}).message

    assert PROTOCOL_VERSION in message
    assert CLIENT_CAPABILITIES in message


@pytest.mark.requirement("P-014", "P-015")
@pytest.mark.parametrize(
    ("version", "supported"),
    [
        ("2031-01-01", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]),
        ("2025-11-25", ["2026-07-28"]),
        ("", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]),
    ],
)
def test_an_unsupported_version_is_told_what_is_supported(version: str, supported: list[str]) -> None:
    error = refusal("tools/list", {"_meta": {**ENVELOPE, PROTOCOL_VERSION: version}})

    assert error.data == {"supported": supported, "requested": version}


@pytest.mark.requirement("P-062")
def test_a_stateless_request_is_served_by_its_own_envelope_whatever_the_handshake_said() -> None:
    meta = {**ENVELOPE, CLIENT_CAPABILITIES: {"sampling": {}}}

    view = admit("tools/list", {"_meta": meta}, agreed("2024-11-05"), OFFERED)

    assert (view.revision.name, view.capabilities, view.log_level) == ("2026-07-28", {"sampling": {}}, None)


@pytest.mark.requirement("P-060")
@pytest.mark.parametrize("capabilities", [{"unknown": 1}, {"roots": {"listChanged": True}}, {"elicitation": {}}])
def test_capabilities_that_we_do_not_know_are_no_error(capabilities: Json) -> None:
    view = admit("tools/list", {"_meta": {**ENVELOPE, CLIENT_CAPABILITIES: capabilities}}, Handshake(), OFFERED)

    assert view.capabilities == capabilities


@pytest.mark.requirement("P-068")
@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "shutdown", "exit"],
)
def test_a_removed_method_does_not_exist_for_a_stateless_request(method: str) -> None:
    assert refusal(method, {"_meta": ENVELOPE}).code == -32601


@pytest.mark.requirement("P-068")
def test_an_initialize_with_a_version_is_a_handshake_even_with_an_envelope() -> None:
    view = admit("initialize", {"protocolVersion": "2025-11-25", "_meta": ENVELOPE}, Handshake(), OFFERED)

    assert view.revision.era == "handshake"


@pytest.mark.requirement("G-gate-before-ready")
@pytest.mark.parametrize("handshake", [Handshake(), agreed(is_ready=False)], ids=["silent", "greeted"])
def test_before_the_client_is_ready_only_the_lifecycle_is_served(handshake: Handshake) -> None:
    assert refusal("tools/list", {}, handshake).code == -32000
    assert refusal("logging/setLevel", {"level": "info"}, handshake).code == -32000
    for method in ("ping", "shutdown", "exit"):
        assert admit(method, {}, handshake, OFFERED)


@pytest.mark.requirement("G-gate-unknown-method")
def test_an_unknown_method_is_unknown_before_the_handshake_too() -> None:
    assert refusal("no/such", {}).code == -32601


@pytest.mark.requirement("G-shutdown-refuses")
def test_after_shutdown_work_is_refused() -> None:
    handshake = agreed(is_shutting_down=True)

    assert refusal("tools/list", {}, handshake).code == -32003
    assert admit("exit", {}, handshake, OFFERED)
    assert admit("shutdown", {}, handshake, OFFERED)


@pytest.mark.requirement("P-064")
def test_a_method_whose_capability_is_not_offered_does_not_exist() -> None:
    minimal = offered_capabilities(is_minimal=True)
    for params, handshake in (({"_meta": ENVELOPE}, Handshake()), ({}, agreed())):
        with pytest.raises(RpcError) as caught:
            admit("tools/list", params, handshake, minimal)
        assert caught.value.code == -32601


@pytest.mark.parametrize("meta", [5, "x", [], True])
def test_a_meta_that_is_no_object_is_refused(meta: Any) -> None:
    assert refusal("tools/list", {"_meta": meta}, agreed()).code == -32602


@pytest.mark.requirement("P-255")
@pytest.mark.parametrize(
    ("token", "taken"), [(0, 0), ("0", "0"), ("", ""), (7, 7), (True, None), (1.5, None), ([], None), (None, None)]
)
def test_a_progress_token_is_a_string_or_an_integer(token: Any, taken: Any) -> None:
    found = progress_token({"_meta": {"progressToken": token}})

    assert found == taken
    assert type(found) is type(taken)
