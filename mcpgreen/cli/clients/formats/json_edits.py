"""Put an entry into a JSON text, and take it out again, with the line ends, indentation and spacing of the text.

The text may have comments and trailing commas. They are replaced by spaces for `json`, so that all offsets stay valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from mcpgreen.cli.clients.formats.spot import Spot, Unfit, line_end
from mcpgreen.text.json_offsets import offsets_in
from mcpgreen.text.json_types import Json

DEFAULT_UNIT = "  "
Edit = tuple[int, int, str]

# Both match an unterminated string, too. Otherwise the time would grow with the square of the length.
_COMMENT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|,(?=[ \t\r\n]*[}\]])', re.DOTALL)
_BEFORE_VALUE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
# They belong to the value before them.
_COMMENTS_ON_LINE = re.compile(r"(?:[ \t]*/\*(?:(?!\*/)[^\n])*\*/)*(?:[ \t]*//[^\r\n]*)?")
_BEFORE_COMMA = re.compile(r"[ \t\r\n]*(?=,)")


class Member(NamedTuple):
    key: str
    start: int  # of the key
    value_start: int
    value_end: int
    comma: int  # where the comma is that follows, or -1
    inner: Braces | None  # of the value at `root`, if it is an object


class Braces(NamedTuple):
    open: int
    close: int
    members: tuple[Member, ...]


class Tree(NamedTuple):
    top: Braces | None  # None for a text without a value
    values: Json
    first_comment: int  # or -1
    first_trailing_comma: int
    doubles: Mapping[tuple[str | int, ...], int]  # the offsets of members that occur again


@lru_cache(maxsize=4)
def _read(text: str, root: str) -> Tree:
    """Parse the text, with the members of the top object and of the one at `root`. Raises Unfit with the place."""
    first_comment, without_comments = _blanked(
        text.replace("\ufeff", " ", 1) if text[:1] == "\ufeff" else text, _COMMENT
    )
    first_comma, plain = _blanked(without_comments, _TRAILING_COMMA)
    if not plain.strip():
        return Tree(None, {}, first_comment, first_comma, {})
    try:
        document = json.loads(plain, parse_constant=_refuse_constant)
    except ValueError as error:
        raise Unfit(f"it is not valid JSON: {error}") from None
    except RecursionError:
        raise Unfit("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise Unfit("it has to be an object")
    offsets, again = offsets_in(plain)

    def braces(start: int, *path: str | int) -> Braces:
        names = sorted((at, keys) for keys, at in offsets.items() if keys[:-1] == path and keys)
        members = []
        for at, keys in names:
            before = _BEFORE_VALUE.match(plain, at)
            value_start = before.end() if before else at
            end = json.JSONDecoder().raw_decode(plain, value_start)[1]
            comma = _BEFORE_COMMA.match(without_comments, end)
            inner = braces(value_start, *keys) if keys == (root,) and plain[value_start] == "{" else None
            members.append(Member(str(keys[-1]), at, value_start, end, comma.end() if comma else -1, inner))
        return Braces(start, json.JSONDecoder().raw_decode(plain, start)[1] - 1, tuple(members))

    return Tree(braces(offsets[()]), document, first_comment, first_comma, dict(again))


def _blanked(text: str, pattern: re.Pattern[str]) -> tuple[int, str]:
    """Replace the matches that are no strings by spaces. Return the offset of the first, or -1, and the text."""
    found = [each for each in pattern.finditer(text) if not each[0].startswith('"')]
    if found and found[-1][0].startswith("/*") and not re.fullmatch(r"/\*.*\*/", found[-1][0], re.DOTALL):
        raise Unfit(f"it is not valid JSON: the comment at {_shown_place(text, found[-1].start())} does not end")
    edits = [(each.start(), each.end(), re.sub(r"[^\r\n]", " ", each[0])) for each in found]
    return (found[0].start() if found else -1), _edited(text, edits)


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no value")


def _edited(text: str, edits: Sequence[Edit]) -> str:
    """Apply edits, which are in order."""
    pieces, position = [], 0
    for start, end, new in edits:
        pieces += [text[position:start], new]
        position = end
    return "".join((*pieces, text[position:]))


def _shown_place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"


def values(text: str, spot: Spot) -> Json:
    tree = _tree(text, spot)
    if not isinstance(tree.values.get(spot.root), (dict, type(None))):
        raise Unfit(f"{json.dumps(spot.root)} is no object in it")
    return tree.values


def put(text: str, spot: Spot, entry: Json) -> str:
    tree = _tree(text, spot)
    if tree.top is None:
        return _first_value(text, spot, entry)
    member = _named(tree.top, spot.root)
    unit = _unit(text, tree.top)
    if member is None:
        return _edited(text, _into(text, tree.top, spot.root, {spot.name: entry}, unit))
    older = _named(member.inner, spot.name)
    if member.inner and not older:
        return _edited(text, _into(text, member.inner, spot.name, entry, unit))
    place, value = (older, entry) if older else (member, {spot.name: entry})
    is_compact = not _has_line_of_its_own(text, place.start)
    source = _source(value, text, unit, _indent_of(text, place.start), is_compact=is_compact)
    return _edited(text, [(place.value_start, place.value_end, source)])


def removed(text: str, spot: Spot) -> str:
    root = _named(_tree(text, spot).top, spot.root)
    if root is None or root.inner is None or _named(root.inner, spot.name) is None:
        raise Unfit("the entry is not there")
    return _edited(text, _without(text, root.inner, spot.name))


def _tree(text: str, spot: Spot) -> Tree:
    tree = _read(text, spot.root)
    if tree.first_comment >= 0 and not spot.has_comments:
        raise Unfit(f"it has a comment at {_shown_place(text, tree.first_comment)}, which this client cannot read")
    if tree.first_trailing_comma >= 0 and not spot.has_trailing_commas:
        place = _shown_place(text, tree.first_trailing_comma)
        raise Unfit(f"it has a comma too many at {place}, which this client cannot read")
    for keys in ((spot.root,), (spot.root, spot.name)):
        if keys in tree.doubles:
            place = _shown_place(text, tree.doubles[keys])
            raise Unfit(f"{json.dumps(keys[-1])} stands in it twice, the second time at {place}")
    return tree


def _named(braces: Braces | None, key: str) -> Member | None:
    return next((member for member in braces.members if member.key == key), None) if braces else None


def _first_value(text: str, spot: Spot, entry: Json) -> str:
    """Put the entry into a file without a value: on a line of its own at the end."""
    before = text.rstrip(" \t\r\n")
    source = _source({spot.root: {spot.name: entry}}, text, DEFAULT_UNIT, "", is_compact=False)
    ending = line_end(text)
    rest = text[len(before) :]
    return before + (ending if before.strip("\ufeff") else "") + source + (rest or ending)


def _into(text: str, braces: Braces, key: str, value: object, unit: str) -> list[Edit]:
    """The edits that add a member behind the others."""
    last = braces.members[-1] if braces.members else None
    if last is None:
        return [_into_empty(text, braces, key, value, unit)]
    behind = last.comma + 1 if last.comma >= 0 else last.value_end
    comma = [] if last.comma >= 0 else [(last.value_end, last.value_end, ",")]
    trailing = "," if last.comma >= 0 else ""
    if _has_line_of_its_own(text, last.start):
        indent = _indent_of(text, last.start)
        member = f"{json.dumps(key, ensure_ascii=False)}: {_source(value, text, unit, indent, is_compact=False)}"
        found = _COMMENTS_ON_LINE.match(text, behind)
        at = found.end() if found else behind
        return [*comma, (at, at, f"{line_end(text)}{indent}{member}{trailing}")]
    colon = text[last.value_start - 1]
    separator = " " if colon.isspace() or colon == "/" else ""
    member = f"{json.dumps(key, ensure_ascii=False)}:{separator}" + _source(
        value, text, unit, "", is_compact=True, separator=separator
    )
    return [*comma, (behind, behind, f"{separator}{member}{trailing}")]


def _into_empty(text: str, braces: Braces, key: str, value: object, unit: str) -> Edit:
    inside = text[braces.open + 1 : braces.close]
    at = braces.open + 1 + len(inside.rstrip()) if inside.strip() else braces.open + 1
    has_lines = "\n" in inside or "\r" in inside
    is_one_line = not has_lines and not _has_line_of_its_own(text, braces.open) and _is_inline(text, braces.open)
    if is_one_line:
        member = f"{json.dumps(key, ensure_ascii=False)}: {_source(value, text, unit, '', is_compact=True)}"
        return (at, at, f" {member} " if inside.strip() else member)
    indent = _indent_of(text, braces.open)
    member = f"{json.dumps(key, ensure_ascii=False)}: {_source(value, text, unit, indent + unit, is_compact=False)}"
    closing = "" if has_lines else line_end(text) + indent
    return (at, at, f"{line_end(text)}{indent}{unit}{member}{closing}")


def _is_inline(text: str, opening: int) -> bool:
    """Whether the brace is inside of another one that is on the same line."""
    before = text[_start_of_line(text, opening) : opening]
    return "{" in before or "[" in before


def _without(text: str, braces: Braces, key: str) -> list[Edit]:
    index = next(index for index, member in enumerate(braces.members) if member.key == key)
    member = braces.members[index]
    end = member.comma + 1 if member.comma >= 0 else member.value_end
    if index + 1 < len(braces.members):
        while end < len(text) and text[end] in " \t\r\n":
            end += 1
        return [(member.start, end, "")]
    start = _before_line(text, member.start, end)
    if index == 0:
        is_empty = not text[braces.open + 1 : start].strip() and not text[end : braces.close].strip()
        return [(braces.open + 1, braces.close, "")] if is_empty else [(start, end, "")]
    comma = braces.members[index - 1].comma
    if member.comma < 0 and not text[comma + 1 : member.start].strip():
        return [(comma, end, "")]
    return [(start, end, "")] if member.comma >= 0 else [(comma, comma + 1, ""), (max(start, comma + 1), end, "")]


def _before_line(text: str, start: int, end: int) -> int:
    """The start of a cut: before the line end if whole lines go, else after it, because of a comment."""
    line = _start_of_line(text, start)
    if text[line:start].strip() or text[end : _end_of_line(text, end)].strip() or _end_of_line(text, end) == len(text):
        return start
    return len(text[:line].removesuffix("\n").removesuffix("\r")) if line else start


def _source(value: object, text: str, unit: str, indent: str, *, is_compact: bool, separator: str = " ") -> str:
    if is_compact:
        return json.dumps(value, ensure_ascii=False, separators=(f",{separator}", f":{separator}"))
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{line_end(text)}{indent}".join(lines)


def _unit(text: str, top: Braces) -> str:
    """The indentation of one level."""
    first = next((member for member in top.members if _has_line_of_its_own(text, member.start)), None)
    return (_indent_of(text, first.start) if first else "") or DEFAULT_UNIT


def _has_line_of_its_own(text: str, at: int) -> bool:
    start = _start_of_line(text, at)
    return start > 0 and not text[start:at].strip()


def _indent_of(text: str, at: int) -> str:
    start = _start_of_line(text, at)
    line = text[start:at].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _start_of_line(text: str, index: int) -> int:
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def _end_of_line(text: str, index: int) -> int:
    """The end of the line at `index`, without its line end."""
    found = re.compile(r"[\r\n]|\Z").search(text, index)
    return found.start() if found else len(text)
