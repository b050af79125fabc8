"""Let viewers look into a server: describe it, take a sample of its figures while somebody looks, and offer all that on
a socket.

Rule: while nobody looks, nothing runs here. The server imports this when its first answers have been sent.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import gevent

from mcpgreen import journal
from mcpgreen.events.viewing import Views
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.engine.server import Server
    from mcpgreen.engine.spans import Spans
    from mcpgreen.events.offer import Offer
    from mcpgreen.logs.secrets import Secrets

SAMPLE_SECS = 2.0
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


class Observation:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._services = server.services
        self._offer: Offer | None = None
        self._spans: Spans | None = None
        self._sampling: gevent.Greenlet | None = None
        self.views = Views(self._services.events, about=self.about, secrets_of=self._secrets_of)
        self._services.events.when_wanted("sample", self._switch_sampling)

    def trace(self) -> None:
        """Make spans of calls."""
        from mcpgreen.engine.spans import Spans  # few servers need it

        self._spans = Spans(self._services)
        self._services.traceparent = self._spans.traceparent

    def offer(self) -> None:
        """Offer the events on the server's socket."""
        from mcpgreen.events.offer import Offer

        try:
            self._offer = Offer(self.views, self._services.environ)
        except OSError as error:
            journal.debug("mcpgreen watch cannot look into this server: %s", error.strerror)

    def close(self) -> None:
        for part in (self._spans, self._offer):
            if part is not None:
                part.close()
        self._switch_sampling(is_wanted=False)

    def about(self) -> Json:
        """Describe the server, as the first event of each viewer does."""
        services, info = self._services, self._services.identity.info
        return {
            "pid": os.getpid(),
            "project": services.project.root,
            "name": info["name"],
            "version": info["version"],
            "transport": self._server.transport,
            "started_at": round(services.started_at, 3),
            "calls": self.views.calls,
            "failures": self.views.failures,
            "running": self._server.load.running,
            "client": services.client.get("name"),
        }

    def _secrets_of(self, call: Any) -> Secrets:
        return self._services.confidential.of_call(call)

    def _switch_sampling(self, is_wanted: bool) -> None:
        if self._sampling is not None:
            self._sampling.kill(block=False)
        self._sampling = gevent.spawn(self._sample) if is_wanted else None

    def _sample(self) -> None:
        while True:
            load = self._server.load
            told = {"running": load.running, "waiting": load.waiting, "links": load.links, "rss_kb": _rss_kb()}
            self._services.events.tell("sample", None, told)
            gevent.sleep(SAMPLE_SECS)


def _rss_kb() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE_KB
    except OSError:  # not Linux
        return 0
