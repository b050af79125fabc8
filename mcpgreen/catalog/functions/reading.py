"""Whether a file is a function tool, and how its source describes it.

A file is one if it marks a function with `mcp_tool.tool` or calls `mcp_tool.run`. It is parsed, never imported: what
would happen then is the author's business, and the time of a call. What cannot be parsed, because it is too large or
written for a newer Python, is a tool that takes anything.

What was read is remembered by the content of the file: when one of a thousand tools changes, the others are not parsed
again. So it is shared, and nobody may change it.

Rule: what is read by the text of a head is what the tree of the file would say, or it is not read so.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcpgreen.catalog.functions.module import Function, Module, docstring_of
from mcpgreen.catalog.functions.outline import Outline, outline
from mcpgreen.catalog.functions.signatures import Note, described, signature_of
from mcpgreen.catalog.functions.syntax import TooLong, is_short, parsed
from mcpgreen.running.scripts.shebang import BYTE_ORDER_MARK

MARK = b"mcp_tool"
SCOPES = b"scopes"
MAX_BYTES = 131_072
MAX_NOTES = 20
FEW = 50  # of so many sources, trees take less time than to compile the patterns of `heads`
MAX_KNOWN_BYTES = 4_194_304
# What a marked function looks like where nobody can say for sure.
_LIKELY = re.compile(rb"^[ \t]*@(?:mcp_tool\.)?tool\b|\bmcp_tool\.run\(", re.MULTILINE)

Json = dict[str, Any]


class FunctionTool(NamedTuple):
    """The fields of a description, and what could not be read, as ends of sentences about the file."""

    fields: Json
    notes: list[str]
    is_sound: bool = False  # its schemas have nothing that an author could have got wrong
    hides_scopes: bool = False  # it may need scopes that cannot be read, so nobody must be served


class Known:
    """What was read of the latest sources, as far as these fit into `MAX_KNOWN_BYTES`."""

    def __init__(self) -> None:
        self._found: dict[bytes, FunctionTool | None] = {}
        self._bytes = 0

    def read(self, source: bytes) -> FunctionTool | None:
        if source in self._found:
            return self._found[source]
        found = self._found[source] = _read_uncollected(source, is_one_of_many=len(self._found) >= FEW)
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


def _read_uncollected(source: bytes, *, is_one_of_many: bool) -> FunctionTool | None:
    # A tree is needed until its end, and then gone at once: the collector would look through it again and again in
    # vain.
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return _read(source, is_one_of_many=is_one_of_many)
    finally:
        if is_collecting:
            gc.enable()


def _read(source: bytes, *, is_one_of_many: bool = True) -> FunctionTool | None:
    if len(source) > MAX_BYTES:
        return _unread(source, f"it is larger than {MAX_BYTES} bytes")
    try:
        return _quickly(source, is_one_of_many=is_one_of_many) or _described(parsed(source))
    except TooLong:
        return _unread(source, "it is too long")
    except SyntaxError as error:
        # It may be for a newer Python than ours, so it is not for us to say that it is wrong.
        return _unread(source, f"it cannot be parsed: {error.msg}", line=error.lineno or 1)
    except ValueError as error:  # a NUL
        return _unread(source, f"it cannot be parsed: {error}")
    except (MemoryError, RecursionError, SystemError):
        return _unread(source, "it is nested too deeply")


def _quickly(source: bytes, *, is_one_of_many: bool) -> FunctionTool | None:
    """By the outline of a file, if that shows which function is the tool."""
    short = outline(source) if b"@" in source else None
    if short is None:
        return None
    try:
        found = _by_head(source, short) if is_one_of_many else None
        return found or _described(parsed(short.source), short)
    except (SyntaxError, TooLong):
        return None


def _by_head(source: bytes, short: Outline) -> FunctionTool | None:
    """By the text of the one function that has a decorator, if it is the tool and there is nothing to note."""
    from mcpgreen.catalog.functions import heads

    try:
        cut = heads.cut(short) if is_short(source) and _is_plain(source) else None
        if cut is None or cut.signature.mark is None:
            return None
        module = Module(cut.tree, short.imports, cut.constants)
        if module.functions or not _is_mark(module, cut.signature.mark) or not _imports_sdk(module):
            return None
        found = described(module, cut.signature, lambda: cut.docstring)
    except (SyntaxError, ValueError, TooLong, MemoryError, RecursionError, SystemError):
        return None
    return None if found.notes else FunctionTool(found.fields, [], found.is_sound, found.hides_scopes)


def _is_plain(source: bytes) -> bool:
    """Whether the bytes of a source are those of its text: in UTF-8, with the line ends of Unix."""
    if b"\r" in source or b"\0" in source or source.startswith(BYTE_ORDER_MARK):
        return False
    if b"coding" in source[: source.find(b"\n", source.find(b"\n") + 1)]:  # of the first two lines
        return False
    try:
        return source.isascii() or bool(source.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _unread(source: bytes, reason: str, line: int = 1) -> FunctionTool | None:
    if not _LIKELY.search(source):
        return None
    sentence = f"the arguments of its function are not known: {reason}"
    return FunctionTool({}, _sentences([(line, sentence)]), hides_scopes=SCOPES in source)


def _described(tree: ast.Module, short: Outline | None = None) -> FunctionTool | None:
    module = Module(tree, short.imports if short else ())
    if not _imports_sdk(module):
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
    found = described(module, signature_of(function, mark), lambda: docstring_of(tree))
    return FunctionTool(found.fields, _sentences(found.notes), found.is_sound, found.hides_scopes)


def _imports_sdk(module: Module) -> bool:
    origins = reversed(module.origins.values())  # what is not of Python itself is imported last
    return any(origin.partition(".")[0] == "mcp_tool" for origin in origins)


def _marks(module: Module, function: Function) -> Iterator[ast.expr]:
    for decorator in function.decorator_list:
        if _is_mark(module, decorator):
            yield decorator
            return


def _is_mark(module: Module, decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return module.dotted(name) == "mcp_tool.tool"


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
