"""Words and signs of the small jq, read one at a time.

On demand and not in advance: a string may hold filters, and only the reader of the language knows where they end.
"""

from __future__ import annotations

import re

from .values import loads, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOKEN = re.compile(
    r"""(?:\s|\#[^\n]*)*
    (?: (?P<number> (?:\d+\.?\d*|\.\d+) (?:[eE][+-]?\d+)? )
      | (?P<field> \.[A-Za-z_]\w* )
      | (?P<variable> \$[A-Za-z_]\w* )
      | (?P<format> @\w+ )
      | (?P<name> [A-Za-z_]\w* )
      | (?P<sign> \|=|//=|//|[-+*/%]=|==|!=|<=|>=|\.\.|[][(){}|,:;=<>+*/%.?"-] )
      | (?P<end> \Z )
    )""",
    re.VERBOSE | re.ASCII,
)
KEYWORDS = frozenset(
    (
        *("and", "or", "if", "then", "elif", "else", "end", "try", "catch"),
        *("def", "as", "reduce", "foreach", "label", "break"),
    )
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"'}


class Mistake(Exception):
    """The text is not a filter that we know."""


class Tokens:
    """A text, and a place in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._read_at = -1
        self._token = ("", "", 0)

    def peek(self) -> tuple[str, str]:
        """Kind and text of what comes next; it is not consumed."""
        if self._read_at != self.at:
            match = TOKEN.match(self.text, self.at)
            if match is None:
                raise Mistake(f"{self.rest()} makes no sense here")
            kind = match.lastgroup or "end"
            self._token = (kind, match.group(kind), match.end())
            self._read_at = self.at
        return self._token[:2]

    def rest(self) -> str:
        text = self.text[self.at :].strip()
        return repr(text if len(text) <= 30 else text[:27] + "...") if text else "the end"

    def take(self) -> str:
        text = self.peek()[1]
        self.at = self._token[2]
        return text

    def accept(self, *texts: str) -> str:
        """The next sign or word if it is one of these, otherwise nothing."""
        kind, text = self.peek()
        return self.take() if kind in ("sign", "name") and text in texts else ""

    def expect(self, kind: str, text: str) -> str:
        found = self.peek()
        if found[0] != kind or (text and found[1] != text):
            raise Mistake(f"{self.rest()} stands where {text or 'a ' + kind if kind != 'end' else 'the end'} should be")
        return self.take()

    def next_is(self, characters: str) -> bool:
        """Whether the next token is directly followed by one of these."""
        self.peek()
        following = self.text[self._token[2] : self._token[2] + 1]
        return following != "" and following in characters

    def letters(self) -> tuple[str, bool]:
        """The string from here to its end, or to a filter inside it; and whether it is over."""
        found = ""
        while letter := self.text[self.at : self.at + 1]:
            self.at += 1
            if letter == '"':
                return found, True
            if letter != "\\":
                found += letter
            elif self.text[self.at : self.at + 1] == "(":
                self.at += 1
                return found, False
            else:
                found += self.escape()
        raise Mistake("a string does not end")

    def escape(self) -> str:
        """One character, behind its backslash; two escapes where it takes them."""
        letter = self.text[self.at : self.at + 1]
        if letter in ESCAPES:
            self.at += 1
            return ESCAPES[letter]
        for length in (11, 5):
            try:
                character = str(loads(f'"\\{self.text[self.at : self.at + length]}"'))
            except ValueError:
                continue
            if len(character) == 1:
                self.at += length
                return character
        raise Mistake(f"\\{letter} is no escape in a string")


def number_of(text: str) -> Any:
    return int(text) if text.isdigit() else number(float(text))
