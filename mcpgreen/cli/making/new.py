"""`mcpgreen new`: a project in a folder of its own, with a tool that runs and a test."""

from __future__ import annotations

import os
import sys

from mcpgreen.cli.clients.launch import shell_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.languages import LANGUAGES, language_of
from mcpgreen.cli.making.names import require_name, title_of
from mcpgreen.cli.making.project_files import (
    FIRST_TOOL,
    Wishes,
    default_description,
    ignored_files,
    project_draft,
)
from mcpgreen.cli.making.questions import asked, can_ask
from mcpgreen.errors import ProjectError


def run(options: Options) -> int:
    is_asking = can_ask()
    given = options["NAME"] or (asked("Name of the project", "my-server") if is_asking else None)
    name = require_name(given, "mcpgreen new")
    root = os.path.abspath(options["--project-root"] or name)
    if os.path.lexists(root):
        raise ProjectError(root, "this exists already; choose another name, or run mcpgreen init in it")
    if not os.path.isdir(os.path.dirname(root)):
        raise ProjectError(os.path.dirname(root), "there is no such folder; make it first")
    wishes = _wishes(name, options, is_asking=is_asking)
    draft = project_draft(root, wishes)
    draft.add(os.path.join(root, ".gitignore"), ignored_files())
    draft.write()
    made = "\n".join(f"  {os.path.relpath(path, root)}" for path in sorted(draft.paths))
    trial = shell_words(os.environ) + (f" run-tool {FIRST_TOOL}" if wishes.has_hello else " scaffold tool NAME")
    relative = os.path.relpath(root)
    place = root if relative.startswith(os.pardir) else relative
    sys.stdout.write(f"Created project {name} at {root}\n{made}\n\nNext:\n  cd {place}\n  {trial}\n")
    return 0


def _wishes(name: str, options: Options, *, is_asking: bool) -> Wishes:
    title, description, language = title_of(name), default_description(name), options["--lang"]
    language_of(language)  # what is wrong is said before anything is asked
    has_hello = not options["--no-hello"]
    if is_asking:
        title = asked("Title", title)
        description = asked("What is it for", description)
        if has_hello and language is None:
            language = asked("Language of the first tool", language_of(None).name, list(LANGUAGES))
    return Wishes(
        name=name,
        title=title,
        description=description,
        language=language_of(language),
        has_hello=has_hello,
        has_docker=options["--docker"],
    )
