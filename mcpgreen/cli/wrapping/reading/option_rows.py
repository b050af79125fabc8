"""Find the options in the columns of a help text.

Rule: each line is read once, and at most MAX_OPTIONS are kept, each with MAX_TEXT_CHARS of its description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mcpgreen.cli.wrapping.reading.signatures import MAX_NAMES, Option, Signature, are_literals, signature_at

MAX_OPTIONS = 500
MAX_TEXT_CHARS = 2000  # kept of a description, to look for defaults and choices
FAR_COLUMN = 80

GAP = re.compile(r" ? {2}|$")
TIGHT = re.compile(r"\S \S")
LEVELS = re.compile(r"-(\d) ?(?:\.\.\.?|…|to|-) ?-(\d)(?= )")
TAKING_VALUES = re.compile(r"(?i)\b(?:take|taking|with|accept|require)s? (?:an? )?(?:arguments?|values?)\b")
NUMBER_OPTION = re.compile(r"-<\w{1,20}>, (?=-)")


class _Row(NamedTuple):
    """An option and its description while they are read."""

    option: Option
    indent: int
    column: int  # where its description begins; 0 if not known yet
    text: list[str]
    goes_on: bool = False

    def done(self) -> Option:
        return self.option._replace(text=" ".join(self.text)[:MAX_TEXT_CHARS])


def options_in(lines: Sequence[str], *, is_git: bool) -> tuple[list[Option], int]:
    """Each option once, and how many are too many."""
    options: dict[str, Option] = {}
    known: set[str] = set()
    omitted = 0
    before = ""
    for option in _split(_rows(lines), is_git=is_git):
        if "[required]" in option.text:
            option = option._replace(is_required=True)
        earlier = options.get(option.name)
        if earlier is None:
            if known.issuperset(option.names) or option.name == "-NUM":
                continue  # rustc: -C help, beside -C, --codegen; grep: a number that is no name
            if len(options) < MAX_OPTIONS:
                # In a careless text, two options may share a short name: it belongs to the first one.
                own = tuple(name for name in option.names if name not in known or name == option.name)
                options[option.name] = option._replace(names=own)
                known.update(option.names)
            else:
                omitted += 1
        elif before == option.name and are_literals(earlier.values) and are_literals(option.values):
            either = f"{earlier.values[0]}|{option.values[0]}"  # --format=zip, --format=tar
            options[option.name] = earlier._replace(values=(either,), text="")
        elif option.values and not earlier.values:  # -save-temps, and -save-temps=<arg>
            text = earlier.text or option.text
            options[option.name] = option._replace(text=text, names=earlier.names, is_value_optional=True)
        before = option.name
    return list(options.values()), omitted


def _rows(lines: Sequence[str]) -> Iterator[Option]:
    """The options in their order. Lines that are indented deeper than an option belong to it."""
    row: _Row | None = None
    are_valued = was_blank = False
    for line in lines:
        text = line.lstrip()
        if was_blank and text.endswith(":") and not text.startswith("-"):
            are_valued = TAKING_VALUES.search(text) is not None
        was_blank = not text
        indent = len(line) - len(text)
        is_starred = text.startswith("*") and text[1:].lstrip().startswith("-")  # typer: it has to be there
        if is_starred:
            text = text[1:].lstrip()
            indent = len(line) - len(text)
        found = _row_in(line, indent, row.column if row else 0, is_starred=is_starred) if text.startswith("-") else None
        if found and row and row.goes_on and not row.text:
            names = (*row.option.names, *found.option.names)[:MAX_NAMES]
            found, row = found._replace(option=found.option._replace(names=names)), None
        if found and not (row and row.column and indent >= row.column):
            if row:
                yield row.done()
            row = found
            if are_valued and not row.option.values:
                row = row._replace(option=row.option._replace(values=("value",), joint=" "))
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
    """The options behind the first one, each after one space: find has several on a line."""
    signature = signature_at(line, start)
    while signature and line.startswith(" -", signature.end):
        signature = signature_at(line, signature.end + 1)
        if signature:
            yield signature.option


def _signature_in(line: str, start: int, column: int) -> Signature | None:
    """The option at `start`. One that reaches up to `column`, where descriptions begin, has one space behind it."""
    if levels := LEVELS.match(line, start):  # -0 ... -9
        names = tuple(f"-{level}" for level in range(int(levels[1]), int(levels[2]) + 1))
        return Signature(Option(names), levels.end()) if names else None
    signature = signature_at(line, start)
    if start < column - 2 and TIGHT.match(line, column - 2) and not (signature and GAP.match(line, signature.end)):
        cut = signature_at(line[: column - 1], start)
        return cut if cut and cut.end == column - 1 else signature
    return signature


def _row_in(line: str, indent: int, column_before: int, *, is_starred: bool) -> _Row | None:
    number = NUMBER_OPTION.match(line, indent)  # git: -<number>, -n <number>
    signature = _signature_in(line, number.end() if number else indent, column_before)
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
        return None  # it is a sentence that begins with an option
    column = column if text and (not is_tight or column == column_before) else 0
    option = signature.option._replace(is_required=is_starred)
    if text == ",":  # another name is in the next line
        return _Row(option, indent, 0, [], goes_on=True)
    return _Row(option, indent, min(column, FAR_COLUMN), [text] if text else [])


def _split(options: Iterator[Option], *, is_git: bool) -> Iterator[Option]:
    """Split different options that are explained together: -0 ... -9, and -h, -H, and in git also
    --author=<pattern>, --committer=<pattern>."""
    for option in options:
        long_names = [name for name in option.names if name.startswith("--")]
        if not long_names and (is_git or option.name[1:].isdigit()):
            yield from (option._replace(names=(name,)) for name in option.names)
        elif not is_git:
            yield option
        else:
            yield option._replace(names=tuple(name for name in option.names if name not in long_names[1:]))
            yield from (option._replace(names=(name,), negative="") for name in long_names[1:])
