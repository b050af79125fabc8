"""What a help text documents: options, operands, and a summary. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from mcpgreen.cli.wrapping.reading.value_types import Legend


class Option(NamedTuple):
    """One option under all its names. Without `values` it is a flag."""

    names: tuple[str, ...]
    values: tuple[str, ...] = ()  # the names of its values in the help, without brackets
    joint: str = ""  # between the name and the value: "=", " ", or nothing
    is_value_optional: bool = False
    is_greedy: bool = False  # takes all values that follow it, like nargs="+" of argparse
    is_repeated: bool = False
    is_required: bool = False
    negative: str = ""  # the option that turns the flag off
    text: str = ""

    @property
    def name(self) -> str:
        """The name to use: the first long one, else the first."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])


class Operand(NamedTuple):
    name: str
    is_required: bool = True
    is_repeated: bool = False
    choices: tuple[str, ...] = ()
    is_after_separator: bool = False  # the usage has `--` before it
    text: str = ""


class Documented(NamedTuple):
    """A help text. `omitted` counts the options beyond the limit."""

    style: str
    are_types: bool = False  # the word after an option is its type
    summary: str = ""
    options: tuple[Option, ...] = ()
    operands: tuple[Operand, ...] = ()
    forms: tuple[str, ...] = ()  # the usage lines, where they disagree about the operands
    subcommands: tuple[str, ...] = ()
    takes_separator: bool = False  # `--` ends the options
    is_separator_certain: bool = False
    reads_stdin: bool = False
    has_usage: bool = False
    omitted: int = 0
    is_expression: bool = False  # the options follow the operands
    legends: Mapping[str, Legend] = MappingProxyType({})  # explanations of values, by their name or option
