"""Check a value against a schema, and tell the sender what to change.

The only module that uses jsonschema, which is imported when a value is not obviously valid (`quick`). The draft is the
one that `$schema` names, else 2020-12. `format` is an annotation: it is never checked.

Rules: nothing is fetched, neither over the network nor from disk, so a `$ref` must stay inside its schema or lead to
one of the official meta-schemas. A schema that cannot be used raises `BadSchema`; a value never raises anything.

Bounded are the size and nesting of the schema, the length of text that a `pattern` is applied to, and the number of
problems that are looked for. Not bounded is the time that a pattern or many nested `anyOf` may take. So a server
checks only in a process that it can stop (`running.schema_checks`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from mcpgreen.protocol.schemas import quick
from mcpgreen.protocol.schemas.lenience import Lenience
from mcpgreen.protocol.schemas.problems import sentences
from mcpgreen.protocol.schemas.quick import schema_pattern
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_SCHEMA_BYTES = 1024 * 1024
MAX_SCHEMA_NODES = 100_000
MAX_SCHEMA_DEPTH = 64
MAX_PROBLEMS = 5
COUNTED_PROBLEMS = 100
MAX_VALUE_DEPTH = jsontext.MAX_DEPTH
MAX_FOREIGN_DEPTH = 32  # for a meta-schema, where following a reference does not check the stack
MAX_PATTERN_CHARS = 10_000
SPARE_FRAMES = 400  # enough for the deepest schema without references, and for comparing the deepest values

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_TOO_DEEP = "the value is nested too deeply to be checked"
_bounded: dict[Any, Any] = {}  # from a class of jsonschema to ours, which takes a millisecond to make


class BadSchema(ValueError):
    """The schema cannot be used. The message is a sentence for its author."""


class Checker:
    """A schema, ready for use."""

    def __init__(self, schema: Json, noun: str) -> None:
        self._schema = schema
        self._noun = noun
        self._is_simple = quick.is_simple(schema)
        self.meant = Lenience(schema).meant  # before `$schema` is removed
        # A simple schema is known to be well-formed. Any other is checked now, and not in the first call.
        self._validator = None if self._is_simple else _validator_for(schema)

    def problems(self, value: Any) -> list[str]:
        """Return what is wrong, in a few sentences that a model can act on; empty if the value is valid.

        Raises BadSchema for a pattern that Python cannot read in a draft that allows any pattern.
        """
        if self._is_simple and quick.matches(self._schema, value):
            return []
        if self._validator is None:
            self._validator = _validator_for(self._schema)
        found = _problems(*self._validator, value, self._noun)
        if len(found) <= MAX_PROBLEMS:
            return found
        more = "and many more" if len(found) >= COUNTED_PROBLEMS else f"and {len(found) - MAX_PROBLEMS} more"
        return [*found[:MAX_PROBLEMS], more]


def compile_schema(schema: object, *, noun: str = "argument") -> Checker:
    """Make a checker of a copy of the schema. Raises BadSchema. The sentences call a member of the value `noun`."""
    return Checker(clean_copy(schema), noun)


def clean_copy(schema: object) -> Json:
    """Return the schema as plain JSON. Raises BadSchema for what only YAML has: dates, cycles, a million aliases."""
    if not isinstance(schema, dict):
        raise BadSchema(f"A schema must be an object, not {type(schema).__name__}.")
    for number, (_, depth) in enumerate(jsontext.walked(schema), 1):
        if number > MAX_SCHEMA_NODES:
            raise BadSchema(f"The schema has more than {MAX_SCHEMA_NODES} parts.")
        if depth > MAX_SCHEMA_DEPTH + 1:
            raise BadSchema(f"The schema is nested deeper than {MAX_SCHEMA_DEPTH} levels.")
    try:
        encoded = jsontext.dumps(schema)
    except ValueError as error:
        raise BadSchema(f"The schema cannot be written as JSON: {error}.") from error
    if len(encoded) > MAX_SCHEMA_BYTES:
        raise BadSchema(f"The schema is larger than {MAX_SCHEMA_BYTES} bytes.")
    copy: Json = jsontext.loads(encoded)
    if quick.dialect_of(copy) is None:
        known = ", ".join(quick.DIALECTS)
        raise BadSchema(f"$schema is {copy['$schema']!r:.80}, a dialect that is not supported; supported: {known}.")
    return copy


def _validator_for(schema: Json) -> tuple[Any, int]:
    """Return the validator of jsonschema for a schema, and how deep a value may be nested for it."""
    import jsonschema  # type: ignore[import-untyped, unused-ignore]
    from referencing import Registry

    dialect = quick.dialect_of(schema) or quick.DEFAULT_DIALECT
    stock = getattr(jsonschema, quick.DIALECTS[dialect])
    try:
        stock.check_schema(schema)
    except jsonschema.SchemaError as error:
        first, *_ = sentences(error, "key")
        raise BadSchema(f"The schema is not valid: {first}.") from error
    except RecursionError:
        raise BadSchema("The schema is nested too deeply.") from None
    known = stock.VALIDATORS
    try:
        leads_out = _follow_references(schema, stock.META_SCHEMA["$schema"], known)
    except BadSchema:
        raise
    except ValueError as error:  # from urllib
        raise BadSchema(f"The schema has an $id or a $ref that is not a URI: {error}.") from error
    if stock not in _bounded:
        extend: Any = jsonschema.validators.extend
        _bounded[stock] = extend(stock, _our_keywords(known))
    # Without `retrieve`, nothing is ever fetched.
    return _bounded[stock](schema, registry=Registry()), MAX_FOREIGN_DEPTH if leads_out else MAX_VALUE_DEPTH


def _follow_references(schema: Json, dialect: str, known: Mapping[str, Any]) -> bool:
    """Require that all references lead somewhere, and not in circles. Return True if one leads to a meta-schema."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped, unused-ignore]
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    root = specification_with(dialect).create_resource(schema)
    cleaned: set[int] = set()
    _adapt_parts(root, dialect, cleaned)
    ours = {id(part) for part, _ in jsontext.walked(schema)}
    steps: dict[int, list[Any]] = {}  # from each part to the parts that check the same value
    pending = [(root, REGISTRY.resolver_with_root(root))]
    leads_out = False
    while pending:
        resource, resolver = pending.pop()
        part = resource.contents
        if not isinstance(part, dict) or id(part) in steps:
            continue
        steps[id(part)] = _in_place(part, known)
        for reference in (part[keyword] for keyword in REFERENCES if keyword in part and keyword in known):
            try:
                target = resolver.lookup(reference)
            except Unresolvable as error:
                where = f"{reference!r:.200}, which is not part of it; nothing is fetched from elsewhere"
                raise BadSchema(f"The schema refers to {where}.") from error
            if id(target.contents) in ours:
                found = specification_with(dialect).create_resource(target.contents)
                _adapt_parts(found, dialect, cleaned)
                steps[id(part)].append(target.contents)
                pending.append((found, target.resolver))
            else:
                leads_out = True
        pending.extend((each, resolver.in_subresource(each)) for each in resource.subresources())
    _require_an_end(steps)
    return leads_out


