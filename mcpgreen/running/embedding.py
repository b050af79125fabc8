"""Files that a tool wants embedded in its result (MCP_TOOL_RESOURCES_FILE).

The script names paths; what lies outside the current roots, is unreadable or too large is left out with a warning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from mcpgreen import jsontext, media
from mcpgreen.confined import FileFailure, OutsideRoots, TooLarge, open_file
from mcpgreen.uris import file_uri

Json = dict[str, Any]


class Wanted(NamedTuple):
    path: str
    mime_type: str | None
    uri: str | None


def embedded_resources(
    report: bytes, *, base: str, roots: Sequence[str], limit_bytes: int, warn: Callable[[str], None]
) -> list[Json]:
    """Content blocks for the files that the report names, JSON or `path<TAB>mime<TAB>uri` lines."""
    blocks: list[Json] = []
    for wanted in _wanted(report.decode("utf-8", "replace")):
        try:
            with open_file(os.path.join(base, wanted.path), allowed=roots) as file:
                content = b"".join(file.chunks(limit_bytes))
        except OutsideRoots:
            warn(f"embedded resource {wanted.path} is outside the roots; left out")
        except TooLarge:
            warn(f"embedded resource {wanted.path} is too large; left out")
            break
        except FileFailure as failure:
            warn(f"embedded resource {wanted.path} cannot be read ({failure.text}); left out")
        else:
            limit_bytes -= len(content)
            blocks.append({"type": "resource", "resource": _contents(file.path, content, wanted)})
    return blocks


def _wanted(text: str) -> Iterator[Wanted]:
    if not text.strip():
        return
    try:
        value = jsontext.loads(text)
    except ValueError:
        for line in text.splitlines():
            path, _, rest = line.partition("\t")
            mime_type, _, uri = rest.partition("\t")
            if path:
                yield Wanted(path, mime_type or None, uri or None)
        return
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, str):
            yield Wanted(entry, None, None)
        elif isinstance(entry, dict) and isinstance(entry.get("path"), str):
            yield Wanted(entry["path"], _string(entry.get("mimeType")), _string(entry.get("uri")))


def _contents(path: str, content: bytes, wanted: Wanted) -> Json:
    mime_type = media.mime_type(path, content[: media.HEAD_BYTES], wanted.mime_type)
    described = {"uri": wanted.uri or file_uri(path), "mimeType": mime_type}
    if media.is_utf8_text((content,)):
        return {**described, "text": content.decode("utf-8")}
    import base64

    return {**described, "blob": base64.b64encode(content).decode("ascii")}


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
