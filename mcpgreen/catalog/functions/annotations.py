"""Make a JSON schema of an annotation in the source of a function.

Schemas are written out in place, because many clients follow no references. Inside itself, a class is an open object. A
type that is too deep or too large is not read.

Rule: the SDK has to convert values by the same types (`mcp_tool_functions.conversion`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mcpgreen.catalog.functions.classes import ClassReader, choices
from mcpgreen.catalog.functions.module import MAX_DEPTH, Module, Unreadable, shown
from mcpgreen.text.json_types import Json

MAX_PARTS = 1000  # in all schemas of a tool: nested classes multiply
MAX_QUOTED_CHARS = 1000  # of an annotation in quotes

PLAIN: dict[str, Json] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "object": {},
    "typing.Any": {},
    "typing.Text": {"type": "string"},
    "typing.LiteralString": {"type": "string"},
    "types.NoneType": {"type": "null"},
    "pathlib.Path": {"type": "string"},
    "decimal.Decimal": {"type": "number"},
    "datetime.datetime": {"type": "string", "format": "date-time"},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.time": {"type": "string", "format": "time"},
    "uuid.UUID": {"type": "string", "format": "uuid"},
}
_ABC = ("typing", "collections.abc")
SEQUENCES = frozenset(
    {"list", "typing.List", "collections.deque", "typing.Deque"}
    | {f"{place}.{name}" for place in _ABC for name in ("Sequence", "MutableSequence", "Iterable", "Collection")}
)
SETS = frozenset(
    {"set", "frozenset", "typing.Set", "typing.FrozenSet", "typing.AbstractSet", "typing.MutableSet"}
    | {"collections.abc.Set", "collections.abc.MutableSet"}
)
MAPPINGS = frozenset(
    {"dict", "typing.Dict", "typing.OrderedDict", "typing.DefaultDict", "collections.OrderedDict"}
    | {"collections.defaultdict"}
    | {f"{place}.{name}" for place in _ABC for name in ("Mapping", "MutableMapping")}
)
TUPLES = frozenset({"tuple", "typing.Tuple"})
CONTAINERS = SEQUENCES | SETS | MAPPINGS | TUPLES
WRAPPERS = frozenset(
    {"typing.Required", "typing.NotRequired", "typing.ReadOnly", "typing.Final", "dataclasses.InitVar"}
)
KEYWORDS = frozenset(
    {"title", "description", "default", "examples", "enum", "const", "format", "pattern", "deprecated", "readOnly"}
    | {"minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "writeOnly"}
    | {"minProperties", "maxProperties", "propertyNames", "contentEncoding", "contentMediaType"}
)


class Schemas:
    """Reads the annotations of one file. `notes` name the members of classes that could not be read."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.notes: list[str] = []
        self.classes = ClassReader(module)
        self.is_input = True  # the schema of a parameter forbids unknown members, that of a result does not
        self._parts = 0
        self._depth = 0

    def of_parameter(self, node: ast.expr) -> Json:
        """The schema of a parameter. Raises Unreadable."""
        self.is_input = True
        return self.schema(node)

    def of_result(self, node: ast.expr) -> tuple[Json | None, bool]:
        """The schema of a result, and whether the result is always an object; the schema is None for text and content
        blocks. Raises Unreadable."""
        if self._is_text(node) or self._may_be_content(node):
            return None, False
        self.is_input = False
        return self.schema(node), self._is_object(node)

    def schema(self, node: ast.expr) -> Json:
        """The schema of a type, or of a part of one. Raises Unreadable."""
        self._parts += 1
        if self._depth > MAX_DEPTH or self._parts > MAX_PARTS:
            raise Unreadable("the type is too large")
        self._depth += 1
        try:
            return self._schema(node)
        finally:
            self._depth -= 1

    def _schema(self, node: ast.expr) -> Json:
        name = self.module.dotted(node)
        if name in PLAIN:
            return dict(PLAIN[name])
        if name in CONTAINERS:
            return self._container(name, [])
        if name in self.module.classes:
            return self.classes.schema(self, name)
        if aliased := self.module.assigned.get(name):
            return self._aliased(aliased)
        if isinstance(node, ast.Constant) and node.value is None:
            return {"type": "null"}
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.schema(_unquoted(node.value))
        if isinstance(node, ast.Constant):
            raise Unreadable(f"{shown(node)} is no type")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._union(_operands(node))
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        raise Unreadable(f"the type {shown(node)} is not known here")

    def _aliased(self, node: ast.expr) -> Json:
        if isinstance(node, ast.Call) and self.module.dotted(node.func) == "typing.NewType" and len(node.args) == 2:
            node = node.args[1]
        return self.schema(node)

    def _subscript(self, node: ast.Subscript) -> Json:
        name, inner = self.module.dotted(node.value), _elements(node)
        if name == "typing.Literal":
            return self._literal(inner)
        if name == "typing.Optional":
            return self._union([inner[0], ast.Constant(None)])
        if name == "typing.Union":
            return self._union(inner)
        if name == "typing.Annotated":
            return {**self.schema(inner[0]), **self._remarks(inner[1:])}
        if name in WRAPPERS and len(inner) == 1:
            return self.schema(inner[0])
        if name in CONTAINERS:
            return self._container(name, inner)
        raise Unreadable(f"the type {shown(node)} is not known here")

    def _remarks(self, nodes: list[ast.expr]) -> Json:
        """The keywords that an Annotated adds to its type, by a text or an Arg."""
        found: Json = {}
        for node in nodes:
            if isinstance(node, ast.Name) and (value := self.module.assigned.get(node.id)):
                node = value
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.setdefault("description", node.value)
            elif isinstance(node, ast.Call) and self.module.dotted(node.func) in ("mcp_tool.Arg", "typing.Doc"):
                if node.args:
                    found["description"] = self.module.value_of(node.args[0])
                found.update(self._keywords(node))
        return found

    def _keywords(self, call: ast.Call) -> Json:
        found: Json = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                raise Unreadable("Arg has keywords that are not written down")
            if keyword.arg not in KEYWORDS:
                raise Unreadable(f"Arg has no keyword {keyword.arg}")
            try:
                found[keyword.arg] = self.module.value_of(keyword.value)
            except Unreadable as error:
                raise Unreadable(f"{keyword.arg} of Arg cannot be read: {error}") from None
        return found

    def _literal(self, nodes: list[ast.expr]) -> Json:
        values: dict[tuple[type, str], Any] = {}
        for node in nodes:
            if isinstance(node, ast.Subscript):  # a Literal in a Literal
                found = self._literal(_elements(node)).get("enum", [])
            else:
                owner, _, member = self.module.dotted(node).rpartition(".")
                is_member = owner in self.module.classes
                found = [self.classes.member(owner, member) if is_member else self.module.value_of(node)]
            for value in found:
                values.setdefault((type(value), repr(value)), value)
        return choices(list(values.values()))

    def _union(self, nodes: list[ast.expr]) -> Json:
        branches: list[Json] = []
        for node in nodes:
            found = self.schema(node)
            for branch in found["anyOf"] if found.keys() == {"anyOf"} else [found]:
                if branch not in branches:
                    branches.append(branch)
        if {} in branches:
            return {}
        if {"type": "number"} in branches and {"type": "integer"} in branches:
            branches.remove({"type": "integer"})
        return branches[0] if len(branches) == 1 else {"anyOf": branches}

    def _container(self, name: str, inner: list[ast.expr]) -> Json:
        if name in MAPPINGS:
            if len(inner) == 2 and self.module.dotted(inner[0]) not in ("str", "int", "typing.Any", "object"):
                self.classes.require_key(inner[0])
            values = self.schema(inner[1]) if len(inner) == 2 else {}
            return {"type": "object", **({"additionalProperties": values} if values else {})}
        if name in TUPLES and inner:
            return _tuple(inner, self.schema)
        schema: Json = {"type": "array", "items": self.schema(inner[0]) if inner else {}}
        return {**schema, "uniqueItems": True} if name in SETS else schema

    def _alternatives(self, node: ast.expr) -> list[ast.expr]:
        """The types of a union, or the one type, without quotes and Annotated. Raises Unreadable."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._alternatives(_unquoted(node.value))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return [each for operand in _operands(node) for each in self._alternatives(operand)]
        outer, inner = self._parts_of(node)
        if inner and outer == "typing.Annotated":
            return self._alternatives(inner[0])
        if inner and outer in ("typing.Union", "typing.Optional"):
            found = [each for part in inner for each in self._alternatives(part)]
            return [*found, ast.Constant(None)] if outer == "typing.Optional" else found
        return [node]

    def _parts_of(self, node: ast.expr) -> tuple[str, list[ast.expr]]:
        """The name of a type, and the types in its brackets."""
        if isinstance(node, ast.Subscript):
            return self.module.dotted(node.value), _elements(node)
        return self.module.dotted(node), []

    def _may_be_content(self, node: ast.expr) -> bool:
        """Tell whether a result of this type may be content blocks or a picture, which no schema describes."""
        return any(map(self._is_content, self._alternatives(node)))

    def _is_content(self, node: ast.expr) -> bool:
        name, inner = self._parts_of(node)
        if name in MAPPINGS:
            return len(inner) != 2 or self.module.dotted(inner[1]) in ("typing.Any", "object")
        if name in SEQUENCES | TUPLES:
            return not inner or any(map(self._may_be_content, inner))
        return name in ("typing.Any", "object", "pathlib.Path", "mcp_tool.Block")

    def _is_text(self, node: ast.expr) -> bool:
        """Tell whether a result of this type is a text, or nothing."""
        names = ("str", "typing.Text", "typing.NoReturn", "typing.Never")
        return all(
            each.value is None if isinstance(each, ast.Constant) else self.module.dotted(each) in names
            for each in self._alternatives(node)
        )

    def _is_object(self, node: ast.expr) -> bool:
        """Tell whether a result of this type is always an object, which needs no object around it."""
        for each in self._alternatives(node):
            name, _ = self._parts_of(each)
            if aliased := self.module.assigned.get(name):
                if not self._is_object(aliased):
                    return False
            elif name not in MAPPINGS and (name not in self.module.classes or self.classes.is_enum(name)):
                return False
        return True


def _unquoted(text: str) -> ast.expr:
    """The annotation in a string. Raises Unreadable."""
    try:
        return ast.parse(text[:MAX_QUOTED_CHARS].strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Unreadable(f"{text[:60]!r} is no type") from None


def _tuple(inner: list[ast.expr], schema_of: Callable[[ast.expr], Json]) -> Json:
    if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
        return {"type": "array", "items": schema_of(inner[0])}
    if len(inner) == 1 and isinstance(inner[0], ast.Tuple) and not inner[0].elts:  # tuple[()]
        return {"type": "array", "items": {}, "maxItems": 0}
    places = [schema_of(each) for each in inner]
    distinct = [place for index, place in enumerate(places) if place not in places[:index]]
    bounds = {"minItems": len(places), "maxItems": len(places)}
    if len(distinct) == 1:
        return {"type": "array", "items": distinct[0], **bounds}
    # For clients that do not know prefixItems, and want to know what is in every array.
    return {"type": "array", "prefixItems": places, "items": {"anyOf": distinct}, **bounds}


def _operands(node: ast.expr) -> list[ast.expr]:
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def _elements(node: ast.Subscript) -> list[ast.expr]:
    inner = node.slice
    return list(inner.elts) if isinstance(inner, ast.Tuple) and inner.elts else [inner]
