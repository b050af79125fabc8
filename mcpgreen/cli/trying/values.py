"""Values as people type them: `key=value` by the schema, `key:=JSON`, and `@FILE` for a value from a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpgreen.errors import UsageError
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_FILE_BYTES = 10 << 20
TYPES = {"integer": (int,), "number": (int, float), "array": (list,), "object": (dict,)}
TRUTHS = {"true": True, "yes": True, "y": True, "on": True, "1": True}
TRUTHS |= {"false": False, "no": False, "n": False, "off": False, "0": False}


def values_of(words: Sequence[str], properties: Json) -> Json:
    """The values that the words give. For an array, each word adds an element. Raises UsageError."""
    values: Json = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key or key == ":":
            raise UsageError(f"{word}: write key=value, key:=JSON, or key=@FILE.")
        if key.endswith(":"):
            key = key[:-1]
            try:
                values[key] = jsontext.loads(content_of(text))
            except ValueError as error:
                raise UsageError(f"{key}:= is not JSON: {error}.") from error
            continue
        about = _schema_of(properties.get(key))
        value = typed(key, content_of(text), about)
        if "array" in _types_of(about) and not isinstance(value, list):
            values.setdefault(key, []).append(value)
        else:
            values[key] = value
    return values


def typed(key: str, text: str, about: Json) -> Any:
    """The text as a value of the first type in its schema that fits; for an array, as one element."""
    kinds = _types_of(about)
    if "array" in kinds and not text.lstrip().startswith("["):
        return typed(key, text, _schema_of(about.get("items")))
    for kind in kinds:
        if kind == "string":
            return text
        try:
            return _as(kind, text)
        except ValueError:
            continue
    if kinds:
        raise UsageError(f"{key}={text}: this is no {' or '.join(kinds)}.")
    return text


def _as(kind: str, text: str) -> Any:
    if kind == "boolean" and text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    if kind == "null" and text in ("", "null"):
        return None
    value = jsontext.loads(text) if kind in TYPES else None
    if value is None or type(value) not in TYPES[kind]:
        raise ValueError(text)
    return value


def _types_of(about: Json) -> list[str]:
    """The types that a schema and its alternatives name. "string" comes last, because every text fits it."""
    named = about.get("type", [])
    kinds = [named] if isinstance(named, str) else [kind for kind in named if isinstance(kind, str)]
    for key in ("anyOf", "oneOf"):
        for option in about.get(key) or []:
            kinds += _types_of(_schema_of(option))
    if not kinds and isinstance(about.get("properties"), dict):
        kinds = ["object"]
    return sorted(dict.fromkeys(kinds), key=lambda kind: kind == "string")


def _schema_of(about: object) -> Json:
    return about if isinstance(about, dict) else {}


def content_of(text: str) -> str:
    """The text itself, or the content of the file that @FILE names."""
    if not text.startswith("@"):
        return text
    try:
        with open(text[1:], "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise UsageError(f"{text}: the file has more than {MAX_FILE_BYTES} bytes.")
        return content.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{text}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{text}: the file is not UTF-8.") from error
