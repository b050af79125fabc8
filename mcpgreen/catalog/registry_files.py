"""Write the files in `.registry/` that list the items of a project: for people and other programs.

The server reads them only with a static registry (`static_registry`).
"""

from __future__ import annotations

import os

from mcpgreen import journal
from mcpgreen.catalog.item_kinds import registry_file
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.files.regular_files import new_file, unguessable
from mcpgreen.project.project import Project
from mcpgreen.running.scripts.scratch import Storage
from mcpgreen.text import jsontext

FORMAT_VERSION = 1


class RegistryFiles:
    """Writes the files of one project. The server does not need them, so failures are reported only once. On a full
    disk, writing is tried again, and `storage` informs clients."""

    def __init__(self, project: Project, storage: Storage | None = None) -> None:
        self._project = project
        self._storage = storage
        self._is_unwritable = False
        self._due: set[str] = set()  # kinds that did not fit on the disk

    def write(self, snapshot: Snapshot, text: bytes | None) -> None:
        """Write the file of a snapshot. Without `text`, only if the file is due or missing."""
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
    """Return the content of the file. For a registration it has no format version: a static server must not read it."""
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
