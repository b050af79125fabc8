"""Find the options in the columns of a help text, and read how each is written.

An option is written as `-o, --output=FILE`, `--[no-]color[=WHEN]`, `-n <number>`, `--arg name value`.

Rule: one pass from left to right, with patterns that take little time on any line. At most MAX_OPTIONS are kept, each
with MAX_TEXT_CHARS of its description.
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
MAX_NAMES = 8
MAX_VALUES = 4
MAX_LITERALS_CHARS = 1000
MAX_VALUE_CHARS = 200  # a list of choices may be long

NAME = re.compile(r"--?\[no-?\][A-Za-z0-9][\w-]*|-[A-Za-z]\w*,(?=<)|--?[A-Za-z0-9?@%][\w+-]*(?:\.[\w-]+)*|-#+")
NEARLY_THE_SAME = re.compile(r"(?:\[-[^\[\]]*\])?")  # --reference[-if-able]: another option
SEPARATOR = re.compile(
    r"(?: \(\"?\w{1,20}\"?\))? {0,2}, *(?=-)|/(?=--)| ?\|+ ?(?=-)| (?=-)| {2,40}(?=--[a-z])| {1,2}or {1,2}(?=--)"
)
NEGATION = re.compile(r" / (?=-)|/(?=--?no)")  # click; irb has --a/--b for two names of one option
PREFIX = re.compile(r"(--?)\[(no-?)\]")
DOTS = re.compile(r" ?(?:\[?\.\.\.\]?|…)|\.\.(?= )")
TYPES = re.compile(r"<[A-Z]+(?: [A-Z]+){1,3}>")
LITERALS = re.compile(r"[a-z][\w-]*(?:\|[a-z][\w-]*)*")
CLOSING = {"[": "]", "<": ">", "{": "}", "(": ")"}

# A value goes up to a space outside of brackets, dots, or a comma before another name.
IN_SQUARE = r"(?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*"
TOKEN = (
    rf"(?:\[{IN_SQUARE}\]|<(?:[^<>]|<[^<>]*>)*>|\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}}|\([^()]*\)"
    r"|(?!\.\.\.|,(?: |$))[^\s|\])])+"
)
# How a value follows a name at once, with what the script puts between them; the last is whether it can be left out.
ATTACHED = (
    (rf"\[=({IN_SQUARE})\]", "=", True),
    (rf"\[(?!\.):?({IN_SQUARE})\]", "", True),
    (r"=\[((?:[^\[\]|]|\[[^\[\]]*\])*)\](?=[ ,]|$)", "=", True),
    (r"=\[([^\[\]]*)\](?=[ ,]|$)", "=", False),
    (rf"=({TOKEN}|\.\.\.|)", "=", False),
    (rf"(#|(?=<|/[^ -]){TOKEN})", "", False),
)
# Words in capitals (with a quantifier behind the pattern) and in small letters.
UPPER = r"(?!NOT )[A-Z](?:[A-Z0-9_:=|+*@%-]|/(?!-)|[.,](?![., ]|$))"
LOWER = r"(?!(?:or|and)\b)[A-Za-z](?:[\w:=+-]|/(?!-)|[.,](?![., ]|$)){0,30}"
GAP = rf"(?=  |\t|$| ?: |, ?-| -{{1,2}}[A-Za-z]| ?[\[{{|]|/-|{DOTS.pattern})"
IN_BRACKETS = r"\[(?!-|default|required)<?[\w./:=|{},<>@+*\[\]-]+(?: ?\.\.\.)?\]"
# A word after a space that is a value: by its brackets or capitals, or because a gap follows it.
VALUE = rf"(?=[<{{]){TOKEN}|(?:{UPPER}*|{LOWER})(?=[<\[]){TOKEN}|{UPPER}+(?= )|{UPPER}*{GAP}|{LOWER}{GAP}"
NEXT_VALUE = re.compile(rf"(?P<square>{IN_BRACKETS})|{VALUE}")
# -L [<KIND>=]<PATH>; and --arg name value, as in jq
FIRST_VALUE = re.compile(rf"(?={IN_BRACKETS}[^ ,\]]){TOKEN}|{NEXT_VALUE.pattern}|[a-z]{{1,9}}(?= [a-z]{{1,9}}(?:  |$))")


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
    after = NEARLY_THE_SAME.match(text, found.end())
    spelling = _valued(text, after.end() if after else found.end(), Option((name,)))
    dots = DOTS.match(text, spelling.end)
    if dots is None:
        return spelling
    # CODE1,CODE2.. is one word, and the dots of click's <INTEGER INTEGER>... mean nothing more.
    option = spelling.option
    is_single = len(option.values) > 1 or any("," in value for value in option.values)
    return Signature(option._replace(is_repeated=not is_single), dots.end())


def _valued(text: str, position: int, bare: Option) -> Signature:
    """Return the name with the value or the values that follow at `position`, if any do."""
    for pattern, joint, is_optional in ATTACHED:
        found = re.compile(pattern).match(text, position)
        if found and (joint or is_optional or not bare.name.startswith("--")):
            option = bare._replace(values=(_cleaned(found[1]),), joint=joint, is_value_optional=is_optional)
            return Signature(option, found.end())
    values: list[str] = []
    is_optional = is_greedy = False
    end = position
    while len(values) < MAX_VALUES and text[end : end + 1] == " ":
        found = (NEXT_VALUE if values else FIRST_VALUE).match(text, end + 1)
        if found is None:
            break
        value, end = found[0], found.end()
        if found["square"]:  # [FILE], [FILE ...], or FILE [FILE ...]
            is_greedy, is_optional = "..." in value, not values and "|" not in value
            values = values or [value[1:-1]]
            break
        values.append(re.sub(r"[\[\]]", "", value) if value.startswith("[") else value)
        if DOTS.match(text, end):
            break
    if len(values) == 1 and TYPES.fullmatch(values[0]):
        values = values[0].strip("<>").split()
    if values[1:] == ["RANGE"]:  # click's INTEGER RANGE
        values = values[:1]
    option = bare._replace(values=tuple(map(_cleaned, values)), joint=" " * bool(values))
    return Signature(option._replace(is_value_optional=is_optional, is_greedy=is_greedy), end)


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
        found = _row_in(line, indent, row.column if row else 0) if text.startswith("-") else None
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


def _row_in(line: str, indent: int, column_before: int) -> _Row | None:
    signature = _signature_in(line, indent, column_before)
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
    return _Row(signature.option, indent, min(column, FAR_COLUMN), [text] if text else [])


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
