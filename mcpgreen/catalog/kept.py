"""Items as an earlier look at the project left them in `.registry/`: for a server that is told not to look again.

Each entry has all that its description said, so no description is read. The files themselves are looked at (are they
there, can they be executed), and everything is checked again when it is used, as it is for items that were found.

Rule: what is in these files decides what is run, so they have to be as trustworthy as a tool. One that is not, or is
missing, or has another format, is not used at all: whoever asks has to look for himself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mcpgreen.catalog import prompts, resources
from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import Origin
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.manual.items import each, file_of
from mcpgreen.catalog.pace import Pace
from mcpgreen.catalog.snapshot import FORMAT_VERSION
from mcpgreen.catalog.tools import tool_at
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import without_waiting
from mcpgreen.project.project import Project
from mcpgreen.text import jsontext

Json = dict[str, Any]


def kept_items(project: Project, kind: str, path: str, *, max_bytes: int, pace: Pace) -> Discovery:
    """The items of this kind that the file lists. Raises ProjectError if it cannot be used."""
    read, what, key = READERS[kind]

    def item(entry: Json, complaints: list[str]) -> Any:
        # Entries always have a description, definitions only if somebody wrote one.
        fields = {name: value for name, value in entry.items() if name != "description" or value}
        return read(project, fields, complaints)._replace(registry_entry=entry)

    entries = _entries(project, path, max_bytes)
    return each(project.shown(path), what, entries, item, distinct=key, pace=pace)


def _entries(project: Project, path: str, max_bytes: int) -> list[Json]:
    try:
        problem = project.ground(project.registry_dir).problem_with(path, may_be_link=False)
        if problem:
            raise ProjectError(path, f"it is not trusted: {problem}")
        with open(path, "rb", opener=without_waiting) as file:
            raw = file.read(max_bytes + 1)
        if len(raw) > max_bytes:
            raise ProjectError(path, f"it is larger than {max_bytes} bytes")
        content = jsontext.parsed(raw.decode("utf-8"))
    except FileNotFoundError:
        raise ProjectError(path, "it does not exist") from None
    except OSError as error:
        raise ProjectError(path, f"it cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ProjectError(path, f"it is not valid JSON: {error}") from error
    entries = content.get("items") if isinstance(content, dict) else None
    if not isinstance(entries, list) or content.get("format_version") != FORMAT_VERSION:
        raise ProjectError(path, f"it has another format than {FORMAT_VERSION}")
    if not all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries):
        raise ProjectError(path, "not all of its items are objects with a name")
    return entries


def _tool(project: Project, fields: Json, complaints: list[str]) -> Any:
    path, status = file_of(project, fields, below=project.tools_dir)
    tool, problems = tool_at(project, path, fields, status=status)
    complaints.extend(problems)
    return tool


def _prompt(project: Project, fields: Json, complaints: list[str]) -> Any:
    path, status = file_of(project, fields, below=project.prompts_dir)
    prompt = prompts.describe_prompt(Origin(path, project.private, complaints), fields)
    # Of the arguments the entry has what is listed, and the schemas apart from that.
    schemas = (fields.get("inputSchema") or {}).get("properties")
    if isinstance(schemas, dict):
        prompt = prompt._replace(schemas=schemas)
    prompt = prompt._replace(relative_path=fields["path"])
    if metadata.is_description(path):
        return prompt
    return prompts.with_file(prompt, path, fields["path"], is_program=prompts.is_program(path, status))


def _source_of(project: Project, fields: Json) -> str:
    if not metadata.is_string(fields.get("path")):
        raise ProjectError("", "path must be a text")
    return os.path.join(project.resources_dir, fields["path"])


def _resource(project: Project, fields: Json, complaints: list[str]) -> Any:
    source = _source_of(project, fields)
    resource = resources.describe_resource(Origin(source, project.private, complaints), fields)
    has_file = resource.provider != "ui" and not metadata.is_description(source)
    return resource._replace(path=source if has_file else None, relative_path=fields["path"])


def _template(project: Project, fields: Json, complaints: list[str]) -> Any:
    source = _source_of(project, fields)
    template = resources.describe_template(Origin(source, project.private, complaints), fields)
    return template._replace(relative_path=fields["path"])


# How an item is read, what people call it, and by what clients tell items apart.
READERS: dict[str, tuple[Callable[[Project, Json, list[str]], Any], str, str]] = {
    "tools": (_tool, "tool", "name"),
    "prompts": (_prompt, "prompt", "name"),
    "resources": (_resource, "resource", "uri"),
    "resourceTemplates": (_template, "resource template", "name"),
    "ui": (_resource, "page", "uri"),
}
