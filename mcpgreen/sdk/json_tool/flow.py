"""Functions of the small jq that decide how often and how long filters run, or that nothing runs any more."""

from __future__ import annotations

from itertools import islice

from .filters import INPUTS, values
from .values import FilterError, Halt, kind_of, number, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .filters import Env, Filter, Item


def _none(_: Env, __: Item) -> Iterator[Item]:
    return iter(())


def _fail(env: Env, item: Item, message: Filter) -> Iterator[Item]:
    for value in values(message, env, item):
        raise FilterError(value)
    return iter(())


def _halt(_: Env, __: Item) -> Iterator[Item]:
    raise Halt(0, None)


def _halt_error(env: Env, item: Item, status: Filter) -> Iterator[Item]:
    for code in values(status, env, item):
        if kind_of(code) != "number":
            raise FilterError("halt_error/1: number required")
        raise Halt(whole(code), item[0])
    return iter(())


def _first(env: Env, item: Item, body: Filter) -> Iterator[Item]:
    return islice(body(env, item), 1)


def _limit(env: Env, item: Item, count: Filter, body: Filter) -> Iterator[Item]:
    for most in values(count, env, item):
        yield from islice(body(env, item), max(0, whole(most)))


def _is_empty(env: Env, item: Item, body: Filter) -> Iterator[Item]:
    yield next(body(env, item), None) is None, None


def _range(env: Env, item: Item, start: Filter, end: Filter, step: Filter) -> Iterator[Item]:
    for by in values(step, env, item):
        for to in values(end, env, item):
            for at in values(start, env, item):
                if any(kind_of(bound) != "number" for bound in (at, to, by)):
                    raise FilterError("Range bounds must be numbers")
                while by and (at < to if by > 0 else at > to):
                    yield at, None
                    at = number(at + by)


def _repeat(env: Env, item: Item, body: Filter) -> Iterator[Item]:
    while True:
        yield from body(env, item)


def _recurse(env: Env, item: Item, body: Filter) -> Iterator[Item]:
    """The item, and of each result of the body the same; in a list of our own, as Python's stack is not for loops."""
    pending = [iter((item,))]
    while pending:
        for found in pending[-1]:
            yield found
            pending.append(body(env, found))
            break
        else:
            pending.pop()


def _input(env: Env, _: Item) -> Iterator[Item]:
    for value in env[INPUTS]:
        yield value, None
        return
    raise FilterError("No more inputs")


def _inputs(env: Env, _: Item) -> Iterator[Item]:
    return ((value, None) for value in env[INPUTS])


FUNCTIONS: dict[str, Callable[..., Iterator[Item]]] = {
    "empty/0": _none,
    "error/1": _fail,
    "first/1": _first,
    "halt/0": _halt,
    "halt_error/1": _halt_error,
    "input/0": _input,
    "inputs/0": _inputs,
    "isempty/1": _is_empty,
    "limit/2": _limit,
    "range/3": _range,
    "recurse/1": _recurse,
    "repeat/1": _repeat,
}
