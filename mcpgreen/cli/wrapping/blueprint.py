"""What a tool will be: its name, its arguments with their schemas, and the words that they become. Values only."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 300


class Argument(NamedTuple):
    """One argument of the tool, and the line of the script that passes it on."""

    name: str
    schema: dict[str, Any]
    method: str  # of CommandLine
    words: tuple[str, ...] = ()
    keywords: tuple[tuple[str, str], ...] = ()
    is_required: bool = False
    guesses: tuple[str, ...] = ()


class Blueprint(NamedTuple):
    name: str
    source: str  # what it was read from, for people
    description: str
    command: tuple[str, ...]
    arguments: tuple[Argument, ...] = ()
    notes: tuple[str, ...] = ()  # about the whole
    separator_before: str | None = None  # `--` stands before this argument
    separator_guess: str = ""

    @property
    def guesses(self) -> int:
        return sum(len(argument.guesses) for argument in self.arguments) + bool(self.separator_guess)


def tool_name(words: str) -> str:
    """A name that every client accepts; empty if nothing is left of the words."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", words).strip("-")[:MAX_NAME_CHARS].rstrip("-")


def property_name(words: str, taken: Container[str]) -> str:
    """A name for an argument that no other has."""
    return unique_name(re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_") or "option", taken, joint="_")


def unique_name(name: str, taken: Container[str], *, joint: str) -> str:
    """This name, with a number behind it if others have it; short enough for every client."""
    unique, number = name[:MAX_NAME_CHARS], 1
    while unique in taken:
        number += 1
        unique = f"{name[: MAX_NAME_CHARS - 5]}{joint}{number}"
    return unique


def list_schema(items: Mapping[str, Any], *, is_required: bool) -> dict[str, Any]:
    """Of a list that has at least one item if it is required."""
    return {"type": "array", "items": items, **({"minItems": 1} if is_required else {})}


def plain(text: str, limit: int = MAX_DESCRIPTION_CHARS) -> str:
    """One line of what can be printed, cut at a word."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if len(line) <= limit:
        return line
    return line[: limit - 3].rpartition(" ")[0].rstrip(" ,;:") + "..."
