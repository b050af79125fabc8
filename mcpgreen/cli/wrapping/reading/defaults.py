"""The default that a help text names. It is for the model to read: nothing is passed on that was not given."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcpgreen.cli.wrapping.reading.choices import words_in

BRACKETED = re.compile(
    r"[\[(]default(?:s to| is)?[:=]? ?(\"[^\"]{0,200}\"|'[^']{0,200}'|[^\]);]{1,200})[\]);]", re.IGNORECASE
)
SAID = r"\bdefault(?:s to|(?: value)?(?: is|:|=| of)?) ?"
NUMBER = re.compile(rf"{SAID}['\"]?(-?\d{{1,15}}(?:\.\d{{1,15}})?)(?![\w%/]|\.\w)", re.IGNORECASE)
WORD = re.compile(
    r"(?:\bdefaults? (?:value )?(?:is|to) |\bdefault: |- default )"
    r"(\"[^\"]{0,200}\"|'[^']{0,200}'|[A-Za-z][\w/:+-]{0,60})(?=[.;,]? |[.;,]?$|\))(?! [\w$<'\"])",
    re.IGNORECASE,
)
MARKED = re.compile(r"([\w+-]{1,30})['\"]? \((?:the )?default\)")
NO_DEFAULT = words_in("none null unset nil map[ stdin stdout stderr sys.stdin sys.stdout ==suppress==")

Default = str | int | float | bool


def default_of(text: str, kind: str, choices: Sequence[str | int]) -> Default | None:
    """The default that the help names, if it is one of this type."""
    if kind in ("integer", "number"):
        value: Default | None = _number(text, kind)
    elif kind == "boolean":
        value = {"true": True, "false": False}.get((_word(text) or "").lower())
    else:
        value = _word(text)
        marked = MARKED.search(text) if choices and value is None else None
        value = marked[1] if marked else value
    return None if choices and value not in choices else value


def _number(text: str, kind: str) -> int | float | None:
    if found := NUMBER.search(text):
        try:
            return int(found[1]) if kind == "integer" else float(found[1])
        except ValueError:
            return None  # 1.5, where only whole numbers are taken
    return None


def _word(text: str) -> str | None:
    """A word, or what stands in quotes. Words about a default are none."""
    found = BRACKETED.search(text) or WORD.search(text)
    if found is None:
        return None
    word = found[1].strip()
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        return word[1:-1]
    is_said = " " in word or word.lower() in NO_DEFAULT or word.startswith(("[", "{", "<"))
    return None if is_said else word
