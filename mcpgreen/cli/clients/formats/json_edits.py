"""Put an entry into a JSON text, and take it out again, in the line ends, indentation and spacing that it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcpgreen.cli.clients.formats.jsonc_text import Braces, Edit, Member, Tree, edited, shown_place, tree_of, values_of
from mcpgreen.cli.clients.formats.spot import Found, Spot, Unfit, end_of_line, line_end, start_of_line

DEFAULT_UNIT = "  "


def find(text: str, spot: Spot) -> Found:
    tree = _tree(text, spot)
    member = _only(text, tree.top, spot.root)
    inner = member.inner if member else None
    if member and inner is None and text[member.value_start : member.value_end] != "null":
        raise Unfit(f"{json.dumps(spot.root)} is no object in it")
    entry = _only(text, inner, spot.name)
    if entry is None:
        return Found(None, None, member is not None)
    value = values_of(tree.plain[entry.value_start : entry.value_end])
    return Found(value, (entry.value_start, entry.value_end), True)


def inserted(text: str, spot: Spot, entry: Mapping[str, Any]) -> str:
    tree = _tree(text, spot)
    if tree.top is None:
        return _first_value(text, spot, entry, tree)
    member = _only(text, tree.top, spot.root)
    unit = _unit(text, tree.top)
    if member is None:
        return edited(text, _into(text, tree.top, spot.root, {spot.name: entry}, unit))
    if member.inner is None:
        is_tight = not _has_line_of_its_own(text, tree.top.members[0].start)
        indent = _indent_of(text, member.start)
        source = _source({spot.name: entry}, text, unit, indent, is_compact=is_tight)
        return edited(text, [(member.value_start, member.value_end, source)])
    return edited(text, _into(text, member.inner, spot.name, entry, unit))


def rendered(text: str, spot: Spot, entry: Mapping[str, Any]) -> str:
    tree = _tree(text, spot)
    root = _only(text, tree.top, spot.root)
    member = _only(text, root.inner if root else None, spot.name)
    if tree.top is None or root is None or root.inner is None or member is None:
        raise Unfit("the entry is not there")
    is_compact = not _has_line_of_its_own(text, member.start)
    return _source(entry, text, _unit(text, tree.top), _indent_of(text, member.start), is_compact=is_compact)


def removed(text: str, spot: Spot, *, drops_root: bool) -> str:
    for key in (spot.name, spot.root) if drops_root else (spot.name,):
        top = _tree(text, spot).top
        root = _only(text, top, spot.root)
        braces = top if key == spot.root else root.inner if root else None
        if key == spot.root and (root is None or root.inner is None or root.inner.members):
            break
        if braces is None:
            raise Unfit("the entry is not there")
        text = edited(text, _without(text, braces, key))
    return text


def values(text: str, spot: Spot) -> Any:
    tree = _tree(text, spot)
    return values_of(tree.plain) if tree.top else None


def _tree(text: str, spot: Spot) -> Tree:
    tree = tree_of(text, spot.root)
    if tree.first_comment >= 0 and not spot.has_comments:
        raise Unfit(f"it has a comment at {shown_place(text, tree.first_comment)}, which this client cannot read")
    if tree.first_trailing_comma >= 0 and not spot.has_trailing_commas:
        place = shown_place(text, tree.first_trailing_comma)
        raise Unfit(f"it has a comma too many at {place}, which this client cannot read")
    return tree


def _only(text: str, braces: Braces | None, key: str) -> Member | None:
    members = braces.named(key) if braces else []
    if len(members) > 1:
        place = shown_place(text, members[1].start)
        raise Unfit(
            f"{json.dumps(key)} stands in it twice, the second time at {place}; which one counts is not certain"
        )
    return members[0] if members else None


def _first_value(text: str, spot: Spot, entry: Mapping[str, Any], tree: Tree) -> str:
    """Into a file without a value: behind what is in it, on a line of its own."""
    before = text[: tree.end] or ("\ufeff" if text.startswith("\ufeff") else "")
    source = _source({spot.root: {spot.name: entry}}, text, DEFAULT_UNIT, "", is_compact=False)
    ending = line_end(text)
    rest = text[len(before) :]
    return before + (ending if tree.end else "") + source + (rest or ending)


def _into(text: str, braces: Braces, key: str, value: Any, unit: str) -> list[Edit]:
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
        at = _behind_comments(text, behind)
        return [*comma, (at, at, f"{line_end(text)}{indent}{member}{trailing}")]
    colon = text[last.value_start - 1]
    separator = " " if colon.isspace() or colon == "/" else ""
    member = f"{json.dumps(key, ensure_ascii=False)}:{separator}" + _source(
        value, text, unit, "", is_compact=True, separator=separator
    )
    return [*comma, (behind, behind, f"{separator}{member}{trailing}")]


def _into_empty(text: str, braces: Braces, key: str, value: Any, unit: str) -> Edit:
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
    before = text[start_of_line(text, opening) : opening]
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
    return [(start, end, "")] if member.comma >= 0 else [(comma, comma + 1, ""), (max(start, comma + 1), end, "")]


def _before_line(text: str, start: int, end: int) -> int:
    """Where to cut: before the line end, if whole lines go. Else behind it: a comment may be before it."""
    line = start_of_line(text, start)
    if text[line:start].strip() or text[end : end_of_line(text, end)].strip() or end_of_line(text, end) == len(text):
        return start
    return len(text[:line].removesuffix("\n").removesuffix("\r")) if line else start


def _source(value: Any, text: str, unit: str, indent: str, *, is_compact: bool, separator: str = " ") -> str:
    if is_compact:
        return json.dumps(value, ensure_ascii=False, separators=(f",{separator}", f":{separator}"))
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{line_end(text)}{indent}".join(lines)


def _unit(text: str, top: Braces) -> str:
    """What one level is indented by, as far as the text shows it."""
    for member in top.members:
        if _has_line_of_its_own(text, member.start):
            return _indent_of(text, member.start) or DEFAULT_UNIT
    return DEFAULT_UNIT


def _has_line_of_its_own(text: str, at: int) -> bool:
    start = start_of_line(text, at)
    return start > 0 and not text[start:at].strip()


def _indent_of(text: str, at: int) -> str:
    start = start_of_line(text, at)
    line = text[start:at].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _behind_comments(text: str, at: int) -> int:
    """Behind the comments that follow on the same line, which belong to what is before them."""
    while True:
        next_at = at
        while next_at < len(text) and text[next_at] in " \t":
            next_at += 1
        if text.startswith("//", next_at):
            while next_at < len(text) and text[next_at] not in "\r\n":
                next_at += 1
            return next_at
        close = text.find("*/", next_at) if text.startswith("/*", next_at) else -1
        if close < 0 or "\n" in text[next_at:close]:
            return at
        at = close + 2
