"""Check tools, resources, templates and prompts beyond what the catalog reports. Part of `validate`.

It reads what a server would read, judges scripts as a call would, and runs only the syntax checks of interpreters.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.in_script import keys_in
from mcpgreen.catalog.item_kinds import SOURCES
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.manual.registration import Registration
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import DEFAULT_PROVIDER, Resource, ResourceTemplate
from mcpgreen.catalog.schemes import PROVIDERS
from mcpgreen.catalog.tools import Tool
from mcpgreen.catalog.tree_scan import Directory, survey
from mcpgreen.cli.checking.findings import Finding, Problem
from mcpgreen.cli.checking.inputs import unseen_inputs
from mcpgreen.cli.checking.places import Item, Source, position_in_file, source_of
from mcpgreen.cli.checking.remedies import explained
from mcpgreen.cli.checking.scripts import Scripts, refused
from mcpgreen.cli.making.drafts import SAFE_NAME
from mcpgreen.cli.output import WORDS, did_you_mean
from mcpgreen.errors import Denied, ProjectError
from mcpgreen.features.prompts import arguments_from
from mcpgreen.project.project import Project
from mcpgreen.project.roots import configured_roots, resource_directories
from mcpgreen.protocol.schemas.quick import MAPS, NOT_SCHEMAS, slow_patterns_in
from mcpgreen.protocol.schemas.validator import BadSchema, compile_schema
from mcpgreen.providers.exits import ProviderFailure
from mcpgreen.providers.local import open_path, path_of_uri
from mcpgreen.providers.reading import script_for, why_missing
from mcpgreen.running.scripts import shebang
from mcpgreen.running.trust import NOT_RUN
from mcpgreen.settings.settings import Settings
from mcpgreen.text import media
from mcpgreen.text.json_offsets import Keys
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within, scheme_of

WORD_OF = {**WORDS, "ui": "MCP App"}
PLACEHOLDER = re.compile(r"\{\{([^{}]+)\}\}")
NO_SCHEMA = {"type": "object", "properties": {}}  # clients get this for a tool without a schema

Found = dict[str, Discovery | OSError]

MOST_NOT_TOOLS = 50  # more are not reported
SCHEMAS = ("inputSchema", "outputSchema")
COMBINING = ("allOf", "anyOf", "oneOf")
MOST_PARTS = 5000


def discoveries(project: Project, registration: Registration | None) -> Found:
    """Return what a server would find, by kind, or the error for a kind that cannot be listed."""
    found: Found = {}
    for name, source in SOURCES.items():
        try:
            found |= source.read(project, survey(project, source.directories(project)), registration)
        except OSError as error:
            found[name] = error
    resources = found.get("resources")
    if project.has_skills and isinstance(resources, Discovery):  # findings about a skill are about all of its files
        items = [each for each in resources.items if not is_within(each.path or "", project.skills_dir)]
        found["resources"] = resources._replace(items=items)
    return found


class Checks:
    def __init__(
        self, project: Project, settings: Settings, environ: Mapping[str, str], registration: Registration | None
    ) -> None:
        self._project = project
        self._settings = settings
        self._environ = environ
        self._registration = registration
        self._found = discoveries(project, registration)
        self._scripts = Scripts(project, environ)
        self._scripts.read(self._script_paths())
        self._reported: set[Finding] = set()
        tools = self._found["tools"]
        self._tools_in = Counter(tool.path for tool in tools.items) if not isinstance(tools, OSError) else Counter()

    def findings(self, *, is_served: bool) -> Iterator[Finding]:
        """Yield all findings. Items without problems are listed only if the project `is_served`."""
        for kind, discovery in self._found.items():
            if isinstance(discovery, OSError):
                fix = "make the directory readable"
                yield Finding("error", kind, f"{kind} cannot be listed: {discovery.strerror}", "unreadable", fix)
                continue
            for warning in discovery.warnings:
                if NOT_RUN not in warning:  # the finding of the tool itself says it
                    yield explained(self._project, kind, warning)
            for hint in discovery.hints:
                yield explained(self._project, kind, hint, level="info")
            if kind == "tools":
                yield from not_tools(self._project)
            for item in discovery.items:
                source = source_of(self._project, self._registration, kind, item)
                subject = f"{WORD_OF[kind]} {item.name}"
                problems = list(self._problems(item, source)) if kind != "ui" else []
                told = dict.fromkeys(problem.about(self._project, kind, subject) for problem in problems)
                yield from (each for each in told if each not in self._reported)  # tools may share a file
                self._reported.update(told)
                if not problems and is_served:
                    file = self._project.shown(source.path) if source.path else None
                    yield Finding("ok", kind, subject, file=file, subject=subject)

    def _script_paths(self) -> Iterator[str]:
        for discovery in self._found.values():
            for item in discovery.items if not isinstance(discovery, OSError) else ():
                yield from completions_of(item)
                if isinstance(item, Tool) or (isinstance(item, Prompt) and item.is_program and item.path):
                    yield str(item.path)
                elif isinstance(item, (Resource, ResourceTemplate)) and (
                    script := script_for(item.provider, self._project)
                ):
                    yield script.path

    def _problems(self, item: Item, source: Source) -> Iterator[Problem]:
        if isinstance(item, Tool):
            yield from self._tool_problems(item, source)
        elif isinstance(item, Prompt):
            yield from self._prompt_problems(item, source)
        elif isinstance(item, (Resource, ResourceTemplate)):
            yield from self._provider_problems(item.provider, source)
            if isinstance(item, Resource):
                yield from self._file_problems(item, source)
        for path in completions_of(item):
            yield from self._scripts.faults(path, obeys_first_line=False, subject="its completion ")
        description = source.description if not source.is_registered else None
        for keys, position in description.doubles() if description else ():
            sentence = f"{'.'.join(map(str, keys))} appears twice, and only the last one is used"
            code = "yaml-double" if description and description.is_yaml else "json-double"
            yield Problem("warning", code, sentence, "remove one of the two", source.path, position)

    def _tool_problems(self, tool: Tool, source: Source) -> Iterator[Problem]:
        listed_name = tool.name.replace(".", "_") if self._settings.replace_dots else tool.name
        if not SAFE_NAME.fullmatch(listed_name):
            sentence = "some clients only accept names of up to 64 characters from A-Z a-z 0-9 _ -"
            yield source.warning("name", sentence, "rename the file, or set another name in its description", "name")
        if not tool.definition.get("description"):
            fix = "add a description: what it does, and when to use it"
            if not source.fields and tool.path.endswith(shebang.SHELL_SUFFIXES):
                fix += ' (# mcp: {"description": "…"}, or a comment above an # @arg line)'
            yield source.warning("no-description", "no description, so a model has to guess what it does", fix)
        if tool.definition["inputSchema"] == NO_SCHEMA and not {"inputSchema", "arguments"} & source.fields.keys():
            sentence = "no inputSchema, so a model doesn't know its arguments"
            fix = "add an inputSchema, with no properties if it takes none"
            if tool.path.endswith(shebang.SHELL_SUFFIXES):
                fix = f"add a line for each argument (# @arg NAME!  TEXT), or {fix.removeprefix('add ')}"
            yield source.warning("no-schema", sentence, fix)
        yield from schema_problems(tool, source)
        yield from unseen_inputs(tool, self._project.shown(tool.path), self._settings, self._environ)
        shared = self._project.shown(tool.path) if self._tools_in[tool.path] > 1 else ""
        yield from (problem._replace(subject=shared) for problem in self._problems_of_file(tool))

    def _problems_of_file(self, tool: Tool) -> Iterator[Problem]:
        runner = tool.command[0]
        if runner not in (tool.path, shebang.PYTHON[0]):
            sentence = f"{tool.relative_path} is not executable, so {runner} runs it"
            yield Problem("warning", "not-executable", sentence, "run mcpgreen validate --fix, or chmod +x", tool.path)
        yield from self._scripts.problems(tool.path, below=self._project.tools_dir, obeys_first_line=runner != "bash")
        if runner == tool.path and not tool.path.endswith(shebang.SHELL_SUFFIXES) and _lacks_shebang(tool.path):
            sentence = f"{self._project.shown(tool.path)} has no shebang, so sh runs it"
            fix = "add a shebang for its interpreter; if it is not a program, remove its executable bit (chmod -x)"
            yield Problem("warning", "no-shebang", sentence, fix, tool.path)

    def _provider_problems(self, provider: str, source: Source) -> Iterator[Problem]:
        script = script_for(provider, self._project)
        if script is None:
            if provider not in PROVIDERS:
                sentence = f"there is no provider for it: {why_missing(provider, self._project.providers_dir)}"
                yield source.error("no-provider", sentence, "add that script, or fix uri or provider", "uri")
            return
        try:
            script.require_safe()
        except Denied as error:
            yield refused(error.message, error.message, script.path)
        obeys_first_line = script.command[0] != "bash"
        yield from self._scripts.faults(script.path, obeys_first_line=obeys_first_line, subject="its provider ")

    def _file_problems(self, resource: Resource, source: Source) -> Iterator[Problem]:
        """Problems of the file behind a resource, as far as it depends on no roots of clients."""
        project = self._project
        if resource.provider != DEFAULT_PROVIDER or script_for(DEFAULT_PROVIDER, project) is not None:
            return
        readable = list(resource_directories(project, self._settings))
        with suppress(ProjectError):  # reported elsewhere: the server will not start
            readable += configured_roots(project.root, self._settings.roots, warn=lambda _: None).paths
        try:
            own_path = resource.path if scheme_of(resource.uri) != "file" else None
            open_path(
                own_path or path_of_uri(resource.uri, base=project.root),
                allowed=readable,
                private=project.private,
                limit_bytes=self._settings.max_resource_bytes,
            ).close()
        except ProviderFailure as failure:
            sentence = f"it cannot be read: {failure.text}"
            fix = "fix uri, create the file, or add its directory to resources_roots"
            yield source.warning("not-readable", sentence, fix, "uri")

    def _prompt_problems(self, prompt: Prompt, source: Source) -> Iterator[Problem]:
        if prompt.is_program and prompt.path is not None:
            yield from self._scripts.problems(prompt.path, below=self._project.prompts_dir, obeys_first_line=True)
            return
        # Placeholders get the values of declared arguments, and of answers to input requests.
        known = [argument["name"] for argument in prompt.definition.get("arguments", ())]
        for key, request in prompt.input_requests.items():
            known += arguments_from(key, request)
        for name in dict.fromkeys(name.strip() for text in _texts_of(prompt) for name in PLACEHOLDER.findall(text)):
            if name not in known:
                placeholder, question = f"{{{{{name}}}}}", did_you_mean(name, known)
                sentence = f"{placeholder} is not a declared argument, so clients cannot fill it in{question}"
                path = prompt.path or source.path
                position = position_in_file(path, placeholder, f"{{{{ {name} }}}}") if path else None
                fix = "declare it in arguments, or fix the placeholder"
                yield Problem("warning", "placeholder", sentence, fix, path, position)


def _lacks_shebang(path: str) -> bool:
    """Tell whether a text file lacks a #! line. A binary needs none."""
    with suppress(OSError):
        head = metadata.read_start(path, media.HEAD_BYTES).removeprefix(shebang.BYTE_ORDER_MARK)
        return head.strip() != b"" and not head.startswith(shebang.MARK) and b"\0" not in head
    return False


