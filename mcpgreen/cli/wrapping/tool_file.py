"""Create a tool from the options that a help text documents, and write its files: a script that people can read and
change, and a description next to it.

Rule: nothing from a help text or a file becomes code. Names are string literals, comments are one line of printable
characters. A file that a person has edited is never overwritten: each script has a digest of what was written.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from mcpgreen.cli.making.drafts import Draft, filled
from mcpgreen.cli.output import say
from mcpgreen.cli.wrapping.reading.help_text import Documented
from mcpgreen.cli.wrapping.reading.options import Option
from mcpgreen.cli.wrapping.reading.usage_lines import Operand
from mcpgreen.cli.wrapping.reading.value_types import COUNTS, REPEATS, ValueType, default_of, value_type, words_in
from mcpgreen.cli.wrapping.shell_lines import DESTRUCTIVE
from mcpgreen.text.json_types import Json

DESCRIPTION_SUFFIX = ".meta.json"
COMMENT_CHARS = 110
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 300
MAX_ARGUMENT_CHARS = 240  # of the description of an argument
MAX_COUNT = 10
DIGEST_CHARS = 12
MARK = "\n# Written by mcpgreen wrap"
NUMBER_OR_EMPTY = r"^(-?[0-9]+(\.[0-9]+)?)?$"
# Commands that are known to change nothing, or to use the network; with their subcommand, if any.
READ_ONLY = words_in(
    "cat cmp comm cut df diff dig du egrep fgrep find free grep head host id jq ls lsblk md5sum nl od ping ps pwd "
    "readlink realpath rg sha256sum stat strings tac tail tr tree uname uptime wc which who whoami git-blame git-diff "
    "git-grep git-log git-ls-files git-show git-status docker-images docker-inspect docker-logs docker-ps "
    "kubectl-describe kubectl-explain kubectl-get kubectl-logs kubectl-top systemctl-status"
)
# What exit status 1 means for commands that have 2 and more for failures.
STATUS_1 = dict.fromkeys(words_in("ack ag egrep fgrep git-grep grep pgrep rg zgrep"), "No match.")
STATUS_1 |= {"cmp": "They differ.", "diff": "They differ."}
OPEN_WORLD = words_in("curl dig host ping rsync scp ssh wget whois git-clone git-fetch git-pull git-push docker-run")
VERBOSE = {"--verbose", "--quiet", "-v", "-q"}


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
    separator_before: str | None = None  # the argument after `--`
    separator_guess: str = ""
    annotations: Mapping[str, bool] = MappingProxyType({})
    env: tuple[str, ...] = ()  # variables that the script reads; ! marks a required one
    status_1: str = ""  # what this exit status means, if it is no failure

    @property
    def guesses(self) -> int:
        return sum(len(argument.guesses) for argument in self.arguments) + bool(self.separator_guess)


def tool_name(words: str) -> str:
    """Return a name that every client accepts; empty if no character of the words can be used."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", words).strip("-")[:MAX_NAME_CHARS].rstrip("-")


