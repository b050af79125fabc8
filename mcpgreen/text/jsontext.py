"""Read and write JSON with ujson, which only this module imports.

`loads` is lenient where ujson is (a leading zero, a raw control character inside a string, the last of two equal keys
wins) and strict where the protocol needs it: UTF-8, no NaN or Infinity, bounded nesting. It accepts a number that is
too large for a float (1e999), which `dumps` then refuses. `dumps` always writes one line of ASCII that any JSON parser
reads back: no NaN, and a lone surrogate becomes U+FFFD.

A parsed value takes up to thirty times the memory of its text, and a parser cannot be interrupted: 16 MiB of `[[],[],`
take 800 MB and many seconds, even if the brackets are never closed. So a long text is checked by its bytes before it is
parsed (`Bounds`): how deep it is nested, how many parts it has, and whether it contains NaN or Infinity. The content of
strings does not count. Whether the text is JSON at all is for the parser to say.
"""

from __future__ import annotations

import binascii
import codecs
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any, Protocol

import ujson


class Decoder(Protocol):
    """An incremental decoder of `codecs`."""

    def decode(self, chunk: bytes, final: bool = False) -> str: ...

    def getstate(self) -> tuple[bytes, int]: ...


MAX_DIGITS = 4300  # of an integer, unless PYTHONINTMAXSTRDIGITS says otherwise
STAND_IN = os.urandom(16).hex()  # a placeholder for a large value until its pieces are inserted; cannot be guessed

MAX_DEPTH = 128
MAX_PARTS = 250_000  # elements, members and containers; the worst of them take a parser 20 ms and 30 MB
PIECE_BYTES = 65536
TURN_BYTES = 16 * PIECE_BYTES
PART_BYTES = 80  # the memory that a parsed part takes, roughly
REQUEST_BYTES = 4096  # the memory that the shortest request takes
SHORT_BYTES = 512
STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_N, _I = b"NI"  # as numbers, which are found in bytes five times as fast as a text of one character
NO_BRACKETS = bytes(code for code in range(256) if code not in STEP)


def loads(raw: bytes | str, turn: Callable[[], object] | None = None) -> Any:
    """Parse one JSON value. Raises ValueError for anything that is not strict UTF-8 JSON of bounded depth and size
    (`Bounds`). During a long text, `turn` lets others run now and then."""
    if type(raw) is bytes and len(raw) <= 2 * MAX_DEPTH and raw.isascii() and _N not in raw and _I not in raw:
        return parsed(raw)  # too short to be costly, and without NaN and Infinity: most requests and answers
    encoded = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    require_parsable(encoded, turn)
    if isinstance(raw, bytes) and not raw.isascii():
        raw.decode("utf-8")
    return parsed(raw)


def parsed(raw: bytes | str) -> Any:
    """Like `loads`, for text that is known to be bounded and UTF-8."""
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
    """Write one line of ASCII JSON. Raises ValueError for what JSON cannot express and `default` does not replace."""
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
    """Return a text as JSON, without its quotes. A decoded text has no lone surrogates."""
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


def walked(value: object) -> Iterator[tuple[object, int]]:
    """This value at depth 1, and all values in it. Iterative, because hostile input must not exhaust the stack."""
    pending = [(value, 1)]
    while pending:
        each, depth = pending.pop()
        yield each, depth
        inner = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        pending.extend((child, depth + 1) for child in inner)


def rewritten(value: Any, change: Callable[[dict[str, Any], str, Any], Any]) -> Any:
    """Return a copy of a value of bounded depth. `change` is called for each member, with its object, its name and its
    value, and returns what takes its place. Elements of lists, and names, are members without a name."""
    if isinstance(value, dict):
        return {
            change({"": name}, "", name): rewritten(change(value, name, each), change) for name, each in value.items()
        }
    if isinstance(value, list):
        return [rewritten(change({"": each}, "", each), change) for each in value]
    return value


