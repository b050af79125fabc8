"""Write a tool: a script that people can read and change, and its description beside it.

Rule: nothing from a help text or a file becomes code. Names are string literals, comments are one line of printable
characters. No file is ever overwritten.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import NamedTuple

from mcpgreen.cli.making.drafts import Draft
from mcpgreen.text.json_types import Json

SUFFIX = ".py"
DESCRIPTION_SUFFIX = ".meta.json"
COMMENT_CHARS = 110

HEAD = """#!/usr/bin/env python3
# {source}
# Written by mcpgreen wrap, and yours from now on. The types of the arguments are in {description}.
# A comment that begins with "Guess" says what could not be read, and may have to be changed in both files.
"""
IMPORTS = """import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

"""

MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 300


class Argument(NamedTuple):
    """An argument of the tool, and how the script passes it on."""

    name: str
    schema: Json
    method: str  # of CommandLine
    words: tuple[str, ...] = ()
    keywords: tuple[tuple[str, str], ...] = ()
    is_required: bool = False
    guesses: tuple[str, ...] = ()


class Blueprint(NamedTuple):
    name: str
    source: str  # what it was made from, for people
    description: str
    command: tuple[str, ...]
    arguments: tuple[Argument, ...] = ()
    notes: tuple[str, ...] = ()  # comments at the top
    separator_before: str | None = None  # the argument behind `--`
    separator_guess: str = ""

    @property
    def guesses(self) -> int:
        return sum(len(argument.guesses) for argument in self.arguments) + bool(self.separator_guess)


def tool_name(words: str) -> str:
    """A name that every client accepts; empty if no character of the words can be used."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", words).strip("-")[:MAX_NAME_CHARS].rstrip("-")


def property_name(words: str, taken: Container[str]) -> str:
    """A name for an argument that is not taken."""
    return unique_name(re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_") or "option", taken, joint="_")


def unique_name(name: str, taken: Container[str], *, joint: str) -> str:
    """The name, with a number if it is taken; short enough for every client."""
    unique, number = name[:MAX_NAME_CHARS], 1
    while unique in taken:
        number += 1
        unique = f"{name[: MAX_NAME_CHARS - 5]}{joint}{number}"
    return unique


def list_schema(items: Json, *, is_required: bool) -> Json:
    """The schema of a list, with at least one item if it is required."""
    return {"type": "array", "items": items, **({"minItems": 1} if is_required else {})}


def plain(text: str, limit: int = MAX_DESCRIPTION_CHARS) -> str:
    """One line of printable characters, cut at a word."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if len(line) <= limit:
        return line
    return line[: limit - 3].rpartition(" ")[0].rstrip(" ,;:") + "..."


def script_of(blueprint: Blueprint) -> str:
    source = _comment(f"Made from {blueprint.source}")
    head = HEAD.format(source=source, description=blueprint.name + DESCRIPTION_SUFFIX)
    notes = "".join(f"# {_comment(note)}\n" for note in blueprint.notes)
    words = ", ".join(map(literal, blueprint.command))
    lines = [f"command = mcp_tool.CommandLine({words})", *_calls(blueprint), "command.run()", ""]
    return head + notes + IMPORTS + "\n".join(lines)


def _calls(blueprint: Blueprint) -> Iterator[str]:
    for argument in blueprint.arguments:
        if argument.name == blueprint.separator_before:
            if blueprint.separator_guess:
                yield f"# Guess: {_comment(blueprint.separator_guess)}."
            yield "command.end_of_options()"
        for guess in argument.guesses:
            yield f"# Guess: {_comment(guess)}."
        yield _call(argument)


def _call(argument: Argument) -> str:
    given = [literal(argument.name), *map(literal, argument.words)]
    given += [f"{keyword}={literal(word)}" for keyword, word in argument.keywords]
    return f"command.{argument.method}({', '.join(given)})"


def description_of(blueprint: Blueprint) -> str:
    required = [argument.name for argument in blueprint.arguments if argument.is_required]
    schema: Json = {
        "type": "object",
        "properties": {argument.name: argument.schema for argument in blueprint.arguments},
    }
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    fields = {"name": blueprint.name, "description": blueprint.description, "inputSchema": schema}
    text = json.dumps(fields, indent=2, ensure_ascii=False)
    # Characters that are not text, such as lone surrogates, are escaped.
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def literal(text: str) -> str:
    """A string of Python, in double quotes where that is as plain."""
    is_plain = text.isascii() and text.isprintable() and not set(text) & {'"', "\\"}
    return f'"{text}"' if is_plain else ascii(text)


def _comment(text: str) -> str:
    return plain(text, COMMENT_CHARS).rstrip(".") if text[:1] != " " else "   " + plain(text, COMMENT_CHARS)


def existing_tool(directory: str, name: str) -> str | None:
    """The path of an existing file that keeps a tool of this name from being written, or None."""
    with suppress(OSError):
        for entry in sorted(os.listdir(directory)):
            if entry == name or (entry.startswith(f"{name}.") and entry.partition(".")[0] == name):
                return os.path.join(directory, entry)
    return None


def write_tool(blueprint: Blueprint, directory: str) -> tuple[str, str]:
    """Write script and description, or neither; where they are. Raises ProjectError."""
    script, description = (os.path.join(directory, blueprint.name + suffix) for suffix in (SUFFIX, DESCRIPTION_SUFFIX))
    draft = Draft()
    # The description first: without it, the script would be another tool for a moment.
    draft.add(description, description_of(blueprint))
    draft.add(script, script_of(blueprint))
    draft.write()
    return script, description
