"""`mcpgreen scaffold`: a tool, resource, template, prompt, completion, provider, MCP App or test to begin with."""

from __future__ import annotations

import os
import sys
from shutil import which

from mcpgreen.cli.clients.launch import shell_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making import items
from mcpgreen.cli.making.drafts import Draft
from mcpgreen.cli.making.editor_schemas import name_schemas
from mcpgreen.cli.making.languages import Language, language_of
from mcpgreen.cli.making.names import require_name
from mcpgreen.cli.making.project_files import FIRST_TOOL
from mcpgreen.cli.opening import opened
from mcpgreen.project.project import Project

TRIALS = {"tool": "run-tool {}", "prompt": "prompt prompt.{} topic=tides", "resource": "read resource.{}"}
KINDS = ("tool", "resource", "template", "prompt", "completion", "provider", "ui", "test")


def run(options: Options) -> int:
    kind = next(kind for kind in KINDS if options[kind])
    language = language_of(options["--lang"])
    project, _, _ = opened(options)
    is_nameless = kind == "test" or (kind == "ui" and options["--tool"])
    name = options["NAME"] if is_nameless and not options["NAME"] else require_name(options["NAME"], f"scaffold {kind}")
    if kind == "tool" and name == FIRST_TOOL and _is_first_tool(project, language):
        place = project.shown(os.path.join(project.tools_dir, name))
        sys.stdout.write(f"The tool {name} is at {place} already, as mcpgreen new wrote it\n{_trial(kind, name)}\n")
        return 0
    draft = Draft()
    hints = [_trial(kind, name)] if kind in TRIALS else []
    if options["--lang"] and which(language.program) is None:
        hints.append(f"{language.program} is not on the PATH; install it before you run this.")
    if kind == "completion":
        place, registration = items.add_completion(draft, project, name, language)
        hints += [registration] if registration else []
    else:
        place = _add(draft, project, kind, name, language, options)
    name_schemas(draft, project.server_dir)
    draft.write()
    told = [f"Scaffolded {kind}{f' {name}' if name else ''} at {project.shown(place)}"]
    told += [f"  {project.shown(path)}" for path in draft.paths]
    sys.stdout.write("\n".join([*told, *hints, ""]))
    return 0


def _is_first_tool(project: Project, language: Language) -> bool:
    """Whether it is what a new project begins with, untouched. Then it is what was asked for."""
    draft = Draft()
    items.add_tool(draft, project.tools_dir, FIRST_TOOL, language, may_exist=True)
    name_schemas(draft, project.server_dir)
    return draft.is_there()


def _trial(kind: str, name: str) -> str:
    return f"Try it: {shell_words(os.environ)} {TRIALS[kind].format(name)}"


def _add(draft: Draft, project: Project, kind: str, name: str, language: Language, options: Options) -> str:
    """Where it is."""
    if kind == "tool":
        return items.add_tool(draft, project.tools_dir, name, language, has_page=options["--ui"])
    if kind == "template":
        return items.add_template(draft, project, name, language)
    if kind == "provider":
        return items.add_provider(draft, project, name, language)
    if kind == "test":
        return items.add_test(draft, project, name) if name else items.add_tests(draft, project.root)
    if kind == "ui":
        tool = options["--tool"]
        place = items.place_of_page(project, tool) if tool else os.path.join(project.ui_dir, name)
        return items.add_page(draft, place, name or tool)
    return items.add_text(draft, project.prompts_dir if kind == "prompt" else project.resources_dir, kind, name)
