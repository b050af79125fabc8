"""What is documented of a command: its options, its operands, and what it is for. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from mcpgreen.cli.wrapping.reading.legends import Legend


class Option(NamedTuple):
    """One option under all its names. Without `values` it is a flag."""

    names: tuple[str, ...]
    values: tuple[str, ...] = ()  # how the help calls what follows, each without its brackets
    joint: str = ""  # between the name and the value: "=", " ", or nothing
    is_value_optional: bool = False
    is_greedy: bool = False  # takes all values that follow it, as argparse's nargs="+"
    is_repeated: bool = False
    is_required: bool = False
    negative: str = ""  # what turns the flag off
    text: str = ""

    @property
    def name(self) -> str:
        """The one to use: the first long one, else the first."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])


class Operand(NamedTuple):
    name: str
    is_required: bool = True
    is_repeated: bool = False
    choices: tuple[str, ...] = ()
    is_after_separator: bool = False  # the usage has `--` before it
    text: str = ""


class Documented(NamedTuple):
    """A help text that was understood. `omitted` counts the options that are too many."""

    style: str
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
    is_expression: bool = False  # the options stand behind the operands
    legends: Mapping[str, Legend] = MappingProxyType({})  # what is said of values, by their name or their option's
