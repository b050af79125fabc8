"""Names of new projects, tools and URI schemes: what is allowed, and the closest valid name."""

from __future__ import annotations

import re

from mcpgreen.errors import ProjectError

# Clients put names of servers and tools together, and models accept no more than this.
SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
SCHEME = re.compile(r"[a-z][a-z0-9-]{0,63}")


def require_name(name: str | None, what: str) -> str:
    if not name:
        raise ProjectError(what, f"a name is missing; write it after {what}")
    if not SAFE_NAME.fullmatch(name):
        raise ProjectError(name, "this cannot be a name; use 1 to 64 of the characters A-Z a-z 0-9 _ -")
    return name


def require_scheme(name: str) -> str:
    """Return the name if URIs can begin with it, else raise ProjectError."""
    if not SCHEME.fullmatch(name):
        raise ProjectError(name, "URIs cannot begin with this; use a-z, 0-9 and -, a letter first")
    return name


def nearest_name(text: str) -> str:
    """Return a valid name that is as close as possible to some text."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:64] or "mcp-server"


def title_of(name: str) -> str:
    words = re.sub(r"[_-]+", " ", name).strip()
    return words[:1].upper() + words[1:] or name
