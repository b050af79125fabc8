"""Read the tools of a project: which files below tools/ are tools, and what their descriptions say.

A tool is an executable program, or any executable or shell or shebang script that has a description, beside it, in a
comment, or as the signature of a Python function (`functions`). Hidden files and directories, smoke.sh, the
descriptions themselves and all that lies below a directory `ui` are none.

Not a schema validator: compiling a schema costs more than scanning ten tools, so that waits for the first call.

Rule: one bad file costs one tool and a warning, never the list.
"""

from __future__ import annotations

import os

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.comments import HEAD_BYTES
from mcpgreen.catalog.descriptions.in_script import NOTHING_TOLD, Told, told_by
from mcpgreen.catalog.descriptions.scopes import SCOPES
from mcpgreen.catalog.items import Discovery, Loss, distinct, read_files
from mcpgreen.catalog.pace import Pace
from mcpgreen.catalog.tree_scan import Directory, Tree
from mcpgreen.errors import ProjectError
from mcpgreen.project.unmarked import META_SUFFIXES
from mcpgreen.protocol.input.needs import NEEDS
from mcpgreen.protocol.schemas import lint
from mcpgreen.running.policy.trust import WRITABLE_BY_OTHERS
from mcpgreen.running.scripts.shebang import PYTHON_SUFFIX, SHELL_SUFFIXES, command_of, is_program, is_python
from mcpgreen.text.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from mcpgreen.catalog.functions.reading import FunctionTool
    from mcpgreen.files.confined import Private
    from mcpgreen.project.project import Project

UI_DIRECTORY = "ui"  # holds the app of a tool, and what that needs

# What becomes of a script that asks a stateless client: it waits, and is run anew only if that is harmless; or always.
INTERACTIONS = ("auto", "park", "replay")

MAX_MODULES = 50  # that a script wants to be loaded ahead


def _is_module(name: Any) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


FIELD_RULES = {
    **metadata.COMMON_RULES,
    "name": metadata.A_NAME,
    "arguments": metadata.AN_OBJECT,
    "outputSchema": metadata.AN_OBJECT_OR_BOOLEAN,
    "timeoutSecs": metadata.A_DURATION,
    "maxTimeoutSecs": metadata.A_DURATION,
    "timeoutHint": metadata.A_STRING,
    "progressExtendsTimeout": metadata.A_BOOLEAN,
    "strictArguments": metadata.A_BOOLEAN,
    "maxConcurrent": metadata.Rule(
        lambda value: metadata.is_natural(value) and value > 0, "a positive integer", {"type": "integer", "minimum": 1}
    ),
    "needs": metadata.Rule(
        lambda value: isinstance(value, list) and all(need in tuple(NEEDS) for need in value),
        f"an array of {', '.join(NEEDS)}",
        {"type": "array", "items": {"enum": list(NEEDS)}},
    ),
    "interaction": metadata.one_of(INTERACTIONS),
    "scopes": SCOPES,
    "warm": metadata.Rule(
        lambda value: (
            isinstance(value, bool)
            or (isinstance(value, list) and len(value) <= MAX_MODULES and all(map(_is_module, value)))
        ),
        "true, false, or an array of names of Python modules",
        {"type": ["boolean", "array"], "items": {"type": "string"}, "maxItems": MAX_MODULES},
    ),
}

KNOWN_FIELDS = frozenset(FIELD_RULES) | {"icons", "path"}


class Description(NamedTuple):
    """What is known of a tool apart from its script. `definition` is what goes on the wire, `unlisted` are the other
    fields as they were written. Those that have a default here are the ones that mean something to us."""

    definition: dict[str, Any]
    unlisted: dict[str, Any]
    complaints: list[str]
    timeout_secs: float | None = None
    timeout_hint: str | None = None
    progress_extends_timeout: bool | None = None
    max_timeout_secs: float | None = None
    max_concurrent: int | None = None
    strict_arguments: bool | None = None
    needs: Sequence[str] = ()  # what has to be asked of a client
    interaction: str = INTERACTIONS[0]
    scopes: Sequence[str] = ()  # that a caller has to have, where callers have any
    warm: bool | list[str] = True


ATTRIBUTE_OF = {name[0] + name.title().replace("_", "")[1:]: name for name in Description._field_defaults}
LISTED_FIELDS = KNOWN_FIELDS - ATTRIBUTE_OF.keys()


class Tool(NamedTuple):
    """One script that clients may call. `registry_entry` is all that is known of it."""

    name: str
    path: str
    relative_path: str
    command: list[str]
    description: Description
    registry_entry: dict[str, Any]

    @property
    def definition(self) -> dict[str, Any]:
        return self.description.definition


