"""Turn the options and operands of a help text into the arguments of a tool: names, JSON Schemas, and words."""

from __future__ import annotations

from collections.abc import Sequence

from mcpgreen.cli.wrapping.reading.documented import Documented, Operand, Option
from mcpgreen.cli.wrapping.reading.value_types import (
    UNEXPLAINED,
    ValueType,
    default_of,
    is_said_to_count,
    is_said_to_repeat,
    value_type,
)
from mcpgreen.cli.wrapping.tool_file import Argument, Blueprint, list_schema, plain, property_name
from mcpgreen.text.json_types import Json

MAX_COUNT = 10
NUMBER_OR_EMPTY = r"^(-?[0-9]+(\.[0-9]+)?)?$"
VERBOSE = ("--verbose", "--quiet", "-v", "-q")


def blueprint_of(name: str, command: Sequence[str], documented: Documented, *, asked_by: str) -> Blueprint:
    """The tool that runs this command."""
    shown = plain(" ".join(command), 200)
    taken: set[str] = set()
    operands = [_operand_argument(operand, documented, taken) for operand in documented.operands]
    taken.clear()  # options have the first choice of names
    options = [_option_argument(option, documented, taken) for option in documented.options]
    operands = [_renamed(argument, taken) for argument in operands]
    arguments = [*operands, *options] if documented.is_expression else [*options, *operands]
    if documented.reads_stdin:
        stdin = {"type": "string", "description": "Text for the command's standard input."}
        guesses = ("it reads its standard input, which the help mentions",)
        arguments.append(Argument(property_name("stdin", taken), stdin, "stdin", guesses=guesses))
    separated = [
        each for each, operand in zip(operands, documented.operands, strict=True) if operand.is_after_separator
    ]
    first = separated[0] if separated else operands[0] if operands and documented.takes_separator else None
    is_guess = first is not None and not documented.is_separator_certain
    summary = documented.summary or f"Run {shown}"
    return Blueprint(
        name,
        f"{shown} {asked_by}",
        plain(f"{summary.rstrip('.')}. (Runs {shown}.)"),
        tuple(command),
        tuple(arguments),
        tuple(_notes(documented)),
        first.name if first else None,
        f"commands of this kind ({documented.style}) take -- as the end of their options" if is_guess else "",
    )


def _notes(documented: Documented) -> list[str]:
    notes = []
    if documented.omitted:
        notes.append(f"{documented.omitted} more options are left out: there are too many.")
    if documented.forms:
        notes.append("The usage lines differ in their operands, so these are one list:")
        notes += [f"    {plain(form, 110)}" for form in documented.forms]
    return notes


def _renamed(argument: Argument, taken: set[str]) -> Argument:
    name = argument.name if argument.name not in taken else property_name(f"{argument.name}_operand", taken)
    taken.add(name)
    return argument._replace(name=name)


def _option_argument(option: Option, documented: Documented, taken: set[str]) -> Argument:
    name = property_name(option.name, taken)
    taken.add(name)
    about = plain(option.text) or f"The option {option.name}."
    if not option.values:
        return _flag(name, option, about)
    kinds = [
        value_type(
            value,
            names=option.names,
            text=option.text,
            are_types=documented.are_types,
            legend=documented.legends.get(value) or documented.legends.get(option.name) or UNEXPLAINED,
        )
        for value in option.values
    ]
    kind = kinds[0]
    guesses = list(kind.guesses)
    if len(kinds) > 1:
        same = all(each.type == kind.type for each in kinds)
        kind = ValueType(kind.type if same else "string")
    schema = _value_schema(kind)
    is_list = kind.is_list or option.is_repeated or option.is_greedy
    if not is_list and is_said_to_repeat(option.text):
        is_list = True
        guesses.append("it may be given several times, as the description seems to say")
    keywords: tuple[tuple[str, str], ...] = ()
    default = default_of(option.text, kind.type, kind.choices)
    # Without a value, it would take a following word for one.
    can_be_bare = option.joint != " " or documented.takes_separator or not documented.operands
    if option.is_value_optional and not can_be_bare:
        guesses.append("its value may be left out at a terminal; here it has to be given")
    elif option.is_value_optional and not is_list and len(kinds) == 1:
        keywords = (("bare", option.name),)
        about = plain(f"{about.rstrip('.')}. Empty: the option without a value.", 340)
        schema = _or_empty(schema)
        default = None  # of the value, or of the option?
    if len(kinds) > 1:
        schema = {"type": "array", "items": schema, "minItems": len(kinds), "maxItems": len(kinds)}
    if is_list:
        schema = list_schema(schema, is_required=False)
    elif default is not None and len(kinds) == 1:
        schema["default"] = default
    return Argument(
        name,
        {**schema, "description": about},
        "option",
        _words(option, len(kinds)),
        keywords,
        option.is_required,
        tuple(guesses),
    )


def _flag(name: str, option: Option, about: str) -> Argument:
    is_counted = option.is_repeated or (any(each in VERBOSE for each in option.names) and is_said_to_count(option.text))
    if is_counted and not option.negative:
        schema: Json = {"type": "integer", "minimum": 0, "maximum": MAX_COUNT, "description": about}
        guesses = () if option.is_repeated else ("it is given as often as the number says",)
        return Argument(name, schema, "count", (option.name,), (), option.is_required, guesses)
    schema = {"type": "boolean"}
    default = default_of(option.text, "boolean", ())
    if default is not None and option.negative:
        schema["default"] = default
    keywords = (("off", option.negative),) if option.negative else ()
    return Argument(name, {**schema, "description": about}, "flag", (option.name,), keywords, option.is_required)


def _words(option: Option, number: int) -> tuple[str, ...]:
    if option.is_greedy:
        return (option.name, "{}...")
    if number > 1 or option.joint == " ":
        return (option.name, *["{}"] * number)
    return (f"{option.name}{option.joint}{{}}",)


def _value_schema(kind: ValueType) -> Json:
    schema: Json = {"type": kind.type}
    if kind.choices:
        schema["enum"] = list(kind.choices)
    if kind.minimum is not None:
        schema["minimum"] = kind.minimum
    if kind.maximum is not None:
        schema["maximum"] = kind.maximum
    return schema


def _or_empty(schema: Json) -> Json:
    """The schema for a value that may also be empty: a string."""
    if schema["type"] == "boolean":
        return {"type": "string", "enum": ["", "true", "false"]}
    if "enum" in schema:
        return {"type": "string", "enum": ["", *map(str, schema["enum"])]}
    return {"type": "string", **({} if schema["type"] == "string" else {"pattern": NUMBER_OR_EMPTY})}


def _operand_argument(operand: Operand, documented: Documented, taken: set[str]) -> Argument:
    name = property_name(operand.name.lower(), taken)
    taken.add(name)
    if operand.choices:
        kind = ValueType("string", operand.choices)
    else:
        legend = documented.legends.get(operand.name, UNEXPLAINED)
        kind = value_type(operand.name, names=(operand.name,), text=operand.text, are_types=False, legend=legend)
    schema = _value_schema(kind)
    about = plain(operand.text) or ("The operands." if documented.forms else f"The operand {plain(operand.name, 60)}.")
    if documented.forms:
        about = plain(f"{about} {' | '.join(documented.forms)}")
    if operand.is_repeated:
        schema = list_schema(schema, is_required=operand.is_required)
    else:
        default = default_of(operand.text, kind.type, kind.choices)
        schema |= {} if default is None else {"default": default}
    schema["description"] = about
    return Argument(name, schema, "operand", (), (), operand.is_required, kind.guesses)
