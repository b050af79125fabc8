"""Let viewers look into a server: describe it, take a sample of its figures while somebody looks, and offer all that on
a socket.

Rule: while nobody looks, nothing runs here. The server imports this when its first answers have been sent.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import gevent

from mcpgreen import journal
from mcpgreen.events.viewing import Views
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.engine.server import Server
    from mcpgreen.engine.spans import Spans
    from mcpgreen.events.offer import Offer

SAMPLE_SECS = 2.0
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


class Observation:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._services = services = server.services
        self._parts: list[Offer | Spans] = []
        self._sampling = gevent.Greenlet()
        self.views = Views(
            services.events, about=self.about, secrets_of=lambda call: services.confidential.shown_of(call)
        )
        services.events.when_wanted("sample", self._switch_sampling)

    def begin(self) -> None:
        """Offer the events on the server's socket, and make spans of calls, as far as the settings want that."""
        if self._services.settings.otel:
            from mcpgreen.engine.spans import Spans

            self._parts.append(spans := Spans(self._services))
            self._services.traceparent = spans.traceparent
        if self._services.settings.observe == "on":
            from mcpgreen.events.offer import Offer

            try:
                offer = Offer(self.views, self._services.environ)
            except OSError as error:
                journal.debug("mcpgreen watch cannot look into this server: %s", error.strerror)
            else:
                self._parts.append(offer)
                self._services.show_socket(offer.path)

    def close(self) -> None:
        for part in self._parts:
            part.close()
        self._sampling.kill(block=False)

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

    def _switch_sampling(self, is_wanted: bool) -> None:
        self._sampling.kill(block=False)
        if is_wanted:
            self._sampling = gevent.spawn(self._sample)

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
