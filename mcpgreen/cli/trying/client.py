"""A client in the same process as its server, for commands that try a project."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import gevent

from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.trying.person import CAPABILITIES, Answer, unknown
from mcpgreen.engine.server import Server
from mcpgreen.errors import McpgreenError
from mcpgreen.links.sink import MemorySink
from mcpgreen.project.project import Project, require_tmp_root
from mcpgreen.protocol.revisions import LATEST_HANDSHAKE
from mcpgreen.settings.settings import Settings
from mcpgreen.text.json_types import Json


class Refused(McpgreenError):
    """The server answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error["message"]))
        self.error = error


class LocalClient:
    """One session with one request at a time. `answer` answers what a script asks meanwhile: it takes a method and its
    params, and returns `{"result": ...}` or `{"error": ...}`. Without it, the client has no capabilities."""

    def __init__(
        self, server: Server, *, answer: Answer | None = None, on_notification: Callable[[Json], object] | None = None
    ) -> None:
        self._answer = answer
        self._sink = MemorySink(on_request=partial(gevent.spawn, self._answer_script), on_notification=on_notification)
        self._link = server.connect(self._sink, transport="stdio")
        self._last_id = 0
        params = {"protocolVersion": LATEST_HANDSHAKE.name, "capabilities": CAPABILITIES if answer else {}}
        self.ask("initialize", {**params, "clientInfo": {"name": "mcpgreen", "version": "1"}})
        self._link.receive({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Json) -> Json:
        """Send a request and return its result. Raises Refused."""
        self._last_id += 1
        self._link.receive({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        self._link.stream.idle.wait()
        answer = next(message for message in self._sink.responses if message.get("id") == self._last_id)
        self._sink.forget()
        if "error" in answer:
            raise Refused(answer["error"])
        result: Json = answer["result"]
        return result

    def all_of(self, method: str, member: str) -> list[Json]:
        """Return all items of a list, from all its pages."""
        items: list[Json] = []
        params: Json = {}
        while True:
            page = self.ask(method, params)
            items += page[member]
            if not page.get("nextCursor"):
                return items
            params = {"cursor": page["nextCursor"]}

    def _answer_script(self, request: Json) -> None:
        method = request["method"]
        answer = self._answer(method, request.get("params", {})) if self._answer else unknown(method)
        self._link.receive({"jsonrpc": "2.0", "id": request["id"], **answer})


@contextmanager
def serving(
    options: Options,
    *,
    environ: Mapping[str, str] = os.environ,
    adapt: Callable[[Settings], Settings] = lambda settings: settings,
) -> Iterator[tuple[Server, Project]]:
    """Run a server for the project that a command line names."""
    project, settings, environ = open_named(options, environ, logs_notes=True)
    require_tmp_root(project, settings)
    # Interpreters that are started ahead do not pay for a few calls.
    server = Server(adapt(settings).with_values(warm_python=False), project, environ=environ)
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)  # Ctrl-C needs no traceback
    try:
        yield server, project
    finally:
        server.stop()
