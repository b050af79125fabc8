"""Parse one Python file, and look up its names: imports, classes, functions and constants.

Only the top level of the file counts, and the blocks of `if`, `try` and `with` there. Nothing is evaluated: a value is
known if it is written as a constant.

Rule: parsing cannot be interrupted, so the length of a source is limited to what takes some tens of milliseconds.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

MAX_PIECES = 12_000  # names, numbers and signs, also in strings: each becomes an object or two
BRACE = 20  # an opening brace counts as so many pieces: in an f-string, its content is parsed separately
MAX_SHOWN_NODES = 50  # of an expression in a message
MAX_DEPTH = 32
MAX_VALUES = 1000
MAX_STEPS = 10_000  # a value that is used many times is read many times
MAX_INTEGER = 1 << 64  # larger ones are no use to clients, and some cannot be written
STARRED = {"mcp_tool": ("tool", "run", "Arg", "Block")}  # the names that matter here of `from … import *`
_NUMBERS = (int, float)
_PIECE = re.compile(rb"\w+|#+|=+|[^\w\s]")

Function = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Unreadable(Exception):
    """The meaning of an expression cannot be known without running it. The text is the end of a sentence."""


class TooLong(Exception):
    """Parsing this source would take too long."""


def parsed(source: bytes) -> ast.Module:
    """Raises TooLong, and whatever `compile` raises."""
    is_short = len(source) + BRACE * source.count(b"{") <= MAX_PIECES
    if not is_short and len(_PIECE.findall(source)) + BRACE * source.count(b"{") > MAX_PIECES:
        raise TooLong
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about an unknown escape sequence, for example
        return ast.parse(source, "<tool>")


def shown(node: ast.AST) -> str:
    """An expression as a message shows it: shortened, or only its line if it is long."""
    if len(list(islice(ast.walk(node), MAX_SHOWN_NODES + 1))) > MAX_SHOWN_NODES:
        return f"on line {getattr(node, 'lineno', 1)}"
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return "here"
    return text if len(text) <= 60 else text[:57] + "..."


class Module:
    """The names at the top level of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self.origins: dict[str, str] = {}  # of imported names: {"List": "typing.List"}
        self.classes: dict[str, ast.ClassDef] = {}
        self.all_functions: list[Function] = []
        self.assigned: dict[str, ast.expr | None] = {}  # None for what is assigned more than once
        self.steps = 0
        for node in statements(tree.body):
            self._take(node)
        self.functions = {function.name: function for function in self.all_functions}
        own_names = self.classes.keys() | self.assigned.keys()
        self._visible = {name: origin for name, origin in self.origins.items() if name not in own_names}

    def _take(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.origins.update(_origins("", alias.name, alias.asname))
        elif isinstance(node, ast.ImportFrom):
            place = f"{'.' * node.level}{node.module or ''}"
            for alias in node.names:
                self.origins.update(_origins(place, alias.name, alias.asname))
        elif isinstance(node, ast.ClassDef):
            self.classes[node.name] = node
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.all_functions.append(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._assign(target.id, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            if isinstance(node.target, ast.Name):
                self._assign(node.target.id, node.value if isinstance(node, ast.AnnAssign) else None)
        elif type(node).__name__ == "TypeAlias":  # `type X = …`, from Python 3.12 on
            alias_node: Any = node
            self._assign(alias_node.name.id, alias_node.value)

    def _assign(self, name: str, value: ast.expr | None) -> None:
        self.assigned[name] = None if name in self.assigned else value

    def step(self) -> None:
        """Count one value, class or member that is read. Raises Unreadable if there are too many."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Unreadable("the file has too many types and values to read")

    def dotted(self, node: ast.AST) -> str:
        """The full name of an expression: `typing.List`, `mcp_tool.tool`, or the plain name of something of this file
        or of Python itself. Empty for an expression that is no name."""
        if isinstance(node, ast.Name):
            return self._visible.get(node.id, node.id)
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not attributes or not isinstance(node, ast.Name):
            return ""
        return ".".join([self.dotted(node), *reversed(attributes)])

    def decorator_name(self, node: ast.expr) -> str:
        return self.dotted(node.func if isinstance(node, ast.Call) else node)

    def imported(self, node: ast.Name | ast.Attribute) -> str:
        """The full name under which this was imported, even if the file also assigns something else to it."""
        if isinstance(node, ast.Name):
            return self.origins.get(node.id, "")
        return f"{self.imported(node.value)}.{node.attr}" if isinstance(node.value, (ast.Name, ast.Attribute)) else ""

    def value_of(self, node: ast.expr | None, depth: int = 0) -> Any:
        """The value of a constant expression, as JSON has it. Raises Unreadable."""
        self.step()
        if depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        if isinstance(node, ast.Constant):
            return _json_constant(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            value = self.value_of(node.operand, depth + 1)
            if isinstance(value, _NUMBERS) and not isinstance(value, bool):
                return -value if isinstance(node.op, ast.USub) else value
        elif isinstance(node, ast.BinOp):
            return self._computed(node, depth)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)) and len(node.elts) <= MAX_VALUES:
            return [self.value_of(element, depth + 1) for element in node.elts]
        elif isinstance(node, ast.Dict) and len(node.keys) <= MAX_VALUES:
            pairs = zip(node.keys, node.values, strict=True)
            found = [(self.value_of(key, depth + 1), self.value_of(value, depth + 1)) for key, value in pairs]
            if all(isinstance(key, str) for key, _ in found):
                return dict(found)
        elif isinstance(node, ast.Name) and self.assigned.get(node.id) is not None:
            return self.value_of(self.assigned[node.id], depth + 1)
        raise Unreadable("it is not a constant")

    def _computed(self, node: ast.BinOp, depth: int) -> Any:
        """The value of `60 * 60` and the like."""
        left, right = self.value_of(node.left, depth + 1), self.value_of(node.right, depth + 1)
        if all(type(side) in _NUMBERS for side in (left, right)):
            if isinstance(node.op, ast.Mult):
                return _json_constant(left * right)
            if isinstance(node.op, (ast.Add, ast.Sub)):
                return _json_constant(left + right if isinstance(node.op, ast.Add) else left - right)
        raise Unreadable("it is computed")


def _json_constant(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, _NUMBERS) and abs(value) < (MAX_INTEGER if isinstance(value, int) else float("inf")):
        return value
    raise Unreadable("JSON cannot represent this value")


def _origins(place: str, name: str, new_name: str | None) -> dict[str, str]:
    """The full names behind one name of an import, by their names in the file."""
    if not place:
        top = name.partition(".")[0]
        return {new_name: _standard(name)} if new_name else {top: top}
    names = STARRED.get(place, ()) if name == "*" else (name,)
    return {new_name or each: _standard(f"{place}.{each}") for each in names}


def _standard(origin: str) -> str:
    return origin.replace("typing_extensions.", "typing.", 1)


def times_bound(tree: ast.Module, *, has_globals: bool) -> Counter[str]:
    """How often each name may get a meaning when the file runs, by whatever statement, also `global`."""
    pending: list[ast.AST] = list(tree.body)
    times: Counter[str] = Counter()
    while pending:
        node = pending.pop()
        found = [getattr(node, each, None) for each in ("asname", "name", "rest", "id")]
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            times[str(next(filter(None, found), "")).partition(".")[0]] += 1
        if not isinstance(node, (Function, ast.ClassDef, ast.Lambda, *COMPREHENSIONS)):
            pending.extend(ast.iter_child_nodes(node))
    for node in ast.walk(tree) if has_globals else ():
        times.update(2 * node.names if isinstance(node, ast.Global) else ())
    return times


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements in order, with those in blocks that run when the file runs."""
    pending: list[Any] = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
            parts = (getattr(node, field, []) for field in ("body", "handlers", "orelse", "finalbody"))
            pending.extend(reversed([each for part in parts for each in part]))