def _texts_of(prompt: Prompt) -> Iterator[str]:
    if prompt.messages is None and prompt.path is not None:
        with suppress(OSError):
            yield metadata.read_start(prompt.path, metadata.MAX_META_BYTES).decode("utf-8", "replace")
    yield from _texts_in([message.get("content") for message in prompt.messages or ()])


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)


def not_tools(project: Project) -> Iterator[Finding]:
    """Report files in the directory of tools that are not offered, and that the catalogue skips silently."""
    found = (
        (f"{project.shown(directory.path)}/{name}", reason, fix)
        for directory in survey(project, [project.tools_dir]).directories
        for name, reason, fix in _no_tools_in(directory)
    )
    for path, reason, fix in islice(found, MOST_NOT_TOOLS):
        yield Finding("info", "tools", f"{path}: not a tool: {reason}", "not-a-tool", fix, path)


def _no_tools_in(directory: Directory) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each file, the reason, and the fix."""
    executables = [name for name, status in directory.files.items() if status.st_mode & metadata.EXECUTABLE_BITS]
    has_tool = any(name != "smoke.sh" and not metadata.is_description(name) for name in executables)
    for name in executables:
        if metadata.is_description(name):
            yield name, "it is a description, but it is executable", "remove its executable bit (chmod -x)"
        elif name == "smoke.sh" and not has_tool:  # next to a tool it is its test, as the author knows
            yield name, "smoke.sh is the name of a test", "rename it if it should be a tool"
    for name in os.listdir(directory.path):
        with suppress(OSError):
            mode = os.lstat(f"{directory.path}/{name}").st_mode
            if stat.S_ISLNK(mode) and not os.path.exists(f"{directory.path}/{name}"):
                yield name, "it is a broken link", "fix or remove the link"
            elif stat.S_ISREG(mode) and name.startswith(".") and mode & metadata.EXECUTABLE_BITS:
                reason = "its name begins with a dot, and hidden files are not offered"
                yield name, reason, "rename it if it should be a tool"
            elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                yield name, "it is not a regular file", "replace it with a script, or remove it"


def completions_of(item: Item) -> list[str]:
    path = getattr(item, "path", None)
    return metadata.completions_beside(path) if path is not None else []


def schema_problems(tool: Tool, source: Source) -> Iterator[Problem]:
    for which in SCHEMAS:
        schema = tool.definition.get(which)
        if schema is None:
            continue
        try:
            compile_schema(schema)
        except BadSchema as error:
            keys = keys_in(str(error).partition(": ")[2])
            fix = "fix the schema: until then, calls fail"
            if keys[-1:] == ("required",):
                fix = "make required a list of names, next to properties; " + fix
            yield source.error("schema-invalid", f"{which} cannot be used: {error}", fix, which, *keys)
            continue
        for pattern in slow_patterns_in(schema):
            trouble = "has a pattern with nested repeats, which can take forever to match"
            fix = "write the pattern without nested repeats, or use maxLength or enum"
            yield source.warning("slow-pattern", f"{which} {trouble}: {pattern:.80}", fix, which)
        for keys, part in parts_of(schema):
            yield from _unknown_required((which, *keys), part, source)
            yield from _unfit_default((which, *keys), part, source)


def _unknown_required(keys: Keys, part: Json, source: Source) -> Iterator[Problem]:
    properties, required = part.get("properties"), part.get("required")
    branches = [each for key in COMBINING for each in part.get(key) or () if isinstance(each, dict)]
    is_elsewhere = "patternProperties" in part or any("$ref" in each for each in (part, *branches))
    is_elsewhere |= properties is None and (len(keys) > 1 or not part.keys().isdisjoint(COMBINING))
    if is_elsewhere or not isinstance(required, list):
        return
    known = properties if isinstance(properties, dict) else {}
    elsewhere = {name for each in branches for name in each.get("properties") or ()}
    for index, name in enumerate(required):
        if isinstance(name, str) and name not in known and name not in elsewhere:
            place = ".".join(map(str, (*keys, "required")))
            sentence = f"{place} has {name}, which is not a property{did_you_mean(name, known)}"
            fix = f"add {name} to properties, or remove it from required"
            yield source.warning("required", sentence, fix, *keys, "required", index)


def _unfit_default(keys: Keys, part: Json, source: Source) -> Iterator[Problem]:
    if "default" not in part or "$ref" in part or not isinstance(part.get("type"), str):
        return
    bare = {key: part[key] for key in ("type", "enum") if key in part}
    if compile_schema(bare).problems(part["default"]):
        sentence = f"{'.'.join(map(str, keys))} has a default that does not match its own type"
        fix = "fix default or type: models assume that the default is valid"
        yield source.warning("default", sentence, fix, *keys, "default")


def parts_of(schema: object) -> Iterator[tuple[Keys, Json]]:
    """Yield every schema in a schema, with the keys that lead to it."""
    pending: list[tuple[Keys, object, bool]] = [((), schema, False)]
    seen = 0
    while pending and seen < MOST_PARTS:
        keys, current, is_map = pending.pop()
        seen += 1
        if isinstance(current, list):
            pending.extend(((*keys, index), each, False) for index, each in enumerate(current))
        elif isinstance(current, dict):
            if not is_map:
                yield keys, current
            for key in reversed(current):
                if is_map or key not in NOT_SCHEMAS:
                    pending.append(((*keys, key), current[key], not is_map and key in MAPS))
