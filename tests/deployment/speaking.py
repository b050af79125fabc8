"""A client on a connection that it keeps, as real ones do. It never sends anything twice."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from typing import Any

from tests.support.wire import LATEST_HANDSHAKE, MODERN, Json, modern_meta

PATIENCE_SECS = 30.0
FORM = {"elicitation": {"form": {}}}
YES = {"action": "accept", "content": {"confirmed": True}}


class Failed(Exception):
    """What a person would call an outage: no answer, or none of MCP's."""


class Stream:
    """An answer as it comes: messages of events, or the one of a JSON body."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = response.headers

    @property
    def is_events(self) -> bool:
        return str(self.headers.get("Content-Type", "")).startswith("text/event-stream")

    def next(self) -> Json | None:
        """The next message; None at the end."""
        if not self.is_events:
            body = self._response.read()
            return dict(json.loads(body)) if body else None
        data = ""
        while line := self._response.readline().decode("utf-8"):
            if line.startswith("data:"):
                data = line.removeprefix("data:").strip()
            elif not line.strip() and data:
                return dict(json.loads(data))
        return None

    def body(self) -> bytes:
        return self._response.read()

    def rest(self) -> list[Json]:
        return list(iter(self.next, None))

    def answer(self) -> Json:
        """The response, whatever comes before it."""
        for message in iter(self.next, None):
            if "method" not in message:
                self._response.read()
                return message
        raise Failed(f"{self.status}: the stream has ended without an answer")


class Speaker:
    """One client. With a session after `handshake`, else stateless."""

    def __init__(self, host: str, port: int, trust: ssl.SSLContext, token: str = "") -> None:
        self._host, self._port, self._trust, self._token = host, port, trust, token
        self._connection: http.client.HTTPSConnection | None = None
        self._others: list[http.client.HTTPSConnection] = []
        self._last_id = 0
        self.session: str | None = None
        self.version: str | None = MODERN

    def close(self) -> None:
        for each in (self._connection, *self._others):
            if each is not None:
                if each.sock is not None:
                    with contextlib.suppress(OSError):
                        each.sock.shutdown(socket.SHUT_RDWR)
                each.close()
        self._connection = None
        self._others.clear()

    def handshake(self, capabilities: Json | None = None) -> None:
        self.session = self.version = None
        client = {"name": "tests", "version": "1"}
        params = {"protocolVersion": LATEST_HANDSHAKE, "capabilities": capabilities or {}, "clientInfo": client}
        stream = self.start("initialize", params)
        if stream.status != 200:
            raise Failed(f"initialize: {stream.status}")
        self.session = stream.headers["Mcp-Session-Id"]
        self.version = stream.answer()["result"]["protocolVersion"]
        if (status := self.tell({"method": "notifications/initialized"})) != 202:
            raise Failed(f"initialized: {status}")

    def start(self, method: str, params: Json | None = None, *, is_aside: bool = False) -> Stream:
        """Send a request; read of the answer what you like. `is_aside`: on a connection of its own."""
        self._last_id += 1
        headers = {}
        if self.version == MODERN:
            params = {"_meta": modern_meta(capabilities=FORM), **(params or {})}
            headers["Mcp-Method"] = method
            if method == "tools/call":
                headers["Mcp-Name"] = params["name"]
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}}
        return self._send("POST", message, headers, is_aside=is_aside)

    def request(self, method: str, params: Json | None = None) -> Json:
        """The result. Raises Failed for everything else."""
        stream = self.start(method, params)
        if stream.status == 404 and self.session is not None:
            stream.rest()
            raise SessionGone
        answer = stream.answer()
        if stream.status != 200 or "result" not in answer:
            raise Failed(f"{method}: {stream.status} {answer}")
        return dict(answer["result"])

    def call(self, name: str, **arguments: Any) -> str:
        """The text of a tool's result."""
        result = self.request("tools/call", {"name": name, "arguments": arguments})
        return "".join(block["text"] for block in result["content"]).strip()

    def tell(self, message: Json) -> int:
        """What is not answered. The status."""
        stream = self._send("POST", {"jsonrpc": "2.0", **message}, {}, is_aside=True)
        stream.rest()
        return stream.status

    def say_yes(self, asking: Stream) -> str:
        """Answer the question of this call by yes; what the tool says then."""
        question = asking.next()
        assert question is not None and question["method"] == "elicitation/create", question
        assert self.tell({"id": question["id"], "result": YES}) == 202
        return str(asking.answer()["result"]["content"][0]["text"])

    def get(self) -> Stream:
        """The session's own stream."""
        return self._send("GET", None, {"Accept": "text/event-stream"}, is_aside=True)

    def read(self, path: str) -> bytes:
        """What is at another path."""
        return self._send("GET", None, {}, is_aside=True, path=path).body()

    def fetch(self, path: str) -> int:
        return self._send("GET", None, {}, is_aside=True, path=path).status

    def _send(
        self, method: str, message: Json | None, headers: dict[str, str], *, is_aside: bool, path: str = "/mcp"
    ) -> Stream:
        connection = self._open() if is_aside else self._kept()
        fields = {
            "Host": self._host,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {self._token}"} if self._token else {}),
            **({"MCP-Protocol-Version": self.version} if self.version else {}),
            **({"Mcp-Session-Id": self.session} if self.session else {}),
            **headers,
        }
        body = None if message is None else json.dumps(message)
        try:
            connection.request(method, path, body, fields)
            return Stream(connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Failed(repr(error)) from error

    def _kept(self) -> http.client.HTTPSConnection:
        if self._connection is None:
            self._connection = self._open()
            self._others.remove(self._connection)
        return self._connection

    def _open(self) -> http.client.HTTPSConnection:
        connection = _Connection(self._host, self._port, self._trust)
        self._others.append(connection)
        return connection


class SessionGone(Exception):
    """404: as MCP has it, the client begins a new one."""


class _Connection(http.client.HTTPSConnection):
    """To this machine, whatever the name says."""

    def __init__(self, host: str, port: int, trust: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=PATIENCE_SECS, context=trust)
        self._trust = trust

    def connect(self) -> None:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=self.timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._trust.wrap_socket(plain, server_hostname=self.host)
