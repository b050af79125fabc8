"""What is wrong with tools, resources, templates and prompts, beyond what reading them tells. Part of `validate`.

Reads what a server would read and asks who would be asked in a call; runs nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.item_kinds import SOURCES
from mcpgreen.catalog.items import Loss
from mcpgreen.catalog.manual.rules import Registration
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import DEFAULT_PROVIDER, Resource, ResourceTemplate
from mcpgreen.catalog.schemes import PROVIDERS
from mcpgreen.catalog.tools import Tool
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.checking.findings import Finding
from mcpgreen.errors import Denied, ProjectError
from mcpgreen.features.prompts.input import arguments_from
from mcpgreen.project.project import Project
from mcpgreen.project.roots import configured_roots, resource_directories
from mcpgreen.protocol.schemas.lint import slow_patterns_in
from mcpgreen.providers.exits import ProviderFailure
from mcpgreen.providers.file import open_path, path_of_uri
from mcpgreen.providers.scripts import script_for, why_missing
from mcpgreen.running.scripts import jq, shebang
from mcpgreen.settings.settings import Settings
from mcpgreen.text import media
from mcpgreen.text.uris import scheme_of

WORD_OF = {"tools": "tool", "resources": "resource", "resourceTemplates": "template", "prompts": "prompt", "ui": "page"}
# Clients put names of servers and tools together, and models accept no more than this.
SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
PLACEHOLDER = re.compile(r"\{\{([^{}]+)\}\}")
# How the catalogue says that something is not served, besides what it leaves out.
_LOST = re.compile(r"may not be read$| describes no script: ")
_REFUSED = " will be refused "  # what is said of the tool itself, with the reason

Problem = tuple[str, str]  # level and sentence


class Checks:
    """The checks of one project, with what they need to know of it."""

    def __init__(self, project: Project, settings: Settings, environ: Mapping[str, str]) -> None:
        self._project = project
        self._settings = settings
        self._search_path = jq.path_in(environ)
        self._are_tools_registered = False

    def findings(self, registration: Registration | None, *, is_served: bool) -> Iterator[Finding]:
        """What of the project is well, and what is not; the former only if it `is_served` at all."""
        self._are_tools_registered = registration is not None and registration.items["tools"] is not None
        for name, source in SOURCES.items():
            try:
                surveyed = survey(self._project, source.directories(self._project))
                found = source.read(self._project, surveyed, registration)
            except OSError as error:
                yield Finding("error", name, f"{name} cannot be listed: {error.strerror}")
                continue
            for kind, discovery in found.items():
                for warning in discovery.warnings:
                    if _REFUSED not in warning:
                        is_lost = type(warning) is Loss or _LOST.search(warning)
                        yield Finding("error" if is_lost else "warning", kind, warning)
                for hint in discovery.hints:
                    yield Finding("info", kind, hint)
                for item in discovery.items:
                    problems = list(self._problems(item))
                    for level, problem in problems:
                        yield Finding(level, kind, f"{WORD_OF[kind]} {item.name}: {problem}")
                    if not problems and is_served:
                        yield Finding("ok", kind, f"{WORD_OF[kind]} {item.name}")

    def _problems(self, item: Any) -> Iterator[Problem]:
        if isinstance(item, Tool):
            yield from self._tool_problems(item)
        elif isinstance(item, Prompt):
            yield from self._prompt_problems(item)
        elif isinstance(item, (Resource, ResourceTemplate)):
            yield from self._provider_problems(item.provider)
            if isinstance(item, Resource):
                yield from self._file_problems(item)

    def _tool_problems(self, tool: Tool) -> Iterator[Problem]:
        if not SAFE_NAME.fullmatch(tool.name):
            yield "warning", "some clients accept only names of up to 64 of A-Z a-z 0-9 _ -"
        if not tool.definition.get("description"):
            yield "warning", "it has no description, so a model can only guess what it does"
        if not self._are_tools_registered and not {"inputSchema", "arguments"} & _own_fields(tool).keys():
            yield "warning", "it has no inputSchema, so a model does not know its arguments"
        for which in ("inputSchema", "outputSchema"):
            for pattern in slow_patterns_in(tool.definition.get(which)):
                trouble = "has a pattern that may take for ever, with a repeat in a repeat"
                yield "warning", f"{which} {trouble}: {pattern:.80}"
        runner = tool.command[0]
        if runner != tool.path:
            yield "warning", f"{tool.relative_path} is not executable and is run by {runner} (chmod +x, or --fix)"
        yield from self._script_problems(tool.path, below=self._project.tools_dir, obeys_first_line=runner != "bash")
        if runner == tool.path and not tool.path.endswith(shebang.SHELL_SUFFIXES) and _lacks_shebang(tool.path):
            yield "warning", f"{self._project.shown(tool.path)} has no #! line, so it is run by sh"

    def _script_problems(self, path: str, *, below: str, obeys_first_line: bool) -> Iterator[Problem]:
        try:
            problem = self._project.ground(below).problem_with(path)
        except FileNotFoundError:
            problem = "its script has been removed"
        if problem:
            yield "error", f"calls will be refused: {problem}"
        if obeys_first_line and (fault := shebang.fault_of(path, search_path=self._search_path)):
            yield "warning", f"{self._project.shown(path)} {fault}"

    def _provider_problems(self, provider: str) -> Iterator[Problem]:
        script = script_for(provider, self._project)
        if script is None:
            if provider not in PROVIDERS:
                yield "error", f"its provider is missing: {why_missing(provider, self._project.providers_dir)}"
            return
        try:
            script.require_safe()
        except Denied as error:
            yield "error", error.message
        obeys_first_line = script.command[0] != "bash"
        if obeys_first_line and (fault := shebang.fault_of(script.path, search_path=self._search_path)):
            yield "error", f"its provider {self._project.shown(script.path)} {fault}"

    def _file_problems(self, resource: Resource) -> Iterator[Problem]:
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
            yield "warning", f"it cannot be read as things are: {failure.text}"

    def _readable_directories(self) -> list[str]:
        try:
            roots = configured_roots(self._project.root, self._settings.roots).paths
        except ProjectError:
            roots = []  # told already: the server will not start
        return [*resource_directories(self._project, self._settings), *roots]

    def _prompt_problems(self, prompt: Prompt) -> Iterator[Problem]:
        if prompt.is_program and prompt.path is not None:
            yield from self._script_problems(prompt.path, below=self._project.prompts_dir, obeys_first_line=True)
            return
        known = _arguments_of(prompt)
        for name in dict.fromkeys(name.strip() for text in _texts_of(prompt) for name in PLACEHOLDER.findall(text)):
            if name not in known:
                trouble = "is no declared argument, so clients cannot fill it"
                yield "warning", f"{{{{{name}}}}} {trouble}{_guess(name, known)}"


def _own_fields(tool: Tool) -> Mapping[str, Any]:
    """What the description beside the script says."""
    directory, name = os.path.split(tool.path)
    described = metadata.meta_file_for(name, os.listdir(directory))
    if described is None:
        return metadata.read_inline_of(tool.path) or {}
    return metadata.read_meta_file(os.path.join(directory, described))


def _lacks_shebang(path: str) -> bool:
    """Whether a text has none. A binary needs none, nor does what cannot be read."""
    with suppress(OSError):
        head = metadata.read_start(path, media.HEAD_BYTES)
        return not head.startswith(shebang.MARK) and b"\0" not in head
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


def _guess(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
