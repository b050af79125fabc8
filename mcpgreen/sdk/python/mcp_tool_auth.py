"""Who calls, where a transport tells callers apart. A part of `mcp_tool`, loaded on demand."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["auth", "auth_get"]


def auth() -> dict[str, Any]:
    """The claims of the caller's token; empty if nobody in particular calls."""
    claims: dict[str, Any] = json.loads(os.environ.get("MCP_AUTH_JSON") or "{}")
    return claims


def auth_get(name: str, default: Any = None) -> Any:
    """One claim. Absent and null both give the default."""
    value = auth().get(name)
    return default if value is None else value
