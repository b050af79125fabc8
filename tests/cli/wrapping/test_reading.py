"""What `wrap` understands of help texts: samples in the manner of each library, and texts that nobody should write."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli.wrapping.reading.help_text import read_help
from mcpgreen.cli.wrapping.reading.options import MAX_OPTIONS
from mcpgreen.cli.wrapping.tool_file import Argument, Blueprint, blueprint_of, description_of, script_of
from tests.cli.wrapping.expected_samples import SAMPLES

HERE = Path(__file__).parent


def read(text: str, command: str = "x") -> Blueprint:
    words = command.split()
    return blueprint_of("x", words, read_help(text, words), asked_by="--help")


def sample(name: str) -> Blueprint:
    return read((HERE / "samples" / f"{name}.txt").read_text(encoding="utf-8"), SAMPLES[name].command)


def shown_type(schema: dict[str, Any]) -> str:
    if schema["type"] == "array":
        return f"list of {shown_type(schema['items'])}"
    shown = str(schema["type"])
    if "enum" in schema:
        shown += f" of {' '.join(map(str, schema['enum']))}"
    if "default" in schema:
        shown += f" = {schema['default']!r}"
    if "minimum" in schema:
        shown += f" from {schema['minimum']} to {schema['maximum']}"
    return shown


def argument(blueprint: Blueprint, name: str) -> Argument:
    return next(each for each in blueprint.arguments if each.name == name)


@pytest.mark.parametrize("name", SAMPLES)
def test_all_options_of_a_sample_have_the_types_that_a_reader_sees(name: str) -> None:
    made = sample(name)

    shown = [f"{each.name}{'!' * each.is_required}: {shown_type(each.schema)}" for each in made.arguments]
    assert sorted(shown) == sorted(SAMPLES[name].types.split("; "))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_library_is_recognised(name: str) -> None:
    text = (HERE / "samples" / f"{name}.txt").read_text(encoding="utf-8")

    assert read_help(text, SAMPLES[name].command.split()).style == SAMPLES[name].style


@pytest.mark.parametrize("name", SAMPLES)
def test_the_options_are_ended_where_the_library_is_known_to_allow_it(name: str) -> None:
    made = sample(name)
    operands = [each.name for each in made.arguments if each.method == "operand"]

    assert (made.separator_before == operands[0] if operands else False) == SAMPLES[name].is_ended


def test_in_git_the_paths_alone_stand_behind_two_dashes() -> None:
    assert sample("git").separator_before == "paths"


@pytest.mark.parametrize(
    ("name", "option", "words"),
    [
        ("argparse", "weight", ("--weight={}",)),
        ("argparse", "via", ("--via", "{}...")),
        ("click", "size", ("--size", "{}", "{}")),
        ("getopt", "max_count", ("--max-count={}",)),
        ("go", "hours", ("-hours={}",)),
        ("usage", "p", ("-p", "{}")),
        ("clap", "verbose", ("--verbose",)),
    ],
)
def test_a_value_is_given_as_the_command_takes_it(name: str, option: str, words: tuple[str, ...]) -> None:
    assert argument(sample(name), option).words == words


@pytest.mark.parametrize(
    ("text", "is_ended"), [("Only file names after this", True), ("terminates argument processing", False)]
)
def test_two_dashes_are_taken_where_the_help_lists_them_as_the_end_of_options(text: str, is_ended: bool) -> None:
    """jq 1.6 lists them, and shows its usage when they stand before the filter."""
    made = read(f"Usage: edit [options] FILE\n\n  -a     all of it\n  --     {text}\n", "edit")

    assert (made.separator_before, made.separator_guess) == ("file" if is_ended else None, "")


@pytest.mark.parametrize(
    ("name", "keywords"), [("fragile", (("off", "--no-fragile"),)), ("stamp", (("bare", "--stamp"),))]
)
def test_a_flag_can_be_turned_off_and_an_option_be_bare(name: str, keywords: tuple[tuple[str, str], ...]) -> None:
    assert argument(sample("argparse"), name).keywords == keywords


def test_what_the_help_does_not_say_is_a_guess() -> None:
    guesses = {each.name: each.guesses for each in sample("argparse").arguments if each.guesses}

    assert guesses == {
        "weight": ("a whole number, since the default is 250",),
        "retries": ("a whole number, since the help calls the value RETRIES",),
        "label": ("it may be given several times, as the description seems to say",),
    }
    script = script_of(sample("argparse"))
    assert "# Guess: a whole number, since the default is 250.\ncommand.option(" in script


def test_an_operand_has_the_text_that_the_help_has_for_it() -> None:
    for entry in ("ARGS:\n  <WHAT>  \n      A thing.\n\n      More.", "  [--] <what>...\n      A thing."):
        made = read(f"USAGE:\n    x [OPTIONS] WHAT\n\n{entry}\n")
        assert argument(made, "what").schema["description"] == "A thing."


@pytest.mark.parametrize("text", ["", "\n\n", "Hello.", "\0\1\2\x1b[2J", "\ufffd" * 1000])
def test_a_text_that_is_no_help_has_nothing(text: str) -> None:
    found = read_help(text, ["x"])

    assert (found.options, found.operands, found.has_usage) == ((), (), False)


HOSTILE = {
    "blank lines": "\n" * 1_000_000,
    "spaces": " " * 1_000_000,
    "brackets": "Usage: x " + "[" * 1_000_000,
    "nested brackets": "Usage: x " + "[" * 900 + "]" * 900,
    "angles": ("Usage:\n  x " + "<" * 1900 + "\n") * 500,
    "quotes": "  --a X  one of " + "'a', " * 200_000,
    "defaults": "  --a X  " + "(default" * 100_000,
    "bars": "usage: x [" + "-a|" * 2000 + "]",
    "dashes": "-" * 1_000_000,
    "columns": ("  -a : " * 300 + "\n") * 400,
    "usages": "usage: x [-a] [--b B] c...\n" * 30_000,
    "names": ("  " + "-a, " * 500 + "\n") * 500,
    "rows": "  " + " ".join(f"-opt{number} N" for number in range(100_000)),
    "escapes": "\x1b]0;" * 200_000,
    "boxes": ("│" + " " * 1900 + "x\n") * 530,
    "names that go on": "".join(f"  --name{number},\n" for number in range(20_000)),
    "choices": "".join(f"  --o{number} X   can be: " + "a, " * 600 + "%\n" for number in range(500)),
    "values": "  --check=a, --check=b, --check=c\n" * 5_000,
    "explanations": ("UNIT is one of:\n\n" + "  a   b\n" * 300 + "\n") * 400,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_takes_little_time_and_room(name: str) -> None:
    began = time.process_time()
    made = read(HOSTILE[name])
    script, description = script_of(made), description_of(made)

    assert time.process_time() - began < 20  # what went back and forth over such a text took hours
    assert len(made.arguments) <= MAX_OPTIONS + 13
    assert len(script) + len(description) < 1_000_000
    compile(script, "x", "exec")


def test_of_ten_thousand_options_some_are_left_out_and_counted() -> None:
    text = "Usage: x [OPTIONS]\n" + "".join(f"  --option{number}=N   text\n" for number in range(10_000))
    made = read(text)

    assert len(made.arguments) == MAX_OPTIONS
    assert made.notes == (f"{10_000 - MAX_OPTIONS} more options are left out: there are too many.",)


EVIL = [
    "$(touch evil)",
    "`touch evil`",
    "'; import os; os.system('touch evil') #",
    '"""\nimport os\nos.system("touch evil")\n"""',
    "\\",
    "\rimport os",
    "\u2028import os",
    "\x0cimport os",
    "{}{0}%s",
    "\u202eevil",
]


@pytest.mark.parametrize("evil", EVIL)
def test_text_becomes_no_code(evil: str) -> None:
    text = f"Usage: x [OPTIONS] <{evil}>\n\n{evil} does things\n\n  -a, --all {evil}   {evil} (default: {evil})\n"
    text += f"  --n{evil} N   more\n  --c {{a,{evil}}}   more\n"
    made = read(text, f"x {evil}")
    script = script_of(made)
    tree = compile(script, "x", "exec", flags=0x400)  # the syntax tree alone

    kinds = {type(node).__name__ for node in tree.body}
    assert kinds == {"Import", "Expr", "Assign"}
    calls = [node.value.func for node in tree.body if type(node).__name__ == "Expr"]
    assert {ast_name(call) for call in calls} <= {
        "sys.path.insert",
        *(f"command.{method}" for method in ("flag", "option", "operand", "end_of_options", "run", "count", "stdin")),
    }
    json.loads(description_of(made))
    # Nothing that an editor shows otherwise than Python reads it.
    assert all(char.isprintable() or char == "\n" for char in script + description_of(made))


def ast_name(node: Any) -> str:
    return f"{ast_name(node.value)}.{node.attr}" if hasattr(node, "attr") else node.id
