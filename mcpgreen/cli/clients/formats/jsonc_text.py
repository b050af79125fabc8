"""Find the members of two objects in a JSON text with comments: where they begin, where they end.

Reads the whole text and accepts nothing else than JSON, comments and, at the end of an object or array, a comma. Keeps
no values: `json` makes those, of a text in which comments and such commas have become spaces.

Rule: no recursion and one pass, whatever the text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from mcpgreen.cli.clients.formats.spot import MAX_DEPTH, MAX_PIECES, Unfit

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<text>"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*")
    |(?P<mark>[{}\[\],:])
    |(?P<word>true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.+-])
    |(?P<comment>//[^\r\n]*|/\*.*?\*/)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
Edit = tuple[int, int, str]
_CLOSING = {"{": "}", "[": "]"}


class Member(NamedTuple):
    key: str
    start: int  # of the key
    value_start: int
    value_end: int
    comma: int  # where the comma is that follows, or -1
    inner: Braces | None  # of a value that is an object and was asked for


class Braces(NamedTuple):
    open: int
    close: int
    members: tuple[Member, ...]

    def named(self, key: str) -> list[Member]:
        return [member for member in self.members if member.key == key]


class Tree(NamedTuple):
    top: Braces | None  # None for a text without a value
    end: int  # of the last value or comment
    first_comment: int  # or -1
    first_trailing_comma: int
    plain: str  # the same text as JSON: comments and trailing commas are spaces


class _Frame:
    """An object or array that is not closed yet."""

    def __init__(self, opening: str, at: int, *, is_kept: bool) -> None:
        self.opening = opening
        self.at = at
        self.is_kept = is_kept
        self.members: list[Member] = []
        self.key: str | None = None
        self.key_start = -1
        self.value_start = -1
        self.expects = "key or end" if opening == "{" else "value or end"
        self.comma = -1  # the last one, as long as nothing has followed it


@lru_cache(maxsize=4)
def tree_of(text: str, root: str) -> Tree:
    """Raises Unfit with line and column. The members of the top object are found, and those of the one at `root`."""
    return _Reader(text, root).tree()


def values_of(plain: str) -> Any:
    """An object with a key twice is not the same as one without."""
    try:
        return json.loads(plain.removeprefix("\ufeff"), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise Unfit(f"it is not valid JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> Any:
    members = dict(pairs)
    return members if len(members) == len(pairs) else ("duplicates", tuple(pairs))


def edited(text: str, edits: Sequence[Edit]) -> str:
    """With something else in the place of some pieces, which come in order."""
    pieces, position = [], 0
    for start, end, new in edits:
        pieces += [text[position:start], new]
        position = end
    return "".join((*pieces, text[position:]))


def shown_place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line} column {at - text.rfind(chr(10), 0, at)}"


class _Reader:
    def __init__(self, text: str, root: str) -> None:
        self._text = text
        self._root = root
        self._frames: list[_Frame] = []
        self._top: Braces | None = None
        self._is_done = False
        self._end = 0
        self._blanks: list[tuple[int, int]] = []
        self._comment = -1
        self._trailing_comma = -1

    def tree(self) -> Tree:
        text = self._text
        position = 1 if text.startswith("\ufeff") else 0
        pieces = 0
        while position < len(text):
            token = _TOKEN.match(text, position)
            if token is None:
                raise self._unexpected(position)
            kind, end = token.lastgroup, token.end()
            pieces += kind != "space"
            if pieces > MAX_PIECES:
                raise Unfit(f"it has more than {MAX_PIECES} pieces")
            if kind == "comment":
                self._comment = position if self._comment < 0 else self._comment
                self._blanks.append((position, end))
                self._end = end
            elif kind != "space":
                self._take(kind or "", token.group(), position, end)
                self._end = end
            position = end
        if self._frames:
            raise Unfit(f"it is not valid JSON: {shown_place(text, self._frames[-1].at)} is never closed")
        blanks = [(start, end, " " * (end - start)) for start, end in self._blanks]
        return Tree(self._top, self._end, self._comment, self._trailing_comma, edited(text, sorted(blanks)))

    def _take(self, kind: str, token: str, start: int, end: int) -> None:
        frame = self._frames[-1] if self._frames else None
        if token in ("}", "]") and kind == "mark":
            self._close(frame, token, start)
        elif frame is None:
            if self._is_done or token != "{":
                raise self._unexpected(start, "" if self._is_done else "it has to be an object: ")
            self._open(token, start, is_kept=True)
        elif kind == "mark" and token in ",:":
            self._separate(frame, token, start)
        elif frame.expects.startswith("key"):
            if kind != "text":
                raise self._unexpected(start)
            frame.key, frame.key_start, frame.expects = self._string(token, start), start, ":"
            frame.comma = -1
        elif frame.expects.startswith("value"):
            frame.value_start, frame.comma = start, -1
            if kind == "mark":
                self._open(token, start, is_kept=len(self._frames) == 1 and frame.key == self._root)
            else:
                if kind == "text":
                    self._string(token, start)
                self._finish_value(frame, end, None)
        else:
            raise self._unexpected(start)

    def _open(self, token: str, start: int, *, is_kept: bool) -> None:
        if len(self._frames) >= MAX_DEPTH:
            raise Unfit(f"it is nested deeper than {MAX_DEPTH} levels")
        self._frames.append(_Frame(token, start, is_kept=is_kept and token == "{"))

    def _close(self, frame: _Frame | None, token: str, start: int) -> None:
        if frame is None or _CLOSING[frame.opening] != token or not (frame.expects.endswith("end") or frame.comma >= 0):
            raise self._unexpected(start)
        if frame.comma >= 0:
            self._trailing_comma = frame.comma if self._trailing_comma < 0 else self._trailing_comma
            self._blanks.append((frame.comma, frame.comma + 1))
        self._frames.pop()
        braces = Braces(frame.at, start, tuple(frame.members)) if frame.is_kept else None
        if self._frames:
            self._finish_value(self._frames[-1], start + 1, braces)
        else:
            self._top, self._is_done = braces, True

    def _finish_value(self, frame: _Frame, end: int, inner: Braces | None) -> None:
        if frame.is_kept and frame.key is not None:
            frame.members.append(Member(frame.key, frame.key_start, frame.value_start, end, -1, inner))
        frame.expects = ", or end"

    def _separate(self, frame: _Frame, token: str, start: int) -> None:
        if token == ":" and frame.expects == ":":
            frame.expects = "value"
        elif token == "," and frame.expects.startswith(","):
            frame.expects = "key" if frame.opening == "{" else "value"
            frame.comma = start
            if frame.members:
                frame.members[-1] = frame.members[-1]._replace(comma=start)
        else:
            raise self._unexpected(start)

    def _string(self, token: str, start: int) -> str:
        try:
            value: str = json.loads(token)
        except ValueError:
            raise self._unexpected(start) from None
        return value

    def _unexpected(self, at: int, about: str = "") -> Unfit:
        return Unfit(f"it is not valid JSON: {about}{shown_place(self._text, at)} is not expected")
