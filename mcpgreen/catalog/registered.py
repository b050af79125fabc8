"""Items that a project registers by hand, read by the same rules as those that are found on disk.

A registered item is a description that says itself where its file is. One that cannot be served is left out with a
warning; that the registration as a whole makes sense is seen to by `registration`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any

from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.project import Project
from mcpgreen.catalog.registration import Registration
from mcpgreen.catalog.survey import is_below
from mcpgreen.errors import ProjectError

Json = dict[str, Any]


def registered_tools(project: Project, registration: Registration, items: list[Json]) -> Discovery:
    from mcpgreen.catalog.tools import distinct_tools, tool_at

    def tool(item: Json, complaints: list[str]) -> Any:
        path, status = _file_of(project, item, below=project.tools_dir)
        found, problems = tool_at(project, path, item, status=status)
        complaints.extend(problems)
        return found

    found, warnings = _each(registration, "tool", items, tool)
    return Discovery(distinct_tools(project, found, warnings), warnings)


def registered_prompts(project: Project, registration: Registration, items: list[Json]) -> Discovery:
    from mcpgreen.catalog.prompts import describe_prompt, distinct_prompts, is_program, with_file

    def prompt(item: Json, complaints: list[str]) -> Any:
        described = describe_prompt(registration.source, item, default_name="", complaints=complaints)
        if "path" not in item and described.messages is not None:
            return described._replace(relative_path=registration.source)
        path, status = _file_of(project, item, below=project.prompts_dir)
        relative_path = path.removeprefix(project.prompts_dir.rstrip("/") + "/")
        return with_file(described, path, relative_path, is_program=is_program(path, status))

    found, warnings = _each(registration, "prompt", items, prompt)
    return Discovery(distinct_prompts(found, warnings), warnings)


def registered_resources(registration: Registration, items: list[Json]) -> Discovery:
    from mcpgreen.catalog.resources import describe_resource, distinct_resources

    def resource(item: Json, complaints: list[str]) -> Any:
        described = describe_resource(registration.source, item, default_name="", default_uri="", complaints=complaints)
        # Clients of older servers look for the provider in the list.
        definition = {**described.definition, "provider": described.provider}
        return described._replace(definition=definition, relative_path=registration.source)

    found, warnings = _each(registration, "resource", items, resource)
    return Discovery(distinct_resources(found, warnings), warnings)


def registered_templates(registration: Registration, items: list[Json]) -> Discovery:
    from mcpgreen.catalog.resources import describe_template, distinct_templates

    def template(item: Json, complaints: list[str]) -> Any:
        if "uriTemplate" not in item:
            raise ProjectError(registration.source, "uriTemplate is missing")
        described = describe_template(registration.source, item, default_name="", complaints=complaints)
        return described._replace(path=None, relative_path=registration.source)

    found, warnings = _each(registration, "resource template", items, template)
    return Discovery(distinct_templates(found, set(), warnings), warnings)


def _each(
    registration: Registration, what: str, items: list[Json], read: Callable[[Json, list[str]], Any]
) -> tuple[list[Any], list[str]]:
    warnings: list[str] = []
    found: list[Any] = []
    for item in items:
        label = f"{registration.source}: the {what} {item.get('name')}"
        complaints: list[str] = []
        try:
            found.append(read(item, complaints))
        except ProjectError as error:
            warnings.append(f"{label} is left out: {error.reason}")
        warnings.extend(f"{label}: {complaint}" for complaint in complaints)
    return found, warnings


def _file_of(project: Project, item: Json, *, below: str) -> tuple[str, os.stat_result]:
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
