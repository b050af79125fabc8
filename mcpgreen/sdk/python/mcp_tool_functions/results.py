"""Turn the return value of a function into the result of a call: text, structured content, or content blocks."""

from __future__ import annotations

import json

import mcp_tool

from mcp_tool_functions.conversion import is_enum, is_record, member_of_enum, resolved, union_members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcp_tool import Json

    from mcp_tool_functions.conversion import Scope

_NUMBERS = (int, float)
IMAGES = ("png", "jpg", "jpeg", "gif", "webp", "svg")
SOUNDS = ("wav", "mp3", "ogg", "flac")


def promises_null(kind: object) -> bool:
    """Whether the output schema of the tool has null, as for `int | None`."""
    return "outputSchema" in mcp_tool._document("MCP_TOOL_METADATA") and type(None) in (union_members(kind) or ())


def result_of(value: object, kind: object, scope: Scope) -> Json:
    """A complete result. Raises TypeError or ValueError for a value that cannot be sent."""
    is_described = "outputSchema" in mcp_tool._document("MCP_TOOL_METADATA")
    if not is_described:
        blocks = content_of(value)
        if blocks is not None:
            return {"content": blocks, "isError": False}
    structured = plain(value)
    if not (_is_object(kind, scope) if is_described else isinstance(structured, dict)):
        structured = {"result": structured}
    text = json.dumps(structured, ensure_ascii=False, allow_nan=False)
    block = {"type": "text", "text": text}
    return {"content": [block], "structuredContent": structured, "isError": False}


def _is_object(kind: object, scope: Scope) -> bool:
    """Whether the output schema has this type itself, and not as a member `result`."""
    kind = resolved(kind, scope)
    members = union_members(kind)
    if members is not None:
        return all(_is_object(each, scope) for each in members)
    return is_record(getattr(kind, "__origin__", None) or kind)


def content_of(value: Any) -> list[Any] | None:
    """The content blocks of a value, or None if it is something else."""
    if isinstance(value, str) and not hasattr(value, "value"):
        return [{"type": "text", "text": value}]
    if is_block(value) or hasattr(value, "__fspath__"):
        return [_block(value)]
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        is_content = [is_block(each) or hasattr(each, "__fspath__") for each in value]
        if any(is_content) and all(
            is_it or isinstance(each, str) for is_it, each in zip(is_content, value, strict=True)
        ):
            return [_block(each) for each in value]
    return None


def _block(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    suffix = str(value).rpartition(".")[2].lower()
    if hasattr(value, "__fspath__") and suffix in IMAGES:
        return mcp_tool.image_block(value)
    if hasattr(value, "__fspath__") and suffix in SOUNDS:
        return mcp_tool.audio_block(value)
    return {"type": "text", "text": str(value)}


def plain(value: Any) -> Any:
    """A value as JSON. Raises TypeError for what JSON cannot express."""
    if value is None or isinstance(value, (bool, str)) or type(value) in _NUMBERS:
        return member_of_enum(value) if is_enum(type(value)) else value
    if is_enum(type(value)):
        return member_of_enum(value)
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict) or hasattr(value, "keys"):
        return {_key(key): plain(value[key]) for key in value.keys()}  # noqa: SIM118  # it may be another mapping
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(getattr(value, name)) for name in value._fields}
    if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        return [plain(each) for each in value]
    if isinstance(value, (set, frozenset)):
        members = [plain(each) for each in value]
        try:
            return sorted(members)
        except TypeError:
            return members
    return _plain_text(value)


def is_block(value: Any) -> bool:
    """Whether a value is a content block."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    from mcp_tool_content import REQUIRED_MEMBERS

    needed = REQUIRED_MEMBERS.get(value["type"])
    return needed is not None and all(name in value for name in needed)


def _plain_text(value: Any) -> Any:
    module = type(value).__module__
    if module == "datetime" and hasattr(value, "isoformat"):
        return value.isoformat()
    if module == "decimal":
        return float(value)
    if module == "uuid" or hasattr(value, "__fspath__"):
        return str(value)
    if isinstance(value, _NUMBERS):  # of a subclass
        return value
    name = type(value).__name__
    hint = "; mcp_tool.image_block makes an image of it" if isinstance(value, (bytes, bytearray)) else ""
    raise TypeError(f"a value of the type {name} cannot be sent as JSON{hint}")


def _key(key: object) -> str:
    if is_enum(type(key)):
        key = member_of_enum(key)
    if isinstance(key, (str, *_NUMBERS)) and not isinstance(key, bool):
        return str(key)
    raise TypeError(f"a member cannot have a name of the type {type(key).__name__} in JSON")
