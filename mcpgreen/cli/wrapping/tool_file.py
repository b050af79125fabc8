"""Write a tool: a script that people can read and change, and its description beside it.

Rule: nothing that was read from a help text or a file becomes code. Names are string literals, comments are one line
of printable characters. And nothing is ever written over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mcpgreen.cli.making.drafts import Draft
from mcpgreen.cli.wrapping.blueprint import Argument, Blueprint, plain

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
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {argument.name: argument.schema for argument in blueprint.arguments},
    }
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    fields = {"name": blueprint.name, "description": blueprint.description, "inputSchema": schema}
    text = json.dumps(fields, indent=2, ensure_ascii=False)
    # What is no text, such as half of a pair of surrogates, is told by its number.
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def literal(text: str) -> str:
    """A string of Python, in double quotes where that is as plain."""
    is_plain = text.isascii() and text.isprintable() and not set(text) & {'"', "\\"}
    return f'"{text}"' if is_plain else ascii(text)


def _comment(text: str) -> str:
    return plain(text, COMMENT_CHARS).rstrip(".") if text[:1] != " " else "   " + plain(text, COMMENT_CHARS)


def existing(directory: str, name: str) -> str | None:
    """What stands in the way of a tool of this name in this directory."""
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
    draft.add(script, script_of(blueprint), is_executable=True)
    draft.write()
    return script, description
