"""What of a tool's schemas is refused by clients and providers, or tells a model too little. Part of `lint`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcpgreen.catalog.tools import Tool
from mcpgreen.cli.checking.findings import Problem
from mcpgreen.cli.checking.reading.places import Keys
from mcpgreen.cli.checking.reading.sources import Source
from mcpgreen.cli.checking.tool_checks import parts_of

TOP_LEVEL = ("oneOf", "anyOf", "allOf", "not", "enum", "if")
PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MAX_DEPTH = 5  # objects in objects, where providers check arguments strictly
MAX_PROPERTIES = 100
MAX_CHOICES = 500
COMBINING = ("$ref", "oneOf", "anyOf", "allOf", "not", "if", "const", "enum")


def problems(tool: Tool, source: Source) -> Iterator[Problem]:
    yield from _input(tool.definition["inputSchema"], source)
    output = tool.definition.get("outputSchema")
    if output is not None and output.get("type") != "object":
        sentence = "its outputSchema does not describe an object, so most clients never see it"
        fix = "put the value into an object, with a property of its own"
        yield source.warning("output-root", sentence, fix, "outputSchema", "type")


def _input(schema: dict[str, Any], source: Source) -> Iterator[Problem]:
    for key in TOP_LEVEL:
        if key in schema:
            sentence = f"inputSchema has {key} at its top, and providers refuse all tools for it"
            fix = "say it in the description, or move it into a property"
            yield source.warning("top-level", sentence, fix, "inputSchema", key)
    for keys, part in parts_of(schema):
        yield from _part(keys, part, source)
        properties = part.get("properties")
        for name, value in properties.items() if isinstance(properties, dict) else ():
            yield from _property((*keys, "properties", name), value, source)
    count = len(schema.get("properties") or {})
    if count > MAX_PROPERTIES:
        sentence = f"it has {count} arguments; providers accept {MAX_PROPERTIES}, and a model uses fewer"
        yield source.warning("arguments-many", sentence, "make several tools of it", "inputSchema", "properties")


def _part(keys: Keys, part: dict[str, Any], source: Source) -> Iterator[Problem]:
    place, way = _shown(keys), ("inputSchema", *keys)
    for key in ("$ref", "$dynamicRef"):
        if key in part:
            sentence = f"{place} has a {key}, which many clients do not follow"
            yield source.warning("ref", sentence, "put what it refers to in its place", *way, key)
    kinds = part.get("type")
    if kinds == "array" and "items" not in part and "prefixItems" not in part:
        sentence = f"{place} is an array without items, and providers refuse all tools for it"
        yield source.warning("array-items", sentence, "say with items what it holds", *way, "type")
    if isinstance(kinds, list):
        sentence = f"{place} has several types, which Gemini refuses"
        yield source.warning("types", sentence, "choose one, or use anyOf with a schema for each", *way, "type")
    choices = part.get("enum")
    if isinstance(choices, list):
        if not choices:
            sentence = f"{place} has an empty enum, which nothing satisfies"
            yield source.warning("enum", sentence, "list the choices, or remove enum", *way, "enum")
        elif not all(isinstance(choice, str) for choice in choices) and keys:
            sentence = f"{place} has choices that are no strings, which Gemini refuses"
            yield source.warning("enum", sentence, "use strings, or minimum and maximum", *way, "enum")
        elif len(choices) > MAX_CHOICES:
            sentence = f"{place} has {len(choices)} choices, more than providers accept"
            yield source.warning("enum", sentence, f"list {MAX_CHOICES} at most, or describe them", *way, "enum")
    if sum(key == "properties" for key in keys) > MAX_DEPTH:
        sentence = f"{place} is nested deeper than {MAX_DEPTH} objects, more than providers accept"
        yield source.warning("depth", sentence, "make it flatter", *way)


def _property(keys: Keys, value: Any, source: Source) -> Iterator[Problem]:
    place, way = _shown(keys), ("inputSchema", *keys)
    if not PROPERTY_NAME.fullmatch(str(keys[-1])):
        sentence = f"{place}: providers refuse names of arguments other than up to 64 of A-Z a-z 0-9 _ . -"
        yield source.warning("argument-name", sentence, "rename the argument", *way)
    if isinstance(value, bool):
        sentence = f"{place} is {str(value).lower()} and no schema, and some clients refuse all tools for it"
        yield source.warning("boolean-schema", sentence, "write an object with a type", *way)
        return
    if not isinstance(value, dict):
        return
    if not value.get("description") and "$ref" not in value and len(keys) == 2:
        sentence = f"{place} has no description, so a model can only guess what to give"
        yield source.warning("argument-description", sentence, "add a description", *way)
    if "type" not in value and not value.keys() & set(COMBINING):
        sentence = f"{place} has no type, so a model may give anything, and some providers refuse it"
        yield source.warning("argument-type", sentence, "add a type", *way)


def _shown(keys: Keys) -> str:
    """`properties.mail.items` as people say it: mail, items."""
    words = [str(key) for key in keys if key != "properties"]
    return ".".join(words) if words else "inputSchema"
