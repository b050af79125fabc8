"""Icons as clients accept them: local files become data: URIs, members of the wrong type are left out.

Shared by tools and by the server's own introduction. Never fails: an icon is decoration, so a bad one is dropped and
the complaint is handed back for the caller to report.

Rule: imported only when something has icons, possibly before the first answer; keep it as light as `project`.
"""

from __future__ import annotations

import binascii
import os

from mcpgreen.media import BINARY, type_by_name
from mcpgreen.regular_files import without_waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# Every list repeats the icon of every tool, so a photograph would cost each client megabytes.
MAX_ICON_BYTES = 65_536


def wire_icons(value: Any, *, directories: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The usable icons, and one complaint for each that is not. A relative file is sought in `directories`."""
    if not isinstance(value, list):
        return [], ["icons must be an array; they are left out"]
    usable: list[dict[str, Any]] = []
    complaints: list[str] = []
    for icon in value:
        try:
            usable.append(_wire_icon(icon, directories))
        except ValueError as error:
            complaints.append(f"an icon is left out: {error}")
    return usable, complaints


def _wire_icon(icon: Any, directories: Sequence[str]) -> dict[str, Any]:
    if not isinstance(icon, dict) or not isinstance(icon.get("src"), str):
        raise ValueError("it must be an object with a string src")
    src = icon["src"]
    fitted: dict[str, Any] = {"src": src}
    if isinstance(icon.get("mimeType"), str):
        fitted["mimeType"] = icon["mimeType"]
    if not src.lower().startswith(("data:", "https:", "http:")):
        mime_type = fitted.setdefault("mimeType", type_by_name(src) or BINARY)
        encoded = binascii.b2a_base64(_content_of(src, directories), newline=False).decode("ascii")
        fitted["src"] = f"data:{mime_type};base64,{encoded}"
    sizes = icon.get("sizes")
    if isinstance(sizes, str):  # authors of single-size icons write "48x48"; clients insist on an array
        sizes = sizes.split()
    if isinstance(sizes, list) and all(isinstance(size, str) for size in sizes):
        fitted["sizes"] = sizes
    if icon.get("theme") in ("light", "dark"):
        fitted["theme"] = icon["theme"]
    return fitted


def _content_of(src: str, directories: Sequence[str]) -> bytes:
    for directory in directories:
        path = os.path.join(directory, src)
        try:
            with open(path, "rb", opener=without_waiting) as file:
                content = file.read(MAX_ICON_BYTES + 1)
            if len(content) > MAX_ICON_BYTES:
                raise ValueError(f"{src} is larger than {MAX_ICON_BYTES // 1024} KiB")
            return content
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ValueError(f"{src} cannot be read: {error.strerror}") from error
    raise ValueError(f"{src} does not exist")
