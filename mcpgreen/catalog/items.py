"""What all kinds of items have in common, and what reading a kind yields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

# How reading says it. What it says of icons and annotations that it leaves out goes on after that.
_LOSS = re.compile(r" is left out$|: skipped, |^[^:]+: (?:the|an item of) [^:]+ is left out: ")


class Item(Protocol):
    """Something that is listed. `definition` is what goes on the wire, `registry_entry` all that is known."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> dict[str, Any]: ...

    @property
    def registry_entry(self) -> dict[str, Any]: ...


class Discovery(NamedTuple):
    items: Sequence[Any]
    warnings: list[str]
    hints: list[str] = []  # of what may be meant as it is: for who asks why something is missing


def tells_of_loss(warning: str) -> bool:
    """Whether the warning is about an item that is not listed."""
    return _LOSS.search(warning) is not None
