"""`mcpgreen scaffold`: a tool, resource, template, prompt, completion, provider, MCP App or test to begin with."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from shutil import which
from typing import Any

from mcpgreen.catalog.descriptions.metadata import stem_of
from mcpgreen.catalog.prompts import discover_prompts
from mcpgreen.catalog.resources import discover_resources
from mcpgreen.catalog.schemes import PROVIDERS
from mcpgreen.catalog.tools import Tool, discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.clients.launch import shell_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import Draft
from mcpgreen.cli.making.languages import Language, filled, language_of
from mcpgreen.cli.making.names import require_name, require_scheme, title_of
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import say
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project

TRIALS = {"tool": "run-tool {}", "prompt": "prompt {} topic=tides", "resource": "read resource.{}"}
FIRST_TOOL = "hello"  # of a new project
KINDS = ("tool", "resource", "template", "prompt", "completion", "provider", "ui", "test")
MAX_SAMPLE_DEPTH = 8
MAX_SAMPLE_ITEMS = 16
MARK = "@SCHEMAS@"  # in the templates, for the directory of the schemas
_NAMED_SCHEMA = re.compile(rf'"{MARK}/([a-z]+\.schema\.json)"')


def run(options: Options) -> int:
    kind = next(kind for kind in KINDS if options[kind])
    language = language_of(options["--lang"])
    project, _, _ = open_named(options)
    may_lack_name = kind == "test" or (kind == "ui" and options["--tool"])
    name = options["NAME"]
    if name or not may_lack_name:
        name = require_name(name, f"scaffold {kind}")
    if kind == "tool" and name[0] in "0123456789-":
        raise ProjectError(name, "some clients refuse tools that do not begin with a letter; choose another name")
    if kind == "tool" and name == FIRST_TOOL and _has_first_tool(project, language):
        place = project.shown(os.path.join(project.tools_dir, name))
        say(f"The tool {name} is at {place} already, as mcpgreen new wrote it\n{_trial(kind, name)}\n")
        return 0
    draft = Draft()
    hints = [_trial(kind, name)] if kind in TRIALS else []
    if options["--lang"] and which(language.program) is None:
        hints.append(f"{language.program} is not on the PATH; install it before you run this.")
    if kind == "completion":
        place, registration = add_completion(draft, project, name, language)
        hints += [registration] if registration else []
    else:
        place = _add(draft, project, kind, name, language, options)
    name_schemas(draft, project.server_dir)
    draft.write()
    lines = [f"Scaffolded {kind}{f' {name}' if name else ''} at {project.shown(place)}"]
    lines += [f"  {project.shown(path)}" for path in draft.files]
    say("\n".join([*lines, *hints, ""]))
    return 0


def _has_first_tool(project: Project, language: Language) -> bool:
    """Whether the project still has the tool that a new project begins with, unchanged."""
    draft = Draft()
    add_tool(draft, project.tools_dir, FIRST_TOOL, language, may_exist=True)
    name_schemas(draft, project.server_dir)
    return draft.is_written()


def _trial(kind: str, name: str) -> str:
    return f"Try it: {shell_words(os.environ)} {TRIALS[kind].format(name)}"


def _add(draft: Draft, project: Project, kind: str, name: str, language: Language, options: Options) -> str:
    """Add an item of this kind, and return its directory or script. So do the functions below."""
    if kind == "tool":
        return add_tool(draft, project.tools_dir, name, language, has_page=options["--ui"])
    if kind == "template":
        return add_template(draft, project, name, language)
    if kind == "provider":
        return add_provider(draft, project, name, language)
    if kind == "test":
        return add_test(draft, project, name) if name else add_tests(draft, project.root)
    if kind == "ui":
        tool = options["--tool"]
        place = page_directory(project, tool) if tool else os.path.join(project.ui_dir, name)
        return add_page(draft, place, name or tool)
    home = project.prompts_dir if kind == "prompt" else project.resources_dir
    _require_free(home, name)
    files = {f"{name}.txt": f"{kind}.txt", f"{name}.meta.json": f"{kind}.meta.json", "README.md": f"{kind}.README.md"}
    return _fill(draft, os.path.join(home, name), name, files)


def _fill(draft: Draft, place: str, name: str, files: dict[str, str], **values: str) -> str:
    """Add files to a directory, each from the named template."""
    for file, template in files.items():
        draft.add(f"{place}/{file}", filled(f"items/{template}", name=name, title=title_of(name), **values))
    return place


def add_tool(
    draft: Draft, tools_dir: str, name: str, language: Language, *, has_page: bool = False, may_exist: bool = False
) -> str:
    if not may_exist:
        _require_free(tools_dir, name)
    place = os.path.join(tools_dir, name)
    script = f"tool.{language.suffix}"
    described = "its signature and docstring say" if language.has_signatures else "`tool.meta.json` says"
    meta = {} if language.has_signatures else {"tool.meta.json": "tool.meta.json"}
    files = {script: f"tool.{language.name}", **meta, "README.md": "tool.README.md", "smoke.sh": "smoke.sh"}
    _fill(draft, place, name, files, script=script, described=described)
    if has_page:
        add_page(draft, os.path.join(place, "ui"), name)
    return place


def add_template(draft: Draft, project: Project, name: str, language: Language) -> str:
    _require_free(project.resources_dir, name)
    scheme = require_scheme(name.lower().replace("_", "-").strip("-"))
    script = os.path.basename(add_provider(draft, project, scheme, language))
    files = {f"{name}.meta.json": "template.meta.json", "README.md": "template.README.md"}
    return _fill(draft, os.path.join(project.resources_dir, name), name, files, scheme=scheme, script=script)


def add_provider(draft: Draft, project: Project, scheme: str, language: Language) -> str:
    require_scheme(scheme)
    if scheme in PROVIDERS:
        raise ProjectError(scheme, "mcpgreen itself provides these URIs; choose another name")
    _require_free(project.providers_dir, scheme)
    script = os.path.join(project.providers_dir, f"{scheme}.{language.suffix}")
    draft.add(script, filled(f"items/provider.{language.name}", scheme=scheme))
    return script


def add_completion(draft: Draft, project: Project, name: str, language: Language) -> tuple[str, str]:
    """Add a completion. Return its directory, and what the author still has to do to register it, or nothing."""
    place = os.path.join(project.root, "completions", name)
    _require_free(os.path.dirname(place), name)
    item = _completed_item(project, name)
    script = f"completion.{language.suffix}"
    files = {script: f"completion.{language.name}", "README.md": "completion.README.md"}
    _fill(draft, place, name, files, script=script, item=item)
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
    return _fill(draft, place, name, {"index.html": "ui.html", "ui.meta.json": "ui.meta.json"})


def page_directory(project: Project, tool_name: str) -> str:
    """The directory for the MCP App of a tool."""
    directory = os.path.dirname(_tool(project, tool_name).path)
    if directory == project.tools_dir:
        reason = f"its script lies directly in tools/; move it into tools/{tool_name}/ first"
        raise ProjectError(tool_name, reason)
    return os.path.join(directory, "ui")


def add_tests(draft: Draft, root: str) -> str:
    """Add the script that runs all tests, and the page about them."""
    place = os.path.join(root, "test")
    draft.add(f"{place}/run.sh", filled("project/run.sh"))
    draft.add(f"{place}/README.md", filled("project/test.README.md"))
    return place


def add_test(draft: Draft, project: Project, tool_name: str) -> str:
    """Add a test of one tool, with arguments that its schema admits."""
    arguments = sample_of(_tool(project, tool_name).definition.get("inputSchema", {}))
    place = os.path.join(project.root, "test", f"{tool_name}.sh")
    draft.add(place, filled("items/test.sh", name=tool_name, arguments=shlex.quote(json.dumps(arguments))))
    runner = os.path.join(project.root, "test", "run.sh")
    if not os.path.lexists(runner):
        draft.add(runner, filled("project/run.sh"))
    return place


def _require_free(directory: str, name: str) -> None:
    """Raise ProjectError if the directory has something of this name, in any language."""
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
    reason = f"there is no such tool in this project ({known}); mcpgreen scaffold tool {name} makes one"
    raise ProjectError(name, reason)


def _completed_item(project: Project, name: str) -> str:
    """The name of the prompt, resource or template to complete: the given one, or as `scaffold` names prompts."""
    found = discover_resources(project, survey(project, [project.resources_dir])).values()
    discoveries = [discover_prompts(project, survey(project, [project.prompts_dir])), *found]
    names = {item.name for discovery in discoveries for item in discovery.items}
    return next((each for each in (name, f"prompt.{name}") if each in names), name)


def name_schemas(draft: Draft, server_dir: str) -> None:
    """Let each file of the draft that has a schema name it, and add the schemas that the project lacks.

    Schemas lie in the project and are named by a relative path, so that editors complete and check the files without a
    network, and for everyone who shares the project."""
    home = os.path.join(server_dir, "schemas")
    for path, content in list(draft.files.items()):
        for name in _NAMED_SCHEMA.findall(content):
            if not os.path.lexists(os.path.join(home, name)):
                draft.add(os.path.join(home, name), filled(f"schemas/{name}"))
        draft.add(path, content.replace(MARK, os.path.relpath(home, os.path.dirname(path))))


def sample_of(schema: object, depth: int = 0) -> Any:
    """A value that a plain schema admits, for a first test."""
    if not isinstance(schema, dict) or depth > MAX_SAMPLE_DEPTH:
        return {}
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("examples", "enum"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return schema[keyword][0]
    wanted = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(wanted, list):
        wanted = wanted[0] if wanted else "string"
    if wanted == "object":
        properties, required = schema.get("properties"), schema.get("required")
        known = properties if isinstance(properties, dict) else {}
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        return {name: sample_of(known.get(name, {"type": "string"}), depth + 1) for name in names}
    if wanted == "array":
        count = _count(schema.get("minItems"), MAX_SAMPLE_ITEMS)
        return [sample_of(schema.get("items", {}), depth + 1) for _ in range(count)]
    if wanted in ("integer", "number"):
        lowest = schema.get("minimum", 1)
        return lowest if isinstance(lowest, (int, float)) else 1
    return {"boolean": True, "null": None}.get(wanted, "text".ljust(_count(schema.get("minLength"), 1024), "x"))


def _count(value: object, most: int) -> int:
    return min(value, most) if isinstance(value, int) and value > 0 else 0
