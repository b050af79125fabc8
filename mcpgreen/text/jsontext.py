"""The only door to ujson: text to values, values to one line of text.

`loads` is lenient where ujson is (a leading zero, a raw control character inside a string, the last of two equal keys
wins) and strict where the wire needs it: UTF-8, no NaN or Infinity, bounded nesting. A number that is too large for a
float (1e999) is only found when it has to be written again: `dumps` refuses it. `dumps` always gives one line of
ASCII that any JSON parser reads back: no NaN, and a lone surrogate becomes U+FFFD.
"""

from __future__ import annotations

import binascii
import codecs
import os
import sys

from mcpgreen.text import json_bounds

if "decimal" in sys.modules:
    import ujson
else:
    # ujson imports decimal to know its numbers when it meets one. It never meets one here, and the import would cost
    # the first answer 4 of its 28 ms. Whoever imports decimal later gets the real one.
    sys.modules["decimal"] = type(sys)("decimal")
    sys.modules["decimal"].Decimal = type("Decimal", (), {})  # type: ignore[attr-defined]  # what ujson looks for
    import ujson

    del sys.modules["decimal"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Protocol

    class Decoder(Protocol):
        """As `codecs` has it, incremental."""

        def decode(self, chunk: bytes, final: bool = False) -> str: ...

        def getstate(self) -> tuple[bytes, int]: ...


STAND_IN = os.urandom(16).hex()  # for a large value, until its pieces are put in; nobody can guess it


def loads(raw: bytes | str, turn: Callable[[], object] | None = None) -> Any:
    """Parse one JSON value. Raises ValueError for anything that is not strict UTF-8 JSON of bounded depth and size
    (`json_bounds`). While a long text is looked at, others get a `turn` now and then."""
    encoded = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    json_bounds.require_parsable(encoded, turn)
    if isinstance(raw, bytes):
        raw.decode("utf-8")
    return parsed(raw)


def parsed(raw: bytes | str) -> Any:
    """The same for a text that is known to be within its bounds and in UTF-8."""
    try:
        return ujson.loads(raw)
    except ValueError as error:
        raise ValueError(_what_is_wrong(raw) or str(error)) from None


# ensure_ascii, encode_html_chars, escape_forward_slashes, sort_keys, indent, allow_nan, reject_bytes. By position: to
# look up the names takes longer than to encode a short message.
PLAIN = (True, False, False, False, 0, False, True)


def dumps(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """One line of ASCII JSON. Raises ValueError for what JSON cannot express and `default` does not replace."""
    try:
        text: str = ujson.dumps(value, *PLAIN, default)
    except (OverflowError, TypeError) as error:
        raise ValueError(str(error)) from error
    if "\\ud" in text:
        text = _without_lone_surrogates(text)
    return text.encode("ascii")


class TooLong(ValueError):
    """A text that would have more bytes as JSON than whoever wanted it allows."""


class LargeText:
    """A long string that is encoded already, in pieces.

    Ten megabytes in one buffer are touched by every step on the way out (join, decode, escape, encode, frame), and each
    time the system has to find fresh pages for the copy, which takes longer than the step itself. Pieces stay in cache.
    """

    __slots__ = ("pieces",)

    def __init__(self, chunks: Iterable[bytes], *, limit_bytes: int = 0, decoder: Decoder | None = None) -> None:
        """From raw bytes; what is not UTF-8 becomes U+FFFD, unless the decoder is another, which sees only chunks that
        are not plain ASCII. Raises TooLong, as soon as that is known, if there is a limit."""
        decoder = decoder or codecs.getincrementaldecoder("utf-8")("replace")
        self.pieces: list[bytes] = []
        size = 0
        for chunk in chunks:
            is_within_character = decoder.getstate()[0]
            is_plain = _is_plain(chunk) and not is_within_character
            piece = _escaped(chunk) if is_plain else _inside(decoder.decode(chunk))
            size += len(piece)
            if limit_bytes and size > limit_bytes:
                raise TooLong(f"more than {limit_bytes} bytes")
            self.pieces.append(piece)
        self.pieces.append(_inside(decoder.decode(b"", True)))


RARE_CONTROLS = [bytes([code]) for code in range(32) if code not in b"\t\n\r"]


def _is_plain(chunk: bytes) -> bool:
    """Whether five replacements do. To find that out, and do it, takes less time than ujson does."""
    return chunk.isascii() and not any(control in chunk for control in RARE_CONTROLS)


def _escaped(plain: bytes) -> bytes:
    escaped = plain.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return escaped.replace(b"\n", b"\\n").replace(b"\r", b"\\r").replace(b"\t", b"\\t")


def _inside(text: str) -> bytes:
    """A text as JSON, without its quotes. It was decoded, so there is no half of a surrogate pair to look for."""
    encoded: str = ujson.dumps(text, *PLAIN)
    return encoded[1:-1].encode("ascii")


class LargeBlob:
    """Binary content as base64, in pieces; see `LargeText` for the reason."""

    __slots__ = ("pieces",)

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.pieces: list[bytes] = []
        rest = b""
        for chunk in chunks:
            # Three bytes are four characters: only what follows the last three may wait for the next chunk.
            joined = rest + chunk
            whole_bytes = len(joined) - len(joined) % 3
            rest = joined[whole_bytes:]
            self.pieces.append(binascii.b2a_base64(memoryview(joined)[:whole_bytes], newline=False))
        self.pieces.append(binascii.b2a_base64(rest, newline=False))


def dump_pieces(value: Any) -> list[bytes]:
    """As `dumps`, but with LargeText and LargeBlob in it, whose pieces are not copied: the line is the sequence."""
    large: list[LargeText | LargeBlob] = []

    def stand_in(other: Any) -> str:
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


def digest(value: Any) -> str:
    """SHA-256 of the value's canonical text: equal values, equal digests, whatever the order of keys."""
    return digest_of_chunks([_canonical(value)])


def digest_of_list(parts: Iterable[list[Any]]) -> str:
    """`digest` of the list that is given in parts."""

    def chunks() -> Iterator[bytes]:
        separator = b"["
        for part in filter(None, parts):
            yield separator + _canonical(part)[1:-1]
            separator = b","
        yield b"]" if separator == b"," else b"[]"

    return digest_of_chunks(chunks())


def digest_of_chunks(chunks: Iterable[bytes]) -> str:
    """SHA-256 of a content, one chunk in memory at a time."""
    state = _sha256()()
    for chunk in chunks:
        state.update(chunk)
    return str(state.hexdigest())


def _canonical(value: Any) -> bytes:
    text: str = ujson.dumps(value, sort_keys=True, escape_forward_slashes=False)
    return text.encode("ascii")


_known_sha256: Any = None  # to look in vain for a module takes longer than to digest a small file


def _sha256() -> Any:
    """SHA-256 without hashlib where Python has it built in: hashlib loads OpenSSL, 8 ms and 4 MB."""
    global _known_sha256
    if _known_sha256 is None:
        for module in ("_sha2", "_sha256", "hashlib"):
            try:
                _known_sha256 = __import__(module).sha256
                break
            except ImportError:
                continue
    return _known_sha256


def pretty(value: Any) -> str:
    """Indented text for files that people read."""
    return ujson.dumps(value, indent=2, escape_forward_slashes=False, ensure_ascii=False) + "\n"


def depth_of(value: Any) -> int:
    """How many containers stand inside each other. Iterative: hostile input must not exhaust our stack."""
    depth, level = 0, [value]
    while containers := [each for each in level if isinstance(each, (dict, list))]:
        depth += 1
        level = [child for each in containers for child in (each.values() if isinstance(each, dict) else each)]
    return depth


def is_writable(value: Any) -> bool:
    """Whether the value can be sent on: a number such as 1e999 can be read, but not written."""
    try:
        ujson.dumps(value, *PLAIN)
    except (ValueError, OverflowError, TypeError):
        return False
    return True


KEPT_FAULTS = 256
KEPT_FAULT_BYTES = 32
_faults: dict[bytes | str, str | None] = {}  # of short texts: thousands of them may come at once


def _what_is_wrong(raw: bytes | str) -> str | None:
    """The place and the fault in words that help; ujson has neither. None if only ujson finds a fault, and for a long
    text, which nobody reads twice."""
    if len(raw) > json_bounds.PIECE_BYTES:
        return None
    if len(raw) > KEPT_FAULT_BYTES:
        return _fault_in(raw)
    if raw not in _faults:
        if len(_faults) == KEPT_FAULTS:
            _faults.clear()
        _faults[raw] = _fault_in(raw)
    return _faults[raw]


def _fault_in(raw: bytes | str) -> str | None:
    import json

    try:
        json.loads(raw)
    except json.JSONDecodeError as error:
        return f"{error.msg}, line {error.lineno} column {error.colno}"
    except RecursionError:
        return "nested too deeply"
    return None


def _without_lone_surrogates(text: str) -> str:
    import re

    # Left to right, so that an escaped backslash before "ud8.." is consumed first and never mistaken for an escape.
    pattern = r"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})"
    return re.sub(pattern, lambda match: "\\ufffd" if match.group(1) else match.group(0), text)
