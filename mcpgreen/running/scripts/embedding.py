"""Files that a tool wants embedded in its result (MCP_TOOL_RESOURCES_FILE).

The script names paths; what lies outside the current roots, is private, unreadable or too large is left out with a
warning. Others have their turn between files, and while a large one is read.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from mcpgreen.files.confined import FileFailure, OpenFile, OutsideRoots, Private, TooLarge, open_file
from mcpgreen.running.scripts.scratch import MAX_REPORT_BYTES
from mcpgreen.running.shares import in_turns, let_others
from mcpgreen.text import jsontext, media
from mcpgreen.text.uris import file_uri

Json = dict[str, Any]

MAX_FILES = 256
SHOWN_CHARS = 200  # of a path, in a warning


class Wanted(NamedTuple):
    path: str
    mime_type: str | None
    uri: str | None


def embedded_resources(
    report: bytes, *, base: str, roots: Sequence[str], private: Private, limit_bytes: int, warn: Callable[[str], None]
) -> list[Json]:
    """Content blocks for the files that the report names, JSON or `path<TAB>mime<TAB>uri` lines. May wait."""
    if len(report) >= MAX_REPORT_BYTES:
        warn(f"no resources are embedded: the list of them has {MAX_REPORT_BYTES} bytes or more")
        return []
    blocks: list[Json] = []
    for number, wanted in enumerate(_wanted(report.decode("utf-8", "replace"))):
        if number == MAX_FILES:
            warn(f"only {MAX_FILES} resources are embedded in a result; the others are left out")
            break
        let_others()
        shown = wanted.path[:SHOWN_CHARS]
        try:
            with open_file(os.path.join(base, wanted.path), allowed=roots, private=private) as file:
                contents, size = _contents(file, wanted, limit_bytes)
        except OutsideRoots:
            warn(f"embedded resource {shown} is outside the roots, or private; left out")
        except TooLarge:
            warn(f"embedded resource {shown} is too large; left out")
            break
        except FileFailure as failure:
            warn(f"embedded resource {shown} cannot be read ({failure}); left out")
        else:
            limit_bytes -= size
            blocks.append({"type": "resource", "resource": contents})
    return blocks


def _wanted(text: str) -> Iterator[Wanted]:
    if not text.strip():
        return
    try:
        value = jsontext.loads(text)
    except ValueError:
        for line in io.StringIO(text, newline=None):  # one by one: the last of them may not be needed
            path, _, rest = line.rstrip("\n").partition("\t")
            mime_type, _, uri = rest.partition("\t")
            if path:
                yield Wanted(path, mime_type or None, uri or None)
        return
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, str):
            yield Wanted(entry, None, None)
        elif isinstance(entry, dict) and isinstance(entry.get("path"), str):
            yield Wanted(entry["path"], _string(entry.get("mimeType")), _string(entry.get("uri")))


def _contents(file: OpenFile, wanted: Wanted, limit_bytes: int) -> tuple[Json, int]:
    """Return the contents, and how many bytes of the file they are."""
    head = next(file.chunks(limit_bytes), b"")
    mime_type = media.mime_type(file.path, head[: media.HEAD_BYTES], wanted.mime_type)
    described = {"uri": wanted.uri or file_uri(file.path), "mimeType": mime_type}
    sizes: list[int] = []  # of what is read last: a file may grow meanwhile

    def counted() -> Iterator[bytes]:
        sizes.clear()
        for chunk in in_turns(file.chunks(limit_bytes)):
            sizes.append(len(chunk))
            yield chunk

    return {**described, **media.text_or_blob(counted)}, sum(sizes)


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
