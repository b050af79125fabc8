"""Put an entry into a YAML text, and take it out again, at places that a parser found.

What is written is the block style of the file around it, with every text in double quotes; inside of braces or brackets
it is JSON, which YAML reads.

Rule: events are looked at before nodes are made. Depth and number are bounded, and an alias is never followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from mcpgreen.cli.clients.formats.spot import (
    MAX_DEPTH,
    MAX_PIECES,
    Found,
    Spot,
    Unfit,
    after_line_end,
    end_of_line,
    line_end,
    start_of_line,
)

UNIT = "  "
_LOADER_S_NAME = re.compile(r'in "<[a-z ]+>",')
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# Words that YAML reads as something else than a text.
_ODD = re.compile(r"[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


class Document(NamedTuple):
    top: Any  # a node, or None
    end: int  # where an explicit end of the document begins, or the text ends


def find(text: str, spot: Spot) -> Found:
    root = _root(text, spot)
    item = _item(root, spot)
    if item is None:
        return Found(None, None, root is not None)
    key, value = item
    span = (_at(value.start_mark, text), _at(value.end_mark, text))  # inside of braces
    if not _is_flow(root):
        span = (_at(key.start_mark, text), _end(value, text, key))
    return Found(_plain(value, [MAX_PIECES]), span, True)


def inserted(text: str, spot: Spot, entry: Mapping[str, Any]) -> str:
    ending = line_end(text)
    document = _document(text)
    if document.top is None:
        source = spot.preamble.replace("\n", ending) + _with_root(spot, entry, ending)
        return _on_a_line(text, document.end, source, "")
    if _is_flow(document.top):
        raise Unfit("all of it is in braces; write its keys on lines of their own")
    root = _root(text, spot)
    if root is None or _is_empty(root):
        return _into_empty(text, document, spot, entry, root)
    if _is_flow(root):
        at = _at(root.start_mark, text) + 1
        return f"{text[:at]}{_flow_item(spot, entry)}{', ' if root.value else ''}{text[at:]}"
    indent = " " * root.start_mark.column
    return _on_a_line(text, _end(root, text), _item_source(spot, entry, indent, ending), indent)


def rendered(text: str, spot: Spot, entry: Mapping[str, Any]) -> str:
    root = _root(text, spot)
    if _is_flow(root):
        return _json(entry)
    item = _item(root, spot)
    if spot.is_list and item:
        return _block(entry, " " * item[1].start_mark.column, line_end(text))
    return _item_source(spot, entry, " " * root.start_mark.column, line_end(text))


def removed(text: str, spot: Spot, *, drops_root: bool) -> str:
    root = _root(text, spot)
    span = find(text, spot).span
    if span is None:
        raise Unfit("the entry is not there")
    item = _item(root, spot)
    if _is_flow(root) and item:
        return _without_flow_item(text, _at(item[0].start_mark, text), span[1])
    start = start_of_line(text, span[0])
    pair = _pair(_document(text).top, spot.root)
    if len(root.value) == 1 and pair is not None:
        if drops_root:
            start = start_of_line(text, _at(pair[0].start_mark, text))
        else:
            empty = "[]" if spot.is_list else "{}"
            at = end_of_line(text, _at(pair[0].end_mark, text))
            return f"{text[:at]} {empty}{text[end_of_line(text, span[1]) :]}"
    return text[:start] + text[after_line_end(text, end_of_line(text, span[1])) :]


def _without_flow_item(text: str, start: int, end: int) -> str:
    """With the comma that follows, or else with the one before it."""
    rest = text[end:].lstrip()
    if rest.startswith(","):
        return text[:start] + rest[1:].lstrip()
    before = text[:start].rstrip()
    return (before[:-1] if before.endswith(",") else text[:start]) + text[end:]


def values(text: str, spot: Spot) -> Any:
    del spot
    top = _document(text).top
    return None if top is None else _plain(top, [MAX_PIECES])


@lru_cache(maxsize=4)
def _document(text: str) -> Document:
    """Raises Unfit for what is no YAML, has several documents, or is too much."""
    import yaml

    depth, documents, end, is_empty = 0, 0, len(text), True
    body = text.removeprefix("\ufeff")
    try:
        for count, event in enumerate(yaml.parse(body, Loader=_loader())):
            if count > MAX_PIECES:
                raise Unfit(f"it has more than {MAX_PIECES} pieces")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    raise Unfit(f"it is nested deeper than {MAX_DEPTH} levels")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
            elif isinstance(event, yaml.DocumentEndEvent) and event.explicit:
                end = _at(event.start_mark, text)
            elif isinstance(event, yaml.ScalarEvent) and depth == 0:
                is_empty = event.value == "" and event.style in (None, "")
            if documents > 1:
                raise Unfit("it has several documents; which one counts is not certain")
        top = yaml.compose(body, Loader=_loader())
    except (yaml.YAMLError, RecursionError) as error:
        raise Unfit(f"it is not valid YAML: {_LOADER_S_NAME.sub('at', ' '.join(str(error).split()))}") from None
    if isinstance(top, yaml.ScalarNode) and is_empty:
        return Document(None, end)
    if top is not None and not isinstance(top, yaml.MappingNode):
        raise Unfit("it is no mapping")
    return Document(top, end)


def _root(text: str, spot: Spot) -> Any:
    import yaml

    pair = _pair(_document(text).top, spot.root)
    if pair is None:
        return None
    key, root = pair
    if _is_alias(root, key):
        raise Unfit(f"{spot.root} is an alias in it; an entry would change something else")
    wanted = yaml.SequenceNode if spot.is_list else yaml.MappingNode
    if not isinstance(root, wanted) and root.tag != "tag:yaml.org,2002:null":
        raise Unfit(f"{spot.root} is no {'list' if spot.is_list else 'mapping'} in it")
    return root


def _pair(mapping: Any, name: str) -> tuple[Any, Any] | None:
    if mapping is None or not isinstance(mapping.value, list):
        return None
    pairs = [(key, value) for key, value in mapping.value if key.value == name]
    if len(pairs) > 1:
        raise Unfit(f"{name} stands in it twice, the second time on line {pairs[1][0].start_mark.line + 1}")
    return pairs[0] if pairs else None


def _item(root: Any, spot: Spot) -> tuple[Any, Any] | None:
    """The key and the value of an entry; of an item of a list, the item twice."""
    if root is None or _is_empty(root):
        return None
    if not spot.is_list:
        return _pair(root, spot.name)
    found = [each for each in root.value if isinstance(each.value, list) and _name_in(each) == spot.name]
    if len(found) > 1:
        raise Unfit(f"{spot.name} stands in it twice, the second time on line {found[1].start_mark.line + 1}")
    return (found[0], found[0]) if found else None


def _name_in(item: Any) -> str | None:
    import yaml

    pairs = item.value if isinstance(item, yaml.MappingNode) else []
    return next((str(value.value) for key, value in pairs if key.value == "name"), None)


def _into_empty(text: str, document: Document, spot: Spot, entry: Mapping[str, Any], root: Any) -> str:
    """Where the key is missing, or nothing is below it."""
    ending = line_end(text)
    if root is None:
        return _on_a_line(text, document.end, _with_root(spot, entry, ending), "")
    start, end = _at(root.start_mark, text), _at(root.end_mark, text)
    if start == end:
        at = end_of_line(text, start)
        indent = UNIT
        return f"{text[:at]}{ending}{indent}{_item_source(spot, entry, indent, ending)}{text[at:]}"
    item = _flow_item(spot, entry)
    return f"{text[:start]}{f'[{item}]' if spot.is_list else f'{{{item}}}'}{text[end:]}"


def _on_a_line(text: str, at: int, source: str, indent: str) -> str:
    """The source on a line of its own behind what ends at `at`, which may be the beginning of a line."""
    ending = line_end(text)
    before = text[:at].removeprefix("\ufeff")
    if not before or before.endswith(("\n", "\r")):
        return f"{text[:at]}{indent}{source}{ending}{text[at:]}"
    return f"{text[:at]}{ending}{indent}{source}{'' if text[at:] else ending}{text[at:]}"


def _with_root(spot: Spot, entry: Mapping[str, Any], ending: str) -> str:
    return f"{_key(spot.root)}:{ending}{UNIT}{_item_source(spot, entry, UNIT, ending)}"


def _item_source(spot: Spot, entry: Mapping[str, Any], indent: str, ending: str) -> str:
    """Without the indentation of its first line."""
    if spot.is_list:
        return "- " + _block(entry, indent + UNIT, ending)
    deeper = indent + UNIT
    return f"{_key(spot.name)}:{ending}{deeper}{_block(entry, deeper, ending)}"


def _block(value: Mapping[str, Any], indent: str, ending: str) -> str:
    lines = []
    for key, each in value.items():
        if isinstance(each, Mapping) and each:
            deeper = indent + UNIT
            lines.append(f"{_key(key)}:{ending}{deeper}{_block(each, deeper, ending)}")
        else:
            lines.append(f"{_key(key)}: {_json(each)}")
    return f"{ending}{indent}".join(lines)


def _flow_item(spot: Spot, entry: Mapping[str, Any]) -> str:
    return _json(entry) if spot.is_list else f"{_json(spot.name)}: {_json(entry)}"


def _key(name: str) -> str:
    is_bare = _BARE.fullmatch(name) and name.lower() not in _WORDS
    return name if is_bare else _json(name)


def _json(value: Any) -> str:
    """As YAML reads it, too: it takes some characters for line ends, and others not at all."""
    return _ODD.sub(lambda odd: f"\\U{ord(odd[0]):08X}", json.dumps(value, ensure_ascii=False))


def _end(node: Any, text: str, key: Any = None) -> int:
    """Where the last of what is in a node ends, with the comment on its line. A block of text ends where the next line
    begins. An alias is known by its key only: the node is that which it names."""
    while not _is_alias(node, key) and isinstance(node.value, list) and node.value and not _is_flow(node):
        outer, last = node, node.value[-1]
        key, node = last if isinstance(last, tuple) else (None, last)
        if key is None and _is_alias(node, outer):
            raise Unfit("a list in it ends with an alias")
    node = key if _is_alias(node, key) else node
    end = _at(node.end_mark, text)
    if end > _at(node.start_mark, text) and text[end - 1 : end] in ("\n", "\r"):
        return end
    return end_of_line(text, end)


def _is_alias(node: Any, before: Any) -> bool:
    return before is not None and bool(node.start_mark.index < before.start_mark.index)


def _is_flow(node: Any) -> bool:
    return bool(getattr(node, "flow_style", False))


def _is_empty(node: Any) -> bool:
    return not isinstance(node.value, list)


def _at(mark: Any, text: str) -> int:
    """In the text with its byte order mark, which the parser does not get."""
    return int(mark.index) + (1 if text.startswith("\ufeff") else 0)


def _plain(node: Any, room: list[int], depth: int = 0) -> Any:
    """What a node says, to be compared. Numbers are read, dates and other things are not; `<<` is a key like others.
    An alias takes as much room as what it names."""
    room[0] -= 1
    if room[0] < 0 or depth > MAX_DEPTH:
        raise Unfit("its aliases stand for too much")
    if isinstance(node.value, str):
        return _scalar(node)
    if node.id == "sequence":
        return [_plain(each, room, depth + 1) for each in node.value]
    pairs = [(str(_plain(key, room, depth + 1)), _plain(value, room, depth + 1)) for key, value in node.value]
    members = dict(pairs)
    return members if len(members) == len(pairs) else ("duplicates", tuple(pairs))


def _scalar(node: Any) -> Any:
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind == "str":
        return node.value
    if kind == "null":
        return None
    if kind == "bool":
        return node.value.lower() in ("true", "yes", "on", "y")
    if kind == "int" and node.value.isdecimal() and len(node.value) < 20:
        return int(node.value)
    return f"{node.tag} {node.value}"


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)
