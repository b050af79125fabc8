"""The head of a function, cut at its commas and colons, and the text below it. The parts are parsed one by one, and
equal ones once for all files (`expressions`): trees of whole heads took a third of the time of a first look.

Rule: this is for heads as most people write them. Whatever is unusual is none, and so is what Python would refuse:
then the file is parsed as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from keyword import iskeyword
from typing import NamedTuple

from mcpgreen.catalog.functions.expressions import expression
from mcpgreen.catalog.functions.module import cleaned, docstring_of
from mcpgreen.catalog.functions.outline import OF_A_FUNCTION, Outline
from mcpgreen.catalog.functions.signatures import Parameter, Signature
from mcpgreen.catalog.functions.syntax import parsed

MAX_HEAD_BYTES = 4096
MAX_PARAMETERS = 64

# Texts and brackets to the depth that types have. Each part begins with a sign that the part before it cannot contain,
# so there is one way to match, and a head that does not is given up in linear time. Whether brackets are of the same
# kind is seen when the part is parsed.
_PLAIN = rb"""[^\[\](){}"'#\\]*"""
_TEXT = rb""""[^"\\\n]*"|'[^'\\\n]*'"""


def _with(inner: bytes) -> bytes:
    return rb"%s(?:(?:%s|[\[(]%s[\])])%s)*" % (_PLAIN, _TEXT, inner, _PLAIN)


_INNER = _with(_with(rb"%s(?:(?:%s)%s)*" % (_PLAIN, _TEXT, _PLAIN)))
_TYPE = rb"[\w.| ]*(?:(?:%s|\[%s[\])])[\w.| ]*)*" % (_TEXT, _INNER)
_VALUE = rb"[\w.+* -]*(?:(?:%s|[\[(]%s[\])])[\w.+* -]*)*" % (_TEXT, _INNER)
_BEGINNING = re.compile(rb"(?:async )?def ([A-Za-z_]\w*)\(")
_PARAMETER = re.compile(
    rb"[ \n]*(?:(\*) *,[ \n]*)?([A-Za-z_]\w*) *: *(?! )(%s)(?:= *(?! )(%s))?(?:\n[ \n]*)?(?:,|(?=\)))" % (_TYPE, _VALUE)
)
_END = re.compile(rb"[ \n]*\) *(?:-> *(?! )(%s))?: *\n" % _TYPE)
_MARK = re.compile(rb"@([A-Za-z_][\w.]*(?:\(%s\))?) *\n" % _INNER)
_QUOTES = (b'"""', b"'''", b'"', b"'")
_OPENING = re.compile(rb'(?: *(?:#[^\n]*)?\n)*("""|\'\'\')')
_END_OF_LINE = re.compile(rb" *\n")
_NOTHING = re.compile(rb"(?: *(?:#[^\n]*)?\n)*")
_LITERAL = rb"""(?:0|[1-9]\d{0,17})(?:\.\d{1,9})?|"[^"\\\n]*"|'[^'\\\n]*'"""
_CONSTANTS = re.compile(rb"(?:(?: *(?:#[^\n]*)?|([A-Z_][A-Z0-9_]*) = (?:%s) *)\n)*" % _LITERAL)
_CONSTANT = re.compile(rb"^([A-Z_][A-Z0-9_]*) = (%s) *\n" % _LITERAL, re.MULTILINE)
PLACE = "__mcpgreen_function__"
_PLACE = PLACE.encode() + b"\n"


class Cut(NamedTuple):
    """A source in its parts: the tree of what stands beside the function, the docstring of the file, and, if there is
    nothing beside it but constants, these in the place of a tree."""

    signature: Signature
    tree: ast.Module | None
    docstring: str
    constants: Sequence[tuple[bytes, bytes]] = ()


def cut(short: Outline) -> Cut | None:
    """None unless there is one function with a decorator, and it is written plainly. Raises what parsing raises."""
    if len(short.decorated) != 1:
        return None
    (function,) = short.decorated
    at = function.before.rfind(b"\n@") + 1
    mark = _MARK.fullmatch(function.before, at)
    docstring = _docstring(function.docstring)
    text_of_file = _text_of_file(short.pieces[0])
    if mark is None or docstring is None or text_of_file is None:
        return None
    above = b"".join([*short.pieces[1 : function.number], function.before[:at]])
    below = b"".join(short.pieces[function.number + OF_A_FUNCTION :])
    if short.pieces[0] and not _END_OF_LINE.match(above):
        return None  # the docstring of the file is a part of something
    signature = _signature(function.head, mark[1], docstring)
    if signature is None:
        return None
    if _NOTHING.fullmatch(below) and (plain := _CONSTANTS.fullmatch(above)):
        return Cut(signature, None, text_of_file, _CONSTANT.findall(above) if plain[1] else [])
    if _PLACE in above or _PLACE in below:
        return None
    tree = parsed(above + _PLACE + below)
    # What looks like a function may be within a text, or in the middle of a line.
    if not any(type(node) is ast.Expr and getattr(node.value, "id", "") == PLACE for node in tree.body):
        return None
    return Cut(signature, tree, text_of_file if short.pieces[0] else docstring_of(tree))


def _signature(head: bytes, mark: bytes, docstring: str) -> Signature | None:
    beginning = _BEGINNING.match(head)
    if beginning is None or len(head) > MAX_HEAD_BYTES or b'"""' in head or b"'''" in head:
        return None
    name = beginning[1].decode()
    parameters, at = _parameters(head, beginning.end())
    ending = _END.fullmatch(head, at)
    if ending is None or iskeyword(name):
        return None
    returns = expression(ending[1].rstrip()) if ending[1] is not None else None
    return Signature(name, parameters, returns, expression(mark).node, docstring)


def _parameters(head: bytes, at: int) -> tuple[list[Parameter], int]:
    """As many as can be read, and where they end."""
    found: list[Parameter] = []
    is_by_name = has_default = False
    while part := _PARAMETER.match(head, at):
        star, name, kind, value = part.groups()
        word = name.decode()
        is_by_name, was_by_name = is_by_name or bool(star), is_by_name
        has_default = has_default or value is not None
        # Python wants a name for what may follow a default, one star, and no words of its own.
        is_refused = (has_default and value is None and not is_by_name) or (star and was_by_name)
        if is_refused or iskeyword(word) or len(found) == MAX_PARAMETERS:
            break
        default = expression(value.rstrip()).node if value is not None else None
        found.append(Parameter(word, expression(kind.rstrip()), default, is_required=value is None))
        at = part.end()
    return found, at


def _docstring(lines: bytes) -> str | None:
    """Empty if there is none; None for one that is not plainly written."""
    text = lines.strip(b" \n")
    if not text:
        return ""
    quote = next((each for each in _QUOTES if text.startswith(each)), b"")
    end = len(text) - len(quote)
    # Its first quotes have to be the last ones: they may be escaped, or those of a second text.
    if not quote or b"\\" in text or text.find(quote, len(quote)) != end or (len(quote) == 1 and b"\n" in text):
        return None
    return cleaned(text[len(quote) : end].decode())


def _text_of_file(piece: bytes) -> str | None:
    if not piece:
        return ""
    opening = _OPENING.match(piece)
    if opening is None or b"\\" in piece:
        return None
    return cleaned(piece[opening.end() : -len(opening[1])].decode())
