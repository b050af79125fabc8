"""Find out whether a file is a function tool, and how its source describes it.

A file is one if it marks a function with `mcp_tool.tool` or calls `mcp_tool.run`. It is parsed, never imported: its
code runs only when the tool is called. A file that cannot be parsed, because it is too large or written for a newer
Python, is a tool that takes anything.

Rule: scopes protect a tool. If a file marks functions in a way that is not understood here and mentions scopes, it is
not served at all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mcpgreen.catalog.functions.module import Function, Module, TooLong, parsed
from mcpgreen.catalog.functions.signatures import FunctionTool, SignatureReader

SDK = b"mcp_tool"
MARK = "mcp_tool.tool"
MAX_BYTES = 131_072
MAX_NOTES = 20
# What a marked function looks like in a file that cannot be parsed.
_LIKELY = re.compile(rb"^[ \t]*@(?:mcp_tool\.)?tool\b|\bmcp_tool\.run\(", re.MULTILINE)
_SCOPES = re.compile(r"scopes?", re.IGNORECASE)


def function_tool(source: bytes) -> FunctionTool | None:
    """The tool in a file; None if the file is no function tool. `source` is the file, or its first `MAX_BYTES` + 1."""
    if SDK not in source:
        return None
    if len(source) > MAX_BYTES:
        return _unread(source, f"it is larger than {MAX_BYTES} bytes")
    try:
        return _described(parsed(source))
    except TooLong:
        return _unread(source, "it is too long")
    except SyntaxError as error:
        # The file may be correct: it may be written for a newer Python.
        return _unread(source, f"it cannot be parsed: {error.msg}", line=error.lineno or 1)
    except ValueError as error:  # a NUL
        return _unread(source, f"it cannot be parsed: {error}")
    except (MemoryError, RecursionError, SystemError):
        return _unread(source, "it is nested too deeply")


def _unread(source: bytes, reason: str, line: int = 1) -> FunctionTool | None:
    hides_scopes = _SCOPES.search(source.decode("utf-8", "replace")) is not None
    if not hides_scopes and not _LIKELY.search(source):
        return None
    note = f"line {line}: the arguments of its function are not known: {reason}"
    return FunctionTool({}, [note], hides_scopes)


def _described(tree: ast.Module) -> FunctionTool | None:
    module = Module(tree)
    if not any(origin.partition(".")[0] == "mcp_tool" for origin in module.origins.values()):
        return None
    marked: list[tuple[Function, ast.expr | None]]
    marked = [(function, mark) for function in module.all_functions for mark in _marks(module, function)]
    hides_scopes = _mentions_scopes_elsewhere(module, tree, [mark for _, mark in marked if mark is not None])
    if not marked:
        run = next(_runs(module, tree), None)
        if run is None:
            return FunctionTool({}, [], hides_scopes=True) if hides_scopes else None
        marked = [(function, None) for function in _candidates(module, run)]
    if len(marked) != 1 or marked[0][0].name in module.redefined:
        options = [each.arg for _, mark in marked if isinstance(mark, ast.Call) for each in mark.keywords]
        hides_scopes |= any(name is None or _SCOPES.fullmatch(name) for name in options)
        return FunctionTool({}, [_unclear([function for function, _ in marked])], hides_scopes)
    function, mark = marked[0]
    found = SignatureReader(module, function).described(mark, ast.get_docstring(tree) or "")
    return FunctionTool(found.fields, found.notes[:MAX_NOTES], hides_scopes or found.hides_scopes)


def _unclear(functions: list[Function]) -> str:
    """Say why it is not clear which of these functions is the tool."""
    names = [function.name for function in functions]
    line = functions[-1].lineno if functions else 1
    if len(set(names)) == 1:
        return f"line {line}: it takes anything: {names[0]} is defined more than once; define it once"
    shown = ", ".join(names[:5]) or "none"
    return f"line {line}: which function is the tool is not clear: {shown}; mark one with @mcp_tool.tool"


def _mentions_scopes_elsewhere(module: Module, tree: ast.Module, marks: list[ast.expr]) -> bool:
    """Tell whether scopes may be demanded in another way than by these decorators: under another name, by `partial`, in
    a call, for a nested function. The word alone is not enough: other libraries have scopes, too."""
    read = {id(part) for mark in marks for part in ast.walk(mark)}
    decorators = {id(each) for node in ast.walk(tree) for each in getattr(node, "decorator_list", ())}
    is_used_otherwise = is_mentioned = False
    for node in ast.walk(tree):
        if id(node) in read:
            continue
        if isinstance(node, (ast.Name, ast.Attribute)):
            is_used_otherwise |= module.imported(node) == MARK
        elif isinstance(node, ast.keyword):
            is_mentioned |= node.arg is None or _SCOPES.fullmatch(node.arg) is not None
        elif isinstance(node, ast.Constant):
            is_mentioned |= isinstance(node.value, str) and _SCOPES.fullmatch(node.value) is not None
        if isinstance(node, ast.Call) and id(node) in decorators:
            is_used_otherwise |= any(_SCOPES.fullmatch(each.arg or "") for each in node.keywords)
    return is_used_otherwise and is_mentioned


def _marks(module: Module, function: Function) -> list[ast.expr]:
    """The decorator that makes the function a tool, if it has one."""
    decorators = function.decorator_list
    names = [each.func if isinstance(each, ast.Call) else each for each in decorators]
    return [each for each, name in zip(decorators, names, strict=True) if module.dotted(name) == MARK][:1]


def _runs(module: Module, tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and module.dotted(node.func) == "mcp_tool.run":
            yield node


def _candidates(module: Module, run: ast.Call) -> list[Function]:
    """The functions that a call of `mcp_tool.run` may mean: the one it names, or else every public function apart from
    the one with the call."""
    named = [run.args[0]] if run.args else [each.value for each in run.keywords if each.arg == "function"]
    if named:
        function = module.functions.get(module.dotted(named[0]))
        return [function] if function is not None else []
    return [
        function
        for name, function in module.functions.items()
        if not name.startswith("_") and not any(node is run for node in ast.walk(function))
    ]
