"""`/mcp`: reads the message of a POST, decides its era, and hands it to whoever serves that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mcpgreen.errors import InvalidRequest
from mcpgreen.protocol import revisions
from mcpgreen.protocol.admission import is_stateless
from mcpgreen.transports.http.eras.exchange import Accepts
from mcpgreen.transports.http.eras.handshake import SESSION, VERSION, HandshakeEra
from mcpgreen.transports.http.eras.stateless import Stateless
from mcpgreen.transports.http.eras.statuses import Statuses
from mcpgreen.transports.http.incoming import JSON_TYPE, Reader
from mcpgreen.transports.http.parts import Parts
from mcpgreen.transports.http.responses import Refusal, Response
from mcpgreen.transports.http.streams.events import CONTENT_TYPE

if TYPE_CHECKING:
    from mcpgreen.links.principal import Principal
MAX_RANGES = 64  # of types that a client takes; those beyond are not looked at


class Endpoint:
    """Serves requests to it."""

    def __init__(self, parts: Parts, reader: Reader) -> None:
        statuses = Statuses(parts.oauth)
        self._handshake = HandshakeEra(parts, statuses)
        self._stateless = Stateless(parts, statuses)
        self._reader = reader

    def serve(self, variables: Mapping[str, Any], principal: Principal | None) -> Response:
        """Raises Refusal, and ClientGone."""
        method = variables["REQUEST_METHOD"]
        if method == "POST":
            return self._post(variables, principal)
        if method not in ("GET", "DELETE"):
            raise _not_allowed()
        if not variables.get(SESSION) and variables.get(VERSION) in revisions.STATELESS_NAMES:
            raise _not_allowed()
        if method == "DELETE":
            return self._handshake.delete(variables, principal=principal)
        return self._handshake.get(variables, accepts=_accepted_by(variables), principal=principal)

    def _post(self, variables: Mapping[str, Any], principal: Principal | None) -> Response:
        accepts = _accepted_by(variables)
        if not (accepts.json or accepts.events):
            reason = f"Accept must allow {JSON_TYPE} and {CONTENT_TYPE}."
            raise Refusal("406 Not Acceptable", InvalidRequest(reason))
        message, weight_bytes = self._reader.read(variables)
        era = self._stateless if self._is_stateless(message, variables) else self._handshake
        return era.post(message, variables, accepts=accepts, principal=principal, weight_bytes=weight_bytes)

    def _is_stateless(self, message: Any, variables: Mapping[str, Any]) -> bool:
        """By the header, or by the envelope: if only one of them says so, that is a mistake which is told there."""
        if variables.get(VERSION) in revisions.STATELESS_NAMES:
            return True
        if type(message) is not dict:
            return False
        has_session = bool(variables.get(SESSION))
        return is_stateless(message.get("params")) or (
            not has_session and message.get("method") in revisions.STATELESS_ONLY_REQUESTS
        )


def _accepted_by(variables: Mapping[str, Any]) -> Accepts:
    """What the client takes. One that does not say takes all."""
    return _accepted(variables.get("HTTP_ACCEPT") or "*/*")


@lru_cache(maxsize=64)  # most clients say the same in every request
def _accepted(sent: str) -> Accepts:
    ranges = [_range_of(each) for each in sent.lower().split(",", MAX_RANGES)]
    taken = {name for name, is_wanted in ranges if is_wanted}
    if "*/*" in taken:
        return Accepts(json=True, events=True)
    return Accepts(
        json=bool(taken & {JSON_TYPE, "application/*"}),
        events=bool(taken & {CONTENT_TYPE, "text/*"}),
    )


def _range_of(text: str) -> tuple[str, bool]:
    name, _, parameters = text.partition(";")
    is_wanted = not any(each.strip() in ("q=0", "q=0.0", "q=0.00", "q=0.000") for each in parameters.split(";"))
    return name.strip(), is_wanted


def _not_allowed() -> Refusal:
    allowed = [("Allow", "POST")]
    return Refusal("405 Method Not Allowed", InvalidRequest("This endpoint takes POST."), headers=allowed)
