"""Content blocks, in tool results and prompt messages: one row for each type.

A row says which members a block has, since which revision the type exists, what an older client gets instead, and
what a person sees of it on a screen.

Rule: a new type is a new row of `CONTENT_TYPES`, and a row of `REQUIRED_MEMBERS` in the Python SDK, which imports
nothing from here. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from mcpgreen.protocol.revisions import Feature
from mcpgreen.text.json_types import Json

ROLES = ("user", "assistant")

Check = Callable[[object], "str | None"]  # gives the problem with a member, as text that follows the member's name


class Attachment(NamedTuple):
    """Binary data that a person can only look at in a file: base64, and the MIME type."""

    data: str
    mime_type: str


class ContentType(NamedTuple):
    """One type of content block. `since` is the feature of the first revision that has it; `for_older` makes a block
    that older clients know. `view` gives what a screen shows."""

    required: Mapping[str, Check]
    view: Callable[[Json], str | Attachment]
    optional: Mapping[str, Check] = {}
    since: str | None = None
    for_older: Callable[[Json], Json] = lambda block: block
    may_be_sampled: bool = False  # it may be part of a message to the client's model


def problem_of_block(block: Json) -> str | None:
    """Say what is wrong with a block. One bad block makes some clients reject the whole result."""
    row = CONTENT_TYPES.get(block["type"])
    if row is None:
        return f".type {block['type']!r} is unknown"
    return _problem_of_members(block, row.required, {**row.optional, **COMMON})


def view_of_resource(contents: Json) -> str | Attachment:
    """Return what a screen shows of the contents of a resource."""
    return str(contents["text"]) if "text" in contents else _attachment(contents, "blob")


def _problem_of_members(
    fields: Mapping[str, object], required: Mapping[str, Check], optional: Mapping[str, Check]
) -> str | None:
    for name, check in required.items():
        if problem := check(fields.get(name)):
            return f".{name}{problem}"
    for name in fields:
        if name in optional and (problem := optional[name](fields[name])):
            return f".{name}{problem}"
    return None


def _must_be(wanted: str, accepts: Callable[[object], bool]) -> Check:
    return lambda value: None if accepts(value) else f" must be {wanted}"


def _is_base64(value: object) -> bool:
    import base64

    try:
        base64.b64decode(value, validate=True)  # type: ignore[arg-type]  # the wrong type is a TypeError
    except (TypeError, ValueError):
        return False
    return True


_string = _must_be("a string", lambda value: isinstance(value, str))
_object = _must_be("an object", lambda value: isinstance(value, dict))
_size = _must_be(
    "a number of bytes", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
)
_base64 = _must_be("base64", _is_base64)


def _embedded_resource(value: object) -> str | None:
    if not isinstance(value, dict):
        return " must be an object"
    problem = _problem_of_members(value, {"uri": _string}, {"mimeType": _string, "size": _size, "_meta": _object})
    if problem or isinstance(value.get("text"), str) or _is_base64(value.get("blob")):
        return problem
    return " needs text, or a blob in base64"


def _annotations(value: object) -> str | None:
    if not isinstance(value, dict):
        return " must be an object"
    audience, priority = value.get("audience", []), value.get("priority", 0)
    if not isinstance(audience, list) or not all(role in ROLES for role in audience):
        return '.audience must be an array of "user" and/or "assistant"'
    if type(priority) not in (int, float) or not 0 <= priority <= 1:
        return ".priority must be a number from 0 to 1"
    return None if isinstance(value.get("lastModified", ""), str) else ".lastModified must be a string"


def _attachment(fields: Json, member: str = "data") -> Attachment:
    return Attachment(str(fields.get(member, "")), str(fields.get("mimeType", "")))


def _media_as_resource(block: Json) -> Json:
    resource = {"uri": f"urn:mcpgreen:{block['type']}", "mimeType": block["mimeType"], "blob": block["data"]}
    rest = {name: value for name, value in block.items() if name not in ("data", "mimeType")}
    return {**rest, "type": "resource", "resource": resource}


COMMON: dict[str, Check] = {"annotations": _annotations, "_meta": _object}  # members that every type may have
_MEDIA: dict[str, Check] = {"mimeType": _string, "data": _base64}
CONTENT_TYPES: dict[str, ContentType] = {
    "text": ContentType({"text": _string}, lambda block: str(block.get("text", "")), may_be_sampled=True),
    "image": ContentType(_MEDIA, _attachment, may_be_sampled=True),
    "audio": ContentType(_MEDIA, _attachment, since=Feature.AUDIO, for_older=_media_as_resource, may_be_sampled=True),
    "resource": ContentType(
        {"resource": _embedded_resource}, lambda block: view_of_resource(block.get("resource", {}))
    ),
    "resource_link": ContentType(
        {"uri": _string, "name": _string},
        lambda block: f"{block.get('name', '')}: {block.get('uri', '')}",
        optional={"title": _string, "description": _string, "mimeType": _string, "size": _size},
        since=Feature.RESOURCE_LINKS,
        for_older=lambda block: {"type": "text", "text": f"{block.get('title') or block['name']} <{block['uri']}>"},
    ),
}
