"""What a content block must have, in results of tools and in messages of prompts alike."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

LINK_WORDS = ("title", "description", "mimeType")
BLOCK_TYPES = ("text", "image", "audio", "resource", "resource_link")
ROLES = ("user", "assistant")


def problem_of_block(block: Mapping[str, Any]) -> str | None:
    """What a client would trip over; one bad block makes some of them reject the whole result."""
    return _problem_of_content(block) or (_problem_of_the_rest(block) if len(block) > 2 else None)


def _problem_of_the_rest(block: Mapping[str, Any]) -> str | None:
    """What every kind of block may have."""
    if not isinstance(block.get("_meta", {}), dict):
        return "._meta must be an object"
    annotations = block.get("annotations", {})
    if not isinstance(annotations, dict):
        return ".annotations must be an object"
    audience = annotations.get("audience", [])
    if not isinstance(audience, list) or not all(role in ROLES for role in audience):
        return ".annotations.audience must be an array of user and assistant"
    priority = annotations.get("priority", 0)
    if type(priority) not in (int, float) or not 0 <= priority <= 1:
        return ".annotations.priority must be a number from 0 to 1"
    if not isinstance(annotations.get("lastModified", ""), str):
        return ".annotations.lastModified must be a string"
    return None


def _problem_of_content(block: Mapping[str, Any]) -> str | None:
    kind = block["type"]
    if kind == "text":
        return None if isinstance(block.get("text"), str) else ".text must be a string"
    if kind in ("image", "audio"):
        if not isinstance(block.get("mimeType"), str):
            return ".mimeType must be a string"
        return None if is_base64(block.get("data")) else ".data must be base64"
    if kind == "resource_link":
        has_both = isinstance(block.get("uri"), str) and isinstance(block.get("name"), str)
        return _problem_of_words(block, LINK_WORDS) if has_both else " needs uri and name"
    if kind == "resource":
        resource = block.get("resource")
        if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
            return ".resource needs a uri"
        problem = _problem_of_words(resource, ("mimeType",))
        if problem:
            return f".resource{problem}"
        if not isinstance(resource.get("_meta", {}), dict):
            return ".resource._meta must be an object"
        if isinstance(resource.get("text"), str) or is_base64(resource.get("blob")):
            return None
        return ".resource needs text, or a blob in base64"
    return f".type {kind!r} is unknown"


def _problem_of_words(fields: Mapping[str, Any], names: Iterable[str]) -> str | None:
    for name in names:
        if not isinstance(fields.get(name, ""), str):
            return f".{name} must be a string"
    size = fields.get("size", 0)
    return None if type(size) in (int, float) and size >= 0 else ".size must be a number of bytes"


def is_base64(value: Any) -> bool:
    import base64

    try:
        base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        return False
    return True
