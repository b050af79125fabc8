"""Who may use the workbench, and what a browser may do with its answers and with MCP Apps.

Whoever gets in can run the project's tools. So the URL has a token that works once and becomes a cookie, and each
request needs that cookie, our name in `Host` (a page whose own name leads here would have another one: DNS rebinding),
and no other page in `Origin`. Other users of the machine may see the URL in the list of processes, and get the cookie
if the browser visits a server of theirs, on another port. So where the system tells whose connection it is (Linux),
those of other users are closed at once.

Rules: a request that is not admitted learns nothing, not even whether a path exists. An MCP App gets nothing of the
workbench: no cookie, no script of the page, no answer. It speaks with the page by messages only.
"""

from __future__ import annotations

import os
import re
import secrets
import socket as native
import sys
from hmac import compare_digest
from typing import Any
from urllib.parse import parse_qs

from mcpgreen import journal
from mcpgreen.errors import McpgreenError
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.wire.connection import Headers, Request, Response
from mcpgreen.transports.http.wire.listening import HttpServer

NAMES = ("127.0.0.1", "localhost")
OUR_SITES = ("same-origin", "none")  # in Sec-Fetch-Site: our own page asks, or the person by the address bar
CONNECTIONS = "/proc/net/tcp"
ESTABLISHED = "01"
FORBIDDEN = "403 Forbidden"
LOST = "Open the URL that mcpgreen dev has printed. It works once; to get a new one, start the command again."
POLICY = "Content-Security-Policy"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; "
    "connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
APP_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' {resource}; style-src 'unsafe-inline' {resource}; "
    "img-src data: blob: {resource}; media-src data: blob: {resource}; font-src data: {resource}; "
    "connect-src {connect}; frame-src {frame}; base-uri {baseUri}; form-action 'none'; frame-ancestors 'self'; "
    "sandbox allow-scripts allow-forms"
)
APP_MAY = {"resource": "", "connect": "'none'", "frame": "'none'", "baseUri": "'none'"}  # if it names no origins
SOURCE = re.compile(r"[!#-&(-+\--:<-~]{1,200}")  # no space, quote, comma or semicolon
GUARDS: Headers = [
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]


class Rejected(McpgreenError):
    """A request that is refused; the sentence is for the page."""

    def __init__(self, sentence: str, status: str = "400 Bad Request") -> None:
        super().__init__(sentence)
        self.status = status


def guarded(response: Response) -> Response:
    """Return the response with the headers that tell browsers what they may do with it."""
    policies = [] if any(name == POLICY for name, _ in response.headers) else [(POLICY, PAGE_POLICY)]
    return response._replace(headers=[*response.headers, *policies, *GUARDS])


def app_policy(csp: Json) -> str:
    """Return the policy for an MCP App that names these origins."""
    named = {field: " ".join(filter(SOURCE.fullmatch, csp.get(f"{field}Domains", ()))) for field in APP_MAY}
    return APP_POLICY.format(**{field: named[field] or default for field, default in APP_MAY.items()})


class Door:
    """Admits the browser that shows the token first, and no other."""

    def __init__(self, port: int) -> None:
        self._hosts = {f"{name}:{port}" for name in NAMES}
        self._cookie = f"mcpgreen-{port}"  # cookies do not tell ports apart
        self._secret = secrets.token_urlsafe(32)
        self._token = secrets.token_urlsafe(32)
        self.url = f"http://{NAMES[0]}:{port}/?token={self._token}"

    def admit(self, request: Request) -> Response | None:
        """Return the response that lets a browser in; None for a request from one that is in. Raises Rejected."""
        fields = request.fields
        if fields.get("host", "").lower() not in self._hosts:
            raise Rejected("This name is not ours.", FORBIDDEN)
        origin = fields.get("origin")
        is_ours = origin is None or origin.removeprefix("http://") in self._hosts
        if not is_ours or fields.get("sec-fetch-site", "none") not in OUR_SITES:
            raise Rejected("Another page may not ask.", FORBIDDEN)
        pairs = (each.strip().partition("=") for each in fields.get("cookie", "").split(";"))
        is_known = any(name == self._cookie and _is_same(value, self._secret) for name, _, value in pairs)
        token = parse_qs(request.query).get("token", [""])[0] if request.path == "/" else ""
        is_first = bool(token and self._token) and _is_same(token, self._token)
        if not is_known and not is_first:
            raise Rejected(LOST, FORBIDDEN)
        if not token:
            return None
        self._token = "" if is_first else self._token
        cookie = f"{self._cookie}={self._secret}; Path=/; HttpOnly; SameSite=Strict"
        return Response("303 See Other", [("Location", "/"), ("Set-Cookie", cookie)], [])


class LocalServer(HttpServer):
    """Serves this user, and the administrator, whose programs forward ports."""

    def handle(self, sock: native.socket, address: tuple[str, int] | str) -> None:
        user = _user_of(address, sock.getsockname()) if os.path.exists(CONNECTIONS) else os.geteuid()
        if user in (os.geteuid(), 0):
            super().handle(sock, address)
        else:
            journal.info("another user of this machine has tried to open the workbench")


def _user_of(client: Any, ours: Any) -> int | None:
    """Return the user at the other end of a connection on this machine; None if that end is closed: it has no user."""
    ends = [f"{int.from_bytes(native.inet_aton(host), sys.byteorder):08X}:{port:04X}" for host, port in (client, ours)]
    with open(CONNECTIONS, encoding="ascii") as lines:
        rows = (line.split() for line in lines)
        return next((int(row[7]) for row in rows if row[1:4] == [*ends, ESTABLISHED]), None)


def _is_same(given: str, secret: str) -> bool:
    return compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode("ascii"))
