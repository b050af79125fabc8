"""A Python source without what nobody needs who wants to know the signature of a marked function: the bodies of its
functions, and functions without a decorator. The imports at its top are read here.

Parsing takes most of the time that reading a function tool takes, and most of a file are bodies. Lines keep their
numbers. What is a body is guessed from the indentation, so this is only for a source that is parsed afterwards, and
wherever the guess cannot be relied on, there is no outline.
"""

from __future__ import annotations

import re
from functools import lru_cache
from keyword import iskeyword
from typing import NamedTuple

MAX_LISTS = 500  # of imported names that are remembered
MAX_TRIES = 6  # colons at the end of a line, before one ends the head of a function

_OPENING = re.compile(rb'(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*)?\r?\n)*[rRuU]?("""|\'\'\')')
_FUNCTION = re.compile(rb"\n(?:async )?def ")
_END_OF_HEAD = re.compile(rb":[ \t]*(?:#[^\n]*)?\r?\n")
_DOCSTRING = re.compile(rb'(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]+[rRuU]?("""|\'\'\'|"|\')')
_NOT_INDENTED = re.compile(rb"\n[^\s#]")
_DEFINITION = re.compile(rb"\n(?:@|class |def |async )")
_NAMES = rb"[A-Za-z_]\w*(?:[ \n]*,[ \n]*[A-Za-z_]\w*)*(?:[ \n]*,)?"
_IMPORT = re.compile(rb"\n(?:from ([\w.]+) )?import (\w[\w., ]*|\([ \n]*%s[ \n]*\))(?=\n)" % _NAMES)
_STATEMENT = re.compile(rb"\n[^\s#)\]}]")  # that begins a line, unlike the end of a head


OF_A_FUNCTION = 4


class Decorated(NamedTuple):
    """A function with a decorator: what stands before it since the one before, its head, and its docstring. In the
    outline it is `OF_A_FUNCTION` pieces from this number on."""

    number: int
    before: bytes
    head: bytes
    docstring: bytes


class Outline(NamedTuple):
    """What is left of a source, in pieces, and what has been taken out as (module, names), the module None for a mere
    import. The first piece ends with the docstring of the file, if it has one."""

    pieces: list[bytes]
    imports: list[tuple[bytes | None, bytes]]
    decorated: list[Decorated]

    @property
    def source(self) -> bytes:
        return b"".join(self.pieces)


def outline(source: bytes) -> Outline | None:
    """None if it cannot be had."""
    if not source.endswith(b"\n"):
        source += b"\n"  # so that no comment is looked through in vain, again and again
    done = _after_docstring(source)
    kept = [source[:done]]
    imports: list[tuple[bytes | None, bytes]] = []
    decorated: list[Decorated] = []
    definition = _DEFINITION.search(source, done)
    at = definition.start() + 1 if definition else len(source)
    top = source[done:at]
    if b'"""' not in top and b"'''" not in top:
        parts = _IMPORT.split(top)  # texts, and between two of them a module and names
        imports = list(zip(parts[1::3], parts[2::3], strict=True))
        if not all(_are_names(place, names) for place, names in imports):
            return None
        for text, names in zip(parts[::3], parts[2::3], strict=False):
            kept += (text, b"\n" * (1 + names.count(b"\n")))
        kept.append(parts[-1])
        done = at
    while function := _FUNCTION.search(source, max(at - 1, 0)):
        begin = function.start() + 1
        end = _end_of_head(source, begin)
        start = end and _end_of_docstring(source, end)
        if not start:
            return None
        following = _NOT_INDENTED.search(source, start - 1)
        at = following.start() + 1 if following else len(source)
        dropped = source[start:at]
        if _ends_within_text(dropped):
            return None
        before = source[done:begin]
        if _is_decorated(before):
            decorated.append(Decorated(len(kept), before, source[begin:end], source[end:start]))
            kept += (before, source[begin:start], b" pass" if start == end else b"", b"\n" * dropped.count(b"\n"))
        else:
            kept += (before, b"\n" * source.count(b"\n", begin, at))
        done = at
    kept.append(source[done:])
    return Outline(kept, imports, decorated)


@lru_cache(maxsize=MAX_LISTS)
def _are_names(place: bytes | None, names: bytes) -> bool:
    """Whether brackets are where they may be, and have in them what may be imported."""
    if not names.startswith(b"("):
        return True
    return place is not None and not any(iskeyword(each.strip()) for each in names[1:-1].decode().split(","))


def _after_docstring(source: bytes) -> int:
    opening = _OPENING.match(source)
    if opening is None:
        return 0
    closing = source.find(opening[1], opening.end())
    return closing + len(opening[1]) if closing >= 0 else 0


def _is_decorated(before: bytes) -> bool:
    """Whether a function has a decorator, or may have one, that follows this."""
    since_class = before[max(before.rfind(b"\nclass "), 0) :]
    return b"\n@" in since_class or since_class[:1] == b"@" or _ends_within_text(since_class)


def _ends_within_text(source: bytes) -> bool:
    return source.count(b'"""') % 2 == 1 or source.count(b"'''") % 2 == 1


def _end_of_head(source: bytes, at: int) -> int | None:
    """Where the line ends that ends the head of a function."""
    end = at
    for _ in range(MAX_TRIES):
        head = _END_OF_HEAD.search(source, end)
        if head is None:
            return None
        end = head.end()
        text = source[at:end]
        is_even = text.count(b"(") == text.count(b")") and text.count(b"[") == text.count(b"]")
        if is_even and text.count(b"{") == text.count(b"}"):
            return None if _STATEMENT.search(source, at, end - 1) else end
    return None


def _end_of_docstring(source: bytes, at: int) -> int | None:
    """Where the line ends that ends the docstring of a body; where the body begins if it has none."""
    docstring = _DOCSTRING.match(source, at)
    if docstring is None:
        return at
    closing = source.find(docstring[1], docstring.end())
    line_end = source.find(b"\n", closing)
    return line_end + 1 if closing >= 0 and line_end >= 0 else None
