"""Names of the small jq: variables, patterns, labels, functions and their arguments.

A pattern is what stands behind `as`: given surroundings and a value, it yields the surroundings with its names bound.
"""

from __future__ import annotations

from .filters import constant, identity, index, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .filters import Env, Filter, Item

    Pattern = Callable[[Env, Any], Iterator[Env]]


class Function:
    """A function of the language, or an argument of one: a filter with the surroundings of its place."""

    def __init__(self, key: str, parameters: list[str], body: Filter, env: Env, *, is_argument: bool = False) -> None:
        self.parameters = parameters
        self.body = body
        self.env = env if is_argument else {**env, key: self}


def bound_to(name: str) -> Pattern:
    def bind(env: Env, value: Any) -> Iterator[Env]:
        yield {**env, name: value}

    return bind


def bound_to_parts(parts: list[tuple[Filter, Pattern, set[str]]]) -> Pattern:
    def bind(env: Env, value: Any) -> Iterator[Env]:
        return each_part(env, value, 0)

    def each_part(env: Env, value: Any, at: int) -> Iterator[Env]:
        if at == len(parts):
            yield env
            return
        key, pattern, _ = parts[at]
        for found, _ in index(identity, key)(env, (value, None)):
            for bound in pattern(env, found):
                yield from each_part(bound, value, at + 1)

    return bind


def binding(source: Filter, pattern: Pattern, body: Filter) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        for value in values(source, env, item):
            for bound in pattern(env, value):
                yield from body(bound, item)

    return run


def folding(source: Filter, pattern: Pattern, start: Filter, update: Filter, extract: Filter | None) -> Filter:
    """`reduce`, or `foreach` when something is extracted on the way."""

    def run(env: Env, item: Item) -> Iterator[Item]:
        for state in start(env, item):
            for value in values(source, env, item):
                for bound in pattern(env, value):
                    results = update(bound, state)
                    state = (None, None)
                    for state in results:
                        if extract:
                            yield from extract(bound, state)
            if not extract:
                yield state

    return run


class Break(Exception):
    """Leave a label. No failure, so `try` lets it pass."""


def label(name: str, body: Filter) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        way_out = Break()
        try:
            yield from body({**env, name: way_out}, item)
        except Break as taken:
            if taken is not way_out:
                raise

    return run


def leaving(name: str) -> Filter:
    def run(env: Env, _: Item) -> Iterator[Item]:
        raise env[name]

    return run


def definition(key: str, parameters: list[str], body: Filter, rest: Filter) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        return rest({**env, key: Function(key, parameters, body, env)}, item)

    return run


def call(key: str, arguments: list[Filter], known: Function | None = None) -> Filter:
    def run(env: Env, item: Item) -> Iterator[Item]:
        function: Function = known or env[key]
        inner = dict(function.env)
        asked = []
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            name = parameter.removeprefix("$") + "/0"
            inner[name] = Function(name, [], argument, env, is_argument=True)
            if parameter != name[:-2]:
                asked.append((parameter, argument))
        for bound in _each_value(asked, env, item, inner):
            yield from function.body(bound, item)

    return run


def _each_value(asked: list[tuple[str, Filter]], env: Env, item: Item, inner: Env) -> Iterator[Env]:
    if not asked:
        yield inner
        return
    (parameter, argument), *others = asked
    for value in values(argument, env, item):
        yield from _each_value(others, env, item, {**inner, parameter: value, parameter[1:] + "/0": _fixed(value)})


def _fixed(value: Any) -> Function:
    return Function("", [], constant(value), {}, is_argument=True)
