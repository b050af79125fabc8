"""Find the functions in a file that are tools, and read what signature, docstring and decorator say about each.

A file has such tools if it marks functions with `mcp_tool.tool`; if it calls `mcp_tool.run`, it is one. It is parsed,
never imported: its code runs only when a tool is called. A file that cannot be parsed, because it is too large or
written for a newer Python, is a tool that takes anything.

Rule: scopes protect a tool. A file that mentions them and marks functions in a way that we do not know is not served.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import NamedTuple

from mcpgreen.catalog.descriptions.metadata import may_mean_scopes
from mcpgreen.catalog.functions import docstrings
from mcpgreen.catalog.functions.annotations import Schemas
from mcpgreen.catalog.functions.module import Function, Module, TooLong, Unreadable, parsed, times_bound
from mcpgreen.catalog.functions.pydantic_fields import Field, field_in, restrict
from mcpgreen.text.json_types import Json

SDK = b"mcp_tool"
MARK = "mcp_tool.tool"
MAX_BYTES = 131_072
MAX_NOTES = 20
HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
# Options that are fields of the description, and their names there.
FIELD_OF = {
    name: name for name in ("name", "title", "description", "scopes", "env", "stays", "task", "run_on", "retries")
}
FIELD_OF |= {"task_begins": "taskBegins", "task_after_secs": "taskAfterSecs", "task_timeout_secs": "taskTimeoutSecs"}
FIELD_OF |= {"task_keep_secs": "taskKeepSecs", "task_survives_client": "taskSurvivesClient", "rerun": "idempotent"}
MAX_PARAMETERS = 256
MAX_FUNCTIONS = 100  # in a file
# What a marked function looks like in a file that cannot be parsed.
_LIKELY = re.compile(rb"^[ \t]*@(?:mcp_tool\.)?tool\b|\bmcp_tool\.run\(", re.MULTILINE)
_SCOPES = re.compile(r"scopes?", re.IGNORECASE)

Marked = tuple[Function, ast.expr | None]  # a function, and its decorator


class FunctionTool(NamedTuple):
    """The fields of a description. `notes` say what could not be read, and in which line. `hides_scopes`: it may need
    scopes that cannot be read, so it must not be served. `problem`: why it is not served for another reason. `name` is
    empty for the only function of a file, which may be named after the file."""

    fields: Json
    notes: list[str]
    hides_scopes: bool = False
    name: str = ""
    problem: str = ""


def function_tools(source: bytes) -> list[FunctionTool]:
    """Return the tools in a file; none for other files. `source` is the file, or its first `MAX_BYTES` + 1 bytes."""
    if SDK not in source:
        return []
    if len(source) > MAX_BYTES:
        return _unread(source, f"it is larger than {MAX_BYTES} bytes")
    try:
        return _described(source, parsed(source))
    except TooLong:
        return _unread(source, "it is too long")
    except SyntaxError as error:
        # The file may be correct: it may be written for a newer Python.
        return _unread(source, f"it cannot be parsed: {error.msg}", line=error.lineno or 1)
    except ValueError as error:  # a NUL
        return _unread(source, f"it cannot be parsed: {error}")
    except (MemoryError, RecursionError, SystemError):
        return _unread(source, "it is nested too deeply")


def _unread(source: bytes, reason: str, line: int = 1) -> list[FunctionTool]:
    hides_scopes = _SCOPES.search(source.decode("utf-8", "replace")) is not None
    if not hides_scopes and not _LIKELY.search(source):
        return []
    note = f"line {line}: the arguments of its function cannot be read: {reason}"
    return [FunctionTool({}, [note], hides_scopes)]


def _described(source: bytes, tree: ast.Module) -> list[FunctionTool]:
    module = Module(tree)
    if not any(origin.partition(".")[0] == "mcp_tool" for origin in module.origins.values()):
        return []
    marked: list[Marked] = [
        (function, mark)
        for function in module.all_functions
        for mark in function.decorator_list
        if module.decorator_name(mark) == MARK
    ]
    # Looking at each node takes longer than parsing the file, and few files have this word or such keywords.
    may_mention = b"**" in source or b"scope" in source.lower()
    hides_scopes = may_mention and _mentions_scopes_elsewhere(module, tree, [mark for _, mark in marked if mark])
    runs = _calls_of_run(module, tree) if not marked or b"run" in source else []
    if not marked and not runs:
        return [FunctionTool({}, [], hides_scopes=True)] if hides_scopes else []
    times = times_bound(tree, has_globals=b"global" in source)
    by_name: dict[str, list[Marked]] = {}
    for function, mark in marked:
        by_name.setdefault(function.name, []).append((function, mark))
    if len(by_name) > 1:
        tools = _several(module, times, by_name, runs)
    else:
        candidates = marked or [(function, None) for function in _candidates(module, runs[0])]
        tools = [_function(module, times, candidates, ast.get_docstring(tree) or "")]
    return [tool._replace(hides_scopes=hides_scopes or tool.hides_scopes) for tool in tools]


def _several(
    module: Module, times: Counter[str], by_name: dict[str, list[Marked]], runs: list[ast.Call]
) -> list[FunctionTool]:
    """Return the tools of a file with several marked functions. The docstring of the file describes none of them."""
    tools = {name: _function(module, times, by_name[name], "") for name in list(by_name)[:MAX_FUNCTIONS]}
    names = {name: str(tool.fields.get("name") or name) for name, tool in tools.items()}
    named = next((call for call in runs if call.args or call.keywords), None)
    found = []
    for function, tool in tools.items():
        name, problem = names[function], ""
        if list(names.values()).count(name) > 1:
            problem = f"several functions are called {name}; give each its own name="
        elif not name.isascii():
            problem = f"a tool cannot be called {name}; give the function a name= made up of A-Z a-z 0-9 _ . -"
        elif named is not None:
            problem = f"mcp_tool.run on line {named.lineno} names one of several marked functions; remove the call"
        problem = problem and f"line {by_name[function][-1][0].lineno}: {problem}"
        found.append(tool._replace(name=name, problem=problem))
    if len(by_name) > MAX_FUNCTIONS:
        problem = f"it marks more than {MAX_FUNCTIONS} functions; move the others to another file"
        found.append(FunctionTool({}, [], name="others", problem=problem))
    return found


def _function(module: Module, times: Counter[str], marked: list[Marked], text_of_file: str) -> FunctionTool:
    if len(marked) != 1 or _is_replaced(module, times, *marked[0]):
        options = [each.arg for _, mark in marked if isinstance(mark, ast.Call) for each in mark.keywords]
        hides_scopes = any(name is None or _SCOPES.fullmatch(name) for name in options)
        return FunctionTool({}, [_unclear([function for function, _ in marked])], hides_scopes)
    function, mark = marked[0]
    found = SignatureReader(module, function).described(mark, text_of_file)
    return found._replace(notes=found.notes[:MAX_NOTES])


def _unclear(functions: list[Function]) -> str:
    """Say why it is not clear which of these functions is the tool."""
    names = [function.name for function in functions]
    line = functions[-1].lineno if functions else 1
    if len(set(names)) == 1:
        return f"line {line}: it accepts any value: {names[0]} is defined more than once, or replaced; define it once"
    shown = ", ".join(names[:5]) or "none"
    return f"line {line}: it is not clear which function is the tool: {shown}; mark each tool with @mcp_tool.tool"


def _is_replaced(module: Module, times: Counter[str], function: Function, mark: ast.expr | None) -> bool:
    """Tell whether the tool may be another function: one of the same name, or what a decorator of this file makes."""
    inner = function.decorator_list[function.decorator_list.index(mark) + 1 if mark else 0 :]
    makers = [module.functions.get(module.dotted(decorator)) for decorator in inner]
    return times[function.name] != 1 or any(maker and not _keeps_function(maker) for maker in makers)


def _keeps_function(decorator: Function) -> bool:
    """Tell whether it returns the function that it was given, or one with the same signature."""
    nodes = list(ast.walk(decorator))
    returned = {getattr(node.value, "id", "") for node in nodes if isinstance(node, ast.Return)}
    used = {getattr(node, "id", getattr(node, "attr", "")) for node in nodes}
    return bool(used & {"wraps", "update_wrapper"} or returned & {each.arg for each in decorator.args.args})


def _mentions_scopes_elsewhere(module: Module, tree: ast.Module, marks: list[ast.expr]) -> bool:
    """Tell whether scopes may be demanded in another way than by these decorators: under another name, by `partial`, in
    a call, or for a nested function. The word alone is not enough: other libraries have scopes, too."""
    nodes = list(ast.walk(tree))
    read = {id(part) for mark in marks for part in ast.walk(mark)}
    decorators = {id(each) for node in nodes for each in getattr(node, "decorator_list", ())}
    is_used_otherwise = is_mentioned = False
    for node in nodes:
        if id(node) in read:
            continue
        if isinstance(node, (ast.Name, ast.Attribute)):
            is_used_otherwise |= module.imported(node) == MARK
        elif isinstance(node, ast.keyword):
            is_mentioned |= node.arg is None or _SCOPES.fullmatch(node.arg) is not None
        elif isinstance(node, ast.Constant):
            is_mentioned |= isinstance(node.value, str) and _SCOPES.fullmatch(node.value) is not None
        if isinstance(node, ast.Call) and id(node) in decorators:
            is_used_otherwise |= any(_SCOPES.fullmatch(each.arg or "") for each in node.keywords)
    return is_used_otherwise and is_mentioned


def _calls_of_run(module: Module, tree: ast.Module) -> list[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if module.dotted(call.func) == "mcp_tool.run"]


def _candidates(module: Module, run: ast.Call) -> list[Function]:
    """Return the functions that `mcp_tool.run` may mean: the one it names, or all public ones that do not call it."""
    named = [run.args[0]] if run.args else [each.value for each in run.keywords if each.arg == "function"]
    if named:
        function = module.functions.get(module.dotted(named[0]))
        return [function] if function is not None else []
    public = [function for name, function in module.functions.items() if not name.startswith("_")]
    return [function for function in public if not any(node is run for node in ast.walk(function))]


class SignatureReader:
    """Reads one function. `notes` collects what could not be read; nothing here raises."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module = module
        self._function = function
        self._schemas = Schemas(module)
        self._documented = docstrings.read(ast.get_docstring(function) or "")
        self._notes: list[str] = []
        self._required: list[str] = []

    def described(self, mark: ast.expr | None, text_of_file: str) -> FunctionTool:
        """Describe the function as a tool. `mark` is its decorator; `text_of_file` stands in for a docstring."""
        text = self._documented.text or docstrings.read(text_of_file).text
        fields: Json = {"description": text, "inputSchema": self._input_schema(), "outputSchema": self._output_schema()}
        fields = {key: value for key, value in fields.items() if value not in ("", None)}
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
        parameters = list(zip(by_place, defaults, strict=True))[:MAX_PARAMETERS]
        by_name = list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))[:MAX_PARAMETERS]
        properties: Json = {parameter.arg: self._property(parameter, default) for parameter, default in parameters}
        if arguments.vararg:
            items = self._property(arguments.vararg)
            about = {"description": items.pop("description")} if "description" in items else {}
            properties[arguments.vararg.arg] = {"type": "array", "items": items, **about}
        properties |= {parameter.arg: self._property(parameter, default) for parameter, default in by_name}
        schema: Json = {"type": "object", "properties": properties}
        if required := [name for name in self._required if arguments.vararg is None or name != arguments.vararg.arg]:
            schema["required"] = required
        if arguments.kwarg is None:
            schema["additionalProperties"] = False
        elif arguments.kwarg.annotation is not None and (others := self._schema_of(arguments.kwarg)):
            schema["additionalProperties"] = others
        return schema

    def _property(self, parameter: ast.arg, default: ast.expr | None = None) -> Json:
        schema = self._schema_of(parameter)
        try:
            field = field_in(self._module, default)
        except Unreadable as error:
            self._note(parameter, f"the default of {parameter.arg} is ignored: {error}")
            field = Field(is_required=False)
        if default is None if field is None else field.is_required:
            self._required.append(parameter.arg)
        is_said = self._schemas.parts_of(parameter.annotation or parameter)[0] == "typing.Annotated"
        if field is not None:
            default = field.default
            restrict(schema, field.keywords)
            is_said = is_said or "description" in field.keywords
        self._schemas.add_default(schema, default)
        text = self._documented.arguments.get(parameter.arg)
        if text and not (is_said and schema.get("description")):  # the docstring of a class tells less of it
            schema.pop("description", None)
            schema["description"] = text
            if "default" in schema:
                schema["default"] = schema.pop("default")  # moved to the end, after the description
        return schema

    def _schema_of(self, parameter: ast.arg) -> Json:
        try:
            if parameter.annotation is not None:
                return self._schemas.schema(parameter.annotation)
            reason = "it has no annotation"
        except Unreadable as error:
            reason = str(error)
        self._note(parameter, f"the parameter {parameter.arg} accepts any value: {reason}")
        return {}

    def _output_schema(self) -> Json | None:
        """None for a result that is text or content blocks, or is not described."""
        if self._function.returns is None:
            return None
        try:
            schema = self._schemas.of_result(self._function.returns)
        except Unreadable as error:
            self._note(self._function, f"the result of {self._function.name} is not described: {error}")
            return None
        if schema is None:
            return None
        if all(branch.get("type") == "object" for branch in schema.get("anyOf", [schema])):
            return {"type": "object", **schema}
        if self._documented.result:
            schema.setdefault("description", self._documented.result)
        return {"type": "object", "properties": {"result": schema}, "required": ["result"]}

    def _options(self, decorator: ast.Call) -> tuple[Json, set[str]]:
        """Return the fields that the options of the decorator set, and the names of the options that cannot be read."""
        unread: set[str] = set()
        given: Json = {}
        for keyword in decorator.keywords:
            name = keyword.arg or "**"
            problem = f"mcp_tool.tool has no option {name}, so the file cannot be run"
            try:
                if name in FIELD_OF or name in HINTS:
                    given[name] = self._module.value_of(keyword.value)
                    continue
            except Unreadable as error:
                problem = f"the option {name} of mcp_tool.tool is ignored: {error}"
            self._note(keyword.value, problem)
            unread.add(name)
        hints = {key: given[name] for name, key in HINTS.items() if given.get(name) is not None}
        fields = {key: given[name] for name, key in FIELD_OF.items() if given.get(name) is not None}
        return {**fields, **({"annotations": hints} if hints else {})}, unread
