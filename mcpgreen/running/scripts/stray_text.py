"""Notice that a script printed something else before its JSON, and say which line it was.

`echo "Loading ..."` before the result turns structured content into text, and the author wonders why. Only what is
cheap to see is looked for: lines, and then one JSON object up to the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mcpgreen.text import jsontext

MAX_BYTES = 1 << 18
MAX_TRIES = 10
SHOWN_CHARS = 60
CLOSING = {"{": "}", "[": "]"}
REMEDY = "print what is not the result to stderr (>&2)"


class Stray(NamedTuple):
    """The first line that is not part of the JSON."""

    line: int
    text: str

    def told(self) -> str:
        """For a log, which repeats nothing of a result."""
        return f"line {self.line} of the output is no JSON; {REMEDY}"

    def shown(self) -> str:
        """For a reader that gets the output anyway."""
        return f"line {self.line} of the output is no JSON ({self.text!r}); {REMEDY}"


def stray_in(chunks: Sequence[bytes], *, openers: str = "{") -> Stray | None:
    """What stands before the JSON; None if nothing does. `openers` are the characters with which JSON may begin that is
    meant as such."""
    if sum(map(len, chunks)) > MAX_BYTES:
        return None
    text = b"".join(chunks).decode("utf-8", "replace").rstrip()
    left_chars = MAX_BYTES  # to parse all that is left takes some tens of milliseconds, and may be in vain
    for at in _beginnings(text, [each for each in openers if text.endswith(CLOSING[each])]):
        left_chars -= len(text) - at
        if left_chars < 0:
            return None
        if _is_json(text[at:]):
            return _first_line(text[:at])
    return None


def _beginnings(text: str, openers: Sequence[str]) -> list[int]:
    """Of the first lines that may begin a JSON text up to the end."""
    found: list[int] = []
    for opener in openers:
        at = 0
        for _ in range(MAX_TRIES):
            at = text.find("\n" + opener, at) + 1
            if not at:
                break
            found.append(at)
    return sorted(found)[:MAX_TRIES]


def _first_line(before: str) -> Stray | None:
    lines = before.splitlines()
    first = next((number for number, line in enumerate(lines, 1) if line.strip()), None)
    if first is None or _is_json(before):
        return None  # several documents are another matter
    line = lines[first - 1].strip()
    return Stray(first, line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 3] + "...")


def _is_json(text: str) -> bool:
    try:
        jsontext.loads(text)
    except ValueError:
        return False
    return True
