"""Is this value what the schema asks for, and if not, what shall the sender change?

The only door to jsonschema, which is imported when a value is not obviously valid (`quick_schema`) and not before. The
draft is what `$schema` names, else 2020-12. `format` is an annotation: it is never checked.

Rules: nothing is fetched, neither over the network nor from disk, so a `$ref` must stay inside its schema or lead to
one of the official meta-schemas. A schema that cannot be used raises `BadSchema`; a value never raises anything.

What is bounded: size and nesting of the schema, the length of text that meets a `pattern`, the number of problems
looked for. What is not: a pattern or a web of `anyOf` that takes exponential time. Schemas come from the author of the
project, who can keep the machine busy with less effort.
"""

from __future__ import annotations

from mcpgreen import jsontext
from mcpgreen.protocol import quick_schema
from mcpgreen.protocol.schema_problems import sentences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAX_SCHEMA_BYTES = 1024 * 1024
MAX_SCHEMA_NODES = 100_000
MAX_SCHEMA_DEPTH = 64
MAX_PATTERN_CHARS = 10_000
MAX_PROBLEMS = 5
COUNTED_PROBLEMS = 100
# A value that is flatter than this cannot exhaust the stack, unless the schema runs in circles.
FLAT_DEPTH = 16

_bounded: dict[Any, Any] = {}  # stock class of jsonschema -> ours; making one takes a millisecond


class BadSchema(ValueError):
    """The schema itself cannot be used. The message is a sentence for its author."""


class Checker:
    """One schema, ready for use. Keeps a copy: later changes to the original have no effect."""

    __slots__ = ("_is_simple", "_noun", "_schema", "_validator")

    def __init__(self, schema: dict[str, Any], noun: str) -> None:
        self._schema = schema
        self._noun = noun
        self._is_simple = quick_schema.is_simple(schema)
        # A simple schema is well-formed as far as we have seen; any other has to prove it now, not in the first call.
        self._validator = None if self._is_simple else _validator_for(schema)

    def problems(self, value: Any) -> list[str]:
        """What is wrong, in a few sentences that a model can act on; empty when nothing is.

        Raises BadSchema for what only shows in use: a schema that refers to itself without end.
        """
        if self._is_simple and quick_schema.matches(self._schema, value):
            return []
        if self._validator is None:
            self._validator = _validator_for(self._schema)
        return _abridged(_problems(self._validator, value, self._noun))


def compile_schema(schema: Any, *, noun: str = "argument") -> Checker:
    """Make a checker; raises BadSchema. `noun` is what a member of the value is called in the sentences."""
    return Checker(_clean_copy(schema), noun)


def _clean_copy(schema: Any) -> dict[str, Any]:
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
    if quick_schema.dialect_of(copy) is None:
        known = ", ".join(quick_schema.DIALECTS)
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


def _validator_for(schema: dict[str, Any]) -> Any:
    import jsonschema  # type: ignore[import-untyped, unused-ignore]
    from referencing import Registry

    dialect = quick_schema.dialect_of(schema)
    stock = getattr(jsonschema, quick_schema.DIALECTS[dialect or quick_schema.DEFAULT_DIALECT])
    try:
        stock.check_schema(schema)
    except jsonschema.SchemaError as error:
        first, *_ = sentences(error, "key")
        raise BadSchema(f"The schema is not valid: {first}.") from error
    except RecursionError:
        raise BadSchema("The schema is nested too deeply.") from None
    # Without `$schema`, or a reference back to the root would fall back to the stock class and its unbounded patterns.
    rootless = {keyword: given for keyword, given in schema.items() if keyword != "$schema"}
    _require_references(rootless, stock.META_SCHEMA["$schema"])
    if stock not in _bounded:
        ours = {"pattern": _pattern, "properties": _properties, "propertyNames": _property_names}
        _bounded[stock] = jsonschema.validators.extend(stock, ours)
    return _bounded[stock](rootless, registry=Registry())  # no `retrieve`: nothing is ever fetched


def _require_references(schema: dict[str, Any], dialect: str) -> None:
    """Follow every reference once, so that a dangling one is found when the schema is loaded."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped, unused-ignore]
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    root = specification_with(dialect).create_resource(schema)
    pending = [(root, REGISTRY.resolver_with_root(root))]
    reference: Any = ""
    try:
        while pending:
            resource, resolver = pending.pop()
            if isinstance(resource.contents, dict):
                for keyword in ("$ref", "$dynamicRef"):
                    reference = resource.contents.get(keyword)
                    if isinstance(reference, str):
                        resolver.lookup(reference)
            pending.extend((part, resolver.in_subresource(part)) for part in resource.subresources())
    except (Unresolvable, ValueError) as error:  # ValueError: not even a URI
        raise _dangling(reference) from error


def _dangling(reference: Any) -> BadSchema:
    return BadSchema(
        f"The schema refers to {reference!r:.200}, which is not part of it; nothing is fetched from elsewhere."
    )


def _problems(validator: Any, value: Any, noun: str) -> list[str]:
    """Up to `COUNTED_PROBLEMS` different sentences, in the order of the schema."""
    from itertools import islice
    from re import error as BadPattern

    from referencing.exceptions import Unresolvable

    found: dict[str, None] = {}
    try:
        for error in islice(validator.iter_errors(value), COUNTED_PROBLEMS):
            found.update(dict.fromkeys(sentences(error, noun)))
    except RecursionError:
        if jsontext.depth_of(value) <= FLAT_DEPTH:
            raise BadSchema("The schema refers to itself without end.") from None
        return ["the value is nested too deeply to be checked"]
    except OverflowError:
        return ["the value contains a number that is too large to be checked"]
    except BadPattern as error:
        raise BadSchema(f"The schema has a pattern that cannot be used: {error}.") from error
    except Unresolvable as error:
        raise _dangling(error.ref) from error
    return list(found)


def _abridged(found: list[str]) -> list[str]:
    if len(found) <= MAX_PROBLEMS:
        return found
    more = "and many more" if len(found) >= COUNTED_PROBLEMS else f"and {len(found) - MAX_PROBLEMS} more"
    return [*found[:MAX_PROBLEMS], more]


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    import re

    from jsonschema import ValidationError

    if not isinstance(value, str):
        return
    if len(value) > MAX_PATTERN_CHARS:
        yield ValidationError(f"has more than {MAX_PATTERN_CHARS} characters, too many for its pattern {pattern}")
    elif not re.search(pattern, value):
        yield ValidationError(f"must match the pattern {pattern}")


def _properties(validator: Any, properties: dict[str, Any], value: Any, schema: Any) -> Iterator[Any]:
    """As the stock keyword, which forgets the path where the schema of a member is `false`."""
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    for name, part in properties.items():
        if name in value and part is False:
            yield ValidationError("is not allowed here", path=[name], instance=value[name])
        elif name in value:
            yield from validator.descend(value[name], part, path=name, schema_path=name)


def _property_names(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[Any]:
    """As the stock keyword, but the error is about the object: a name has no path of its own."""
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    for name in value:
        if next(validator.descend(name, names), None) is not None:
            yield ValidationError(f"has a member whose name is not allowed: {name!r:.80}")
