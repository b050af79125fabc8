"""`mcpgreen init`: make a project of a folder that is there. What lies in it stays as it is."""

from __future__ import annotations

import os
import sys

from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import Draft, replacing
from mcpgreen.cli.making.languages import language_of
from mcpgreen.cli.making.names import nearest_name, require_name, title_of
from mcpgreen.cli.making.project_files import FIRST_TOOL, Wishes, default_description, ignored_files, project_draft
from mcpgreen.errors import ProjectError


def run(options: Options) -> int:
    root = os.path.abspath(options["--project-root"] or os.curdir)
    if not os.path.isdir(root):
        raise ProjectError(root, "there is no such folder; mcpgreen new NAME makes one")
    draft, skipped = _missing_files(root, options)
    ignored = os.path.join(root, ".gitignore")
    has_list = os.path.lexists(ignored)
    if not has_list:
        draft.add(ignored, ignored_files())
    draft.write()
    told = [f"Created {path}" for path in _shown(draft.paths, root)]
    told += [f"Skipped existing {path}" for path in _shown(skipped, root)]
    if has_list:
        added = _ignore(ignored)
        told.append(f"Added to .gitignore: {' '.join(added)}" if added else "Skipped existing .gitignore")
    sys.stdout.write("\n".join([*told, f"Initialized project at {root}", ""]))
    return 0


def _missing_files(root: str, options: Options) -> tuple[Draft, list[str]]:
    """What is to be written, and what is there already."""
    name = require_name(options["--name"] or nearest_name(os.path.basename(root)), "--name")
    first_tool = os.path.join(root, "tools", FIRST_TOOL)
    # A tool is one thing: its files come together, or not at all.
    skips_tool = not options["--no-hello"] and os.path.lexists(first_tool)
    wishes = Wishes(
        name=name,
        title=title_of(name),
        description=default_description(name),
        language=language_of(None),
        has_hello=not options["--no-hello"] and not skips_tool,
    )
    draft = project_draft(root, wishes)
    skipped = draft.leave_out_existing()
    return draft, [*skipped, first_tool] if skips_tool else skipped


def _ignore(path: str) -> list[str]:
    """Add what is missing to an existing list. What was added."""
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


def _shown(paths: list[str], root: str) -> list[str]:
    return sorted(os.path.relpath(path, root) for path in paths)
