"""What a reader sees in the help texts of samples/, each in the manner of one library."""

from __future__ import annotations

from typing import NamedTuple


class Sample(NamedTuple):
    """`types` are those of all arguments, and `!` marks those that are required; `is_ended` tells whether `--` is put
    before the first operand."""

    command: str
    style: str
    is_ended: bool
    types: str


SAMPLES = {
    "argparse": Sample(
        "parcel",
        "argparse",
        True,
        "help: boolean; verbose: boolean; weight: integer = 250; speed: string of slow fast; retries: integer; label: "
        "list of string; fragile: boolean = False; stamp: string; via: list of string; sender!: string; recipient!: "
        "string; extras: list of string",
    ),
    "click": Sample(
        "bakery bake",
        "click",
        True,
        "count: integer = 1 from 1 to 12; crust: string of thin thick = 'thin'; salt: boolean; heat!: number; "
        "ingredient: list of string; size: list of integer; out: string; glutenfree: boolean; quiet: boolean; help: "
        "boolean; recipe!: string; toppings: list of string",
    ),
    "typer": Sample(
        "garden plant",
        "typer",
        True,
        "bed!: integer; depth: number = 2.5; soil: string of clay loam sand; water: boolean; verbose: boolean; help: "
        "boolean; seed!: string",
    ),
    "docopt": Sample(
        "lighthouse turn",
        "docopt",
        False,
        "help: boolean; speed: integer = 10; colour: string; quiet: boolean; name!: string",
    ),
    "getopt": Sample(
        "rake",
        "getopt",
        True,
        "all: boolean; basket: string; colour: string of  always never auto; d: boolean; from: "
        "string; max_count: integer; teeth: integer; no_sweep_afterwards: boolean; help: boolean; version: boolean; "
        "pattern!: string; files: list of string; stdin: string",
    ),
    "clap": Sample(
        "fold",
        "clap",
        True,
        "paper!: string; steps: integer = 8; style: string of plain fancy; tag: list of string; verbose: integer from "
        "0 to 10; dry: boolean; size: string; help: boolean; version: boolean; animal!: string; colours: list of "
        "string",
    ),
    "clap-long": Sample(
        "fold",
        "clap",
        True,
        "when: string of now later = 'now'; folds: integer = 12; wet: boolean; help: boolean; animal!: string",
    ),
    "cobra": Sample(
        "hive count",
        "cobra",
        True,
        "all: boolean; format: string = 'table'; help: boolean; label: list of string; limit: integer = 100; ratio: "
        "number; wait: string = '5s'; config: string; names!: list of string",
    ),
    "go": Sample(
        "tide",
        "go",
        False,
        "harbour: string = 'north'; hours: integer = 12; metric: boolean; pause: string = '1m0s'; scale: number",
    ),
    "usage": Sample(
        "ferry",
        "plain",
        False,
        "4: boolean; 6: boolean; q: boolean; v: boolean; b: string; p: integer; o: string; fast: boolean; L: string; "
        "destination!: string; command: string; arguments: list of string",
    ),
    "git": Sample(
        "git prune-leaves",
        "git",
        False,
        "dry_run: boolean; max: integer; sort: string; keep: string; commit: string; paths: list of string",
    ),
}