def take_name(words: str, taken: set[str]) -> str:
    """Take a name for an argument that is not taken yet."""
    name = unique_name(re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_") or "option", taken, joint="_")
    taken.add(name)
    return name


def unique_name(name: str, taken: Container[str], *, joint: str) -> str:
    """Return the name, with a number if it is taken; short enough for every client."""
    unique, number = name[:MAX_NAME_CHARS], 1
    while unique in taken:
        number += 1
        unique = f"{name[: MAX_NAME_CHARS - 5]}{joint}{number}"
    return unique


def list_schema(items: Json, *, is_required: bool) -> Json:
    """Return the schema of a list, with at least one item if it is required."""
    return {"type": "array", "items": items, **({"minItems": 1} if is_required else {})}


def plain(text: str, limit: int = MAX_DESCRIPTION_CHARS) -> str:
    """Return one line of printable characters, cut at a word."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if len(line) <= limit:
        return line
    return line[: limit - 3].rpartition(" ")[0].rstrip(" ,;:") + "..."


def shown(command: Sequence[str]) -> str:
    """A command for models, which need not know the places of this machine."""
    return plain(" ".join(os.path.basename(word) if os.path.isabs(word) else word for word in command), 200)


def sentence(text: str) -> str:
    """Return the text in one line that ends with a full stop, a question mark or an exclamation mark."""
    text = plain(text).rstrip(".")
    return text if text.endswith(("?", "!")) else f"{text}."


def describe(text: str, command: Sequence[str]) -> str:
    """Return what is said about a tool, with the command that it runs; the command alone if nothing is said."""
    text = sentence(text)
    return plain(f"{text[0].upper()}{text[1:]} (Runs {shown(command)}.)") if text != "." else f"Run {shown(command)}."


def script_of(blueprint: Blueprint) -> str:
    words = ", ".join(map(literal, blueprint.command))
    fine = f"fine={{1: {literal(blueprint.status_1)}}}" if blueprint.status_1 else ""
    lines = [f"command = mcp_tool.CommandLine({words})", *_calls(blueprint), f"command.run({fine})"]
    # With `format`, which looks for no places in what it fills in.
    return filled("wrapping/tool.python").format(
        source=comment(f"Made from {blueprint.source}"),
        description=blueprint.name + DESCRIPTION_SUFFIX,
        notes="".join(f"# {comment(note)}\n" for note in blueprint.notes),
        lines="\n".join(lines),
    )


def _calls(blueprint: Blueprint) -> Iterator[str]:
    for argument in blueprint.arguments:
        if argument.name == blueprint.separator_before:
            if blueprint.separator_guess:
                yield f"# Guess: {comment(blueprint.separator_guess)}."
            yield "command.end_of_options()"
        for guess in argument.guesses:
            yield f"# Guess: {comment(guess)}."
        given = [literal(argument.name), *map(literal, argument.words)]
        given += [f"{keyword}={literal(word)}" for keyword, word in argument.keywords]
        yield f"command.{argument.method}({', '.join(given)})"


def description_of(blueprint: Blueprint) -> str:
    schema: Json = {"type": "object"}
    schema["properties"] = {argument.name: argument.schema for argument in blueprint.arguments}
    if required := [argument.name for argument in blueprint.arguments if argument.is_required]:
        schema["required"] = required
    schema["additionalProperties"] = False
    fields: Json = {"name": blueprint.name, "description": blueprint.description, "inputSchema": schema}
    fields |= {"annotations": dict(blueprint.annotations)} if blueprint.annotations else {}
    fields |= {"env": blueprint.env} if blueprint.env else {}
    text = json.dumps(fields, indent=2, ensure_ascii=False)
    # Characters that are not text, such as lone surrogates, are escaped.
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def annotations_of(command: Sequence[str], *, is_harmless: bool) -> dict[str, bool]:
    """Return what is known about a command. With an option that may write or run programs, it does not only read."""
    name = "-".join(command)
    known = {"readOnlyHint": is_harmless and name in READ_ONLY, "destructiveHint": command[-1] in DESTRUCTIVE}
    return {hint: True for hint, is_so in {**known, "openWorldHint": name in OPEN_WORLD}.items() if is_so}


def example_words(blueprint: Blueprint) -> list[str]:
    """Return the required arguments as `run-tool` takes them, with a value or, for text, a word in capitals."""
    words = []
    for each in (each for each in blueprint.arguments if each.is_required):
        kind = each.schema.get("items", each.schema)
        usual = {"integer": 1, "number": 1, "boolean": "true"}.get(kind["type"], each.name.upper())
        words += [f"{each.name}={kind.get('enum', [kind.get('default', usual)])[0]}"] * each.schema.get("minItems", 1)
    return words


def literal(text: str) -> str:
    """Return a string of Python, in double quotes where that is as plain."""
    is_plain = text.isascii() and text.isprintable() and not set(text) & {'"', "\\"}
    return f'"{text}"' if is_plain else ascii(text)


def comment(text: str) -> str:
    return plain(text, COMMENT_CHARS).rstrip(".")


def files_of(blueprint: Blueprint, script: str, directory: str) -> Draft:
    """Return the files of a tool. The description comes first: without it, the script would be another tool."""
    place, description = os.path.join(directory, blueprint.name), description_of(blueprint)
    script = script.replace(MARK, f"{MARK} ({_digest([description, script])})", 1)
    return Draft({place + DESCRIPTION_SUFFIX: description, place + ".py": script})


def state_of(files: Draft) -> str:
    """Tell how the tool on disk differs: "same", "changed", "edited" by a person, "conflict" (both), "other" files."""
    if not (found := files.on_disk()):
        return "other"
    new, written = _digest(files.values()), found[1].partition(f"{MARK} (")[2][:DIGEST_CHARS]
    return {written: "changed", new: "same"}.get(_digest(found), "edited" if written == new else "conflict")


def _digest(texts: Iterable[str]) -> str:
    """Return a digest of the files, without the lines of a script that have its source and its digest."""
    bodies = [text.split("\n", 3)[-1] if text.startswith("#!") else text for text in texts]
    return sha256("\0".join(bodies).encode("utf-8", "replace")).hexdigest()[:DIGEST_CHARS]


def write_tool(files: Draft, *, replaces: bool = False) -> None:
    """Write script and description, and print where they are. Raises ProjectError."""
    if replaces:
        files.replace()
    else:
        files.write()
    say("".join(f"{path}\n" for path in reversed(files)), is_exact=True)


def blueprint_of(name: str, command: Sequence[str], documented: Documented, *, asked_by: str) -> Blueprint:
    """Return the tool that runs this command."""
    taken: set[str] = set()  # options have the first choice of names
    options = [_option_argument(option, documented, taken) for option in documented.options]
    names: set[str] = set()
    operands = [_operand_argument(operand, documented, names, taken) for operand in documented.operands]
    before = documented.options_before
    arguments = [*options[:before], *operands, *options[before:]]
    if documented.reads_stdin:
        stdin = {"type": "string", "description": "Text for the command's standard input."}
        guesses = ("it reads standard input, according to its help",)
        arguments.append(Argument(take_name("stdin", taken), stdin, "stdin", guesses=guesses))
    pairs = zip(operands, documented.operands, strict=True)
    separated = next((argument.name for argument, operand in pairs if operand.is_after_separator), None)
    is_guess = separated is not None and documented.is_separator_guessed
    notes = [f"{documented.omitted} more options are left out: there are too many."] if documented.omitted else []
    return Blueprint(
        name,
        f"{plain(' '.join(command), 200)} {asked_by}",
        describe(documented.summary, command),
        tuple(command),
        tuple(arguments),
        tuple(notes),
        separated,
        f"commands of this kind ({documented.style}) treat -- as the end of the options" if is_guess else "",
    )


def _option_argument(option: Option, documented: Documented, taken: set[str]) -> Argument:
    name = take_name(option.name, taken)
    about = plain(option.text, MAX_ARGUMENT_CHARS) or f"The option {option.name}."
    if not option.values:
        return _flag(name, option, about)
    about_option = documented.legends.get(option.name, "")
    kinds = [
        value_type(value, option.names, option.text, documented.legends.get(value, about_option), documented.are_types)
        for value in option.values
    ]
    kind = kinds[0]
    guesses = list(kind.guesses)
    if len(kinds) > 1:
        kind = ValueType(kind.type if all(each.type == kind.type for each in kinds) else "string")
    schema = _value_schema(kind)
    is_list = kind.is_list or option.is_repeated or option.is_greedy
    if not is_list and REPEATS.search(option.text):
        is_list = True
        guesses.append("it may be given several times, as the description seems to say")
    keywords: tuple[tuple[str, str], ...] = ()
    default = default_of(option.text, kind.type, kind.choices)
    # Without a value, it would take a following word for one.
    can_be_bare = option.joint != " " or all(operand.is_after_separator for operand in documented.operands)
    if option.is_value_optional and not can_be_bare:
        guesses.append("its value may be left out in a terminal; here it has to be given")
    elif option.is_value_optional and not is_list and len(kinds) == 1:
        keywords = (("bare", option.name),)
        about = plain(f"{about.rstrip('.')}. If empty, the option is passed without a value.")
        schema = _or_empty(schema)
        default = None  # of the value, or of the option?
    if len(kinds) > 1:
        schema = {"type": "array", "items": schema, "minItems": len(kinds), "maxItems": len(kinds)}
    if is_list:
        schema = list_schema(schema, is_required=False)
    elif default is not None and len(kinds) == 1:
        schema["default"] = default
    schema["description"] = about
    words: tuple[str, ...] = (f"{option.name}{option.joint}{{}}",)
    if option.is_greedy:
        words = (option.name, "{}...")
    elif len(kinds) > 1 or option.joint == " ":
        words = (option.name, *["{}"] * len(kinds))
    return Argument(name, schema, "option", words, keywords, option.is_required, tuple(guesses))


def _flag(name: str, option: Option, about: str) -> Argument:
    is_counted = option.is_repeated or (VERBOSE.intersection(option.names) and COUNTS.search(option.text))
    if is_counted and not option.negative:
        schema: Json = {"type": "integer", "minimum": 0, "maximum": MAX_COUNT, "description": about}
        guesses = () if option.is_repeated else ("it is repeated as many times as the number says",)
        return Argument(name, schema, "count", (option.name,), (), option.is_required, guesses)
    default = default_of(option.text, "boolean", ()) if option.negative else None
    schema = {"type": "boolean"} if default is None else {"type": "boolean", "default": default}
    keywords = (("off", option.negative),) if option.negative else ()
    return Argument(name, {**schema, "description": about}, "flag", (option.name,), keywords, option.is_required)


def _value_schema(kind: ValueType) -> Json:
    limits = {"enum": list(kind.choices) or None, "minimum": kind.minimum, "maximum": kind.maximum}
    return {"type": kind.type, **{name: limit for name, limit in limits.items() if limit is not None}}


def _or_empty(schema: Json) -> Json:
    """Return the schema for a value that may also be empty: a string."""
    choices = ["true", "false"] if schema["type"] == "boolean" else schema.get("enum")
    if choices:
        return {"type": "string", "enum": ["", *map(str, choices)]}
    return {"type": "string", **({} if schema["type"] == "string" else {"pattern": NUMBER_OR_EMPTY})}


def _operand_argument(operand: Operand, documented: Documented, names: set[str], taken: set[str]) -> Argument:
    name = take_name(operand.argument, names)
    name = take_name(f"{name}_operand" if name in taken else name, taken)
    kind = ValueType("string", operand.choices)
    if not operand.choices:
        kind = value_type(operand.name, (operand.name,), operand.text, documented.legends.get(operand.name, ""))
    schema = _value_schema(kind)
    about = plain(operand.text, MAX_ARGUMENT_CHARS) or f"The operand {plain(operand.name, 60)}."
    if documented.forms:
        about = plain(f"The operands. {' | '.join(documented.forms)}")
    if operand.is_repeated:
        schema = list_schema(schema, is_required=operand.is_required)
    else:
        default = default_of(operand.text, kind.type, kind.choices)
        schema |= {} if default is None else {"default": default}
    schema["description"] = about
    return Argument(name, schema, "operand", (), (), operand.is_required, kind.guesses)
