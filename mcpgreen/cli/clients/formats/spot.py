"""The place of an entry in a client's file, for all formats.

A format is a module with the functions of `Format`. It need not understand every way to write a file: the caller
compares the values before and after, and leaves the file alone if anything else would change.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from mcpgreen.text.json_types import Json


class Unfit(ValueError):
    """The text cannot be read, or changed without changing something else. The message says why."""


class Spot(NamedTuple):
    """The key and name of an entry. `is_list`: entries are items of a list, with their name inside."""

    root: str
    name: str = ""
    is_list: bool = False
    has_comments: bool = False  # the client reads JSON with comments
    has_trailing_commas: bool = False
    preamble: str = ""  # the beginning of a new file

    def entry_in(self, document: object) -> Any:
        root = document.get(self.root) if isinstance(document, dict) else None
        if self.is_list and isinstance(root, list):
            return next((item for item in root if self.is_item(item)), None)
        return root.get(self.name) if isinstance(root, dict) else None

    def rest_of(self, document: Json) -> Json:
        """Return the values of a file without this entry. A key without entries counts as no key."""
        rest = dict(document)
        root = rest.pop(self.root, None) or []
        if isinstance(root, dict):
            root = {name: entry for name, entry in root.items() if name != self.name}
        elif isinstance(root, list):
            root = [item for item in root if not self.is_item(item)]
        return {**rest, self.root: root or None}

    def is_item(self, item: object) -> bool:
        """Tell whether an item of a list is the entry."""
        return isinstance(item, dict) and item.get("name") == self.name


class Format(Protocol):
    def values(self, text: str, spot: Spot) -> Json:
        """Return the values that the client reads from the text. Raises Unfit."""

    def put(self, text: str, spot: Spot, entry: Json) -> str:
        """Return the text with the entry, in the place of an older one of its name. Raises Unfit."""

    def removed(self, text: str, spot: Spot) -> str:
        """Return the text without the entry, which it has. Raises Unfit."""


def line_end(text: str) -> str:
    """Return the line end that most lines have."""
    pairs = text.count("\r\n")
    feeds = text.count("\n") - pairs
    if pairs > feeds:
        return "\r\n"
    return "\n" if feeds or "\r" not in text else "\r"


def without_lines(lines: list[str], start: int, end: int) -> list[str]:
    """Remove the lines from `start` to `end`, but not comments and blank lines at their end."""
    while end > start and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return lines[:start] + lines[end:]
