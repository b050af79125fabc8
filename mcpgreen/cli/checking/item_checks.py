"""What is wrong with tools, resources, templates and prompts, beyond what reading them tells. Part of `validate`.

Reads what a server would read, and judges scripts as a call would; runs nothing but the interpreters' own checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.item_kinds import SOURCES
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.manual.rules import Registration
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import DEFAULT_PROVIDER, Resource, ResourceTemplate
from mcpgreen.catalog.schemes import PROVIDERS
from mcpgreen.catalog.tools import Tool
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.checking import no_tools
from mcpgreen.cli.checking.findings import Finding, Problem
from mcpgreen.cli.checking.reading.sources import Source, source_of
from mcpgreen.cli.checking.reading.syntax import Reader
from mcpgreen.cli.checking.remedies import explained
from mcpgreen.cli.checking.script_checks import ScriptChecks, refused
from mcpgreen.cli.checking.tool_checks import schema_problems
from mcpgreen.cli.making.names import SAFE_NAME
from mcpgreen.cli.output import did_you_mean
from mcpgreen.errors import Denied, ProjectError
from mcpgreen.features.prompts.input import arguments_from
from mcpgreen.project.project import Project
from mcpgreen.project.roots import configured_roots, resource_directories
from mcpgreen.providers.exits import ProviderFailure
from mcpgreen.providers.file import open_path, path_of_uri
from mcpgreen.providers.scripts import script_for, why_missing
from mcpgreen.running.scripts import jq, shebang
from mcpgreen.settings.settings import Settings
from mcpgreen.text import media
from mcpgreen.text.uris import scheme_of

WORD_OF = {
    "tools": "tool",
    "resources": "resource",
    "resourceTemplates": "template",
    "prompts": "prompt",
    "ui": "MCP App",
}
PLACEHOLDER = re.compile(r"\{\{([^{}]+)\}\}")
NO_SCHEMA = {"type": "object", "properties": {}}  # what clients see of a tool without one
_REFUSED = " will be refused "  # what is said of the tool itself, with the reason

Found = dict[str, Discovery | OSError]


def discoveries(project: Project, registration: Registration | None) -> Found:
    """What a server would find, by kind; instead of a kind that cannot be listed, why."""
    found: Found = {}
    for name, source in SOURCES.items():
        try:
            found |= source.read(project, survey(project, source.directories(project)), registration)
        except OSError as error:
            found[name] = error
    return found


class Checks:
    """The checks of one project, with what they need to know of it."""

    def __init__(
        self, project: Project, settings: Settings, environ: Mapping[str, str], registration: Registration | None
    ) -> None:
        self._project = project
        self._settings = settings
        self._registration = registration
        self._found = discoveries(project, registration)
        reader = Reader(project.root, jq.path_in(environ))
        self._scripts = ScriptChecks(project, environ, reader.readings(self._script_paths()))

    def findings(self, *, is_served: bool) -> Iterator[Finding]:
        """What of the project is well, and what is not; the former only if it `is_served` at all."""
        for kind, discovery in self._found.items():
            if isinstance(discovery, OSError):
                fix = "see to it that the directory can be read"
                yield Finding("error", kind, f"{kind} cannot be listed: {discovery.strerror}", "unreadable", fix)
                continue
            for warning in discovery.warnings:
                if _REFUSED not in warning:
                    yield explained(self._project, kind, warning)
            for hint in discovery.hints:
                yield explained(self._project, kind, hint, level="info")
            if kind == "tools":
                yield from no_tools.findings(self._project)
            for item in discovery.items:
                yield from self._item_findings(kind, item, is_served=is_served)

    def _item_findings(self, kind: str, item: Any, *, is_served: bool) -> Iterator[Finding]:
        source = source_of(self._project, self._registration, kind, item)
        subject = f"{WORD_OF[kind]} {item.name}"
        problems = [*self._problems(item, source), *_doubles(source)] if kind != "ui" else []
        for problem in problems:
            yield problem.about(self._project, kind, subject)
        if not problems and is_served:
            yield Finding("ok", kind, subject, file=self._project.shown(source.path) if source.path else None)

    def _script_paths(self) -> Iterator[str]:
        for discovery in self._found.values():
            for item in discovery.items if not isinstance(discovery, OSError) else ():
                if isinstance(item, Tool) or (isinstance(item, Prompt) and item.is_program and item.path):
                    yield str(item.path)
                elif isinstance(item, (Resource, ResourceTemplate)):
                    script = script_for(item.provider, self._project)
                    if script is not None:
                        yield script.path
        yield from no_tools.completions(self._project)

    def _problems(self, item: Any, source: Source) -> Iterator[Problem]:
        if isinstance(item, Tool):
            yield from self._tool_problems(item, source)
        elif isinstance(item, Prompt):
            yield from self._prompt_problems(item, source)
        elif isinstance(item, (Resource, ResourceTemplate)):
            yield from self._provider_problems(item.provider, source)
            if isinstance(item, Resource):
                yield from self._file_problems(item, source)
        for path in no_tools.completions_beside(getattr(item, "path", None)):
            yield from self._scripts.faults(path, obeys_first_line=False, subject="its completion ")

    def _tool_problems(self, tool: Tool, source: Source) -> Iterator[Problem]:
        if not SAFE_NAME.fullmatch(tool.name):
            sentence = "some clients accept only names of up to 64 of A-Z a-z 0-9 _ -"
            yield source.warning("name", sentence, "give it such a name, by the file or by name", "name")
        if not tool.definition.get("description"):
            sentence = "it has no description, so a model can only guess what it does"
            yield source.warning("no-description", sentence, "say in a description what it does and when to use it")
        if tool.definition["inputSchema"] == NO_SCHEMA and not {"inputSchema", "arguments"} & source.fields.keys():
            sentence = "it has no inputSchema, so a model does not know its arguments"
            yield source.warning("no-schema", sentence, "add an inputSchema, without properties if it takes none")
        yield from schema_problems(tool, source)
        runner = tool.command[0]
        if runner not in (tool.path, shebang.PYTHON[0]):
            sentence = f"{tool.relative_path} is not executable and is run by {runner} (chmod +x, or --fix)"
            yield Problem("warning", "not-executable", sentence, "chmod +x, or run validate --fix", tool.path)
        yield from self._scripts.problems(tool.path, below=self._project.tools_dir, obeys_first_line=runner != "bash")
        if runner == tool.path and not tool.path.endswith(shebang.SHELL_SUFFIXES) and _lacks_shebang(tool.path):
            sentence = f"{self._project.shown(tool.path)} has no #! line, so it is run by sh"
            fix = "begin it with #! and its interpreter, or take the executable bit from it if it is no program"
            yield Problem("warning", "no-shebang", sentence, fix, tool.path)

    def _provider_problems(self, provider: str, source: Source) -> Iterator[Problem]:
        script = script_for(provider, self._project)
        if script is None:
            if provider not in PROVIDERS:
                sentence = f"its provider is missing: {why_missing(provider, self._project.providers_dir)}"
                yield source.error("no-provider", sentence, "add that script, or correct uri or provider", "uri")
            return
        try:
            script.require_safe()
        except Denied as error:
            yield refused(error.message, error.message, script.path)
        obeys_first_line = script.command[0] != "bash"
        yield from self._scripts.faults(script.path, obeys_first_line=obeys_first_line, subject="its provider ")

    def _file_problems(self, resource: Resource, source: Source) -> Iterator[Problem]:
        """A client may name roots of its own later, so this is how it is without them."""
        project = self._project
        if resource.provider != DEFAULT_PROVIDER or script_for(DEFAULT_PROVIDER, project) is not None:
            return
        try:
            own_path = resource.path if scheme_of(resource.uri) != "file" else None
            open_path(
                own_path or path_of_uri(resource.uri, base=project.root),
                allowed=self._readable_directories(),
                private=project.private,
                limit_bytes=self._settings.max_resource_bytes,
            ).close()
        except ProviderFailure as failure:
            sentence = f"it cannot be read as things are: {failure.text}"
            fix = "correct uri, put the file there, or add its directory to resources_roots"
            yield source.warning("not-readable", sentence, fix, "uri")

    def _readable_directories(self) -> list[str]:
        try:
            roots: Sequence[str] = configured_roots(self._project.root, self._settings.roots).paths
        except ProjectError:
            roots = []  # told already: the server will not start
        return [*resource_directories(self._project, self._settings), *roots]

    def _prompt_problems(self, prompt: Prompt, source: Source) -> Iterator[Problem]:
        if prompt.is_program and prompt.path is not None:
            yield from self._scripts.problems(prompt.path, below=self._project.prompts_dir, obeys_first_line=True)
            return
        known = _arguments_of(prompt)
        for name in dict.fromkeys(name.strip() for text in _texts_of(prompt) for name in PLACEHOLDER.findall(text)):
            if name not in known:
                sentence = (
                    f"{{{{{name}}}}} is no declared argument, so clients cannot fill it{did_you_mean(name, known)}"
                )
                path = prompt.path or source.path
                position = source.position_of_text(path, f"{{{{{name}}}}}", f"{{{{ {name} }}}}")
                fix = "declare it in arguments, or correct the placeholder"
                yield Problem("warning", "placeholder", sentence, fix, path, position)


def _doubles(source: Source) -> Iterator[Problem]:
    for keys, position in source.description.doubles() if source.description and not source.is_registered else ():
        sentence = f"{'.'.join(map(str, keys))} stands there twice, and only the last counts"
        code = "yaml-double" if source.description and source.description.is_yaml else "json-double"
        yield Problem("warning", code, sentence, "remove one of the two", source.path, position)


def _lacks_shebang(path: str) -> bool:
    """Whether a text has none. A binary needs none, nor does what cannot be read."""
    with suppress(OSError):
        head = metadata.read_start(path, media.HEAD_BYTES)
        return not head.removeprefix(shebang.BYTE_ORDER_MARK).startswith(shebang.MARK) and b"\0" not in head
    return False


def _arguments_of(prompt: Prompt) -> list[str]:
    """The names of all that can be put in: what is declared, and what is asked for."""
    names = [argument["name"] for argument in prompt.definition.get("arguments", ())]
    for key, request in prompt.input_requests.items():
        names += arguments_from(key, request)
    return names


def _texts_of(prompt: Prompt) -> Iterator[str]:
    if prompt.messages is not None:
        yield from _texts_in([message.get("content") for message in prompt.messages])
    elif prompt.path is not None:
        with suppress(OSError):
            yield metadata.read_start(prompt.path, metadata.MAX_META_BYTES).decode("utf-8", "replace")


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)
