"""May this tool run now? The allow-list, then the safety of its path.

Everything runs by default; an allow-list, when set, restricts. A script that others may write to, or that lies outside
the tools directory, never runs: whoever can change it could run code as us.
"""

from __future__ import annotations

import os
import stat

from mcpgreen.errors import Denied

ALLOW_ALL = ("*", "all")


def require_allowed(name: str, *, allowlist: tuple[str, ...], allow_default: str) -> None:
    if not allowlist:
        if allow_default in ("allow", "all"):
            return
        raise Denied(f"Tool '{name}' blocked by policy. Set MCPGREEN_TOOL_ALLOWLIST in your MCP client config.")
    if name in allowlist or any(word in allowlist for word in ALLOW_ALL):
        return
    raise Denied(f"Tool '{name}' blocked by policy (not in MCPGREEN_TOOL_ALLOWLIST)")


def require_safe_path(name: str, path: str, *, directory: str) -> None:
    """Inside the directory, owned by us or root, not writable by others."""
    real_path = os.path.realpath(path)
    if os.path.commonpath([real_path, directory]) != directory:
        raise Denied(f"Tool '{name}' path rejected by policy: it leads out of the tools directory")
    try:
        status = os.stat(real_path)
    except OSError:
        raise Denied(f"Tool '{name}' executable missing") from None
    if status.st_uid not in (os.geteuid(), 0):
        raise Denied(f"Tool '{name}' path rejected by policy: it belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Denied(f"Tool '{name}' path rejected by policy: others may write to it (chmod go-w)")
