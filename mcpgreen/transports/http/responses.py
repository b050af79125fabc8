"""HTTP responses: the status of an answer, and rejections with a JSON-RPC error in their body.

Most errors of JSON-RPC have no HTTP status of their own. A stateless client gets one for some of them. In both eras, a
client that lacks a scope gets 403 with a challenge, because that is how clients learn to ask their user for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgreen import errors
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
NOT_FOUND = "404 Not Found"
NOT_ACCEPTABLE = "406 Not Acceptable"
# The response to a message that is not answered: a notification, or an answer to a request of ours.
ACCEPTED = Response("202 Accepted", [], [])
STATELESS_STATUSES = {
    errors.HeaderMismatch.code: BAD,
    errors.UnsupportedVersion.code: BAD,
    errors.MissingClientCapability.stateless_code: BAD,
    errors.InvalidRequest.code: BAD,
    errors.MethodNotFound.code: NOT_FOUND,
}


class Refusal(Exception):
    """A request that is refused; becomes the response. A text as the error is the reason of an InvalidRequest."""

    def __init__(
        self, status: str, error: errors.RpcError | str, *, headers: Headers | None = None, id: str | int | None = None
    ) -> None:
        self.error = errors.InvalidRequest(error) if isinstance(error, str) else error
        super().__init__(self.error.message)
        self.status = status
        self.headers = headers or []
        self.id = id

    def response(self) -> Response:
        body = messages.error(self.id, revision_fields.error_object(self.error))
        return Response(self.status, [JSON, *self.headers], [body])


def unavailable(reason: str, *, retry_secs: int = 1, id: str | int | None = None) -> Refusal:
    """Return a refusal that tells the client to try again."""
    headers = [("Retry-After", str(retry_secs))]
    return Refusal("503 Service Unavailable", errors.InternalError(reason), headers=headers, id=id)


def not_allowed(allowed: str, reason: str) -> Refusal:
    return Refusal("405 Method Not Allowed", reason, headers=[("Allow", allowed)])


def status_of(
    line: Line, request_id: str | int | None, oauth: ResourceServer | None, *, is_stateless: bool
) -> tuple[str, Headers]:
    """Return the HTTP status and headers of an answer. `oauth` writes the challenge for a missing scope."""
    beginning = line if isinstance(line, bytes) else line[0]
    if not is_stateless and messages.is_without_ids(beginning):
        return BAD, []  # clients match answers by their ids, and would wait for another one
    code = None if request_id is None else messages.error_code(beginning, request_id)
    if code == errors.TooManyPolls.code:  # over HTTP, no other error has this code: a session begins with initialize
        return "429 Too Many Requests", [("Retry-After", "1")]
    if code == errors.InsufficientScope.code and oauth is not None:
        data = jsontext.loads(whole(line))["error"].get("data")
        required = data.get("requiredScopes") if type(data) is dict else None
        if required is not None:
            challenge = oauth.challenge(error="insufficient_scope", scopes=required)
            return "403 Forbidden", [("WWW-Authenticate", challenge)]
    return STATELESS_STATUSES.get(code, OK) if is_stateless else OK, []
