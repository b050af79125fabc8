"""What all kinds of items have in common, and what reading a kind yields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


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
