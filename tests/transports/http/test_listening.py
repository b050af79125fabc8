"""Addresses to listen at, as functions."""

from __future__ import annotations

import pytest

from mcpgreen.errors import UsageError
from mcpgreen.transports.http.wire.listening import Address, is_loopback, parse_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Address("127.0.0.1", 8808)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("localhost", Address("localhost", 8808)),
        ("9000", Address("127.0.0.1", 9000)),
        (":9000", Address("127.0.0.1", 9000)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),
        ("[::1]:9000", Address("::1", 9000)),
        ("[::1]", Address("::1", 8808)),
        ("unix:/run/mcp.sock", Address(path="/run/mcp.sock")),
    ],
)
def test_an_address_is_understood(text: str, expected: Address) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    "text", ["host:99999", "host:-1", "::1", "http://host:80", "a b", "host:port", "unix:", "[x]:1"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:8808|/run/user"):
        parse_address(text)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_what_is_this_machine_alone(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
