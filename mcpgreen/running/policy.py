"""May this script run now? For tools the allow-list, then for every script the safety of its path.

Everything runs by default; an allow-list, when set, restricts. A script that others may write to, or that lies outside
its directory, never runs: whoever can change it could run code as us.
"""

from __future__ import annotations

import os

from mcpgreen.errors import Denied
from mcpgreen.running import trust
from mcpgreen.uris import is_within

ALLOW_ALL = ("*", "all")


def require_allowed(name: str, *, allowlist: tuple[str, ...], allow_default: str) -> None:
    if not allowlist:
        if allow_default in ("allow", "all"):
            return
        raise Denied(f"Tool '{name}' blocked by policy. Set MCPGREEN_TOOL_ALLOWLIST in your MCP client config.")
    if name in allowlist or any(word in allowlist for word in ALLOW_ALL):
        return
    raise Denied(f"Tool '{name}' blocked by policy (not in MCPGREEN_TOOL_ALLOWLIST)")


def path_inside(name: str, path: str, *, directory: str, kind: str = "Tool") -> str:
    """The script's path without symbolic links, which must lie below the directory."""
    real_path = os.path.realpath(path)
    if not is_within(real_path, directory):
        raise Denied(f"{kind} '{name}' path rejected by policy: it leads out of {os.path.basename(directory)}/")
    return real_path


def require_safe(name: str, real_path: str, *, kind: str = "Tool") -> None:
    """Owned by us or root, and not writable by others."""
    try:
        status = os.stat(real_path)
    except OSError:
        raise Denied(f"{kind} '{name}' executable missing") from None
    fault = trust.fault_of(status)
    if fault:
        raise Denied(f"{kind} '{name}' path rejected by policy: it {fault}")
