"""What kind of content a file holds: its MIME type, and whether it is text.

Content is text if all of it is UTF-8 without a NUL, and not a third of it other control characters, each of which is
six bytes of JSON; anything else is binary, whatever its type says.

Rule: possibly imported before the first answer, so it is a table and a few functions, and not `mimetypes`, which also
reads what the machine has in /etc: the same file would have other types elsewhere.
"""

from __future__ import annotations

import codecs
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HEAD_BYTES = 1024  # what `mime_type` and `is_text` want to see of the beginning
CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r")
TEXT = "text/plain"
BINARY = "application/octet-stream"

BY_EXTENSION = {
    ".bash": "text/x-shellscript",
    ".bmp": "image/bmp",
    ".c": "text/x-c",
    ".cfg": TEXT,
    ".conf": TEXT,
    ".css": "text/css",
    ".csv": "text/csv",
    ".flac": "audio/flac",
    ".gif": "image/gif",
    ".go": "text/x-go",
    ".gz": "application/gzip",
    ".htm": "text/html",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".ini": TEXT,
    ".java": "text/x-java",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".log": TEXT,
    ".m4a": "audio/mp4",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".oga": "audio/ogg",
    ".ogg": "audio/ogg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".rb": "text/x-ruby",
    ".rs": "text/x-rust",
    ".rst": "text/x-rst",
    ".sh": "text/x-shellscript",
    ".sql": "application/sql",
    ".svg": "image/svg+xml",
    ".tar": "application/x-tar",
    ".tgz": "application/gzip",
    ".toml": "application/toml",
    ".ts": "text/typescript",
    ".tsv": "text/tab-separated-values",
    ".txt": TEXT,
    ".wasm": "application/wasm",
    ".wav": "audio/wav",
    ".webm": "video/webm",
    ".webp": "image/webp",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}

# Each row: offset and bytes that must stand there, all of them.
BY_CONTENT = (
    ("image/png", ((0, b"\x89PNG\r\n\x1a\n"),)),
    ("image/jpeg", ((0, b"\xff\xd8\xff"),)),
    ("image/gif", ((0, b"GIF87a"),)),
    ("image/gif", ((0, b"GIF89a"),)),
    ("image/webp", ((0, b"RIFF"), (8, b"WEBP"))),
    ("audio/wav", ((0, b"RIFF"), (8, b"WAVE"))),
    ("audio/ogg", ((0, b"OggS"),)),
    ("audio/mpeg", ((0, b"ID3"),)),
    ("audio/mpeg", ((0, b"\xff\xfb"),)),
    ("audio/mpeg", ((0, b"\xff\xf3"),)),
    ("audio/mpeg", ((0, b"\xff\xf2"),)),
    ("application/pdf", ((0, b"%PDF-"),)),
    ("application/zip", ((0, b"PK\x03\x04"),)),
    ("application/zip", ((0, b"PK\x05\x06"),)),
    ("application/gzip", ((0, b"\x1f\x8b\x08"),)),
    ("application/wasm", ((0, b"\0asm"),)),
    ("application/x-elf", ((0, b"\x7fELF"),)),
)


def mime_type(name: str, head: bytes, declared: str | None) -> str:
    """The declared type, else the type by the extension of the name, else by how the content begins."""
    return declared or type_by_name(name) or _type_by_content(head) or (TEXT if is_text(head) else BINARY)


def type_by_name(name: str) -> str | None:
    return BY_EXTENSION.get(os.path.splitext(name)[1].lower())


def is_text(head: bytes) -> bool:
    """Whether the beginning of a content could be text. It may be cut inside a character."""
    return _is_text((head,), is_whole=False)


def is_utf8_text(chunks: Iterable[bytes]) -> bool:
    """Whether a whole content is text, one chunk in memory at a time."""
    return _is_text(chunks, is_whole=True)


def _is_text(chunks: Iterable[bytes], *, is_whole: bool) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    total_bytes = control_bytes = 0
    try:
        for chunk in chunks:
            if b"\0" in chunk:
                return False
            total_bytes += len(chunk)
            control_bytes += len(chunk) - len(chunk.translate(None, CONTROLS))
            decoder.decode(chunk)
        decoder.decode(b"", final=is_whole)
    except UnicodeDecodeError:
        return False
    return 3 * control_bytes <= total_bytes


def _type_by_content(head: bytes) -> str | None:
    for mime, marks in BY_CONTENT:
        if all(head.startswith(mark, offset) for offset, mark in marks):
            return mime
    return None
