"""What kind of value an option takes, from how the help calls it and what it says about it.

What the help says outright is taken as it is. Everything else is a guess, and comes with a sentence that says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mcpgreen.cli.wrapping.reading.choices import Choices, declared_choices, described_choices, words_in
from mcpgreen.cli.wrapping.reading.defaults import default_of
from mcpgreen.cli.wrapping.reading.legends import Legend

MAX_CHOICES = 100

# How libraries call their types, which is no guess.
DECLARED = {
    "integer": "INTEGER|INT|int|int8|int16|int32|int64|uint|uint8|uint16|uint32|uint64|intmax|count",
    "number": "FLOAT|float|float32|float64|decimal",
    "string": "TEXT|STR|PATH|FILE|FILENAME|DIRECTORY|UUID|DATETIME|string|duration|bytes|ip|ipNet|command|CHOICE",
    "boolean": "BOOLEAN|BOOL|bool",
}
DECLARED_TYPES = {word: kind for kind, words in DECLARED.items() for word in words.split("|")}
DECLARED_LISTS = {
    **dict.fromkeys(("strings", "stringArray", "stringSlice", "list", "map", "stringToString", "files"), "string"),
    **dict.fromkeys(("ints", "intSlice", "uints", "uintSlice"), "integer"),
}


INTEGERS = words_in(
    "n num number nr int integer count port lines cols col width height depth jobs workers threads "
    "levels retries tries index digits days hours minutes pid uid gid maxdepth procs length quota"
)
NUMBERS = words_in("float seconds secs sec ratio fraction decimal percent factor threshold timeout delay")
LISTS = words_in("fields columns ranges keys list")  # such as 1,3-5
# Metavars that say nothing, so that the name of the option is looked at instead.
NOTHING_SAID = words_in("value val arg argument x")
NAMES_OF_INTEGERS = words_in(
    "port depth maxdepth width height jobs workers threads retries tries lines columns count limit"
)
NAMES_OF_NUMBERS = words_in("timeout delay interval seconds")
NUMBER_OF = re.compile(r"(?i)^(?:the |set )?(?:max(?:imum)?|min(?:imum)?)? ?number of (\w+)")
ANY_NUMBER_OF = re.compile(r"(?i)\bnumber of (\w+)")
LEVEL = re.compile(r"(?i)\bm(?:ax|in)(?:imum)? (?:\w{1,30} )?(level|depth|count)\b")
RANGE = re.compile(r"(?:\[|; )(?:(-?\d{1,15})<=)?x(?:>=(-?\d{1,15}))?(?:<=(-?\d{1,15}))?\]")
REPEATS = re.compile(
    r"(?:multiple times|more than once|several times|(?:may|can) (?:be repeated|repeat|be used multiple)|repeatable|"
    r"multiple allowed|several -\w's allowed)",
    re.IGNORECASE,
)
COUNTS = re.compile(r"multiple times|repeat|more than once|twice|additive|up to \d times|-(?:vv|qq)\b", re.IGNORECASE)
LIST_BY_DEFAULT = re.compile(r"\(default \[")  # cobra: a type of the program's own that takes several

UNEXPLAINED = Legend()


class ValueType(NamedTuple):
    """A JSON type with what bounds it, and the sentences about what was guessed."""

    type: str
    choices: tuple[str | int, ...] = ()
    is_list: bool = False
    minimum: int | None = None
    maximum: int | None = None
    guesses: tuple[str, ...] = ()


def value_type(
    metavar: str, *, names: Sequence[str], text: str, are_types: bool, legend: Legend = UNEXPLAINED
) -> ValueType:
    """The type of one value. With `are_types` the metavar is the type, as click and cobra have it."""
    choices = declared_choices(metavar, text)
    if choices.words:
        return _of_choices(choices)
    if legend.choices:
        return _of_choices(Choices(legend.choices, ("the values are those that the help lists below",)))
    declared = DECLARED_TYPES.get(metavar, "") if are_types else ""
    if declared in ("", "string") and metavar not in ("duration", *DECLARED_LISTS):
        choices = described_choices(text)
        if choices.words:
            return _of_choices(choices)
    if are_types and (metavar in DECLARED_LISTS or LIST_BY_DEFAULT.search(text)):
        return ValueType(DECLARED_LISTS.get(metavar, "string"), is_list=True)
    if declared:
        least, most = _range(text) if declared in ("integer", "number") else (None, None)
        return ValueType(declared, minimum=least, maximum=most)
    if legend.type:
        return ValueType(legend.type, guesses=(f"a number, since the help says so of {metavar}",))
    return _guessed(metavar, names, text)


def is_said_to_repeat(text: str) -> bool:
    return REPEATS.search(text) is not None


def is_said_to_count(text: str) -> bool:
    return COUNTS.search(text) is not None


def _of_choices(choices: Choices) -> ValueType:
    words, guesses = list(dict.fromkeys(choices.words)), choices.guesses
    if len(words) > MAX_CHOICES:
        return ValueType("string", guesses=(f"there are {len(words)} choices, too many to list",))
    if all(re.fullmatch(r"-?\d{1,9}", word) and str(int(word)) == word for word in words):
        return ValueType("integer", tuple(map(int, words)), guesses=guesses)
    return ValueType("string", tuple(words), guesses=guesses)


def _range(text: str) -> tuple[int | None, int | None]:
    found = RANGE.search(text)
    if found is None:
        return None, None
    least = found[1] or found[2]
    return int(least) if least else None, int(found[3]) if found[3] else None


def _guessed(metavar: str, names: Sequence[str], text: str) -> ValueType:
    if re.fullmatch(r"\[[+]\]NUM|\+?N|.*[/:=,].*", metavar) and metavar != "N":
        return ValueType("string")  # more than a number
    words = re.split(r"[^A-Za-z]+", re.sub(r"^\[-\]", "", metavar).lower())
    words = [word for word in words if word]
    last, first = (words[-1], words[0]) if words else ("", "")
    if re.search(r"\b(?:multiplier|optional) suffix", text) or last in ("size", "bytes"):
        return ValueType("string")
    if metavar == "#" or last in INTEGERS or (last.endswith("num") and last != "enum") or first in ("num", "n", "max"):
        return ValueType("integer", guesses=(f"a whole number, since the help calls the value {metavar}",))
    if last in NUMBERS:
        return ValueType("number", guesses=(f"a number, since the help calls the value {metavar}",))
    if re.search(rf"\b(?:at (?:most|least)|up to) {re.escape(metavar)}\b", text):
        return ValueType("integer", guesses=("a number, since the description says so",))
    default = default_of(text, "string", ()) if last not in LISTS else None
    if isinstance(default, str) and re.fullmatch(r"-?\d{1,15}", default):
        return ValueType("integer", guesses=(f"a whole number, since the default is {default}",))
    if isinstance(default, str) and re.fullmatch(r"-?\d{1,15}\.\d{1,15}", default):
        return ValueType("number", guesses=(f"a number, since the default is {default}",))
    if last in NOTHING_SAID or any(metavar.lower() == name.strip("-").replace("-", "_").lower() for name in names):
        endings = {name.rpartition("-")[2].lower() for name in names}
        if endings & NAMES_OF_INTEGERS:
            return ValueType("integer", guesses=("a whole number, from the name of the option",))
        if endings & NAMES_OF_NUMBERS:
            return ValueType("number", guesses=("a number, from the name of the option",))
        counted = ANY_NUMBER_OF.search(text) or LEVEL.search(text)
    else:
        counted = NUMBER_OF.match(text) or LEVEL.search(text)
    if counted:
        kind = "number" if counted[1].lower() in NUMBERS else "integer"
        return ValueType(kind, guesses=("a number, since the description says so",))
    return ValueType("string")
