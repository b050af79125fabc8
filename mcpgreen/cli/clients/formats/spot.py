"""Where an entry is in a client's file, whatever the format, and why a file may be left alone.

A format is a module with five functions: `find`, `inserted`, `rendered`, `removed` and `values`. They read a text and
give another one; what is outside of the entry is never written anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

MAX_DEPTH = 200
MAX_PIECES = 300_000  # of a text: marks, names and values. Each takes some microseconds.


class Unfit(ValueError):
    """The text cannot be read, or an entry cannot go into it without changing something else. Says why."""


class Spot(NamedTuple):
    """Below which key, and under which name. `is_list`: entries are items that have their name inside."""

    root: str
    name: str = ""
    is_list: bool = False
    has_comments: bool = False  # whether the client reads comments; JSON only
    has_trailing_commas: bool = False
    preamble: str = ""  # what a new file has to begin with


class Found(NamedTuple):
    entry: Any  # None if there is none
    span: tuple[int, int] | None  # of what stands for the entry, to be replaced by what is `rendered`
    has_root: bool


class Format(Protocol):
    def find(self, text: str, spot: Spot) -> Found:
        """Raises Unfit."""

    def inserted(self, text: str, spot: Spot, entry: Mapping[str, Any]) -> str:
        """The text with an entry that was not there."""

    def rendered(self, text: str, spot: Spot, entry: Mapping[str, Any]) -> str:
        """What to put in the place of the entry that is there."""

    def removed(self, text: str, spot: Spot, *, drops_root: bool) -> str:
        """The text without the entry; without the key above it, too, if nothing else is there and it may go."""

    def values(self, text: str, spot: Spot) -> Any:
        """What the client reads; None for a text without a value."""


def line_end(text: str) -> str:
    """The one that most lines have."""
    pairs = text.count("\r\n")
    feeds = text.count("\n") - pairs
    if pairs > feeds:
        return "\r\n"
    return "\n" if feeds or "\r" not in text else "\r"


def start_of_line(text: str, index: int) -> int:
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def end_of_line(text: str, index: int) -> int:
    """Where the line ends that `index` is in, before its line end."""
    while index < len(text) and text[index] not in "\r\n":
        index += 1
    return index


def after_line_end(text: str, index: int) -> int:
    """Behind the line end that begins at `index`, if one does."""
    if text.startswith("\r\n", index):
        return index + 2
    return index + 1 if index < len(text) and text[index] in "\r\n" else index
