"""What lies in tools/ and looks like a tool, but is none, and why; and the completion scripts beside items."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.tree_scan import Directory, survey
from mcpgreen.cli.checking.findings import Finding
from mcpgreen.project.project import Project

MOST = 50  # are told; a project with more has another problem


def findings(project: Project) -> Iterator[Finding]:
    told = 0
    for directory in survey(project, [project.tools_dir]).directories:
        for name, reason, fix in _no_tools_in(directory):
            told += 1
            if told > MOST:
                return
            path = f"{project.shown(directory.path)}/{name}"
            yield Finding("info", "tools", f"{path}: not a tool: {reason}", "not-a-tool", fix, path)


def _no_tools_in(directory: Directory) -> Iterator[tuple[str, str, str]]:
    """Name, reason and remedy of each that can be executed and is not offered."""
    executables = [name for name, status in directory.files.items() if status.st_mode & metadata.EXECUTABLE_BITS]
    others = [name for name in executables if name != "smoke.sh" and not metadata.is_description(name)]
    for name in executables:
        if metadata.is_description(name):
            yield name, "it is executable, but a description", "take the executable bit from it (chmod -x)"
        elif name == "smoke.sh" and not others:  # beside a tool it is its test, as the author knows
            yield name, "smoke.sh is the name of a test", "give it another name if it shall be a tool"
    with os.scandir(directory.path) as entries:
        for entry in entries:
            if (reason := _why_unseen(entry)) is not None:
                yield (entry.name, *reason)


def _why_unseen(entry: os.DirEntry[str]) -> tuple[str, str] | None:
    """Of what the walk left out without a word."""
    try:
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            if not os.path.exists(entry.path):
                return "it is a link to nothing", "correct the link, or remove it"
            return None
    except OSError:
        return None
    if stat.S_ISREG(status.st_mode) and entry.name.startswith(".") and status.st_mode & metadata.EXECUTABLE_BITS:
        return "its name begins with a dot, and what is hidden is not offered", "rename it if it shall be a tool"
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        return "it is no regular file", "put a script there, or remove it"
    return None


def completions(project: Project) -> Iterator[str]:
    for home in (project.prompts_dir, project.resources_dir):
        for directory in survey(project, [home]).directories:
            for name in directory.files:
                if name.endswith(metadata.COMPLETION_SUFFIXES):
                    yield f"{directory.path}/{name}"


def completions_beside(path: str | None) -> Iterator[str]:
    """The completion script of an item."""
    if path is None:
        return
    stem = os.path.join(os.path.dirname(path), metadata.described_stem(os.path.basename(path)))
    for suffix in metadata.COMPLETION_SUFFIXES:
        if os.path.isfile(stem + suffix):
            yield stem + suffix
