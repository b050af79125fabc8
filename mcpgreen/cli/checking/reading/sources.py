"""Where an item is described: the file, what it says there, and where in it each field stands."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.in_script import told_by
from mcpgreen.catalog.manual.rules import Registration
from mcpgreen.cli.checking.findings import Position, Problem
from mcpgreen.cli.checking.reading.places import Description, Keys, description_beside, description_in
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project


class Source(NamedTuple):
    """`base` leads to the item where several are described in one file."""

    path: str | None
    fields: dict[str, Any]
    description: Description | None
    base: Keys = ()
    is_registered: bool = False

    def position(self, *keys: str | int) -> Position | None:
        if self.description is None or not (keys or self.base):
            return None
        if keys and keys[0] == "inputSchema" and "inputSchema" not in self.fields:
            keys = ("arguments", *keys[1:])
        return self.description.position_of(*self.base, *keys)

    def error(self, code: str, sentence: str, fix: str, *keys: str | int) -> Problem:
        return Problem("error", code, sentence, fix, self.path, self.position(*keys))

    def warning(self, code: str, sentence: str, fix: str, *keys: str | int) -> Problem:
        return Problem("warning", code, sentence, fix, self.path, self.position(*keys))

    def position_of_text(self, path: str | None, *texts: str) -> Position | None:
        """Of the first of these texts in a file."""
        with suppress(OSError):
            content = metadata.read_start(path, metadata.MAX_META_BYTES).decode("utf-8", "replace") if path else ""
            for text in texts:
                at = content.find(text)
                if at >= 0:
                    return Description(content).position_at(at)
        return None


def source_of(project: Project, registration: Registration | None, kind: str, item: Any) -> Source:
    """Of an item that was found or registered."""
    if registration is not None and registration.items.get(kind) is not None:
        found = _registered(project, registration, kind, item.name)
        if found is not None:
            return found
    path = _path_of(project, kind, item)
    if path is None:
        return Source(None, {}, None)
    described = description_beside(path)
    place = described or path
    try:
        fields = metadata.read_meta_file(place) if described else _fields_in(kind, place)
    except (ProjectError, OSError):
        fields = {}
    return Source(place, fields or {}, description_in(place) if fields is not None else None)


def _fields_in(kind: str, path: str) -> dict[str, Any] | None:
    if kind != "tools":
        return metadata.read_inline_of(path)
    told = told_by(path, metadata.head_of(path) or b"")
    return told.fields if told else None


def _registered(project: Project, registration: Registration, kind: str, name: str) -> Source | None:
    entries = registration.items[kind] or []
    for index, entry in enumerate(entries):
        if entry.get("name") == name:
            path = os.path.join(project.root, registration.source)
            is_text = path.endswith(".json")  # a script says it in its own way
            return Source(path, entry, description_in(path) if is_text else None, (kind, index), is_registered=True)
    return None


def _path_of(project: Project, kind: str, item: Any) -> str | None:
    if getattr(item, "path", None):
        return str(item.path)
    relative = getattr(item, "relative_path", "")
    home = {"prompts": project.prompts_dir, "resources": project.resources_dir}.get(kind, project.resources_dir)
    for base in (home, project.root):
        path = os.path.join(base, relative)
        if relative and os.path.isfile(path):
            return path
    return None
