"""Is this value what the schema asks for, and if not, what shall the sender change?

The only door to jsonschema, which is imported when a value is not obviously valid (`quick`) and not before. The
draft is what `$schema` names, else 2020-12. `format` is an annotation: it is never checked.

Rules: nothing is fetched, neither over the network nor from disk, so a `$ref` must stay inside its schema or lead to
one of the official meta-schemas. A schema that cannot be used raises `BadSchema`; a value never raises anything.

What is bounded: size and nesting of the schema, the length of text that meets a `pattern`, the number of problems
looked for. What is not: a pattern or a web of `anyOf` that takes exponential time. So a server never asks here but in a
process that can be stopped (`running.validation.schema_checks`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from mcpgreen.protocol.schemas import quick
from mcpgreen.protocol.schemas.keywords import REFERENCES, our_keywords
from mcpgreen.protocol.schemas.lenience import Lenience
from mcpgreen.protocol.schemas.problems import sentences
from mcpgreen.text import json_bounds, jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_SCHEMA_BYTES = 1024 * 1024
MAX_SCHEMA_NODES = 100_000
MAX_SCHEMA_DEPTH = 64
MAX_PROBLEMS = 5
COUNTED_PROBLEMS = 100
MAX_VALUE_DEPTH = json_bounds.MAX_DEPTH
MAX_FOREIGN_DEPTH = 32  # against a meta-schema, where the stack is not watched

_TOO_DEEP = "the value is nested too deeply to be checked"
_bounded: dict[Any, Any] = {}  # stock class of jsonschema -> ours; making one takes a millisecond


class BadSchema(ValueError):
    """The schema itself cannot be used. The message is a sentence for its author."""


class Checker:
    """One schema, ready for use. Keeps a copy: later changes to the original have no effect."""

    __slots__ = ("_is_simple", "_lenience", "_noun", "_schema", "_validator")

    def __init__(self, schema: dict[str, Any], noun: str) -> None:
        self._schema = schema
        self._noun = noun
        self._is_simple = quick.is_simple(schema)
        self._lenience = Lenience(schema)  # before `$schema` is taken out
        # A simple schema is well-formed as far as we have seen; any other has to prove it now, not in the first call.
        self._validator = None if self._is_simple else _validator_for(schema)

    def problems(self, value: Any) -> list[str]:
        """What is wrong, in a few sentences that a model can act on; empty when nothing is.

        Raises BadSchema for what only shows in use: a pattern that Python cannot read, where the draft allows any.
        """
        if self._is_simple and quick.matches(self._schema, value):
            return []
        if self._validator is None:
            self._validator = _validator_for(self._schema)
        return _abridged(_problems(*self._validator, value, self._noun))

    def meant(self, value: Any) -> Any:
        """The value as it was probably meant; the value itself if there is nothing to change."""
        return self._lenience.meant(value)


def compile_schema(schema: Any, *, noun: str = "argument") -> Checker:
    """Make a checker; raises BadSchema. `noun` is what a member of the value is called in the sentences."""
    return Checker(clean_copy(schema), noun)


def clean_copy(schema: Any) -> dict[str, Any]:
    """The schema as plain JSON. What YAML can express beyond that (dates, cycles, aliases by the million) ends here."""
    if not isinstance(schema, dict):
        raise BadSchema(f"A schema must be an object, not {type(schema).__name__}.")
    _require_bounds(schema)
    try:
        encoded = jsontext.dumps(schema)
    except ValueError as error:
        raise BadSchema(f"The schema cannot be written as JSON: {error}.") from error
    if len(encoded) > MAX_SCHEMA_BYTES:
        raise BadSchema(f"The schema is larger than {MAX_SCHEMA_BYTES} bytes.")
    copy: dict[str, Any] = jsontext.loads(encoded)
    if quick.dialect_of(copy) is None:
        known = ", ".join(quick.DIALECTS)
        raise BadSchema(f"$schema is {copy['$schema']!r:.80}, a dialect that is not known here; known are {known}.")
    return copy


def _require_bounds(schema: dict[str, Any]) -> None:
    nodes = 0
    pending: list[tuple[Any, int]] = [(schema, 1)]
    while pending:
        current, depth = pending.pop()
        nodes += 1
        if nodes > MAX_SCHEMA_NODES:
            raise BadSchema(f"The schema has more than {MAX_SCHEMA_NODES} parts.")
        children = current.values() if isinstance(current, dict) else current if isinstance(current, list) else ()
        if children and depth > MAX_SCHEMA_DEPTH:
            raise BadSchema(f"The schema is nested deeper than {MAX_SCHEMA_DEPTH} levels.")
        pending.extend((child, depth + 1) for child in children)


def _validator_for(schema: dict[str, Any]) -> tuple[Any, int]:
    """What jsonschema makes of a schema, and how deep a value may be for it."""
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
    except ValueError as error:  # from the standard library, about an $id or a reference
        raise BadSchema(f"The schema has an $id or a $ref that is not a URI: {error}.") from error
    if stock not in _bounded:
        extend: Any = jsonschema.validators.extend
        _bounded[stock] = extend(stock, our_keywords(known))
    # No `retrieve`: nothing is ever fetched.
    return _bounded[stock](schema, registry=Registry()), MAX_FOREIGN_DEPTH if leads_out else MAX_VALUE_DEPTH


def _follow_references(schema: dict[str, Any], dialect: str, known: Mapping[str, Any]) -> bool:
    """Require that all references lead somewhere, and not in circles. True if one leads out, to a meta-schema."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped, unused-ignore]
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    root = specification_with(dialect).create_resource(schema)
    cleaned: set[int] = set()
    _drop_dialects(root, dialect, cleaned)
    ours = {id(part) for part in _parts(schema)}
    steps: dict[int, list[Any]] = {}  # from each part to those that look at the same value
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
                _drop_dialects(found, dialect, cleaned)
                steps[id(part)].append(target.contents)
                pending.append((found, target.resolver))
            else:
                leads_out = True
        pending.extend((each, resolver.in_subresource(each)) for each in resource.subresources())
    _require_an_end(steps)
    return leads_out


