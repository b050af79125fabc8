"""One Python file as names: what is imported, which classes, functions and constants it has, and what a name means.

Only what stands at the top of the file counts, also within `if`, `try` and `with`. Nothing is evaluated: a value is
known if it is written down.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

MAX_DEPTH = 32
MAX_VALUES = 1000
MAX_STEPS = 10_000  # what names refer to may be read again and again, and grows with each level
MAX_INTEGER = 1 << 64  # larger ones are no use to clients, and some cannot be written
MAX_IMPORTS = 500  # lines that are remembered
STARRED = {"mcp_tool": ("tool", "run", "Arg", "Block")}  # what `from … import *` brings that matters here
_NUMBERS = (int, float)
_MARGIN = re.compile(r"\n( *)[^ \n]")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Unreadable(Exception):
    """What the source says cannot be known without running it. The text says why, as the end of a sentence."""


class Module:
    def __init__(
        self,
        tree: ast.Module | None,
        imports: Iterable[tuple[bytes | None, bytes]] = (),
        constants: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """`imports` and `constants` are those that the tree does not have, see `Outline` and `Cut`."""
        self.origins: dict[str, str] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.functions: dict[str, Function] = {}
        self.assigned: dict[str, ast.expr | None] = {}  # None for what is assigned more than once
        self.steps = 0
        for place, names in imports:
            self.origins.update(_imported(place, names))
        for name, literal in constants:
            self._assign(name.decode(), ast.Constant(_value_of(literal.decode())))
        for node in statements(tree.body) if tree is not None else ():
            self._take(node)
        self.own_names = self.classes.keys() | self.assigned.keys()
        # What is imported, unless the file has something of its own of this name.
        self.names = self.origins
        if self.own_names:
            self.names = {name: origin for name, origin in self.origins.items() if name not in self.own_names}

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
            self.functions[node.name] = node
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
        """Before each value, class and member that is read. Raises Unreadable for one too many."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Unreadable("there is too much to read in this file")

    def dotted(self, node: ast.AST) -> str:
        """What an expression names, by where it comes from: `typing.List`, `mcp_tool.tool`; a name of this file or of
        Python itself as it is; empty for what is no name."""
        if type(node) is ast.Name:
            return self.names.get(node.id, node.id)
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not attributes or not isinstance(node, ast.Name):
            return ""
        return ".".join([self.dotted(node), *reversed(attributes)])

    def value_of(self, node: ast.expr | None, depth: int = 0) -> Any:
        """What a constant expression says, as JSON would. Raises Unreadable."""
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
        raise Unreadable("it is not written down as a constant")

    def _computed(self, node: ast.BinOp, depth: int) -> Any:
        """60 * 60, and the like."""
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
    if isinstance(value, int) and abs(value) < MAX_INTEGER:
        return value
    if isinstance(value, float) and abs(value) < float("inf"):
        return value
    raise Unreadable("JSON has no such value")


def _value_of(literal: str) -> str | int | float:
    """A text without escapes, or a number without a sign."""
    if literal[0] in "\"'":
        return literal[1:-1]
    return float(literal) if "." in literal else int(literal)


@lru_cache(maxsize=MAX_IMPORTS)
def _imported(place: bytes | None, names: bytes) -> dict[str, str]:
    """What a line `from place import names` brings, or `import names`. Shared: nobody may change it."""
    found: dict[str, str] = {}
    module = place.decode("utf-8", "replace") if place is not None else ""
    for each in names.strip(b"()").decode("utf-8", "replace").split(","):
        words = each.split()  # NAME, or NAME as NAME
        if words:
            found.update(_origins(module, words[0], words[-1] if len(words) == 3 else None))
    return found


def _origins(place: str, name: str, new_name: str | None) -> dict[str, str]:
    """What one name of an import stands for, by the names that it has in the file."""
    if not place:
        top = name.partition(".")[0]
        return {new_name: _standard(name)} if new_name else {top: top}
    names = STARRED.get(place, ()) if name == "*" else (name,)
    return {new_name or each: _standard(f"{place}.{each}") for each in names}


def _standard(origin: str) -> str:
    return origin.replace("typing_extensions.", "typing.", 1)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All of them in order, with those in blocks that are run with the file."""
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            inner = list(node.body)
            if isinstance(node, ast.Try):
                inner += [each for handler in node.handlers for each in handler.body]
            inner += [] if isinstance(node, ast.With) else node.orelse
            inner += node.finalbody if isinstance(node, ast.Try) else []
            pending.extend(reversed(inner))


def docstring_of(node: ast.Module | ast.ClassDef | Function) -> str:
    """Without the indentation of the code. The standard library's own way imports half of itself for this."""
    first = node.body[0] if node.body else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return ""
    text = first.value.value
    return cleaned(text) if isinstance(text, str) else ""


def cleaned(text: str) -> str:
    if "\t" in text:
        text = text.expandtabs()
    margin = min(map(len, _MARGIN.findall(text)), default=0)
    return text.replace("\n" + " " * margin, "\n").strip()
