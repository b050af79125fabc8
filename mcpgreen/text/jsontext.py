"""Read and write JSON with ujson, which only this module imports.

`loads` is lenient where ujson is (a leading zero, a raw control character inside a string, the last of two equal keys
wins) and strict where the protocol needs it: UTF-8, no NaN or Infinity, bounded nesting. It accepts a number that is
too large for a float (1e999), which `dumps` then refuses. `dumps` always writes one line of ASCII that any JSON parser
reads back: no NaN, and a lone surrogate becomes U+FFFD.
"""

from __future__ import annotations

import binascii
import codecs
import functools
import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import ujson

from mcpgreen.text import json_bounds


class Decoder(Protocol):
    """An incremental decoder of `codecs`."""

    def decode(self, chunk: bytes, final: bool = False) -> str: ...

    def getstate(self) -> tuple[bytes, int]: ...


MAX_DIGITS = 4300  # of an integer, unless PYTHONINTMAXSTRDIGITS says otherwise
STAND_IN = os.urandom(16).hex()  # stands for a large value until its pieces are inserted; cannot be guessed


def loads(raw: bytes | str, turn: Callable[[], object] | None = None) -> Any:
    """Parse one JSON value. Raises ValueError for anything that is not strict UTF-8 JSON of bounded depth and size
    (`json_bounds`). During a long text, `turn` lets others run now and then."""
    encoded = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    json_bounds.require_parsable(encoded, turn)
    if isinstance(raw, bytes):
        raw.decode("utf-8")
    return parsed(raw)


def parsed(raw: bytes | str) -> Any:
    """As `loads`, for a text that is known to be bounded and UTF-8."""
    try:
        return ujson.loads(raw)
    except ValueError as error:
        if "integer string conversion" in str(error):  # of Python itself, which speaks to programmers
            raise ValueError(f"an integer of more than {MAX_DIGITS} digits") from None
        raise ValueError(_what_is_wrong(raw) or str(error)) from None


# ensure_ascii, encode_html_chars, escape_forward_slashes, sort_keys, indent, allow_nan, reject_bytes. By position:
# ujson needs longer to look up the names than to encode a short message.
PLAIN = (True, False, False, False, 0, False, True)


def dumps(value: object, default: Callable[[object], object] | None = None) -> bytes:
    """Write one line of ASCII JSON. Raises ValueError for a value that JSON cannot express and `default` does not
    replace."""
    try:
        text: str = ujson.dumps(value, *PLAIN, default)
    except (OverflowError, TypeError) as error:
        raise ValueError(str(error)) from error
    if "\\ud" in text:
        text = _without_lone_surrogates(text)
    return text.encode("ascii")


class TooLong(ValueError):
    """The text would have more bytes as JSON than the caller allows."""


class LargeText:
    """A long string that is encoded already, in pieces.

    With ten megabytes in one buffer, every step on the way out (join, decode, escape, encode, frame) makes a copy, and
    the system needs longer to find fresh pages for it than the step itself takes. Small pieces stay in the cache.
    """

    __slots__ = ("pieces",)

    def __init__(self, chunks: Iterable[bytes], *, limit_bytes: int = 0, decoder: Decoder | None = None) -> None:
        """Encode raw bytes. Without a decoder, bytes that are not UTF-8 become U+FFFD. The decoder sees only chunks
        that are not plain ASCII. Raises TooLong as soon as the limit is exceeded."""
        decoder = decoder or codecs.getincrementaldecoder("utf-8")("replace")
        self.pieces: list[bytes] = []
        size = 0
        for chunk in chunks:
            is_within_character = decoder.getstate()[0]
            # Check and replacements together take less time than ujson.
            is_plain = chunk.isascii() and not any(control in chunk for control in RARE_CONTROLS)
            is_plain = is_plain and not is_within_character
            piece = _escaped(chunk) if is_plain else _inside(decoder.decode(chunk))
            size += len(piece)
            if limit_bytes and size > limit_bytes:
                raise TooLong(f"more than {limit_bytes} bytes")
            self.pieces.append(piece)
        self.pieces.append(_inside(decoder.decode(b"", True)))


RARE_CONTROLS = [bytes([code]) for code in range(32) if code not in b"\t\n\r"]


