"""The answer to one HTTP request: JSON, or a stream of events that is read while it comes."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]


class Event(NamedTuple):
    """One server-sent event, or one comment. A `data` of None: the event has no such line."""

    id: str | None = None
    data: str | None = None
    name: str | None = None
    retry: int | None = None
    comment: str | None = None

    @property
    def message(self) -> Any:
        """None for a comment, for an event without one, and for one that says something else."""
        return json.loads(self.data) if self.data and self.name in (None, "message") else None


class Reply:
    """The answer to one request, which may still be to come: whatever asks for a part of it waits for that."""

    def __init__(self, connection: http.client.HTTPConnection, check: Callable[[Any], None]) -> None:
        self._connection = connection
        self._socket = connection.sock
        self._check = check
        self._response: http.client.HTTPResponse | None = None
        self._body: bytes | None = None
        self._unclaimed: list[Any] = []
        self.seen: list[Any] = []  # messages
        self.events: list[Event] = []  # that have been read
        self.last_event_id: str | None = None

    @property
    def status(self) -> int:
        return self._head().status

    @property
    def headers(self) -> http.client.HTTPMessage:
        return self._head().headers

    @property
    def type(self) -> str:
        """The content type, without parameters."""
        return str(self.headers.get("Content-Type", "")).partition(";")[0]

    @property
    def is_stream(self) -> bool:
        return self.type == "text/event-stream"

    @property
    def body(self) -> bytes:
        """All of it."""
        if self._body is None:
            self._body = self._head().read()
            self.close()
        return self._body

    def json(self) -> Any:
        assert self.type == "application/json", (self.status, self.headers.items(), self.body[:2000])
        message = json.loads(self.body)
        self._check(message)
        return message

    def next_event(self) -> Event | None:
        """Also a comment. None at the end of the stream."""
        assert self.is_stream, (self.status, self.headers.items(), self.body[:2000])
        lines: list[str] = []
        while True:
            try:
                raw = self._head().readline()
            except (http.client.IncompleteRead, ConnectionError):
                raw = b""
            if not raw:
                return None
            line = raw.decode("utf-8").rstrip("\r\n")
            if line:
                lines.append(line)
            elif lines:
                return self._noted(event_of(lines))

    def next_message(self) -> Any:
        """Of a stream. None at its end."""
        while (event := self.next_event()) is not None:
            if event.message is not None:
                return event.message
        return None

    def receive(self, matches: Callable[[Any], bool]) -> Any:
        """The first message of the stream that matches, also among those passed over before."""
        for index, message in enumerate(self._unclaimed):
            if matches(message):
                return self._unclaimed.pop(index)
        while (message := self.next_message()) is not None:
            if matches(message):
                return message
            self._unclaimed.append(message)
        raise AssertionError(f"the stream has ended; seen: {self.seen[-5:]}")

    def notice(self, method: str) -> Any:
        return self.receive(lambda message: message.get("method") == method and "id" not in message)

    def asked(self, method: str) -> Any:
        """The next request of the server's with this method."""
        return self.receive(lambda message: message.get("method") == method and "id" in message)

    def rest(self) -> list[Any]:
        """All messages until the stream ends."""
        messages = self._unclaimed
        self._unclaimed = []
        while (message := self.next_message()) is not None:
            messages.append(message)
        return messages

    def answer(self) -> Any:
        """The response to the request, as JSON or at the end of a stream."""
        if not self.is_stream:
            return self.json()
        return self.receive(lambda message: "method" not in message)

    def result(self) -> Json:
        answer = self.answer()
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    def error(self) -> Json:
        answer = self.answer()
        assert "error" in answer, answer
        error: Json = answer["error"]
        return error

    @property
    def has_come(self) -> bool:
        """Whether there is something of it to be read."""
        return self._response is not None or bool(select.select([self._socket], [], [], 0)[0])

    def close(self) -> None:
        """Leave: the server sees that the connection is gone."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._response is not None:
            self._response.close()
        self._connection.close()
        self._socket.close()

    def __enter__(self) -> Reply:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _head(self) -> http.client.HTTPResponse:
        if self._response is None:
            self._response = self._connection.getresponse()
        return self._response

    def _noted(self, event: Event) -> Event:
        self.events.append(event)
        if event.id is not None:
            self.last_event_id = event.id
        if event.message is not None:
            self._check(event.message)
            self.seen.append(event.message)
        return event


def event_of(lines: Sequence[str]) -> Event:
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value
    retry = fields.get("retry")
    return Event(
        id=fields.get("id"),
        data=fields.get("data"),
        name=fields.get("event"),
        retry=None if retry is None else int(retry),
        comment=fields.get(""),
    )
