"""Read the items that a project registers by hand, with the same rules as for items that are found on disk.

A registered item is a description that names its file. An item that cannot be served is left out with a warning. The
registration as a whole has been checked by `rules`. The items keep its order.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen.catalog.descriptions.metadata import Origin, head_of, shown
from mcpgreen.catalog.descriptions.scopes import descriptions_beside, with_all_scopes
from mcpgreen.catalog.items import Discovery, uris_in
from mcpgreen.catalog.manual.registration import Registration
from mcpgreen.catalog.tools import Tool, tool_at
from mcpgreen.catalog.tree_scan import UNPACED, Loss, Pace
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

if TYPE_CHECKING:
    from mcpgreen.catalog.prompts import Prompt
    from mcpgreen.catalog.resources import Resource, ResourceTemplate

# Each kind is imported when it is first read, as in `item_kinds`.


class Reader(NamedTuple):
    """How an entry is read, the word for such an item, and the field that identifies an item to clients."""

    read: Callable[[Project, Json, list[str]], Any]
    what: str
    identity: str = "name"


class CompletionScript(NamedTuple):
    """A script that completes arguments. `timeout_secs` is None if the setting counts."""

    path: str
    timeout_secs: float | None = None


def registered_items(project: Project, registration: Registration | None, kind: str) -> Discovery | None:
    """Read the registered items of a kind; return None for a kind that is found on disk."""
    if registration is None or (entries := registration.items[kind]) is None:
        return None
    return read_each(project, registration.source, entries, READERS[kind])


def registered_completions(project: Project, registration: Registration) -> dict[str, CompletionScript]:
    """Return the completion scripts by name. `rules` has checked that each exists."""
    return {
        item["name"]: CompletionScript(os.path.join(project.root, item["path"]), item.get("timeoutSecs"))
        for item in registration.items["completions"] or ()
    }


def read_each(project: Project, source: str, entries: list[Json], reader: Reader, pace: Pace = UNPACED) -> Discovery:
    """Read the entries. If clients could not distinguish two items, the first counts."""
    warnings: list[str] = []
    kept: Json = {}
    for entry in pace.over(entries):
        name: str = entry["name"]
        label = f"{source}: the {reader.what} {name if name.isprintable() else shown(name)}"
        complaints: list[str] = []
        try:
            found = reader.read(project, entry, complaints)
            key: str = getattr(found, reader.identity)
            if kept.setdefault(key, found) is not found:
                raise ProjectError(source, f"an earlier one has the {reader.identity} {key}")
        except ProjectError as error:
            warnings.append(loss := Loss(f"{label} is left out: {error.reason}"))
            loss.hides = uris_in(entry) if "scope" in error.reason else ()
        warnings.extend(f"{label}: {complaint}" for complaint in complaints)
    return Discovery(list(kept.values()), warnings)


def read_tool(project: Project, fields: Json, complaints: list[str], *, is_registered: bool = False) -> Tool:
    path, status = file_of(project, fields, below=project.tools_dir)
    fields = with_all_scopes(path, b"", fields, *descriptions_beside(path)) if is_registered else fields
    tool, problems = tool_at(project, path, fields, status=status)
    complaints.extend(problems)
    return tool


def read_prompt(project: Project, fields: Json, complaints: list[str], *, is_registered: bool = False) -> Prompt:
    from mcpgreen.catalog.prompts import describe_prompt, is_program, with_file

    home = os.path.join(project.prompts_dir, "")  # its icons are looked for in this directory
    if fields.get("path") is None and fields.get("messages") is not None:
        return describe_prompt(Origin(home, project.private, complaints), fields)
    path, status = file_of(project, fields, below=project.prompts_dir)
    runs = is_program(path, status)
    if is_registered:
        fields = with_all_scopes(path, head_of(path) or b"", fields, *descriptions_beside(path), is_prose=not runs)
    prompt = describe_prompt(Origin(path, project.private, complaints), fields)
    return with_file(prompt, path, path.removeprefix(home), is_program=runs)


def _resource(project: Project, fields: Json, complaints: list[str]) -> Resource:
    from mcpgreen.catalog.resources import describe_resource

    resource = describe_resource(Origin(os.path.join(project.resources_dir, ""), project.private, complaints), fields)
    # Clients of older servers look for the provider in the list.
    return resource._replace(definition={**resource.definition, "provider": resource.provider})


def _template(project: Project, fields: Json, complaints: list[str]) -> ResourceTemplate:
    from mcpgreen.catalog.resources import describe_template

    home = os.path.join(project.resources_dir, "")
    if fields.get("uriTemplate") is None:
        raise ProjectError(home, "uriTemplate is missing")
    return describe_template(Origin(home, project.private, complaints), fields)._replace(path=None)


def file_of(project: Project, item: Json, *, below: str) -> tuple[str, os.stat_result]:
    """Return the file that an item names, relative to the directory of its kind. Raises ProjectError."""
    given, place = item.get("path"), project.shown(below)
    if not isinstance(given, str) or not given or not given.isprintable():
        raise ProjectError(place, f"path must be a string that names a file below {place}/")
    path = os.path.normpath(os.path.join(below, given))
    if not is_within(path, below) or not is_within(os.path.realpath(path), below):
        raise ProjectError(place, f"path {given} is outside {place}/")
    try:
        status = os.stat(path)
    except OSError:
        raise ProjectError(place, f"there is no file {given} in {place}/") from None
    if not stat.S_ISREG(status.st_mode):
        raise ProjectError(place, f"path {given} is not a file")
    return path, status


READERS = {
    "tools": Reader(partial(read_tool, is_registered=True), "tool"),
    "prompts": Reader(partial(read_prompt, is_registered=True), "prompt"),
    "resources": Reader(_resource, "resource", identity="uri"),  # clients read by URI, so two may share a name
    "resourceTemplates": Reader(_template, "resource template"),
}
