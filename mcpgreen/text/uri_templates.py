"""URI templates (RFC 6570, levels 1 to 3): find the values of the variables in a URI.

Matching is the inverse of expansion. Where several answers are possible, earlier variables take as much as they can.
The unnamed values of an expression fill its variables from the left, and those for which no value is left stay
absent; only the last may contain the separator. Named ones (`{;x,y}`, `{?x,y}`, `{&x,y}`) come in any order, and each
may be absent. An expression without a prefix, `{x}` or `{+x}`, needs at least one character: nothing would tell an
empty value from an absent one.

Rule: the URI comes from outside, so the time must not explode with its length. There is no backtracking: from the end
of the template to its beginning, each part finds in one pass from where the rest can still match; then one pass
forward takes the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from mcpgreen.text.uris import LETTERS, LONE_PERCENT, RESERVED, UNRESERVED, percent_decoded

# A name, where its value begins, and the first and the last position where it may end.
Value = tuple[str, int, int, int]

VALUE = UNRESERVED | {"%"}
LITERAL = UNRESERVED | RESERVED | {"%"}
NAME = frozenset(LETTERS + "0123456789_.%")
# Many clients leave more characters of a query unencoded; they are accepted as long as parameters can be separated.
QUERY_VALUE = LITERAL - {"&", "#"}

# Each operator: prefix, separator, the characters that a value may hold, and whether the names are in the URI.
OPERATORS = {
    "": ("", ",", VALUE, False),
    "+": ("", ",", LITERAL, False),
    "#": ("#", ",", LITERAL, False),
    ".": (".", ".", VALUE, False),
    "/": ("/", "/", VALUE, False),
    ";": (";", ";", VALUE, True),
    "?": ("?", "&", QUERY_VALUE, True),
    "&": ("&", "&", QUERY_VALUE, True),
}


class UriTemplate:
    """One template. Raises ValueError with the reason, as the end of a sentence, for a malformed one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = list(_parts(text))
        names = [name for part in self._parts if isinstance(part, Expression) for name in part.names]
        if not names:
            raise ValueError("it has no variable, such as {name}")
        self.variables: tuple[str, ...] = tuple(dict.fromkeys(names))

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values that expand to this URI, without absent ones; None if the URI does not match."""
        first = self._parts[0]
        if isinstance(first, Literal) and not uri.startswith(first.text):
            return None  # the cheap way to rule out most templates
        subject = Subject(uri)
        tables = self._tables(subject)
        if tables is None:
            return None
        values: dict[str, str] = {}
        position = 0
        for part, following in zip(self._parts, tables[1:], strict=True):
            position, found = part.take(subject, position, following)
            for name, encoded in found:
                try:
                    value = percent_decoded(encoded).decode("utf-8")
                except ValueError:
                    return None
                if values.setdefault(name, value) != value:
                    return None
        return values

    def _tables(self, subject: Subject) -> list[list[int]] | None:
        """For each part, and for the end, the positions from where all that follows can match; None if nothing can."""
        tables = [subject.table(lambda position: position == len(subject.uri))]
        for part in reversed(self._parts):
            tables.append(part.table(subject, tables[-1]))
            if tables[-1][-1] < 0:
                return None
        return tables[::-1] if tables[-1][0] == 0 else None


class Subject:
    """The URI, prepared: where a run of allowed characters ends, and where a percent-encoded character is whole.

    A table has an entry for each position: the last good position up to there, or -1.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.inside = {at + offset for at, character in enumerate(uri) if character == "%" for offset in (1, 2)}
        self._ends: dict[frozenset[str], list[int]] = {}

    def table(self, is_good: Callable[[int], bool]) -> list[int]:
        """No part begins inside a percent-encoded character."""
        positions = range(len(self.uri) + 1)
        good = (position if position not in self.inside and is_good(position) else -1 for position in positions)
        return list(accumulate(good, max))

    def ends_of(self, allowed: frozenset[str]) -> list[int]:
        """For each position, where the run of allowed characters that begins there ends."""
        if allowed not in self._ends:
            ends = [len(self.uri)] * (len(self.uri) + 1)
            for position in range(len(self.uri) - 1, -1, -1):
                ends[position] = ends[position + 1] if self.uri[position] in allowed else position
            self._ends[allowed] = ends
        return self._ends[allowed]


