"""What all kinds of items have in common: how their files are read, and how duplicates are found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.tree_scan import Directory, Loss, Tree, stamp_of
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import file_uri, path_of, scheme_of

Found = TypeVar("Found")


class Item(Protocol):
    """Something that is listed. Clients get its `definition`; `registry_entry` has everything that is known."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> Json: ...

    @property
    def registry_entry(self) -> Json: ...


class Discovery(NamedTuple):
    items: Sequence[Any]
    warnings: list[str]
    hints: list[str] = []  # about files that may be left out on purpose; `validate` shows them


class ItemFile(NamedTuple):
    """A file that may be an item, and warnings and hints about it. `origin` is its description, or the file itself."""

    project: Project
    directory: Directory
    name: str
    origin: metadata.Origin
    warnings: list[str]
    hints: list[str]

    @property
    def path(self) -> str:
        return f"{self.directory.path}/{self.name}"

    @property
    def shown(self) -> str:
        return self.project.shown(self.path)

    @property
    def is_description(self) -> bool:
        """The file describes an item that has no other file."""
        return metadata.is_description(self.name)

    @property
    def has_description(self) -> bool:
        return metadata.is_description(self.origin.path)

    def lose(self, error: ProjectError, what: str) -> None:
        """Note that an item of this file is left out."""
        from mcpgreen.catalog.descriptions.in_script import reason_with_place  # most projects have no faults

        loss = Loss(f"{self.project.shown(error.path)}: {reason_with_place(error)}; {what} is left out")
        loss.hides = _hidden(self, error.reason)
        self.warnings.append(loss)


def read_files(
    project: Project,
    tree: Tree,
    names_in: Callable[[Iterable[str]], Iterable[str]],
    read: Callable[[ItemFile], object],
    what: str,
) -> Discovery:
    """Read the items of a tree. `names_in` chooses the files of a directory that are items; `read` returns the item of
    a file, several as a list, or None. A bad file costs one item and a warning."""
    items: list[Any] = []
    warnings: list[str] = []
    hints: list[str] = []
    for directory in tree.directories:
        for file_name in tree.pace.over(names_in(directory.files)):
            path = f"{directory.path}/{file_name}"
            meta_files = metadata.meta_files_for(file_name, directory.files)
            stamp = _stamp(tree, directory, file_name, meta_files)
            earlier_stamp, found = tree.earlier.get(path, (None, None))
            if stamp is None or stamp != earlier_stamp:
                source = file_name if metadata.is_description(file_name) or not meta_files else meta_files[0]
                origin = metadata.Origin(f"{directory.path}/{source}", project.private, [])
                found = _read_item(ItemFile(project, directory, file_name, origin, [], []), meta_files, read, what)
            if stamp is not None and not _has_icons(found):
                tree.memory[path] = stamp, found
            items += found.items
            warnings += found.warnings
            hints += found.hints
    return Discovery(items, warnings, hints)


def _read_item(file: ItemFile, meta_files: Sequence[str], read: Callable[[ItemFile], object], what: str) -> Discovery:
    try:
        _require_one_description(file.directory, file.name, meta_files)
        found = read(file)
    except ProjectError as error:
        file.lose(error, what)
        return Discovery([], file.warnings, file.hints)
    complaints = [f"{file.shown}: {complaint}" for complaint in file.origin.complaints]
    items = found if isinstance(found, list) else [] if found is None else [found]
    return Discovery(items, [*file.warnings, *complaints], file.hints)


def _hidden(file: ItemFile, reason: str) -> list[str]:
    """Return the URIs that must not be read because the item that is left out may need scopes."""
    beside = (f"{file.directory.path}/{name}" for name in metadata.meta_files_for(file.name, file.directory.files))
    if "scope" not in reason and not any(map(_may_have_scopes, {*beside, file.origin.path})):
        return []
    with suppress(ProjectError):
        read = metadata.read_meta_file if file.has_description else metadata.read_inline_of
        return [file_uri(file.path), *uris_in(read(file.origin.path) or {})]
    return [file_uri(file.path)]


def _may_have_scopes(path: str) -> bool:
    try:
        return metadata.mentions_scopes(metadata.read_start(path, metadata.MAX_META_BYTES))
    except OSError:
        return True


def uris_in(fields: Json) -> list[str]:
    """Return the URI of a described resource, or what the URIs of a template begin with."""
    given = (fields.get("uri"), fields.get("uriTemplate"))
    return [uri.partition("{")[0] for uri in given if uri and isinstance(uri, str)]


def comparable(uri: str, root: str) -> str:
    """Return a form that is the same for all ways to write a URI, and for all links to a file."""
    from urllib.parse import unquote  # takes long to import, and few items hide something

    if scheme_of(uri) != "file":
        return unquote(uri).lower()
    try:
        return "file:" + os.path.realpath(path_of(uri, base=root))
    except ValueError:
        return "file:"


def _has_icons(found: Discovery) -> bool:
    """Tell whether an item has icons, and so depends on other files as well: an icon may be anywhere."""
    return any("icons" in item.definition for item in found.items) or any("icon" in each for each in found.warnings)


def _require_one_description(directory: Directory, file_name: str, meta_files: Sequence[str]) -> None:
    """Raise ProjectError if scopes may be lost: the description cannot be read, or one that is overruled has scopes."""
    for name in metadata.meta_files_for(file_name, directory.unusable):
        raise ProjectError(
            f"{directory.path}/{name}", "is not a regular file, so the description and its scopes cannot be read"
        )
    for name in meta_files[1:]:
        if _may_have_scopes(f"{directory.path}/{name}"):
            reason = f"has scopes that would be ignored, because {meta_files[0]} is used instead"
            raise ProjectError(f"{directory.path}/{name}", reason)


def _stamp(tree: Tree, directory: Directory, file_name: str, meta_files: Sequence[str]) -> tuple[object, ...] | None:
    """Return a value that changes when the file or its description changes; None if it must be read each time. A file
    that was just written may be written again without a new time, and a README depends on its neighbours."""
    if metadata.stem_of(file_name).lower() == "readme":
        return None
    files = [directory.files[name] for name in (file_name, *meta_files)]
    if any(status.st_ctime_ns > tree.settled_ns for status in files):
        return None
    return tuple(meta_files), tuple(metadata.meta_files_for(file_name, directory.unusable)), *map(stamp_of, files)


def leave_out_readme(file: ItemFile, kind: str) -> bool:
    """Return True for a README without a description of its own next to a described file, and add a hint about it,
    unless it is in the folder of one item, where `scaffold` puts it."""
    if metadata.stem_of(file.name).lower() != "readme" or file.has_description:
        return False
    stems = {metadata.described_stem(name) for name in file.directory.files if metadata.is_description(name)}
    if not stems or metadata.read_inline_of(file.path, is_prose=True) is not None:
        return False
    if file.directory.path.rpartition("/")[2] not in stems:
        reason = f"not a {kind}: a README without a description, next to a file that has one"
        file.hints.append(f"{file.shown}: {reason}")
    return True


def distinct(
    found: Iterable[Found], key: str, claim: str, place: Callable[[Any], str] = lambda item: str(item.relative_path)
) -> tuple[list[Found], list[str]]:
    """Return the first item of each `key`, which identifies it to clients, and a warning for each of the others."""
    kept: dict[str, Found] = {}
    losses: list[str] = []
    for item in found:
        identity = getattr(item, key)
        first = kept.setdefault(identity, item)
        if first is not item:
            losses.append(Loss(f"{place(item)}: skipped because {place(first)} already {claim} {identity}"))
    return list(kept.values()), losses
