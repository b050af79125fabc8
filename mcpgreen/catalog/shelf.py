"""What the catalog remembers of one source, and what one look at it found."""

from __future__ import annotations

from mcpgreen.text.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcpgreen.catalog.snapshot import Snapshot
    from mcpgreen.catalog.tree_scan import Tree


class Look(NamedTuple):
    """What one refresh found. Without `warnings` the files are as they were; `texts` are registry files to write."""

    tree: Tree
    snapshots: dict[str, Snapshot]
    warnings: list[str] | None
    texts: dict[str, list[bytes]]
    left_out: dict[str, int]  # how many items, by kind
    is_registered: bool = False  # at least in part


class Shelf:
    """What the catalog remembers of one source."""

    def __init__(self) -> None:
        self.snapshots: dict[str, Snapshot] = {}
        self.left_out: dict[str, int] = {}
        self.fingerprint: tuple[Any, ...] | None = None
        self.age_ns = 0  # how old the youngest file was
        self.is_registered = False  # at least in part
        self.directories: list[str] = []
        self.checked_at = 0.0
        self.looks = 0  # how many were begun
        self.began_at = 0.0  # the last of them that counted
        self.busy_secs = 0.0  # how long it took
        self.is_stale = False
        self.times_stale = 0  # how often that was said
        self.is_watched = False
        self.failure: str | None = None
        self.refusal: str | None = None  # why the registration cannot be used
        self.has_refused = False  # somebody has been told so
        self.failures_in_a_row = 0
        self.retry_at: float | None = None
        self.told: set[str] = set()
        self.crowded: set[str] = set()
        self.is_unwritable = False
        self.files_due: set[str] = set()  # the kinds whose files are to be written with the next look
