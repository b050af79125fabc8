"""Add an entry to YAML text, and remove it again, in whole lines.

Entries are written in block style, with every string in double quotes, as in JSON. A file that has its entries in
braces or brackets is left alone.
"""

from __future__ import annotations

import json
import re

from mcpgreen.catalog.descriptions import yaml_text
from mcpgreen.cli.clients.formats.spot import Spot, Unfit, line_end, without_lines
from mcpgreen.text.json_types import Json

UNIT = "  "
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))  # not strings in YAML
_ODD = re.compile(r"[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
# The value of a key without entries.
_NOTHING = re.compile(r"(?<=:)[ \t]+(?:\{[ \t]*\}|\[[ \t]*\]|null|~)(?=[ \t]*(?:[ \t]#.*)?$)")


def values(text: str, spot: Spot) -> Json:
    try:
        document = yaml_text.value_of(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise Unfit("an entry has a character that cannot be written") from None
    except ValueError as error:
        raise Unfit(f"it is not valid YAML: {error}") from None
    if not isinstance(document or {}, dict):
        raise Unfit("it is not a mapping")
    root = (document or {}).get(spot.root)
    if root is not None and not isinstance(root, list if spot.is_list else dict):
        raise Unfit(f"{spot.root} is not a {'list' if spot.is_list else 'mapping'}")
    # Anywhere in the file: only the place of one of the two is known, and the other could be removed with an entry.
    for keys, (line, _) in yaml_text.duplicates_in(text.encode("utf-8")):
        raise Unfit(f"{keys[-1]} appears twice, the second time on line {line}")
    return document or {}


def put(text: str, spot: Spot, entry: Json) -> str:
    document = values(text, spot)
    ending = line_end(text)
    if spot.entry_in(document) is not None:
        text = removed(text, spot)
        document = values(text, spot)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += ending
    if spot.root not in document:
        preamble = [] if document else spot.preamble.splitlines()
        return "".join(lines) + _lines([*preamble, f"{_key(spot.root)}:", *_item(spot, entry, UNIT)], ending)
    root, marks = _line_of(text, spot.root), yaml_text.marks_in(text.encode("utf-8"))
    first = min((line - 1 for keys, (line, _) in marks.items() if keys[:-1] == (spot.root,)), default=None)
    if first is None:
        lines[root] = _NOTHING.sub("", lines[root].rstrip("\r\n"), count=1) + ending
    elif first == root:
        raise Unfit(f"{spot.root} uses braces or brackets; write its entries on separate lines")
    indent = UNIT if first is None else lines[first][: len(lines[first]) - len(lines[first].lstrip(" "))]
    return "".join([*lines[: root + 1], _lines(_item(spot, entry, indent), ending), *lines[root + 1 :]])


def removed(text: str, spot: Spot) -> str:
    root = values(text, spot)[spot.root]
    name = next(index for index, item in enumerate(root) if spot.is_item(item)) if spot.is_list else spot.name
    start = _line_of(text, spot.root, name)
    if start == _line_of(text, spot.root):
        raise Unfit(f"{spot.root} uses braces or brackets; write its entries on separate lines")
    marks = yaml_text.marks_in(text.encode("utf-8"))
    others = (line - 1 for keys, (line, _) in marks.items() if keys[:2] != (spot.root, name))
    lines = text.splitlines(keepends=True)
    end = min((line for line in others if line > start), default=len(lines))
    if lines[end - 1].startswith("..."):
        end -= 1
    lines = without_lines(lines, start, end)
    if len(root) == 1:
        at = _line_of(text, spot.root)
        lines[at] = lines[at].replace(":", ": []" if spot.is_list else ": {}", 1)
    return "".join(lines)


def _line_of(text: str, *keys: str | int) -> int:
    return yaml_text.marks_in(text.encode("utf-8"))[keys][0] - 1


def _item(spot: Spot, entry: Json, indent: str) -> list[str]:
    if not spot.is_list:
        return [f"{indent}{_key(spot.name)}:", *_block(entry, indent + UNIT)]
    first, *others = _block(entry, indent + UNIT)
    return [f"{indent}- {first.lstrip()}", *others]


def _block(value: Json, indent: str) -> list[str]:
    lines = []
    for key, each in value.items():
        if isinstance(each, dict) and each:
            lines += [f"{indent}{_key(key)}:", *_block(each, indent + UNIT)]
        else:
            lines.append(f"{indent}{_key(key)}: {_json(each)}")
    return lines


def _lines(lines: list[str], ending: str) -> str:
    return "".join(f"{line}{ending}" for line in lines)


def _key(name: str) -> str:
    is_bare = _BARE.fullmatch(name) and name.lower() not in _WORDS
    return name if is_bare else _json(name)


def _json(value: object) -> str:
    """JSON that YAML reads, too: characters that YAML takes for line ends, or refuses, are escaped."""
    return _ODD.sub(lambda odd: f"\\U{ord(odd[0]):08X}", json.dumps(value, ensure_ascii=False))
