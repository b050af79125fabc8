"""What a reader sees in the help texts of samples/, each in the manner of one library."""

from __future__ import annotations

from typing import NamedTuple


class Sample(NamedTuple):
    """`types` are those of all arguments; `is_ended` tells whether `--` is put before the first operand."""

    command: str
    style: str
    types: dict[str, str]
    required: set[str]
    is_ended: bool


SAMPLES = {
    "argparse": Sample(
        "parcel",
        "argparse",
        {
            "help": "boolean",
            "verbose": "boolean",
            "weight": "integer = 250",
            "speed": "string of slow fast",
            "retries": "integer",
            "label": "list of string",
            "fragile": "boolean = False",
            "stamp": "string",
            "via": "list of string",
            "sender": "string",
            "recipient": "string",
            "extras": "list of string",
        },
        {"sender", "recipient"},
        True,
    ),
    "click": Sample(
        "bakery bake",
        "click",
        {
            "count": "integer = 1 from 1 to 12",
            "crust": "string of thin thick = 'thin'",
            "salt": "boolean",
            "heat": "number",
            "ingredient": "list of string",
            "size": "list of integer",
            "out": "string",
            "glutenfree": "boolean",
            "quiet": "boolean",
            "help": "boolean",
            "recipe": "string",
            "toppings": "list of string",
        },
        {"heat", "recipe"},
        True,
    ),
    "typer": Sample(
        "garden plant",
        "typer",
        {
            "bed": "integer",
            "depth": "number = 2.5",
            "soil": "string of clay loam sand",
            "water": "boolean",
            "verbose": "boolean",
            "help": "boolean",
            "seed": "string",
        },
        {"bed", "seed"},
        True,
    ),
    "docopt": Sample(
        "lighthouse turn",
        "docopt",
        {"help": "boolean", "speed": "integer = 10", "colour": "string", "quiet": "boolean", "name": "string"},
        {"name"},
        False,
    ),
    "getopt": Sample(
        "rake",
        "getopt",
        {
            "all": "boolean",
            "basket": "string",
            "colour": "string of  always never auto",
            "d": "boolean",
            "from": "string",
            "max_count": "integer",
            "teeth": "integer",
            "no_sweep_afterwards": "boolean",
            "help": "boolean",
            "version": "boolean",
            "pattern": "string",
            "file": "list of string",
            "stdin": "string",
        },
        {"pattern"},
        True,
    ),
    "clap": Sample(
        "fold",
        "clap",
        {
            "paper": "string",
            "steps": "integer = 8",
            "style": "string of plain fancy",
            "tag": "list of string",
            "verbose": "integer from 0 to 10",
            "dry": "boolean",
            "size": "string",
            "help": "boolean",
            "version": "boolean",
            "animal": "string",
            "colours": "list of string",
        },
        {"paper", "animal"},
        True,
    ),
    "clap-long": Sample(
        "fold",
        "clap",
        {
            "when": "string of now later = 'now'",
            "folds": "integer = 12",
            "wet": "boolean",
            "help": "boolean",
            "animal": "string",
        },
        {"animal"},
        True,
    ),
    "cobra": Sample(
        "hive count",
        "cobra",
        {
            "all": "boolean",
            "format": "string = 'table'",
            "help": "boolean",
            "label": "list of string",
            "limit": "integer = 100",
            "ratio": "number",
            "wait": "string = '5s'",
            "config": "string",
            "name": "list of string",
        },
        {"name"},
        True,
    ),
    "go": Sample(
        "tide",
        "go",
        {
            "harbour": "string = 'north'",
            "hours": "integer = 12",
            "metric": "boolean",
            "pause": "string = '1m0s'",
            "scale": "number",
        },
        set(),
        False,
    ),
    "usage": Sample(
        "ferry",
        "plain",
        {
            "4": "boolean",
            "6": "boolean",
            "q": "boolean",
            "v": "boolean",
            "b": "string",
            "p": "integer",
            "o": "string",
            "fast": "boolean",
            "L": "string",
            "destination": "string",
            "command": "string",
            "argument": "list of string",
        },
        {"destination"},
        False,
    ),
    "git": Sample(
        "git prune-leaves",
        "git",
        {
            "dry_run": "boolean",
            "max": "integer",
            "sort": "string",
            "keep": "string",
            "commit": "string",
            "path": "list of string",
        },
        set(),
        False,
    ),
}
