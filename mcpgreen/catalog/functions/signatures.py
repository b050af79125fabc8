"""From one function to the fields of a description: what its signature, its docstring and its decorator say."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from mcpgreen.catalog.functions import docstrings
from mcpgreen.catalog.functions.annotations import Schemas
from mcpgreen.catalog.functions.expressions import Expression
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


class Parameter(NamedTuple):
    name: str
    annotation: Expression | None
    default: ast.expr | None = None
    is_required: bool = False
    is_variadic: bool = False  # *args
    line: int = 0


class Signature(NamedTuple):
    """What the source of a function says. `others` is **kwargs; the docstring has no indentation any more."""

    name: str
    parameters: list[Parameter]
    returns: Expression | None
    mark: ast.expr | None
    docstring: str
    others: Parameter | None = None
    line: int = 0


class Described(NamedTuple):
    fields: Json
    notes: list[Note]
    is_sound: bool
    hides_scopes: bool = False  # what it needs of a caller is written in a way that only Python understands


def signature_of(function: Function, mark: ast.expr | None) -> Signature:
    arguments = function.args
    by_place = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(by_place) - len(arguments.defaults)) + arguments.defaults
    parameters = [_parameter(*each) for each in list(zip(by_place, defaults, strict=True))[:MAX_PARAMETERS]]
    if arguments.vararg:
        parameters.append(_parameter(arguments.vararg)._replace(is_required=False, is_variadic=True))
    by_name = list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    parameters += [_parameter(*each) for each in by_name[:MAX_PARAMETERS]]
    others = _parameter(arguments.kwarg) if arguments.kwarg else None
    returns = Expression(function.returns) if function.returns is not None else None
    return Signature(function.name, parameters, returns, mark, docstring_of(function), others, function.lineno)


def _parameter(node: ast.arg, default: ast.expr | None = None) -> Parameter:
    annotation = Expression(node.annotation) if node.annotation is not None else None
    return Parameter(node.arg, annotation, default, is_required=default is None, line=node.lineno)


def described(module: Module, signature: Signature, text_of_file: Callable[[], str]) -> Described:
    """All that can be known of a tool by this function. `text_of_file` is the docstring of its file, which counts if it
    has none. Nothing in it raises."""
    notes: list[Note] = []
    documented = docstrings.read(signature.docstring)
    fields: Json = {}
    text = documented.text or docstrings.read(text_of_file()).text
    if text:
        fields["description"] = text
    schemas = Schemas(module)
    fields["inputSchema"] = _input_schema(schemas, signature, documented, notes)
    output = _output_schema(schemas, signature, documented, notes)
    if output is not None:
        fields["outputSchema"] = output
    hides_scopes = False
    if isinstance(signature.mark, ast.Call):
        options, unread = _options(module, signature.mark, notes)
        fields.update(options)
        hides_scopes = bool(unread & {"scopes", "**"})
    return Described(fields, [*notes, *schemas.notes], schemas.is_sound, hides_scopes)


def _input_schema(
    schemas: Schemas, signature: Signature, documented: docstrings.Documentation, notes: list[Note]
) -> Json:
    properties: Json = {}
    required: list[str] = []
    for parameter in signature.parameters:
        schema = _parameter_schema(schemas, parameter, notes)
        text = documented.arguments.get(parameter.name)
        if text:
            schema["description"] = schema.get("description") or text
        schemas.classes.add_default(schema, parameter.default)
        if parameter.is_variadic:
            about = {"description": schema.pop("description")} if "description" in schema else {}
            schema = {"type": "array", "items": schema, **about}
        properties[parameter.name] = schema
        if parameter.is_required:
            required.append(parameter.name)
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if signature.others is None:
        schema["additionalProperties"] = False
    elif signature.others.annotation is not None:
        others = _parameter_schema(schemas, signature.others, notes)
        schema.update({"additionalProperties": others} if others else {})
    return schema


def _parameter_schema(schemas: Schemas, parameter: Parameter, notes: list[Note]) -> Json:
    if parameter.annotation is None:
        notes.append((parameter.line, f"the parameter {parameter.name} takes anything: it has no annotation"))
        return {}
    try:
        return schemas.of_parameter(parameter.annotation)
    except Unreadable as error:
        notes.append((parameter.line, f"the parameter {parameter.name} takes anything: {error}"))
        return {}


def _output_schema(
    schemas: Schemas, signature: Signature, documented: docstrings.Documentation, notes: list[Note]
) -> Json | None:
    """None where a result is text or content blocks, or where nothing is known of it."""
    if signature.returns is None:
        return None
    try:
        schema, is_object = schemas.of_result(signature.returns)
    except Unreadable as error:
        notes.append((signature.line, f"what {signature.name} returns is not described: {error}"))
        return None
    if schema is None or is_object:
        return schema if schema is None else {"type": "object", **schema}
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
