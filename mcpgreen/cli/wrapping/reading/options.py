"""Find the options in the columns of a help text, and read how each is written.

An option is written as `-o, --output=FILE`, `--[no-]color[=WHEN]`, `-n <number>`, `--arg name value`.

Rule: one pass from left to right, without expressions that backtrack. At most MAX_OPTIONS are kept, each with
MAX_TEXT_CHARS of its description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAX_OPTIONS = 500
MAX_TEXT_CHARS = 2000  # kept of a description, to look for defaults and choices
FAR_COLUMN = 80

WIDE_GAP = re.compile(r" ? {2}|$")
TIGHT = re.compile(r"\S \S")
LEVELS = re.compile(r"-(\d) ?(?:\.\.\.?|…|to|-) ?-(\d)(?= )")
TAKING_VALUES = re.compile(r"(?i)\b(?:take|taking|with|accept|require)s? (?:an? )?(?:arguments?|values?)\b")
NUMBER_OPTION = re.compile(r"-<\w{1,20}>, (?=-)")
MAX_NAMES = 8
MAX_VALUES = 4
MAX_LITERALS_CHARS = 1000
MAX_VALUE_CHARS = 200  # a list of choices may be long

NAME = re.compile(r"--?\[no-?\][A-Za-z0-9][\w-]*|--?[A-Za-z0-9?@%][\w+-]*(?:\.[\w-]+)*|-#+")
DOTS = re.compile(r" ?(?:\[?\.\.\.\]?|…)|\.\.(?= )")
GAP = re.compile(r"  |\t|$| ?: |, ?-| -{1,2}[A-Za-z]| ?[\[{|]|/-")
UPPER = re.compile(r"[A-Z](?:[A-Z0-9_:=|+*@%-]|/(?!-)|[.,](?![., ]|$))*")
LOWER = re.compile(r"[A-Za-z](?:[\w:=+-]|/(?!-)|[.,](?![., ]|$)){0,30}")
BRACKETED_VALUE = re.compile(r"<?[\w./:=|{},<>@+*\[\]-]+(?: ?\.\.\.)?")
SEPARATOR = re.compile(
    r"(?: \(\"?\w{1,20}\"?\))? {0,2}, *(?=-)|/(?=--)| ?\|+ ?(?=-)| (?=-)| {2,40}(?=--[a-z])| {1,2}or {1,2}(?=--)"
)
NEGATION = re.compile(r" / (?=-)|/(?=--?no)")  # click; irb has --a/--b for two names of one option
PREFIX = re.compile(r"(--?)\[(no-?)\]")
TYPES = re.compile(r"<[A-Z]+(?: [A-Z]+){1,3}>")
LITERALS = re.compile(r"[a-z][\w-]*(?:\|[a-z][\w-]*)*")
NOT_VALUES = ("or", "and")
CLOSING = {"[": "]", "<": ">", "{": "}", "(": ")"}


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


class Signature(NamedTuple):
    option: Option
    end: int  # where the description begins


def signature_at(text: str, start: int = 0) -> Signature | None:
    """Return the option that begins at `start`, with all its names, or None."""
    spellings: list[Option] = []
    negatives: list[str] = []
    position, is_negative = start, False
    while len(spellings) + len(negatives) < MAX_NAMES and (spelling := _spelling_at(text, position)):
        option, end = spelling
        if is_negative:
            negatives.append(option.name)
        else:
            spellings.append(option)
        slash = NEGATION.match(text, end)
        follows = slash or SEPARATOR.match(text, end)
        if follows is None or (follows[0].isspace() and not _is_alias(spellings, text, follows)):
            break
        is_negative, position = slash is not None, follows.end()
    return Signature(_merged(spellings, negatives), end) if spellings else None


def are_literals(values: Sequence[str]) -> bool:
    """Tell whether the value is one or several literal words, as in --format=zip."""
    return len(values) == 1 and len(values[0]) < MAX_LITERALS_CHARS and LITERALS.fullmatch(values[0]) is not None


def closing(text: str, start: int) -> int:
    """Return the position of the bracket that closes the one at `start`, or -1."""
    opened, closed = text[start], CLOSING[text[start]]
    depth = 0
    for position in range(start, min(len(text), start + 2000)):
        if text[position] == opened:
            depth += 1
        elif text[position] == closed:
            depth -= 1
            if depth == 0:
                return position
    return -1


def _is_alias(spellings: list[Option], text: str, gap: re.Match[str]) -> bool:
    """Tell whether another name of the same option follows after spaces."""
    if len(gap[0]) > 1:  # a long name in a column of its own, after a short one
        return len(spellings) == 1 and not spellings[0].name.startswith("--")
    following = NAME.match(text, gap.end())
    # find: -empty -false are two
    return following is not None and (following[0].startswith("--") or len(following[0]) == 2)


def _merged(spellings: list[Option], negatives: list[str]) -> Option:
    """Return one option out of all its names."""
    named = []
    for each in spellings:
        if found := PREFIX.match(each.name):
            rest = each.name[found.end() :]
            negatives = [*negatives, found[1] + found[2] + rest]
            each = each._replace(names=(found[1] + rest,))
        named.append(each)
    # --no-decorate, --decorate[=HOW]: the positive one takes the value.
    opposites = {f"--no-{each.name[2:]}" for each in named if each.name.startswith("--")}
    negatives = [*negatives, *(each.name for each in named if each.name in opposites)]
    named = [each for each in named if each.name not in opposites]
    names = tuple(dict.fromkeys(each.name for each in named))
    same = [each for each in named if each.name == Option(names).name]
    own = same[0]
    if len(same) > 1 and all(each.values == () or (each.joint == "=" and are_literals(each.values)) for each in same):
        # --check, --check=quiet, --check=silent
        literals = "|".join(each.values[0] for each in same if each.values)
        is_optional = any(not each.values for each in same)
        own = own._replace(values=(literals,) if literals else (), joint="=", is_value_optional=is_optional)
    telling = own if own.values else next((each for each in named if each.values), own)
    if telling is not own and telling.joint != " " and own.name.startswith("--"):
        telling = telling._replace(joint="=")  # `-n5, --number` does not show how the long one takes its value
    return telling._replace(
        names=names,
        is_repeated=any(each.is_repeated for each in named),
        negative=next((name for name in negatives if name.startswith("--")), negatives[0] if negatives else ""),
    )


def _spelling_at(text: str, position: int) -> Signature | None:
    """Return one name with what follows it."""
    found = NAME.match(text, position)
    name = found[0].rstrip("-") if found else ""
    if found is None or not name:
        return None
    spelling = _valued(text, found.end(), Option((name,)))
    dots = DOTS.match(text, spelling.end)
    if dots is None:
        return spelling
    # CODE1,CODE2.. is one word, and the dots of click's <INTEGER INTEGER>... mean nothing more.
    option = spelling.option
    is_single = len(option.values) > 1 or any("," in value for value in option.values)
    return Signature(option._replace(is_repeated=not is_single), dots.end())


def _valued(text: str, position: int, bare: Option) -> Signature:
    """Return the name with the value that follows at `position`, if one does."""
    after = text[position : position + 2]
    if after[:1] == "[" and after != "[.":
        end = closing(text, position)
        if end < 0 or DOTS.match(text, position):
            return Signature(bare, position)
        inside = text[position + 1 : end]
        if inside.startswith("-"):  # --reference[-if-able]: another option of nearly the same name
            return _valued(text, end + 1, bare)
        return _with_value(bare, inside.lstrip("=:"), "=" if inside[:1] == "=" else "", end + 1, is_optional=True)
    if after[:1] == "=":
        if after == "=[" and (end := closing(text, position + 1)) > 0 and text[end + 1 : end + 2] in ("", " ", ","):
            return _with_value(bare, text[position + 2 : end], "=", end + 1, is_optional="|" not in text[position:end])
        end = _end_of_token(text, position + 1)
        if end == position + 1 and text.startswith("...", end):  # node: --title=...
            return _with_value(bare, "value", "=", end + 3)
        return _with_value(bare, text[position + 1 : end] or "value", "=", end)
    if after == ",<":  # gcc: -Wl,<options>
        end = _end_of_token(text, position + 1)
        return _with_value(Option((f"{bare.name},",)), text[position + 1 : end], "", end)
    if after[:1] == "#":  # zstd: -T#
        return _with_value(bare, "#", "", position + 1)
    if after[:1] in ("<", "/") and bare.name[1:2] != "-" and after not in ("/ ", "/-"):
        end = _end_of_token(text, position)
        return _with_value(bare, text[position:end], "", end)
    if after[:1] == " " and after != "  ":
        return _separate(text, position + 1, bare)
    return Signature(bare, position)


def _separate(text: str, position: int, bare: Option) -> Signature:
    """Return the name with the values that follow after one space."""
    values: list[str] = []
    is_optional = is_greedy = False
    end = position - 1
    while len(values) < MAX_VALUES:
        token_end, value = _separate_value(text, position, is_first=not values)
        if token_end is None:
            break
        if value.startswith("["):
            inside = value[1:-1]
            if values or "..." in inside:  # FILE [FILE ...], or [FILE ...]
                is_greedy, is_optional = "..." in inside, is_optional or not values
                values = values or [inside]
            else:
                is_optional = "|" not in inside
                values.append(inside)
            end = token_end
            break
        values.append(value)
        end = token_end
        if DOTS.match(text, end) or text[end : end + 1] != " " or text[end : end + 2] == "  ":
            break
        position = end + 1
    if len(values) == 1 and TYPES.fullmatch(values[0]):
        values = values[0].strip("<>").split()
    if values[1:] == ["RANGE"]:  # click's INTEGER RANGE
        values = values[:1]
    shown = tuple(_cleaned(value) for value in values)
    return Signature(bare._replace(values=shown, joint=" ", is_value_optional=is_optional, is_greedy=is_greedy), end)


def _separate_value(text: str, position: int, *, is_first: bool) -> tuple[int | None, str]:
    start = text[position : position + 1]
    if start in ("<", "{"):
        end = _end_of_token(text, position)
        return end, text[position:end]
    if start == "[":
        end = closing(text, position)
        inside = text[position + 1 : end] if end > 0 else ""
        is_value = BRACKETED_VALUE.fullmatch(inside) and not inside.startswith(("-", "default", "required"))
        if is_value and is_first and text[end + 1 : end + 2] not in ("", " ", ",", "]"):  # -L [<KIND>=]<PATH>
            end = _end_of_token(text, position)
            return end, text[position:end].replace("[", "").replace("]", "")
        return (end + 1, text[position : end + 1]) if is_value else (None, "")
    upper = UPPER.match(text, position)
    if upper:
        end, following = upper.end(), text[upper.end() : upper.end() + 1]
        if following in ("<", "["):
            end = _end_of_token(text, position)
        is_alone = GAP.match(text, end) or DOTS.match(text, end)
        if is_alone or (following == " " and len(upper[0]) >= 2 and upper[0] != "NOT"):
            return end, text[position:end]
    lower = LOWER.match(text, position)
    if lower and lower[0] in NOT_VALUES:
        return None, ""
    if lower and text[lower.end() : lower.end() + 1] in ("[", "<") and (end := _end_of_token(text, position)):
        return end, text[position:end]
    if lower and (GAP.match(text, lower.end()) or DOTS.match(text, lower.end())):
        return lower.end(), lower[0]
    if lower and is_first:  # jq: --arg name value, with a description after a gap
        second = LOWER.match(text, lower.end() + 1) if text[lower.end() : lower.end() + 1] == " " else None
        if second and text[second.end() : second.end() + 2] in ("  ", "") and len(lower[0]) + len(second[0]) < 16:
            return lower.end(), lower[0]
    return None, ""


def _end_of_token(text: str, position: int) -> int:
    """Return the end of a value: a space outside of brackets, or a comma before another name."""
    while position < len(text):
        char = text[position]
        if char in CLOSING:
            end = closing(text, position)
            if end < 0:
                return len(text) if " " not in text[position:] else text.index(" ", position)
            position = end + 1
            continue
        if char in " \t|])" or (char == "," and text[position + 1 : position + 2] in (" ", "")):
            break
        if text.startswith("...", position):
            break
        position += 1
    return position


def _with_value(bare: Option, value: str, joint: str, end: int, *, is_optional: bool = False) -> Signature:
    return Signature(bare._replace(values=(_cleaned(value),), joint=joint, is_value_optional=is_optional), end)


def _cleaned(value: str) -> str:
    value = value.strip().removesuffix("...").strip()[:MAX_VALUE_CHARS]
    if len(value) > 2 and value[0] in "<[" and value[-1] == CLOSING[value[0]] and value.count(value[0]) == 1:
        value = value[1:-1]
    return value.strip() or "value"


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
                continue  # rustc: -C help, next to -C, --codegen; grep: a number that is not a name
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
    """Yield the options in their order. Lines that are indented deeper than an option belong to it."""
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
            more = signature_at(line, indent)  # find has several on a line, each after one space
            while more and line.startswith(" -", more.end) and (more := signature_at(line, more.end + 1)):
                yield row.option
                row = row._replace(option=more.option, text=[])
        elif row and text and indent > row.indent:
            row.text.append(text)
            row = row if row.column else row._replace(column=indent)
        elif row and text:
            yield row.done()
            row = None
    if row:
        yield row.done()


def _signature_in(line: str, start: int, column: int) -> Signature | None:
    """Read the option at `start`. If it reaches up to `column`, where descriptions begin, one space follows it."""
    if levels := LEVELS.match(line, start):  # -0 ... -9
        names = tuple(f"-{level}" for level in range(int(levels[1]), int(levels[2]) + 1))
        return Signature(Option(names), levels.end()) if names else None
    signature = signature_at(line, start)
    if start < column - 2 and TIGHT.match(line, column - 2) and not (signature and WIDE_GAP.match(line, signature.end)):
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