def _escaped(plain: bytes) -> bytes:
    escaped = plain.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return escaped.replace(b"\n", b"\\n").replace(b"\r", b"\\r").replace(b"\t", b"\\t")


def _inside(text: str) -> bytes:
    """A text as JSON, without its quotes. A decoded text has no lone surrogates."""
    encoded: str = ujson.dumps(text, *PLAIN)
    return encoded[1:-1].encode("ascii")


class LargeBlob:
    """Binary content as base64, in pieces; see `LargeText` for the reason."""

    __slots__ = ("pieces",)

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.pieces: list[bytes] = []
        rest = b""
        for chunk in chunks:
            # Base64 makes four characters of three bytes; one or two bytes wait for the next chunk.
            joined = rest + chunk
            whole_bytes = len(joined) - len(joined) % 3
            rest = joined[whole_bytes:]
            self.pieces.append(binascii.b2a_base64(memoryview(joined)[:whole_bytes], newline=False))
        self.pieces.append(binascii.b2a_base64(rest, newline=False))


def dump_pieces(value: object) -> list[bytes]:
    """As `dumps`, for a value with LargeText and LargeBlob in it. Returns the line in pieces; theirs are not copied."""
    large: list[LargeText | LargeBlob] = []

    def stand_in(other: object) -> str:
        if not isinstance(other, (LargeText, LargeBlob)):
            raise TypeError(f"{type(other).__name__} is not JSON")
        large.append(other)
        return STAND_IN

    line = dumps(value, stand_in)
    if not large:
        return [line]
    head, *between = line.split(STAND_IN.encode("ascii"))
    pieces = [head]
    for each, following in zip(large, between, strict=True):
        pieces.extend(each.pieces)
        pieces.append(following)
    return pieces


def digest(value: object) -> str:
    """SHA-256 of the value's canonical text: equal values, equal digests, whatever the order of keys."""
    text: str = ujson.dumps(value, sort_keys=True, escape_forward_slashes=False)
    return digest_of_chunks([text.encode("ascii")])


def digest_of_chunks(chunks: Iterable[bytes]) -> str:
    """SHA-256 of a content, one chunk in memory at a time."""
    state = _sha256()()
    for chunk in chunks:
        state.update(chunk)
    return str(state.hexdigest())


@functools.cache  # a failed import takes longer than hashing a small file
def _sha256() -> Any:
    """Find SHA-256 without hashlib, which loads OpenSSL and costs 4 MB of memory."""
    for module in ("_sha2", "_sha256"):
        try:
            return __import__(module).sha256
        except ImportError:
            continue
    return __import__("hashlib").sha256


def pretty(value: object) -> str:
    """Write indented JSON, for files that people read."""
    return ujson.dumps(value, indent=2, escape_forward_slashes=False, ensure_ascii=False) + "\n"


def depth_of(value: object) -> int:
    """How deep arrays and objects are nested. Iterative, because hostile input must not exhaust the stack."""
    depth, level = 0, [value]
    while containers := [each for each in level if isinstance(each, (dict, list))]:
        depth += 1
        level = [child for each in containers for child in (each.values() if isinstance(each, dict) else each)]
    return depth


def is_writable(value: object) -> bool:
    """Whether the value can be written: a number such as 1e999 can be read, but not written."""
    try:
        ujson.dumps(value, *PLAIN)
    except (ValueError, OverflowError, TypeError):
        return False
    return True


def _what_is_wrong(raw: bytes | str) -> str | None:
    """Name the fault and its place, which ujson does not. None for a long text, and if only ujson finds a fault."""
    import json

    if len(raw) > json_bounds.PIECE_BYTES:
        return None
    try:
        json.loads(raw)
    except json.JSONDecodeError as error:
        return f"{error.msg}, line {error.lineno} column {error.colno}"
    except RecursionError:
        return "nested too deeply"
    except ValueError:
        pass  # behind the fault there is an integer that is too long
    return None


def _without_lone_surrogates(text: str) -> str:
    import re

    # From left to right, so that an escaped backslash before "ud8.." is consumed first and not taken for an escape.
    pattern = r"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})"
    return re.sub(pattern, lambda match: "\\ufffd" if match.group(1) else match.group(0), text)
