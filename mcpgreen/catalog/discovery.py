"""Find the tools below tools/: one walk that looks, one pass that reads.

`survey` only lists and stats; it is all that a check for changes costs. `discover_tools` goes on from there and reads
descriptions. Neither knows about time, caching or clients: that is `registry`.

A tool is an executable file, or a shell or shebang script without the bit that has a description. Hidden files and
directories, smoke.sh and the descriptions themselves are none.

Rule: one bad file costs one tool and a warning, never the list. Only what makes the walk as a whole unreliable
(OSError other than a missing permission or a vanished file) may be raised.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcpgreen.catalog import metadata
from mcpgreen.catalog.project import Project
from mcpgreen.errors import ProjectError

SHELL_SUFFIXES = (".sh", ".bash")
EXECUTABLE_BITS = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
UI_DESCRIPTION = "ui.meta.json"  # describes a page that belongs to a tool, not a script
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

# Two writes within one tick of the file system's clock leave the same time stamp; a tick is at most 10 ms on Linux.
SETTLING_NS = 50_000_000


class Tool(NamedTuple):
    """One script that clients may call. `definition` is what goes on the wire, `registry_entry` all that is known."""

    name: str
    path: str
    relative_path: str
    command: list[str]
    definition: dict[str, Any]
    timeout_secs: float | None
    timeout_hint: str | None
    progress_extends_timeout: bool | None
    max_timeout_secs: float | None
    max_concurrent: int | None
    registry_entry: dict[str, Any]


class Directory(NamedTuple):
    path: str
    files: dict[str, os.stat_result]


class Tree(NamedTuple):
    """What a walk saw. Equal fingerprints mean equal files, provided that the earlier tree was settled."""

    directories: list[Directory]
    fingerprint: tuple[Any, ...]
    is_settled: bool
    warnings: list[str]


class Discovery(NamedTuple):
    items: list[Tool]
    warnings: list[str]
    hints: list[str]  # of what may be meant as it is: for who asks why something is missing
    fingerprint: tuple[Any, ...]


def fingerprint(project: Project) -> tuple[Any, ...]:
    """Changes whenever a file below tools/ does. Stats only; reads nothing."""
    return survey(project).fingerprint


def discover_tools(project: Project, *, only_below: str | None = None, tree: Tree | None = None) -> Discovery:
    """Read every tool, sorted by name and path. Pass the `tree` of a survey just made to save a second walk."""
    if tree is None:
        tree = survey(project, only_below=only_below)
    warnings = list(tree.warnings)
    hints: list[str] = []
    found: list[Tool] = []
    for directory in tree.directories:
        for file_name, status in directory.files.items():
            if file_name == "smoke.sh" or _is_description(file_name):
                continue
            try:
                tool = _tool_of(project, directory, file_name, status=status, warnings=warnings, hints=hints)
            except ProjectError as error:
                warnings.append(f"{project.shown(error.path)}: {error.reason}; the tool is left out")
                continue
            if tool is not None:
                found.append(tool)
        warnings.extend(_lonely_descriptions(project, directory))
    found.sort(key=lambda tool: (tool.name, tool.relative_path))
    return Discovery(_without_duplicates(project, found, warnings), warnings, hints, tree.fingerprint)


def survey(project: Project, *, only_below: str | None = None) -> Tree:
    """List and stat what lies below tools/, or below the one subdirectory `only_below`, absolute or relative to it."""
    directories: list[Directory] = []
    marks: list[Any] = []
    warnings: list[str] = []
    newest_ns = 0
    started_ns = time.time_ns()
    pending = [_start_of(project, only_below)]
    while pending:
        path = pending.pop()
        files: dict[str, os.stat_result] = {}
        try:
            entries = os.scandir(path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # vanished meanwhile, or there is no tools/ at all
        except PermissionError:
            warnings.append(f"{project.shown(path)}: the directory may not be read")
            continue
        with entries:
            for entry in entries:
                if entry.name[0] == "." or not _is_utterable(project, entry.path, warnings):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                status = _status_of(project, entry, warnings)
                if status is not None:
                    files[entry.name] = status
                    newest_ns = max(newest_ns, status.st_ctime_ns)
                    marks += (entry.name, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_mode)
        directories.append(Directory(path, files))
        marks.append(path)
    return Tree(directories, tuple(marks), newest_ns < started_ns - SETTLING_NS, warnings)


def _start_of(project: Project, only_below: str | None) -> str:
    if only_below is None:
        return project.tools_dir
    start = os.path.realpath(os.path.join(project.tools_dir, only_below))
    if not os.path.isdir(start) or not _is_below(start + os.sep, project.tools_dir):
        raise ProjectError(only_below, "not a directory below tools/")
    return start


def _is_below(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip(os.sep) + os.sep)


def _is_utterable(project: Project, path: str, warnings: list[str]) -> bool:
    """Registry, environment and log are lines of UTF-8; a name that breaks them cannot be served."""
    if path.isprintable():
        return True
    name = os.path.basename(path)
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        warnings.append(f"{project.shown(path)!a}: skipped, its name is not UTF-8")
        return False
    if "\n" in name or "\r" in name:
        warnings.append(f"{project.shown(path)!a}: skipped, its name contains a line break")
        return False
    return True


def _status_of(project: Project, entry: os.DirEntry[str], warnings: list[str]) -> os.stat_result | None:
    try:
        if entry.is_symlink():
            return _linked_status(project, entry, warnings)
        # Opening a FIFO or a device while scanning would stop the server.
        return entry.stat(follow_symlinks=False) if entry.is_file(follow_symlinks=False) else None
    except (FileNotFoundError, PermissionError):
        return None  # removed since the directory was listed, or none of our business


def _linked_status(project: Project, entry: os.DirEntry[str], warnings: list[str]) -> os.stat_result | None:
    """A link may name another file below tools/. Elsewhere the owner of the project does not decide what runs."""
    try:
        status = entry.stat()
    except OSError:
        return None  # a link to nothing, or to itself
    if stat.S_ISDIR(status.st_mode):
        warnings.append(f"{project.shown(entry.path)}: a symbolic link to a directory is not followed")
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    if _is_below(os.path.realpath(entry.path), project.tools_dir):
        return status
    if status.st_mode & EXECUTABLE_BITS or entry.name.endswith((*SHELL_SUFFIXES, *metadata.META_SUFFIXES)):
        warnings.append(f"{project.shown(entry.path)}: skipped, it is a symbolic link to a file outside tools/")
    return None


def _tool_of(
    project: Project,
    directory: Directory,
    file_name: str,
    *,
    status: os.stat_result,
    warnings: list[str],
    hints: list[str],
) -> Tool | None:
    path = f"{directory.path}/{file_name}"
    is_executable = bool(status.st_mode & EXECUTABLE_BITS)
    meta_file = metadata.meta_file_for(file_name, directory.files)
    # The script itself is opened only if its first bytes can tell something that we do not know yet.
    head = b"" if is_executable and meta_file else _head_of(path)
    if not is_executable and not file_name.endswith(SHELL_SUFFIXES) and not head.startswith(b"#!"):
        if meta_file:
            warnings.append(f"{project.shown(path)}: described, but neither executable nor a script (chmod +x)")
        return None
    if meta_file:
        source = f"{directory.path}/{meta_file}"
        fields: dict[str, Any] | None = metadata.read_meta_file(source)
    else:
        source = path
        fields = metadata.read_inline(path, head)
    if fields is None and not is_executable:
        # A library that tools source, or a tool that was forgotten.
        hints.append(f"{project.shown(path)}: not a tool: not executable (chmod +x) and without a description")
        return None
    description = metadata.describe_tool(source, fields or {}, file_name=file_name)
    warnings.extend(f"{project.shown(source)}: {complaint}" for complaint in description.complaints)
    if status.st_mode & WRITABLE_BY_OTHERS:
        warnings.append(f"{project.shown(path)}: others may write to it, so calls will be refused (chmod go-w)")
    relative_path = path[len(project.tools_dir.rstrip("/")) + 1 :]
    return Tool(
        name=description.definition["name"],
        path=path,
        relative_path=relative_path,
        command=[path] if is_executable else [*_interpreter_of(file_name, head), path],
        definition=description.definition,
        timeout_secs=description.timeout_secs,
        timeout_hint=description.timeout_hint,
        progress_extends_timeout=description.progress_extends_timeout,
        max_timeout_secs=description.max_timeout_secs,
        max_concurrent=description.max_concurrent,
        registry_entry=_registry_entry(description, relative_path),
    )


def _lonely_descriptions(project: Project, directory: Directory) -> Iterator[str]:
    """Descriptions beside which there is no script that they could describe."""
    described = {metadata.meta_file_for(name, directory.files) for name in directory.files if not _is_description(name)}
    for name in directory.files:
        if _is_description(name) and name not in described and name != UI_DESCRIPTION:
            yield f"{project.shown(directory.path)}/{name}: describes no script: none of that name is beside it"


def _is_description(file_name: str) -> bool:
    return file_name.endswith(metadata.META_SUFFIXES)


def _head_of(path: str) -> bytes:
    try:
        return metadata.read_start(path, metadata.HEAD_BYTES)
    except (PermissionError, FileNotFoundError):
        return b""  # a program may be executable and not readable


def _interpreter_of(file_name: str, head: bytes) -> list[str]:
    """Who runs a script that lacks the bit: what its first line asks for, as the kernel would read it; else bash."""
    if file_name.endswith(SHELL_SUFFIXES):
        return ["bash"]
    words = head[2:].split(b"\n", 1)[0].strip().split(None, 1)
    return [os.fsdecode(word) for word in words] or ["bash"]


def _registry_entry(description: metadata.Description, relative_path: str) -> dict[str, Any]:
    definition = description.definition
    entry = {"name": definition["name"], "description": "", "path": relative_path, **definition}
    own_fields = {
        "timeoutSecs": description.timeout_secs,
        "timeoutHint": description.timeout_hint,
        "progressExtendsTimeout": description.progress_extends_timeout,
        "maxTimeoutSecs": description.max_timeout_secs,
        "maxConcurrent": description.max_concurrent,
    }
    entry.update((key, value) for key, value in own_fields.items() if value is not None)
    entry.update(description.others)
    return entry


def _without_duplicates(project: Project, tools: list[Tool], warnings: list[str]) -> list[Tool]:
    """The first of each name; clients address a tool by its name alone."""
    kept: dict[str, Tool] = {}
    for tool in tools:
        first = kept.setdefault(tool.name, tool)
        if first is not tool:
            shown, first_shown = project.shown(tool.path), project.shown(first.path)
            warnings.append(f"{shown}: skipped, {first_shown} already provides the tool {tool.name}")
    return list(kept.values())
