"""Results made of content blocks: text, images, audio, links, embedded files. A part of `mcp_tool`, loaded on demand.

A `*_block` function makes a block, `result` prints a result made of blocks. A block that clients would reject raises
ValueError before anything is printed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import mcp_tool

__all__ = ["Block", "audio_block", "client_supports_ui", "image_block", "resource_block", "resource_link_block"]
__all__ += ["result", "result_text_with_resource", "result_with_ui", "text_block"]

# The members of each type of content block that a client needs, the same as in the server (protocol/content.py).
REQUIRED_MEMBERS = {
    "text": ("text",),
    "image": ("mimeType", "data"),
    "audio": ("mimeType", "data"),
    "resource": ("resource",),
    "resource_link": ("uri", "name"),
}

Block = dict[str, Any]
Path = str | os.PathLike[str]
Annotations = Mapping[str, object] | None


def result(
    *blocks: Mapping[str, object] | str,
    structured: object = None,
    is_error: bool = False,
    meta: Mapping[str, object] | None = None,
) -> None:
    """Print a result made of content blocks, and go on. A string is a block of text."""
    content = [text_block(block) if isinstance(block, str) else dict(block) for block in blocks]
    made: Block = {"content": content, "isError": is_error}
    if structured is not None:
        made["structuredContent"] = structured
    if meta:
        made["_meta"] = dict(meta)
    mcp_tool.emit_json(made)


def text_block(text: str, *, annotations: Annotations = None) -> Block:
    return _annotated({"type": "text", "text": text}, annotations)


def image_block(source: Path | bytes, mime_type: str | None = None, *, annotations: Annotations = None) -> Block:
    """Return an image: the path of a file, or its bytes with their type. Raises ValueError for another type."""
    return _annotated(_media_block("image", source, mime_type), annotations)


def audio_block(source: Path | bytes, mime_type: str | None = None, *, annotations: Annotations = None) -> Block:
    """Audio: the path of a file, or its bytes with their type. Raises ValueError for another type."""
    return _annotated(_media_block("audio", source, mime_type), annotations)


def resource_link_block(
    uri: str,
    name: str,
    *,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    annotations: Annotations = None,
) -> Block:
    """Return a link to a resource that the client may read. Raises ValueError without a URI or a name."""
    if not uri or not name:
        raise ValueError("resource_link_block: a URI and a name are required")
    more = {"title": title, "description": description, "mimeType": mime_type, "size": size}
    link = {"type": "resource_link", "uri": uri, "name": name, **{k: v for k, v in more.items() if v is not None}}
    return _annotated(link, annotations)


def resource_block(
    uri: str, content: str | bytes, mime_type: str | None = None, *, annotations: Annotations = None
) -> Block:
    """Return an embedded resource with text or bytes. For a file, see `result_text_with_resource`."""
    if not uri:
        raise ValueError("resource_block: a URI is required")
    resource: Block = {"uri": uri, "mimeType": mime_type} if mime_type else {"uri": uri}
    resource["text" if isinstance(content, str) else "blob"] = content if isinstance(content, str) else _base64(content)
    return _annotated({"type": "resource", "resource": resource}, annotations)


def result_text_with_resource(value: object, *resources: Path | Mapping[str, str]) -> None:
    """Print a success with embedded files: paths or {"path", "mimeType"?, "uri"?}. Unreadable files are left out."""
    entries = [entry for entry in map(_resource_entry, resources) if entry is not None]
    if mcp_tool._staying is not None:
        mcp_tool._staying.note("resources", entries)
    elif target := os.environ.get("MCP_TOOL_RESOURCES_FILE"):
        with open(target, "w", encoding="utf-8") as file:
            file.write(mcp_tool._line(entries))
    mcp_tool.result_success(value)


def client_supports_ui() -> bool:
    """Tell whether the client shows MCP Apps."""
    return bool(mcp_tool._environ.get("MCPBASH_CLIENT_SUPPORTS_UI") == "1")


def result_with_ui(text: str, data: object = None, *, uri: str | None = None) -> None:
    """Print a text for the model and data for an app. Only clients that show MCP Apps get the URI of the app."""
    meta = {"ui": {"resourceUri": uri}} if uri and client_supports_ui() else None
    result(text, structured=data, meta=meta)


def _annotated(block: Block, annotations: Annotations) -> Block:
    return {**block, "annotations": dict(annotations)} if annotations else block


def _media_block(kind: str, source: Path | bytes, mime_type: str | None) -> Block:
    if isinstance(source, bytes):
        data = source
    else:
        import mimetypes

        mime_type = mime_type or mimetypes.guess_type(os.fspath(source))[0]
        with open(source, "rb") as file:
            data = file.read()
    if mime_type is None:
        raise ValueError(f"{kind}_block: the MIME type is unknown; pass it, as in {kind}_block(…, '{kind}/…')")
    if not mime_type.startswith(f"{kind}/"):
        raise ValueError(f"{kind}_block: {mime_type} is not {kind}/…")
    return {"type": kind, "data": _base64(data), "mimeType": mime_type}


def _base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode("ascii")


def _resource_entry(resource: Path | Mapping[str, str]) -> dict[str, str] | None:
    entry = dict(resource) if isinstance(resource, Mapping) else {"path": os.fspath(resource)}
    path = os.path.abspath(entry.get("path", ""))  # without a path this is a directory, which is not a file either
    if os.path.isfile(path) and os.access(path, os.R_OK):
        return {**entry, "path": path}
    mcp_tool.log_warn(mcp_tool._tool_name(), f"Skipped the embedded resource {path}: not a readable file")
    return None
