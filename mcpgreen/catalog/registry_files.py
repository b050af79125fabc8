"""Write and read the files in `.registry/` that list the items of a project.

They are written for people and other programs. The server reads them only with a static registry: then they replace the
look at the project. Each entry has all that its description said, so no description is read. The files of the items are
looked at (do they exist, are they executable), and everything is checked again when it is used.

Rule: these files decide what is run, so they have to be as trustworthy as a tool. A file that is not, or is missing, or
has another format, is not used at all; the project is read instead.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from mcpgreen import journal
from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import Origin
from mcpgreen.catalog.item_kinds import registry_file
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.manual.items import Reader, read_each, read_prompt, read_tool
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import Resource, ResourceTemplate, describe_resource, describe_template
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.catalog.tree_scan import Pace
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of, new_file, unguessable
from mcpgreen.project.project import Project
from mcpgreen.running.scripts.scratch import Storage
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

FORMAT_VERSION = 1


class RegistryFiles:
    """Writes the files of one project. The server does not need them: that one cannot be written is reported once. On a
    full disk it is tried again, and `storage` tells clients."""

    def __init__(self, project: Project, storage: Storage | None = None) -> None:
        self._project = project
        self._storage = storage
        self._is_unwritable = False
        self._due: set[str] = set()  # kinds that did not fit on the disk

    def write(self, snapshot: Snapshot, text: bytes | None) -> None:
        """Write the file of a snapshot. Without a `text` only if it is due or missing."""
        kind, directory = snapshot.kind, self._project.registry_dir
        path = registry_file(self._project, kind)
        if text is None and kind not in self._due and (self._is_unwritable or os.path.exists(path)):
            return
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            replace_file(path, text or file_text(snapshot))
        except OSError as error:
            storage = self._storage
            if storage is not None and storage.failed(error, directory=directory, what="the registry") is not None:
                self._due.add(kind)
            elif not self._is_unwritable:
                journal.warning("%s cannot be written: %s; the server does not need it", path, error.strerror)
            self._is_unwritable = True
        else:
            self._is_unwritable = False
            self._due.discard(kind)
            if self._storage is not None:
                self._storage.succeeded(directory)


def file_text(snapshot: Snapshot) -> bytes:
    """The content of the file. A registration has no format version: a static server must not read it from here."""
    envelope = {
        **({"format_version": FORMAT_VERSION} if snapshot.is_found else {}),
        "version": 1,
        "generatedAt": snapshot.generated_at,
        "items": [item.registry_entry for item in snapshot.items],
        "hash": snapshot.hash,
        "total": snapshot.total,
    }
    # A lone surrogate has no UTF-8; its backslash form happens to be the JSON escape for it.
    return jsontext.pretty(envelope).encode("utf-8", "backslashreplace")


def replace_file(path: str, text: bytes) -> None:
    """Replace a file as a whole: programs that read it see the old file or the new one, never a part."""
    directory, name = os.path.split(path)
    draft = os.path.join(directory, f".{name}.{unguessable()}")
    descriptor = new_file(draft)
    try:
        with open(descriptor, "wb") as file:
            file.write(text)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)  # on a full disk as well as when this greenlet is killed
        raise


def kept_items(project: Project, kind: str, *, max_bytes: int, pace: Pace) -> Discovery:
    """The items that the file of this kind lists. Raises ProjectError if the file cannot be used."""
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
        raise ProjectError(path, f"it has another format than {FORMAT_VERSION}")
    if not all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries):
        raise ProjectError(path, "not all of its items are objects with a name")
    return read_each(project, project.shown(path), entries, reader._replace(read=read), pace)


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
    if not isinstance(fields.get("path"), str):
        raise ProjectError("", "path must be a text")
    origin = Origin(os.path.join(project.resources_dir, fields["path"]), project.private, complaints)
    if is_template:
        return describe_template(origin, fields)._replace(relative_path=fields["path"])
    resource = describe_resource(origin, fields)
    has_file = resource.provider != "ui" and not metadata.is_description(origin.path)
    return resource._replace(path=origin.path if has_file else None, relative_path=fields["path"])


READERS = {
    "tools": Reader(read_tool, "tool"),
    "prompts": Reader(_prompt, "prompt"),
    "resources": Reader(_resource, "resource", distinct="uri"),
    "resourceTemplates": Reader(partial(_resource, is_template=True), "resource template"),
    "ui": Reader(_resource, "page", distinct="uri"),
}
