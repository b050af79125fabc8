"""Items that a project registers by hand, read by the same rules as those that are found on disk.

A registered item is a description that says itself where its file is. One that cannot be served is left out with a
warning; that the registration as a whole makes sense is seen to by `rules`. The order is the author's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions.metadata import Origin, shown
from mcpgreen.catalog.items import Discovery, Loss
from mcpgreen.catalog.manual.rules import Registration
from mcpgreen.catalog.pace import UNPACED, Pace
from mcpgreen.catalog.tree_scan import is_below
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project

Json = dict[str, Any]


class CompletionScript(NamedTuple):
    """A script that completes arguments, and how long it may take if that is its own."""

    path: str
    timeout_secs: float | None = None


def registered_tools(project: Project, registration: Registration, items: list[Json]) -> Discovery:
    from mcpgreen.catalog.tools import tool_at

    def tool(item: Json, complaints: list[str]) -> Any:
        path, status = file_of(project, item, below=project.tools_dir)
        found, problems = tool_at(project, path, item, status=status)
        complaints.extend(problems)
        return found

    return each(registration.source, "tool", items, tool)


def registered_prompts(project: Project, registration: Registration, items: list[Json]) -> Discovery:
    from mcpgreen.catalog.prompts import describe_prompt, is_program, with_file

    def prompt(item: Json, complaints: list[str]) -> Any:
        if item.get("path") is None and item.get("messages") is not None:
            return describe_prompt(Origin(_in(project.prompts_dir), project.private, complaints), item)
        path, status = file_of(project, item, below=project.prompts_dir)
        described = describe_prompt(Origin(path, project.private, complaints), item)
        relative_path = path.removeprefix(_in(project.prompts_dir))
        return with_file(described, path, relative_path, is_program=is_program(path, status))

    return each(registration.source, "prompt", items, prompt)


def registered_resources(project: Project, registration: Registration, items: list[Json]) -> Discovery:
    from mcpgreen.catalog.resources import describe_resource

    def resource(item: Json, complaints: list[str]) -> Any:
        described = describe_resource(Origin(_in(project.resources_dir), project.private, complaints), item)
        # Clients of older servers look for the provider in the list.
        return described._replace(definition={**described.definition, "provider": described.provider})

    # Clients read by address, so two may share a name.
    return each(registration.source, "resource", items, resource, distinct="uri")


def registered_templates(project: Project, registration: Registration, items: list[Json]) -> Discovery:
    from mcpgreen.catalog.resources import describe_template

    def template(item: Json, complaints: list[str]) -> Any:
        place = _in(project.resources_dir)
        if item.get("uriTemplate") is None:
            raise ProjectError(place, "uriTemplate is missing")
        return describe_template(Origin(place, project.private, complaints), item)._replace(path=None)

    return each(registration.source, "resource template", items, template)


def registered_completions(project: Project, registration: Registration) -> dict[str, CompletionScript]:
    """By name. That each of them is there was seen to when the registration was read."""
    return {
        item["name"]: CompletionScript(os.path.join(project.root, item["path"]), item.get("timeoutSecs"))
        for item in registration.of("completions") or ()
    }


def each(
    source: str,
    what: str,
    items: list[Json],
    read: Callable[[Json, list[str]], Any],
    *,
    distinct: str = "name",
    pace: Pace = UNPACED,
) -> Discovery:
    """Read one after the other. Of those that clients could not tell apart the first counts."""
    warnings: list[str] = []
    kept: dict[str, Any] = {}
    for item in pace.over(items):
        name: str = item["name"]
        label = f"{source}: the {what} {name if name.isprintable() else shown(name)}"
        complaints: list[str] = []
        try:
            found = read(item, complaints)
            key: str = getattr(found, distinct)
            if kept.setdefault(key, found) is not found:
                raise ProjectError(source, f"an earlier one has the {distinct} {key}")
        except ProjectError as error:
            warnings.append(Loss(f"{label} is left out: {error.reason}"))
        warnings.extend(f"{label}: {complaint}" for complaint in complaints)
    return Discovery(list(kept.values()), warnings)


def _in(directory: str) -> str:
    """Where an item without a file of its own is at home: icons are sought there."""
    return os.path.join(directory, "")


def file_of(project: Project, item: Json, *, below: str) -> tuple[str, os.stat_result]:
    """The file that an item names, relative to the directory of its kind."""
    given, place = item.get("path"), project.shown(below)
    if not isinstance(given, str) or not given or not given.isprintable():
        raise ProjectError(place, f"path must be a text that names a file below {place}/")
    path = os.path.normpath(os.path.join(below, given))
    if not is_below(path, below) or not is_below(os.path.realpath(path), below):
        raise ProjectError(place, f"path {given} leads out of {place}/")
    try:
        status = os.stat(path)
    except OSError:
        raise ProjectError(place, f"there is no file {given} in {place}/") from None
    if not stat.S_ISREG(status.st_mode):
        raise ProjectError(place, f"path {given} is no file")
    return path, status
