"""Build a JSON schema from an annotation in a function's source. Classes in the same file are included.

These are TypedDict, dataclass, NamedTuple, Enum and pydantic's models; other classes are not read. A member that cannot
be read accepts anything, and is noted. Schemas are written out in place, because many clients follow no references; a
class that contains itself is any object there. A type that is too deep or too large is not read.

Rule: the SDK has to convert values by the same types (`mcp_tool_functions.conversion`).
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from mcpgreen.catalog.functions import docstrings
from mcpgreen.catalog.functions import pydantic_fields as pydantic
from mcpgreen.catalog.functions.module import MAX_DEPTH, Module, Unreadable, shown
from mcpgreen.text.json_types import Json

MAX_PARTS = 1000  # in all schemas of a tool: nested classes multiply
MAX_QUOTED_CHARS = 1000  # of an annotation in quotes

PLAIN: dict[str, Json] = {
    **{key: {"type": "string"} for key in ("str", "typing.Text", "typing.LiteralString")},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "types.NoneType": {"type": "null"},
    **{key: {} for key in ("object", "typing.Any")},
    "datetime.datetime": {"type": "string", "format": "date-time"},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.time": {"type": "string", "format": "time"},
    "datetime.timedelta": {"type": "string", "format": "duration"},
    "uuid.UUID": {"type": "string", "format": "uuid"},
    "pathlib.Path": {"type": "string", "format": "path"},
    "bytes": {"type": "string", "format": "binary"},
    **pydantic.TYPES,
}


def _names(row: str) -> frozenset[str]:
    """Return the full names in a row. What begins with a dot is in `typing` and in `collections.abc`."""
    places = ("typing", "collections.abc")
    return frozenset(f"{place}{name}" for name in row.split() for place in (places if name[0] == "." else ("",)))


SEQUENCES = _names("list typing.List collections.deque typing.Deque .Sequence .MutableSequence .Iterable .Collection")
SETS = _names("set frozenset typing.Set typing.FrozenSet typing.AbstractSet collections.abc.Set .MutableSet")
MAPPINGS = _names(
    "dict typing.Dict typing.OrderedDict typing.DefaultDict collections.OrderedDict collections.defaultdict "
    ".Mapping .MutableMapping"
)
TUPLES = _names("tuple typing.Tuple")
CONTAINERS = SEQUENCES | SETS | MAPPINGS | TUPLES
WRAPPERS = _names("typing.Required typing.NotRequired typing.ReadOnly typing.Final dataclasses.InitVar")
KEYWORDS = _names(
    "title description default examples enum const format pattern deprecated readOnly writeOnly minLength maxLength "
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems contains minContains "
    "maxContains minProperties maxProperties propertyNames contentEncoding contentMediaType"
)
KIND_OF_BASE = {
    "typing.TypedDict": "TypedDict",
    "typing.NamedTuple": "NamedTuple",
    "pydantic.BaseModel": "model",
    **dict.fromkeys(("enum.Enum", "enum.IntEnum", "enum.StrEnum"), "enum"),
}
FACTORIES: Json = {"list": [], "dict": {}, "set": [], "tuple": [], "str": "", "int": 0, "bool": False}
# A default of these types is known by the text that it is made from.
WRITTEN = ("decimal.Decimal", "pathlib.Path", "uuid.UUID")


class Member(NamedTuple):
    name: str
    node: ast.expr
    is_required: bool
    default: ast.expr | None = None
    factory: str = ""
    is_argument: bool = True  # of the constructor
    field: pydantic.Field = pydantic.Field()


class Schemas:
    """Reads the annotations of one file. `notes` name the members of classes that could not be read."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.notes: list[str] = []
        self._is_input = True  # the schema of a parameter forbids unknown members, that of a result does not
        self._parts = 0
        self._depth = 0
        self._within: list[str] = []  # the classes that are being read, to notice one that contains itself
        # By name: a class may be used in many places.
        self._documented: dict[str, docstrings.Documentation] = {}
        self._enums: dict[str, Json] = {}

    def of_result(self, node: ast.expr) -> Json | None:
        """Return the schema of a result; None for text and content blocks. Raises Unreadable."""
        if self._is_text(node) or self._may_be_content(node):
            return None
        self._is_input = False
        try:
            return self.schema(node)
        finally:
            self._is_input = True

    def schema(self, node: ast.expr) -> Json:
        """Return the schema of a parameter, or of a part of a type. Raises Unreadable."""
        self._parts += 1
        self.module.step()
        if self._depth > MAX_DEPTH or self._parts > MAX_PARTS:
            raise Unreadable("the type is too large")
        self._depth += 1
        try:
            return self._schema(node)
        finally:
            self._depth -= 1

    def _schema(self, node: ast.expr) -> Json:
        name, inner = self.parts_of(node)
        if name in CONTAINERS:
            return self._container(name, inner)
        if inner and name == "typing.Union":
            return self._union(inner)
        if inner and name == "typing.Literal":
            return self._literal(inner)
        if inner and name == "typing.Annotated":
            return self._annotated(inner[0], inner[1:])
        if len(inner) == 1 and name in WRAPPERS:
            return self.schema(inner[0])
        if not inner and name in PLAIN:
            return dict(PLAIN[name])
        if not inner and name == "decimal.Decimal":  # a number of JSON is exact only to fifteen digits
            return {"anyOf": [{"type": "number"}, {"type": "string"}]} if self._is_input else {"type": "string"}
        if not inner and name in self.module.classes:
            return self._class(name)
        if not inner and (aliased := self.module.assigned.get(name)):
            if isinstance(aliased, ast.Call) and self.module.dotted(aliased.func) == "typing.NewType":
                aliased = aliased.args[-1] if aliased.args else aliased
            return self.schema(aliased)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.schema(_unquoted(node.value))
        if isinstance(node, ast.Constant) and node.value is None:
            return {"type": "null"}
        if isinstance(node, ast.Constant):
            raise Unreadable(f"{shown(node)} is not a type")
        raise Unreadable(f"the type {shown(node)} is not supported")

    def _annotated(self, kind: ast.expr, nodes: list[ast.expr]) -> Json:
        """Return the schema of a type with the keywords that an Annotated adds, by a string, an Arg or a Field."""
        schema = self.schema(kind)
        found: Json = {}
        for node in nodes:
            if isinstance(node, ast.Name) and (value := self.module.assigned.get(node.id)):
                node = value
            if field := pydantic.field_in(self.module, node):
                pydantic.restrict(schema, field.keywords)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.setdefault("description", node.value)
            elif isinstance(node, ast.Call) and self.module.dotted(node.func) in ("mcp_tool.Arg", "typing.Doc"):
                if node.args:
                    found["description"] = self.module.value_of(node.args[0])
                for keyword in node.keywords:
                    if keyword.arg is None:
                        raise Unreadable("Arg takes its keywords from **, so they cannot be read")
                    if keyword.arg not in KEYWORDS:
                        raise Unreadable(f"Arg has no keyword {keyword.arg}")
                    try:
                        found[keyword.arg] = self.module.value_of(keyword.value)
                    except Unreadable as error:
                        raise Unreadable(f"{keyword.arg} of Arg cannot be read: {error}") from None
        return {**schema, **found}

    def _literal(self, nodes: list[ast.expr]) -> Json:
        values: dict[tuple[type, str], Any] = {}
        for node in nodes:
            if isinstance(node, ast.Subscript):  # a Literal in a Literal
                found = self._literal(self.parts_of(node)[1]).get("enum", [])
            else:
                is_member = self.module.dotted(node).rpartition(".")[0] in self.module.classes
                found = [self._enum_member(node) if is_member else self.module.value_of(node)]
            for value in found:
                values.setdefault((type(value), repr(value)), value)
        return _choices(list(values.values()))

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
            if len(inner) == 2 and not self._may_be_key(inner[0]):
                raise Unreadable("keys must be strings, integers or members of an Enum")
            values = self.schema(inner[1]) if len(inner) == 2 else {}
            return {"type": "object", **({"additionalProperties": values} if values else {})}
        if name in TUPLES and inner:
            return self._tuple(inner)
        schema: Json = {"type": "array", "items": self.schema(inner[0]) if inner else {}}
        return {**schema, "uniqueItems": True} if name in SETS else schema

    def _tuple(self, inner: list[ast.expr]) -> Json:
        if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
            return {"type": "array", "items": self.schema(inner[0])}
        if len(inner) == 1 and isinstance(inner[0], ast.Tuple) and not inner[0].elts:  # tuple[()]
            return {"type": "array", "items": {}, "maxItems": 0}
        places = [self.schema(each) for each in inner]
        distinct = [place for index, place in enumerate(places) if place not in places[:index]]
        bounds = {"minItems": len(places), "maxItems": len(places)}
        if len(distinct) == 1:
            return {"type": "array", "items": distinct[0], **bounds}
        # For clients that do not know prefixItems, and want to know what is in every array.
        return {"type": "array", "prefixItems": places, "items": {"anyOf": distinct}, **bounds}

    def _may_be_key(self, node: ast.expr) -> bool:
        name, _ = self.parts_of(node)
        return name in ("str", "int", "typing.Any", "object", "typing.Literal") or self._kind(name) == "enum"

    def _alternatives(self, node: ast.expr) -> list[ast.expr]:
        """Return the types of a union, or the one type, without quotes and Annotated. Raises Unreadable."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._alternatives(_unquoted(node.value))
        name, inner = self.parts_of(node)
        if inner and name == "typing.Annotated":
            return self._alternatives(inner[0])
        if inner and name == "typing.Union":
            return [each for part in inner for each in self._alternatives(part)]
        return [node]

    def parts_of(self, node: ast.AST) -> tuple[str, list[ast.expr]]:
        """Return the name of a type, and the types in its brackets. `X | Y` and Optional are a Union."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            operands = [node.right]
            while isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.BitOr):
                node = node.left
                operands.append(node.right)
            return "typing.Union", [node.left, *reversed(operands)]
        if not isinstance(node, ast.Subscript):
            return self.module.dotted(node), []
        name, inner = self.module.dotted(node.value), node.slice
        parts = inner.elts if isinstance(inner, ast.Tuple) and inner.elts else [inner]
        return ("typing.Union", [parts[0], ast.Constant(None)]) if name == "typing.Optional" else (name, parts)

    def _may_be_content(self, node: ast.expr) -> bool:
        """Tell whether a result of this type may be content blocks or a picture, which no schema describes."""
        return any(map(self._is_content, self._alternatives(node)))

    def _is_content(self, node: ast.expr) -> bool:
        name, inner = self.parts_of(node)
        if name in MAPPINGS:
            return len(inner) != 2 or self.module.dotted(inner[1]) in ("typing.Any", "object")
        if name in SEQUENCES | TUPLES:
            return not inner or any(map(self._may_be_content, inner))
        return name in ("typing.Any", "object", "pathlib.Path", "mcp_tool.Block")

    def _is_text(self, node: ast.expr) -> bool:
        """Tell whether a result of this type is text, or nothing."""
        names = ("str", "bytes", "typing.Text", "typing.NoReturn", "typing.Never")
        return all(
            each.value is None if isinstance(each, ast.Constant) else self.module.dotted(each) in names
            for each in self._alternatives(node)
        )

    def _class(self, name: str) -> Json:
        """Return the schema of a class. Raises Unreadable for a class of another kind."""
        kind = self._kind(name)
        if kind == "enum":
            return _choices(list(dict.fromkeys(self._values(name).values())))
        if not kind:
            raise Unreadable(f"the class {name} is not a TypedDict, dataclass, NamedTuple, Enum or pydantic model")
        if name in self._within:
            return {"type": "object"}
        self._within.append(name)
        try:
            return self._object(name, kind)
        finally:
            self._within.pop()

    def _enum_member(self, node: ast.expr) -> Any:
        """Return a member of an enum, such as `Color.RED`, as JSON has it. Raises Unreadable."""
        name, _, member = self.module.dotted(node).rpartition(".")
        values = self._values(name) if self._kind(name) == "enum" else {}
        if member not in values:
            raise Unreadable(f"{name}.{member} is not a member of an Enum")
        return values[member]

    def _kind(self, name: str, depth: int = 0) -> str:
        self.module.step()
        node = self.module.classes.get(name)
        if node is None or depth > MAX_DEPTH:
            return ""
        if any(self.module.decorator_name(each) == "dataclasses.dataclass" for each in node.decorator_list):
            return "dataclass"
        bases = [self.module.dotted(base) for base in node.bases]
        for base in bases:
            if base in KIND_OF_BASE:
                return KIND_OF_BASE[base]
        inherited = {self._kind(base, depth + 1) for base in bases if base != name} - {""}
        return inherited.pop() if len(inherited) == 1 else ""

    def _object(self, name: str, kind: str) -> Json:
        if name not in self._documented:
            self._documented[name] = docstrings.read(ast.get_docstring(self.module.classes[name]) or "")
        documented = self._documented[name]
        lineage = self._lineage(name) if kind == "model" else []
        if not self._is_input and any(pydantic.writes_itself(self.module, each) for each in lineage):
            return {"type": "object"}
        extra = next(filter(None, (pydantic.extra_of(self.module, each) for each in lineage)), None)
        described = {"description": documented.text} if documented.text else {}
        properties: Json = {}
        required: list[str] = []
        for member in self._members(name, kind):
            if not member.is_argument if self._is_input else member.field.is_excluded:
                continue
            try:
                inner = self.schema(member.node)
            except Unreadable as error:
                self.notes.append(f"line {member.node.lineno}: {member.name} of {name} accepts any value: {error}")
                inner = {}
            pydantic.restrict(inner, member.field.keywords)
            if not member.is_required and (self._is_input or kind == "model"):
                self.add_default(inner, member.default, factory=member.factory)
            if text := documented.arguments.get(member.name):
                inner.setdefault("description", text)
            key = (member.field.alias if self._is_input else "") or member.name
            properties[key] = inner
            # A result has all of its members, but those of a TypedDict or a model may be left out.
            if member.is_required or (not self._is_input and kind not in ("TypedDict", "model")):
                required.append(key)
        demands = {"required": required} if required else {}
        is_closed = self._is_input and (extra == "forbid" if kind == "model" else kind != "TypedDict")
        limits = {"additionalProperties": False} if is_closed else {}
        return {"type": "object", **described, "properties": properties, **demands, **limits}

    def _lineage(self, name: str, depth: int = 0) -> list[ast.ClassDef]:
        """Return a class and its base classes in this file, the nearest first."""
        self.module.step()
        node = self.module.classes.get(name)
        if node is None or depth > MAX_DEPTH:
            return []
        return [node, *(each for base in node.bases for each in self._lineage(self.module.dotted(base), depth + 1))]

    def add_default(self, schema: Json, node: ast.expr | None, *, factory: str = "") -> None:
        """Add a default, if it can be read. For a default of None, null is removed from the schema instead: it says no
        more than leaving the value out, and many clients cannot deal with schemas that admit it."""
        if node is None:
            if factory in FACTORIES:
                schema["default"] = FACTORIES[factory]
            return
        if isinstance(node, ast.Call) and self.module.dotted(node.func) in WRITTEN and len(node.args) == 1:
            node = node.args[0]
        try:
            value = self._enum_member(node) if isinstance(node, ast.Attribute) else self.module.value_of(node)
        except Unreadable:
            return
        if value is None and schema.keys() & {"type", "anyOf", "enum"}:
            if self._is_input:
                _remove_null(schema)
        else:
            schema["default"] = value

    def _members(self, name: str, kind: str, depth: int = 0) -> list[Member]:
        """Return the members of a class, after those of its base classes."""
        node = self.module.classes[name]
        found: dict[str, Member] = {}
        for base in map(self.module.dotted, node.bases):
            if base in self.module.classes and base != name and depth < MAX_DEPTH:
                found.update((member.name, member) for member in self._members(base, kind, depth + 1))
        is_total = not any(keyword.arg == "total" and _is_false(keyword.value) for keyword in node.keywords)
        for statement in node.body:
            self.module.step()
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                member = self._member(statement, statement.target.id, kind, is_total=is_total)
                if member is not None:
                    found[member.name] = member
        return list(found.values())

    def _member(self, statement: ast.AnnAssign, name: str, kind: str, *, is_total: bool) -> Member | None:
        annotation, value = statement.annotation, statement.value
        outer = self.module.dotted(annotation.value if isinstance(annotation, ast.Subscript) else annotation)
        if kind == "TypedDict":
            is_required = outer == "typing.Required" or (is_total and outer != "typing.NotRequired")
            return Member(name, annotation, is_required)
        if outer in ("typing.ClassVar", "dataclasses.KW_ONLY") or (kind == "model" and name[0] == "_"):
            return None
        if kind == "model":
            inner = self.parts_of(annotation)[1][1:] if outer == "typing.Annotated" else []
            field = pydantic.field_in(self.module, *inner, value) or pydantic.Field()
            if value is not None and pydantic.field_in(self.module, value) is None:
                field = field._replace(default=value, is_required=False)
            return Member(name, annotation, field.is_required, field.default, field=field)
        if isinstance(value, ast.Call) and self.module.dotted(value.func) == "dataclasses.field":
            given = {keyword.arg: keyword.value for keyword in value.keywords}
            factory = self.module.dotted(given["default_factory"]) if "default_factory" in given else ""
            is_required = not given.keys() & {"default", "default_factory"}
            is_argument = not _is_false(given.get("init"))
            return Member(name, annotation, is_required, given.get("default"), factory, is_argument)
        return Member(name, annotation, value is None, value)

    def _values(self, name: str) -> Json:
        """Return the members of an enum as JSON has them: by value if all are strings or all integers, else by name."""
        if name in self._enums:
            return self._enums[name]
        node = self.module.classes[name]
        bases = {self.module.dotted(base) for base in node.bases}
        found: Json = {}
        latest = 0
        for statement in node.body:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                continue
            member = statement.targets[0].id
            if member.startswith("_"):
                continue
            value: Any
            if isinstance(statement.value, ast.Call) and self.module.dotted(statement.value.func) == "enum.auto":
                if "str" in bases:
                    raise Unreadable(f"the values of {name} come from auto()")
                value = member.lower() if "enum.StrEnum" in bases else latest + 1
            else:
                try:
                    value = self.module.value_of(statement.value)
                except Unreadable:
                    raise Unreadable(f"the members of {name} are not all constants") from None
            latest = value if type(value) is int else latest
            found[member] = value
        if not found:
            raise Unreadable(f"the Enum {name} has no members")
        kinds = {type(value) for value in found.values()}
        self._enums[name] = found if kinds in ({str}, {int}) else {member: member for member in found}
        return self._enums[name]


def _unquoted(text: str) -> ast.expr:
    """Return the annotation in a string. Raises Unreadable."""
    try:
        return ast.parse(text[:MAX_QUOTED_CHARS].strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Unreadable(f"{text[:60]!r} is not a type") from None


def _choices(values: list[Any]) -> Json:
    """Return the schema for one of these values; null in a branch of its own, as some clients refuse several types."""
    kinds = {type(value) for value in values}
    if kinds == {str} or kinds == {int}:
        return {"type": "string" if kinds == {str} else "integer", "enum": values}
    if None in values and len(kinds) > 1:
        return {"anyOf": [_choices([value for value in values if value is not None]), {"type": "null"}]}
    return {"type": "null"} if kinds == {type(None)} else {"enum": values}


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _remove_null(schema: Json) -> None:
    branches = schema.get("anyOf", [])
    others = [branch for branch in branches if branch != {"type": "null"}]
    if len(others) == len(branches):
        return
    del schema["anyOf"]
    said = {"anyOf": others} if len(others) > 1 else others[0]
    schema.update({key: value for key, value in said.items() if key not in schema})
