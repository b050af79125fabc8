"""Every message that a test receives is checked against its revision."""

from __future__ import annotations

from typing import Any


def check(message: Any, *, revision: str | None, methods: dict[Any, str]) -> None:
    assert isinstance(message, dict)
    assert message.get("jsonrpc") == "2.0"