def _drop_dialects(resource: Any, dialect: str, cleaned: set[int]) -> None:
    """Remove `$schema`, which has done its duty.

    Where jsonschema meets it again, it goes on with its own class and leaves our bounds behind.
    """
    pending = [resource]
    while pending:
        current = pending.pop()
        if not isinstance(current.contents, dict) or id(current.contents) in cleaned:
            continue
        cleaned.add(id(current.contents))
        inner = {"$schema": current.contents.pop("$schema", dialect)}
        if quick.dialect_of(inner) != quick.dialect_of({"$schema": dialect}):
            raise BadSchema("A part of the schema names another dialect than the whole; write all of it in one.")
        pending.extend(current.subresources())


def _parts(schema: dict[str, Any]) -> Iterator[Any]:
    pending: list[Any] = [schema]
    while pending:
        yield (current := pending.pop())
        pending.extend(current.values() if isinstance(current, dict) else current if isinstance(current, list) else ())


def _in_place(part: dict[str, Any], known: Mapping[str, Any]) -> list[Any]:
    """The parts of a part that look at the same value and not at something inside it."""
    if "$ref" in part and "dependentSchemas" not in known:
        return []  # up to draft 7 a reference hides what stands beside it
    found: list[Any] = []
    for keyword in ("allOf", "anyOf", "oneOf"):
        found.extend(part.get(keyword, ()))
    found.extend(part[keyword] for keyword in ("not", "if", "then", "else") if keyword in part)
    for keyword in ("dependentSchemas", "dependencies"):
        if keyword in known:
            found.extend(part.get(keyword, {}).values())
    return found


def _require_an_end(steps: dict[int, list[Any]]) -> None:
    """Refuse a schema that can go round, or on for long, without getting any deeper into the value."""
    heights: dict[int, int] = {}

    def climb(part: int, path: tuple[int, ...]) -> int:
        if part in path:
            raise BadSchema("The schema refers to itself without end.")
        if part not in heights and len(path) <= MAX_SCHEMA_DEPTH:
            path = (*path, part)
            heights[part] = 1 + max((climb(id(each), path) for each in steps.get(part, ())), default=0)
        if len(path) + heights.get(part, 0) > MAX_SCHEMA_DEPTH:
            raise BadSchema(f"The schema has a chain of more than {MAX_SCHEMA_DEPTH} references.")
        return heights[part]

    for part in steps:
        climb(part, ())


def _problems(validator: Any, max_depth: int, value: Any, noun: str) -> list[str]:
    """Up to `COUNTED_PROBLEMS` different sentences, in the order of the schema."""
    if jsontext.depth_of(value) > max_depth:
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


def _abridged(found: list[str]) -> list[str]:
    if len(found) <= MAX_PROBLEMS:
        return found
    more = "and many more" if len(found) >= COUNTED_PROBLEMS else f"and {len(found) - MAX_PROBLEMS} more"
    return [*found[:MAX_PROBLEMS], more]
