"""What a help text explains further below about the values of its options.

    FORMAT is one of:          The MODE argument of --cached can be: always, never, or default.

      ln     left justified    Any FIELD is a field number counted from 1.
      rn     right justified

Rule: only what stands at the margin is looked at, and what is listed below it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mcpgreen.cli.wrapping.reading.choices import LIST, listed_words

MAX_LEGENDS = 50
MAX_PARAGRAPH_CHARS = 2000

NUMBER = re.compile(r"\b([A-Z][A-Z0-9_]{1,30}) is an? ((?:[\w-]{1,30} ){0,2})(?:number|integer)\b([^.]{0,200})")
AND_MORE = re.compile(r"\b(?:suffix|unit|prefix|multiplier)")
SENTENCE = re.compile(
    rf"\b([A-Z][A-Z_]{{1,30}})(?: argument(?: of --?[\w-]{{1,40}})?)? (?:is|can be|may be|must be)(?: one of)?: {LIST}"
)
HEADING = re.compile(
    r"\b([A-Z][A-Z_]{1,30})(?: argument)? (?:(?:is|can be|may be|must be)(?: one of)?|options|values):$"
)
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]{0,40}")
ENTRY = re.compile(r" {1,12}([a-z][a-z0-9+-]{0,30}(?:, [a-z][a-z0-9+-]{0,30}){0,3})(?: {2}|$)")


class Legend(NamedTuple):
    """The only values that there are, or the type of them."""

    choices: tuple[str, ...] = ()
    type: str = ""


def legends_in(lines: Sequence[str]) -> dict[str, Legend]:
    """By what the help calls the value, or by the name of the option."""
    legends: dict[str, Legend] = {}
    for text, below in _paragraphs(lines):
        if len(legends) >= MAX_LEGENDS:
            break
        for found in NUMBER.finditer(text):
            if not AND_MORE.search(found[3]):
                legends.setdefault(found[1], Legend(type="number" if "float" in found[2] else "integer"))
        for found in SENTENCE.finditer(text):
            legends.setdefault(found[1], Legend(tuple(listed_words(found[2]))))
        if text.endswith(":"):
            heading, options = HEADING.search(text), OPTION.findall(text)
            subject = heading[1] if heading else options[-1] if options and "values" in text else ""
            words = _listed(lines, below) if subject else ()
            if words:
                legends.setdefault(subject, Legend(words))
    return legends


def _paragraphs(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """What stands at the margin, each paragraph as one line, with the number of the line below it."""
    paragraph: list[str] = []
    for number, line in enumerate([*lines, ""]):
        if line[:1].strip() and not line.startswith("-"):
            paragraph.append(line)
        elif paragraph:
            yield " ".join(paragraph)[:MAX_PARAGRAPH_CHARS], number
            paragraph = []


def _listed(lines: Sequence[str], start: int) -> tuple[str, ...]:
    """The words of a list, whose entries all have the indent of the first; none if one of them is no plain word."""
    words: list[str] = []
    margin = 0
    for line in lines[start : start + 200]:
        indent = len(line) - len(line.lstrip())
        if not line:
            continue
        if indent == 0 or indent < margin:
            break
        margin = margin or indent
        if indent == margin:
            entry = ENTRY.match(line)
            if entry is None:
                return ()
            words += entry[1].split(", ")
    return tuple(words) if len(words) > 1 else ()
