"""Items as an earlier look at the project left them in `.registry/`: for a server that is told not to look again.

Each entry has all that its description said, so no description is read. The files themselves are looked at (are they
there, can they be executed), and everything is checked again when it is used, as it is for items that were found.

Rule: what is in these files decides what is run, so they have to be as trustworthy as a tool. One that is not, or is
missing, or has another format, is not used at all: whoever asks has to look for himself.
"""

from __future__ import annotations

import os

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import Origin
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.manual.items import Reader, read_each, read_prompt, read_tool
from mcpgreen.catalog.snapshot import FORMAT_VERSION
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of
from mcpgreen.text import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcpgreen.catalog.pace import Pace
    from mcpgreen.catalog.prompts import Prompt
    from mcpgreen.catalog.resources import Resource, ResourceTemplate
    from mcpgreen.project.project import Project

    Json = dict[str, Any]


def kept_items(project: Project, kind: str, path: str, *, max_bytes: int, pace: Pace) -> Discovery:
    """The items of this kind that the file lists. Raises ProjectError if it cannot be used."""
    reader = READERS[kind]

    def read(project: Project, entry: Json, complaints: list[str]) -> Any:
        # Entries always have a description, definitions only if somebody wrote one.
        fields = {name: value for name, value in entry.items() if name != "description" or value}
        return reader.read(project, fields, complaints)._replace(registry_entry=entry)

    entries = _entries(project, path, max_bytes)
    return read_each(project, project.shown(path), entries, reader._replace(read=read), pace)


def _entries(project: Project, path: str, max_bytes: int) -> list[Json]:
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
        raise ProjectError(path, f"it has another format than {FORMAT_VERSION}")
    if not all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries):
        raise ProjectError(path, "not all of its items are objects with a name")
    return entries


def _prompt(project: Project, fields: Json, complaints: list[str]) -> Prompt:
    prompt = read_prompt(project, fields, complaints)
    # Of the arguments the entry has what is listed, and the schemas apart from that.
    schemas = (fields.get("inputSchema") or {}).get("properties")
    if isinstance(schemas, dict):
        prompt = prompt._replace(schemas=schemas)
    return prompt._replace(path=None) if metadata.is_description(prompt.relative_path) else prompt


def _origin(project: Project, fields: Json, complaints: list[str]) -> Origin:
    if not isinstance(fields.get("path"), str):
        raise ProjectError("", "path must be a text")
    return Origin(os.path.join(project.resources_dir, fields["path"]), project.private, complaints)


def _resource(project: Project, fields: Json, complaints: list[str]) -> Resource:
    from mcpgreen.catalog.resources import describe_resource

    origin = _origin(project, fields, complaints)
    resource = describe_resource(origin, fields)
    has_file = resource.provider != "ui" and not metadata.is_description(origin.path)
    return resource._replace(path=origin.path if has_file else None, relative_path=fields["path"])


def _template(project: Project, fields: Json, complaints: list[str]) -> ResourceTemplate:
    from mcpgreen.catalog.resources import describe_template

    return describe_template(_origin(project, fields, complaints), fields)._replace(relative_path=fields["path"])


READERS = {
    "tools": Reader(read_tool, "tool"),
    "prompts": Reader(_prompt, "prompt"),
    "resources": Reader(_resource, "resource", distinct="uri"),
    "resourceTemplates": Reader(_template, "resource template"),
    "ui": Reader(_resource, "page", distinct="uri"),
}
