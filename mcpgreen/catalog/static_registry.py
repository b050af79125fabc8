"""Read the files in `.registry/` instead of the project, if the registry is static.

Each entry has all that its description said, so no description is read. The files of the items are looked at (do they
exist, are they executable), and everything is checked again when it is used.

Rule: these files decide what is run, so they have to be as trustworthy as a tool. A file that is not, or is missing, or
has another format, is not used at all; the project is read instead.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import Origin
from mcpgreen.catalog.item_kinds import TITLE_OF, registry_file
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.manual.items import Reader, read_each, read_prompt, read_tool
from mcpgreen.catalog.snapshot import FORMAT_VERSION
from mcpgreen.catalog.tools import refusals
from mcpgreen.catalog.tree_scan import Pace, survey
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of
from mcpgreen.project.project import Project
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.catalog.prompts import Prompt
    from mcpgreen.catalog.resources import Resource, ResourceTemplate


def kept_items(project: Project, kind: str, *, max_bytes: int, pace: Pace) -> Discovery:
    """Return the items that the file of this kind lists. Raises ProjectError if the file cannot be used."""
    if kind not in TITLE_OF:
        from mcpgreen.catalog.skills import discover_skills  # most projects have none

        return discover_skills(project, survey(project, [project.skills_dir], pace=pace))
    reader, path = READERS[kind], registry_file(project, kind)

    def read(project: Project, entry: Json, complaints: list[str]) -> Any:
        # Every entry has a description, but the definition only has one that the author wrote.
        fields = {name: value for name, value in entry.items() if name != "description" or value}
        return reader.read(project, fields, complaints)._replace(registry_entry=entry)

    try:
        problem = project.ground(project.registry_dir).problem_with(path, may_be_link=False)
    except FileNotFoundError:
        raise ProjectError(path, "it does not exist") from None
    if problem:
        raise ProjectError(path, f"it is not trusted: {problem}")
    try:
        content = jsontext.parsed(content_of(path, max_bytes).decode("utf-8"))
    except ValueError as error:
        raise ProjectError(path, f"it is not valid JSON: {error}") from error
    entries = content.get("items") if isinstance(content, dict) else None
    if not isinstance(entries, list) or content.get("format_version") != FORMAT_VERSION:
        raise ProjectError(path, f"its format is not version {FORMAT_VERSION}")
    if not all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries):
        raise ProjectError(path, "not all of its items are objects with a name")
    found = read_each(project, project.shown(path), entries, reader._replace(read=read), pace)
    refused = refusals(project, found.items, pace) if kind == "tools" else []
    return found._replace(warnings=[*found.warnings, *refused])


def _prompt(project: Project, fields: Json, complaints: list[str]) -> Prompt:
    prompt = read_prompt(project, fields, complaints)
    # An entry has the arguments as they are listed, and their schemas separately.
    schemas = (fields.get("inputSchema") or {}).get("properties")
    if isinstance(schemas, dict):
        prompt = prompt._replace(schemas=schemas)
    return prompt._replace(path=None) if metadata.is_description(prompt.relative_path) else prompt


def _resource(
    project: Project, fields: Json, complaints: list[str], *, is_template: bool = False
) -> Resource | ResourceTemplate:
    from mcpgreen.catalog.resources import describe_resource, describe_template  # most clients ask for tools first

    if not isinstance(fields.get("path"), str):
        raise ProjectError("", "path must be a string")
    origin = Origin(os.path.join(project.resources_dir, fields["path"]), project.private, complaints)
    if is_template:
        return describe_template(origin, fields)._replace(relative_path=fields["path"])
    resource = describe_resource(origin, fields)
    has_file = resource.provider != "ui" and not metadata.is_description(origin.path)
    path = os.path.normpath(origin.path)  # files of skills are not below resources/
    return resource._replace(path=path if has_file else None, relative_path=fields["path"])


READERS = {
    "tools": Reader(read_tool, "tool"),
    "prompts": Reader(_prompt, "prompt"),
    "resources": Reader(_resource, "resource", identity="uri"),
    "resourceTemplates": Reader(partial(_resource, is_template=True), "resource template"),
    "ui": Reader(_resource, "page", identity="uri"),
}
