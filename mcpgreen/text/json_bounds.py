"""Check what a JSON text would cost to parse, by its bytes, before it is parsed.

A parsed value takes up to thirty times the memory of its text, and a parser cannot be interrupted: 16 MiB of `[[],[],`
take 800 MB and many seconds, even if the brackets are never closed. So a long text is checked first: how deep it is
nested, how many parts it has, and whether it contains NaN or Infinity. The content of strings does not count. Whether
the text is JSON at all is for the parser to say.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_DEPTH = 128
MAX_PARTS = 250_000  # elements, members and containers; the worst of them take a parser 20 ms and 30 MB
PIECE_BYTES = 65536
TURN_BYTES = 16 * PIECE_BYTES
PART_BYTES = 80  # the memory that a parsed part takes, roughly
REQUEST_BYTES = 4096  # the memory that the shortest request takes
SHORT_BYTES = 512

STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
NO_BRACKETS = bytes(code for code in range(256) if code not in STEP)


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
        if not outside:
            return
        openings = outside.count(b"[") + outside.count(b"{")
        self.parts += openings + outside.count(b",") + outside.count(b":")
        if self.parts > MAX_PARTS:
            raise TooCostly(f"more than {MAX_PARTS} values")
        if self._depth + openings <= MAX_DEPTH:
            # Whatever their order, they cannot go too deep.
            self._depth += openings - outside.count(b"]") - outside.count(b"}")
        else:
            from itertools import accumulate

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
    """Raises ValueError for a text that must not be parsed. During a long text, `turn` lets others run now and then."""
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
