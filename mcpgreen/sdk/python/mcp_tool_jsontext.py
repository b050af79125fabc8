"""JSON of other programs: find their error messages, shorten their output. A part of `mcp_tool`, loaded on demand."""

from __future__ import annotations

import json
import os
from typing import Any

__all__ = ["extract_cli_error", "json_truncate"]

Json = dict[str, Any]
DEFAULT_MAX_BYTES = 10 * 1024 * 1024


def extract_cli_error(stdout: str, stderr: str, exit_code: int) -> str:
    """The reason why a program failed: from its JSON, else its stderr, else its exit status."""
    try:
        said = json.loads(stdout)
    except ValueError:
        said = None
    found = _message_in(said) if isinstance(said, dict) else None
    return found or stderr.strip() or f"CLI exited with code {exit_code}"


def _message_in(said: Json) -> str | None:
    error, errors = said.get("error"), said.get("errors")
    has_failed = said.get("success") is False or said.get("ok") is False or said.get("status") == "error"
    first = errors[0] if isinstance(errors, list) and errors else None
    candidates = (
        error.get("message") if isinstance(error, dict) else error,
        said.get("message") if has_failed else None,
        first.get("message") if isinstance(first, dict) else None,
    )
    return next((text for text in candidates if isinstance(text, str) and text), None)


def json_truncate(value: Any, max_bytes: int | None = None, *, array_path: str | None = None) -> Json:
    """Shorten an array so that the value fits: {"result", "truncated", "kept"?, "total"?}.

    The array is the value itself, the one at `array_path` ("data.rows"), or else `results`. If it cannot be shortened,
    there is an "error" and no result; nothing is raised.
    """
    if max_bytes is None:
        configured = os.environ.get("MCPBASH_MAX_TOOL_OUTPUT_SIZE", "")
        max_bytes = int(configured) if configured.isdigit() else DEFAULT_MAX_BYTES
    steps = [step for step in (array_path or "").split(".") if step]
    holder, problem = _holder(value, steps)
    if problem:
        return {"result": None, "truncated": False, "error": problem}
    if not steps and isinstance(value, dict) and isinstance(value.get("results"), list):
        steps, holder = ["results"], value["results"]
    if _size(value) <= max_bytes:
        counts = {"kept": len(holder), "total": len(holder)} if isinstance(holder, list) else {}
        return {"result": value, "truncated": False, **counts}
    if not isinstance(holder, list):
        return {"result": None, "truncated": False, "error": "output_too_large"}
    return _shortened(value, steps, holder, max_bytes)


def _holder(value: Any, steps: list[str]) -> tuple[Any, str]:
    """The value at the path, and the problem with it."""
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return None, "path_not_found"
        value = value[step]
    return value, "invalid_array_path" if steps and not isinstance(value, list) else ""


def _shortened(value: Any, steps: list[str], items: list[Any], max_bytes: int) -> Json:
    """The value with as many items as fit, found by bisection."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size(_with(value, steps, items[:middle])) <= max_bytes else (low, middle - 1)
    kept = _with(value, steps, items[:low])
    if _size(kept) > max_bytes:
        return {"result": None, "truncated": False, "error": "output_too_large"}
    return {"result": kept, "truncated": True, "kept": low, "total": len(items)}


def _with(value: Any, steps: list[str], items: list[Any]) -> Any:
    if not steps:
        return items
    return {**value, steps[0]: _with(value[steps[0]], steps[1:], items)}


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
