"""The table of real commands: what a reader saw in their help texts, and how near a tool comes to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mcpgreen.cli.wrapping.choosing import is_risky
from mcpgreen.cli.wrapping.reading.help_text import read_help

HERE = Path(__file__).parent
TYPES = {"flag": "boolean", "count": "integer", "optional": "string", "choice": "string", "list": "array"}
OPERANDS = {"!": ("string", True), "?": ("string", False), "+": ("array", True), "*": ("array", False)}
WORD = re.compile(r"(.+?)(?:=\{(.+)\})?")
CALL = re.compile(r'^command\.(?:flag|count|option)\("([^"]+)", "([^"]+?)(?:=?\{\}(?:\.\.\.)?|=)?"', re.MULTILINE)
OPERAND = re.compile(r'^command\.operand\("([^"]+)"\)$', re.MULTILINE)


class Expected(NamedTuple):
    """One option: its names, the JSON types that are right, and all values if the help names them."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    values: frozenset[str] = frozenset()

    def is_met_by(self, schema: dict[str, Any] | None) -> bool:
        if schema is None or schema["type"] not in self.types:
            return False
        found = schema.get("enum") or schema.get("items", {}).get("enum") or ()
        return not self.values or set(map(str, found)) - {""} == self.values


class Command(NamedTuple):
    options: list[Expected]
    defaults: dict[str, str]
    operands: list[tuple[str, bool]]  # JSON type, and whether it is required


class Tool(NamedTuple):
    """What `wrap` made: a schema for each option by its name, and the operands in their order."""

    options: dict[str, dict[str, Any]]
    operands: list[tuple[str, bool]]


def expected_commands() -> dict[str, Command]:
    table: dict[str, Command] = {}
    for command, kind, word in _words((HERE / "real_commands.txt").read_text(encoding="utf-8")):
        row = table.setdefault(command, Command([], {}, []))
        if kind == "default":
            name, _, value = word.partition("=")
            row.defaults[name] = value
        elif kind == "operands":
            row.operands.append(OPERANDS[word[-1]])
        else:
            found = WORD.fullmatch(word)
            assert found is not None
            types = tuple(TYPES.get(each, each) for each in kind.split("/"))
            row.options.append(
                Expected(tuple(found[1].split(",")), types, frozenset((found[2] or "").split(",")) - {""})
            )
    return table


def _words(text: str) -> Iterator[tuple[str, str, str]]:
    command = kind = ""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            command = line
            continue
        if not line.startswith("    "):
            kind, _, line = line.strip().partition(":")
        for word in line.split():
            yield command, kind, word


def tool_of(script: Path) -> Tool:
    schema = json.loads(script.with_suffix(".meta.json").read_text(encoding="utf-8"))["inputSchema"]
    properties, text = schema["properties"], script.read_text(encoding="utf-8")
    operands = [(properties[name]["type"], name in schema.get("required", ())) for name in OPERAND.findall(text)]
    return Tool({option: properties[name] for name, option in CALL.findall(text)}, operands)


def documented(command: Command, text: str, words: list[str]) -> Command:
    """Without the options that this version of the command does not have, and those that `wrap` leaves out."""
    risky = {name for option in read_help(text, words).options if is_risky(option) for name in option.names}
    options = [each for each in command.options if any(_has(text, name) and name not in risky for name in each.names)]
    names = {name for each in options for name in each.names}
    return command._replace(
        options=options, defaults={name: value for name, value in command.defaults.items() if name in names}
    )


def _has(text: str, option: str) -> bool:
    return re.search(rf"(?<![\w-])--?(?:\[no-?\])?{re.escape(option.lstrip('-'))}(?![\w-])", text) is not None


def is_default(schema: dict[str, Any] | None, value: str) -> bool:
    """Whether a default is this, which may be written otherwise: 20 and 20.0 are the same."""
    found = (schema or {}).get("default")
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return found is not None and json.dumps(found).strip('"') == value
    return float(found) == float(value)
