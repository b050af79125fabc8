"""`mcpgreen scaffold`: a tool, resource, template, prompt, completion, provider, page or test to begin with."""

from __future__ import annotations

import os
import sys
from shutil import which

from mcpgreen.cli.commands import Options
from mcpgreen.cli.making import items
from mcpgreen.cli.making.drafts import Draft
from mcpgreen.cli.making.languages import Language, language_of
from mcpgreen.cli.making.names import require_name
from mcpgreen.cli.opening import opened
from mcpgreen.project.project import Project

KINDS = ("tool", "resource", "template", "prompt", "completion", "provider", "ui", "test")


def run(options: Options) -> int:
    kind = next(kind for kind in KINDS if options[kind])
    language = language_of(options["--lang"])
    project, _, _ = opened(options)
    is_nameless = kind == "test" or (kind == "ui" and options["--tool"])
    name = options["NAME"] if is_nameless and not options["NAME"] else require_name(options["NAME"], f"scaffold {kind}")
    draft = Draft()
    hints = []
    if options["--lang"] and which(language.program) is None:
        hints.append(f"{language.program} is not on the PATH; install it before you run this.")
    if kind == "completion":
        place, registration = items.add_completion(draft, project, name, language)
        hints += [registration] if registration else []
    elif kind == "ui":
        place = _add_page(draft, project, name, options["--tool"])
    elif kind == "test":
        place = items.add_test(draft, project, name) if name else items.add_tests(draft, project.root)
    else:
        place = _add_item(draft, project, kind, name, language, has_page=options["--ui"])
    draft.write()
    told = [f"Scaffolded {kind}{f' {name}' if name else ''} at {project.shown(place)}"]
    told += [f"  {project.shown(path)}" for path in draft.paths]
    sys.stdout.write("\n".join([*told, *hints, ""]))
    return 0


def _add_item(draft: Draft, project: Project, kind: str, name: str, language: Language, *, has_page: bool) -> str:
    if kind == "tool":
        return items.add_tool(draft, project.tools_dir, name, language, has_page=has_page)
    if kind == "template":
        return items.add_template(draft, project, name, language)
    if kind == "provider":
        return items.add_provider(draft, project, name, language)
    return items.add_prompt(draft, project, name) if kind == "prompt" else items.add_resource(draft, project, name)


def _add_page(draft: Draft, project: Project, name: str | None, tool: str | None) -> str:
    if tool:
        return items.add_page(draft, items.place_of_page(project, tool), name or tool)
    return items.add_page(draft, os.path.join(project.ui_dir, name or ""), name or "")
