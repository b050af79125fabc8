"""Read the tools of a project: which files below tools/ are tools, and what their descriptions say.

A tool is an executable file, or a shell or shebang script without the bit that has a description. Hidden files and
directories, smoke.sh and the descriptions themselves are none.

Not a schema validator: compiling a schema costs more than scanning ten tools, so that waits for the first call.

Rule: one bad file costs one tool and a warning, never the list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.items import Discovery, Loss
from mcpgreen.catalog.tree_scan import Directory, Tree
from mcpgreen.errors import ProjectError
from mcpgreen.files.confined import Private
from mcpgreen.project.project import Project
from mcpgreen.project.unmarked import META_SUFFIXES
from mcpgreen.protocol.input.requests import CAPABILITY_OF_NEED
from mcpgreen.protocol.schemas import lint
from mcpgreen.running.policy.trust import WRITABLE_BY_OTHERS
from mcpgreen.running.scripts.shebang import SHELL_SUFFIXES, command_of

UI_DESCRIPTION = "ui.meta.json"  # describes a page that belongs to a tool, not a script

# What becomes of a script that asks a stateless client: it waits, and is run anew only if that is harmless; or always.
INTERACTIONS = ("auto", "park", "replay")


def _is_need(value: Any) -> bool:
    return metadata.is_string(value) and value in CAPABILITY_OF_NEED


FIELD_RULES = {
    "name": metadata.A_NAME,
    "title": metadata.A_STRING,
    "description": metadata.A_STRING,
    "inputSchema": metadata.AN_OBJECT,
    "arguments": metadata.AN_OBJECT,
    "outputSchema": metadata.AN_OBJECT_OR_BOOLEAN,
    "annotations": metadata.AN_OBJECT,
    "_meta": metadata.AN_OBJECT,
    "timeoutSecs": metadata.A_DURATION,
    "maxTimeoutSecs": metadata.A_DURATION,
    "timeoutHint": metadata.A_STRING,
    "progressExtendsTimeout": metadata.A_BOOLEAN,
    "maxConcurrent": metadata.Rule(lambda value: metadata.is_natural(value) and value > 0, "a positive integer"),
    "needs": metadata.Rule(
        lambda value: isinstance(value, list) and all(map(_is_need, value)),
        f"an array of {', '.join(CAPABILITY_OF_NEED)}",
    ),
    "interaction": metadata.Rule(lambda value: value in INTERACTIONS, f"one of {', '.join(INTERACTIONS)}"),
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
    needs: Sequence[str] = ()  # what has to be asked of a client
    interaction: str = INTERACTIONS[0]


ATTRIBUTE_OF = {re.sub("_(.)", lambda match: match[1].upper(), name): name for name in Description._field_defaults}
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
    found: list[Tool] = []
    for directory in tree.directories:
        for file_name, status in tree.pace.over(directory.files.items()):
            if file_name == "smoke.sh" or metadata.is_description(file_name):
                continue
            try:
                tool = _tool_of(project, directory, file_name, status=status, warnings=warnings, hints=hints)
            except ProjectError as error:
                warnings.append(Loss(f"{project.shown(error.path)}: {error.reason}; the tool is left out"))
                continue
            if tool is not None:
                found.append(tool)
        warnings.extend(_lonely_descriptions(project, directory))
    warnings.extend(_open_directories(project, found))
    found.sort(key=lambda tool: (tool.name, tool.relative_path))
    if any(os.path.basename(directory.path) == "ui" for directory in tree.directories):
        found = _with_pages(project, found)
    return Discovery(distinct_tools(project, found, warnings), warnings, hints)


def _with_pages(project: Project, tools: list[Tool]) -> list[Tool]:
    """Tools that have a page beside them say so."""
    from mcpgreen.catalog.apps.resources import discover_pages, page_beside, with_ui

    pages, _ = discover_pages(project, project.server_name())
    linked = []
    for tool in tools:
        page = page_beside(tool.path, pages)
        if page is not None:
            meta = with_ui(tool.definition.get("_meta"), page_uri=page.uri)
            entry = {**tool.registry_entry, "_meta": meta}
            description = tool.description._replace(definition={**tool.definition, "_meta": meta})
            tool = tool._replace(description=description, registry_entry=entry)
        linked.append(tool)
    return linked


def _tool_of(
    project: Project,
    directory: Directory,
    file_name: str,
    *,
    status: os.stat_result,
    warnings: list[str],
    hints: list[str],
) -> Tool | None:
    path = f"{directory.path}/{file_name}"
    is_executable = bool(status.st_mode & metadata.EXECUTABLE_BITS)
    meta_file = metadata.meta_file_for(file_name, directory.files)
    # The script itself is opened only if its first bytes can tell something that we do not know yet.
    head = b"" if is_executable and meta_file else _head_of(path)
    command = command_of(path, head, is_executable=is_executable)
    if command is None:
        if meta_file:
            warnings.append(f"{project.shown(path)}: described, but neither executable nor a script (chmod +x)")
        return None
    if meta_file:
        source = f"{directory.path}/{meta_file}"
        fields: dict[str, Any] | None = metadata.read_meta_file(source)
    else:
        source = path
        fields = metadata.read_inline(path, head)
    if fields is None and not is_executable:
        # A library that tools source, or a tool that was forgotten.
        hints.append(f"{project.shown(path)}: not a tool: not executable (chmod +x) and without a description")
        return None
    description = describe_tool(source, fields or {}, file_name=file_name, private=project.private)
    warnings.extend(f"{project.shown(source)}: {complaint}" for complaint in description.complaints)
    name = description.definition["name"]
    if name not in (metadata.stem_of(file_name), (fields or {}).get("name")):
        hints.append(f"{project.shown(path)}: the tool is called {name}: a name consists of A-Z a-z 0-9 _ . -")
    return _described_tool(project, path, description, command=command, status=status, warnings=warnings)


def _described_tool(
    project: Project,
    path: str,
    description: Description,
    *,
    command: list[str],
    status: os.stat_result,
    warnings: list[str],
) -> Tool:
    if status.st_mode & WRITABLE_BY_OTHERS:
        warnings.append(f"{project.shown(path)}: others may write to it, so calls will be refused (chmod go-w)")
    name, relative_path = description.definition["name"], path[len(project.tools_dir.rstrip("/")) + 1 :]
    return Tool(
        name=name,
        path=path,
        relative_path=relative_path,
        command=command,
        description=description,
        registry_entry={
            "name": name,
            "description": "",
            "path": relative_path,
            **description.definition,
            **description.unlisted,
        },
    )


def tool_at(project: Project, path: str, fields: dict[str, Any], *, status: os.stat_result) -> tuple[Tool, list[str]]:
    """A tool that is described elsewhere, and what is wrong with it. Raises ProjectError if it can be none."""
    warnings: list[str] = []
    is_executable = bool(status.st_mode & metadata.EXECUTABLE_BITS)
    command = command_of(path, b"" if is_executable else _head_of(path), is_executable=is_executable)
    if command is None:
        raise ProjectError(path, f"{project.shown(path)} is neither executable nor a script (chmod +x)")
    description = describe_tool(path, fields, file_name=os.path.basename(path), private=project.private)
    tool = _described_tool(project, path, description, command=command, status=status, warnings=warnings)
    return tool, [*description.complaints, *warnings]


def describe_tool(path: str, fields: dict[str, Any], *, file_name: str, private: Private) -> Description:
    """Check and normalise the `fields` that were read from `path`. Raises ProjectError for what cannot be served."""
    fields = metadata.checked(path, fields, FIELD_RULES)
    complaints: list[str] = []
    definition: dict[str, Any] = {"name": fields.get("name") or metadata.default_name(file_name)}
    for key in ("title", "description"):
        if key in fields:
            definition[key] = fields[key]
    definition["inputSchema"] = _input_schema(path, fields)
    if "outputSchema" in fields:
        definition["outputSchema"] = _as_object(fields["outputSchema"])
    for key in ("inputSchema", "outputSchema"):
        fault = lint.fault_of(definition.get(key))
        if fault:
            raise ProjectError(path, f"{key} {fault}")
    metadata.decorate(definition, fields, metadata.Origin(path, private, complaints))
    complaints.extend(metadata.likely_typos(fields, KNOWN_FIELDS, ""))
    unlisted = {key: value for key, value in fields.items() if key not in LISTED_FIELDS}
    known = {name: fields[key] for key, name in ATTRIBUTE_OF.items() if key in fields}
    return Description(definition, unlisted, complaints, **known)


def _as_object(schema: Any) -> Any:
    """A boolean schema as the object that says the same: on the wire a schema is an object."""
    if metadata.is_boolean(schema):
        return {} if schema else {"not": {}}
    return schema


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


def _lonely_descriptions(project: Project, directory: Directory) -> Iterator[str]:
    for name in metadata.lonely_descriptions(directory.files):
        if name != UI_DESCRIPTION:
            yield f"{project.shown(directory.path)}/{name}: describes no script: none of that name is beside it"


def _open_directories(project: Project, tools: list[Tool]) -> Iterator[str]:
    """Directories in which somebody else could put another file in the place of a tool."""
    ground = project.ground(project.tools_dir)
    for directory in sorted({os.path.dirname(tool.path) for tool in tools}):
        problem = ground.problem_with_directory(directory)
        if problem:
            yield f"{project.shown(directory)}/: calls will be refused because {problem}"


def _useless_links(project: Project, tree: Tree) -> Iterator[str]:
    for path, mode in tree.links_out:
        if mode & metadata.EXECUTABLE_BITS or path.endswith((*SHELL_SUFFIXES, *META_SUFFIXES)):
            yield Loss(f"{project.shown(path)}: skipped, it is a symbolic link to a file outside tools/")


def _head_of(path: str) -> bytes:
    try:
        return metadata.read_start(path, metadata.HEAD_BYTES)
    except (PermissionError, FileNotFoundError):
        return b""  # a program may be executable and not readable


def distinct_tools(project: Project, tools: list[Tool], warnings: list[str]) -> list[Tool]:
    """The first of each name; clients address a tool by its name alone."""
    kept: dict[str, Tool] = {}
    for tool in tools:
        first = kept.setdefault(tool.name, tool)
        if first is not tool:
            shown, first_shown = project.shown(tool.path), project.shown(first.path)
            warnings.append(Loss(f"{shown}: skipped, {first_shown} already provides the tool {tool.name}"))
    return list(kept.values())
