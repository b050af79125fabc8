"""Values of the small jq: how they are read, compared, combined, reached by a path and written.

Python's own values, with two dangers: True is a number to Python, and 1 equals 1.0 and True. So kinds are asked for
with `kind_of`, and equality and order go through `order_of`.
"""

from __future__ import annotations

import json
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
MAX_REPEATED = 1 << 28
RANKS = {"null": 0, "number": 3, "string": 4, "array": 5, "object": 6}


class FilterError(Exception):
    """A filter failed. Carries a value, because `try ... catch` hands it on."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class Halt(Exception):
    """A filter wants nothing to run any more. No failure, so `try` lets it pass."""

    def __init__(self, status: int, message: Any) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message


def kind_of(value: Any) -> str:
    return KINDS[type(value)]


def shown(value: Any) -> str:
    """Kind and text of a value, for messages."""
    text = dumps(value)
    return f"{kind_of(value)} ({text if len(text) <= 40 else text[:37] + '...'})"


def wanted(name: str, kind: str, value: Any) -> Any:
    if kind_of(value) != kind:
        raise FilterError(f"{name} needs {kind} input, found {shown(value)}")
    return value


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def is_true(value: Any) -> bool:
    return value is not None and value is not False


def order_of(value: Any) -> Any:
    """A key that sorts as jq does: null, false, true, numbers, strings, arrays, objects."""
    kind = kind_of(value)
    if kind == "boolean":
        return (2 if value else 1,)
    if kind == "array":
        return (5, [order_of(each) for each in value])
    if kind == "object":
        keys = sorted(value)
        return (6, keys, [order_of(value[key]) for key in keys])
    return (RANKS[kind], 0 if value is None else value)


def number(value: float) -> Any:
    """Whole numbers without a fraction, as jq writes them."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e17 else value


def whole(value: Any, rounding: Callable[[float], int] = math.floor) -> int:
    """A number that counts something."""
    if kind_of(value) != "number" or not math.isfinite(value):
        raise FilterError(f"A finite number is needed, found {shown(value)}")
    return rounding(value)


def loads(text: str) -> Any:
    return json.loads(text, parse_float=_fraction, parse_constant=_no_constant)


def _fraction(text: str) -> Any:
    return number(float(text))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def values_in(text: str) -> Iterator[Any]:
    """The values of a text, one behind the other. Raises ValueError where it is not JSON."""
    decoder = json.JSONDecoder(parse_float=_fraction, parse_constant=_no_constant)
    at = 1 if text.startswith("\ufeff") else 0
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at == len(text):
            return
        value, at = decoder.raw_decode(text, at)
        yield value


def dumps(value: Any, *, indent: Any = None, sort_keys: bool = False, ascii_only: bool = False) -> str:
    separators = (",", ":") if indent is None else (",", ": ")
    try:
        return json.dumps(
            value, ensure_ascii=ascii_only, separators=separators, indent=indent, sort_keys=sort_keys, allow_nan=False
        )
    except ValueError:  # JSON has no name for what is not a number, or beyond all numbers
        return dumps(_finite(value), indent=indent, sort_keys=sort_keys, ascii_only=ascii_only)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else math.copysign(1.7976931348623157e308, value)
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return {key: _finite(each) for key, each in value.items()} if isinstance(value, dict) else value


def combine(operator: str, left: Any, right: Any) -> Any:
    """The arithmetic of + - * / %, on whatever each of them is defined for."""
    kinds = kind_of(left), kind_of(right)
    if kinds == ("number", "number"):
        return _calculate(operator, left, right)
    if operator == "+":
        if left is None or right is None:
            return right if left is None else left
        if kinds in (("string", "string"), ("array", "array")):
            return left + right
        if kinds == ("object", "object"):
            return {**left, **right}
    elif operator == "-" and kinds == ("array", "array"):
        unwanted = [order_of(each) for each in right]
        return [each for each in left if order_of(each) not in unwanted]
    elif operator == "*":
        if kinds == ("object", "object"):
            return _merged(left, right)
        if kinds == ("string", "number"):
            times = whole(right, math.ceil)
            if times * len(left) > MAX_REPEATED:
                raise FilterError("The repeated string would be too long")
            return left * times if right > 0 else None
    elif operator == "/" and kinds == ("string", "string"):
        return left.split(right) if right else list(left)
    raise FilterError(f"{shown(left)} and {shown(right)} cannot be combined with {operator}")