def is_writable(value: object) -> bool:
    """Tell whether the value can be written: a number such as 1e999 can be read, but not written."""
    try:
        ujson.dumps(value, *PLAIN)
    except (ValueError, OverflowError, TypeError):
        return False
    return True


def _what_is_wrong(raw: bytes | str) -> str | None:
    """Name the fault and its place, which ujson does not. None for a long text, and if only ujson finds a fault."""
    import json

    if len(raw) > PIECE_BYTES:
        return None
    try:
        json.loads(raw)
    except json.JSONDecodeError as error:
        return f"{error.msg}, line {error.lineno} column {error.colno}"
    except RecursionError:
        return "nested too deeply"
    except ValueError:
        pass  # after the fault there is an integer that is too long
    return None


def _without_lone_surrogates(text: str) -> str:
    import re

    # From left to right, so that an escaped backslash before "ud8.." is consumed first and not taken for an escape.
    pattern = r"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})"
    return re.sub(pattern, lambda match: "\\ufffd" if match.group(1) else match.group(0), text)


class TooCostly(ValueError):
    """The text is nested too deeply, or has too many parts. The message says which."""


class Bounds:
    """The check of one text. `feed` takes the next piece, and raises ValueError if the text must not be parsed."""

    __slots__ = ("_depth", "_is_escaped", "_is_in_string", "parts")

    def __init__(self) -> None:
        self.parts = 0
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False  # the last piece ended with a backslash

    def feed(self, piece: bytes) -> None:
        outside = self._outside_strings(piece)
        self.parts += sum(outside.count(mark) for mark in (b"[", b"{", b",", b":"))
        if self.parts > MAX_PARTS:
            raise TooCostly(f"more than {MAX_PARTS} values")
        steps = map(STEP.__getitem__, outside.translate(None, NO_BRACKETS))
        levels = list(accumulate(steps, initial=self._depth))
        if max(levels) > MAX_DEPTH:
            raise TooCostly(f"nested deeper than {MAX_DEPTH} levels")
        self._depth = levels[-1]
        if b"N" in outside or b"I" in outside:
            raise ValueError("NaN and Infinity are not JSON")

    def _outside_strings(self, piece: bytes) -> bytes:
        if self._is_escaped:
            piece = piece[1:]
        self._is_escaped = False
        if b"\\" in piece:
            # Pairs of backslashes first: a backslash that is left before a quote escapes it.
            piece = piece.replace(b"\\\\", b"")
            self._is_escaped = piece.endswith(b"\\")
            piece = piece.replace(b'\\"', b"")
        if b'"' not in piece:
            return b"" if self._is_in_string else piece
        parts = piece.split(b'"')
        outside = b"".join(parts[1 if self._is_in_string else 0 :: 2])
        if len(parts) % 2 == 0:
            self._is_in_string = not self._is_in_string
        return outside


def require_parsable(raw: bytes, turn: Callable[[], object] | None = None) -> None:
    """Raise ValueError for text that must not be parsed. For long text, `turn` lets others run now and then."""
    # Too short for too many levels or parts: a level takes two brackets, a part at least one byte.
    if len(raw) <= 2 * MAX_DEPTH or (len(raw) <= PIECE_BYTES and raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH):
        if b"NaN" in raw or b"nfinity" in raw:
            Bounds().feed(raw)
        return
    bounds = Bounds()
    for start in range(0, len(raw), PIECE_BYTES):
        bounds.feed(raw[start : start + PIECE_BYTES])
        if turn is not None and start % TURN_BYTES == 0:
            turn()


def weight_of(raw: bytes) -> int:
    """Estimate the memory of a parsed request. The estimate is rather high: commas in strings count, too."""
    if len(raw) < SHORT_BYTES:
        return REQUEST_BYTES
    return REQUEST_BYTES + len(raw) + PART_BYTES * (raw.count(b",") + raw.count(b"[") + raw.count(b"{"))
