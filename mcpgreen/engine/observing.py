"""Let viewers look into a server: describe it, look at what grows while somebody looks, and offer all that on a socket.

Rule: while nobody looks, nothing runs here. The server imports this when its first answers have been sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gevent

from mcpgreen import journal
from mcpgreen.events.viewing import Views
from mcpgreen.features.services import Services
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.engine.server import Load
    from mcpgreen.engine.spans import Spans
    from mcpgreen.events.offer import Offer
    from mcpgreen.logs.secrets import Secrets

LOOK_SECS = 0.5  # at what running scripts have printed
LOOKS_PER_SAMPLE = 4
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


class Observation:
    """`transport` is how its clients reach the server. `load` and `links` say how busy it is."""

    def __init__(
        self, services: Services, *, transport: str, load: Callable[[], Load], links: Callable[[], int]
    ) -> None:
        self._transport = transport
        self._services = services
        self._load = load
        self._links = links
        self._offer: Offer | None = None
        self._spans: Spans | None = None
        self._sampling: gevent.Greenlet | None = None
        self.views = Views(services.events, about=self.about, secrets_of=self._secrets_of)
        self.views.on_viewed = self._on_viewed

    def trace(self) -> None:
        """Make spans of calls."""
        from mcpgreen.engine.spans import Spans  # few servers need it

        self._spans = Spans(self._services)
        self._services.traceparent = self._spans.traceparent

    def close(self) -> None:
        if self._spans is not None:
            self._spans.close()
            self._spans = None
        if self._offer is not None:
            self._offer.close()
            self._offer = None
        self._on_viewed(is_viewed=False)

    def offer(self) -> None:
        """Offer the events on the server's socket."""
        from mcpgreen.events.offer import Offer

        try:
            self._offer = Offer(self.views, self._services.environ)
        except OSError as error:
            journal.debug("mcpgreen watch cannot look into this server: %s", error)

    def _secrets_of(self, call: Any) -> Secrets:
        return self._services.confidential.of_call(call)

    def about(self) -> Json:
        """Describe the server, as the first event of each viewer does."""
        services, info = self._services, self._services.identity.info
        client = services.client
        return {
            "pid": os.getpid(),
            "project": services.project.root,
            "name": info["name"],
            "version": info["version"],
            "transport": self._transport,
            "started_at": round(self._services.started_at, 3),
            "calls": self.views.calls,
            "failures": self.views.failures,
            "running": self._load().running,
            "client": client.get("name") if isinstance(client, dict) else None,
        }

    def _on_viewed(self, is_viewed: bool) -> None:
        if self._sampling is not None:
            self._sampling.kill(block=False)
            self._sampling = None
        if is_viewed:
            self._sampling = gevent.spawn(self._sample)

    def _sample(self) -> None:
        looks = 0
        while True:
            if looks % LOOKS_PER_SAMPLE == 0:
                load = self._load()
                told = {"running": load.running, "waiting": load.waiting, "links": self._links()}
                self._services.events.tell("sample", None, {"rss_kb": self._rss_kb(), **told})
            looks += 1
            gevent.sleep(LOOK_SECS)
            for witness in list(self._services.witnesses):
                witness.tell_output()

    def _rss_kb(self) -> int:
        """Return the memory of the server and of the processes that it has started for itself."""
        helpers = self._services.runner.helpers if "runner" in self._services.__dict__ else ()
        pages = 0
        for pid in (os.getpid(), *helpers):
            try:
                with open(f"/proc/{pid}/statm", "rb") as file:
                    pages += int(file.read().split()[1])
            except (OSError, ValueError, IndexError):
                continue  # it has ended, or this is not Linux
        return pages * PAGE_KB
