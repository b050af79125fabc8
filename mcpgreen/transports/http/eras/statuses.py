"""The HTTP status of an answer, and the headers that go with it.

Most errors of JSON-RPC have no status of their own. A stateless client is told some of them by it, too; and whoever
lacks a scope is told in either era, because that is how clients learn to ask their user for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpgreen.errors import (
    HeaderMismatch,
    InsufficientScope,
    InvalidRequest,
    MethodNotFound,
    MissingClientCapability,
    UnsupportedVersion,
)
from mcpgreen.links.sink import Line, whole
from mcpgreen.protocol import messages
from mcpgreen.text import jsontext
from mcpgreen.transports.http.responses import Headers

if TYPE_CHECKING:
    from mcpgreen.transports.http.oauth.resource_server import ResourceServer

OK = "200 OK"
BAD = "400 Bad Request"
FORBIDDEN = "403 Forbidden"
OF_STATELESS = {
    HeaderMismatch.code: BAD,
    UnsupportedVersion.code: BAD,
    MissingClientCapability.stateless_code: BAD,
    InvalidRequest.code: BAD,
    MethodNotFound.code: "404 Not Found",
}


class Statuses:
    """Of one server. `oauth` knows what to tell a client whose token does not suffice."""

    def __init__(self, oauth: ResourceServer | None) -> None:
        self._oauth = oauth

    def of_stateless(self, line: Line, request_id: str | int) -> tuple[str, Headers]:
        code = _code_of(line, request_id)
        if code is None:
            return OK, []
        return self._of_scopes(line, code) or (OF_STATELESS.get(code, OK), [])

    def of_handshake(self, line: Line, request_id: str | int | None) -> tuple[str, Headers]:
        code = None if request_id is None else _code_of(line, request_id)
        return (None if code is None else self._of_scopes(line, code)) or (OK, [])

    def _of_scopes(self, line: Line, code: int) -> tuple[str, Headers] | None:
        """None unless scopes are missing."""
        if code != InsufficientScope.code:
            return None
        data: Any = jsontext.loads(whole(line))["error"].get("data")
        required = data.get("requiredScopes") if type(data) is dict else None
        if required is None or self._oauth is None:
            return None
        challenge = self._oauth.challenge(error="insufficient_scope", scopes=required)
        return FORBIDDEN, [("WWW-Authenticate", challenge)]


def _code_of(line: Line, request_id: str | int) -> int | None:
    return messages.error_code(line if isinstance(line, bytes) else line[0], request_id)
