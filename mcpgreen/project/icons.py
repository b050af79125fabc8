"""Prepare icons for clients: local files become data: URIs, members of the wrong type are left out.

A file is embedded if it lies in the project, or next to the description that names it, and is not private. In server.d/
only pictures are embedded.

For tools and for the server itself. An icon is decoration: a bad one is left out, and the caller gets a complaint.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Sequence

from mcpgreen.files.confined import FileFailure, NotFound, OutsideRoots, Private, TooLarge, open_file
from mcpgreen.text.json_types import Json
from mcpgreen.text.media import BINARY, type_by_name

# Every list repeats the icon of every tool, so a photograph would cost each client megabytes.
MAX_ICON_BYTES = 65_536
MAX_ICONS = 16
LEFT_OUT = "an icon is left out"


def wire_icons(value: object, *, directories: Sequence[str], private: Private) -> tuple[list[Json], list[str]]:
    """Return usable icons, and a complaint about each of the others. Relative files are looked up in `directories`."""
    if not isinstance(value, list):
        return [], ["icons must be an array; they are left out"]
    usable: list[Json] = []
    complaints: list[str] = []
    if len(value) > MAX_ICONS:
        complaints.append(f"icons beyond the first {MAX_ICONS} are left out")
    for icon in value[:MAX_ICONS]:
        try:
            usable.append(_wire_icon(icon, directories, private))
        except ValueError as error:
            complaints.append(f"{LEFT_OUT}: {error}")
    return usable, complaints


def _wire_icon(icon: object, directories: Sequence[str], private: Private) -> Json:
    if not isinstance(icon, dict) or not isinstance(icon.get("src"), str):
        raise ValueError("it must be an object with a string src")
    src = icon["src"]
    fitted: Json = {"src": src}
    if isinstance(icon.get("mimeType"), str):
        fitted["mimeType"] = icon["mimeType"]
    if not src.lower().startswith(("data:", "https:", "http:")):
        mime_type = fitted.setdefault("mimeType", type_by_name(src) or BINARY)
        encoded = binascii.b2a_base64(_content_of(src, directories, private), newline=False).decode("ascii")
        fitted["src"] = f"data:{mime_type};base64,{encoded}"
    sizes = icon.get("sizes")
    sizes = sizes.split() if isinstance(sizes, str) else sizes  # authors write "48x48"; clients require an array
    if isinstance(sizes, list) and all(isinstance(size, str) for size in sizes):
        fitted["sizes"] = sizes
    if icon.get("theme") in ("light", "dark"):
        fitted["theme"] = icon["theme"]
    return fitted


def _content_of(src: str, directories: Sequence[str], private: Private) -> bytes:
    problem = f"{src} does not exist"
    for directory in directories:
        try:
            path = os.path.realpath(os.path.join(directory, src))
            # The icon of the server itself lies in server.d/, so pictures there may be embedded.
            is_picture = (type_by_name(path) or "").startswith("image/")
            hidden = Private(private.root) if is_picture else private
            with open_file(path, allowed=(private.root, directory), private=hidden) as file:
                return b"".join(file.chunks(MAX_ICON_BYTES))
        except NotFound:
            continue
        except TooLarge:
            raise ValueError(f"{src} is larger than {MAX_ICON_BYTES // 1024} KiB") from None
        except OutsideRoots:
            problem = f"{src} is outside the project, or private; put the image next to the description"
        except FileFailure as failure:
            raise ValueError(f"{src} cannot be read: {failure}") from failure
        except (OSError, ValueError):  # a link to itself, or a name that no file can have
            break
    raise ValueError(problem)
