"""A web site on loopback, over TLS: pages that behave and pages that do not, and git repositories."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MIB = 1024 * 1024


class Site(ThreadingHTTPServer):
    """Serves in a thread. Notes every connection, every name asked for, and every path."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, context: ssl.SSLContext, repositories: Path) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        context.sni_callback = lambda _, name, __: self.names.append(name)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.repositories = repositories
        self.connections = 0
        self.names: list[str | None] = []
        self.paths: list[str] = []
        self.is_closing = threading.Event()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def get_request(self) -> Any:
        connected = super().get_request()
        self.connections += 1
        return connected

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up whenever they have seen enough; that is what the tests are about."""

    def close(self) -> None:
        self.is_closing.set()
        self.shutdown()
        self.server_close()


class Page(BaseHTTPRequestHandler):
    server: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        kind = self.path.split("/")[1].partition("?")[0]
        getattr(self, f"show_{kind}", self.show_error)()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass

    def show_error(self) -> None:
        self.answer(404)

    def show_ok(self) -> None:
        self.answer(200, b"caf\xc3\xa9\n\x00\xff\n")

    def show_request(self) -> None:
        self.answer(200, json.dumps({"path": self.path, **{k.lower(): v for k, v in self.headers.items()}}).encode())

    def show_big(self) -> None:
        self.answer(200, b"x" * MIB)

    def show_endless(self) -> None:
        self.begin(200, {"Transfer-Encoding": "chunked"})
        while not self.server.is_closing.is_set():
            self.wfile.write(b"10000\r\n" + b"y" * 0x10000 + b"\r\n")

    def show_moved(self) -> None:
        self.answer(302, location="https://elsewhere.example/new")

    def show_near(self) -> None:
        self.answer(301, location="/ok")

    def show_unchanged(self) -> None:
        self.answer(304)

    def show_broken(self) -> None:
        self.answer(500)

    def show_slow(self) -> None:
        """A byte now and then, so that no single wait is long."""
        self.begin(200, {"Content-Length": "1000000"})
        while not self.server.is_closing.wait(0.02):
            self.wfile.write(b"z")

    def show_silent(self) -> None:
        self.server.is_closing.wait()

    def show_short(self) -> None:
        self.begin(200, {"Content-Length": "100"})
        self.wfile.write(b"too little")
        self.close_connection = True

    def show_less(self) -> None:
        """As short, but closed in good order."""
        self.show_short()
        self.wfile.flush()
        self.connection.unwrap()

    def show_cut(self) -> None:
        """No length, and no farewell of TLS either: the client cannot know whether this is all."""
        self.begin(200, {"Connection": "close"})
        self.wfile.write(b"the beginning")
        self.close_connection = True

    def show_rubbish(self) -> None:
        self.wfile.write(b"220 mail.example ESMTP\r\n")
        self.close_connection = True

    def show_private(self) -> None:
        self.begin(401, {"WWW-Authenticate": 'Basic realm="x"', "Content-Length": "0"})

    def show_git(self) -> None:
        """Hand the request to git's own CGI program."""
        path, _, query = self.path.removeprefix("/git").partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        done = subprocess.run(
            ["git", "http-backend"],
            input=self.rfile.read(length),
            capture_output=True,
            check=False,  # it fails after it has told the client why
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.server.repositories),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(length),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "REMOTE_ADDR": "127.0.0.1",
            },
        ).stdout
        head, _, body = done.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode("latin-1").splitlines())
        status = int(headers.pop("Status", "200").split()[0])
        self.begin(status, {**headers, "Content-Length": str(len(body))})
        self.wfile.write(body)

    def answer(self, status: int, content: bytes = b"", *, location: str = "") -> None:
        self.begin(status, {"Content-Length": str(len(content)), **({"Location": location} if location else {})})
        self.wfile.write(content)

    def begin(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
