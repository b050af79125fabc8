#!/usr/bin/env python3
"""A bridge from HTTP to this project's server, small enough to read. For experiments, not for production.

    python3 bridge.py [PORT]      serves http://127.0.0.1:8080/mcp until it is interrupted
    python3 bridge.py --smoke     starts itself on a free port, sends three requests and shows the answers

Each POST is one stateless MCP request, so nothing has to be remembered between requests.
"""

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MOST_BYTES = 1024 * 1024
PATIENCE_SECS = 60
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Backend:
    """One mcpgreen for all requests. Each gets a number of ours, so that two clients may choose the same id."""

    def __init__(self):
        command = ["mcpgreen", "serve", "--project-root", "."]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()
        self._number = 0
        self._waiting = {}
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, request):
        answered = threading.Event()
        with self._lock:
            self._number += 1
            number = self._number
            self._waiting[number] = entry = {"event": answered}
            self._process.stdin.write(json.dumps({**request, "id": number}).encode() + b"\n")
            self._process.stdin.flush()
        if not answered.wait(PATIENCE_SECS):
            return {
                "jsonrpc": "2.0",
                "id": request.get("id"),
                "error": {"code": -32603, "message": "No answer in time"},
            }
        return {**entry["answer"], "id": request.get("id")}

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _read(self):
        for line in self._process.stdout:
            message = json.loads(line)
            entry = self._waiting.pop(message.get("id"), None)
            if entry:  # progress and log messages would need a stream, which this bridge does not have
                entry["answer"] = message
                entry["event"].set()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        origin = self.headers.get("Origin", "")
        if origin and not origin.startswith(("http://127.0.0.1", "http://localhost")):
            return self.reply(403, {"error": "pages from other sites may not use this"})
        length = int(self.headers.get("Content-Length") or 0)
        if self.path != "/mcp" or not 0 < length <= MOST_BYTES:
            return self.reply(404, {"error": "POST one request to /mcp"})
        request = json.loads(self.rfile.read(length))
        params = request.get("params", {})
        request["params"] = {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}}
        return self.reply(200, self.server.backend.ask(request))

    def reply(self, status, value):
        body = json.dumps(value, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def bridge(port):
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)  # this machine and nobody else
    server.backend = Backend()
    return server


def post(server, value, **headers):
    url = f"http://127.0.0.1:{server.server_port}/mcp"
    request = urllib.request.Request(url, json.dumps(value).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECS) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.read().decode()}"


def smoke():
    server = bridge(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    call = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "hello"}}
    print(post(server, call))
    print(post(server, {"jsonrpc": "2.0", "id": "a", "method": "tools/list"}))
    print(post(server, call, Origin="https://evil.example"))
    server.shutdown()
    server.server_close()
    server.backend.close()


if sys.argv[1:] == ["--smoke"]:
    smoke()
else:
    print("A demonstration, not for production: no TLS, no login.", file=sys.stderr)
    bridge(int(sys.argv[1]) if sys.argv[1:] else 8080).serve_forever()
