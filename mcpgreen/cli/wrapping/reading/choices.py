"""Which values an option takes, where the help names all of them.

Rule: a list of choices refuses everything else, so a phrase has to leave no doubt. What is found in running text is a
guess all the same, and comes with a sentence that says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


def words_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What a value may be called; such words are no values themselves.
KINDS = words_in(
    "path file dir directory url uri name pkg package glob pattern id n num number string str value key spec size "
    "user host group date time expr regex commit tag branch ref string range text addr address ip hash"
)
NO_VALUES = KINDS | {"e.g.", "i.e.", "etc", "default", "required", "optional", "deprecated", "or", "and"}

BRACES = re.compile(r"\{([^{}]{1,2000})\}")
WORD = re.compile(r"[\w.+:@/-]+")
SWITCH = re.compile(r"(?:on|yes|true)[/|](?:off|no|false)")
LABELLED = re.compile(r"\[(?:possible values|choices): ([^\[\]]{1,3000})\]|\((?:choices|possible values): ([^()]+)\)")
# clap's long help, and the bullets of manual pages
BULLETED = re.compile(r"[Pp]ossible (?:values|options|modes)(?: are)?: (([-•]) .{1,2000})$")
BULLET = r"(?:^| ){} {{1,8}}([\w.+-]{{1,40}})(?=:| -|$)"
QUOTED = re.compile(
    r"(?:\b[A-Z]{2,20}=|(?:can be|may be|must be|is|are|one of|either|values?:|choices?:) (?:one of )?:?)"
    r"((?: ?(?:\([^()]{1,60}\) ?)?,? ?(?:or |and )?['\"`\u2018][\w.+-]{1,30}['\"\u2019`],?){2,12})"
)
QUOTED_WORD = re.compile(r"['\"`\u2018]([\w.+-]{1,30})['\"\u2019`]")
IN_PARENTHESES = re.compile(r"\(([\w.+-]{1,30}(?:(?:, ?|\||/| \| )[\w.+-]{1,30}){1,15})\)")
IN_BRACKETS = re.compile(r"\[([a-z][\w-]{0,30}(?:, [a-z][\w-]{0,30}){1,15})\]")
FORMATS = re.compile(r"\(([A-Z][A-Z0-9]{1,9}) or ([A-Z][A-Z0-9]{1,9})\)")
ITEM = r"[A-Za-z][\w+-]{0,30}(?: \((?:the )?default\))?"
LIST = rf"({ITEM}(?:(?:, (?:or |and )?| or ){ITEM}){{1,15}})(?=[.;)]|$)"
LISTED = re.compile(rf"\b(?:can be|may be|must be|are|one of|modes?|values?|choices)(?: one of)?(:?) {LIST}")
IS_DEFAULT = re.compile(r" \((?:the )?default\)")
SEPARATORS = re.compile(r", (?:or |and )?| or ")
OPEN_ENDED = re.compile(r"(?i)\b(?:pre-?defined|such as|for example|e\.g\.)")
SEVERAL_IN_ONE = re.compile(r"(?i)\b(?:comma|space|colon)[- ]separated|\blist of\b|\bmappings?\b")

OF_A_KIND = re.compile(r"(?i)\b(?:format|mode|level)\b")  # PEM|DER, which could be PATH|URL otherwise

NAMED_IN_TEXT = "the values are those that the description names"


class Choices(NamedTuple):
    """The words, and what was guessed about them. Without words, anything goes."""

    words: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()


def declared_choices(metavar: str, text: str) -> Choices:
    """What the help writes in the place of the value, or labels as its values."""
    if found := BRACES.fullmatch(metavar):
        words = [word.strip() for word in re.split(r"[,|]", found[1])]
        if len(words) > 1 and all(map(WORD.fullmatch, words)):
            return Choices(tuple(words))
    if said := LABELLED.search(text):
        return Choices(tuple(word.strip().strip("'\"") for word in (said[1] or said[2]).split(",") if word.strip()))
    if SWITCH.fullmatch(metavar):
        return Choices(tuple(re.split(r"[/|]", metavar)))
    if "|" in metavar:
        words = [word.strip() for word in metavar.strip("<>[](){}").split("|")]
        is_literal = not SEVERAL_IN_ONE.search(text) and all(map(WORD.fullmatch, words))
        are_kinds = any(word.isupper() and len(word) > 1 for word in words) and not OF_A_KIND.search(text)
        if is_literal and not are_kinds and not KINDS.intersection(map(str.lower, words)):
            return Choices(tuple(words), () if len(words) > 2 else (f"the only values are {' and '.join(words)}",))
    if found := BULLETED.search(text):
        return Choices(tuple(re.findall(BULLET.format(re.escape(found[2])), found[1])))
    return Choices()


def described_choices(text: str) -> Choices:
    """What the description seems to list."""
    if SEVERAL_IN_ONE.search(text) or OPEN_ENDED.search(text):
        return Choices()
    if found := QUOTED.search(text):
        return Choices(tuple(dict.fromkeys(QUOTED_WORD.findall(found[1]))), (NAMED_IN_TEXT,))
    words: Sequence[str] = ()
    if (found := LISTED.search(text)) and (found[1] or IS_DEFAULT.search(found[2])):
        words = listed_words(found[2])
    elif found := IN_BRACKETS.search(text):
        words = found[1].split(", ")
    elif found := FORMATS.search(text):
        words = found.groups()
    elif found := IN_PARENTHESES.search(text):
        words = re.split(r", ?| ?\| ?|/", found[1])
        is_list = len(words) > 2 or "|" in found[1]
        words = words if is_list and all(word[0].isalpha() for word in words) and "." not in found[1] else ()
    if not words or NO_VALUES & set(words):
        return Choices()
    return Choices(tuple(dict.fromkeys(words)), (NAMED_IN_TEXT,))


def listed_words(text: str) -> list[str]:
    """The words of `always (the default), never, or auto`."""
    return SEPARATORS.split(IS_DEFAULT.sub("", text))
