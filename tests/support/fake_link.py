"""A transport without a pipe: serve a project in this process, and act as its client.

    with serving("path/to/project") as server:
        client = FakeLink(server)
        client.initialize()
        result = client.result("tools/call", {"name": "hello"})

Several links of one server, or several streams of one session, can be used side by side. Everything else is real:
scripts run as processes, and greenlets run only while the test waits (`response`, `wait_for`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import gevent

from mcpgreen.engine.server import Server
from mcpgreen.links.session import Session, Stream
from mcpgreen.links.sink import MemorySink
from mcpgreen.project.project import open_project
from mcpgreen.protocol import admission, revisions
from mcpgreen.text.json_types import Json

Found = TypeVar("Found")
PATIENCE_SECS = 10.0


@contextmanager
def serving(project_root: str | os.PathLike[str], **settings: Any) -> Iterator[Server]:
    """Serve the project with these settings; the server is stopped at the end, and leaves nothing behind."""
    project, found, environ = open_project({"project_root": os.fspath(project_root)}, os.environ)
    server = Server(found.with_values(**settings), project, environ=environ)
    try:
        yield server
    finally:
        server.stop()


class FakeLink:
    """One stream as a client sees it, of its own session or of another link's. The options are those of `Stream`."""

    def __init__(self, server: Server, *, session: Session | None = None, **options: Any) -> None:
        self._server = server
        self.sink = MemorySink()
        self.link = server.connect(Stream(self.sink, **{"transport": "fake", **options}), session)

    @property
    def session(self) -> Session:
        return self.link.session

    def initialize(self, *, capabilities: Json | None = None, revision: str = revisions.LATEST_HANDSHAKE.name) -> Json:
        params = {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": {"name": "fake"}}
        answer = self.ask("initialize", params, id="initialize")
        self.send(method="notifications/initialized")
        return answer

    def send(self, **message: Any) -> None:
        """Send a message as it is, with the member that all have."""
        self.link.receive({"jsonrpc": "2.0", **message})

    def ask(self, method: str, params: Json | None = None, *, id: str | int) -> Json:
        """Send a request and wait for its answer."""
        self.send(id=id, method=method, params=params or {})
        return self.response(id)

    def ask_stateless(self, method: str, params: Json, *, id: str | int, capabilities: Json | None = None) -> Json:
        self.send_stateless(method, params, id=id, capabilities=capabilities)
        return self.response(id)

    def send_stateless(self, method: str, params: Json, *, id: str | int, capabilities: Json | None = None) -> None:
        meta = {
            admission.PROTOCOL_VERSION: revisions.STATELESS_NAMES[0],
            admission.CLIENT_CAPABILITIES: capabilities or {},
            admission.CLIENT_INFO: {"name": "fake", "version": "0"},
        }
        self.send(id=id, method=method, params={**params, "_meta": {**meta, **params.get("_meta", {})}})

    def response(self, id: str | int) -> Json:
        """Return the answer to this request, which is taken out."""
        found: Json = self.wait_for(lambda: next((each for each in self.sink.responses if each.get("id") == id), None))
        self.sink.responses.remove(found)
        return found

    def request(self) -> Json:
        """Return what the server asks next on this stream, which is taken out."""
        self.wait_for(lambda: self.sink.requests)
        request: Json = self.sink.requests.pop(0)
        return request

    def wait_for(self, look: Callable[[], Found | None]) -> Found:
        """Let the server go on until there is something to be seen."""
        with gevent.Timeout(PATIENCE_SECS, TimeoutError("the server does not behave as expected")):
            while not (found := look()):
                gevent.sleep(0.001)
            return found

    def close(self) -> None:
        self._server.disconnect(self.link)
