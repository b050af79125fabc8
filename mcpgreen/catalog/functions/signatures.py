"""From one function to the fields of a description: what its signature, its docstring and its decorator say."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from mcpgreen.catalog.functions import docstrings
from mcpgreen.catalog.functions.annotations import Schemas
from mcpgreen.catalog.functions.module import Function, Module, Unreadable, docstring_of

Json = dict[str, Any]
Note = tuple[int, str]  # a line, and what is to be said of it

HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
PLAIN_OPTIONS = ("name", "title", "description", "scopes")
MAX_PARAMETERS = 256


class Described(NamedTuple):
    fields: Json
    notes: list[Note]
    is_sound: bool
    hides_scopes: bool = False  # what it needs of a caller is written in a way that only Python understands


def described(module: Module, function: Function, decorator: ast.expr | None, tree: ast.Module) -> Described:
    """All that can be known of a tool by this function. Nothing in it raises."""
    notes: list[Note] = []
    documented = docstrings.read(docstring_of(function))
    fields: Json = {}
    text = documented.text or docstrings.read(docstring_of(tree)).text
    if text:
        fields["description"] = text
    schemas = Schemas(module)
    fields["inputSchema"] = _input_schema(schemas, function.args, documented, notes)
    output = _output_schema(schemas, function, documented, notes)
    if output is not None:
        fields["outputSchema"] = output
    hides_scopes = False
    if isinstance(decorator, ast.Call):
        options, unread = _options(module, decorator, notes)
        fields.update(options)
        hides_scopes = bool(unread & {"scopes", "**"})
    return Described(fields, [*notes, *schemas.notes], schemas.is_sound, hides_scopes)


def _input_schema(
    schemas: Schemas, arguments: ast.arguments, documented: docstrings.Documentation, notes: list[Note]
) -> Json:
    properties: Json = {}
    required: list[str] = []
    classes = schemas.classes

    def add(parameter: ast.arg, default: ast.expr | None, *, is_required: bool) -> Json:
        schema = _parameter_schema(schemas, parameter, notes)
        text = documented.arguments.get(parameter.arg)
        if text:
            schema["description"] = schema.get("description") or text
        classes.add_default(schema, default)
        properties[parameter.arg] = schema
        if is_required:
            required.append(parameter.arg)
        return schema

    by_place = [*arguments.posonlyargs, *arguments.args][:MAX_PARAMETERS]
    first_default = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    for index, parameter in enumerate(by_place):
        has_default = index >= first_default
        add(
            parameter,
            arguments.defaults[index - first_default] if has_default else None,
            is_required=not has_default,
        )
    if arguments.vararg:
        items = add(arguments.vararg, None, is_required=False)
        text = {"description": items.pop("description")} if "description" in items else {}
        properties[arguments.vararg.arg] = {"type": "array", "items": items, **text}
    for parameter, value in list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))[:MAX_PARAMETERS]:
        add(parameter, value, is_required=value is None)
    schema: Json = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if arguments.kwarg is None:
        schema["additionalProperties"] = False
    elif arguments.kwarg.annotation is not None:
        others = _parameter_schema(schemas, arguments.kwarg, notes)
        schema.update({"additionalProperties": others} if others else {})
    return schema


def _parameter_schema(schemas: Schemas, parameter: ast.arg, notes: list[Note]) -> Json:
    if parameter.annotation is None:
        notes.append((parameter.lineno, f"the parameter {parameter.arg} takes anything: it has no annotation"))
        return {}
    try:
        return schemas.schema(parameter.annotation, is_input=True)
    except Unreadable as error:
        notes.append((parameter.lineno, f"the parameter {parameter.arg} takes anything: {error}"))
        return {}


def _output_schema(
    schemas: Schemas, function: Function, documented: docstrings.Documentation, notes: list[Note]
) -> Json | None:
    """None where a result is text or content blocks, or where nothing is known of it."""
    node = function.returns
    try:
        if node is None or schemas.is_text(node) or schemas.is_content(node):
            return None
        schema = schemas.schema(node, is_input=False)
        is_object = schemas.is_object(node)
    except Unreadable as error:
        notes.append((function.lineno, f"what {function.name} returns is not described: {error}"))
        return None
    if is_object:
        return {"type": "object", **schema}
    if documented.result:
        schema.setdefault("description", documented.result)
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}


def _options(module: Module, decorator: ast.Call, notes: list[Note]) -> tuple[Json, set[str]]:
    """What they say, and the names of those that cannot be read."""
    unread: set[str] = set()
    fields: Json = {}
    hints: Json = {}
    for keyword in decorator.keywords:
        name = keyword.arg or "**"
        if name not in PLAIN_OPTIONS and name not in HINTS:
            notes.append((keyword.value.lineno, f"mcp_tool.tool has no option {name}"))
            unread.add(name)
            continue
        try:
            value = module.value_of(keyword.value)
        except Unreadable as error:
            notes.append((keyword.value.lineno, f"{name} of mcp_tool.tool does not count: {error}"))
            unread.add(name)
            continue
        if value is None:
            continue
        if name in HINTS:
            hints[HINTS[name]] = value
        else:
            fields[name] = value
    return {**fields, **({"annotations": hints} if hints else {})}, unread
