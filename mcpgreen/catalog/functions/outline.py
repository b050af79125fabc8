"""A Python source without the bodies of its functions, which nobody needs who wants to know their signatures.

Parsing takes most of the time that reading a function tool takes, and most of a file are bodies. Lines keep their
numbers. What is a body is guessed from the indentation, so this is only for a source that is parsed afterwards, and
wherever the guess cannot be relied on, there is no outline.
"""

from __future__ import annotations

import re

MAX_TRIES = 6  # colons at the end of a line, before one ends the head of a function

_OPENING = re.compile(rb'(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*)?\r?\n)*[rRuU]?("""|\'\'\')')
_FUNCTION = re.compile(rb"^(?:async[ \t]+)?def[ \t]", re.MULTILINE)
_END_OF_HEAD = re.compile(rb":[ \t]*(?:#[^\n]*)?\r?\n")
_DOCSTRING = re.compile(rb'(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]+[rRuU]?("""|\'\'\'|"|\')')
_NOT_INDENTED = re.compile(rb"^[^\s#]", re.MULTILINE)
_QUOTES = (b'"""', b"'''")
_BRACKETS = (b"()", b"[]", b"{}")


def outline(source: bytes) -> bytes | None:
    """None if it cannot be had."""
    if not source.endswith(b"\n"):
        source += b"\n"  # so that no comment is looked through in vain, again and again
    kept: list[bytes] = []
    at = _after_docstring(source)
    done = 0
    while function := _FUNCTION.search(source, at):
        body = _body_after(source, function.start())
        if body is None:
            return None
        start, has_docstring = body
        following = _NOT_INDENTED.search(source, start)
        at = following.start() if following else len(source)
        dropped = source[start:at]
        if any(dropped.count(quotes) % 2 for quotes in _QUOTES):
            return None  # it ends within a text
        kept += [source[done:start], b"" if has_docstring else b" pass", b"\n" * dropped.count(b"\n")]
        done = at
    return b"".join([*kept, source[done:]])


def _after_docstring(source: bytes) -> int:
    opening = _OPENING.match(source)
    if opening is None:
        return 0
    return max(source.find(opening[1], opening.end()), 0)


def _body_after(source: bytes, at: int) -> tuple[int, bool] | None:
    """Where that part of a body begins that follows the docstring, and whether there is one."""
    end = at
    for _ in range(MAX_TRIES):
        head = _END_OF_HEAD.search(source, end)
        if head is None:
            return None
        end = head.end()
        text = source[at:end]
        if all(text.count(pair[:1]) == text.count(pair[1:]) for pair in _BRACKETS):
            break
    else:
        return None
    docstring = _DOCSTRING.match(source, end)
    if docstring is None:
        return end, False
    closing = source.find(docstring[1], docstring.end())
    line_end = source.find(b"\n", closing)
    return (line_end + 1, True) if closing >= 0 and line_end >= 0 else None
