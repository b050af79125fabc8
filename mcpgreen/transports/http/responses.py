"""What goes back to a client as HTTP: the status of an answer, and refusals with an error of JSON-RPC in their body.

Most errors of JSON-RPC have no HTTP status of their own. A stateless client gets one for some of them. In both eras, a
client that lacks a scope gets 403 with a challenge, because that is how clients learn to ask their user for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgreen.errors import (
    HeaderMismatch,
    InsufficientScope,
    InvalidRequest,
    MethodNotFound,
    MissingClientCapability,
    RpcError,
    UnsupportedVersion,
)
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.messages import Line, whole
from mcpgreen.text import jsontext
from mcpgreen.transports.http.wire.connection import Headers, Response

if TYPE_CHECKING:
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

JSON = ("Content-Type", "application/json")
NOT_STORED = ("Cache-Control", "no-store")

OK = "200 OK"
BAD = "400 Bad Request"
FORBIDDEN = "403 Forbidden"
STATELESS_STATUSES = {
    HeaderMismatch.code: BAD,
    UnsupportedVersion.code: BAD,
    MissingClientCapability.stateless_code: BAD,
    InvalidRequest.code: BAD,
    MethodNotFound.code: "404 Not Found",
}


class Refusal(Exception):
    """A request that is refused; becomes the response."""

    def __init__(self, status: str, error: RpcError, *, headers: Headers | None = None, id: str | int | None = None):
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = headers or []
        self.id = id

    def response(self) -> Response:
        body = messages.error(self.id, revision_fields.error_object(self.error))
        return Response(self.status, [JSON, *self.headers], [body])


def unavailable(error: RpcError, *, retry_secs: int = 1, id: str | int | None = None) -> Refusal:
    """A refusal that tells the client to try again."""
    return Refusal("503 Service Unavailable", error, headers=[("Retry-After", str(retry_secs))], id=id)


def not_allowed(allowed: str, reason: str) -> Refusal:
    return Refusal("405 Method Not Allowed", InvalidRequest(reason), headers=[("Allow", allowed)])


def accepted() -> Response:
    """The response to a message that is not answered: a notification, or an answer to a request of ours."""
    return Response("202 Accepted", [], [])


def text(status: str, words: str) -> Response:
    return Response(status, [("Content-Type", "text/plain; charset=utf-8"), NOT_STORED], [words.encode()])


class Statuses:
    """The HTTP status of an answer, and its headers. `oauth` writes the challenge for a client that lacks a scope."""

    def __init__(self, oauth: ResourceServer | None) -> None:
        self._oauth = oauth

    def of_stateless(self, line: Line, request_id: str | int) -> tuple[str, Headers]:
        code = messages.error_code(_beginning(line), request_id)
        if code is None:
            return OK, []
        return self._of_missing_scopes(line, code) or (STATELESS_STATUSES.get(code, OK), [])

    def of_handshake(self, line: Line, request_id: str | int | None) -> tuple[str, Headers]:
        """400 for errors without an id: clients match answers by their ids, and would wait for another one."""
        if messages.is_without_ids(_beginning(line)):
            return BAD, []
        code = None if request_id is None else messages.error_code(_beginning(line), request_id)
        return (None if code is None else self._of_missing_scopes(line, code)) or (OK, [])

    def _of_missing_scopes(self, line: Line, code: int) -> tuple[str, Headers] | None:
        """None unless scopes are missing."""
        if code != InsufficientScope.code:
            return None
        data = jsontext.loads(whole(line))["error"].get("data")
        required = data.get("requiredScopes") if type(data) is dict else None
        if required is None or self._oauth is None:
            return None
        challenge = self._oauth.challenge(error="insufficient_scope", scopes=required)
        return FORBIDDEN, [("WWW-Authenticate", challenge)]


def _beginning(line: Line) -> bytes:
    return line if isinstance(line, bytes) else line[0]