def _calculate(operator: str, left: Any, right: Any) -> Any:
    try:
        if operator == "+":
            return number(left + right)
        if operator == "-":
            return number(left - right)
        if operator == "*":
            return number(left * right)
        if operator == "/":
            return number(left / right)
        return int(math.fmod(int(left), int(right)))
    except ZeroDivisionError:
        raise FilterError(f"{shown(left)} cannot be divided by zero") from None
    except (OverflowError, ValueError):
        raise FilterError(f"{shown(left)} {operator} {shown(right)} is no number") from None


def _merged(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    merged = dict(left)
    for key, value in right.items():
        both = isinstance(value, dict) and isinstance(left.get(key), dict)
        merged[key] = _merged(left[key], value) if both else value
    return merged


def get(value: Any, key: Any) -> Any:
    """`.[key]`: a member, an item, a slice, or where a list stands in a list."""
    kinds = kind_of(value), kind_of(key)
    if value is None and kinds[1] in ("string", "number", "object", "null"):
        return None
    if kinds == ("object", "string"):
        return value.get(key)
    if kinds == ("array", "number"):
        index = whole(key)
        return value[index] if -len(value) <= index < len(value) else None
    if kinds in (("array", "object"), ("string", "object")):
        return value[_slice(key)]
    if kinds == ("array", "array"):
        return [at for at in range(len(value)) if key and _same(value[at : at + len(key)], key)]
    with_what = f'"{key}"' if kinds[1] == "string" else kinds[1]
    raise FilterError(f"Cannot index {kinds[0]} with {with_what}")


def _same(left: Any, right: Any) -> bool:
    return bool(order_of(left) == order_of(right))


def _slice(bounds: dict[str, Any]) -> slice:
    start, end = bounds.get("start"), bounds.get("end")
    if any(kind_of(bound) not in ("null", "number") for bound in (start, end)):
        raise FilterError("Start and end of a slice must be numbers")
    return slice(None if start is None else whole(start), None if end is None else whole(end, math.ceil))


def get_path(value: Any, path: Any) -> Any:
    for key in path:
        value = None if value is None else get(value, key)
    return value


def set_path(value: Any, path: Any, new: Any) -> Any:
    """A copy of the value with something else at the end of the path; what is missing on the way is made."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    inner = set_path(get(value, key), rest, new)
    if isinstance(key, str):
        return {**(value or {}), key: inner}
    changed = list(value or [])
    if isinstance(key, dict):
        if not isinstance(inner, list):
            raise FilterError("A slice of an array can only be replaced by an array")
        changed[_slice(key)] = inner
        return changed
    index = whole(key)
    if index < -len(changed):
        raise FilterError("Out of bounds negative array index")
    if index >= len(changed):
        if index > 1 << 24:
            raise FilterError("Array index too large")
        changed += [None] * (index + 1 - len(changed))
    changed[index] = inner
    return changed


def delete_path(value: Any, path: Any) -> Any:
    """A copy without what the path leads to; where it leads nowhere, the value itself."""
    if not path or value is None:
        return None
    key, rest = path[0], path[1:]
    found = get(value, key)  # also says whether the key fits the value
    if found is None and not isinstance(value, dict) and not isinstance(value, list):
        return value
    if rest:
        return value if found is None else set_path(value, path[:1], delete_path(found, rest))
    if isinstance(value, dict):
        return {name: member for name, member in value.items() if name != key}
    remaining = list(value)
    if isinstance(key, dict):
        del remaining[_slice(key)]
    elif -len(remaining) <= whole(key) < len(remaining):
        del remaining[whole(key)]
    return remaining


def contains(whole: Any, part: Any) -> bool:
    kinds = kind_of(whole), kind_of(part)
    if kinds == ("object", "object"):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if kinds == ("array", "array"):
        return all(any(kind_of(a) == kind_of(b) and contains(a, b) for a in whole) for b in part)
    if kinds == ("string", "string"):
        return part in whole
    if kinds[0] != kinds[1]:
        raise FilterError(f"{shown(whole)} and {shown(part)} cannot have their containment checked")
    return _same(whole, part)
