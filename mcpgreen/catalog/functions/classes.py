"""Classes of the same file as JSON schemas: TypedDict, dataclass, NamedTuple and Enum.

Members of a class that cannot be read are open, and noted; a class of another kind is not read at all.

Rule: a reader is given the `Schemas` that it is a part of, and keeps none: a syntax tree that is held in a circle is
left to the collector, which takes longer than parsing it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen.catalog.functions import docstrings
from mcpgreen.catalog.functions.module import MAX_DEPTH, Module, Unreadable, docstring_of

if TYPE_CHECKING:
    from mcpgreen.catalog.functions.annotations import Schemas

Json = dict[str, Any]

ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum"})
DATACLASSES = frozenset({"dataclasses.dataclass"})
FACTORIES: dict[str, Any] = {"list": [], "dict": {}, "set": [], "tuple": [], "str": "", "int": 0, "bool": False}


class Member(NamedTuple):
    name: str
    node: ast.expr
    is_required: bool
    default: ast.expr | None = None
    factory: str = ""
    is_given: bool = True  # when such a thing is made


class ClassReader:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._within: list[str] = []
        self._documented: dict[str, docstrings.Documentation] = {}
        self._enums: dict[str, dict[str, Any]] = {}

    def schema(self, schemas: Schemas, name: str, *, is_input: bool, depth: int) -> Json:
        """Raises Unreadable for a class that is of none of these kinds."""
        kind = self._kind(name)
        if kind == "enum":
            return self._enum(name)
        if not kind:
            raise Unreadable(f"the class {name} is no TypedDict, dataclass, NamedTuple or Enum")
        if name in self._within:
            return {"type": "object"}
        self._within.append(name)
        try:
            return self._object(schemas, name, kind, is_input=is_input, depth=depth)
        finally:
            self._within.pop()

    def is_enum(self, name: str) -> bool:
        return self._kind(name) == "enum"

    def member(self, name: str, member: str) -> Any:
        """What a member of an enum is as JSON. Raises Unreadable."""
        if name not in self._enums:
            self._enums[name] = self._values(name) if self.is_enum(name) else {}
        values = self._enums[name]
        if member not in values:
            raise Unreadable(f"{name}.{member} is no member of an Enum")
        return values[member]

    def require_key(self, node: ast.expr) -> None:
        """Raises Unreadable for what cannot be the name of a member in JSON."""
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
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self._module.dotted(call) in DATACLASSES:
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

    def _object(self, schemas: Schemas, name: str, kind: str, *, is_input: bool, depth: int) -> Json:
        documented = self._documented.get(name)
        if documented is None:
            documented = docstrings.read(docstring_of(self._module.classes[name]))
            self._documented[name] = documented
        properties: Json = {}
        required: list[str] = []
        for member in self._members(name, kind):
            if is_input and not member.is_given:
                continue
            inner = self._schema_of(schemas, name, member, is_input=is_input, depth=depth)
            if text := documented.arguments.get(member.name):
                inner.setdefault("description", text)
            if is_input and not member.is_required:
                self.add_default(inner, member.default, factory=member.factory)
            properties[member.name] = inner
            # What comes out has all of its members; a TypedDict only those that it must have.
            if member.is_required or (not is_input and kind != "TypedDict"):
                required.append(member.name)
        schema: Json = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if is_input and kind != "TypedDict":
            schema["additionalProperties"] = False
        return schema

    @staticmethod
    def _schema_of(schemas: Schemas, name: str, member: Member, *, is_input: bool, depth: int) -> Json:
        try:
            return schemas.schema(member.node, is_input=is_input, depth=depth + 1)
        except Unreadable as error:
            schemas.notes.append((member.node.lineno, f"{member.name} of {name} takes anything: {error}"))
            return {}

    def add_default(self, schema: Json, node: ast.expr | None, *, factory: str = "") -> None:
        """A default that can be read; one that cannot is there all the same."""
        if node is None:
            if factory in FACTORIES:
                schema["default"] = FACTORIES[factory]
            return
        try:
            if isinstance(node, ast.Attribute):
                owner, _, member = self._module.dotted(node).rpartition(".")
                schema["default"] = self.member(owner, member)
            else:
                schema["default"] = self._module.value_of(node)
        except Unreadable:
            return

    def _members(self, name: str, kind: str, depth: int = 0) -> list[Member]:
        """With those of its base classes, in their order."""
        node = self._module.classes[name]
        found: dict[str, Member] = {}
        for base in map(self._module.dotted, node.bases):
            if base in self._module.classes and base != name and depth < MAX_DEPTH:
                found.update((member.name, member) for member in self._members(base, kind, depth + 1))
        is_total = not any(
            keyword.arg == "total" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            for keyword in node.keywords
        )
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
            init = given.get("init")
            is_given = not (isinstance(init, ast.Constant) and init.value is False)
            factory = self._module.dotted(given["default_factory"]) if "default_factory" in given else ""
            is_required = not given.keys() & {"default", "default_factory"}
            return Member(name, annotation, is_required, given.get("default"), factory, is_given)
        return Member(name, annotation, value is None, value)

    def _enum(self, name: str) -> Json:
        from mcpgreen.catalog.functions.annotations import choices

        return choices(list(dict.fromkeys(self._values(name).values())))

    def _values(self, name: str) -> dict[str, Any]:
        """The members of an enum, each as JSON has it: by their values if these are all texts or all integers, else by
        their names."""
        node = self._module.classes[name]
        bases = {self._module.dotted(base) for base in node.bases}
        found: dict[str, Any] = {}
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
