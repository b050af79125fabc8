"""What the page can ask for: a row for each request, and the function that answers it.

Rule: everything that a request brings is checked here, and limited; what is wrong with it becomes a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import gevent

from mcpgreen.cli.workbench.apps import app_response
from mcpgreen.cli.workbench.catalog import Catalog
from mcpgreen.cli.workbench.door import Door, Rejected, guarded
from mcpgreen.cli.workbench.playing import Interaction, Wanted, compared
from mcpgreen.cli.workbench.saving import run_tool_line, save_test
from mcpgreen.cli.workbench.servers import OWN, follow, running_servers
from mcpgreen.cli.workbench.streams import EventStream
from mcpgreen.engine.server import Server
from mcpgreen.errors import McpgreenError
from mcpgreen.logs.secrets import HIDDEN
from mcpgreen.protocol.revisions import BY_NAME, NEWEST, REVISIONS
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.responses import JSON, NOT_FOUND
from mcpgreen.transports.http.wire.connection import Request, Response

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
INDEX = "index.html"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
MAX_INTERACTIONS = 32
MAX_EVENT_STREAMS = 16
MAX_ID_CHARS = 100
TOO_MANY = "429 Too Many Requests"


class Api:
    """The application behind all connections."""

    def __init__(self, server: Server, door: Door) -> None:
        self._server = server
        self._door = door
        self._catalog = Catalog(server, self._tell_of_change)
        self._interactions: dict[str, Interaction] = {}
        self._listeners: set[EventStream] = set()
        self._routes: dict[tuple[str, str], Callable[[Request], Response]] = {
            ("GET", "/api/project"): self._project,
            ("GET", "/api/catalog"): lambda request: Response("200 OK", [JSON], [self._catalog.current()]),
            ("GET", "/api/servers"): lambda request: _json(running_servers(server)),
            ("GET", "/api/events"): self._events,
            ("GET", "/api/app"): lambda request: app_response(server, _query(request, "uri")),
            ("POST", "/api/request"): self._request,
            ("POST", "/api/answer"): self._answer,
            ("POST", "/api/cancel"): self._cancel,
            ("POST", "/api/compare"): self._compare,
            ("POST", "/api/line"): self._line,
            ("POST", "/api/test"): self._test,
        }

    def close(self) -> None:
        self._catalog.close()
        for stream in self._listeners:
            stream.end()

    def __call__(self, request: Request) -> Response:
        try:
            response = self._door.admit(request) or self._admitted(request)
        except Rejected as rejected:
            response = _json({"error": str(rejected)}, rejected.status)
        except McpgreenError as error:
            response = _json({"error": str(error)}, "400 Bad Request")
        return guarded(response)

    def _admitted(self, request: Request) -> Response:
        route = self._routes.get((request.method, request.path))
        if route is not None:
            return route(request)
        if any(path == request.path for _, path in self._routes):
            raise Rejected("This path has another method.", "405 Method Not Allowed")
        files = _page_files() if request.method == "GET" else {}
        path = files.get(request.path.removeprefix("/") or INDEX)
        if path is None:
            raise Rejected("There is nothing here.", NOT_FOUND)
        with open(path, "rb") as file:
            content_type = TYPES[os.path.splitext(path)[1]]
            return Response("200 OK", [("Content-Type", f"{content_type}; charset=utf-8")], [file.read()])

    def _project(self, request: Request) -> Response:
        services = self._server.services
        about = {name: services.identity.info[name] for name in ("name", "version")}
        return _json({**about, "root": services.project.root, "revisions": [each.name for each in REVISIONS]})

    def _events(self, request: Request) -> Response:
        if len(self._listeners) >= MAX_EVENT_STREAMS:
            raise Rejected(f"There are {MAX_EVENT_STREAMS} streams of events already; close another page.", TOO_MANY)
        stream = EventStream()
        end = follow(self._server, _query(request, "server") or OWN, stream)

        def leave() -> None:
            end()
            self._listeners.discard(stream)

        self._listeners.add(stream)
        stream.put({"digest": self._catalog.digest}, "catalog")  # it may have missed a change
        return stream.response(request.connection, leave)

    def _tell_of_change(self, digest: str) -> None:
        for stream in self._listeners:
            stream.put({"digest": digest}, "catalog")

    def _request(self, request: Request) -> Response:
        body = _body(request)
        revision = BY_NAME.get(_member(body, "revision", str, NEWEST.name))
        if revision is None:
            raise Rejected(f"revision must be one of {', '.join(BY_NAME)}.")
        client_id = _member(body, "client", str)
        if not 0 < len(client_id) <= MAX_ID_CHARS:
            raise Rejected(f"client must have up to {MAX_ID_CHARS} characters.")
        if client_id in self._interactions:
            raise Rejected("This client has a request already.", "409 Conflict")
        if len(self._interactions) >= MAX_INTERACTIONS:
            raise Rejected(f"{MAX_INTERACTIONS} requests are being served already; cancel another one.", TOO_MANY)
        wanted = Wanted(
            _member(body, "method", str),
            _params(body),
            revision,
            _member(body, "capabilities", str, "all") == "all",
            _member(body, "task", bool, False),
        )
        stream = EventStream()
        self._interactions[client_id] = Interaction(self._server, wanted, stream)
        return stream.response(request.connection, partial(self._end, client_id))

    def _end(self, client_id: str) -> None:
        self._interactions.pop(client_id).end()

    def _answer(self, request: Request) -> Response:
        body = _body(request)
        kind = "error" if "error" in body else "result"
        answer: Json = {kind: _member(body, kind, dict)}
        if not self._interaction(body).answer(_member(body, "key", str), answer):
            raise Rejected("This question is not open.", NOT_FOUND)
        return _json({})

    def _cancel(self, request: Request) -> Response:
        self._interaction(_body(request)).cancel()
        return _json({})

    def _interaction(self, body: Json) -> Interaction:
        found = self._interactions.get(_member(body, "client", str))
        if found is None:
            raise Rejected("This client has no request.", NOT_FOUND)
        return found

    def _compare(self, request: Request) -> Response:
        body = _body(request)
        request.connection.on_hangup(partial(gevent.getcurrent().kill, block=False))
        return _json(compared(self._server, _member(body, "method", str), _params(body)))

    def _line(self, request: Request) -> Response:
        body = _body(request)
        params = {"name": _member(body, "name", str), "arguments": _member(body, "arguments", dict, {})}
        line = run_tool_line(self._server.services.project.root, **params)
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return _json({"run_tool": line, "json_rpc": rpc})

    def _test(self, request: Request) -> Response:
        body = _body(request)
        name, arguments = _member(body, "name", str), _member(body, "arguments", dict, {})
        services, answer = self._server.services, _member(body, "answer", dict)
        secrets = services.confidential.of("tools/call", {"name": name, "arguments": arguments})
        if HIDDEN.encode() in jsontext.dumps(secrets.copy([arguments, answer])):
            raise Rejected("This call has a secret, which does not belong into a file: save a call without one.")
        return _json(
            {"file": save_test(services.project.root, name, arguments, answer, _member(body, "file", str, ""))}
        )


def _page_files() -> dict[str, str]:
    """Return the files of the page by their paths: nothing else can be named, however a path is written."""
    found = {}
    for directory, _, names in os.walk(PAGE):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.splitext(name)[1] in TYPES:
                found[os.path.relpath(path, PAGE)] = path
    return found


def _body(request: Request) -> Json:
    """Return the JSON object that a request brings. Raises Rejected, and BadRequest for what is too large."""
    if request.fields.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Rejected("The body must be application/json.", "415 Unsupported Media Type")
    try:
        body = jsontext.loads(request.body.read())
    except ValueError as error:
        raise Rejected(f"The body is not valid JSON: {error}.") from error
    if type(body) is not dict:
        raise Rejected("The body must be a JSON object.")
    return body


def _member(body: Json, name: str, kind: type, default: Any = None) -> Any:
    value = body.get(name)
    if value is None and default is not None:
        return default
    if type(value) is not kind:
        raise Rejected(f"{name} must be {'an object' if kind is dict else f'a {kind.__name__}'}.")
    return value


def _params(body: Json) -> Json:
    params: Json = _member(body, "params", dict, {})
    _member(params, "_meta", dict, {})
    return params


def _query(request: Request, name: str) -> str:
    return parse_qs(request.query).get(name, [""])[0]


def _json(value: object, status: str = "200 OK") -> Response:
    return Response(status, [JSON], [jsontext.dumps(value)])
