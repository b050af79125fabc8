"""Which library wrote a help text, told by phrases that only it has, and what its parser is known to accept.

The rows are tried from the top. A style that is not certain takes values only as they are documented, and `--` only
where the usage has it.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Style(NamedTuple):
    name: str
    mark: re.Pattern[str]
    takes_equals: bool = True  # --name=value, also where the help writes a space
    takes_separator: bool = True  # -- ends the options
    has_literals: bool = False  # words without brackets in the usage stand for themselves
    types: bool = False  # the word after an option is its type
    takes_false: bool = False  # --name=false turns a flag off
    has_defaults: bool = False  # what stands behind `=` is the default


def _mark(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.MULTILINE)


STYLES = (
    # Before `--`, git has revisions, and after it paths: it is no mere end of the options.
    Style("git", _mark(r"^ *(?:usage|or): git[ -]", r"^GIT(?:-[A-Z-]+)?\(1\)"), takes_separator=False),
    # kubectl's own way to show the flags of cobra: -A, --all-namespaces=false:
    Style(
        "kubectl",
        _mark(r"^ +(?:-\w, )?--[\w-]+=(?:false|true|''|\[\]|\d+):$"),
        types=True,
        takes_false=True,
        has_defaults=True,
    ),
    Style("typer", _mark(r"^╭─ (?:Options|Parameters|Arguments|Commands)"), types=True),
    Style("click", _mark(r"Show this message and exit\."), types=True),
    Style("argparse", _mark(r"show this help message and exit$", r"^(?:positional|optional) arguments:$")),
    Style(
        "cobra",
        _mark(
            r"^(?:Available Commands|Global Flags|Flags):$",
            r"^ +-h, --help +help for [\w-]+$",
            r"^ +(?:-\w, )?--[\w-]+ (?:list|string|stringArray|int|uint16|decimal) {2,}",
        ),
        types=True,
        takes_false=True,
    ),
    Style("clap", _mark(r" Print help(?: \(|$)", r"Prints? help information$", r"^USAGE:$", r"\[possible values: ")),
    Style("go", _mark(r"^Usage of .*:$"), types=True, takes_false=True),
    Style("openssl", _mark(r"^ -help +Display this summary$"), takes_equals=False, takes_separator=False, types=True),
    Style(
        "getopt",
        _mark(
            r"isplay this help(?: text)?(?: list)?(?: and exit)?\.?$",
            r"^Mandatory (?:or optional )?arguments to long options",
            r"output version information and exit",
            r"give this help list",
            r"^ +-\w, +--[a-z-]+=[A-Z]+ ",
        ),
    ),
    Style("optparse", _mark(r"^Usage: *\n +\S+ .*\[options\]", r"show this help message and exit")),
    Style(
        "docopt",
        _mark(r"^Usage:\n {2,8}\S[^\n<]*<[^>\n]{1,80}>", r"^Usage:\n {2,8}\w[^\n(|]*\([^\n|]*\|"),
        takes_equals=False,
        takes_separator=False,
        has_literals=True,
    ),
)
PLAIN = Style("plain", re.compile("(?!)"), takes_equals=False, takes_separator=False)

# They write the usual phrases into their help, and print `--` as any other word.
WITHOUT_SEPARATOR = frozenset({"echo", "test", "[", "expr", "true", "false"})


def style_of(text: str) -> Style:
    return next((style for style in STYLES if style.mark.search(text)), PLAIN)
