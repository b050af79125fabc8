"""Find out which values an option takes, from how the help names and describes them: choices, type, default.

What the help declares is taken as it is. Everything else is a guess, with a sentence that says so. A default is only
for the model to read: it is not passed on. Legends explain values further below in the text:

    FORMAT is one of:          The MODE argument of --cached can be: always, never, or default.

      ln     left justified    Any FIELD is a field number counted from 1.
      rn     right justified

Rule: a list of choices refuses all other values, so a phrase has to leave no doubt. Where one of them takes more behind
it, as in kubectl's "json|jsonpath=EXPRESSION", the model reads the choices in the description instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple


def words_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names for kinds of values; such words are not values themselves.
KINDS = words_in(
    "path file dir directory url uri name pkg package glob pattern id n num number string str value key spec size "
    "user host group date time expr regex commit tag branch ref string range text addr address ip hash"
)
NO_VALUES = KINDS | {"e.g.", "i.e.", "etc", "default", "required", "optional", "deprecated", "or", "and"}

WORDS = re.compile(r"[\w.+:@/-]+(?: [\w.+:@/-]+){0,4}")
SWITCH = re.compile(r"(?:on|yes|true)/(?:off|no|false)")
LABELLED = re.compile(r"[\[(](?:possible values|choices): ([^\[\]()]{1,3000})[\])]")
# clap's long help, and the bullets of manual pages
BULLETED = re.compile(r"[Pp]ossible (?:values|options|modes)(?: are)?: (([-•]) .{1,2000})$")
BULLET = r"(?:^| ){} {{1,8}}([\w.+-]{{1,40}})(?=:| -|$)"
QUOTED = r"['\"`\u2018][\w.+-]{1,30}(?: [\w.+-]{1,30}){0,4}['\"\u2019`]"
IS_DEFAULT = re.compile(r" \((?:the )?default\)")
BETWEEN = r"(?:, ?(?:or |and )?| or | and | ?\| ?)"
ITEM = rf"(?:[A-Za-z][\w+-]{{0,30}}|{QUOTED})(?:{IS_DEFAULT.pattern})?"
# "One of: json|yaml", "FORMAT must be one of text, csv [default: text].", "MODE can be: always, never, or auto",
# "TYPE is 'binary' (as it is) or 'text'"
STATED = re.compile(
    r"(?:\b[A-Z]{2,20}=|\b(?:[Oo]ne of|can be|may be|must be|is|are|modes?|values?|choices)(?: one of| either)?:? )"
    rf"(?:(?P<quoted>{QUOTED}(?:(?: \([^()]{{1,60}}\))?,? ?(?:or |and )?{QUOTED}){{1,12}})"
    rf"|[(\[{{]?(?P<plain>{ITEM}(?:{BETWEEN}{ITEM}){{1,30}})[)\]}}]?(?= ?[\[(]default|[.;)]|$))"
)
IN_BRACKETS = re.compile(r"[(\[]([A-Za-z][\w+-]{0,30}(?:(?:, ?| ?\| ?|/| or )[A-Za-z][\w+-]{0,30}){1,15})[)\]]")
FORMATS = "[A-Z0-9]+ or [A-Z0-9]+"
# "any but one of a, b": these are the values that it does not take.
EXCLUDED = re.compile(
    r"(?i)\b(?:(?:but|except|excluding|other than|not|never)(?: for)?:? (?:be )?(?:one|any) of|none of)\b"
    r"|\b(?:except|excluding|forbidden|reserved|disallowed|invalid)(?: [a-z]+)?:"
)
OPEN_ENDED = re.compile(r"(?i)\b(?:pre-?defined|such as|for example|e\.g\.)")
SEVERAL_IN_ONE = re.compile(r"(?i)\b(?:comma|space|colon)[- ]separated|\blist of\b|\bmappings?\b")
# Choices that take more behind them: "jsonpath=EXPRESSION", "top N...". kubectl names the two without saying so.
TAKES_MORE = re.compile(r"(?<![\w-])(?!default)[a-z][\w-]{0,40}=|\w['\"]?(?:\.\.\.|…)|\b(?:jsonpath|custom-columns)\b")
OF_A_KIND = re.compile(r"(?i)\b(?:format|mode|level)\b")  # PEM|DER, which could be PATH|URL otherwise

NAMED_IN_TEXT = "the values are named in the description"
LISTED_BELOW = "the values are listed further down in the help"
MAX_CHOICES = 100


class ValueType(NamedTuple):
    """A JSON type with its choices or bounds, and sentences about what was guessed."""

    type: str
    choices: tuple[str | int, ...] = ()
    is_list: bool = False
    minimum: int | None = None
    maximum: int | None = None
    guesses: tuple[str, ...] = ()


def choice_of(words: Iterable[str], *guesses: str) -> ValueType | None:
    """Return the type of a value that has to be one of these words, or None if there are none."""
    choices = tuple(dict.fromkeys(words))
    if not choices:
        return None
    if any(map(TAKES_MORE.search, choices)):
        return ValueType("string")
    if len(choices) > MAX_CHOICES:
        return ValueType("string", guesses=(f"there are {len(choices)} choices, too many to list",))
    if all(re.fullmatch(r"-?\d{1,9}", word) and str(int(word)) == word for word in choices):
        return ValueType("integer", tuple(map(int, choices)), guesses=guesses)
    return ValueType("string", choices, guesses=guesses)


def declared_choices(metavar: str, text: str) -> ValueType | None:
    """Return the choices in the place of the value, or after a label."""
    words = [word.strip() for word in re.split(r"[,|]", metavar.strip("{}"))]
    if metavar.startswith("{") and len(words) > 1 and all(map(WORDS.fullmatch, words)):
        return choice_of(words)
    if said := LABELLED.search(text):
        return choice_of(word.strip().strip("'\"") for word in said[1].split(",") if word.strip())
    if SWITCH.fullmatch(metavar):
        return choice_of(metavar.split("/"))
    if "|" in metavar:
        words = [word.strip() for word in metavar.strip("<>[](){}").split("|")]
        is_literal = not SEVERAL_IN_ONE.search(text) and all(re.fullmatch(r"[\w.+:@/-]+", word) for word in words)
        are_kinds = any(word.isupper() and len(word) > 1 for word in words) and not OF_A_KIND.search(text)
        if is_literal and not are_kinds and not KINDS.intersection(map(str.lower, words)):
            return choice_of(words, *([f"the only values are {' and '.join(words)}"] if len(words) == 2 else []))
    if found := BULLETED.search(text):
        return choice_of(re.findall(BULLET.format(re.escape(found[2])), found[1]))
    return None


def described_choices(text: str, guess: str = NAMED_IN_TEXT) -> ValueType | None:
    """Return the choices that the description seems to list."""
    if any(doubt.search(text) for doubt in (SEVERAL_IN_ONE, OPEN_ENDED, EXCLUDED, TAKES_MORE)):
        return None
    for found in STATED.finditer(text):
        if found["quoted"]:
            return choice_of((word[1:-1] for word in re.findall(QUOTED, found["quoted"])), guess)
        words = [word.strip("'\"") for word in re.split(BETWEEN, IS_DEFAULT.sub("", found["plain"]))]
        is_certain = re.search(r"(?i)one of:? |: ", found[0]) and not NO_VALUES.issuperset(words)
        is_likely = IS_DEFAULT.search(found["plain"]) and not re.search(QUOTED, found["plain"])
        if is_certain or (is_likely and not NO_VALUES.intersection(words)):
            return choice_of(words, guess)
    if listed := IN_BRACKETS.search(text):
        words = re.split(r", ?| ?\| ?|/| or ", listed[1])
        is_list = len(words) > 2 or "|" in listed[1] or listed[0][0] == "[" or bool(re.fullmatch(FORMATS, listed[1]))
        are_alike = len({word.isupper() for word in words}) == 1  # not [SECTION | orphan]: any section
        return choice_of(words, guess) if is_list and are_alike and not NO_VALUES.intersection(words) else None
    return None


MAX_LEGENDS = 50
MAX_PARAGRAPH_CHARS = 2000

# "FORMAT is one of:", "The MODE argument of --cached can be: always or never.", "Any FIELD is a field number."
ABOUT_VALUE = re.compile(
    r"\b([A-Z][A-Z0-9_]{1,30})(?: argument(?: of --?[\w-]{1,40})?)? (?:(?:is|can be|may be|must be)\b|options:|values:)"
    r"[^.]{0,300}"
)
LONG_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]{0,40}")
LIST_ENTRY = re.compile(r" {1,12}([a-z][a-z0-9+-]{0,30}(?:, [a-z][a-z0-9+-]{0,30}){0,3})(?: {2}|$)")


def legends_in(lines: Sequence[str]) -> dict[str, str]:
    """Return what is said about values below the options, by the name of the value, or by the option."""
    legends: dict[str, str] = {}
    parts = [(key, list(part)) for key, part in groupby(lines, lambda line: line[:1].strip() not in ("", "-"))]
    for (is_paragraph, paragraph), (_, below) in pairwise([*parts, (False, [])]):
        text = " ".join(paragraph)[:MAX_PARAGRAPH_CHARS]
        if not is_paragraph or len(legends) >= MAX_LEGENDS:
            continue
        subjects = {found[1]: found[0] for found in ABOUT_VALUE.finditer(text)}
        if text.endswith(":") and "values" in text and not subjects and (options := LONG_OPTION.findall(text)):
            subjects = {options[-1]: text}
        for subject, said in subjects.items():
            listed = ", ".join(_listed(below)) if text.endswith(said) and said.endswith(":") else ""
            legends.setdefault(subject, f"{said} one of {listed}" if listed else said)
    return legends


def _listed(lines: Sequence[str]) -> list[str]:
    """Return the words at the beginning of the rows of a list; none if a row begins with something else."""
    rows = [line for line in lines[:200] if line]
    margin = len(rows[0]) - len(rows[0].lstrip()) if rows else 0
    entries = [LIST_ENTRY.match(row) for row in rows if row[margin : margin + 1] != " "]
    return [word for entry in entries if entry for word in entry[1].split(", ")] if all(entries) else []


# The names of types in libraries.
DECLARED = {
    "integer": "INTEGER|INT|int|int8|int16|int32|int64|uint|uint8|uint16|uint32|uint64|intmax|count",
    "number": "FLOAT|float|float32|float64|decimal",
    "string": "TEXT|STR|PATH|FILE|FILENAME|DIRECTORY|UUID|DATETIME|string|duration|bytes|ip|ipNet|command|CHOICE",
    "boolean": "BOOLEAN|BOOL|bool",
}
DECLARED_TYPES = {word: kind for kind, words in DECLARED.items() for word in words.split("|")}
DECLARED_LISTS = dict.fromkeys(words_in("strings stringArray stringSlice list map stringToString files"), "string")
DECLARED_LISTS |= dict.fromkeys(words_in("ints intSlice uints uintSlice"), "integer")

INTEGERS = words_in(
    "n num number nr int integer count port lines cols col width height depth jobs workers threads "
    "levels retries tries index digits days hours minutes pid uid gid maxdepth procs length quota limit"
)
NUMBERS = words_in("float seconds secs sec ratio fraction decimal percent factor threshold timeout delay interval")
LISTS = words_in("fields columns ranges keys list")  # such as 1,3-5
# Metavars that say nothing, so the name of the option counts instead.
NOTHING_SAID = words_in("value val arg argument x")
IS_NUMBER = re.compile(r" is an? (?:[\w-]{1,30} ){0,2}(?:number|integer)\b")
AND_MORE = re.compile(r"\b(?:suffix|unit|prefix|multiplier)")
NUMBER_OF = re.compile(r"(?i)^(?:the |set )?(?:max(?:imum)?|min(?:imum)?)? ?number of (\w+)")
ANY_NUMBER_OF = re.compile(r"(?i)\bnumber of (\w+)")
LEVEL = re.compile(r"(?i)\bm(?:ax|in)(?:imum)? (?:\w{1,30} )?(level|depth|count)\b")
RANGE = re.compile(r"(?:\[|; )(?:(-?\d{1,15})<=)?x(?:>=(-?\d{1,15}))?(?:<=(-?\d{1,15}))?\]")
REPEATS = re.compile(
    r"(?i)(?:multiple times|more than once|several times|(?:may|can) (?:be repeated|repeat|be used multiple)"
    r"|repeatable|multiple allowed|several -\w's allowed)"
)
COUNTS = re.compile(r"multiple times|repeat|more than once|twice|additive|up to \d times|-(?:vv|qq)\b", re.IGNORECASE)
LIST_BY_DEFAULT = re.compile(r"\(default \[")  # cobra: a type of the program's own that takes several

BRACKETED = re.compile(r"(?i)[\[(]default(?:s to| is)?[:=]? ?(\"[^\"]{0,200}\"|'[^']{0,200}'|[^\]);]{1,200})[\]);]")
DEFAULT_SAID = r"\bdefault(?:s to|(?: value)?(?: is|:|=| of)?) ?"
DEFAULT_NUMBER = re.compile(rf"{DEFAULT_SAID}['\"]?(-?\d{{1,15}}(?:\.\d{{1,15}})?)(?![\w%/]|\.\w)", re.IGNORECASE)
DEFAULT_WORD = re.compile(
    r"(?i)(?:\bdefaults? (?:value )?(?:is|to) |\bdefault: |- default )"
    r"(\"[^\"]{0,200}\"|'[^']{0,200}'|[A-Za-z][\w/:+-]{0,60})(?=[.;,]? |[.;,]?$|\))(?! [\w$<'\"])"
)
MARKED = re.compile(r"([\w+-]{1,30})['\"]? \((?:the )?default\)")
NO_DEFAULT = words_in("none null unset nil map[ stdin stdout stderr sys.stdin sys.stdout ==suppress==")

Default = str | int | float | bool


def value_type(metavar: str, names: Sequence[str], text: str, legend: str = "", are_types: bool = False) -> ValueType:
    """Return the type of one value. With `are_types` the metavar is the type, as with click and cobra."""
    if choices := declared_choices(metavar, text) or described_choices(legend, LISTED_BELOW):
        return choices
    declared = DECLARED_TYPES.get(metavar, "") if are_types else ""
    is_open = declared in ("", "string") and metavar not in ("duration", *DECLARED_LISTS)
    if is_open and (choices := described_choices(text)):
        return choices
    if are_types and (metavar in DECLARED_LISTS or LIST_BY_DEFAULT.search(text)):
        return ValueType(DECLARED_LISTS.get(metavar, "string"), is_list=True)
    if declared:
        bounds = RANGE.search(text) if declared in ("integer", "number") else None
        least, most = (bounds[1] or bounds[2], bounds[3]) if bounds else (None, None)
        return ValueType(declared, minimum=int(least) if least else None, maximum=int(most) if most else None)
    if (number := IS_NUMBER.search(legend)) and not AND_MORE.search(legend):
        kind = "number" if "float" in number[0] else "integer"
        return ValueType(kind, guesses=(f"a number, since the help says that {metavar} is one",))
    return _guessed(metavar, names, text)


def _guessed(metavar: str, names: Sequence[str], text: str) -> ValueType:
    if re.fullmatch(r"\[[+]\]NUM|\+?N|\w+\[\w+\]|.*[/:=,].*", metavar) and metavar != "N":
        return ValueType("string")  # it is more than a number
    words = [word for word in re.split(r"[^A-Za-z]+", re.sub(r"^\[-\]", "", metavar).lower()) if word]
    last, first = (words[-1], words[0]) if words else ("", "")
    if re.search(r"\b(?:multiplier|optional) suffix", text) or last in ("size", "bytes"):
        return ValueType("string")
    is_count = metavar == "#" or last in INTEGERS or (last.endswith("num") and last != "enum")
    default = default_of(text, "string", ()) if last not in LISTS else None
    says_nothing = last in NOTHING_SAID
    says_nothing = says_nothing or any(metavar.lower() == name.strip("-").replace("-", "_").lower() for name in names)
    endings = {name.rpartition("-")[2].lower() for name in names} if says_nothing else set()
    counted = (ANY_NUMBER_OF.search(text) if says_nothing else NUMBER_OF.match(text)) or LEVEL.search(text)
    named = f"since the help calls the value {metavar}"
    said = "a number, since the description says so"
    for is_likely, kind, guess in (
        (is_count or first in ("num", "n", "max"), "integer", f"a whole number, {named}"),
        (last in NUMBERS, "number", f"a number, {named}"),
        (re.search(rf"\b(?:at (?:most|least)|up to) {re.escape(metavar)}\b", text), "integer", said),
        (re.fullmatch(r"-?\d{1,15}", str(default)), "integer", f"a whole number, since the default is {default}"),
        (re.fullmatch(r"-?\d{1,15}\.\d{1,15}", str(default)), "number", f"a number, since the default is {default}"),
        (endings & INTEGERS, "integer", "a whole number, judging by the name of the option"),
        (endings & NUMBERS, "number", "a number, judging by the name of the option"),
        (counted, "number" if counted and counted[1].lower() in NUMBERS else "integer", said),
    ):
        if is_likely:
            return ValueType(kind, guesses=(guess,))
    return ValueType("string")


def default_of(text: str, kind: str, choices: Sequence[str | int]) -> Default | None:
    """Return the default in the help, if it fits the type."""
    value: Default | None = None
    if kind in ("integer", "number"):
        found = DEFAULT_NUMBER.search(text)
        if found and (kind == "number" or "." not in found[1]):
            value = float(found[1]) if kind == "number" else int(found[1])
    elif kind == "boolean":
        value = {"true": True, "false": False}.get((_word(text) or "").lower())
    else:
        value = _word(text)
        if choices and value is None and (marked := MARKED.search(text)):
            value = marked[1]
    return None if choices and value not in choices else value


def _word(text: str) -> str | None:
    """Return the default as a word or quoted text, but no phrase about it."""
    found = BRACKETED.search(text) or DEFAULT_WORD.search(text)
    word = found[1].strip() if found else "none"
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        return word[1:-1]
    is_said = " " in word or word.lower() in NO_DEFAULT or word.startswith(("[", "{", "<"))
    return None if is_said else word