def discover_tools(project: Project, tree: Tree) -> Discovery:
    """Read every tool that the walk through tools/ saw, sorted by name and path."""
    warnings = [*tree.warnings, *_useless_links(project, tree)]
    hints: list[str] = []

    def read(project: Project, directory: Directory, file_name: str) -> tuple[Tool | None, tuple[str, ...]]:
        return _tool_of(project, directory, file_name, warnings, hints), ()

    ui = os.path.join(project.tools_dir, UI_DIRECTORY)
    if any(directory.path == ui for directory in tree.directories):
        hints.append(f"{project.shown(ui)}: not a tool, and none is in it: below ui/ is what belongs to a page")
    of_tools = tree._replace(directories=[each for each in tree.directories if not _is_of_an_app(project, each)])
    found = list(read_files(project, of_tools, _scripts_in, read, what="the tool", warnings=warnings))
    for directory in of_tools.directories:
        lonely = metadata.lonely_descriptions(directory.files)
        place = project.shown(directory.path)
        warnings.extend(f"{place}/{name}: describes no script: none of that name is beside it" for name in lonely)
    warnings.extend(_open_directories(project, found))
    found.sort(key=lambda tool: (tool.name, tool.relative_path))
    if any(os.path.basename(directory.path) == UI_DIRECTORY for directory in tree.directories):
        found = _with_apps(project, found, tree.pace)
    kept, losses = distinct(found, "name", "provides the tool", lambda tool: project.shown(tool.path))
    return Discovery(kept, [*warnings, *losses], hints)


def _is_of_an_app(project: Project, directory: Directory) -> bool:
    return UI_DIRECTORY in directory.path.removeprefix(project.tools_dir.rstrip("/")).split("/")


def _scripts_in(names: Iterable[str]) -> list[str]:
    return [name for name in names if name != "smoke.sh" and not metadata.is_description(name)]


def _with_apps(project: Project, tools: list[Tool], pace: Pace) -> list[Tool]:
    """Tools that have an MCP App beside them say so."""
    from mcpgreen.catalog.apps.resources import directory_beside, discover_apps, with_ui

    apps, _ = discover_apps(project, project.server_name(), pace)
    by_directory = {app.directory: app for app in apps}
    linked = []
    for tool in pace.over(tools):
        app = by_directory.get(directory_beside(tool.path))
        if app is not None:
            meta = with_ui(tool.definition.get("_meta"), app_uri=app.uri)
            entry = {**tool.registry_entry, "_meta": meta}
            description = tool.description._replace(definition={**tool.definition, "_meta": meta})
            tool = tool._replace(description=description, registry_entry=entry)
        linked.append(tool)
    return linked


def _tool_of(
    project: Project, directory: Directory, file_name: str, warnings: list[str], hints: list[str]
) -> Tool | None:
    path, status = f"{directory.path}/{file_name}", directory.files[file_name]
    is_executable = bool(status.st_mode & metadata.EXECUTABLE_BITS)
    meta_file = metadata.meta_file_for(file_name, directory.files)
    # The script itself is opened only if its first bytes can tell something that we do not know yet.
    is_known = is_executable and meta_file is not None and not _may_be_python(file_name)
    head = b"" if is_known else metadata.head_of(path, status.st_size)
    command = command_of(path, head or b"", is_executable=is_executable, is_described=True)
    if command is None:
        if meta_file:
            warnings.append(f"{project.shown(path)}: described, but neither executable nor a script (chmod +x)")
        return None
    source = f"{directory.path}/{meta_file}" if meta_file else path
    told = Told(metadata.read_meta_file(source)) if meta_file else told_by(path, head or b"")
    function = _function_tool(path, head or b"")
    if function is not None:
        said = told or NOTHING_TOLD
        if function.hides_scopes and "scopes" not in said.fields:
            raise ProjectError(path, "its scopes cannot be read; write them as texts, or into a description beside it")
        told = Told({**_not_said_by(said.fields, function.fields), **said.fields}, said.complaints, said.hints)
        warnings.extend(f"{project.shown(path)}: {note}" for note in function.notes)
    if told is None and not (is_executable and (head is None or is_program(path, head))):
        # A library that tools source, a text where all files have the bit, or a tool that was forgotten.
        lack = "neither a script (#!) nor a program" if is_executable else "not executable (chmod +x)"
        hints.append(f"{project.shown(path)}: not a tool: {lack} and without a description")
        return None
    fields, complaints, own_hints = told or NOTHING_TOLD
    is_sound = function is not None and function.is_sound and not meta_file
    description = describe_tool(source, fields, file_name=file_name, private=project.private, is_sound=is_sound)
    warnings.extend(f"{project.shown(source)}: {each}" for each in (*complaints, *description.complaints))
    hints.extend(f"{project.shown(source)}: {hint}" for hint in own_hints)
    warnings.extend(_open_files(project, path, status))
    name = description.definition["name"]
    if name not in (metadata.stem_of(file_name), fields.get("name")):
        hints.append(f"{project.shown(path)}: the tool is called {name}: a name consists of A-Z a-z 0-9 _ . -")
    return _described_tool(project, path, command, description)


def _may_be_python(file_name: str) -> bool:
    return file_name.endswith(PYTHON_SUFFIX) or "." not in file_name


