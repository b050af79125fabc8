"""Subscribe in either era and hear of changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.project import ProjectBuilder
from tests.support.wire import META_PREFIX, Wire, modern_meta

Json = dict[str, Any]

UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SID = META_PREFIX + "subscriptionId"

ERAS = ("handshake", "stateless")
# How changes are found. Without an interval nothing but file events can tell of them.
WAYS: dict[str, Json] = {
    "events": {"resources_poll_interval_secs": 0},
    "polling": {"watch_files": "poll", "resources_poll_interval_secs": 0.05},
    "both": {"resources_poll_interval_secs": 0.05},
}
ROUNDS_OF_QUIET = 3


class Ear:
    """A client that is subscribed to some files of resources/, and to a marker of its own."""

    def __init__(self, wire: Wire, project: ProjectBuilder, era: str, *uris: str) -> None:
        self.wire = wire
        self._marker = project.root / "resources" / "marker.txt"
        self._marker.write_text("0", encoding="utf-8")
        self._marks = 0
        self._era = era
        if era == "handshake":
            wire.handshake()
        self.subscribe(*uris, self._marker.as_uri())

    def subscribe(self, *uris: str) -> None:
        if self._era == "handshake":
            for uri in uris:
                self.wire.result("resources/subscribe", {"uri": uri})
        else:
            id = f"listen to {uris[0]}"
            assert listen(self.wire, [*uris], id)["notifications"]["resourceSubscriptions"] == [*uris]

    def told(self) -> list[str]:
        """What has been told of so far, the marker aside."""
        uris = [notice["params"]["uri"] for notice in self.wire.notices(UPDATED)]
        return [uri for uri in uris if uri != self._marker.as_uri()]

    def hear(self, uri: str) -> None:
        """The next time that this has changed."""
        self.wire.receive(lambda message: message.get("method") == UPDATED and message["params"]["uri"] == uri)

    def all_told(self) -> list[str]:
        """What has been told of when later changes are known as well: whatever was to be said has been said."""
        for _ in range(ROUNDS_OF_QUIET):
            self._marks += 1
            replace(self._marker, str(self._marks))
            self.hear(self._marker.as_uri())
        return self.told()


def listen(wire: Wire, uris: list[Any], id: Any = "listen-1", **filter: Any) -> Json:
    """Open a listen and give its acknowledgement."""
    wanted = {"resourceSubscriptions": uris, **filter}
    wire.start_request("subscriptions/listen", {"notifications": wanted, "_meta": modern_meta()}, id=id)
    params: Json = wire.receive(
        lambda message: message.get("method") == ACKNOWLEDGED and message["params"]["_meta"][SID] == id
    )["params"]
    return params


def replace(path: Path, text: str) -> None:
    """Another file under the same name, in one step."""
    aside = path.parent.parent / f".{path.name}.new"
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)
