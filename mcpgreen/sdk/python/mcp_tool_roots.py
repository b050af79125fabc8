"""The directories that a call may work in, and paths inside them. A part of `mcp_tool`, loaded on demand."""

from __future__ import annotations

import os

import mcp_tool

__all__ = ["require_path", "roots", "roots_contains", "roots_count"]


def roots() -> list[str]:
    """The directories this call may work in."""
    return [path for path in os.environ.get("MCP_ROOTS_PATHS", "").split("\n") if path]


def roots_count() -> int:
    """How many of them there are."""
    return len(roots())


def roots_contains(path: str | os.PathLike[str]) -> bool:
    """Whether the path, with links resolved, is a root or lies below one. / does not hold the kernel's files."""
    inner = os.path.join(os.path.realpath(path), "")
    outer = [os.path.join(os.path.realpath(root), "") for root in roots()]
    if inner.startswith(("/proc/", "/sys/", "/dev/")):
        outer = [root for root in outer if root != "/"]
    return os.fspath(path) != "" and inner.startswith(tuple(outer))


def require_path(name: str, *, default_to_single_root: bool = False, allow_empty: bool = False) -> str:
    """A path argument as absolute path without links, inside the roots if there are any. It need not exist."""
    path: str = mcp_tool.arg(name, "")
    if not isinstance(path, str) or "\0" in path:
        mcp_tool.fail_invalid_args(f"{name} must be a path")
    if not path and default_to_single_root and len(roots()) == 1:
        path = roots()[0]
    if not path and allow_empty:
        return ""
    if not path:
        when = " when zero or multiple roots are configured" if default_to_single_root else ""
        mcp_tool.fail_invalid_args(f"{name} is required{when}")
    physical = os.path.realpath(path)
    if roots() and not roots_contains(physical):
        mcp_tool.fail_invalid_args(f"{name} is outside configured MCP roots")
    return physical
