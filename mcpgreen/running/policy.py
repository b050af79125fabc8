"""May this script run now? For tools the allow-list, then for every script the safety of its path.

Everything runs by default; an allow-list, when set, restricts. A script that others could have changed or replaced, or
that lies outside its directory, never runs: whoever can do that could run code as us. See `trust`.
"""

from __future__ import annotations

from mcpgreen.errors import Denied
from mcpgreen.running.trust import Ground

ALLOW_ALL = ("*", "all")


def require_allowed(name: str, *, allowlist: tuple[str, ...], allow_default: str) -> None:
    if not allowlist:
        if allow_default in ("allow", "all"):
            return
        raise Denied(f"Tool '{name}' blocked by policy. Set MCPGREEN_TOOL_ALLOWLIST in your MCP client config.")
    if name in allowlist or any(word in allowlist for word in ALLOW_ALL):
        return
    raise Denied(f"Tool '{name}' blocked by policy (not in MCPGREEN_TOOL_ALLOWLIST)")


def require_safe(name: str, path: str, ground: Ground, *, kind: str = "Tool") -> None:
    """The script lies where such scripts may lie, and nobody else could have put it there or changed it."""
    try:
        problem = ground.problem_with(path)
    except FileNotFoundError:
        raise Denied(f"{kind} '{name}' executable missing") from None
    if problem:
        raise Denied(f"{kind} '{name}' path rejected by policy: {problem}")
