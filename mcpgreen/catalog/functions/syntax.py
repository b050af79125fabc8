"""Source text to syntax trees and back, within bounds.

Rule: parsing cannot be interrupted, so what is parsed has bounds that keep it to some tens of milliseconds.
"""

from __future__ import annotations

import ast
import re
import warnings

MAX_PIECES = 12_000  # names, numbers and signs, also in texts: each becomes an object or two
MAX_SHOWN_NODES = 50  # of a type that nobody knows
BRACE = 20  # an opening one is worth so many: in a text, what it holds may be parsed by itself
_PIECE = re.compile(rb"\w+|#+|=+|[^\w\s]")


class TooLong(Exception):
    """To parse this would take too long."""


def is_short(source: bytes) -> bool:
    """Whether this is within the bounds at first sight, and with it every part of it."""
    return len(source) + BRACE * source.count(b"{") <= MAX_PIECES


def parsed(source: bytes) -> ast.Module:
    """Raises TooLong, and what `compile` raises."""
    tree = _tree(source, "exec")
    assert isinstance(tree, ast.Module)
    return tree


def parsed_expression(text: bytes) -> ast.expr:
    """The same for a single expression."""
    tree = _tree(text, "eval")
    assert isinstance(tree, ast.Expression)
    return tree.body


def _tree(source: bytes, mode: str) -> ast.AST:
    if not is_short(source) and len(_PIECE.findall(source)) + BRACE * source.count(b"{") > MAX_PIECES:
        raise TooLong
    if b"\\" not in source and not any(action == "error" for action, *_ in warnings.filters):
        return _compiled(source, mode)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an escape sequence that does not exist, for one
        return _compiled(source, mode)


def _compiled(source: bytes, mode: str) -> ast.AST:
    return compile(source, "<tool>", mode, ast.PyCF_ONLY_AST, dont_inherit=True)


def shown(node: ast.AST) -> str:
    """As it is written, shortened; what is long is not written out."""
    if not _is_short(node):
        return f"in line {getattr(node, 'lineno', 1)}"
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return "here"
    return text if len(text) <= 60 else text[:57] + "..."


def _is_short(node: ast.AST) -> bool:
    pending: list[ast.AST] = [node]
    seen = 0
    while pending:
        seen += 1
        node = pending.pop()
        for _, value in ast.iter_fields(node):
            below = value if isinstance(value, list) else [value]
            if seen + len(pending) + len(below) > MAX_SHOWN_NODES:
                return False
            pending += [each for each in below if isinstance(each, ast.AST)]
    return True
