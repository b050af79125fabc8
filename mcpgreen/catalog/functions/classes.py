"""JSON schemas of the classes in a file: TypedDict, dataclass, NamedTuple and Enum.

A member that cannot be read accepts anything, and is noted. A class of another kind is not read at all.

Rule: `ClassReader` is given the reader of annotations with each call and keeps no reference to it. A syntax tree in a
reference cycle stays in memory until the garbage collector runs, which takes longer than parsing.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple, Protocol

from mcpgreen.catalog.functions import docstrings
from mcpgreen.catalog.functions.module import MAX_DEPTH, Module, Unreadable
from mcpgreen.text.json_types import Json

ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum"})
DATACLASS = "dataclasses.dataclass"
FACTORIES: Json = {"list": [], "dict": {}, "set": [], "tuple": [], "str": "", "int": 0, "bool": False}


class AnnotationReader(Protocol):
    """Reads the annotations of members; `annotations.Schemas` is the only one."""

    notes: list[str]
    is_input: bool

    def schema(self, node: ast.expr) -> Json: ...


class Member(NamedTuple):
    name: str
    node: ast.expr
    is_required: bool
    default: ast.expr | None = None
    factory: str = ""
    is_argument: bool = True  # of the constructor


class ClassReader:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._within: list[str] = []  # the classes that are being read, to notice one that contains itself
        # By name: a class may be used in many places.
        self._documented: dict[str, docstrings.Documentation] = {}
        self._enums: dict[str, Json] = {}

    def schema(self, reader: AnnotationReader, name: str) -> Json:
        """The schema of a class. Raises Unreadable for a class of another kind."""
        kind = self._kind(name)
        if kind == "enum":
            return choices(list(dict.fromkeys(self._values(name).values())))
        if not kind:
            raise Unreadable(f"the class {name} is no TypedDict, dataclass, NamedTuple or Enum")
        if name in self._within:
            return {"type": "object"}
        self._within.append(name)
        try:
            return self._object(reader, name, kind)
        finally:
            self._within.pop()

    def is_enum(self, name: str) -> bool:
        return self._kind(name) == "enum"

    def member(self, name: str, member: str) -> Any:
        """A member of an enum as JSON has it. Raises Unreadable."""
        values = self._values(name) if self.is_enum(name) else {}
        if member not in values:
            raise Unreadable(f"{name}.{member} is no member of an Enum")
        return values[member]

    def require_key(self, node: ast.expr) -> None:
        """Raises Unreadable for a type that cannot be the name of a member in JSON."""
        if isinstance(node, ast.Subscript) and self._module.dotted(node.value) == "typing.Literal":
            return
        if not self.is_enum(self._module.dotted(node)):
            raise Unreadable("names of members are texts, integers or those of an Enum")

    def _kind(self, name: str, depth: int = 0) -> str:
        self._module.step()
        node = self._module.classes.get(name)
        if node is None or depth > MAX_DEPTH:
            return ""
        for decorator in node.decorator_list:
            if self._module.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) == DATACLASS:
                return "dataclass"
        bases = [self._module.dotted(base) for base in node.bases]
        if "typing.TypedDict" in bases:
            return "TypedDict"
        if "typing.NamedTuple" in bases:
            return "NamedTuple"
        if ENUMS & set(bases):
            return "enum"
        inherited = {self._kind(base, depth + 1) for base in bases if base != name} - {""}
        return inherited.pop() if len(inherited) == 1 else ""

    def _object(self, reader: AnnotationReader, name: str, kind: str) -> Json:
        if name not in self._documented:
            self._documented[name] = docstrings.read(ast.get_docstring(self._module.classes[name]) or "")
        documented = self._documented[name]
        properties: Json = {}
        required: list[str] = []
        for member in self._members(name, kind):
            if reader.is_input and not member.is_argument:
                continue
            try:
                inner = reader.schema(member.node)
            except Unreadable as error:
                reader.notes.append(f"line {member.node.lineno}: {member.name} of {name} takes anything: {error}")
                inner = {}
            if reader.is_input and not member.is_required:
                self.add_default(inner, member.default, factory=member.factory)
            if text := documented.arguments.get(member.name):
                inner.setdefault("description", text)
            properties[member.name] = inner
            # A result has all of its members, but a TypedDict may lack those that are not required.
            if member.is_required or (not reader.is_input and kind != "TypedDict"):
                required.append(member.name)
        schema: Json = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if reader.is_input and kind != "TypedDict":
            schema["additionalProperties"] = False
        return schema

    def add_default(self, schema: Json, node: ast.expr | None, *, factory: str = "") -> None:
        """Add a default, if it can be read. For a default of None, null is removed from the schema instead: it says no
        more than leaving the value out, and many clients cannot deal with schemas that admit it."""
        if node is None:
            if factory in FACTORIES:
                schema["default"] = FACTORIES[factory]
            return
        try:
            if isinstance(node, ast.Attribute):
                owner, _, member = self._module.dotted(node).rpartition(".")
                schema["default"] = self.member(owner, member)
            else:
                value = self._module.value_of(node)
                if value is None and schema.keys() & {"type", "anyOf", "enum"}:
                    _remove_null(schema)
                else:
                    schema["default"] = value
        except Unreadable:
            return

    def _members(self, name: str, kind: str, depth: int = 0) -> list[Member]:
        """The members of a class, after those of its base classes."""
        node = self._module.classes[name]
        found: dict[str, Member] = {}
        for base in map(self._module.dotted, node.bases):
            if base in self._module.classes and base != name and depth < MAX_DEPTH:
                found.update((member.name, member) for member in self._members(base, kind, depth + 1))
        is_total = not any(keyword.arg == "total" and _is_false(keyword.value) for keyword in node.keywords)
        for statement in node.body:
            self._module.step()
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                member = self._member(statement, statement.target.id, kind, is_total=is_total)
                if member is not None:
                    found[member.name] = member
        return list(found.values())

    def _member(self, statement: ast.AnnAssign, name: str, kind: str, *, is_total: bool) -> Member | None:
        annotation, value = statement.annotation, statement.value
        outer = self._module.dotted(annotation.value if isinstance(annotation, ast.Subscript) else annotation)
        if kind == "TypedDict":
            is_required = outer == "typing.Required" or (is_total and outer != "typing.NotRequired")
            return Member(name, annotation, is_required)
        if outer in ("typing.ClassVar", "dataclasses.KW_ONLY"):
            return None
        if isinstance(value, ast.Call) and self._module.dotted(value.func) == "dataclasses.field":
            given = {keyword.arg: keyword.value for keyword in value.keywords}
            factory = self._module.dotted(given["default_factory"]) if "default_factory" in given else ""
            is_required = not given.keys() & {"default", "default_factory"}
            is_argument = not _is_false(given.get("init"))
            return Member(name, annotation, is_required, given.get("default"), factory, is_argument)
        return Member(name, annotation, value is None, value)

    def _values(self, name: str) -> Json:
        """The members of an enum as JSON has them: the values if all are strings or all are integers, else the
        names."""
        if name not in self._enums:
            self._enums[name] = self._read_enum(name)
        return self._enums[name]

    def _read_enum(self, name: str) -> Json:
        node = self._module.classes[name]
        bases = {self._module.dotted(base) for base in node.bases}
        found: Json = {}
        latest = 0
        for statement in node.body:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                continue
            member = statement.targets[0].id
            if member.startswith("_"):
                continue
            value: Any
            if isinstance(statement.value, ast.Call) and self._module.dotted(statement.value.func) == "enum.auto":
                if "str" in bases:
                    raise Unreadable(f"the members of {name} are made by auto()")
                value = member.lower() if "enum.StrEnum" in bases else latest + 1
            else:
                try:
                    value = self._module.value_of(statement.value)
                except Unreadable:
                    raise Unreadable(f"the members of {name} are not written down as constants") from None
            latest = value if type(value) is int else latest
            found[member] = value
        if not found:
            raise Unreadable(f"the Enum {name} has no members")
        kinds = {type(value) for value in found.values()}
        return found if kinds in ({str}, {int}) else {member: member for member in found}


def choices(values: list[Any]) -> Json:
    """The schema for one of these values. Null has a branch of its own: some clients refuse a schema with several
    types."""
    kinds = {type(value) for value in values}
    if kinds == {str} or kinds == {int}:
        return {"type": "string" if kinds == {str} else "integer", "enum": values}
    if None in values and len(kinds) > 1:
        return {"anyOf": [choices([value for value in values if value is not None]), {"type": "null"}]}
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
    for key, value in said.items():
        schema.setdefault(key, value)
