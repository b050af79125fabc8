"""Add our entry to a client's file, or remove it. Everything else in the file stays the same, and a backup is kept.

The change is computed on the text, shown, and then made. No record is kept: what `uninstall` needs is in the file.

Rule: until the new content is complete on disk, the file stays as it was. It keeps its mode, owner and extended
attributes; if one cannot be kept, the file is left alone. A link stays, and its target is changed.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import NamedTuple

from mcpgreen.cli.clients.formats.spot import Format, Spot, Unfit
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import replacing, without_waiting
from mcpgreen.text.json_types import Json

# An entry without both is not ours; what we write always has the second.
OUR_WORDS = ("mcpgreen", "--project-root")

MAX_BYTES = 4 << 20
MAX_BACKUPS = 100
BACKUP = ".mcpgreen-backup"


class Target(NamedTuple):
    path: str
    format: Format
    spot: Spot


class Change(NamedTuple):
    """The change of a file that was made, or would be."""

    path: str  # without links
    before: str | None  # None: there was no file
    after: str | None
    backup: str | None = None

    @property
    def has_effect(self) -> bool:
        return self.before != self.after


Show = Callable[[Change], None]


def change_entry(target: Target, entry: Json | None, *, show: Show, is_dry: bool = False) -> Change:
    """Put in the entry, or take it out if it is None. If this raises Refused, the file is as it was."""
    file = ClientFile(target.path)
    if entry is None and file.read() is None:
        return Change(file.path, None, None)
    with nullcontext() if is_dry else file.locked():
        content = file.read()
        try:
            before = None if content is None else content.decode("utf-8")
            after = _without_entry(before, target) if entry is None else _with_entry(before or "", target, entry)
            new_content = None if after is None else after.encode("utf-8")
        except UnicodeDecodeError as error:
            raise Refused(target.path, f"it is not UTF-8, at byte {error.start}; the file was not changed") from None
        except UnicodeEncodeError:
            raise Refused(target.path, "a path or variable in it is not UTF-8; the file was not changed") from None
        except Unfit as error:
            raise Refused(target.path, f"{error}; the file was not changed") from None
        change = Change(file.path, before, after)
        if not change.has_effect:
            return change
        file.require_changeable()
        show(change)
        if is_dry:
            return change
        backup = None if before is None or after is None else file.back_up()
        file.replace(new_content)
        return change._replace(backup=backup)


def _with_entry(before: str, target: Target, entry: Json) -> str:
    """Raises Unfit."""
    format, spot = target.format, target.spot
    document = format.values(before, spot)
    old = spot.entry_in(document)
    for member in {"env", "envs", "environment"} & old.keys() if isinstance(old, dict) and _is_ours(old) else ():
        # What is not a setting, such as an API key, stays.
        given, there = entry.get(member, {}), old[member] if isinstance(old[member], dict) else {}
        kept = {name: there[name] for name in there if name not in given and not str(name).startswith("MCP")}
        if kept:
            entry = {**entry, member: {**given, **kept}}
    if spot.entry_in(document) == entry:
        return before
    after = format.put(before, spot, entry)
    _require_only_ours(document or format.values(spot.preamble, spot), after, target, entry)
    return after


def _is_ours(entry: object) -> bool:
    return any(word in json.dumps(entry, default=str) for word in OUR_WORDS)


def _without_entry(before: str | None, target: Target) -> str | None:
    """Return the text without the entry; None if only the frame of a new file is left. Raises Unfit."""
    format, spot = target.format, target.spot
    document = format.values(before or "", spot)
    entry = spot.entry_in(document)
    if before is None or entry is None:
        return before
    if not _is_ours(entry):
        raise Unfit(f"its entry {spot.name} does not belong to mcpgreen")
    after = format.removed(before, spot)
    _require_only_ours(document, after, target, None)
    return None if after == format.removed(format.put("", spot, entry), spot) else after


def _require_only_ours(document: Json, after: str, target: Target, entry: object) -> None:
    """Raise Unfit unless our entry is as it should be and all other values are as before."""
    spot = target.spot
    try:
        new = target.format.values(after, spot)
    except Unfit:
        new = {}
    # Compared as strings, because NaN does not equal itself, and the order counts as well.
    if str(spot.rest_of(new)) != str(spot.rest_of(document)) or spot.entry_in(new) != entry:
        word = "added" if entry else "removed"
        raise Unfit(f"{spot.name} cannot be {word} without changing other parts; edit the file by hand")


class Refused(ProjectError):
    """A file is left as it is. The text says why."""


class ClientFile:
    """A file of a client. `path` is without links; `content` is None if there was no file."""

    def __init__(self, named: str) -> None:
        self.named = named
        self.path = os.path.realpath(named)
        self.status: os.stat_result | None = None
        self.content: bytes | None = None

    def read(self) -> bytes | None:
        """Read and return the content. Raises Refused for a file that cannot be read or is too large."""
        try:
            with open(self.path, "rb", opener=without_waiting) as file:
                self.status = os.fstat(file.fileno())
                self.content = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Refused(self.named, f"it cannot be read: {error.strerror}") from None
        if len(self.content) > MAX_BYTES:
            raise Refused(self.named, f"it is larger than {MAX_BYTES >> 20} MiB")
        return self.content

    def require_changeable(self) -> None:
        if self.status is None:
            return
        # The mode counts as well, because root may write to everything.
        if not self.status.st_mode & 0o222 or not os.access(self.path, os.W_OK):
            raise Refused(self.named, "it is read-only; make it writable first (chmod u+w)")
        if self.status.st_nlink > 1:
            raise Refused(self.named, "it has a hard link, which would keep the old content")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the directory and lock it. A lock on the file would not survive its replacement."""
        directory = os.path.dirname(self.path)
        try:
            os.makedirs(directory, 0o700, exist_ok=True)
            descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            reason = f"its directory {directory} cannot be used: {error.strerror}; name another file with --file"
            raise Refused(self.named, reason) from None
        try:
            with suppress(OSError):  # without locks on this file system, `replace` detects other writers
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def back_up(self) -> str:
        """Copy the file into its directory, with the same mode, and return the name. An equal backup is used again."""
        assert self.content is not None
        for number in range(1, MAX_BACKUPS + 1):
            name = self.path + BACKUP + (f"-{number}" if number > 1 else "")
            if not os.path.lexists(name):
                self._write(name, self.content)
                return name
            with suppress(Refused):
                if not os.path.islink(name) and ClientFile(name).read() == self.content:
                    return name
        raise Refused(self.named, f"it already has {MAX_BACKUPS} backups; remove some of them")

    def replace(self, content: bytes | None) -> None:
        """Replace the content, or remove the file. Raises Refused if another program has changed it meanwhile."""
        if content is not None:
            self._write(self.path, content)
            return
        self._require_unchanged()
        try:
            os.unlink(self.path)
        except OSError as error:
            raise Refused(self.named, f"it cannot be removed: {error.strerror}") from None

    def _require_unchanged(self) -> None:
        if ClientFile(self.path).read() != self.content:
            raise Refused(self.named, "another program changed it in the meantime; try again")

    def _write(self, path: str, content: bytes) -> None:
        """Write a whole file with the mode, owner and attributes of the original."""
        mode = 0o600 if self.status is None else stat.S_IMODE(self.status.st_mode)
        try:
            with replacing(path, mode=mode) as file:
                self._copy_attributes(file.fileno())
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                self._require_unchanged()
        except OSError as error:
            reason = f"cannot write to its directory: {error.strerror}; name another file with --file"
            raise Refused(self.named, reason) from None

    def _copy_attributes(self, descriptor: int) -> None:
        if self.status is None:
            return
        now = os.fstat(descriptor)
        if (now.st_uid, now.st_gid) != (self.status.st_uid, self.status.st_gid):
            os.fchown(descriptor, self.status.st_uid, self.status.st_gid)
        with suppress(OSError):  # attributes that belong to the system, or that this file system lacks
            for name in os.listxattr(self.path) if hasattr(os, "listxattr") else ():
                os.setxattr(descriptor, name, os.getxattr(self.path, name))
