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


class OutputPlace:
    """The place of one run, if it needs one. It is given back when nobody holds what the script printed any more."""

    __slots__ = ("_places", "is_held")

    def __init__(self, places: OutputPlaces) -> None:
        self._places = places
        self.is_held = False

    def take(self) -> bool:
        """Whether it is held now."""
        if not self.is_held and self._places.free:
            self._places.free -= 1
            self.is_held = True
        return self.is_held

    def release(self) -> None:
        if self.is_held:
            self.is_held = False
            self._places.free += 1

    __del__ = release
