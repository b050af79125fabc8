"""Add an entry to JSON text after the other entries, in the same style, and remove it again.

The text may have comments and trailing commas. They are replaced by spaces for `json`, so that all offsets stay valid.
"""

from __future__ import annotations

import json
import re

from mcpgreen.cli.clients.formats.spot import Spot, Unfit, line_end
from mcpgreen.text.json_offsets import Keys, offsets_in
from mcpgreen.text.json_types import Json

DEFAULT_UNIT = "  "
BLANK = " \t\r\n"
# Unterminated strings and comments match, too. Otherwise the time would grow with the square of the length.
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)'
_COMMENT = re.compile(_STRING + r"|(//[^\r\n]*|/\*.*?\*/)|/\*.*", re.DOTALL)
_TRAILING_COMMA = re.compile(_STRING + r"|(,)(?=[ \t\r\n]*[}\]])", re.DOTALL)
_NAME = re.compile(_STRING + r"[ \t\r\n]*:[ \t\r\n]*", re.DOTALL)
_COMMA_AFTER = re.compile(r"[ \t\r\n]*,")
# They belong to the value before them.
_COMMENTS_ON_LINE = re.compile(r"(?:[ \t]*/\*(?:(?!\*/)[^\n])*\*/)*(?:[ \t]*//[^\r\n]*)?")
_END_OF_LINE = re.compile(r"[ \t]*(?:[\r\n]|\Z)")


def values(text: str, spot: Spot) -> Json:
    return _Source(text, spot).document


def put(text: str, spot: Spot, entry: Json) -> str:
    source = _Source(text, spot)
    if (spot.root, spot.name) in source.offsets:
        return source.with_value((spot.root, spot.name), entry)
    if spot.root in source.document:
        if source.document[spot.root] is None:
            return source.with_value((spot.root,), {spot.name: entry})
        return source.with_member((spot.root,), spot.name, entry)
    if source.offsets:
        return source.with_member((), spot.root, {spot.name: entry})
    before = text.rstrip(BLANK)  # at most comments
    ending = line_end(text)
    value = source.written({spot.root: {spot.name: entry}}, indent="")
    return before + (ending if before.strip("\ufeff") else "") + value + (text[len(before) :] or ending)


def removed(text: str, spot: Spot) -> str:
    source = _Source(text, spot)
    start = source.offsets[spot.root, spot.name]
    end = source.value_at(spot.root, spot.name)[1]
    others = [source.offsets[keys] for keys in source.members_of(spot.root) if keys[-1] != spot.name]
    comma = _COMMA_AFTER.match(source.without_comments, end)
    if comma:
        end = comma.end()
    if others and others[-1] > start:
        return text[:start] + text[end:].lstrip(BLANK)
    if not others:
        opening, end_of_root = source.value_at(spot.root)
        if not (text[opening + 1 : start] + text[end : end_of_root - 1]).strip():
            return text[: opening + 1] + text[end_of_root - 1 :]
    before = text[:start]
    if _END_OF_LINE.match(text, end):  # otherwise a comment before it could swallow what follows
        before = before.rstrip(" \t").removesuffix("\n").removesuffix("\r")
    if others and not comma:
        last_comma = source.plain.rindex(",", 0, start)
        if not text[last_comma + 1 : start].strip():
            return text[:last_comma] + text[end:]
        before = before[:last_comma] + before[last_comma + 1 :]
    return before + text[end:]


