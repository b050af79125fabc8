"""Find a project's tools among the files below tools/, and read their descriptions.

A tool is an executable program, or a script with a description: in a file next to it, in a comment, or in the signature
of a Python function (`functions`). A file with several such functions has several tools. Hidden files and directories,
smoke.sh, descriptions and everything below a directory `ui` are not tools.

Schemas are only checked for plain mistakes: compiling one takes longer than scanning ten tools, so the first call does
it.

Rule: one bad file costs one tool and a warning, never the list.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen.catalog.descriptions import HEAD_BYTES, metadata
from mcpgreen.catalog.descriptions.metadata import matches
from mcpgreen.catalog.descriptions.scopes import with_all_scopes
from mcpgreen.catalog.items import Discovery, ItemFile, distinct, read_files
from mcpgreen.catalog.tree_scan import Loss, Pace, Tree
from mcpgreen.errors import ProjectError
from mcpgreen.files.confined import Private
from mcpgreen.project.project import Project
from mcpgreen.project.unmarked import META_SUFFIXES
from mcpgreen.protocol.revisions import CLIENT_NEEDS
from mcpgreen.protocol.schemas import quick
from mcpgreen.running import trust
from mcpgreen.running.scripts.shebang import SHELL_SUFFIXES, command_of, is_program, is_python
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.catalog.functions.reading import FunctionTool
    from mcpgreen.running.processes.run import Stays

UI_DIRECTORY = "ui"  # holds the app of a tool and its files

# How a script asks a stateless client: it waits for the answer (park), or is run again with it (replay). With auto it
# waits, and is run again only if that is harmless.
INTERACTIONS = ("auto", "park", "replay")

MOST_REASONS = 5  # told
MAX_MODULES = 50  # in `warm`
_MODULE = r"[^\W\d]\w*(\.[^\W\d]\w*)*"

MAX_VARIABLES = 50  # in `env`
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,127}!?"
# Variables that `env` cannot pass on, and why.
UNFIT_VARIABLES = {
    r"MCP(BASH|GREEN)?_\w*": "the server decides which of its own variables tools get",
    r"PATH|HOME|TMPDIR|LANG": "every tool gets it anyway",
    r"(LD|DYLD)_\w*|GCONV_PATH|GLIBC_TUNABLES": "it loads other code into programs",
    r"(PYTHON|PERL5|RUBY|BASH|SHELLOPTS)\w*|NODE_(OPTIONS|PATH)|ENV|IFS|CDPATH|PS4": "it changes how scripts are run",
}

TASK_WAYS = ("never", "auto", "always", "required")  # how calls become tasks
# What else is said of tasks.
TASK_FIELDS = {
    "taskBegins": metadata.one_of(("call", "script")),
    **dict.fromkeys(("taskAfterSecs", "taskTimeoutSecs", "taskKeepSecs"), metadata.A_DURATION),
    **dict.fromkeys(("taskSurvivesClient", "idempotent"), metadata.A_BOOLEAN),
}

MAX_LABELS = 16  # in `run_on`
_LABEL = r"[\w.=@-]{1,64}"
_LABEL_SCHEMA = {"type": "string", "pattern": f"^{_LABEL}$"}

SCOPES_OF_STAYS = ("server", "session")  # how long a process is kept between calls


def _whole(lowest: int, highest: int) -> metadata.Rule:
    return metadata.Rule(
        lambda value: metadata.is_natural(value) and lowest <= value <= highest,
        f"an integer from {lowest} to {highest}",
        {"type": "integer", "minimum": lowest, "maximum": highest},
    )


STAYS_RULES = {  # in the order of the attributes of `Stays`
    "for": metadata.one_of(SCOPES_OF_STAYS),
    "workers": _whole(1, 64),
    "concurrency": _whole(1, 1000),
    "idleSecs": metadata.A_DURATION,
    "maxCalls": _whole(0, 10**9),
    "maxMemoryMb": _whole(0, 10**6),
    "startSecs": metadata.A_DURATION,
}
_MEMBERS = {key: dict(rule.schema) for key, rule in STAYS_RULES.items()}
STAYS_SCHEMA = {"type": "object", "properties": _MEMBERS, "required": ["for"], "additionalProperties": False}

FIELD_RULES = {
    **metadata.COMMON_RULES,
    "name": metadata.A_NAME,
    "arguments": metadata.AN_OBJECT,
    "outputSchema": metadata.AN_OBJECT_OR_BOOLEAN,
    **dict.fromkeys(("timeoutSecs", "maxTimeoutSecs"), metadata.A_DURATION),
    "timeoutHint": metadata.A_STRING,
    **dict.fromkeys(("progressExtendsTimeout", "strictArguments"), metadata.A_BOOLEAN),
    "maxConcurrent": metadata.Rule(
        lambda value: metadata.is_natural(value) and value > 0, "a positive integer", {"type": "integer", "minimum": 1}
    ),
    "needs": metadata.Rule(
        lambda value: isinstance(value, list) and all(need in tuple(CLIENT_NEEDS) for need in value),
        f"an array of {', '.join(CLIENT_NEEDS)}",
        {"type": "array", "items": {"enum": list(CLIENT_NEEDS)}},
    ),
    "interaction": metadata.one_of(INTERACTIONS),
    "scopes": metadata.SCOPES,
    "warm": metadata.Rule(
        lambda value: (
            isinstance(value, bool)
            or (isinstance(value, list) and len(value) <= MAX_MODULES and all(matches(_MODULE, each) for each in value))
        ),
        "true, false, or an array of Python module names",
        {"type": ["boolean", "array"], "items": {"type": "string"}, "maxItems": MAX_MODULES},
    ),
    "stays": metadata.Rule(
        lambda value: value in SCOPES_OF_STAYS or (isinstance(value, dict) and "for" in value),
        'server, session, or an object such as {"for": "server", "workers": 2}',
        {"anyOf": [{"enum": list(SCOPES_OF_STAYS)}, STAYS_SCHEMA]},
    ),
    "process": metadata.A_NAME,
    "run_on": metadata.Rule(
        lambda value: (
            len(value) in range(1, MAX_LABELS + 1) and all(matches(_LABEL, each) for each in value)
            if isinstance(value, list)
            else matches(_LABEL, value)
        ),
        f"any, a label, or an array of at most {MAX_LABELS} labels",
        {"anyOf": [_LABEL_SCHEMA, {"type": "array", "items": _LABEL_SCHEMA, "minItems": 1, "maxItems": MAX_LABELS}]},
    ),
    "retries": _whole(0, 100),
    "task": metadata.one_of(TASK_WAYS),
    **TASK_FIELDS,
    "env": metadata.Rule(
        lambda value: (
            isinstance(value, list) and len(value) <= MAX_VARIABLES and all(matches(_VARIABLE, each) for each in value)
        ),
        f"an array of at most {MAX_VARIABLES} variable names, each followed by ! if it is required",
        {"type": "array", "maxItems": MAX_VARIABLES, "items": {"type": "string", "pattern": f"^{_VARIABLE}$"}},
    ),
}

KNOWN_FIELDS = frozenset(FIELD_RULES) | {"icons", "path"}
OF_ONE_FUNCTION = ("name", "title", "description", "inputSchema", "arguments", "outputSchema")


class Description(NamedTuple):
    """The description of a tool. Clients get `definition`; `unlisted` has the other fields as they were written. The
    fields with a default are used by the server itself; each is named after its key in the description."""

    definition: Json
    unlisted: Json
    complaints: list[str]
    timeout_secs: float | None = None
    timeout_hint: str | None = None
    progress_extends_timeout: bool | None = None
    max_timeout_secs: float | None = None
    max_concurrent: int | None = None
    strict_arguments: bool | None = None
    needs: Sequence[str] = ()  # capabilities that a client must have
    interaction: str = INTERACTIONS[0]
    scopes: Sequence[str] = ()  # that a caller must have, if callers have scopes at all
    warm: bool | list[str] = True
    env: Sequence[str] = ()  # variables of the server that the tool gets; a ! marks a required one
    stays: Stays | None = None  # between calls
    task: str | None = None  # how its calls become tasks; None if nothing is said
    task_begins: str = "call"
    task_after_secs: float | None = None
    task_timeout_secs: float | None = None
    task_keep_secs: float | None = None
    task_survives_client: bool | None = None
    idempotent: bool = False  # a task may be run again after a crash
    run_on: str | Sequence[str] = ()  # labels of the workers that may run it; none: the server's machine
    retries: int = 0  # on other workers, if one is lost
    process: str = ""  # shared with other resident tools that are links to the same file


ATTRIBUTE_OF = {name[0] + name.title().replace("_", "")[1:]: name for name in Description._field_defaults}
ATTRIBUTE_OF["run_on"] = ATTRIBUTE_OF.pop("runOn")
LISTED_FIELDS = KNOWN_FIELDS - ATTRIBUTE_OF.keys()


class Tool(NamedTuple):
    """One script that clients may call. `registry_entry` has everything that is known about it."""

    name: str
    path: str
    relative_path: str
    command: list[str]
    description: Description
    registry_entry: Json

    @property
    def definition(self) -> Json:
        return self.description.definition

    @property
    def staying(self) -> tuple[str, Stays | None]:
        """The file whose process serves it, and how long that is kept."""
        described = self.description
        return os.path.realpath(self.path) if described.process else self.path, described.stays


def discover_tools(project: Project, tree: Tree) -> Discovery:
    """Read every tool in a tree of tools/, sorted by name and path."""
    warnings = list(tree.warnings)
    for path, mode in tree.links_out.items():
        if mode & metadata.EXECUTABLE_BITS or path.endswith((*SHELL_SUFFIXES, *META_SUFFIXES)):
            reason = "skipped because it is a symbolic link to a file outside tools/"
            warnings.append(Loss(f"{project.shown(path)}: {reason}"))
    hints: list[str] = []
    top = project.tools_dir.rstrip("/")
    if any(directory.path == f"{top}/{UI_DIRECTORY}" for directory in tree.directories):
        place = project.shown(f"{top}/{UI_DIRECTORY}")
        hints.append(f"{place}: neither a tool nor a folder of tools: the files below ui/ belong to an app")
    of_tools = [each for each in tree.directories if UI_DIRECTORY not in each.path.removeprefix(top).split("/")]
    below = tree._replace(directories=of_tools)
    tools, more, own_hints = read_files(project, below, _scripts_in, _tools_of, "the tool")
    found = _with_whole_processes(project, sorted(tools, key=lambda tool: (tool.name, tool.relative_path)), warnings)
    warnings += more
    hints += own_hints
    for directory in of_tools:
        lonely = metadata.lonely_descriptions(directory.files)
        place = project.shown(directory.path)
        reason = "there is no script with the same name next to it"
        warnings.extend(f"{place}/{name}: {reason}" for name in lonely)
    if len(of_tools) < len(tree.directories):
        found = _with_apps(project, found, tree.pace)
    kept, losses = distinct(found, "name", "provides the tool", lambda tool: project.shown(tool.path))
    return Discovery(kept, [*warnings, *losses], hints)


def _with_whole_processes(project: Project, tools: list[Tool], warnings: list[str]) -> list[Tool]:
    """Return the tools without those that cannot share the process that they name."""
    shared = Counter(name for name, _ in {(tool.description.process, tool.staying) for tool in tools} if name)
    lost = [tool for tool in tools if shared[tool.description.process] > 1]
    reason = "left out: the tools of the process {} must be links to one file, and have the same stays"
    warnings += [Loss(f"{project.shown(tool.path)}: {reason.format(tool.description.process)}") for tool in lost]
    return [tool for tool in tools if tool not in lost] if lost else tools


def _scripts_in(names: Iterable[str]) -> list[str]:
    return [name for name in names if name != "smoke.sh" and not metadata.is_description(name)]


def _with_apps(project: Project, tools: list[Tool], pace: Pace) -> list[Tool]:
    """Return the same tools; the definition of a tool with an MCP App next to it names the app."""
    from mcpgreen.catalog.apps.resources import directory_beside, discover_apps, with_ui  # few projects have apps

    apps, _ = discover_apps(project, project.server_name(), pace)
    by_directory = {app.directory: app for app in apps}
    linked = []
    for tool in pace.over(tools):
        if app := by_directory.get(directory_beside(tool.path)):
            meta = with_ui(tool.definition.get("_meta"), app_uri=app.uri)
            description = tool.description._replace(definition={**tool.definition, "_meta": meta})
            tool = tool._replace(description=description, registry_entry={**tool.registry_entry, "_meta": meta})
        linked.append(tool)
    return linked


def _tools_of(file: ItemFile) -> list[Tool]:
    path, source = file.path, file.origin.path
    is_executable = bool(file.directory.files[file.name].st_mode & metadata.EXECUTABLE_BITS)
    readable_head = metadata.head_of(path)
    head = readable_head or b""
    command = command_of(path, head, is_executable=is_executable, is_described=True)
    if command is None:
        if file.has_description:
            file.warnings.append(f"{file.shown}: has a description, but is neither executable nor a script (chmod +x)")
        return []
    written: tuple[Json, Sequence[str], Sequence[str]] | None
    if file.has_description:
        written = metadata.read_meta_file(source), (), ()
    else:
        from mcpgreen.catalog.descriptions.in_script import read_script  # takes long, and some projects need none of it

        written = read_script(path, head)
    functions = _functions_in(path, head)
    described = [each for each in functions if each.fields or each.notes]
    if written is None and not described and not (is_executable and (readable_head is None or is_program(path, head))):
        # A library for tools, a text file on a file system where all files are executable, or a tool without its bit.
        lack = "neither a script (#!) nor a program," if is_executable else "not executable (chmod +x)"
        file.hints.append(f"{file.shown}: not a tool: it is {lack} and has no description")
        return []
    stated, complaints, own_hints = written or ({}, (), ())
    file.warnings.extend(f"{file.shown}: {note}" for each in described for note in each.notes)
    if len(functions) < 2:
        function = functions[0] if functions else None
        fields = {**(function.fields if function is not None else {}), **stated}
        if "arguments" in stated and "inputSchema" not in stated:  # another name for the schema
            fields.pop("inputSchema", None)
        tools = [_tool(file, head, command, fields, function)]
    else:
        tools = _tools_of_functions(file, head, command, stated, functions)
    file.warnings.extend(f"{file.project.shown(source)}: {each}" for each in complaints)
    file.hints.extend(f"{file.project.shown(source)}: {hint}" for hint in own_hints)
    return tools


def _tools_of_functions(
    file: ItemFile, head: bytes, command: list[str], stated: Json, functions: list[FunctionTool]
) -> list[Tool]:
    """Return the tools of a file with several functions. Its description counts for each. Raises ProjectError."""
    if key := next((key for key in OF_ONE_FUNCTION if key in stated), None):
        reason = f"{key} cannot apply to {len(functions)} functions; set it for each function instead"
        raise ProjectError(file.origin.path, reason)
    tools = []
    for function in functions:
        try:
            fields = with_all_scopes(file.path, b"", {**stated, **function.fields}, stated)
            tools.append(_tool(file, head, command, fields, function))
        except ProjectError as error:
            file.lose(error, f"the tool {function.name}")
    return tools


def _tool(file: ItemFile, head: bytes, command: list[str], fields: Json, function: FunctionTool | None) -> Tool:
    project, source = file.project, file.origin.path
    fields = _with_scopes_of_script(file.path, head, fields, function)
    own_name = function.name if function is not None else ""
    stem = own_name or metadata.stem_of(file.name)
    if stem == "tool" and not own_name and file.directory.path != project.tools_dir.rstrip("/"):
        stem = os.path.basename(file.directory.path)  # each tool has a folder of its own
    description = describe_tool(source, fields, stem=stem, private=project.private)
    complaints = [f"{project.shown(source)}: {each}" for each in description.complaints]
    file.warnings.extend(each for each in complaints if each not in file.warnings)
    name = description.definition["name"]
    if name not in (stem, fields.get("name")):
        file.hints.append(f"{file.shown}: the tool is named {name}, because names may only contain A-Z a-z 0-9 _ . -")
    return _described_tool(project, file.path, command, description)


def _functions_in(path: str, head: bytes) -> list[FunctionTool]:
    """Read the tools that are Python functions; none for any other script."""
    if not is_python(path, head):
        return []
    is_whole = len(head) < HEAD_BYTES
    if is_whole and b"mcp_tool" not in head:
        return []
    from mcpgreen.catalog.functions import reading  # most projects have no such tools

    return reading.function_tools(head if is_whole else metadata.read_start(path, reading.MAX_BYTES + 1))


def _with_scopes_of_script(path: str, head: bytes, fields: Json, function: FunctionTool | None) -> Json:
    """Return the fields with all scopes, those in the script included. Raises ProjectError for a bad function."""
    if function is not None and function.problem:
        raise ProjectError(path, function.problem)
    if function is not None and function.hides_scopes and "scopes" not in fields:
        raise ProjectError(path, "its scopes are not literal strings; use strings, or a description next to it")
    return with_all_scopes(path, head, fields, function.fields if function is not None else {})


def _described_tool(project: Project, path: str, command: list[str], description: Description) -> Tool:
    name, relative_path = description.definition["name"], path[len(project.tools_dir.rstrip("/")) + 1 :]
    entry = {"name": name, "description": "", "path": relative_path, **description.definition, **description.unlisted}
    return Tool(name, path, relative_path, command, description, entry)


def tool_at(project: Project, path: str, fields: Json, *, status: os.stat_result) -> tuple[Tool, list[str]]:
    """Describe a tool with fields from elsewhere; return complaints, too. Raises ProjectError if it is not a tool."""
    is_executable = bool(status.st_mode & metadata.EXECUTABLE_BITS)
    head = metadata.head_of(path) or b""
    command = command_of(path, head, is_executable=is_executable, is_described=True)
    if command is None:
        raise ProjectError(path, f"{project.shown(path)} is neither executable nor a script (chmod +x)")
    functions = _functions_in(path, head)
    if len(functions) > 1:  # scripts find their function by the name of the tool
        functions = [each for each in functions if each.name == fields.get("name")]
        if not functions:
            raise ProjectError(path, f"{project.shown(path)} has several functions; register one by its name")
    fields = _with_scopes_of_script(path, head, fields, functions[0] if functions else None)
    stem = metadata.stem_of(os.path.basename(path))
    description = describe_tool(path, fields, stem=stem, private=project.private)
    return _described_tool(project, path, command, description), description.complaints


def describe_tool(path: str, fields: Json, *, stem: str, private: Private) -> Description:
    """Check and normalise the `fields` that were read from `path`. Raises ProjectError if the tool cannot be served.
    A tool without a name is called `stem`."""
    fields = metadata.checked(path, fields, FIELD_RULES)
    origin = metadata.Origin(path, private, [])
    named = {"name": fields.get("name") or metadata.default_name(stem)}
    definition = metadata.definition_of(origin, named, fields, plain=(), known=KNOWN_FIELDS)
    definition["inputSchema"] = _input_schema(path, fields)
    if "outputSchema" in fields:
        # Clients only accept an object, so a boolean schema becomes the object that means the same.
        schema = fields["outputSchema"]
        definition["outputSchema"] = schema if isinstance(schema, dict) else {} if schema else {"not": {}}
    for key in ("inputSchema", "outputSchema"):
        if fault := quick.fault_of(definition.get(key)):
            raise ProjectError(path, f"{key} {fault}")
    unlisted = {key: value for key, value in fields.items() if key not in LISTED_FIELDS}
    known = {name: fields[key] for key, name in ATTRIBUTE_OF.items() if key in fields}
    if fields.get("task", "never") != "never":
        definition["execution"] = {"taskSupport": "required" if fields["task"] == "required" else "optional"}
    if "process" in fields and "stays" not in fields:
        raise ProjectError(path, "process is for tools with stays; add stays")
    if "stays" in fields:
        known["stays"] = _stays_of(path, fields["stays"])
        if "maxConcurrent" in fields:
            origin.complaints.append("maxConcurrent has no effect on a tool with stays; set concurrency in stays")
    for each in fields.get("env", ()):
        for reason in (reason for names, reason in UNFIT_VARIABLES.items() if matches(f"(?:{names})!?", each)):
            known["env"] = [other for other in known["env"] if other != each]
            origin.complaints.append(f"env: {each.rstrip('!')} is left out: {reason}")
    return Description(definition, unlisted, origin.complaints, **known)


def _stays_of(path: str, value: Any) -> Stays:
    """Raises ProjectError for an object that has a wrong member."""
    from mcpgreen.running.processes.run import Stays  # few tools are resident

    given = {"for": value} if isinstance(value, str) else value
    given = metadata.checked(path, given, STAYS_RULES, "stays.")
    if unknown := next((key for key in given if key not in STAYS_RULES), None):
        raise ProjectError(path, f"stays.{unknown} is unknown; stays has {', '.join(STAYS_RULES)}")
    attributes = dict(zip(STAYS_RULES, Stays._fields, strict=True))
    stays = Stays(**{attributes[key]: each for key, each in given.items()})
    if stays.scope == "session" and stays.workers > 1:
        raise ProjectError(path, "stays.workers must be 1 for a session, which has one process; use concurrency")
    return stays


def _input_schema(path: str, fields: Json) -> Json:
    key = "inputSchema" if "inputSchema" in fields else "arguments"
    given: Json = fields.get(key, {})
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


def refusals(project: Project, tools: Iterable[Tool], pace: Pace) -> list[str]:
    """Return a warning about the tools that others could have changed, so that calls will be refused; one for all that
    have the same remedy."""
    ground = project.ground(project.tools_dir, cache(os.lstat))  # most tools share their directories
    reasons: dict[str, list[str]] = {}
    for tool in pace.over(tools):
        with suppress(FileNotFoundError):
            if problem := ground.problem_with(tool.path):
                reasons.setdefault(trust.MEND if trust.MEND in problem else problem, []).append(
                    project.shown(tool.path)
                )
    open_files = reasons.pop(trust.MEND, [])
    found = [f"{trust.told_together(open_files)}; {trust.MEND}"] if open_files else []
    some = islice(reasons.items(), MOST_REASONS)
    return found + [f"{paths[0]}: it is {trust.NOT_RUN} {reason}" for reason, paths in some]
