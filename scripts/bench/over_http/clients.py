"""Clients that do one thing each, slowly: make a session, open a listen. What is measured goes through the load."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

from client import SubjectError

from over_http import messages
from over_http.messages import Request

WAIT_SECS = 20.0
ACKNOWLEDGED = b"notifications/subscriptions/acknowledged"


@contextmanager
def connected(port: int) -> Iterator[HTTPConnection]:
    connection = HTTPConnection("127.0.0.1", port, timeout=WAIT_SECS)
    try:
        yield connection
    except HTTPException as error:
        raise SubjectError(f"no proper HTTP: {error!r}") from error
    finally:
        connection.close()


def new_session(port: int) -> str:
    """The id of a session whose handshake is complete. Its connection is closed."""
    with connected(port) as connection:
        response, _ = ask(connection, messages.initialize())
        session_id = response.getheader("Mcp-Session-Id")
        if session_id is None:
            raise SubjectError("initialize was answered without an Mcp-Session-Id")
        response = post(connection, messages.initialized(session_id))
        if response.status != 202:
            raise SubjectError(f"notifications/initialized was answered with status {response.status}")
        response.read()
        return session_id


def ask(connection: HTTPConnection, request: Request) -> tuple[HTTPResponse, Mapping[str, Any]]:
    """The head of the answer, and its result."""
    response = post(connection, request)
    body = response.read()
    if response.status != 200:
        raise SubjectError(f"status {response.status}: {body[:200]!r}")
    content_type = response.getheader("Content-Type", "")
    texts = [body] if content_type.startswith("application/json") else event_data(body)
    answers = [answer for answer in map(json.loads, texts) if "id" in answer and "method" not in answer]
    if len(answers) != 1 or "result" not in answers[0]:
        raise SubjectError(f"no result: {body[:200]!r}")
    result: Mapping[str, Any] = answers[0]["result"]
    return response, result


def event_data(stream: bytes) -> list[bytes]:
    """The messages of a stream; an event without data is no message."""
    lines = [line.removeprefix(b"data:").strip() for line in stream.splitlines() if line.startswith(b"data:")]
    return [line for line in lines if line]


def post(connection: HTTPConnection, request: Request) -> HTTPResponse:
    connection.request("POST", "/mcp", body=request.body, headers=dict(request.headers))
    return connection.getresponse()


class Listen:
    """An open `subscriptions/listen`, from its acknowledgement on."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=WAIT_SECS)
        try:
            request = messages.stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            self._response = post(self._connection, request)
            self._await_acknowledgement()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()
        if hasattr(self, "_response"):
            self._response.close()

    def _await_acknowledgement(self) -> None:
        if self._response.status != 200:
            raise SubjectError(f"status {self._response.status}: {self._response.read(200)!r}")
        try:
            while line := self._response.readline():
                if ACKNOWLEDGED in line:
                    return
        except (HTTPException, TimeoutError) as error:
            raise SubjectError(f"a listen was not acknowledged: {error!r}") from error
        raise SubjectError("a listen ended instead of being acknowledged")
