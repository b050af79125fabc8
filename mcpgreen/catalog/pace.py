"""Let others have a turn while something long is done, and know how long it took without them.

The catalog itself knows no greenlets: whoever has some says what a turn is.

Rule: in a step everything may change that others can change. Work on what nobody else has yet, and publish it last.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    Thing = TypeVar("Thing")

STRETCH_SECS = 0.005


class Pace:
    """Call `step` after every little bit of work. Without a `turn` nobody is waited for."""

    __slots__ = ("_began_at", "_busy_secs", "_turn")

    def __init__(self, turn: Callable[[], object] | None = None) -> None:
        self._turn = turn
        self._busy_secs = 0.0
        self._began_at = time.monotonic()

    @property
    def busy_secs(self) -> float:
        """How long the work has taken, without the turns of others."""
        return self._busy_secs + time.monotonic() - self._began_at

    def step(self) -> None:
        if self._turn is None:
            return
        stretch_secs = time.monotonic() - self._began_at
        if stretch_secs >= STRETCH_SECS:
            self._busy_secs += stretch_secs
            self._turn()
            self._began_at = time.monotonic()

    def over(self, things: Iterable[Thing]) -> Iterator[Thing]:
        """The things, with a step after each."""
        for thing in things:
            yield thing
            self.step()

    def slices(self, things: Sequence[Thing], size: int = 200) -> Iterator[Sequence[Thing]]:
        """The things, some at a time, with a step in between."""
        return self.over(things[start : start + size] for start in range(0, len(things), size))


UNPACED = Pace()
