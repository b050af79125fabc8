"""What kind of value an option takes, from how the help calls it and what it says about it.

What the help says outright is taken as it is. Everything else is a guess, and comes with a sentence that says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

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


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


INTEGERS = _words(
    "n num number nr int integer count port lines cols columns col width height depth jobs workers threads "
    "levels retries tries index digits days hours minutes pid uid gid maxdepth procs length quota"
)
NUMBERS = _words("float seconds secs sec ratio fraction decimal percent factor threshold timeout delay")
# Metavars that say nothing, so that the name of the option is looked at instead.
NOTHING_SAID = _words("value val arg argument x")
NAMES_OF_INTEGERS = _words(
    "port depth maxdepth width height jobs workers threads retries tries lines columns count limit"
)
NAMES_OF_NUMBERS = _words("timeout delay interval seconds")
KINDS = _words(
    "path file dir directory url uri name pkg package glob pattern id n num number string str value key spec size "
    "user host group date time expr regex commit tag branch ref string range text addr address ip hash"
)

CHOICES = re.compile(r"\{([^{}]{1,2000})\}")
WORD = re.compile(r"[\w.+:@/-]+")
SAID_CHOICES = re.compile(
    r"\[(?:possible values|choices): ([^\[\]]{1,3000})\]|\((?:choices|possible values): ([^()]+)\)"
)
QUOTED_CHOICES = re.compile(
    r"(?:can be|may be|must be|is|are|one of|either|values?:|choices?:) (?:one of )?:?"
    r"((?: ?(?:\([^()]{1,60}\) ?)?,? ?(?:or )?['\"`\u2018][\w.+-]{1,30}['\"\u2019`],?){2,12})"
)
LISTED_CHOICES = re.compile(r"\(([\w.+-]{1,30}(?:(?:, ?| ?\| ?|/)[\w.+-]{1,30}){1,15})\)")
DESCRIBED_CHOICES = re.compile(r"Possible values: (- .{1,2000})$")  # clap's long help
DESCRIBED_CHOICE = re.compile(r"(?:^| )- ([\w.+-]{1,40})(?=:| -|$)")
SEVERAL_IN_ONE = re.compile(r"(?i)\b(?:comma|space|colon)[- ]separated|\blist of\b|\bmappings?\b")
NUMBER_OF = re.compile(r"(?i)^(?:the |set )?(?:max(?:imum)?|min(?:imum)?)? ?number of (\w+)")
QUOTED = re.compile(r"['\"`\u2018]([\w.+-]{1,30})['\"\u2019`]")
DEFAULT = re.compile(
    r"[\[(]default(?:s to| is)?[:=]? ?(\"[^\"]{0,200}\"|'[^']{0,200}'|[^\]);]{1,200})[\]);]", re.IGNORECASE
)
RANGE = re.compile(r"(?:\[|; )(?:(-?\d{1,15})<=)?x(?:>=(-?\d{1,15}))?(?:<=(-?\d{1,15}))?\]")
REPEATS = re.compile(
    r"(?:multiple times|more than once|several times|(?:may|can) be (?:repeated|used multiple)|repeatable|"
    r"multiple allowed|several -\w's allowed)",
    re.IGNORECASE,
)
COUNTS = re.compile(r"(?:multiple times|repeat|more than once|additive|up to \d times|-vv)", re.IGNORECASE)
NO_DEFAULT = _words("none null unset nil map[ stdin stdout stderr sys.stdin sys.stdout ==suppress==")


class ValueType(NamedTuple):
    """A JSON type with what bounds it, and the sentences about what was guessed."""

    type: str
    choices: tuple[str | int, ...] = ()
    is_list: bool = False
    minimum: int | None = None
    maximum: int | None = None
    guesses: tuple[str, ...] = ()


def value_type(metavar: str, *, names: Sequence[str], text: str, are_types: bool) -> ValueType:
    """The type of one value. With `are_types` the metavar is the type, as click and cobra have it."""
    choices, guesses = _choices(metavar, text)
    if choices:
        return _of_choices(choices, guesses)
    kind = DECLARED_TYPES.get(metavar, "string") if are_types else "string"
    if kind == "string" and metavar not in ("duration", *DECLARED_LISTS):
        choices, guesses = _choices_in_text(text)
        if choices:
            return _of_choices(choices, guesses)
    if are_types and metavar in DECLARED_LISTS:
        return ValueType(DECLARED_LISTS[metavar], is_list=True)
    if are_types and metavar in DECLARED_TYPES:
        least, most = _range(text) if DECLARED_TYPES[metavar] in ("integer", "number") else (None, None)
        return ValueType(DECLARED_TYPES[metavar], minimum=least, maximum=most)
    return _guessed(metavar, names, text)


def default_of(text: str, kind: str, choices: Sequence[str | int]) -> str | int | float | bool | None:
    """The default that the help names, if it is one of this type."""
    found = DEFAULT.search(text)
    if found is None:
        return None
    word = found[1].strip()
    is_quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "'\""
    word = word[1:-1] if is_quoted else word
    if not is_quoted and (word.lower() in NO_DEFAULT or word.startswith(("[", "{", "<"))):
        return None
    try:
        if kind == "integer":
            value: str | int | float | bool = int(word)
        elif kind == "number":
            value = float(word)
            if value - value != 0:  # nan, inf: nothing that JSON has
                return None
        elif kind == "boolean":
            if word.lower() not in ("true", "false"):
                return None
            value = word.lower() == "true"
        else:
            # Words about a default are no default.
            if not is_quoted and (" " in word or not word):
                return None
            value = word
    except ValueError:
        return None
    return None if choices and value not in choices else value


def is_said_to_repeat(text: str) -> bool:
    return REPEATS.search(text) is not None


def is_said_to_count(text: str) -> bool:
    return COUNTS.search(text) is not None


def _choices(metavar: str, text: str) -> tuple[list[str], tuple[str, ...]]:
    if found := CHOICES.fullmatch(metavar):
        words = re.split(r"[,|]", found[1])
        if len(words) > 1 and all(map(WORD.fullmatch, map(str.strip, words))):
            return [word.strip() for word in words], ()
    if said := SAID_CHOICES.search(text):
        return [word.strip().strip("'\"") for word in (said[1] or said[2]).split(",") if word.strip()], ()
    if "|" in metavar:
        words = [word.strip() for word in metavar.strip("<>[](){}").split("|")]
        is_literal = (
            not SEVERAL_IN_ONE.search(text)
            and all(map(WORD.fullmatch, words))
            and not any(word.isupper() and len(word) > 1 for word in words)
        )
        if is_literal and not KINDS & set(words):
            return words, () if len(words) > 2 else (f"the only values are {' and '.join(words)}",)
    if found := DESCRIBED_CHOICES.search(text):
        words = DESCRIBED_CHOICE.findall(found[1])
        if words:
            return words, ()
    return [], ()


def _choices_in_text(text: str) -> tuple[list[str], tuple[str, ...]]:
    if SEVERAL_IN_ONE.search(text):
        return [], ()
    guess = ("the values are those that the description names",)
    if found := QUOTED_CHOICES.search(text):
        return list(dict.fromkeys(QUOTED.findall(found[1]))), guess
    if found := LISTED_CHOICES.search(text):
        words = re.split(r", ?| ?\| ?|/", found[1])
        is_list = len(words) > 2 or ("|" in found[1] and len(words) == 2)
        is_about_values = not {"e.g.", "i.e.", "etc", "default"} & set(words) and not KINDS & set(words)
        if is_list and is_about_values and all(word[0].isalpha() for word in words) and "." not in found[1]:
            return list(dict.fromkeys(words)), guess
    return [], ()


def _of_choices(words: Sequence[str], guesses: tuple[str, ...]) -> ValueType:
    words = list(dict.fromkeys(words))
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
    if last in INTEGERS or first in ("num", "n", "max") or re.fullmatch(r"(?i)n|num\d?", metavar):
        return ValueType("integer", guesses=(f"a whole number, since the help calls the value {metavar}",))
    if last in NUMBERS:
        return ValueType("number", guesses=(f"a number, since the help calls the value {metavar}",))
    default = default_of(text, "string", ())
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
    if found := NUMBER_OF.match(text):
        kind = "number" if found[1].lower() in NUMBERS else "integer"
        return ValueType(kind, guesses=("a number, since the description says so",))
    return ValueType("string")
