"""Filters of the small jq: functions from one item to any number of items.

An item is a value and the path that leads to it from where a path was asked for; the path is None when the value is no
place of the input, or when nobody asked. Surroundings map `$name` to a value and `name/count` to a function; they are
copied, never changed.
"""

from __future__ import annotations

from itertools import islice

from .values import FilterError, combine, delete_path, get, get_path, is_true, order_of, set_path, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Item = tuple[Any, Any]
    Env = dict[str, Any]
    Filter = Callable[[Env, Item], Iterator[Item]]

INPUTS = "inputs"  # the name under which the surroundings keep the values that have not been read yet


def identity(_: Env, item: Item) -> Iterator[Item]:
    yield item


def constant(value: Any) -> Filter:
    def run(_: Env, __: Item) -> Iterator[Item]:
        yield value, None

    return run


def variable(name: str) -> Filter:
    def run(env: Env, _: Item) -> Iterator[Item]:
        yield env[name], None

    return run


def values(body: Filter, env: Env, item: Item) -> Iterator[Any]:
    """The results without their paths, and without the cost of keeping them."""
    return (value for value, _ in body(env, (item[0], None)))


def pipe(left: Filter, right: Filter) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        for between in left(env, item):
            yield from right(env, between)

    return run


def comma(left: Filter, right: Filter) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        yield from left(env, item)
        yield from right(env, item)

    return run


def alternative(left: Filter, right: Filter) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        has_found = False
        for result in left(env, item):
            if is_true(result[0]):
                has_found = True
                yield result
        if not has_found:
            yield from right(env, item)

    return run


def logic(left: Filter, right: Filter, decisive: bool) -> Filter:
    """`or` is decided by true, `and` by false; only without a decision is the right side asked."""

    def run(env: Env, item: Item) -> Iterator[Item]:
        for first in values(left, env, item):
            if is_true(first) is decisive:
                yield decisive, None
            else:
                yield from ((is_true(second), None) for second in values(right, env, item))

    return run


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def operation(operator: str, left: Filter, right: Filter) -> Filter:
    compare = COMPARISONS.get(operator)

    def run(env: Env, item: Item) -> Iterator[Item]:
        for second in values(right, env, item):
            for first in values(left, env, item):
                if compare:
                    yield compare(order_of(first), order_of(second)), None
                else:
                    yield combine(operator, first, second), None

    return run


def negation(body: Filter) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        for value in values(body, env, item):
            yield combine("-", 0, value), None

    return run


def index(source: Filter, key: Filter, *, is_optional: bool = False) -> Filter:
    """Keys are computed from the input of the whole, not from what is indexed.

    Optional: what has no such place is passed over. The failures of source and key stay failures.
    """

    def run(env: Env, item: Item) -> Iterator[Item]:
        for value, path in source(env, item):
            for name in values(key, env, item):
                try:
                    found = get(value, name)
                except FilterError:
                    if is_optional:
                        continue
                    raise
                yield found, None if path is None else (*path, name)

    return run


def part(source: Filter, start: Filter, end: Filter, *, is_optional: bool) -> Filter:
    def bounds(env: Env, item: Item) -> Iterator[Item]:
        for last in values(end, env, item):
            for first in values(start, env, item):
                yield {"start": first, "end": last}, None

    return index(source, bounds, is_optional=is_optional)


def each(source: Filter, *, is_optional: bool) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        for value, path in source(env, item):
            if not isinstance(value, (list, dict)):
                if is_optional:
                    continue
                raise FilterError(f"Cannot iterate over {shown(value)}")
            for name in value if isinstance(value, dict) else range(len(value)):
                yield value[name], None if path is None else (*path, name)

    return run


def attempt(body: Filter, handler: Filter | None) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        try:
            yield from body(env, item)
        except FilterError as error:
            if handler:
                yield from handler(env, (error.value, None))

    return run


def condition(question: Filter, yes: Filter, no: Filter) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        for answer in values(question, env, item):
            yield from (yes if is_true(answer) else no)(env, item)

    return run


def array(body: Filter) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        yield list(values(body, env, item)), None

    return run


def members(pairs: list[tuple[Filter, Filter]]) -> Filter:
    def build(env: Env, item: Item, at: int) -> Iterator[dict[str, Any]]:
        if at == len(pairs):
            yield {}
            return
        for name in values(pairs[at][0], env, item):
            if not isinstance(name, str):
                raise FilterError(f"Object keys must be strings, found {shown(name)}")
            for value in values(pairs[at][1], env, item):
                for rest in build(env, item, at + 1):
                    yield {name: value, **rest}

    def run(env: Env, item: Item) -> Iterator[Item]:
        return ((built, None) for built in build(env, item, 0))

    return run


def text(parts: list[Any], form: Callable[[Any], str]) -> Filter:
    """Strings as they are, and filters whose results take a form."""

    def build(env: Env, item: Item, at: int) -> Iterator[str]:
        if at == len(parts):
            yield ""
            return
        for rest in build(env, item, at + 1):
            if isinstance(parts[at], str):
                yield parts[at] + rest
            else:
                yield from (form(value) + rest for value in values(parts[at], env, item))

    def run(env: Env, item: Item) -> Iterator[Item]:
        return ((built, None) for built in build(env, item, 0))

    return run


def of_values(function: Callable[..., Any], arguments: list[Filter]) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        yield from apply(env, item, [])

    def apply(env: Env, item: Item, chosen: list[Any]) -> Iterator[Item]:
        if len(chosen) == len(arguments):
            yield applied(function, item[0], *chosen), None
            return
        for value in values(arguments[len(chosen)], env, item):
            yield from apply(env, item, [*chosen, value])

    return run


def applied(function: Callable[..., Any], *given: Any) -> Any:
    """What a function in Python makes of values of whatever kind."""
    try:
        return function(*given)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError):
        raise FilterError(f"This function cannot be applied to {', '.join(map(shown, given))}") from None


def paths_of(body: Filter, env: Env, value: Any) -> Iterator[tuple[Any, ...]]:
    for found, path in body(env, (value, ())):
        if path is None:
            raise FilterError(f"Invalid path expression with result {shown(found)}")
        yield path


def assignment(operator: str, target: Filter, source: Filter) -> Filter:
    """`=`, `|=`, and `+=` with its likes."""

    def run(env: Env, item: Item) -> Iterator[Item]:
        if operator == "|=":
            yield updated(env, item[0]), None
            return
        for value in values(source, env, item):
            changed = item[0]
            for path in paths_of(target, env, item[0]):
                changed = applied(set_path, changed, path, assigned(get_path(changed, path), value))
            yield changed, None

    def assigned(old: Any, value: Any) -> Any:
        if operator == "=":
            return value
        if operator == "//=":
            return old if is_true(old) else value
        return combine(operator[:-1], old, value)

    def updated(env: Env, changed: Any) -> Any:
        unwanted = []
        for path in list(paths_of(target, env, changed)):
            for value in islice(values(source, env, (get_path(changed, path), None)), 1):
                changed = set_path(changed, path, value)
                break
            else:
                unwanted.append(path)
        for path in sorted(unwanted, key=lambda keys: order_of(list(keys)), reverse=True):
            changed = delete_path(changed, path)
        return changed

    return run