def _function_tool(path: str, head: bytes) -> FunctionTool | None:
    """What the source says of a tool that is a Python function; None for any other."""
    if not is_python(path, head):
        return None
    is_whole = len(head) < HEAD_BYTES
    if is_whole and b"mcp_tool" not in head:
        return None
    from mcpgreen.catalog.functions import reading

    return reading.function_tool(head if is_whole else metadata.read_start(path, reading.MAX_BYTES + 1))


def _not_said_by(fields: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """What a description beside a function leaves to its source. `arguments` is another name for a schema."""
    if not fields:
        return others
    has_schema = "inputSchema" in fields or "arguments" in fields
    return {key: value for key, value in others.items() if not (has_schema and key == "inputSchema")}


def _described_tool(project: Project, path: str, command: list[str], description: Description) -> Tool:
    name, relative_path = description.definition["name"], path[len(project.tools_dir.rstrip("/")) + 1 :]
    entry = {"name": name, "description": "", "path": relative_path, **description.definition, **description.unlisted}
    return Tool(name, path, relative_path, command, description, entry)


def tool_at(project: Project, path: str, fields: dict[str, Any], *, status: os.stat_result) -> tuple[Tool, list[str]]:
    """A tool that is described elsewhere, and what is wrong with it. Raises ProjectError if it can be none."""
    is_executable = bool(status.st_mode & metadata.EXECUTABLE_BITS)
    head = b"" if is_executable else metadata.head_of(path) or b""
    command = command_of(path, head, is_executable=is_executable, is_described=True)
    if command is None:
        raise ProjectError(path, f"{project.shown(path)} is neither executable nor a script (chmod +x)")
    description = describe_tool(path, fields, file_name=os.path.basename(path), private=project.private)
    tool = _described_tool(project, path, command, description)
    return tool, [*description.complaints, *_open_files(project, path, status)]


def describe_tool(
    path: str, fields: dict[str, Any], *, file_name: str, private: Private, is_sound: bool = False
) -> Description:
    """Check and normalise the `fields` that were read from `path`. Raises ProjectError for what cannot be served. The
    schemas of what `is_sound` are our own work."""
    fields = metadata.checked(path, fields, FIELD_RULES)
    origin = metadata.Origin(path, private, [])
    named = {"name": fields.get("name") or metadata.default_name(file_name)}
    definition = metadata.definition_of(origin, named, fields, plain=(), known=KNOWN_FIELDS)
    definition["inputSchema"] = _input_schema(path, fields)
    if "outputSchema" in fields:
        # A boolean schema as the object that says the same: on the wire a schema is an object.
        schema = fields["outputSchema"]
        definition["outputSchema"] = schema if isinstance(schema, dict) else {} if schema else {"not": {}}
    for key in () if is_sound else ("inputSchema", "outputSchema"):
        fault = lint.fault_of(definition.get(key))
        if fault:
            raise ProjectError(path, f"{key} {fault}")
    unlisted = {key: value for key, value in fields.items() if key not in LISTED_FIELDS}
    known = {name: fields[key] for key, name in ATTRIBUTE_OF.items() if key in fields}
    return Description(definition, unlisted, origin.complaints, **known)


def _input_schema(path: str, fields: dict[str, Any]) -> dict[str, Any]:
    key = "inputSchema" if "inputSchema" in fields else "arguments"
    given: dict[str, Any] = fields.get(key, {})
    root_type = given.get("type") or "object"
    if root_type != "object":
        raise ProjectError(path, f'{key} must have the type "object", found {metadata.shown(root_type)}')
    properties = given.get("properties") or {}
    if not isinstance(properties, dict):
        raise ProjectError(path, f"{key}.properties must be an object, found {metadata.shown(properties)}")
    required = given.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise ProjectError(path, f"{key}.required must be an array of strings, found {metadata.shown(required)}")
    if "type" in given and properties is given.get("properties"):
        return given
    return {**given, "type": "object", "properties": properties}


def _open_files(project: Project, path: str, status: os.stat_result) -> Iterator[str]:
    if status.st_mode & WRITABLE_BY_OTHERS:
        yield f"{project.shown(path)}: others may write to it, so calls will be refused (chmod go-w)"


def _open_directories(project: Project, tools: list[Tool]) -> Iterator[str]:
    """Directories in which somebody else could put another file in the place of a tool."""
    ground = project.ground(project.tools_dir)
    for directory in sorted({os.path.dirname(tool.path) for tool in tools}):
        problem = ground.problem_with_directory(directory)
        if problem:
            yield f"{project.shown(directory)}/: calls will be refused because {problem}"


def _useless_links(project: Project, tree: Tree) -> Iterator[str]:
    for path, mode in tree.links_out.items():
        if mode & metadata.EXECUTABLE_BITS or path.endswith((*SHELL_SUFFIXES, *META_SUFFIXES)):
            yield Loss(f"{project.shown(path)}: skipped, it is a symbolic link to a file outside tools/")
