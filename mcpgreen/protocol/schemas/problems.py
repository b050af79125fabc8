"""Turn jsonschema's validation errors into sentences for the model that sent the value.

Each sentence says where, what is expected and what was sent. The messages of jsonschema are used for rare keywords
only, because they repeat the whole value and speak of schemas. This module does not import jsonschema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from mcpgreen.protocol.schemas.quick import TYPE_NAMES
from mcpgreen.text import jsontext

ValidationError = Any  # of jsonschema, which this module does not import

MAX_SHOWN_CHARS = 80
MAX_SHOWN_NAMES = 20
MAX_FOREIGN_CHARS = 200

# Keywords with one number as their value: the words before the number and after it.
_LIMITS = {
    "minimum": ("must be at least", ""),
    "maximum": ("must be at most", ""),
    "exclusiveMinimum": ("must be more than", ""),
    "exclusiveMaximum": ("must be less than", ""),
    "multipleOf": ("must be a multiple of", ""),
    "minLength": ("must have at least", " characters"),
    "maxLength": ("must have at most", " characters"),
    "minItems": ("must have at least", " items"),
    "maxItems": ("must have at most", " items"),
    "minProperties": ("must have at least", " members"),
    "maxProperties": ("must have at most", " members"),
}
_COUNTED = ("Length", "Items", "Properties")
_VALUE = r"(?s), got .*|(?<=breaks the rule) .*"


def sentences(error: ValidationError, noun: str) -> list[str]:
    """Return one sentence for each thing to change. They call a member `noun` (argument, property)."""
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return [f"missing required {noun} {quoted(name)}{_inside(error)}" for name in missing]
    if error.validator == "additionalProperties":
        return _unexpected(error, noun)
    return [f"{_path(error) or 'the value'} {_expectation(error, noun)}"]


def without_values(found: Iterable[str]) -> str:
    """Return the sentences without the values at their ends, for the log."""
    return "; ".join(re.sub(_VALUE, "", each) for each in found)


def _expectation(error: ValidationError, noun: str) -> str:
    keyword, got = error.validator, f", got {described(error.instance)}"
    if keyword in _LIMITS:
        return _limit(error)
    if keyword in ("anyOf", "oneOf"):
        return _alternatives(error, noun)
    if keyword is None:  # the schema is `false`
        return "is not allowed here"
    if keyword in _EXPECTED:
        return f"{_EXPECTED[keyword](error)}{got}"
    return f"breaks the rule {quoted(keyword)}: {_clipped(error.message, MAX_FOREIGN_CHARS)}"


def _limit(error: ValidationError) -> str:
    keyword, given = error.validator, error.validator_value
    before, after = _LIMITS[keyword]
    if keyword in ("minimum", "maximum") and error.schema.get(f"exclusive{keyword.capitalize()}") is True:
        before = _LIMITS[f"exclusive{keyword.capitalize()}"][0]  # draft 4 has a flag for it
    counted = f"{shown(given)}{after[:-1] if given == 1 else after}"
    return f"{before} {counted}, got {len(error.instance) if keyword.endswith(_COUNTED) else shown(error.instance)}"


def _alternatives(error: ValidationError, noun: str) -> str:
    got = f", got {described(error.instance)}"
    if not error.context:
        return f"must match exactly one of the allowed forms, but matches several{got}"
    branches: dict[str | int, list[ValidationError]] = {}
    for each in error.context:
        branches.setdefault(each.schema_path[0], []).append(each)
    if all(_is_wrong_type(each) for each in error.context):
        return f"must be {' or '.join(dict.fromkeys(name for each in error.context for name in _types(each)))}{got}"
    # The branch with the right type and the fewest errors is probably the intended one.
    nearest = min(branches.values(), key=lambda errors: (any(map(_is_wrong_type, errors)), len(errors)))
    reasons = [sentence for each in nearest[:2] for sentence in sentences(each, noun)]
    return f"matches none of the {len(error.validator_value)} allowed forms; closest: {'; '.join(reasons[:2])}"


def _unexpected(error: ValidationError, noun: str) -> list[str]:
    known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", ())
    inside = _inside(error)
    names = f"known {noun}s: {listed(map(quoted, known))}" if known else f"no {noun}s are allowed here"
    return [
        f"unexpected {noun} {quoted(name)}{inside}{_suggestion(name, known)}; {names}"
        for name in error.instance
        if name not in known and not any(re.search(pattern, name) for pattern in patterns)
    ]


def _suggestion(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    nearest = get_close_matches(name[:MAX_SHOWN_CHARS], known, n=1)
    return f" (did you mean {quoted(nearest[0])}?)" if nearest else ""


# What the value must be, for other keywords.
_EXPECTED: dict[str, Callable[[ValidationError], str]] = {
    "type": lambda error: f"must be {' or '.join(_types(error))}",
    "enum": lambda error: f"must be one of {listed(map(shown, error.validator_value))}",
    "const": lambda error: f"must be {shown(error.validator_value)}",
    "uniqueItems": lambda error: "must not have the same item twice",
    "not": lambda error: "has a form that is not allowed",
    # The messages of our own versions of these keywords continue a sentence that begins with the path.
    **dict.fromkeys(("pattern", "properties", "propertyNames"), lambda error: str(error.message)),
}


def _path(error: ValidationError) -> str:
    text = ""
    for step in error.absolute_path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.replace("-", "_").isidentifier():
            text += f".{_clipped(step)}"
        else:
            text += f"[{shown(step)}]"
    return text.removeprefix(".")


def _inside(error: ValidationError) -> str:
    path = _path(error)
    return f" in {path}" if path else ""


def _is_wrong_type(error: ValidationError) -> bool:
    return error.validator == "type" and not error.path


def _types(error: ValidationError) -> list[str]:
    given = error.validator_value
    return [given] if isinstance(given, str) else given


def described(value: object) -> str:
    return f"{TYPE_NAMES.get(type(value), 'value')} {shown(value)}" if value is not None else "null"


def shown(value: object) -> str:
    """Return the value as short JSON. It is cut before it is encoded, because it may have megabytes."""
    return _clipped(jsontext.dumps(_sample(value, 3)).decode("ascii"))


def _sample(value: object, depth: int) -> object:
    if isinstance(value, str):
        return value[: MAX_SHOWN_CHARS + 1]
    if isinstance(value, (list, dict)) and not depth:
        return "…" if value else value
    # An item takes two characters or more, so an item that is left out here would be clipped anyway.
    if isinstance(value, list):
        return [_sample(each, depth - 1) for each in value[:MAX_SHOWN_CHARS]]
    if isinstance(value, dict):
        names = list(value)[:MAX_SHOWN_CHARS]
        return {name[: MAX_SHOWN_CHARS + 1]: _sample(value[name], depth - 1) for name in names}
    if isinstance(value, float) and value - value != 0:
        return repr(value)  # 1e999 is read as infinity, which has no JSON text
    return value


def quoted(name: str) -> str:
    return f"'{_clipped(name)}'"


def _clipped(text: str, limit: int = MAX_SHOWN_CHARS) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(words: Iterable[str]) -> str:
    all_words = list(words)
    more = f" and {len(all_words) - MAX_SHOWN_NAMES} more" if len(all_words) > MAX_SHOWN_NAMES else ""
    return ", ".join(all_words[:MAX_SHOWN_NAMES]) + more
