"""Describe one function as a tool: by its signature, its docstring and its decorator."""

from __future__ import annotations

import ast
from typing import NamedTuple

from mcpgreen.catalog.descriptions.metadata import may_mean_scopes
from mcpgreen.catalog.functions import docstrings
from mcpgreen.catalog.functions.annotations import Schemas
from mcpgreen.catalog.functions.module import Function, Module, Unreadable
from mcpgreen.text.json_types import Json

HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
PLAIN_OPTIONS = ("name", "title", "description", "scopes")
MAX_PARAMETERS = 256


class FunctionTool(NamedTuple):
    """The fields of a description. `notes` say what could not be read, and in which line. `hides_scopes`: it may need
    scopes that cannot be read, so it must not be served."""

    fields: Json
    notes: list[str]
    hides_scopes: bool = False


class SignatureReader:
    """Reads one function. `notes` collects what could not be read; nothing here raises."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module = module
        self._function = function
        self._schemas = Schemas(module)
        self._documented = docstrings.read(ast.get_docstring(function) or "")
        self._notes: list[str] = []

    def described(self, mark: ast.expr | None, text_of_file: str) -> FunctionTool:
        """The tool that this function is. `mark` is its decorator; `text_of_file` describes a function without a
        docstring."""
        fields: Json = {}
        text = self._documented.text or docstrings.read(text_of_file).text
        if text:
            fields["description"] = text
        fields["inputSchema"] = self._input_schema()
        output = self._output_schema()
        if output is not None:
            fields["outputSchema"] = output
        hides_scopes = False
        if isinstance(mark, ast.Call):
            options, unread = self._options(mark)
            fields.update(options)
            hides_scopes = any(name == "**" or may_mean_scopes(name) for name in unread)
        return FunctionTool(fields, [*self._notes, *self._schemas.notes], hides_scopes)

    def _note(self, node: ast.AST, text: str) -> None:
        self._notes.append(f"line {getattr(node, 'lineno', 1)}: {text}")

    def _input_schema(self) -> Json:
        arguments = self._function.args
        by_place = [*arguments.posonlyargs, *arguments.args]
        defaults = [None] * (len(by_place) - len(arguments.defaults)) + arguments.defaults
        properties: Json = {}
        required: list[str] = []

        def add(parameters: list[tuple[ast.arg, ast.expr | None]]) -> None:
            for parameter, default in parameters[:MAX_PARAMETERS]:
                properties[parameter.arg] = self._property(parameter, default)
                if default is None:
                    required.append(parameter.arg)

        add(list(zip(by_place, defaults, strict=True)))
        if arguments.vararg:
            items = self._property(arguments.vararg)
            about = {"description": items.pop("description")} if "description" in items else {}
            properties[arguments.vararg.arg] = {"type": "array", "items": items, **about}
        add(list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)))
        schema: Json = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if arguments.kwarg is None:
            schema["additionalProperties"] = False
        elif arguments.kwarg.annotation is not None and (others := self._schema_of(arguments.kwarg)):
            schema["additionalProperties"] = others
        return schema

    def _property(self, parameter: ast.arg, default: ast.expr | None = None) -> Json:
        schema = self._schema_of(parameter)
        self._schemas.classes.add_default(schema, default)
        text = self._documented.arguments.get(parameter.arg)
        if text and not schema.get("description"):
            schema["description"] = text
            if "default" in schema:
                schema["default"] = schema.pop("default")  # comes last, as people read it
        return schema

    def _schema_of(self, parameter: ast.arg) -> Json:
        try:
            if parameter.annotation is not None:
                return self._schemas.of_parameter(parameter.annotation)
            reason = "it has no annotation"
        except Unreadable as error:
            reason = str(error)
        self._note(parameter, f"the parameter {parameter.arg} takes anything: {reason}")
        return {}

    def _output_schema(self) -> Json | None:
        """None for a result that is text or content blocks, or is not described."""
        if self._function.returns is None:
            return None
        try:
            schema, is_object = self._schemas.of_result(self._function.returns)
        except Unreadable as error:
            self._note(self._function, f"what {self._function.name} returns is not described: {error}")
            return None
        if schema is None or is_object:
            return schema and {"type": "object", **schema}
        if self._documented.result:
            schema.setdefault("description", self._documented.result)
        return {"type": "object", "properties": {"result": schema}, "required": ["result"]}

    def _options(self, decorator: ast.Call) -> tuple[Json, set[str]]:
        """The fields that the options of the decorator set, and the names of the options that cannot be read."""
        unread: set[str] = set()
        fields: Json = {}
        hints: Json = {}
        for keyword in decorator.keywords:
            name = keyword.arg or "**"
            if name not in PLAIN_OPTIONS and name not in HINTS:
                self._note(keyword.value, f"mcp_tool.tool has no option {name}")
                unread.add(name)
                continue
            try:
                value = self._module.value_of(keyword.value)
            except Unreadable as error:
                self._note(keyword.value, f"{name} of mcp_tool.tool does not count: {error}")
                unread.add(name)
                continue
            if value is None:
                continue
            if name in HINTS:
                hints[HINTS[name]] = value
            else:
                fields[name] = value
        return {**fields, **({"annotations": hints} if hints else {})}, unread
