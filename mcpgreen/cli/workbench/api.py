"""What the page can ask for: a row for each request, and the function that answers it.

Rule: everything that a request brings is checked here, and limited; what is wrong with it becomes a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import count
from urllib.parse import parse_qs

import gevent

from mcpgreen.catalog.apps.resources import MIME_TYPE
from mcpgreen.cli.testing.files import save_test
from mcpgreen.cli.trying.local_client import LocalClient
from mcpgreen.cli.workbench.catalog import Catalog
from mcpgreen.cli.workbench.door import POLICY, Door, Rejected, app_policy, guarded
from mcpgreen.cli.workbench.playing import WITH_UI, Interaction
from mcpgreen.cli.workbench.streams import OWN, EventStream, follow, running_servers
from mcpgreen.engine.server import Server
from mcpgreen.errors import McpgreenError
from mcpgreen.logs.secrets import HIDDEN
from mcpgreen.protocol.revisions import BY_NAME
from mcpgreen.protocol.schemas.validator import compile_schema
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.responses import BAD, JSON, NOT_FOUND
from mcpgreen.transports.http.wire.connection import Request, Response

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
INDEX = "index.html"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
CANCEL = "/api/cancel"
TEXT, NUMBER, OBJECT, FLAG = ({"type": each} for each in ("string", "integer", "object", "boolean"))
PARAMS = {**OBJECT, "properties": {"_meta": OBJECT}}
REVISION = {"enum": [*BY_NAME]}
BODIES: dict[str, Json] = {  # the members of what the page sends
    "/api/request": {"method": TEXT, "params": PARAMS, "revision": REVISION, "capabilities": TEXT, "task": FLAG},
    "/api/answer": {"id": NUMBER, "key": NUMBER, "answer": OBJECT},
    CANCEL: {"id": NUMBER},
    "/api/test": {"tool": TEXT, "arguments": OBJECT, "result": OBJECT},
}


class Api:
    """The application behind all connections. Their number limits that of streams and interactions, too."""

    def __init__(self, server: Server, door: Door) -> None:
        self._server = server
        self._door = door
        self._catalog = Catalog(server)
        self._interactions: dict[int, Interaction] = {}
        self._next_id = count(1).__next__
        environ = server.services.environ
        self._routes: dict[tuple[str, str], Callable[[Request], Response]] = {
            ("GET", "/api/catalog"): lambda request: Response("200 OK", [JSON], [self._catalog.current()]),
            ("GET", "/api/servers"): lambda request: _json(running_servers(environ)),
            ("GET", "/api/events"): self._events,
            ("GET", "/api/app"): self._app,
            ("POST", "/api/request"): self._request,
            ("POST", "/api/answer"): self._answer,
            ("POST", CANCEL): self._answer,
            ("POST", "/api/test"): self._test,
        }
        for name in os.listdir(PAGE):  # nothing else can be named, however a path is written
            if os.path.splitext(name)[1] in TYPES:
                self._routes["GET", "/" if name == INDEX else f"/{name}"] = partial(_page_file, name)

        self.close = self._catalog.close

    def __call__(self, request: Request) -> Response:
        try:
            response = self._door.admit(request)
            if response is None:
                response = self._routes.get((request.method, request.path), _nothing)(request)
        except McpgreenError as error:
            response = _json({"error": str(error)}, error.status if isinstance(error, Rejected) else BAD)
        return guarded(response)

    def _events(self, request: Request) -> Response:
        """Tell of what a server does, and of each change of the catalog."""
        stream = EventStream()
        stream.put({}, "catalog")  # the page may have missed a change
        following = follow(_query(request, "server") or OWN, stream, self._server.services.environ)
        self._catalog.listeners.add(stream)
        return stream.response(request.connection, partial(self._leave, stream, following))

    def _leave(self, stream: EventStream, following: gevent.Greenlet) -> None:
        following.kill(block=False)
        self._catalog.listeners.discard(stream)

    def _app(self, request: Request) -> Response:
        """Return an MCP App, for a frame without an origin."""
        with closing(LocalClient(self._server, capabilities=WITH_UI)) as client:
            (content,) = client.ask("resources/read", {"uri": _query(request, "uri")})["contents"]
        if content.get("mimeType") != MIME_TYPE or "text" not in content:
            raise Rejected("This is not an MCP App.", NOT_FOUND)
        policy = app_policy(content.get("_meta", {}).get("ui", {}).get("csp", {}))
        return _file(".html", content["text"].encode("utf-8", "replace"), (POLICY, policy))

    def _request(self, request: Request) -> Response:
        """Begin an interaction. Its first event names it, for `_answer`."""
        body, stream, number = _body(request), EventStream(), self._next_id()
        stream.put({"type": "begun", "id": number})
        self._interactions[number] = Interaction(self._server, stream, body)
        return stream.response(request.connection, lambda: self._interactions.pop(number).end())

    def _answer(self, request: Request) -> Response:
        """Answer a question, or cancel all."""
        body = _body(request)
        interaction = self._interactions.get(body["id"])
        if interaction is None:
            raise Rejected("This request is over.", NOT_FOUND)
        if request.path == CANCEL:
            interaction.cancel()
        elif not interaction.answer(body["key"], body["answer"]):
            raise Rejected("This question is not open.", NOT_FOUND)
        return _json({})

    def _test(self, request: Request) -> Response:
        body, services = _body(request), self._server.services
        secrets = services.confidential.of("tools/call", {"name": body["tool"], "arguments": body["arguments"]})
        if HIDDEN.encode() in jsontext.dumps(secrets.copy([body["arguments"], body["result"]])):
            raise Rejected("This call has a secret, which does not belong into a file: save a call without one.")
        return _json({"file": save_test(services.project.root, **body)})


def _nothing(request: Request) -> Response:
    raise Rejected("There is nothing here.", NOT_FOUND)


def _page_file(name: str, request: Request) -> Response:
    with open(os.path.join(PAGE, name), "rb") as file:
        return _file(os.path.splitext(name)[1], file.read())


def _file(suffix: str, content: bytes, *headers: tuple[str, str]) -> Response:
    return Response("200 OK", [("Content-Type", f"{TYPES[suffix]}; charset=utf-8"), *headers], [content])


def _body(request: Request) -> Json:
    """Return what a request brings, in the shape of its row. Raises Rejected, and BadRequest for what is too large."""
    if request.fields.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Rejected("The body must be application/json.", "415 Unsupported Media Type")
    try:
        body = jsontext.loads(request.body.read())
    except ValueError as error:
        raise Rejected(f"The body is not valid JSON: {error}.") from error
    shape = BODIES[request.path]
    if problems := compile_schema({"type": "object", "properties": shape, "required": [*shape]}).problems(body):
        raise Rejected(f"{'; '.join(problems)}.")
    wanted: Json = {name: body[name] for name in shape}
    return wanted


def _query(request: Request, name: str) -> str:
    return parse_qs(request.query).get(name, [""])[0]


def _json(value: object, status: str = "200 OK") -> Response:
    return Response(status, [JSON], [jsontext.dumps(value)])
