"""Start the real server over HTTP as a process, and speak with it over real sockets.

`HttpServer` is the process, `HttpClient` one client of it, with a session or stateless. Whoever needs bytes that no
HTTP library would send uses `HttpServer.connect`.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.constants import variables_of
from tests.support.http_replies import Reply
from tests.support.waiting import PATIENCE_SECS, eventually
from tests.support.wire import (
    END_SECS,
    LATEST_HANDSHAKE,
    META_PREFIX,
    MODERN,
    Asker,
    ServerProcess,
    clean_environment,
    modern_meta,
)

Json = dict[str, Any]

ANNOUNCED = re.compile(r"^mcpgreen: serving ((?:https?|http\+unix)://\S+)$", re.MULTILINE)
BOTH_TYPES = "application/json, text/event-stream"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
NAMED_BY |= dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")
WITHOUT_VERSION_HEADER = ("2024-11-05", "2025-03-26")


class HttpServer(ServerProcess):
    """One server process. Keyword arguments that are not named here are settings (`http_token="..."`)."""

    def __init__(
        self,
        root: Path | str,
        *,
        address: str = "127.0.0.1:0",
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        is_fresh: bool = False,
        **settings: Any,
    ) -> None:
        words = ["serve", "--http", address, *arguments, "--project-root", str(root)]
        super().__init__(words, clean_environment({**variables_of(settings), **(env or {})}), is_fresh=is_fresh)
        self.root = Path(root)
        self._clients: list[HttpClient] = []
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._printed: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        for name in self._printed:
            self._begin_thread(self._read, name)

    @property
    def url(self) -> str:
        """Of the endpoint. Waits until the server says that it is ready."""
        found = eventually(lambda: ANNOUNCED.search(self.stderr) or self.process.poll() is not None)
        assert isinstance(found, re.Match), f"the server has ended with {self.process.poll()}: {self.stderr[-2000:]}"
        return found[1]

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None and parts.port is not None, self.url
        return parts.hostname, parts.port

    @property
    def port(self) -> int:
        return self.address[1]

    @property
    def stderr(self) -> str:
        """So far; all of it, once the server has ended."""
        return self._text_of("stderr")

    @property
    def stderr_lines(self) -> list[str]:
        return self.stderr.splitlines()

    @property
    def stdout(self) -> str:
        return self._text_of("stdout")

    def connect(self) -> socket.socket:
        """A connection, for bytes of your own."""
        return socket.create_connection(self.address, timeout=PATIENCE_SECS)

    def client(self, **options: Any) -> HttpClient:
        """Somebody who has said nothing yet."""
        client = HttpClient(self.url, **options)
        self._clients.append(client)
        return client

    def session(
        self, revision: str = LATEST_HANDSHAKE, *, capabilities: Json | None = None, **options: Any
    ) -> HttpClient:
        """A client after its handshake."""
        client = self.client(**options)
        client.handshake(revision, capabilities)
        return client

    def stateless(self, *, capabilities: Json | None = None, **options: Any) -> HttpClient:
        """A client of the stateless era."""
        return self.client(revision=MODERN, capabilities=capabilities, **options)

    def stop(self, *, within_secs: float = PATIENCE_SECS) -> int:
        """As an operator does: SIGTERM, and wait."""
        self.process.terminate()
        try:
            return self.wait(within_secs=within_secs)
        finally:
            self.kill()

    def end(self) -> None:
        """The test is over. The second signal tells the server not to wait for what runs."""
        for client in self._clients:
            client.close()
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.2)
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECS)
        self.kill()

    def _text_of(self, name: str) -> str:
        if self.process.poll() is not None:
            for thread in self._threads:
                thread.join(END_SECS)
        return b"".join(self._printed[name]).decode("utf-8", "replace")

    def _read(self, name: str) -> None:
        for line in getattr(self.process, name):
            self._printed[name].append(line)


class HttpClient(Asker):
    """Speaks one revision. Until it has agreed on one it says what it is told to, and no more.

    `headers` go with every request; one of None is left out, also where it would be sent otherwise.
    `source` is the address that its connections come from.
    """

    def __init__(
        self,
        url: str,
        *,
        revision: str | None = None,
        capabilities: Json | None = None,
        token: str | None = None,
        headers: Mapping[str, str | None] | None = None,
        source: str = "",
    ) -> None:
        self.url = url
        self._source = source
        self.revision = revision
        self.capabilities = capabilities or {}
        self.session_id: str | None = None
        self.methods: dict[Any, str] = {}
        self._modern_marks: list[Any] = []
        self._headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        self._next_id = 0
        self._replies: list[Reply] = []

    # HTTP.

    def send(
        self,
        method: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
        path: str | None = None,
    ) -> Reply:
        """One request, on a connection of its own. Does not wait for the answer."""
        connection = _connection_to(self.url, self._source)
        connection.connect()
        reply = Reply(connection, self._check)
        self._replies.append(reply)  # before the server can be lost
        fields = {**self._headers, **(headers or {})}
        connection.putrequest(method, path or _path_of(self.url), skip_host="Host" in fields, skip_accept_encoding=True)
        if body is not None and "Transfer-Encoding" not in fields:
            fields = {"Content-Length": str(len(body)), **fields}
        for name, value in fields.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        return reply

    def post(self, message: Any, *, headers: Mapping[str, str | None] | None = None) -> Reply:
        """A message (or bytes) to the endpoint, with the headers that its revision wants."""
        self._note(message)
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        own = {"Content-Type": "application/json", "Accept": BOTH_TYPES, **self._own_headers(message)}
        return self.send("POST", body=body, headers={**own, **(headers or {})})

    def get(self, *, last_event_id: str | None = None, headers: Mapping[str, str | None] | None = None) -> Reply:
        """The session's own stream, or the rest of another."""
        own = {"Accept": "text/event-stream", "Last-Event-ID": last_event_id, **self._own_headers(None)}
        return self.send("GET", headers={**own, **(headers or {})})

    def delete(self, *, headers: Mapping[str, str | None] | None = None) -> Reply:
        return self.send("DELETE", headers={**self._own_headers(None), **(headers or {})})

    def close(self) -> None:
        """Drop all connections; a session stays as it is."""
        for reply in self._replies:
            reply.close()
        self._replies.clear()

    # MCP.

    def handshake(self, revision: str = LATEST_HANDSHAKE, capabilities: Json | None = None) -> Json:
        result = self.initialize(revision, capabilities)
        assert self.notify("notifications/initialized").status == 202
        return result

    def initialize(self, revision: str = LATEST_HANDSHAKE, capabilities: Json | None = None) -> Json:
        """A handshake without its last message."""
        self.capabilities = capabilities or self.capabilities
        params = {
            "protocolVersion": revision,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "tests", "version": "1"},
        }
        reply = self.start("initialize", params)
        assert reply.status == 200, (reply.status, reply.body)
        self.session_id = reply.headers["Mcp-Session-Id"]
        result = reply.result()
        self.revision = result["protocolVersion"]
        return result

    def start(
        self,
        method: str,
        params: Json | None = None,
        *,
        id: Any = None,
        meta: Json | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Reply:
        """Send a request without waiting."""
        if id is None:
            self._next_id += 1
            id = self._next_id
        own_meta = modern_meta(capabilities=self.capabilities) if self.revision == MODERN else {}
        full_meta = {**own_meta, **(meta or {})}
        full = {**(params or {}), **({"_meta": full_meta} if full_meta else {})}
        return self.post({"jsonrpc": "2.0", "id": id, "method": method, "params": full}, headers=headers)

    def request(self, method: str, params: Json | None = None, **options: Any) -> Json:
        with self.start(method, params, **options) as reply:
            answer: Json = reply.answer()
            return answer

    def notify(self, method: str, params: Json | None = None) -> Reply:
        reply = self.post({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})
        assert reply.body is not None  # it has been taken
        return reply

    def answer(self, request: Json, result: Any = None, *, error: Any = None) -> Reply:
        """Answer a request of the server's, by a result unless an error is given."""
        outcome = {"result": result} if error is None else {"error": error}
        reply = self.post({"jsonrpc": "2.0", "id": request["id"], **outcome})
        assert reply.status == 202, (reply.status, reply.body)
        return reply

    def start_tool(self, name: str, arguments: Json | None = None, **options: Any) -> Reply:
        return self.start("tools/call", {"name": name, "arguments": arguments or {}}, **options)

    def call_tool(self, name: str, arguments: Json | None = None, **options: Any) -> Json:
        return self.result("tools/call", {"name": name, "arguments": arguments or {}}, **options)

    def listen(self, **notifications: Any) -> Reply:
        """Stateless: a subscription, once it is acknowledged."""
        reply = self.start("subscriptions/listen", {"notifications": notifications})
        reply.notice("notifications/subscriptions/acknowledged")
        return reply

    def _own_headers(self, message: Any) -> dict[str, str | None]:
        if self.revision == MODERN:
            return {"MCP-Protocol-Version": MODERN, **_headers_of(message)}
        own: dict[str, str | None] = {"Mcp-Session-Id": self.session_id}
        if self.revision is not None and self.revision not in WITHOUT_VERSION_HEADER:
            own["MCP-Protocol-Version"] = self.revision
        return own

    def _note(self, message: Any) -> None:
        for single in message if isinstance(message, list) else [message]:
            if not isinstance(single, dict) or "method" not in single or type(single.get("id")) not in (str, int):
                continue
            self.methods[single["id"]] = single["method"]
            params = single.get("params")
            meta = params.get("_meta") if isinstance(params, dict) else None
            if isinstance(meta, dict) and META_PREFIX + "protocolVersion" in meta:
                self._modern_marks += [single["id"], *([meta["progressToken"]] if "progressToken" in meta else [])]

    def _check(self, message: Any) -> None:
        """Against the types of the revision."""
        from tests.support import validation  # a second, which the process that only hands out tests need not take

        for single in message if isinstance(message, list) else [message]:
            validation.check(single, revision=self.revision, methods=self.methods, modern=self._modern_marks)


Serve = Callable[..., HttpServer]  # what the fixture `serve` gives


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE_SECS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _headers_of(message: Any) -> dict[str, str | None]:
    """What the stateless era repeats in headers. What no header can say as it is is encoded."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return {}
    params = message.get("params")
    name = params.get(NAMED_BY.get(message["method"], "")) if isinstance(params, dict) else None
    headers: dict[str, str | None] = {"Mcp-Method": message["method"]}
    if isinstance(name, str):
        is_plain = re.fullmatch(r"[!-~](?:[ -~]*[!-~])?", name) and not name.startswith("=?")
        headers["Mcp-Name"] = name if is_plain else f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    return headers


def _connection_to(url: str, source: str = "") -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "http+unix":
        return _UnixConnection(parts.path.rpartition(":")[0])
    assert parts.scheme == "http" and parts.hostname is not None, url
    source_address = (source, 0) if source else None
    return http.client.HTTPConnection(parts.hostname, parts.port, PATIENCE_SECS, source_address)


def _path_of(url: str) -> str:
    return urlsplit(url).path.rpartition(":")[2] or "/"
