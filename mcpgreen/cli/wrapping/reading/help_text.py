"""Understand a help text: find the options in its columns, and put them together with the usage lines.

Rule: a text of MAX_HELP_BYTES is read line by line, each line is cut, and the options are counted: nobody who writes
help texts decides how long this takes or how much it keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mcpgreen.cli.wrapping.reading.documented import Documented, Operand, Option
from mcpgreen.cli.wrapping.reading.signatures import signature_at
from mcpgreen.cli.wrapping.reading.styles import WITHOUT_SEPARATOR, Style, style_of
from mcpgreen.cli.wrapping.reading.usage_lines import (
    Reader,
    Usage,
    after_command,
    after_other_names,
    forms_in,
    merged_operands,
)

MAX_LINES = 20_000
MAX_LINE_CHARS = 2000
MAX_OPTIONS = 500
MAX_TEXT_CHARS = 2000  # kept of a description, to look for defaults and choices
MAX_SUMMARY_CHARS = 400
MAX_SUBCOMMANDS = 100
FAR_COLUMN = 80

ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|.\x08")
BOX = re.compile(r"^[│┃|] ?(.*?) *[│┃|]?$")
TYPE_COLUMN = re.compile(r"(?:[A-Z][A-Z_]*(?: RANGE)?|\[[^\[\]]+\|[^\[\]]+\]|<[^<>]+>)(?:\.\.\.)?")
SECTION = re.compile(
    r"^\s{0,3}(?:╭─ )?([A-Z][\w /-]{2,40}|[a-z]+ (?:arguments|options)|options|commands)(?::$| ─.*$|$)"
)
ENTRY = re.compile(r"^ {2,8}(?:\[?<?([A-Za-z][\w.:-]{0,40})>?\]?\.{0,3}),?(?: {2,}(.*)|$)")
# Not every `--` ends the options for what follows: jq 1.6 wants its filter before it.
SEPARATOR_ENTRY = re.compile(r"^ {1,40}-- {2,}.*(?:file names|end of )", re.MULTILINE)
STDIN = re.compile(r"(?i)\bstandard input\b|\bstdin\b")
NUMBER_OPTION = re.compile(r"-<\w{1,20}>, (?=-)")
LISTS = re.compile(r"(?i)(?:[\w-]+ )?(?:arguments|options|commands|flags):")
NO_SUMMARY = re.compile(
    r"(?i)^(?:usage|or|options?|flags|synopsis|version|copyright|name|mandatory arguments|"
    r"unknown|invalid|unrecogni[sz]ed|illegal)\b|^[\w-]+\(\d\) "
)


class _Row(NamedTuple):
    """An option as it stands in the text."""

    option: Option
    indent: int
    column: int  # where its description begins; 0 until that is known
    text: list[str]

    def done(self) -> Option:
        return self.option._replace(text=" ".join(self.text)[:MAX_TEXT_CHARS])


def understood(text: str, command: Sequence[str]) -> Documented:
    """What the help of `command` says. Without options and operands nothing was understood."""
    lines = cleaned_lines(text)
    text = "\n".join(lines)
    style = style_of(text)
    all_forms = forms_in(lines)
    rows = _rows(lines)
    options, omitted = _bounded(_split(rows) if style.name == "git" else rows)
    known = {name: option for option in options for name in option.names}
    own = {form: rest for form in all_forms if (rest := after_command(form, command)) is not None}
    own = own or {form: after_other_names(form, command) for form in all_forms}
    usages = [Reader(known, has_literals=style.has_literals).read(rest) for rest in own.values()]
    fragments = [line.strip() for line in lines if line.startswith(("[-", "  [-"))]
    usages_of_fragments = [Reader(known, has_literals=False).read(line) for line in fragments[:200]]
    options = _with_usage(options, [*usages, *usages_of_fragments], is_binding=len(usages) == 1)
    operands = merged_operands(usages)
    disagreeing: tuple[str, ...] = ()
    if operands is None:
        disagreeing = tuple(own)
        operands = (Operand("arguments", any(_needs_operand(usage) for usage in usages), True),)
    is_expression = bool(operands) and operands[-1].name == "expression"
    if is_expression:  # find: the options are the expression, and stand behind the paths
        operands = operands[:-1]
    is_explicit = any(usage.has_separator for usage in usages)
    is_offered = bool(SEPARATOR_ENTRY.search(text))
    entries = _entries(lines)
    return Documented(
        style.name,
        _summary(lines, all_forms),
        tuple(_by_style(option, style) for option in options),
        tuple(each._replace(text=entries.operands.get(each.name.lower(), "")) for each in operands),
        disagreeing,
        tuple(entries.subcommands[:MAX_SUBCOMMANDS]),
        takes_separator=not is_explicit
        and (is_offered or (style.takes_separator and command[0] not in WITHOUT_SEPARATOR)),
        is_separator_certain=is_explicit or is_offered,
        reads_stdin=bool(STDIN.search(text)),
        has_usage=bool(all_forms),
        omitted=omitted,
        is_expression=is_expression,
    )


def cleaned_lines(text: str) -> list[str]:
    """The lines without colours, boxes and what cannot be printed; tabs are columns."""
    lines = []
    for line in text.split("\n", MAX_LINES)[:MAX_LINES]:
        line = ESCAPES.sub("", line[:MAX_LINE_CHARS]).expandtabs(8)
        line = "".join(char if char.isprintable() else " " for char in line).rstrip()
        if line[:1] in ("│", "┃") and (found := BOX.match(line)):
            line = "  " + _without_columns(found[1])
        lines.append(line)
    return lines


def _without_columns(text: str) -> str:
    """typer has the names, the type and the text of an option in columns; a type stands right behind its name here."""
    if not text.lstrip(" *").startswith("-"):
        return text
    first, *rest = re.split(r" {2,}", text.lstrip(" *"))
    while rest and (rest[0].startswith("-") or TYPE_COLUMN.fullmatch(rest[0])):
        first += " " + rest.pop(0)
    star = "* " if text.lstrip().startswith("*") else "  "
    return star + "  ".join([first, *rest])


def _rows(lines: Sequence[str]) -> Iterator[Option]:
    """The options in the order in which they are documented. What is deeper than an option belongs to it."""
    row: _Row | None = None
    for line in lines:
        text = line.lstrip()
        indent = len(line) - len(text)
        is_starred = text.startswith("*") and text[1:].lstrip().startswith("-")  # typer: it has to be there
        if is_starred:
            indent += len(text) - len(text[1:].lstrip())
            text = text[1:].lstrip()
        found = _row_in(line, indent, row.column if row else 0, is_starred=is_starred) if text.startswith("-") else None
        if found and not (row and row.column and indent >= row.column):
            if row:
                yield row.done()
            row = found
            for option in _on_same_line(line, indent):
                yield row.option
                row = row._replace(option=option, text=[])
        elif row and text and indent > row.indent:
            row.text.append(text)
            row = row if row.column else row._replace(column=indent)
        elif row and text:
            yield row.done()
            row = None
    if row:
        yield row.done()


def _on_same_line(line: str, start: int) -> Iterator[Option]:
    """The options behind the first, after one space each: find has several on a line."""
    signature = signature_at(line, start)
    while signature and line.startswith(" -", signature.end):
        signature = signature_at(line, signature.end + 1)
        if signature:
            yield signature.option


def _row_in(line: str, indent: int, column_before: int, *, is_starred: bool) -> _Row | None:
    number = NUMBER_OPTION.match(line, indent)  # git: -<number>, -n <number>
    signature = signature_at(line, number.end() if number else indent)
    if signature is None:
        return None
    rest = line[signature.end :]
    text = rest.strip().lstrip(":;").lstrip()
    if rest and not rest.startswith((" ", ":", ";", ".", "=", ",")):
        return None
    is_tight = rest.startswith(" ") and rest[1:2] not in (" ", ":", "", "-")
    column = len(line) - len(rest.lstrip(" :;"))
    is_in_column = column == column_before or (indent and (text[:1].isupper() or text[:1] in "(*"))
    if is_tight and not signature.option.values and not is_in_column:
        return None  # a sentence that begins with an option
    column = column if text and (not is_tight or column == column_before) else 0
    option = signature.option._replace(is_required=is_starred or "[required]" in text)
    return _Row(option, indent, min(column, FAR_COLUMN), [text] if text else [])


def _split(options: Iterator[Option]) -> Iterator[Option]:
    """git explains options together that are not the same: --author=<pattern>, --committer=<pattern>."""
    for option in options:
        long_names = [name for name in option.names if name.startswith("--")]
        yield option._replace(names=tuple(name for name in option.names if name not in long_names[1:]))
        for name in long_names[1:]:
            yield option._replace(names=(name,), negative="")


def _bounded(found: Iterator[Option]) -> tuple[list[Option], int]:
    """Each option once, and how many are too many."""
    options: dict[str, Option] = {}
    known: set[str] = set()
    omitted = 0
    for option in found:
        if "[required]" in option.text:
            option = option._replace(is_required=True)
        earlier = options.get(option.name)
        if earlier is None:
            if known.issuperset(option.names) or option.name == "-NUM":
                continue  # rustc: -C help, beside -C, --codegen; grep: a number that is no name
            if len(options) < MAX_OPTIONS:
                options[option.name] = option._replace(names=_new_names(option, known))
                known.update(option.names)
            else:
                omitted += 1
        elif option.values and not earlier.values:  # -save-temps, and -save-temps=<arg>
            text = earlier.text or option.text
            options[option.name] = option._replace(text=text, names=earlier.names, is_value_optional=True)
    return list(options.values()), omitted


def _new_names(option: Option, known: set[str]) -> tuple[str, ...]:
    """Two options may share a short name in a careless text; it belongs to the first."""
    return tuple(name for name in option.names if name not in known or name == option.name)


def _with_usage(options: Sequence[Option], usages: Sequence[Usage], *, is_binding: bool) -> list[Option]:
    """What the usage lines add: options that only they have, values, and which are required."""
    by_name = {name: at for at, option in enumerate(options) for name in (*option.names, option.negative) if name}
    merged = list(options)
    for usage in usages:
        for used in usage.options:
            position = next((by_name[name] for name in used.names if name in by_name), None)
            if position is None:
                if len(merged) < MAX_OPTIONS:
                    by_name.update(dict.fromkeys(used.names, len(merged)))
                    merged.append(used._replace(is_required=used.is_required and is_binding))
                continue
            option = merged[position]
            if used.values and not option.values and not option.negative:
                option = option._replace(values=used.values, joint=used.joint, is_value_optional=used.is_value_optional)
            is_repeated = option.is_repeated or used.is_repeated or usage.options.count(used) > 1
            merged[position] = option._replace(
                is_required=option.is_required or (used.is_required and is_binding), is_repeated=is_repeated
            )
    return merged


def _needs_operand(usage: Usage) -> bool:
    return any(operand.is_required for operand in usage.operands)


def _by_style(option: Option, style: Style) -> Option:
    """With `=` between name and value where the parser is known to take it: a value is a value then, whatever it is."""
    is_long = option.name.startswith("--") or style.name == "go"
    if style.takes_equals and option.joint == " " and is_long and len(option.values) == 1 and not option.is_greedy:
        return option._replace(joint="=")
    return option


class _Entries(NamedTuple):
    operands: dict[str, str]
    subcommands: list[str]


def _entries(lines: Sequence[str]) -> _Entries:
    """What is listed in the sections of arguments and of commands."""
    entries = _Entries({}, [])
    section = name = ""
    for line in lines:
        heading = SECTION.match(line)
        if line[:1].strip() and (heading or line.endswith(":")):
            section, name = heading[1].lower() if heading else "", ""
            continue
        found = ENTRY.match(line)
        if "argument" in section:
            if found:
                name = found[1].lower()
                entries.operands.setdefault(name, found[2] or "")
            elif name and line.startswith("      ") and len(entries.operands[name]) < MAX_TEXT_CHARS:
                entries.operands[name] = f"{entries.operands[name]} {line.strip()}".strip()
        elif section.endswith("commands") and found and found[2]:
            entries.subcommands.append(found[1])
    return entries


def _summary(lines: Sequence[str], forms: Sequence[str]) -> str:
    """The first paragraph that says what the command is for."""
    paragraph: list[str] = []
    for line in lines[:80]:
        text = line.strip()
        words = text.split()
        is_usage = any(text and (text in form or form.startswith(text)) for form in forms)
        if text.startswith("-") or LISTS.fullmatch(text):
            break
        is_other = is_usage or NO_SUMMARY.match(text) or text.startswith(("[", "╭", "╰")) or text.endswith(":")
        if is_other or len(words) < 3:
            if paragraph:
                break
            continue
        paragraph.append(text)
    return " ".join(paragraph)[:MAX_SUMMARY_CHARS]
