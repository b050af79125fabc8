"""`validate --fix`: executable bits, who may write to what is executed, and the line ends of scripts.

Rule: only what is certain, and only in the project: files of ours, no links. A file that is written anew is whole
before it takes the place of the other, and keeps its mode.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.in_script import told_by
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.checking.findings import Finding
from mcpgreen.cli.checking.reading.syntax import content_of
from mcpgreen.cli.making.drafts import replacing
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.running.policy.trust import WRITABLE_BY_OTHERS
from mcpgreen.running.scripts import shebang
from mcpgreen.running.scripts.shebang import SHELLS, program_of
from mcpgreen.text.uris import is_within

MENDED = "fixed"


def mended(project: Project) -> Iterator[Finding]:
    """Mend what can be; an info for each thing that was, an error for each that could not be."""
    yield from close_to_others(project)
    for path, mode in _scripts_without_bit(project):
        yield _changed(project, path, mode | 0o111, "made executable", "chmod +x")
    for path in _scripts(project):
        content = content_of(path)
        if content and _has_wrong_ends(path, content):
            yield _with_line_ends(project, path, content.replace(b"\r\n", b"\n"))


def close_to_others(project: Project) -> Iterator[Finding]:
    """Take the right to write from others, of all that is executed or decides about that."""
    for path in _executed(project):
        with suppress(OSError):
            status = os.lstat(path)
            is_wanted = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
            if is_wanted and status.st_mode & WRITABLE_BY_OTHERS and status.st_uid == os.geteuid():
                mode = stat.S_IMODE(status.st_mode) & ~WRITABLE_BY_OTHERS
                yield _changed(project, path, mode, "others may no longer write to it", "chmod go-w")


def _executed(project: Project) -> Iterator[str]:
    yield project.root
    for home in (project.server_dir, project.tools_dir, project.prompts_dir, project.providers_dir):
        if not is_within(home, project.root):
            continue
        place = home
        while place != project.root:
            yield place
            place = os.path.dirname(place)
        for directory in survey(project, [home]).directories:
            if directory.path != home:
                yield directory.path
            yield from (f"{directory.path}/{name}" for name in directory.files)


def _changed(project: Project, path: str, mode: int, done: str, command: str) -> Finding:
    shown = project.shown(path) if path != project.root else "."
    try:
        os.chmod(path, mode)
    except OSError as error:
        fix = f"run {command} as the owner of the file"
        return Finding("error", "tools", f"{shown}: {command} failed: {error.strerror}", "not-fixed", fix, shown)
    return Finding("info", "tools", f"{shown}: {done}", MENDED, file=shown)


def _scripts_without_bit(project: Project) -> Iterator[tuple[str, int]]:
    """What is described as a tool and cannot be executed."""
    for directory in survey(project, [project.tools_dir]).directories:
        for name, status in directory.files.items():
            if name.endswith(metadata.ACCOMPANYING) or status.st_mode & metadata.EXECUTABLE_BITS:
                continue
            path = f"{directory.path}/{name}"
            with suppress(OSError, ProjectError):  # the checks say what is wrong with it
                # A text beside a script may share its description.
                is_script = path.endswith(shebang.SHELL_SUFFIXES) or metadata.read_start(path, 2) == b"#!"
                meta_file = metadata.meta_file_for(name, directory.files)
                if is_script and (meta_file or told_by(path, metadata.head_of(path) or b"") is not None):
                    yield path, stat.S_IMODE(os.lstat(path).st_mode)


def _scripts(project: Project) -> Iterator[str]:
    homes = (project.tools_dir, project.prompts_dir, project.providers_dir, project.server_dir)
    for directory in survey(project, [home for home in homes if is_within(home, project.root)]).directories:
        for name in directory.files:
            path = f"{directory.path}/{name}"
            if not metadata.is_description(name) and not os.path.islink(path):
                yield path


def _has_wrong_ends(path: str, content: bytes) -> bool:
    """Whether it cannot be run for its line ends: those of Windows in the first line, or anywhere in a shell script."""
    if b"\r\n" not in content:
        return False
    first_line = content.partition(b"\n")[0]
    is_unrunnable = first_line.startswith(shebang.MARK) and first_line.endswith(b"\r")
    return is_unrunnable or program_of(path, content) in SHELLS


def _with_line_ends(project: Project, path: str, content: bytes) -> Finding:
    shown = project.shown(path)
    try:
        with replacing(path, mode=stat.S_IMODE(os.lstat(path).st_mode)) as file:
            file.write(content)
    except OSError as error:
        fix = "save it with Unix line endings"
        return Finding("error", "tools", f"{shown}: cannot be written: {error.strerror}", "not-fixed", fix, shown)
    return Finding("info", "tools", f"{shown}: now has Unix line endings", MENDED, file=shown)
