"""May this tool run now? The allow-list, then the safety of its path.

Everything runs by default; an allow-list, when set, restricts. A script that others may write to, or that lies outside
the tools directory, never runs: whoever can change it could run code as us.
"""

from __future__ import annotations

import os
import stat

from mcpgreen.errors import Denied
from mcpgreen.uris import is_within

ALLOW_ALL = ("*", "all")
TRUSTED_OWNERS = (os.geteuid(), 0)


def require_allowed(name: str, *, allowlist: tuple[str, ...], allow_default: str) -> None:
    if not allowlist:
        if allow_default in ("allow", "all"):
            return
        raise Denied(f"Tool '{name}' blocked by policy. Set MCPGREEN_TOOL_ALLOWLIST in your MCP client config.")
    if name in allowlist or any(word in allowlist for word in ALLOW_ALL):
        return
    raise Denied(f"Tool '{name}' blocked by policy (not in MCPGREEN_TOOL_ALLOWLIST)")


def path_inside(name: str, path: str, *, directory: str) -> str:
    """The script's path without symbolic links, which must lie below the directory."""
    real_path = os.path.realpath(path)
    if not is_within(real_path, directory):
        raise Denied(f"Tool '{name}' path rejected by policy: it leads out of the tools directory")
    return real_path


def require_safe(name: str, real_path: str) -> None:
    """Owned by us or root, and not writable by others."""
    try:
        status = os.stat(real_path)
    except OSError:
        raise Denied(f"Tool '{name}' executable missing") from None
    if status.st_uid not in TRUSTED_OWNERS:
        raise Denied(f"Tool '{name}' path rejected by policy: it belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Denied(f"Tool '{name}' path rejected by policy: others may write to it (chmod go-w)")
