"""JSON documents: configuration, and the output of other programs. A part of `mcp_tool`, loaded on demand.

The configuration is merged from defaults, an example, a file and the environment. Of the output of other programs,
error messages are found, and long arrays are shortened.
"""

from __future__ import annotations

import json
import os
import sys
from bisect import bisect_right
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
    is_text = named.lstrip()[:1] in ("{", "[")
    paths = [os.fspath(path) for path in (example, file, None if is_text else named) if path]
    pieces = [_piece(path) for path in paths if os.path.exists(path)]
    pieces += [_piece(f"the variable {env}", named)] if is_text else []
    found = [piece for piece in pieces if piece is not None]
    if not found and not defaults:
        raise LookupError("config_load: there is no configuration, and there are no defaults")
    merged: Json = dict(defaults or {})
    for piece in found:
        merged.update(piece)
    os.environ[VARIABLE] = json.dumps(merged)  # for programs that the tool starts
    return merged


def config_get(path: str, default: object = mcp_tool._ABSENT) -> Any:
    """Return the value at a path such as "server.port". If absent or null: the default, or KeyError without one."""
    value: Any = json.loads(os.environ.get(VARIABLE) or "{}")
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, dict) else None
    if value is not None:
        return value
    if default is mcp_tool._ABSENT:
        raise KeyError(path)
    return default


def _piece(name: str, text: str | None = None) -> Json | None:
    """Return the object in a file, or in a text. None with a warning on stderr if it cannot be used."""
    try:
        if text is None:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        value: Json = json.loads(text)
        why = "" if isinstance(value, dict) else "it is not a JSON object"
    except (OSError, UnicodeDecodeError):
        why = "it cannot be read as text"
    except ValueError:
        why = "it is not valid JSON"
    if why:
        print(f"config_load: skipped {name}: {why}", file=sys.stderr)
        return None
    return value


def extract_cli_error(stdout: str, stderr: str, exit_code: int) -> str:
    """Return the reason why a program failed: from its JSON, else its stderr, else its exit status."""
    try:
        said = json.loads(stdout)
    except ValueError:
        said = None
    said = said if isinstance(said, dict) else {}
    error, errors = said.get("error"), said.get("errors")
    has_failed = said.get("success") is False or said.get("ok") is False or said.get("status") == "error"
    first = errors[0] if isinstance(errors, list) and errors else None
    candidates = (
        error.get("message") if isinstance(error, dict) else error,
        said.get("message") if has_failed else None,
        first.get("message") if isinstance(first, dict) else None,
    )
    found = next((text for text in candidates if isinstance(text, str) and text), None)
    return found or stderr.strip() or f"CLI exited with code {exit_code}"


def json_truncate(value: Any, max_bytes: int | None = None, *, array_path: str | None = None) -> Json:
    """Shorten an array so that the value fits: {"result", "truncated", "kept"?, "total"?}.

    The array is the value itself, the one at `array_path` ("data.rows"), or else `results`. If it cannot be shortened,
    there is an "error" and no result; nothing is raised.
    """
    if max_bytes is None:
        configured = os.environ.get("MCPBASH_MAX_TOOL_OUTPUT_SIZE", "")
        max_bytes = int(configured) if configured.isdigit() else DEFAULT_MAX_BYTES
    steps = [step for step in (array_path or "").split(".") if step]
    holder = value
    for step in steps:
        if not isinstance(holder, dict) or step not in holder:
            return {"result": None, "truncated": False, "error": "path_not_found"}
        holder = holder[step]
    if steps and not isinstance(holder, list):
        return {"result": None, "truncated": False, "error": "invalid_array_path"}
    if not steps and isinstance(value, dict) and isinstance(value.get("results"), list):
        steps, holder = ["results"], value["results"]
    if _size(value) <= max_bytes:
        both = {"kept": len(holder), "total": len(holder)} if isinstance(holder, list) else {}
        return {"result": value, "truncated": False, **both}
    count = -1
    if isinstance(holder, list):
        counts = range(len(holder) + 1)
        count = bisect_right(counts, max_bytes, key=lambda kept: _size(_with(value, steps, holder[:kept]))) - 1
    if count < 0:
        return {"result": None, "truncated": False, "error": "output_too_large"}
    return {"result": _with(value, steps, holder[:count]), "truncated": True, "kept": count, "total": len(holder)}


def _with(value: Any, steps: list[str], items: list[Any]) -> Any:
    if not steps:
        return items
    return {**value, steps[0]: _with(value[steps[0]], steps[1:], items)}


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
