"""Whether a file is a function tool, and how its source describes it.

A file is one if it marks a function with `mcp_tool.tool` or calls `mcp_tool.run`. It is parsed, never imported: what
would happen then is the author's business, and the time of a call. What cannot be parsed, because it is too large or
written for a newer Python, is a tool that takes anything.

What was read is remembered by the content of the file: when one of a thousand tools changes, the others are not parsed
again. So it is shared, and nobody may change it.

Rule: parsing cannot be interrupted, so what is parsed has bounds that keep it to some tens of milliseconds.
"""

from __future__ import annotations

import ast
import gc
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcpgreen.catalog.functions.module import Function, Module
from mcpgreen.catalog.functions.outline import Outline, outline
from mcpgreen.catalog.functions.signatures import Note, described

MARK = b"mcp_tool"
SCOPES = b"scopes"
MAX_BYTES = 131_072
MAX_PIECES = 12_000  # names, numbers and signs, also in texts: each becomes an object or two
BRACE = 20  # an opening one is worth so many: in a text, what it holds may be parsed by itself
MAX_NOTES = 20
MAX_KNOWN_BYTES = 4_194_304
# What a marked function looks like where nobody can say for sure.
_LIKELY = re.compile(rb"^[ \t]*@(?:mcp_tool\.)?tool\b|\bmcp_tool\.run\(", re.MULTILINE)
_PIECE = re.compile(rb"\w+|#+|=+|[^\w\s]")

Json = dict[str, Any]


class FunctionTool(NamedTuple):
    """The fields of a description, and what could not be read, as ends of sentences about the file."""

    fields: Json
    notes: list[str]
    is_sound: bool = False  # its schemas have nothing that an author could have got wrong
    hides_scopes: bool = False  # it may need scopes that cannot be read, so nobody must be served


class TooLong(Exception):
    """To parse this would take too long."""


class Known:
    """What was read of the latest sources, as far as these fit into `MAX_KNOWN_BYTES`."""

    def __init__(self) -> None:
        self._found: dict[bytes, FunctionTool | None] = {}
        self._bytes = 0

    def read(self, source: bytes) -> FunctionTool | None:
        if source in self._found:
            return self._found[source]
        found = self._found[source] = _read_uncollected(source)
        self._bytes += len(source)
        while self._bytes > MAX_KNOWN_BYTES:
            earliest = next(iter(self._found))
            del self._found[earliest]
            self._bytes -= len(earliest)
        return found


_known = Known()


def function_tool(source: bytes) -> FunctionTool | None:
    """None for a file that is no function tool. `source` is the file, or more than `MAX_BYTES` of it."""
    return _known.read(source) if MARK in source else None


def _read_uncollected(source: bytes) -> FunctionTool | None:
    # A tree is needed until its end, and then gone at once: the collector would look through it again and again in
    # vain.
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return _read(source)
    finally:
        if is_collecting:
            gc.enable()


def _read(source: bytes) -> FunctionTool | None:
    if len(source) > MAX_BYTES:
        return _unread(source, f"it is larger than {MAX_BYTES} bytes")
    try:
        return _quickly(source) or _described(_parsed(source))
    except TooLong:
        return _unread(source, "it is too long")
    except SyntaxError as error:
        # It may be for a newer Python than ours, so it is not for us to say that it is wrong.
        return _unread(source, f"it cannot be parsed: {error.msg}", line=error.lineno or 1)
    except ValueError as error:  # a NUL
        return _unread(source, f"it cannot be parsed: {error}")
    except (MemoryError, RecursionError, SystemError):
        return _unread(source, "it is nested too deeply")


def _quickly(source: bytes) -> FunctionTool | None:
    """By the outline of a file, if that shows which function is the tool."""
    short = outline(source) if b"@" in source else None
    if short is None:
        return None
    try:
        return _described(_parsed(short.source), short)
    except (SyntaxError, TooLong):
        return None


def _parsed(source: bytes) -> ast.Module:
    braces = BRACE * source.count(b"{")
    if len(source) + braces > MAX_PIECES and len(_PIECE.findall(source)) + braces > MAX_PIECES:
        raise TooLong
    if b"\\" not in source and not any(action == "error" for action, *_ in warnings.filters):
        return _parse(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an escape sequence that does not exist, for one
        return _parse(source)


def _parse(source: bytes) -> ast.Module:
    tree = compile(source, "<tool>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    return tree


def _unread(source: bytes, reason: str, line: int = 1) -> FunctionTool | None:
    if not _LIKELY.search(source):
        return None
    sentence = f"the arguments of its function are not known: {reason}"
    return FunctionTool({}, _sentences([(line, sentence)]), hides_scopes=SCOPES in source)


def _described(tree: ast.Module, short: Outline | None = None) -> FunctionTool | None:
    module = Module(tree, short.imports if short else ())
    if not any(origin.partition(".")[0] == "mcp_tool" for origin in module.origins.values()):
        return None
    marked: list[tuple[Function, ast.expr | None]]
    marked = [(function, mark) for function in module.functions.values() for mark in _marks(module, function)]
    if not marked:
        if short:
            return None  # what is called in a body is not in it
        run = next(_runs(module, tree), None)
        if run is None:
            return None
        marked = [(function, None) for function in _candidates(module, run)]
    if len(marked) != 1:
        names = ", ".join(function.name for function, _ in marked[:5]) or "none"
        line = marked[1][0].lineno if marked else 1
        sentence = f"which function is the tool is not clear: {names}; mark one with @mcp_tool.tool"
        options = [each.arg for _, mark in marked if isinstance(mark, ast.Call) for each in mark.keywords]
        hides_scopes = "scopes" in options or None in options
        return FunctionTool({}, _sentences([(line, sentence)]), hides_scopes=hides_scopes)
    (function, mark), *_ = marked
    found = described(module, function, mark, tree)
    return FunctionTool(found.fields, _sentences(found.notes), found.is_sound, found.hides_scopes)


def _marks(module: Module, function: Function) -> Iterator[ast.expr]:
    for decorator in function.decorator_list:
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        if module.dotted(name) == "mcp_tool.tool":
            yield decorator
            return


def _runs(module: Module, tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and module.dotted(node.func) == "mcp_tool.run":
            yield node


def _candidates(module: Module, run: ast.Call) -> list[Function]:
    """Who is meant by a call of `mcp_tool.run`: whom it names, else every function that others may use, but for the
    one that calls it."""
    named = [run.args[0]] if run.args else [each.value for each in run.keywords if each.arg == "function"]
    if named:
        function = module.functions.get(module.dotted(named[0]))
        return [function] if function is not None else []
    return [
        function
        for name, function in module.functions.items()
        if not name.startswith("_") and not any(node is run for node in ast.walk(function))
    ]


def _sentences(notes: list[Note]) -> list[str]:
    return [f"line {line}: {text}" for line, text in notes[:MAX_NOTES]]
