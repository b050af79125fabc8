"""Items that a project registers by hand, read by the same rules as those that are found on disk.

A registered item is a description that says itself where its file is. One that cannot be served is left out with a
warning; that the registration as a whole makes sense is seen to by `rules`. The order is the author's.
"""

from __future__ import annotations

import os
import stat

from mcpgreen.catalog.descriptions.metadata import Origin, shown
from mcpgreen.catalog.items import Discovery, Loss
from mcpgreen.catalog.pace import UNPACED, Pace
from mcpgreen.errors import ProjectError
from mcpgreen.text.records import NamedTuple
from mcpgreen.text.uris import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcpgreen.catalog.manual.rules import Registration
    from mcpgreen.catalog.prompts import Prompt
    from mcpgreen.catalog.resources import Resource, ResourceTemplate
    from mcpgreen.catalog.tools import Tool
    from mcpgreen.project.project import Project

    Json = dict[str, Any]


class Reader(NamedTuple):
    """How an entry is read, what people call such an item, and by what clients tell two of them apart."""

    read: Callable[[Project, Json, list[str]], Any]
    what: str
    distinct: str = "name"


class CompletionScript(NamedTuple):
    """A script that completes arguments, and how long it may take if that is its own."""

    path: str
    timeout_secs: float | None = None


def registered_items(project: Project, registration: Registration, kind: str) -> Discovery | None:
    """None for a kind that is found by looking at the disk."""
    entries = registration.items[kind]
    return None if entries is None else read_each(project, registration.source, entries, READERS[kind])


def registered_completions(project: Project, registration: Registration) -> dict[str, CompletionScript]:
    """By name. That each of them is there was seen to when the registration was read."""
    return {
        item["name"]: CompletionScript(os.path.join(project.root, item["path"]), item.get("timeoutSecs"))
        for item in registration.items["completions"] or ()
    }


def read_each(project: Project, source: str, entries: list[Json], reader: Reader, pace: Pace = UNPACED) -> Discovery:
    """Read one after the other. Of those that clients could not tell apart the first counts."""
    warnings: list[str] = []
    kept: dict[str, Any] = {}
    for entry in pace.over(entries):
        name: str = entry["name"]
        label = f"{source}: the {reader.what} {name if name.isprintable() else shown(name)}"
        complaints: list[str] = []
        try:
            found = reader.read(project, entry, complaints)
            key: str = getattr(found, reader.distinct)
            if kept.setdefault(key, found) is not found:
                raise ProjectError(source, f"an earlier one has the {reader.distinct} {key}")
        except ProjectError as error:
            warnings.append(Loss(f"{label} is left out: {error.reason}"))
        warnings.extend(f"{label}: {complaint}" for complaint in complaints)
    return Discovery(list(kept.values()), warnings)


def read_tool(project: Project, fields: Json, complaints: list[str]) -> Tool:
    from mcpgreen.catalog.tools import tool_at  # as below: a list of one kind needs no other

    path, status = file_of(project, fields, below=project.tools_dir)
    tool, problems = tool_at(project, path, fields, status=status)
    complaints.extend(problems)
    return tool


def read_prompt(project: Project, fields: Json, complaints: list[str]) -> Prompt:
    from mcpgreen.catalog.prompts import describe_prompt, is_program, with_file

    home = _in(project.prompts_dir)
    if fields.get("path") is None and fields.get("messages") is not None:
        return describe_prompt(Origin(home, project.private, complaints), fields)
    path, status = file_of(project, fields, below=project.prompts_dir)
    prompt = describe_prompt(Origin(path, project.private, complaints), fields)
    return with_file(prompt, path, path.removeprefix(home), is_program=is_program(path, status))


def _resource(project: Project, fields: Json, complaints: list[str]) -> Resource:
    from mcpgreen.catalog.resources import describe_resource

    resource = describe_resource(Origin(_in(project.resources_dir), project.private, complaints), fields)
    # Clients of older servers look for the provider in the list.
    return resource._replace(definition={**resource.definition, "provider": resource.provider})


def _template(project: Project, fields: Json, complaints: list[str]) -> ResourceTemplate:
    from mcpgreen.catalog.resources import describe_template

    home = _in(project.resources_dir)
    if fields.get("uriTemplate") is None:
        raise ProjectError(home, "uriTemplate is missing")
    return describe_template(Origin(home, project.private, complaints), fields)._replace(path=None)


def _in(directory: str) -> str:
    """Where an item without a file of its own is at home: icons are sought there."""
    return os.path.join(directory, "")


def file_of(project: Project, item: Json, *, below: str) -> tuple[str, os.stat_result]:
    """The file that an item names, relative to the directory of its kind."""
    given, place = item.get("path"), project.shown(below)
    if not isinstance(given, str) or not given or not given.isprintable():
        raise ProjectError(place, f"path must be a text that names a file below {place}/")
    path = os.path.normpath(os.path.join(below, given))
    try:
        status = _status_within(path, below)
    except OSError:
        raise ProjectError(place, f"there is no file {given} in {place}/") from None
    if status is None:
        raise ProjectError(place, f"path {given} leads out of {place}/")
    if not stat.S_ISREG(status.st_mode):
        raise ProjectError(place, f"path {given} is no file")
    return path, status


def _status_within(path: str, below: str) -> os.stat_result | None:
    """Of what the path leads to; None if that lies elsewhere. `below` is a real path, so only the steps from there on
    are looked at, and as nearly always none is a link."""
    if not is_within(path, below) or path == below:
        return None if path != below else os.stat(path)
    place = below.rstrip("/")
    for name in path[len(place) + 1 :].split("/"):
        place = f"{place}/{name}"
        status = os.lstat(place)
        if stat.S_ISLNK(status.st_mode):
            return os.stat(path) if is_within(os.path.realpath(path), below) else None
    return status


READERS = {
    "tools": Reader(read_tool, "tool"),
    "prompts": Reader(read_prompt, "prompt"),
    "resources": Reader(_resource, "resource", distinct="uri"),  # clients read by URI, so two may share a name
    "resourceTemplates": Reader(_template, "resource template"),
}
