"""Determine the MIME type of content, and whether it is text.

Content is text if all of it is UTF-8 without a NUL, and no chunk consists of other control characters to a third: each
of these takes six bytes in JSON. Anything else is binary, even if its type says text.

The types are in a table of our own: `mimetypes` also reads files in /etc, so types would differ between machines.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable

from mcpgreen.text.jsontext import LargeBlob, LargeText

HEAD_BYTES = 1024  # the part of the content that `mime_type` needs
CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r")
TEXT = "text/plain"
BINARY = "application/octet-stream"

# Extensions by the family of their types; after a colon the subtype, if it is not the extension.
EXTENSIONS = {
    "application": "gz:gzip json jsonl pdf sql tar:x-tar tgz:gzip toml wasm xml yaml yml:yaml zip",
    "audio": "flac m4a:mp4 mp3:mpeg oga:ogg ogg wav",
    "image": "bmp gif ico:x-icon jpeg jpg:jpeg png svg:svg+xml webp",
    "text": "bash:x-shellscript c:x-c cfg:plain conf:plain css csv go:x-go htm:html html ini:plain java:x-java "
    "js:javascript log:plain markdown md:markdown mjs:javascript py:x-python rb:x-ruby rs:x-rust rst:x-rst "
    "sh:x-shellscript ts:typescript tsv:tab-separated-values txt:plain",
    "video": "mp4 webm",
}
BY_EXTENSION = {
    f".{extension}": f"{family}/{subtype or extension}"
    for family, row in EXTENSIONS.items()
    for extension, _, subtype in (word.partition(":") for word in row.split())
}

# Each row: the type, the possible beginnings of such a content, and the bytes at offset 8.
BY_CONTENT = (
    ("image/png", (b"\x89PNG\r\n\x1a\n",), b""),
    ("image/jpeg", (b"\xff\xd8\xff",), b""),
    ("image/gif", (b"GIF87a", b"GIF89a"), b""),
    ("image/webp", (b"RIFF",), b"WEBP"),
    ("audio/wav", (b"RIFF",), b"WAVE"),
    ("audio/ogg", (b"OggS",), b""),
    ("audio/mpeg", (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"), b""),
    ("application/pdf", (b"%PDF-",), b""),
    ("application/zip", (b"PK\x03\x04", b"PK\x05\x06"), b""),
    ("application/gzip", (b"\x1f\x8b\x08",), b""),
    ("application/wasm", (b"\0asm",), b""),
    ("application/x-elf", (b"\x7fELF",), b""),
)


def mime_type(name: str, head: bytes, declared: str | None) -> str:
    """Return the declared type, else the type by the extension of the name, else by how the content begins."""
    fitting = (mime for mime, starts, later in BY_CONTENT if head.startswith(starts) and head[8:].startswith(later))
    known = declared or type_by_name(name) or next(fitting, None)
    return known or (TEXT if is_text(head) else BINARY)


def type_by_name(name: str) -> str | None:
    return BY_EXTENSION.get(os.path.splitext(name)[1].lower())


def is_text(head: bytes) -> bool:
    """Tell whether the content may be text, by its beginning, which may be cut inside a character."""
    try:
        TextDecoder().decode(head)
    except NotText:
        return False
    return True


def text_or_blob(chunks: Callable[[], Iterable[bytes]]) -> dict[str, LargeText | LargeBlob]:
    """Return a whole content as its field of `contents`, one chunk in memory at a time. If it turns out not to be text,
    it is read from the beginning again."""
    try:
        return {"text": LargeText(chunks(), decoder=TextDecoder())}
    except NotText:
        return {"blob": LargeBlob(chunks())}


class NotText(ValueError):
    """The content is not text."""


class TextDecoder:
    """Decodes text, chunk by chunk. Raises NotText for a chunk that is not text."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self.getstate = self._utf8.getstate

    def decode(self, chunk: bytes, final: bool = False) -> str:
        if b"\0" in chunk or 3 * (len(chunk) - len(chunk.translate(None, CONTROLS))) > len(chunk):
            raise NotText
        try:
            return self._utf8.decode(chunk, final)
        except UnicodeDecodeError:
            raise NotText from None
