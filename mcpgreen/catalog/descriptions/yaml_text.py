"""Read YAML from any source without letting it block or crash the server.

`yaml.load` cannot be interrupted, and its depth on the C stack is the depth of the text: a file full of brackets ends
the process. So the text is first parsed event by event, which needs no stack and can stop at a limit.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from mcpgreen.text import jsontext

Keys = tuple[str | int, ...]
Mark = tuple[int, int]

MAX_VALUES = 5_000  # each takes 10 microseconds
MAX_DEPTH = 64
MAX_DIGITS = 100  # YAML reads 1:30:00 with base 60, in a time that grows with the square of its length
MERGE = "<<"
TEXT_TAG = "tag:yaml.org,2002:str"
_FINITE = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
# The kinds of plain values in YAML 1.2.
CORE_SCHEMA = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]{1,20}|0x[0-9a-fA-F]{1,15}",
    "float": rf"{_FINITE}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
}
BASES = {"0x": 16, "0o": 8}
_NUMBER = r"[-+0-9_:.eE]*"
_SOURCE_NAME = r'in "<[a-z ]+>",'


def value_of(raw: bytes, max_values: int = MAX_VALUES, *, is_strict: bool = False) -> Any:
    """Return the value. Raises ValueError for text that is not YAML, or has a value that JSON does not have.

    `is_strict`: read plain words as YAML 1.2 does (`yes` is a text), so that other programs find the same value, and
    refuse what they may refuse: aliases, and names that appear twice."""
    import yaml  # type: ignore[import-untyped, unused-ignore]

    try:
        _require_within_limits(raw, max_values, allows_aliases=not is_strict)
        if is_strict and (doubles := duplicates_in(raw)):
            raise ValueError(f"{'.'.join(map(str, doubles[0][0]))} appears twice")
        value = yaml.load(raw, Loader=_loader(is_strict=is_strict))
        _require_few_values(value, max_values)
        # As JSON and back, because JSON has no sets, no infinity and no node inside itself.
        return jsontext.loads(jsontext.dumps(value))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(re.sub(_SOURCE_NAME, "at", " ".join(str(error).split()))) from error


def marks_in(raw: bytes) -> dict[Keys, Mark]:
    """Return line and column, from 1, of each name and item; nothing if `value_of` refuses the text."""
    return dict(_marks(raw))


def duplicates_in(raw: bytes) -> list[tuple[Keys, Mark]]:
    """Return the names that a mapping has more than once: YAML only uses the last."""
    seen: dict[Keys, Mark] = {}
    duplicates: dict[Keys, Mark] = {}
    for keys, mark in _marks(raw):
        # An alias leads to the same place again, and everything in a duplicate is a duplicate, too.
        is_new = seen.setdefault(keys, mark) == mark or any(keys[:end] in duplicates for end in range(1, len(keys)))
        if not is_new and keys[-1] != MERGE:
            duplicates[keys] = mark
    return list(duplicates.items())


def _marks(raw: bytes) -> Iterator[tuple[Keys, Mark]]:
    import yaml

    try:
        _require_within_limits(raw)
        top = yaml.compose(raw, Loader=_loader())
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    count = 0
    pending: list[tuple[Keys, Any]] = [((), top)]
    while pending and count <= MAX_VALUES:  # an alias may stand for a node around it
        keys, node = pending.pop()
        inner: list[tuple[str | int, Any, Any]] = []
        if isinstance(node, yaml.MappingNode):
            inner = [(str(name.value), name, value) for name, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            inner = [(index, value, value) for index, value in enumerate(node.value)]
        for key, marked, value in inner:
            count += 1
            path = (*keys, key)
            yield path, (marked.start_mark.line + 1, marked.start_mark.column + 1)
            pending.append((path, value))


def _require_within_limits(raw: bytes, max_values: int = MAX_VALUES, *, allows_aliases: bool = True) -> None:
    import yaml

    depth = 0
    for values, event in enumerate(yaml.parse(raw, Loader=_loader())):
        if values > max_values:
            raise ValueError(f"it has more than {max_values} values; use JSON, which allows more")
        if isinstance(event, yaml.AliasEvent) and not allows_aliases:
            raise ValueError("it has an alias (*); write the value itself")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and len(event.value) > MAX_DIGITS:
            is_plain_number = event.implicit[0] and re.fullmatch(_NUMBER, event.value)
            if is_plain_number if event.tag is None else event.tag != TEXT_TAG:
                raise ValueError(f"a number has more than {MAX_DIGITS} digits; put it in quotes")


def _require_few_values(value: Any, max_values: int) -> None:
    """Raise ValueError for too many values. Each alias counts in full: nine lines of them can make a billion values."""
    seen = 0
    pending = [value]
    while pending:
        current = pending.pop()
        seen += 1
        if seen > max_values:
            raise ValueError(f"it has more than {max_values} values, counting each alias in full")
        if isinstance(current, dict):
            pending.extend(current.values())
        elif isinstance(current, (list, tuple, set)):
            pending.extend(current)


@functools.cache
def _loader(*, is_strict: bool = False) -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """The safe loader, but an unquoted date stays a string, and merged members are counted: each level of
        `<<: [*a, *a]` doubles them before there is a value to count."""

        merged = 0

        def flatten_mapping(self, node: Any) -> None:
            is_merging = any(name.value == MERGE for name, _ in node.value)
            super().flatten_mapping(node)
            self.merged += len(node.value) if is_merging else 0
            if self.merged > MAX_VALUES:
                raise ValueError(f"it has more than {MAX_VALUES} values, including merged ones")

    Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)
    if is_strict:
        Loader.yaml_implicit_resolvers = {}
        Loader.add_constructor(
            "tag:yaml.org,2002:int", lambda loader, node: int(node.value, BASES.get(node.value[:2], 10))
        )
        for kind, pattern in CORE_SCHEMA.items():
            Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(rf"(?:{pattern})\Z"), None)
    return Loader
