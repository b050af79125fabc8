"""Types and defaults as they stand in the heads of functions: each with its tree and what it has turned out to mean.

A thousand tools have some dozens of types among them. So what is written in the same way is parsed once, and if it
names nothing of the file that it stands in, what it means is known as well.

Rule: what is kept here belongs to all files that have the same text, so nobody may change it, and no line number of it
means anything.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from mcpgreen.catalog.functions.syntax import parsed_expression

MAX_KEPT = 500
MAX_KEPT_BYTES = 500  # of one text
MAX_MEANINGS = 8  # of one text: by what the names in it are in different files
_WORD = re.compile(r"[^\W\d]\w*")


class Expression:
    """`names` are all that could refer to something; None if what it means is not to be kept."""

    __slots__ = ("meanings", "names", "node")

    def __init__(self, node: ast.expr, names: tuple[str, ...] | None = None) -> None:
        self.node = node
        self.names = names
        self.meanings: dict[Any, Any] = {}

    def keep(self, key: Any, meaning: Any) -> None:
        if len(self.meanings) < MAX_MEANINGS:
            self.meanings[key] = meaning


_kept: dict[bytes, Expression] = {}


def expression(text: bytes) -> Expression:
    """What is written so. Raises what parsing it raises."""
    found = _kept.get(text)
    if found is None:
        node = parsed_expression(text)
        if len(text) > MAX_KEPT_BYTES:
            return Expression(node)
        found = _kept[text] = Expression(node, _names_in(node))
        if len(_kept) > MAX_KEPT:
            del _kept[next(iter(_kept))]
    return found


def _names_in(node: ast.expr) -> tuple[str, ...]:
    names: dict[str, None] = {}
    pending: list[Any] = [node]
    while pending:
        each = pending.pop()
        if type(each) is ast.Name:
            names[each.id] = None
        elif type(each) is ast.Constant:
            if isinstance(each.value, str):  # it may be a type in quotes
                names.update(dict.fromkeys(_WORD.findall(each.value)))
        elif type(each) is list:
            pending += each
        elif isinstance(each, ast.AST):
            pending += [getattr(each, field) for field in each._fields]
    return tuple(names)