class _Source:
    """A JSON text, its values, and where its names begin. Raises Unfit if the client could not read it."""

    def __init__(self, text: str, spot: Spot) -> None:
        self.text = text
        unmarked = " " + text[1:] if text.startswith("\ufeff") else text
        self.without_comments = _blanked(unmarked, _COMMENT, "a comment", is_allowed=spot.has_comments)
        self.plain = _blanked(
            self.without_comments, _TRAILING_COMMA, "a trailing comma", is_allowed=spot.has_trailing_commas
        )
        self.document: Json = _parsed(self.plain) if self.plain.strip() else {}
        if not isinstance(self.document.get(spot.root), (dict, type(None))):
            raise Unfit(f"{json.dumps(spot.root)} is not an object")
        self.offsets, again = offsets_in(self.plain)
        for keys, at in again:
            if keys in ((spot.root,), (spot.root, spot.name)):
                place = _shown_place(text, at)
                raise Unfit(f"{json.dumps(keys[-1])} appears twice, the second time at {place}")

    def members_of(self, *keys: str) -> list[Keys]:
        """Return the keys that lead to the members of an object, in order."""
        return sorted((each for each in self.offsets if each and each[:-1] == keys), key=self.offsets.__getitem__)

    def value_at(self, *keys: str | int) -> tuple[int, int]:
        """Return where a value begins and ends."""
        start = self.offsets[keys]
        name = _NAME.match(self.plain, start) if keys else None
        start = name.end() if name else start
        return start, json.JSONDecoder().raw_decode(self.plain, start)[1]

    def with_value(self, keys: tuple[str, ...], value: object) -> str:
        """Return the text with a new value of a member."""
        start, end = self.value_at(*keys)
        return self.text[:start] + self.written(value, self._indent_of_line(self.offsets[keys])) + self.text[end:]

    def with_member(self, keys: tuple[str, ...], name: str, value: object) -> str:
        """Return the text with a new member of an object, after the others."""
        text, ending = self.text, line_end(self.text)
        opening, closing = self.value_at(*keys)[0], self.value_at(*keys)[1] - 1
        others = self.members_of(*keys)
        if others:
            indent = self._indent_of_line(self.offsets[others[-1]])
            end = self.value_at(*others[-1])[1]
            comma = _COMMA_AFTER.match(self.without_comments, end)
            at = comma.end() if comma else end
            comments = _COMMENTS_ON_LINE.match(text, at) if indent is not None else None
            at = comments.end() if comments else at
            member = self._separator() if indent is None else ending + indent
            member += self._member(name, value, indent) + ("," if comma else "")
            return text[:end] + ("" if comma else ",") + text[end:at] + member + text[at:]
        before = text[:closing].rstrip(BLANK)
        if keys and not re.search(r"[\r\n]", self.plain.strip()):
            return before + self._member(name, value, None) + text[closing:]
        line = text[: opening + 1].splitlines()[-1].removeprefix("\ufeff")
        outer = line[: len(line) - len(line.lstrip(" \t"))]
        inner = outer + self._unit()
        return f"{before}{ending}{inner}{self._member(name, value, inner)}{ending}{outer}{text[closing:]}"

    def _member(self, name: str, value: object, indent: str | None) -> str:
        return f"{_json(name)}:{self._separator() if indent is None else ' '}{self.written(value, indent)}"

    def _separator(self) -> str:
        return " " if '": ' in self.plain else ""

    def written(self, value: object, indent: str | None) -> str:
        """Write a value on lines with this indentation, or on one line."""
        if indent is None:
            separators = f",{self._separator()}", f":{self._separator()}"
            return json.dumps(value, ensure_ascii=False, separators=separators)
        return f"{line_end(self.text)}{indent}".join(_json(value, indent=self._unit()).split("\n"))

    def _unit(self) -> str:
        """Return the indentation of one level."""
        indents = (self._indent_of_line(self.offsets[keys]) for keys in self.members_of())
        return next(filter(None, indents), DEFAULT_UNIT)

    def _indent_of_line(self, at: int) -> str | None:
        """Return the indentation before `at`, if only that is before it on its line, else None."""
        before = self.text[:at].rstrip(" \t")
        return self.text[len(before) : at] if before.endswith(("\n", "\r")) else None


def _blanked(text: str, pattern: re.Pattern[str], what: str, *, is_allowed: bool) -> str:
    """Replace what the group of the pattern matches by spaces. Raises Unfit if it matches and is not allowed."""
    first = next((each for each in pattern.finditer(text) if each[1]), None)
    if first and not is_allowed:
        raise Unfit(f"it has {what} at {_shown_place(text, first.start())}, which this client cannot read")
    return pattern.sub(lambda each: re.sub(r"[^\r\n]", " ", each[1]) if each[1] else each[0], text)


def _parsed(text: str) -> Json:
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise Unfit(f"it is not valid JSON: {error}") from None
    except RecursionError:
        raise Unfit("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise Unfit("it must be an object")
    return document


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON value")


def _shown_place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"


def _json(value: object, indent: str | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
