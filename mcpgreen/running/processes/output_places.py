"""How many scripts may say a lot at the same time.

What scripts print is held in memory until it is answered: ten megabytes each, by sixteen of them, and several times as
much while it is put into words for the client. So beyond a megabyte a script needs one of a few places; without one
its pipe is not read, and it waits.
"""

from __future__ import annotations

PLACES = 3
SMALL_BYTES = 1 << 20  # which need no place
RETRY_SECS = 0.02


class OutputPlaces:
    """The places of one server."""

    def __init__(self) -> None:
        self.free = PLACES

    def new(self) -> OutputPlace:
        return OutputPlace(self)


class OutputPlace:
    """The place of one run, if it needs one. It is given back when nobody holds what the script printed any more."""

    __slots__ = ("_is_held", "_places")

    def __init__(self, places: OutputPlaces) -> None:
        self._places = places
        self._is_held = False

    @property
    def is_held(self) -> bool:
        return self._is_held

    def take(self) -> bool:
        """Whether it is held now."""
        if not self._is_held and self._places.free:
            self._places.free -= 1
            self._is_held = True
        return self._is_held

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._places.free += 1

    def __del__(self) -> None:
        self.release()
