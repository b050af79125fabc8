"""What is wrong with the schemas of a tool, beyond what keeps it from being listed. Part of `validate`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcpgreen.catalog.descriptions.blame import keys_in
from mcpgreen.catalog.tools import Tool
from mcpgreen.cli.checking.findings import Problem
from mcpgreen.cli.checking.reading.places import Keys
from mcpgreen.cli.checking.reading.sources import Source
from mcpgreen.cli.output import did_you_mean
from mcpgreen.protocol.schemas.lint import NOT_SCHEMAS
from mcpgreen.protocol.schemas.slow_patterns import slow_patterns_in
from mcpgreen.protocol.schemas.validator import BadSchema, compile_schema

SCHEMAS = ("inputSchema", "outputSchema")
MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
MOST_PARTS = 5000


def schema_problems(tool: Tool, source: Source) -> Iterator[Problem]:
    for which in SCHEMAS:
        schema = tool.definition.get(which)
        if schema is None:
            continue
        try:
            compile_schema(schema)
        except BadSchema as error:
            keys = keys_in(str(error).partition(": ")[2])
            fix = "correct the schema: calls fail as long as it cannot be used"
            if keys[-1:] == ("required",):
                fix = "make required a list of names, beside properties; " + fix
            yield source.error("schema-invalid", f"{which} cannot be used: {error}", fix, which, *keys)
            continue
        for pattern in slow_patterns_in(schema):
            trouble = "has a pattern that may take for ever, with a repeat in a repeat"
            fix = "write the pattern without a repeat inside a repeat, or use maxLength and enum"
            yield source.warning("slow-pattern", f"{which} {trouble}: {pattern:.80}", fix, which)
        yield from _unknown_required(which, schema, source)
        yield from _unfit_defaults(which, schema, source)


def _unknown_required(which: str, schema: Any, source: Source) -> Iterator[Problem]:
    for keys, part in parts_of(schema):
        properties, required = part.get("properties"), part.get("required")
        if not isinstance(required, list) or "patternProperties" in part:
            continue
        if properties is None and (keys or part.keys() & {"$ref", "allOf", "anyOf", "oneOf"}):
            continue  # what is required may be said elsewhere
        known = properties if isinstance(properties, dict) else {}
        for index, name in enumerate(required):
            if isinstance(name, str) and name not in known and not _is_elsewhere(part, name):
                place = ".".join(map(str, (which, *keys, "required")))
                sentence = f"{place} has {name}, which is no property{did_you_mean(name, known)}"
                fix = f"add {name} to properties, or remove it from required"
                yield source.warning("required", sentence, fix, which, *keys, "required", index)


def _is_elsewhere(part: dict[str, Any], name: str) -> bool:
    """Whether another member of the same schema speaks of this property."""
    branches = [each for key in ("allOf", "anyOf", "oneOf") for each in part.get(key) or () if isinstance(each, dict)]
    return "$ref" in part or any(name in (each.get("properties") or {}) or "$ref" in each for each in branches)


def _unfit_defaults(which: str, schema: Any, source: Source) -> Iterator[Problem]:
    for keys, part in parts_of(schema):
        if "default" not in part or "$ref" in part or not isinstance(part.get("type"), str):
            continue
        bare = {key: part[key] for key in ("type", "enum") if key in part}
        if compile_schema(bare).problems(part["default"]):
            place = ".".join(map(str, (which, *keys)))
            sentence = f"{place} has a default that is not what it asks for itself"
            fix = "correct default or type: a model will take the default for a good value"
            yield source.warning("default", sentence, fix, which, *keys, "default")


def parts_of(schema: Any) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """Every schema in a schema, with the way to it."""
    pending: list[tuple[Keys, Any, bool]] = [((), schema, False)]
    seen = 0
    while pending and seen < MOST_PARTS:
        keys, current, is_map = pending.pop()
        seen += 1
        if isinstance(current, list):
            pending.extend(((*keys, index), each, False) for index, each in enumerate(current))
        elif isinstance(current, dict):
            if not is_map:
                yield keys, current
            for key in reversed(current):
                if is_map or key not in NOT_SCHEMAS:
                    pending.append(((*keys, key), current[key], not is_map and key in MAPS))
