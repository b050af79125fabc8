"""Functions of the small jq that are written in Python, here or in `dates` and `flow`; those in its own language are in
`definitions.jq`.

The key of both tables is the name and the number of arguments. `OF_VALUES` are functions of the input and of one value
for each argument. `OF_FILTERS` get the filters themselves and the surroundings in which these run.
"""

from __future__ import annotations

import functools
import math
import os
import sys
from itertools import groupby

from . import dates, flow
from .filters import paths_of, values
from .texts import match_object, matches
from .values import (
    FilterError,
    combine,
    contains,
    delete_path,
    dumps,
    get,
    get_path,
    is_true,
    kind_of,
    loads,
    number,
    order_of,
    set_path,
    shown,
    text_of,
    wanted,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .filters import Env, Filter, Item


def _length(value: Any) -> Any:
    kind = kind_of(value)
    if kind == "boolean":
        raise FilterError(f"{shown(value)} has no length")
    return abs(value) if kind == "number" else 0 if value is None else len(value)


def _keys(value: Any) -> list[Any]:
    if kind_of(value) not in ("object", "array"):
        raise FilterError(f"{shown(value)} has no keys")
    return list(value) if isinstance(value, dict) else list(range(len(value)))


def _has(value: Any, key: Any) -> bool:
    if (kind_of(value), kind_of(key)) == ("object", "string"):
        return key in value
    if (kind_of(value), kind_of(key)) == ("array", "number"):
        return bool(0 <= key < len(value))
    raise FilterError(f"Cannot check whether {kind_of(value)} has a {kind_of(key)} key")


def _to_number(value: Any) -> Any:
    try:
        parsed = loads(value) if isinstance(value, str) else value
    except ValueError:
        parsed = None
    if kind_of(parsed) != "number":
        raise FilterError(f"{shown(value)} cannot be parsed as a number")
    return parsed


def _from_json(value: Any) -> Any:
    try:
        return loads(wanted("fromjson", "string", value))
    except ValueError as error:
        raise FilterError(f"{shown(value)} is not JSON: {error}") from None


def _split(value: Any, separator: Any) -> Any:
    if (kind_of(value), kind_of(separator)) != ("string", "string"):
        raise FilterError("split input and separator must be strings")
    return [] if value == "" else value.split(separator) if separator else list(value)


def _starts(value: Any, start: Any) -> bool:
    return bool(wanted("startswith", "string", value).startswith(wanted("startswith", "string", start)))


def _ends(value: Any, end: Any) -> bool:
    return bool(wanted("endswith", "string", value).endswith(wanted("endswith", "string", end)))


def _without_start(value: Any, start: Any) -> Any:
    both = isinstance(value, str) and isinstance(start, str)
    return value[len(start) :] if both and value.startswith(start) else value


def _without_end(value: Any, end: Any) -> Any:
    both = isinstance(value, str) and isinstance(end, str)
    return value[: len(value) - len(end)] if both and end and value.endswith(end) else value


def _indices(value: Any, part: Any) -> Any:
    if isinstance(value, str) and isinstance(part, str):
        return [at for at in range(len(value)) if part and value.startswith(part, at)] if value else None
    return None if value is None else get(value, part if isinstance(part, list) else [part])


def _edge(value: Any, part: Any, at: int) -> Any:
    found = _indices(value, part)
    return found[at] if found else None


def _flatten(value: Any, depth: float) -> list[Any]:
    if depth < 0:
        raise FilterError("flatten depth must not be negative")
    flat: list[Any] = []
    for each in value.values() if isinstance(value, dict) else wanted("flatten", "array", value):
        flat += _flatten(each, depth - 1) if isinstance(each, list) and depth > 0 else [each]
    return flat


def _delete_paths(value: Any, paths: Any) -> Any:
    for path in sorted(paths, key=order_of, reverse=True):  # from the end, so that no index moves before its turn
        value = delete_path(value, path)
    return value


def _reverse(value: Any) -> Any:
    return [] if value is None else value[::-1] if isinstance(value, str) else wanted("reverse", "array", value)[::-1]


def _math(name: str) -> Callable[[Any], Any]:
    def calculate(value: Any) -> Any:
        try:
            return number(getattr(math, name)(wanted(name, "number", value)))
        except (ValueError, OverflowError):
            return value if name in ("floor", "ceil") else math.nan

    return calculate


def _now(_: Any) -> float:
    from time import time

    return time()


def _bsearch(value: Any, target: Any) -> int:
    from bisect import bisect_left

    keys = [order_of(each) for each in wanted("bsearch", "array", value)]
    at = bisect_left(keys, order_of(target))
    return at if keys[at : at + 1] == [order_of(target)] else -1 - at


OF_VALUES: dict[str, Callable[..., Any]] = {
    **dates.FUNCTIONS,
    "ascii_downcase/0": lambda v: "".join(
        c.lower() if c < "\x80" else c for c in wanted("ascii_downcase", "string", v)
    ),
    "ascii_upcase/0": lambda v: "".join(c.upper() if c < "\x80" else c for c in wanted("ascii_upcase", "string", v)),
    "bsearch/1": _bsearch,
    "ceil/0": _math("ceil"),
    "contains/1": contains,
    "delpaths/1": _delete_paths,
    "endswith/1": _ends,
    "explode/0": lambda v: [ord(c) for c in wanted("explode", "string", v)],
    "fabs/0": _math("fabs"),
    "flatten/1": _flatten,
    "floor/0": _math("floor"),
    "fromjson/0": _from_json,
    "has/1": _has,
    "implode/0": lambda v: "".join(chr(c) for c in wanted("implode", "array", v)),
    "index/1": lambda v, part: _edge(v, part, 0),
    "indices/1": _indices,
    "infinite/0": lambda _: math.inf,
    "isinfinite/0": lambda v: math.isinf(wanted("isinfinite", "number", v)),
    "isnan/0": lambda v: math.isnan(wanted("isnan", "number", v)),
    "keys/0": lambda v: sorted(_keys(v)),
    "keys_unsorted/0": _keys,
    "length/0": _length,
    "log/0": _math("log"),
    "ltrimstr/1": _without_start,
    "ltrim/0": lambda v: wanted("ltrim", "string", v).lstrip(),
    "nan/0": lambda _: math.nan,
    "not/0": lambda v: not is_true(v),
    "now/0": _now,
    "pow/2": lambda _, base, power: number(float(base) ** power),
    "reverse/0": _reverse,
    "rindex/1": lambda v, part: _edge(v, part, -1),
    "round/0": lambda v: number(float(math.floor(wanted("round", "number", v) + 0.5))),
    "rtrim/0": lambda v: wanted("rtrim", "string", v).rstrip(),
    "rtrimstr/1": _without_end,
    "setpath/2": set_path,
    "split/1": _split,
    "sqrt/0": _math("sqrt"),
    "startswith/1": _starts,
    "test/2": lambda v, pattern, flags: any(True for _ in matches(v, pattern, flags)),
    "tojson/0": dumps,
    "tonumber/0": _to_number,
    "tostring/0": text_of,
    "transpose/0": lambda v: [[get(row, at) for row in v] for at in range(max(map(len, v), default=0))],
    "trim/0": lambda v: wanted("trim", "string", v).strip(),
    "type/0": kind_of,
    "utf8bytelength/0": lambda v: len(wanted("utf8bytelength", "string", v).encode("utf-8", "replace")),
}


def _path(env: Env, item: Item, body: Filter) -> Iterator[Item]:
    return ((list(path), None) for path in paths_of(body, env, item[0]))


def _get_path(env: Env, item: Item, body: Filter) -> Iterator[Item]:
    for path in values(body, env, item):
        yield get_path(item[0], wanted("getpath", "array", path)), None if item[1] is None else (*item[1], *path)


def _sorted(env: Env, item: Item, key: Filter) -> list[tuple[Any, Any]]:
    keyed = [(order_of(list(values(key, env, (each, None)))), each) for each in wanted("sort", "array", item[0])]
    return sorted(keyed, key=lambda pair: pair[0])


def _sort_by(env: Env, item: Item, key: Filter) -> Iterator[Item]:
    yield [each for _, each in _sorted(env, item, key)], None


def _groups_by(env: Env, item: Item, key: Filter) -> Iterator[Item]:
    for _, group in groupby(_sorted(env, item, key), lambda pair: pair[0]):
        yield [each for _, each in group], None


def _match(env: Env, item: Item, pattern: Filter, flags: Filter) -> Iterator[Item]:
    for options in values(flags, env, item):
        for expression in values(pattern, env, item):
            for match in matches(item[0], expression, options):
                yield match_object(match), None


def _splits(env: Env, item: Item, pattern: Filter, flags: Filter) -> Iterator[Item]:
    for options in values(flags, env, item):
        for expression in values(pattern, env, item):
            done = 0
            for match in matches(item[0], expression, combine("+", options, "g")):
                yield item[0][done : match.start()], None
                done = match.end()
            yield item[0][done:], None


def _replace(env: Env, item: Item, pattern: Filter, body: Filter, flags: Filter) -> Iterator[Item]:
    """The replacement sees the named groups of its match as an object."""
    for options in values(flags, env, item):
        for expression in values(pattern, env, item):
            pieces, done = [], 0
            for match in matches(item[0], expression, options):
                for text in values(body, env, (match.groupdict(), None)):
                    pieces += [item[0][done : match.start()], wanted("sub", "string", text)]
                    done = match.end()
            yield "".join(pieces) + item[0][done:], None


def _to_stream(_: Env, item: Item) -> Iterator[Item]:
    return ((event, None) for event in _events(item[0], []))


def _events(value: Any, path: list[Any]) -> Iterator[list[Any]]:
    """Each leaf with its path, and the path of what each array and object ends with."""
    keys = _keys(value) if isinstance(value, (list, dict)) else []
    for key in keys:
        yield from _events(value[key], [*path, key])
    yield [[*path, keys[-1]]] if keys else [path, value]


def _debug(_: Env, item: Item) -> Iterator[Item]:
    print(dumps(["DEBUG:", item[0]]), file=sys.stderr)
    yield item


OF_FILTERS: dict[str, Callable[..., Iterator[Item]]] = {
    **flow.FUNCTIONS,
    "debug/0": _debug,
    "getpath/1": _get_path,
    "groups_by/1": _groups_by,
    "match/2": _match,
    "path/1": _path,
    "sort_by/1": _sort_by,
    "splits/2": _splits,
    "sub/3": _replace,
    "tostream/0": _to_stream,
}


@functools.cache
def definitions() -> dict[str, str]:
    """The text of each function that is written in jq."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "definitions.jq")
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("def "):
                head = line[4 : line.index(":")]
                name, _, parameters = head.partition("(")
                found[f"{name}/{parameters.count(';') + 1 if parameters else 0}"] = line
    return found
