"""JSON documents: configuration, and the output of other programs. A part of `mcp_tool`, loaded on demand.

The configuration is merged from defaults, an example, a file and the environment. Of the output of other programs,
error messages are found, and long arrays are shortened.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import mcp_tool

__all__ = ["config_get", "config_load", "extract_cli_error", "json_truncate"]

Json = dict[str, Any]
VARIABLE = "MCP_CONFIG_JSON"
DEFAULT_MAX_BYTES = 10 * 1024 * 1024


def config_load(
    *,
    env: str | None = None,
    file: str | os.PathLike[str] | None = None,
    example: str | os.PathLike[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Json:
    """Merge the configuration, member by member: defaults, then the example, then the file, then the variable `env`.

    The variable contains JSON, or the path of a file. An unusable source is skipped with a warning on stderr. Raises
    LookupError if there is no usable source and no default.
    """
    named = os.environ.get(env, "") if env else ""
    pieces = [_from_file(os.fspath(path)) for path in (example, file) if path]
    pieces.append(_from_text(named, f"the variable {env}") if named.lstrip()[:1] in ("{", "[") else _from_file(named))
    found = [piece for piece in pieces if piece is not None]
    if not found and not defaults:
        raise LookupError("config_load: there is no configuration, and there are no defaults")
    merged: Json = dict(defaults or {})
    for piece in found:
        merged.update(piece)
    os.environ[VARIABLE] = json.dumps(merged)  # for programs that the tool starts
    return merged


def config_get(path: str, default: object = mcp_tool._ABSENT) -> Any:
    """The value at a path such as "server.port". If it is absent or null: the default, or KeyError without one."""
    value: Any = json.loads(os.environ.get(VARIABLE) or "{}")
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, dict) else None
    if value is not None:
        return value
    if default is mcp_tool._ABSENT:
        raise KeyError(path)
    return default


def _from_file(path: str) -> Json | None:
    if not path or not os.path.exists(path):
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return _from_text(file.read(), path)
    except (OSError, UnicodeDecodeError):
        return _skipped(path, "it cannot be read as text")


def _from_text(text: str, name: str) -> Json | None:
    try:
        value = json.loads(text)
    except ValueError:
        return _skipped(name, "it is not valid JSON")
    return value if isinstance(value, dict) else _skipped(name, "it is not a JSON object")


def _skipped(name: str, why: str) -> Json | None:
    print(f"config_load: skipped {name}: {why}", file=sys.stderr)
    return None


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
