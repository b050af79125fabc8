"""What all kinds of items have in common: what an item is, and how those of a kind are read and told apart."""

from __future__ import annotations

from mcpgreen.errors import ProjectError
from mcpgreen.text.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Protocol, TypeVar

    from mcpgreen.catalog.tree_scan import Directory, Tree
    from mcpgreen.project.project import Project

    Found = TypeVar("Found")

    class Item(Protocol):
        """Something that is listed. `definition` is what goes on the wire, `registry_entry` all that is known."""

        @property
        def name(self) -> str: ...

        @property
        def definition(self) -> dict[str, Any]: ...

        @property
        def registry_entry(self) -> dict[str, Any]: ...


class Loss(str):
    """A warning about an item that is therefore not listed."""

    __slots__ = ()


class Discovery(NamedTuple):
    items: Sequence[Any]
    warnings: list[str]
    hints: list[str] = []  # of what may be meant as it is: for who asks why something is missing


def read_files(
    project: Project,
    tree: Tree,
    names_in: Callable[[Iterable[str]], Iterable[str]],
    read: Callable[[Project, Directory, str], tuple[Found | None, Iterable[str]]],
    *,
    what: str,
    warnings: list[str],
) -> Iterator[Found]:
    """The items of those files of each directory that stand for one; `read` also gives complaints about the file. A bad
    file costs one item and a warning."""
    for directory in tree.directories:
        for file_name in tree.pace.over(names_in(directory.files)):
            try:
                found, complaints = read(project, directory, file_name)
            except ProjectError as error:
                from mcpgreen.catalog.descriptions.blame import reason_with_place

                reason = reason_with_place(error)
                warnings.append(Loss(f"{project.shown(error.path)}: {reason}; {what} is left out"))
                continue
            warnings.extend(f"{project.shown(directory.path)}/{file_name}: {complaint}" for complaint in complaints)
            if found is not None:
                yield found


def distinct(
    found: Iterable[Found], key: str, claim: str, place: Callable[[Any], str] = lambda item: str(item.relative_path)
) -> tuple[list[Found], list[str]]:
    """The first of each key, by which clients tell items apart, and a warning for each of the others."""
    kept: dict[str, Found] = {}
    losses: list[str] = []
    for item in found:
        identity = getattr(item, key)
        first = kept.setdefault(identity, item)
        if first is not item:
            losses.append(Loss(f"{place(item)}: skipped, {place(first)} already {claim} {identity}"))
    return list(kept.values()), losses
