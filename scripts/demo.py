"""`make run`: a real client talks to the real server over a pipe, and the conversation is shown.

A transcript to read, not a test: it ends by itself, with exit status 0 if everything went as it should.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "demo", "version": "1"},
}
WIDTH = 150
Json = dict[str, Any]


class Client:
    """A client of thirty lines: JSON-RPC over the pipes of a child process."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [CHECKOUT / "scripts" / "mcpgreen", "serve", "--project-root", CHECKOUT / "project"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Two calls are refused on purpose; warnings about that would stand between the messages.
            env={"MCPGREEN_STDERR_LEVEL": "error", **os.environ, "MCPGREEN_PYTHON": sys.executable},
        )
        self._id = 0

    def send(self, method: str, params: Json | None = None, *, is_notification: bool = False) -> int:
        message: Json = {"jsonrpc": "2.0", "method": method}
        if not is_notification:
            self._id += 1
            message["id"] = self._id
        if params is not None:
            message["params"] = params
        self._write(message)
        return self._id

    def receive(self) -> Json:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise SystemExit("The server closed the connection.")
        message: Json = json.loads(line)
        show("server", message)
        return message

    def answer(self, request_id: int) -> Json:
        """The response to a request; what comes before it is shown."""
        while True:
            message = self.receive()
            if message.get("id") == request_id:
                return message

    def request(self, method: str, params: Json | None = None) -> Json:
        return self.answer(self.send(method, params))

    def close(self) -> int:
        assert self._server.stdin is not None
        self._server.stdin.close()
        return self._server.wait(timeout=15)

    def _write(self, message: Json) -> None:
        assert self._server.stdin is not None
        show("client", message)
        self._server.stdin.write(json.dumps(message).encode() + b"\n")
        self._server.stdin.flush()


def show(who: str, message: Json) -> None:
    line = json.dumps({name: value for name, value in message.items() if name != "jsonrpc"}, ensure_ascii=False)
    arrow = "-->" if who == "client" else "<--"
    print(f"  {arrow} {line if len(line) <= WIDTH else line[: WIDTH - 3] + '...'}")


def title(text: str) -> None:
    print(f"\n{text}")


def main() -> int:
    client = Client()

    title("A client of 2026-07-28 asks without a handshake: every request introduces itself.")
    client.request("server/discover", {"_meta": MODERN_META})

    title("A client of 2025-11-25, on the same pipe, shakes hands first.")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}}
    client.request("initialize", hello)
    client.send("notifications/initialized", is_notification=True)

    title("The executables in project/tools are the tools.")
    tools = client.request("tools/list")["result"]["tools"]
    print(f"      {len(tools)} tools: {', '.join(tool['name'] for tool in tools)}")

    title("A script that prints text, and one with structured output.")
    client.request("tools/call", {"name": "hello"})
    added = client.request("tools/call", {"name": "add", "arguments": {"numbers": [1, 2, 39]}})
    assert added["result"]["structuredContent"] == {"sum": 42, "count": 3}, added

    title("Progress and log messages come while the script runs.")
    client.request("tools/call", {"name": "countdown", "_meta": {"progressToken": "demo"}})

    title("A call that is cancelled gets no answer; its processes are gone. The ping behind it is answered.")
    running = client.send("tools/call", {"name": "countdown", "arguments": {"from": 60}, "_meta": {"progressToken": 7}})
    while client.receive().get("method") != "notifications/progress":
        pass
    client.send("notifications/cancelled", {"requestId": running}, is_notification=True)
    client.request("ping")

    title("A file in project/resources is a resource; a script in project/providers serves a template.")
    client.request("resources/read", {"uri": "example://about"})
    source = client.request("resources/read", {"uri": "source://hello"})
    assert "Hello" in source["result"]["contents"][0]["text"], source

    title("A file in project/prompts is a prompt; the values of an argument can be completed.")
    explain = {"type": "ref/prompt", "name": "explain"}
    client.request("completion/complete", {"ref": explain, "argument": {"name": "audience", "value": "a"}})
    arguments = {"topic": "pipes", "audience": "a child"}
    explained = client.request("prompts/get", {"name": "explain", "arguments": arguments})
    print(f"      {explained['result']['messages'][0]['content']['text']}")

    title("Arguments that do not fit: the model is told what to mend.")
    refused = client.request("tools/call", {"name": "add", "arguments": {"numbers": ["one"]}})
    assert refused["result"]["isError"], refused

    title("A tool that does not exist: an error of the protocol.")
    unknown = client.request("tools/call", {"name": "teleport"})
    assert unknown["error"]["code"] == -32602, unknown

    began_at = time.monotonic()
    status = client.close()
    took_secs = time.monotonic() - began_at
    title(f"The client closed the pipe; the server left {took_secs:.2f} s later with exit code {status}.")
    print("\nTry it with your own scripts: drop an executable into project/tools/, then point your client at")
    print(f"  {CHECKOUT / 'scripts' / 'mcpgreen'} serve --project-root {CHECKOUT / 'project'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