class Literal:
    """Text that is in the URI as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def table(self, subject: Subject, following: Sequence[int]) -> list[int]:
        def is_good(position: int) -> bool:
            after = position + len(self.text)
            return subject.uri.startswith(self.text, position) and following[after] == after

        return subject.table(is_good)

    def take(self, subject: Subject, position: int, following: Sequence[int]) -> tuple[int, list[tuple[str, str]]]:
        return position + len(self.text), []


class Expression:
    """What is in braces."""

    def __init__(self, operator: str, names: list[str]) -> None:
        self.names = names
        self.prefix, self.separator, self.allowed, self.is_named = OPERATORS[operator]
        self.allowed_before_last = self.allowed - {self.separator}

    def table(self, subject: Subject, following: Sequence[int]) -> list[int]:
        return subject.table(lambda position: self._end(subject, position, following) is not None)

    def take(self, subject: Subject, position: int, following: Sequence[int]) -> tuple[int, list[tuple[str, str]]]:
        """Return where the expression ends if it takes as much as it can, and its values, still encoded."""
        end = self._end(subject, position, following)
        assert end is not None  # the table said so
        values = self._values(subject, position)
        return end, [(name, subject.uri[at : min(last, end)]) for name, at, first, last in values if first <= end]

    def _end(self, subject: Subject, position: int, following: Sequence[int]) -> int | None:
        best = position if self.prefix and following[position] == position else None
        for _, _, first_end, last_end in self._values(subject, position):
            if following[last_end] >= first_end:
                best = following[last_end]
        return best

    def _values(self, subject: Subject, position: int) -> Iterator[Value]:
        """Return the values that may be here, one after the other."""
        if not subject.uri.startswith(self.prefix, position):
            return iter(())
        start = position + len(self.prefix)
        return self._named(subject, start) if self.is_named else self._positional(subject, start)

    def _positional(self, subject: Subject, start: int) -> Iterator[Value]:
        for index, name in enumerate(self.names):
            is_last = index == len(self.names) - 1
            end = subject.ends_of(self.allowed if is_last else self.allowed_before_last)[start]
            shortest = start if self.prefix or index else start + 1
            if shortest > end:
                return
            yield name, start, shortest, end
            if not subject.uri.startswith(self.separator, end):
                return
            start = end + 1

    def _named(self, subject: Subject, start: int) -> Iterator[Value]:
        missing = set(self.names)
        ends = subject.ends_of(self.allowed)
        while missing:
            after = start
            while subject.uri[after : after + 1] in NAME:
                after += 1
            name = subject.uri[start:after]
            if name not in missing:
                return
            missing.remove(name)
            start = after
            if subject.uri.startswith("=", start):
                start += 1
                end = ends[start]
            elif self.separator == ";":
                end = start
            else:
                return  # a query has the = also before an empty value
            yield name, start, start, end
            if not subject.uri.startswith(self.separator, end):
                return
            start = end + 1


def _parts(text: str) -> Iterator[Literal | Expression]:
    while text:
        literal, opening, text = text.partition("{")
        if literal:
            yield Literal(_checked_literal(literal))
        if opening:
            inside, closing, text = text.partition("}")
            if not closing:
                raise ValueError("a { is never closed")
            yield _expression(inside)


def _checked_literal(text: str) -> str:
    if "}" in text:
        raise ValueError("a } has no matching {")
    encoded = "".join(each if each.isascii() else f"%{each.encode().hex('%').upper()}" for each in text)
    for character in encoded:
        if character not in LITERAL:
            raise ValueError(f"the character {character!r} must be percent-encoded")
    percent_decoded(encoded)
    return encoded


def _expression(inside: str) -> Expression:
    operator = inside[:1] if inside[:1] in OPERATORS else ""
    names = inside[len(operator) :].split(",")
    for name in names:
        if "*" in name or ":" in name:
            raise ValueError(f"{{{inside}}} has a modifier of level 4 (* or :length), which is not supported")
        if not all(name.split(".")) or not NAME.issuperset(name) or re.search(LONE_PERCENT, name):
            raise ValueError(f"{{{inside}}} must contain names made of letters, digits and _, separated by commas")
    if len(set(names)) < len(names):
        raise ValueError(f"{{{inside}}} names a variable twice")
    return Expression(operator, names)
