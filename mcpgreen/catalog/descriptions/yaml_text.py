"""Read a YAML text that anybody may have written, without being held up or brought down by it.

What `yaml.load` makes of a text cannot be interrupted, and goes as deep on the C stack as the text does: a file full of
brackets ends the process. So the text is looked at first, event by event, which needs no stack and can stop.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from mcpgreen.text import jsontext

MAX_VALUES = 5_000  # each takes 10 microseconds
MAX_DEPTH = 64
MAX_DIGITS = 100  # YAML reads 1:30:00 with base 60, in a time that grows with the square of its length
TEXT_TAG = "tag:yaml.org,2002:str"
_NUMBER = re.compile(r"[-+0-9_:.eE]*")
_LOADER_S_NAME = re.compile(r'in "<[a-z ]+>",')


def value_of(raw: bytes) -> Any:
    """What the text says, as far as JSON can say it. Raises ValueError."""
    import yaml  # type: ignore[import-untyped, unused-ignore]

    try:
        _require_modest(raw)
        value = yaml.load(raw, Loader=_loader())
        _require_few(value)
        # There and back: what JSON cannot say (sets, infinity, a node inside itself) must not get as far as the wire.
        return jsontext.loads(jsontext.dumps(value))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(_LOADER_S_NAME.sub("at", " ".join(str(error).split()))) from error


def marks_in(raw: bytes) -> dict[tuple[str | int, ...], tuple[int, int]]:
    """Line and column, from 1, of each name and item; empty for what `value_of` refuses."""
    import yaml

    try:
        _require_modest(raw)
        top = yaml.compose(raw, Loader=_loader())
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    marks: dict[tuple[str | int, ...], tuple[int, int]] = {}
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), top)]
    while pending and len(marks) <= MAX_VALUES:  # an alias may stand for what is around it
        keys, node = pending.pop()
        inner: list[tuple[str | int, Any, Any]] = []
        if isinstance(node, yaml.MappingNode):
            inner = [(str(name.value), name, value) for name, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            inner = [(index, value, value) for index, value in enumerate(node.value)]
        for key, marked, value in inner:
            way = (*keys, key)
            marks[way] = (marked.start_mark.line + 1, marked.start_mark.column + 1)
            pending.append((way, value))
    return marks


def _require_modest(raw: bytes) -> None:
    import yaml

    depth = 0
    for values, event in enumerate(yaml.parse(raw, Loader=_loader())):
        if values > MAX_VALUES:
            raise ValueError(f"it has more than {MAX_VALUES} values; JSON may have more")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and len(event.value) > MAX_DIGITS and _may_be_number(event):
            raise ValueError(f"a number has more than {MAX_DIGITS} digits; put it in quotes")


def _may_be_number(scalar: Any) -> bool:
    if scalar.tag is not None:
        return bool(scalar.tag != TEXT_TAG)
    is_plain: bool = scalar.implicit[0]
    return is_plain and _NUMBER.fullmatch(scalar.value) is not None


def _require_few(value: Any) -> None:
    """An alias takes a few bytes, and stands for all that it names: nine lines can say a billion values."""
    seen = 0
    pending = [value]
    while pending:
        current = pending.pop()
        seen += 1
        if seen > MAX_VALUES:
            raise ValueError(f"it has more than {MAX_VALUES} values, with each alias counted as what it names")
        if isinstance(current, dict):
            pending.extend(current.values())
        elif isinstance(current, (list, tuple, set)):
            pending.extend(current)


@functools.cache
def _loader() -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """As the safe loader, but an unquoted date stays the text that the author wrote."""

    Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)
    return Loader