class _PatternProperties(dict[str, object]):
    """The patterns in Python's syntax. A reference still finds a member by the pattern of the schema."""

    def __missing__(self, pattern: str) -> object:
        if schema_pattern(pattern) not in self:
            raise KeyError(pattern)
        return self[schema_pattern(pattern)]


def _adapt_parts(resource: Any, dialect: str, cleaned: set[int]) -> None:
    """Remove `$schema`, and translate the patterns of `patternProperties` for Python.

    Where jsonschema finds `$schema` inside, it continues with its own class, which has no bounds. Three of its keywords
    use `patternProperties`, and each compiles the patterns by itself.
    """
    pending = [resource]
    while pending:
        current = pending.pop()
        if not isinstance(current.contents, dict) or id(current.contents) in cleaned:
            continue
        cleaned.add(id(current.contents))
        inner = {"$schema": current.contents.pop("$schema", dialect)}
        if quick.dialect_of(inner) != quick.dialect_of({"$schema": dialect}):
            raise BadSchema("A part of the schema names a different dialect; use one dialect for all of it.")
        if isinstance(patterns := current.contents.get("patternProperties"), dict):
            adapted = _PatternProperties((schema_pattern(each), part) for each, part in patterns.items())
            current.contents["patternProperties"] = adapted
        pending.extend(current.subresources())


def _in_place(part: Json, known: Mapping[str, Any]) -> list[Any]:
    """Return the parts of a part that check the same value and not something inside it."""
    if "$ref" in part and "dependentSchemas" not in known:
        return []  # up to draft 7, the keywords next to a reference have no effect
    found: list[Any] = []
    for keyword in ("allOf", "anyOf", "oneOf"):
        found.extend(part.get(keyword, ()))
    found.extend(part[keyword] for keyword in ("not", "if", "then", "else") if keyword in part)
    for keyword in ("dependentSchemas", "dependencies"):
        if keyword in known:
            found.extend(part.get(keyword, {}).values())
    return found


