"""`mcpgreen new` and `mcpgreen init`: a project in a folder of its own, or in one that exists and keeps its files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import NamedTuple

from mcpgreen import __version__
from mcpgreen.cli.clients.launch import shell_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import Draft, replacing
from mcpgreen.cli.making.languages import LANGUAGES, Language, filled, language_of
from mcpgreen.cli.making.names import nearest_name, require_name, title_of
from mcpgreen.cli.making.scaffold import FIRST_TOOL, MARK, add_tests, add_tool, name_schemas
from mcpgreen.cli.output import ask, can_ask, say
from mcpgreen.errors import ProjectError

FIRST_VERSION = "0.1.0"


class Wishes(NamedTuple):
    """What a new project is to be like."""

    name: str
    title: str
    description: str
    language: Language
    has_hello: bool
    has_docker: bool = False


def run_new(options: Options) -> int:
    is_asking = can_ask()
    given = options["NAME"] or (ask("Name of the project", "my-server") if is_asking else None)
    name = require_name(given, "mcpgreen new")
    root = os.path.abspath(options["--project-root"] or name)
    if os.path.lexists(root):
        raise ProjectError(root, "this exists already; choose another name, or run mcpgreen init in it")
    if not os.path.isdir(os.path.dirname(root)):
        raise ProjectError(os.path.dirname(root), "there is no such folder; make it first")
    # An unknown language is an error before the first question.
    wishes = _default_wishes(name, options["--lang"])._replace(
        has_hello=not options["--no-hello"], has_docker=options["--docker"]
    )
    if is_asking:
        wishes = _ask(wishes, asks_language=wishes.has_hello and options["--lang"] is None)
    draft = project_draft(root, wishes)
    draft.add(os.path.join(root, ".gitignore"), ignored_files())
    draft.write()
    made = "\n".join(f"  {path}" for path in _relative(draft.files, root))
    trial = shell_words(os.environ) + (f" run-tool {FIRST_TOOL}" if wishes.has_hello else " scaffold tool NAME")
    relative = os.path.relpath(root)
    place = root if relative.startswith(os.pardir) else relative
    say(f"Created project {name} at {root}\n{made}\n\nNext:\n  cd {place}\n  {trial}\n")
    return 0


def run_init(options: Options) -> int:
    root = os.path.abspath(options["--project-root"] or os.curdir)
    if not os.path.isdir(root):
        raise ProjectError(root, "there is no such folder; mcpgreen new NAME makes one")
    name = require_name(options["--name"] or nearest_name(os.path.basename(root)), "--name")
    # The files of a tool belong together: an existing first tool gets no new ones.
    first_tool = os.path.join(root, "tools", FIRST_TOOL)
    wants_tool, has_tool = not options["--no-hello"], os.path.lexists(first_tool)
    draft = project_draft(root, _default_wishes(name, None)._replace(has_hello=wants_tool and not has_tool))
    skipped = draft.drop_existing() + ([first_tool] if wants_tool and has_tool else [])
    ignored = os.path.join(root, ".gitignore")
    has_list = os.path.lexists(ignored)
    if not has_list:
        draft.add(ignored, ignored_files())
    draft.write()
    lines = [f"Created {path}" for path in _relative(draft.files, root)]
    lines += [f"Skipped existing {path}" for path in _relative(skipped, root)]
    if has_list:
        added = _ignore_more(ignored)
        lines.append(f"Added to .gitignore: {' '.join(added)}" if added else "Skipped existing .gitignore")
    say("\n".join([*lines, f"Initialized project at {root}", ""]))
    return 0


def _default_wishes(name: str, language: str | None) -> Wishes:
    title = title_of(name)
    return Wishes(name, title, f"The tools of {title}", language_of(language), has_hello=True)


def _ask(wishes: Wishes, *, asks_language: bool) -> Wishes:
    wishes = wishes._replace(title=ask("Title", wishes.title))
    wishes = wishes._replace(description=ask("What is it for", wishes.description))
    if asks_language:
        language = ask("Language of the first tool", wishes.language.name, list(LANGUAGES))
        wishes = wishes._replace(language=language_of(language))
    return wishes


def ignored_files() -> str:
    return filled("project/gitignore")


def project_draft(root: str, wishes: Wishes) -> Draft:
    """All files of a project except `.gitignore`, which an existing folder may have."""
    draft = Draft()
    meta = {
        "$schema": f"{MARK}/server.schema.json",
        "name": wishes.name,
        "title": wishes.title,
        "version": FIRST_VERSION,
        "description": wishes.description,
    }
    draft.add(os.path.join(root, "server.d", "server.meta.json"), json.dumps(meta, indent=2, ensure_ascii=False) + "\n")
    if wishes.has_hello:
        add_tool(draft, os.path.join(root, "tools"), FIRST_TOOL, wishes.language)
    add_tests(draft, root)
    draft.add(os.path.join(root, "README.md"), _readme(wishes))
    if wishes.has_docker:
        draft.add(os.path.join(root, "Dockerfile"), _dockerfile(wishes))
        draft.add(os.path.join(root, ".dockerignore"), filled("project/dockerignore"))
    name_schemas(draft, os.path.join(root, "server.d"))
    return draft


def _readme(wishes: Wishes) -> str:
    first_try = f'    mcpgreen run-tool {FIRST_TOOL} --args \'{{"name": "Ada"}}\'\n' if wishes.has_hello else ""
    return filled("project/README.md", title=wishes.title, description=wishes.description, **{"try": first_try})


def _dockerfile(wishes: Wishes) -> str:
    package = wishes.language.debian_package
    install = f"apt-get update && apt-get install -y --no-install-recommends {package} && rm -rf /var/lib/apt/lists/*"
    packages = f"RUN {install}" if package else "# What your tools need besides Python and a shell is installed here."
    return filled("project/Dockerfile", name=wishes.name, version=__version__, packages=packages)


def _ignore_more(path: str) -> list[str]:
    """Add the missing lines to an existing `.gitignore`, and return them."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
        missing = [line for line in ignored_files().splitlines() if line not in text.splitlines()]
        if missing:
            end_of_line = "\r\n" if "\r\n" in text else "\n"
            start = text if not text or text.endswith("\n") else text + end_of_line
            whole = start + "".join(line + end_of_line for line in missing)
            with replacing(os.path.realpath(path), mode=os.stat(path).st_mode & 0o7777) as new:
                new.write(whole.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise ProjectError(path, f"it cannot be changed: {error.strerror}") from error
    return missing


def _relative(paths: Iterable[str], root: str) -> list[str]:
    return sorted(os.path.relpath(path, root) for path in paths)
