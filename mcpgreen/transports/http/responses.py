"""What goes back to a client as HTTP: status, headers, body. The body of a refusal is an error of JSON-RPC."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mcpgreen.errors import RpcError
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.revisions import Revision
from mcpgreen.text.json_types import Json

Headers = list[tuple[str, str]]

JSON = ("Content-Type", "application/json")
# Nobody but who asked may keep it.
NOT_STORED = ("Cache-Control", "no-store")


class Response(NamedTuple):
    """`body` is a list if it is all there, else a stream."""

    status: str
    headers: Headers
    body: Iterable[bytes]


class Refusal(Exception):
    """A request that is not served; becomes the response."""

    def __init__(self, status: str, error: RpcError, *, headers: Headers | None = None, id: str | int | None = None):
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = headers or []
        self.id = id

    def response(self, revision: Revision | None = None) -> Response:
        error_object: Json = revision_fields.error_object(self.error, revision)
        return Response(self.status, [JSON, *self.headers], [messages.error(self.id, error_object)])


def accepted() -> Response:
    """For what is not answered: notifications, and answers to our own requests."""
    return Response("202 Accepted", [], [])


def text(status: str, words: str, content_type: str = "text/plain; charset=utf-8") -> Response:
    return Response(status, [("Content-Type", content_type), NOT_STORED], [words.encode()])
