"""Find the `mcp:` comment in the first lines of a file, whatever the language.

On one line it is a JSON object. With nothing after `mcp:` it is YAML, in the comment lines that follow and are indented
deeper: line comments, or the lines of a block comment (`/* */`, `<!-- -->`, `\"\"\" \"\"\"`, `--[[ ]]`, `=begin`).

Rule: nothing is parsed here. The text of YAML keeps its lines and columns, with blanks for everything else in the file,
so that each place in a message of its parser is the place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mcpgreen.catalog.descriptions import HEAD_BYTES

INLINE_LINES = 10
ARGUMENT = b"@arg"  # see `in_script`

# Prose may mention "mcp:" too, so away from the comment marker only a JSON object after it makes an annotation.
_MARKER = rb"(?:#|//|--|;|%|/?\*|<!--|(?i:rem)\b)"
_INLINE = (
    rb"(?P<marker>\s*" + _MARKER + rb"[#/;%*-]*)(?![#/;%*-])"  # not a part of a longer marker
    rb"(?:(?P<gap>\s*)mcp:|.*?\bmcp:(?=\s*\{))(?P<text>.*)"
)
CLOSER_OF = {
    b'"""': b'"""',
    b"'''": b"'''",
    b"/*": b"*/",
    b"<!--": b"-->",
    b"--[[": b"]]",
    b"=begin": b"=end",
    b"=pod": b"=cut",
    b"{-": b"-}",
    b"(*": b"*)",
    b"<#": b"#>",
}
_OPENER = rb"\s*[rRuU]?(" + b"|".join(map(re.escape, CLOSER_OF)) + rb")"
_BLOCKS = b"|".join(
    re.escape(opener) + rb"(?s:.*?)(?:" + re.escape(end) + rb"|\Z)" for opener, end in CLOSER_OF.items()
)
_COMMENT = rb"(?m)(?:^[ \t\r]*(?:[ru]?(?:" + _BLOCKS + rb")|" + _MARKER + rb"|$).*\n?)+"
_AFTER_OPENER = rb"[*!-]*(\s*)mcp:\s*"
_ALONE = rb"(\s*)mcp:\s*"
_STAR = rb"\s*\*(?=\s|$)"
_MEMBER = rb"""["']?[\w$-]+["']?\s*:(\s|$)"""


class Inline(NamedTuple):
    """An `mcp:` comment: its text, the byte at which the text starts, whether its end was not read, and its line.

    A text of YAML starts at byte 0, with a blank line for each line above it."""

    text: bytes
    start: int
    is_cut: bool
    line: int
    is_yaml: bool = False

    @property
    def end_line(self) -> int:
        """The last line of the comment."""
        return max(self.line, self.text.count(b"\n")) if self.is_yaml else self.line


class _Block(NamedTuple):
    """The form of the lines of YAML: their prefix, the indentation of `mcp:` after it, and the end of the comment."""

    prefix: bytes
    indent: int
    closer: bytes | None


def inline_in(head: bytes, *, is_prose: bool = False) -> Inline | None:
    """Find the annotation in the first lines. `head` is the start of the file, `HEAD_BYTES` at most. Prose may have a
    heading "mcp:", so there an annotation must be an object."""
    if b"mcp:" not in head:
        return None
    rows = head.split(b"\n")
    at = 0
    closer: bytes | None = None  # of the block comment around the line
    # With `@arg` comments, it may be anywhere in the leading comments.
    ends = (number for number, row in enumerate(rows) if row.strip() and not row.lstrip().startswith(b"#"))
    reach = max(INLINE_LINES, next(ends, 0)) if ARGUMENT in head else INLINE_LINES
    for number, row in enumerate(rows[:reach]):
        opener = re.match(_OPENER, row) if closer is None else None
        block = _block_at(row, rows[number + 1 :], opener, closer) if b"mcp:" in row else None
        if block is not None:
            text = _lines_of(rows, number + 1, block)
            is_marked = bool(block.prefix) or opener is not None
            # After a marker, `mcp:` with nothing below is a mistake; in a longer comment it may be a heading.
            if re.match(_MEMBER, text.strip()) if is_prose else is_marked or text.strip():
                unread = len(rows) - text.count(b"\n")  # the last line may have been cut within its prefix
                is_cut = len(head) >= HEAD_BYTES and (unread < 1 or (unread == 1 and block.prefix.startswith(rows[-1])))
                return Inline(text, 0, is_cut, number + 1, is_yaml=True)
        elif match := re.match(_INLINE, row) if b"mcp:" in row else None:
            text = match["text"]
            if not is_prose or text.lstrip().startswith(b"{"):
                start = at + match.start("text") + len(text) - len(text.lstrip())
                is_cut = len(head) >= HEAD_BYTES and number + 1 == len(rows)
                return Inline(text.strip().removesuffix(b"*/").removesuffix(b"-->"), start, is_cut, number + 1)
        if opener is not None and CLOSER_OF[opener[1]] not in row[opener.end() :]:
            closer = CLOSER_OF[opener[1]]
        elif closer is not None and closer in row:
            closer = None
        at += len(row) + 1
    return None


def comments_in(text: bytes) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the comments of a text in lower case, as lines with their numbers. Blank lines do not end a comment."""
    for found in re.finditer(_COMMENT, text):
        yield list(enumerate(found[0].split(b"\n"), 1 + text.count(b"\n", 0, found.start())))


def _block_at(
    row: bytes, following: Sequence[bytes], opener: re.Match[bytes] | None, closer: bytes | None
) -> _Block | None:
    """Return the form of the YAML below this line; None if the line has more than `mcp:`."""
    if opener is not None:
        found = re.fullmatch(_AFTER_OPENER, row[opener.end() :])
        if found is None:
            return None
        star = re.match(_STAR, next((line for line in following if line.strip()), b""))
        prefix, indent = (star[0], len(found[1])) if star else (b"", len(row) - len(row.lstrip()))
        return _Block(prefix, indent, CLOSER_OF[opener[1]])
    if closer is not None and (alone := re.fullmatch(_ALONE, row)):
        return _Block(b"", len(alone[1]), closer)
    marked = re.match(_INLINE, row)
    if marked is None or marked["gap"] is None or marked["text"].strip():
        return None
    return _Block(marked["marker"], len(marked["gap"]), closer)


def _lines_of(rows: Sequence[bytes], first: int, block: _Block) -> bytes:
    """Return the lines of the file from the first one on, with blanks for everything that is not YAML."""
    kept = [b""] * first
    for row in rows[first:]:
        before, ends_here, _ = row.partition(block.closer) if block.closer else (row, b"", b"")
        content = before.rstrip().removeprefix(block.prefix)
        # A tab counts as deeper than a blank, so that the parser sees it and reports it.
        indent = len(content.expandtabs()) - len(content.expandtabs().lstrip())
        if not before.startswith(block.prefix) or (content and indent <= block.indent):
            break
        kept.append(b" " * len(block.prefix) + content if content else b"")
        if ends_here:
            break
    return b"\n".join([*kept, b""])
