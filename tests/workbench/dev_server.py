"""`mcpgreen dev` as a process, and a browser without a screen: it has the cookie, and says what a page would."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.waiting import PATIENCE_SECS
from tests.support.wire import END_SECS, MODERN, ServerProcess, clean_environment

Json = dict[str, Any]
AS_NEWEST = {"revision": MODERN, "capabilities": "all", "task": False}
PRINTED = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)")


class Reply(NamedTuple):
    status: int
    headers: Message
    content: bytes


class Dev(ServerProcess):
    def __init__(self, root: Path, env: dict[str, str] | None = None, options: Sequence[str] = ("--no-open",)) -> None:
        words = ["dev", *options, "--project-root", str(root)]
        super().__init__(words, clean_environment(env))
        assert self.process.stdout is not None
        printed = self.process.stdout.readline().decode("utf-8")
        found = PRINTED.search(printed)
        assert found is not None, printed
        self.port, self.token = int(found[1]), found[2]
        self.cookie = ""
        self._streams: list[http.client.HTTPResponse] = []

    def enter(self) -> Dev:
        """Use the token."""
        self.cookie = self.send("GET", f"/?token={self.token}").headers["Set-Cookie"].partition(";")[0]
        return self

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """Send one request, with the cookie. Headers have _ for -; an empty one is left out."""
        response = self._open(method, path, body, headers)
        with response:
            return Reply(response.status, response.headers, response.read())

    def stream(self, method: str, path: str, body: object = None) -> http.client.HTTPResponse:
        """A response to be read as it comes, until it is closed."""
        self._streams.append(self._open(method, path, body, {}))
        return self._streams[-1]

    def _open(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECS)
        fields = {
            "Connection": "close",
            "Cookie": self.cookie,
            **({} if body is None else {"Content-Type": "application/json"}),
        }
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes | None) else json.dumps(body)
        connection.request(method, path, content, {name: value for name, value in fields.items() if value})
        response = connection.getresponse()
        connection.close()  # the response holds the socket
        return response

    def get(self, path: str) -> Any:
        return _decoded(self.send("GET", path))

    def post(self, path: str, **body: Any) -> Any:
        return _decoded(self.send("POST", path, body))

    def refusal(self, path: str, **body: Any) -> tuple[int, str]:
        reply = self.send("POST", path, body)
        return reply.status, json.loads(reply.content)["error"]

    def play(self, tool: str, arguments: Json | None = None, **options: Any) -> Interaction:
        params = {"name": tool, "arguments": arguments or {}}
        body = {"method": "tools/call", "params": params, **AS_NEWEST, **options}
        return Interaction(self, body)

    def events(self, server: str = "own") -> Iterator[tuple[str, Json]]:
        return _events(self.stream("GET", f"/api/events?server={server}"))

    def end(self) -> None:
        for stream in self._streams:
            stream.close()
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(END_SECS)
        self.kill()


class Interaction:
    """One stream of `/api/request`."""

    def __init__(self, dev: Dev, body: Json) -> None:
        self._dev = dev
        self._reply = dev.stream("POST", "/api/request", body)
        self._events = _events(self._reply)
        self.seen: list[Json] = []
        self.id = self.wait_for("begun")["id"]

    def wait_for(self, kind: str) -> Json:
        for _, event in self._events:
            self.seen.append(event)
            if event["type"] == kind:
                return event
        raise AssertionError(f"no {kind}: {self.seen}")

    def answer(self, key: int, **answer: Any) -> None:
        self._dev.post("/api/answer", id=self.id, key=key, answer=answer)

    def cancel(self) -> None:
        self._dev.post("/api/cancel", id=self.id)

    def leave(self) -> None:
        """As a page that is closed."""
        self._reply.close()

    def of_type(self, kind: str) -> list[Json]:
        return [event for event in self.seen if event["type"] == kind]


def _decoded(reply: Reply) -> Any:
    assert reply.status == 200, reply.content
    return json.loads(reply.content)


def _events(reply: http.client.HTTPResponse) -> Iterator[tuple[str, Json]]:
    assert reply.status == 200, reply.read()
    name = ""
    for line in reply:
        field, _, value = line.decode("utf-8").rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)
            name = ""
