"""What kind of content it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcpgreen.text import media

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def test_the_declared_type_wins() -> None:
    assert media.mime_type("notes.txt", PNG, "text/markdown") == "text/markdown"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("README.md", "text/markdown"),
        ("data/DATA.JSON", "application/json"),
        ("a.yaml", "application/yaml"),
        ("a.tar.gz", "application/gzip"),
        ("a.svg", "image/svg+xml"),
        ("a.sh", "text/x-shellscript"),
        ("server.log", "text/plain"),
    ],
)
def test_without_a_declaration_the_extension_decides(name: str, expected: str) -> None:
    assert media.mime_type(name, PNG, None) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
        (b"RIFF\x10\0\0\0AVI LIST", "application/octet-stream"),
        (b"OggS\0", "audio/ogg"),
        (b"ID3\x04\0", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"PK\x03\x04\0", "application/zip"),
        (b"\x1f\x8b\x08\0", "application/gzip"),
        (b"\x7fELF\x02", "application/x-elf"),
        (b"\0asm\1", "application/wasm"),
        (b"plain words\n", "text/plain"),
        (b"", "text/plain"),
        ("cut inside é".encode()[:-1], "text/plain"),
        (b"nul\0", "application/octet-stream"),
        (b"\xfe\xff\x00a", "application/octet-stream"),
    ],
)
@pytest.mark.parametrize("name", ["LICENSE", "x.unheard-of", ".hidden", "dir.md/file"])
def test_without_a_known_extension_the_content_decides(name: str, head: bytes, expected: str) -> None:
    assert media.mime_type(name, head, None) == expected


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([], True),
        ([b"words", b" and \xe2", b"\x82\xac"], True),
        (["\ufeffwith a mark".encode()], True),
        ([b"a" * 100_000, b"\0"], False),
        ([b"a" * 100_000, b"\xff"], False),
        ([b"cut at the end \xe2\x82"], False),
        ([b"\xc0\x80"], False),
        ([b"\xed\xa0\x80"], False),
        ([b"in \x1b[1mcolour\x1b[0m\n"], True),
        ([b"\x1b\x02", b"a"], False),
    ],
    ids=[
        "empty",
        "cut between chunks",
        "mark",
        "NUL at the end",
        "invalid at the end",
        "cut",
        "overlong",
        "surrogate",
        "colours",
        "controls",
    ],
)
def test_content_is_text_if_all_of_it_is_utf8_without_a_nul(chunks: list[bytes], expected: bool) -> None:
    assert list(media.text_or_blob(lambda: chunks)) == (["text"] if expected else ["blob"])


def test_reading_stops_where_the_text_ends() -> None:
    read: list[bytes] = []

    def chunks() -> Iterator[bytes]:
        for chunk in (b"\xff", b"\xfe"):
            read.append(chunk)
            yield chunk

    assert list(media.text_or_blob(chunks)) == ["blob"]
    assert read == [b"\xff", b"\xff", b"\xfe"]
