"""What we have put into which file, so that it can be taken out as if it had never been there.

A record is a small file of ours in the user's state directory, for each file of a client. Without it an entry can be
taken out as well, but what stood in its place is not known.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from mcpgreen.cli.clients.table import home_of
from mcpgreen.cli.making.drafts import replacing
from mcpgreen.files.regular_files import without_waiting

MAX_BYTES = 1 << 20


class Record(NamedTuple):
    """`base`: the backup with the content before the first of `entries`; None if there was no file. `formers`: by name,
    the source of an entry that ours took the place of."""

    base: str | None = None
    base_digest: str = ""
    entries: tuple[tuple[str, Any], ...] = ()  # in the order in which they were put in
    formers: Mapping[str, str] = {}
    made_root: bool = False
    made_directories: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()  # that are of no use once the file is what it was at first

    def with_entry(self, name: str, entry: Any) -> Record:
        """In the place of an older one of that name."""
        return self._replace(entries=tuple({**dict(self.entries), name: entry}.items()))

    def without(self, name: str) -> Record:
        return self._replace(
            entries=tuple((each, old) for each, old in self.entries if each != name),
            formers={each: source for each, source in self.formers.items() if each != name},
        )


def digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


class Records:
    def __init__(self, environ: Mapping[str, str]) -> None:
        state = environ.get("XDG_STATE_HOME") or ""
        if not os.path.isabs(state):
            state = os.path.join(home_of(environ), ".local", "state")
        self._directory = os.path.join(state, "mcpgreen", "clients")

    def of(self, path: str) -> Record | None:
        """None if there is none that can be used."""
        try:
            with open(self._place(path), "rb", opener=without_waiting) as file:
                status = os.fstat(file.fileno())
                if status.st_uid != os.getuid() or status.st_mode & 0o022:
                    return None
                kept = json.loads(file.read(MAX_BYTES))
            if kept.pop("path") != path:
                return None
            kept["entries"] = tuple((str(name), entry) for name, entry in kept["entries"])
            for name in ("made_directories", "backups"):
                kept[name] = tuple(map(str, kept[name]))
            return Record(**kept)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def keep(self, path: str, record: Record) -> bool:
        """Whether it could be kept. One without entries is forgotten."""
        place = self._place(path)
        if not record.entries and not record.formers:
            with suppress(OSError):
                os.unlink(place)
            return True
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            with replacing(place, mode=0o600) as file:
                file.write(json.dumps({"path": path, **record._asdict()}).encode("ascii"))
        except OSError:
            return False
        return True

    def _place(self, path: str) -> str:
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
        return os.path.join(self._directory, f"{name}.json")
