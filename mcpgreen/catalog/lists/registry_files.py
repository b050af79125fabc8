"""Write the files in `.registry/` that show what is listed, for people and other programs.

The server needs none of them: where they cannot be written, that is told once, and again tried only on a full disk.
"""

from __future__ import annotations

import os

from mcpgreen import journal
from mcpgreen.catalog.item_kinds import registry_file
from mcpgreen.catalog.pace import UNPACED, Pace
from mcpgreen.catalog.snapshot import file_text, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpgreen.catalog.shelf import Shelf
    from mcpgreen.catalog.snapshot import Snapshot
    from mcpgreen.project.project import Project
    from mcpgreen.running.storage import Storage


class RegistryFiles:
    """Of one project. Without a `storage` nobody is told of a full disk."""

    def __init__(self, project: Project, storage: Storage | None = None) -> None:
        self._project = project
        self.storage = storage

    def write_due(self, shelf: Shelf) -> None:
        for kind in list(shelf.files_due):
            self.write(shelf, shelf.snapshots[kind], None)

    def write(self, shelf: Shelf, snapshot: Snapshot, text: list[bytes] | None, pace: Pace = UNPACED) -> None:
        """Without a `text` only if it is due or missing."""
        kind, directory = snapshot.kind, self._project.registry_dir
        path = registry_file(self._project, kind)
        if text is None and kind not in shelf.files_due and (shelf.is_unwritable or os.path.exists(path)):
            return
        shelf.files_due.add(kind)
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            replace_file(path, text or file_text(snapshot, pace), pace)
        except OSError as error:
            storage = self.storage
            is_full = (
                storage is not None and storage.failed(error, directory=directory, what="the registry") is not None
            )
            if not is_full:  # else it is tried again with each look
                shelf.files_due.discard(kind)
            if not is_full and not shelf.is_unwritable:
                journal.warning("%s cannot be written: %s; the server does not need it", path, error.strerror)
            shelf.is_unwritable = True
        else:
            shelf.is_unwritable = False
            shelf.files_due.discard(kind)
            if self.storage is not None:
                self.storage.succeeded(directory)