def _require_an_end(steps: dict[int, list[Any]]) -> None:
    """Refuse a schema with a circle, or a long chain, of parts that check the same value."""
    heights: dict[int, int] = {}

    def climb(part: int, path: tuple[int, ...]) -> int:
        if part in path:
            raise BadSchema("The schema refers to itself endlessly.")
        if part not in heights and len(path) <= MAX_SCHEMA_DEPTH:
            path = (*path, part)
            heights[part] = 1 + max((climb(id(each), path) for each in steps.get(part, ())), default=0)
        if len(path) + heights.get(part, 0) > MAX_SCHEMA_DEPTH:
            raise BadSchema(f"The schema has a chain of more than {MAX_SCHEMA_DEPTH} references.")
        return heights[part]

    for part in steps:
        climb(part, ())


def _our_keywords(stock: Mapping[str, Any]) -> dict[str, Any]:
    """Our versions of keywords: bounded, faster, or with messages for a model. Only for keywords that the draft has."""
    ours: dict[str, Any] = {
        "pattern": _pattern,
        "properties": _properties,
        "propertyNames": _property_names,
        "uniqueItems": _unique_items,
    }
    ours.update((keyword, _guarded(stock[keyword])) for keyword in REFERENCES if keyword in stock)
    return {keyword: function for keyword, function in ours.items() if keyword in stock}


def _guarded(follow: Any) -> Any:
    """Check the stack before a reference is followed, because only references can lead down without end.

    RecursionError would come too late: raised below jsonschema's maps, which are written in Rust, it becomes a panic,
    and no `except Exception` catches that.
    """

    def guarded(validator: object, reference: object, value: object, schema: object) -> Any:
        try:
            sys._getframe(sys.getrecursionlimit() - SPARE_FRAMES)
        except ValueError:  # the stack is not that deep
            return follow(validator, reference, value, schema)
        raise RecursionError

    return guarded


def _error(message: str, **details: Any) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message, **details)


def _pattern(validator: object, pattern: str, value: object, schema: object) -> Iterator[Any]:
    if not isinstance(value, str):
        return
    if len(value) > MAX_PATTERN_CHARS:
        yield _error(f"has more than {MAX_PATTERN_CHARS} characters, too many for its pattern {pattern}")
    elif not re.search(schema_pattern(pattern), value):
        yield _error(f"must match the pattern {pattern}")


def _properties(validator: Any, properties: dict[str, Any], value: Any, schema: object) -> Iterator[Any]:
    """Like the original, which loses the path if the schema of a member is `false`."""
    if not isinstance(value, dict):
        return
    for name, part in properties.items():
        if name in value and part is False:
            yield _error("is not allowed here", path=[name], instance=value[name])
        elif name in value:
            yield from validator.descend(value[name], part, path=name, schema_path=name)


def _property_names(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[Any]:
    """Like the original, but the error is about the object, because a name has no path."""
    if not isinstance(value, dict):
        return
    for name in value:
        if next(validator.descend(name, names), None) is not None:
            yield _error(f"has a member with a name that is not allowed: {name!r:.80}")


def _unique_items(validator: object, is_wanted: object, value: object, schema: object) -> Iterator[Any]:
    """Like the original, which compares every object with every other."""
    if not is_wanted or not isinstance(value, list):
        return
    seen: set[Any] = set()
    for item in map(_hashable, value):
        if item in seen:
            yield _error("has the same item twice")
            return
        seen.add(item)


def _hashable(value: Any) -> Any:
    """Return a key that is equal for equal JSON values only: 1 is 1.0, but not true."""
    if isinstance(value, bool) or value is None:
        return ("literal", value)
    if isinstance(value, list):
        return ("array", *map(_hashable, value))
    if isinstance(value, dict):
        return ("object", frozenset((name, _hashable(member)) for name, member in value.items()))
    return value


def _problems(validator: Any, max_depth: int, value: Any, noun: str) -> list[str]:
    """At most `COUNTED_PROBLEMS` different sentences, in the order of the schema."""
    if any(depth > max_depth and isinstance(part, (dict, list)) for part, depth in jsontext.walked(value)):
        return [_TOO_DEEP]
    found: dict[str, None] = {}
    try:
        for error in islice(validator.iter_errors(value), COUNTED_PROBLEMS):
            found.update(dict.fromkeys(sentences(error, noun)))
    except RecursionError:
        return [_TOO_DEEP]
    except OverflowError:
        return ["the value contains a number that is too large to be checked"]
    except re.error as error:
        raise BadSchema(f"The schema has a pattern that cannot be used: {error}.") from error
    return list(found)
