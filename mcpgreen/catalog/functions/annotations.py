"""From an annotation, as it stands in the source, to a JSON schema.

Schemas are written out in place: many clients follow no references. A class that holds itself ends as an open object,
and what is too deep or too large is not read.

Rule: what is read here, the SDK has to convert in the same way (`mcp_tool_conversion`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mcpgreen.catalog.functions.classes import ClassReader
from mcpgreen.catalog.functions.expressions import Expression
from mcpgreen.catalog.functions.module import MAX_DEPTH, MAX_STEPS, Module, Unreadable
from mcpgreen.catalog.functions.syntax import shown

Json = dict[str, Any]

MAX_PARTS = 1000  # of all schemas of a tool: classes in classes grow with each level
MAX_TEXT_CHARS = 1000  # of an annotation in quotes

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
FALLIBLE = frozenset({"pattern", "propertyNames", "contains"})  # hold what may be wrong beyond its type


class Schemas:
    """Reads the annotations of one file. `notes` are of what could not be read within a class: its line, and why."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.notes: list[tuple[int, str]] = []
        self.classes = ClassReader(module)
        self.is_sound = True  # all keywords of JSON Schema are those that stand here
        self._parts = 0
        self._texts: dict[ast.AST, str] = {}

    def of_parameter(self, written: Expression) -> Json:
        """For whoever asks alone, but for what is in it. Raises Unreadable."""
        schema: Json = self._meaning(written, self._as_input)
        return dict(schema)

    def of_result(self, written: Expression) -> tuple[Json | None, bool]:
        """In the same way, and whether the result always is an object. None for text and content blocks."""
        schema, is_object = self._meaning(written, self._as_output)
        return None if schema is None else dict(schema), is_object

    def _as_input(self, node: ast.expr) -> Json:
        return self.schema(node, is_input=True)

    def _as_output(self, node: ast.expr) -> tuple[Json | None, bool]:
        if self.is_text(node) or self.is_content(node):
            return None, False
        return self.schema(node, is_input=False), self.is_object(node)

    def _meaning(self, written: Expression, read: Callable[[ast.expr], Any]) -> Any:
        """What it was in another file, if all of its names are the same here; what it took to read it counts again."""
        if written.names is None or not self.module.own_names.isdisjoint(written.names):
            return read(written.node)
        key = (read.__name__, *map(self.module.names.get, written.names))
        if key in written.meanings:
            meaning, parts, steps, is_sound = written.meanings[key]
            self._parts += parts
            self.module.steps += steps
        else:
            parts, steps, was_sound = self._parts, self.module.steps, self.is_sound
            self.is_sound = True
            meaning, is_sound = read(written.node), self.is_sound
            self.is_sound = was_sound
            written.keep(key, (meaning, self._parts - parts, self.module.steps - steps, is_sound))
        self.is_sound = self.is_sound and is_sound
        if self._parts > MAX_PARTS or self.module.steps > MAX_STEPS:
            raise Unreadable("the type is too large")
        return meaning

    def schema(self, node: ast.expr, *, is_input: bool, depth: int = 0) -> Json:
        """Raises Unreadable. What is for input says which members there are; what comes out may have more."""
        self._parts += 1
        if depth > MAX_DEPTH or self._parts > MAX_PARTS:
            raise Unreadable("the type is too large")
        name = self.module.dotted(node)
        if not name:
            return self._expression(node, is_input=is_input, depth=depth)
        plain = PLAIN.get(name)
        if plain is not None:
            return dict(plain)
        if name in CONTAINERS:
            return self._container(name, [], is_input=is_input, depth=depth)
        if name in self.module.classes:
            return self.classes.schema(self, name, is_input=is_input, depth=depth)
        if aliased := self.module.assigned.get(name):
            return self._aliased(aliased, is_input=is_input, depth=depth)
        raise Unreadable(f"the type {self._shown(node)} is not known here")

    def _expression(self, node: ast.expr, *, is_input: bool, depth: int) -> Json:
        if isinstance(node, ast.Constant):
            return self._constant(node, is_input=is_input, depth=depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._union(_operands(node), is_input=is_input, depth=depth)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, is_input=is_input, depth=depth)
        raise Unreadable(f"the type {self._shown(node)} is not known here")

    def _aliased(self, node: ast.expr, *, is_input: bool, depth: int) -> Json:
        if isinstance(node, ast.Call) and self.module.dotted(node.func) == "typing.NewType" and len(node.args) == 2:
            node = node.args[1]
        return self.schema(node, is_input=is_input, depth=depth + 1)

    def _constant(self, node: ast.Constant, *, is_input: bool, depth: int) -> Json:
        if node.value is None:
            return {"type": "null"}
        if isinstance(node.value, str):
            return self.schema(unquoted(node.value), is_input=is_input, depth=depth + 1)
        raise Unreadable(f"{self._shown(node)} is no type")

    def _subscript(self, node: ast.Subscript, *, is_input: bool, depth: int) -> Json:
        name, inner = self.module.dotted(node.value), _elements(node)
        if name == "typing.Literal":
            return self._literal(inner)
        if name == "typing.Optional" and inner:
            return self._union([inner[0], ast.Constant(None)], is_input=is_input, depth=depth)
        if name == "typing.Union":
            return self._union(inner, is_input=is_input, depth=depth)
        if name == "typing.Annotated" and inner:
            return {
                **self.schema(inner[0], is_input=is_input, depth=depth + 1),
                **self.remarks(inner[1:]),
            }
        if name in WRAPPERS and len(inner) == 1:
            return self.schema(inner[0], is_input=is_input, depth=depth + 1)
        if name in CONTAINERS:
            return self._container(name, inner, is_input=is_input, depth=depth)
        raise Unreadable(f"the type {self._shown(node)} is not known here")

    def _shown(self, node: ast.AST) -> str:
        if node not in self._texts:
            self._texts[node] = shown(node)
        return self._texts[node]

    def remarks(self, nodes: list[ast.expr]) -> Json:
        """What an Annotated says besides the type: a text, or an Arg."""
        found: Json = {}
        for node in nodes:
            if isinstance(node, ast.Name) and (value := self.module.assigned.get(node.id)):
                node = value
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.setdefault("description", node.value)
            elif isinstance(node, ast.Call):
                name = self.module.dotted(node.func)
                if name in ("mcp_tool.Arg", "typing.Doc"):
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
                self.is_sound = self.is_sound and keyword.arg not in FALLIBLE
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

    def _union(self, nodes: list[ast.expr], *, is_input: bool, depth: int) -> Json:
        branches: list[Json] = []
        for node in nodes:
            found = self.schema(node, is_input=is_input, depth=depth + 1)
            for branch in found["anyOf"] if found.keys() == {"anyOf"} else [found]:
                if branch not in branches:
                    branches.append(branch)
        if {} in branches:
            return {}
        if {"type": "number"} in branches and {"type": "integer"} in branches:
            branches.remove({"type": "integer"})
        return branches[0] if len(branches) == 1 else {"anyOf": branches}

    def _container(self, name: str, inner: list[ast.expr], *, is_input: bool, depth: int) -> Json:
        def of(node: ast.expr) -> Json:
            return self.schema(node, is_input=is_input, depth=depth + 1)

        if name in MAPPINGS:
            if len(inner) == 2 and self.module.dotted(inner[0]) not in ("str", "int", "typing.Any", "object"):
                self.classes.require_key(inner[0])
            values = of(inner[1]) if len(inner) == 2 else {}
            return {"type": "object", **({"additionalProperties": values} if values else {})}
        if name in TUPLES and inner:
            return _tuple(inner, of)
        schema: Json = {"type": "array", "items": of(inner[0]) if inner else {}}
        return {**schema, "uniqueItems": True} if name in SETS else schema

    def is_content(self, node: ast.expr) -> bool:
        """Whether a result of this type may be content blocks or a picture, about which a schema could say nothing."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.is_content(unquoted(node.value))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return any(map(self.is_content, _operands(node)))
        name = self.module.dotted(node.value if isinstance(node, ast.Subscript) else node)
        inner = _elements(node) if isinstance(node, ast.Subscript) else []
        if name in MAPPINGS:
            return len(inner) != 2 or self.module.dotted(inner[1]) in ("typing.Any", "object")
        if name in SEQUENCES | TUPLES:
            return not inner or any(map(self.is_content, inner))
        if name in ("typing.Union", "typing.Optional"):
            return any(map(self.is_content, inner))
        if name == "typing.Annotated" and inner:
            return self.is_content(inner[0])
        return name in ("typing.Any", "object", "pathlib.Path", "mcp_tool.Block")

    def is_text(self, node: ast.expr) -> bool:
        """Whether a result of this type is a text, or nothing."""
        if isinstance(node, ast.Constant):
            return node.value is None or (isinstance(node.value, str) and self.is_text(unquoted(node.value)))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return all(map(self.is_text, _operands(node)))
        if isinstance(node, ast.Subscript):
            inner, name = _elements(node), self.module.dotted(node.value)
            if name == "typing.Annotated":
                return bool(inner) and self.is_text(inner[0])
            return name in ("typing.Optional", "typing.Union") and all(map(self.is_text, inner))
        return self.module.dotted(node) in ("str", "typing.Text", "typing.NoReturn", "typing.Never")

    def is_object(self, node: ast.expr) -> bool:
        """Whether a result of this type is always an object, and goes out as it is."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.is_object(unquoted(node.value))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return all(map(self.is_object, _operands(node)))
        inner = _elements(node) if isinstance(node, ast.Subscript) else []
        name = self.module.dotted(node.value if isinstance(node, ast.Subscript) else node)
        if name == "typing.Annotated" and inner:
            return self.is_object(inner[0])
        if name == "typing.Union":
            return all(map(self.is_object, inner))
        if aliased := self.module.assigned.get(name):
            return self.is_object(aliased)
        return name in MAPPINGS or (name in self.module.classes and not self.classes.is_enum(name))


def choices(values: list[Any]) -> Json:
    """One of these values. What may be null says so beside the others: several types in one schema are refused by
    some clients."""
    kinds = {type(value) for value in values}
    if kinds == {str} or kinds == {int}:
        return {"type": "string" if kinds == {str} else "integer", "enum": values}
    if None in values and len(kinds) > 1:
        return {"anyOf": [choices([value for value in values if value is not None]), {"type": "null"}]}
    return {"type": "null"} if kinds == {type(None)} else {"enum": values}


def unquoted(text: str) -> ast.expr:
    """An annotation in quotes. Raises Unreadable."""
    try:
        return ast.parse(text[:MAX_TEXT_CHARS].strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Unreadable(f"{text[:60]!r} is no type") from None


def _tuple(inner: list[ast.expr], of: Any) -> Json:
    if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
        return {"type": "array", "items": of(inner[0])}
    if len(inner) == 1 and isinstance(inner[0], ast.Tuple) and not inner[0].elts:  # tuple[()]
        return {"type": "array", "items": {}, "maxItems": 0}
    places = [of(each) for each in inner]
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
