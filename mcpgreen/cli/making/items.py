"""The files of a new tool, resource, template, prompt, completion, provider, MCP App or test."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from typing import Any

from mcpgreen.catalog.descriptions.metadata import stem_of
from mcpgreen.catalog.prompts import discover_prompts
from mcpgreen.catalog.resources import discover_resources
from mcpgreen.catalog.schemes import PROVIDERS
from mcpgreen.catalog.tools import Tool, discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.making.drafts import Draft
from mcpgreen.cli.making.editor_schemas import MARK
from mcpgreen.cli.making.languages import Language, filled
from mcpgreen.cli.making.names import require_scheme, title_of
from mcpgreen.cli.making.samples import sample_of
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project


def add_tool(
    draft: Draft, tools_dir: str, name: str, language: Language, *, has_page: bool = False, may_exist: bool = False
) -> str:
    """The directory of the tool."""
    if not may_exist:
        _require_free(tools_dir, name)
    place = os.path.join(tools_dir, name)
    script = f"tool.{language.suffix}"
    described = "its signature and docstring say" if language.has_signatures else "`tool.meta.json` says"
    values = {"name": name, "title": title_of(name), "script": script, "described": described}
    draft.add(f"{place}/{script}", filled(f"items/tool.{language.name}", **values), is_executable=True)
    if not language.has_signatures:
        draft.add(f"{place}/tool.meta.json", filled("items/tool.meta.json", **values))
    draft.add(f"{place}/README.md", filled("items/tool.README.md", **values))
    draft.add(f"{place}/smoke.sh", filled("items/smoke.sh", **values), is_executable=True)
    if has_page:
        add_page(draft, os.path.join(place, "ui"), name)
    return place


def add_text(draft: Draft, directory: str, kind: str, name: str) -> str:
    """A prompt or a resource: a text, its description, and a page about it. Where they are."""
    _require_free(directory, name)
    place = os.path.join(directory, name)
    values = {"name": name, "title": title_of(name)}
    draft.add(f"{place}/{name}.txt", filled(f"items/{kind}.txt", **values))
    draft.add(f"{place}/{name}.meta.json", filled(f"items/{kind}.meta.json", **values))
    draft.add(f"{place}/README.md", filled(f"items/{kind}.README.md", **values))
    return place


def add_template(draft: Draft, project: Project, name: str, language: Language) -> str:
    _require_free(project.resources_dir, name)
    scheme = require_scheme(name.lower().replace("_", "-").strip("-"))
    provider = add_provider(draft, project, scheme, language)
    place = os.path.join(project.resources_dir, name)
    values = {"name": name, "title": title_of(name), "scheme": scheme, "script": os.path.basename(provider)}
    draft.add(f"{place}/{name}.meta.json", filled("items/template.meta.json", **values))
    draft.add(f"{place}/README.md", filled("items/template.README.md", **values))
    return place


def add_provider(draft: Draft, project: Project, scheme: str, language: Language) -> str:
    """Its script."""
    require_scheme(scheme)
    if scheme in PROVIDERS:
        raise ProjectError(scheme, "mcpgreen itself provides these URIs; choose another name")
    _require_free(project.providers_dir, scheme)
    script = os.path.join(project.providers_dir, f"{scheme}.{language.suffix}")
    draft.add(script, filled(f"items/provider.{language.name}", scheme=scheme), is_executable=True)
    return script


def add_completion(draft: Draft, project: Project, name: str, language: Language) -> tuple[str, str]:
    """Its directory, and what people still have to do to register it; nothing if all is done."""
    place = os.path.join(project.root, "completions", name)
    _require_free(os.path.dirname(place), name)
    item = _completed_item(project, name)
    script = f"completion.{language.suffix}"
    values = {"title": title_of(name), "script": script, "item": item}
    draft.add(f"{place}/{script}", filled(f"items/completion.{language.name}", **values), is_executable=True)
    draft.add(f"{place}/README.md", filled("items/completion.README.md", **values))
    entry = {"name": item, "path": f"completions/{name}/{script}"}
    registered = os.path.join(project.server_dir, "register.json")
    computed = os.path.join(project.server_dir, "register.sh")
    if os.path.lexists(registered):
        return place, f'Add this to "completions" in {project.shown(registered)}:\n  {json.dumps(entry)}'
    if os.path.lexists(computed):  # a register.json beside it would switch it off
        return place, f"Add this line to {project.shown(computed)}:\n  mcp_register_completion '{json.dumps(entry)}'"
    fields = {"$schema": f"{MARK}/register.schema.json", "version": 1, "completions": [entry]}
    draft.add(registered, json.dumps(fields, indent=2) + "\n")
    return place, ""


def add_page(draft: Draft, place: str, name: str) -> str:
    values = {"name": name, "title": title_of(name)}
    draft.add(f"{place}/index.html", filled("items/ui.html", **values))
    draft.add(f"{place}/ui.meta.json", filled("items/ui.meta.json", **values))
    return place


def place_of_page(project: Project, tool_name: str) -> str:
    """Where the MCP App of a tool belongs."""
    directory = os.path.dirname(_tool(project, tool_name).path)
    if directory == project.tools_dir:
        reason = f"its script lies directly in tools/; move it into tools/{tool_name}/ first"
        raise ProjectError(tool_name, reason)
    return os.path.join(directory, "ui")


def add_tests(draft: Draft, root: str) -> str:
    """The script that runs all tests, and the page about them."""
    place = os.path.join(root, "test")
    draft.add(f"{place}/run.sh", filled("project/run.sh"), is_executable=True)
    draft.add(f"{place}/README.md", filled("project/test.README.md"))
    return place


def add_test(draft: Draft, project: Project, tool_name: str) -> str:
    """A test of one tool, with arguments that its schema admits."""
    arguments = sample_of(_tool(project, tool_name).definition.get("inputSchema", {}))
    place = os.path.join(project.root, "test", f"{tool_name}.sh")
    text = filled("items/test.sh", name=tool_name, arguments=shlex.quote(json.dumps(arguments)))
    draft.add(place, text, is_executable=True)
    if not os.path.lexists(os.path.join(project.root, "test", "run.sh")):
        draft.add(os.path.join(project.root, "test", "run.sh"), filled("project/run.sh"), is_executable=True)
    return place


def _require_free(directory: str, name: str) -> None:
    """Nothing of this name may be there, in whatever language or form."""
    try:
        entries = sorted(os.listdir(directory))
    except FileNotFoundError:
        return
    except OSError as error:
        raise ProjectError(directory, f"it cannot be read: {error.strerror}") from error
    for entry in entries:
        if name in (entry, stem_of(entry)):
            reason = "this exists already; choose another name, or move it away"
            raise ProjectError(os.path.join(directory, entry), reason)


def _tool(project: Project, name: str) -> Tool:
    tools: Sequence[Tool] = discover_tools(project, survey(project, [project.tools_dir])).items
    for tool in tools:
        if tool.name == name:
            return tool
    known = ", ".join(tool.name for tool in tools[:20]) or "none yet"
    raise ProjectError(
        name, f"there is no such tool in this project ({known}); mcpgreen scaffold tool {name} makes one"
    )


def _completed_item(project: Project, name: str) -> str:
    """The prompt, resource or template that is meant: of this name, or as `scaffold` names them."""
    prompts = discover_prompts(project, survey(project, [project.prompts_dir])).items
    found = discover_resources(project, survey(project, [project.resources_dir]))
    items: list[Any] = [*prompts, *(item for discovery in found.values() for item in discovery.items)]
    names = {item.name for item in items}
    return next((each for each in (name, f"prompt.{name}") if each in names), name)
