"""The limit for a Python server: read lines, spawn the script, write its output back.

Not an MCP server: it believes every message and ignores arguments. What it does do, it does as a server must: up to 16
scripts at a time, each in a session of its own.

usage: floor.py PROJECT     where PROJECT/tools holds NAME.sh and, for a listed description, NAME.meta.json

Rule: import nothing that the loop does not need. The time this file takes to start is itself a measurement.
"""

from __future__ import annotations

import os
import select
import signal
import sys

import ujson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CEILING = 16
CHUNK_BYTES = 65536

INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "floor-py", "version": "1"},
}


class Child:
    """One running script: whom to answer, and what it has printed so far."""

    def __init__(self, request_id: Any, path: str) -> None:
        self.request_id = request_id
        self.is_cancelled = False
        self.chunks: list[bytes] = []
        self.stdout, write_end = os.pipe()
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, write_end, 1)]
        self.pid = os.posix_spawn(path, [path], os.environ, file_actions=actions, setsid=True)
        os.close(write_end)


class Loop:
    def __init__(self, tools_folder: str) -> None:
        self.tools_folder = tools_folder
        self.tools: list[Any] | None = None
        self.waiting: list[tuple[Any, str]] = []
        self.children: dict[int, Child] = {}
        self.answers: list[str] = []
        self.poll = select.poll()
        self.poll.register(0, select.POLLIN)

    def run(self) -> None:
        rest = b""
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor:
                    self.read_output(descriptor)
                    continue
                chunk = os.read(0, CHUNK_BYTES)
                if not chunk:
                    return
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self.receive(ujson.loads(line))
            while self.waiting and len(self.children) < CEILING:
                child = Child(*self.waiting.pop(0))
                self.children[child.stdout] = child
                self.poll.register(child.stdout, select.POLLIN)
            self.flush()

    def receive(self, message: Any) -> None:
        method = message["method"]
        if method == "notifications/cancelled":
            for child in self.children.values():
                if child.request_id == message["params"]["requestId"]:
                    child.is_cancelled = True
                    os.killpg(child.pid, signal.SIGKILL)
        elif method == "tools/call":
            self.waiting.append((message["id"], f"{self.tools_folder}/{message['params']['name']}.sh"))
        elif method == "tools/list":
            if self.tools is None:
                self.tools = read_tools(self.tools_folder)
            self.answer(message["id"], {"tools": self.tools})
        elif method == "initialize":
            self.answer(message["id"], INITIALIZED)
        elif "id" in message:
            self.answer(message["id"], {})

    def read_output(self, descriptor: int) -> None:
        child = self.children[descriptor]
        chunk = os.read(descriptor, CHUNK_BYTES)
        if chunk:
            child.chunks.append(chunk)
            return
        self.poll.unregister(descriptor)
        os.close(descriptor)
        del self.children[descriptor]
        os.waitpid(child.pid, 0)
        if not child.is_cancelled:
            text = b"".join(child.chunks).decode("utf-8", "replace")
            self.answer(child.request_id, {"content": [{"type": "text", "text": text}]})

    def answer(self, request_id: Any, result: Any) -> None:
        message = {"jsonrpc": "2.0", "id": request_id, "result": result}
        self.answers.append(ujson.dumps(message, escape_forward_slashes=False))

    def flush(self) -> None:
        if self.answers:
            self.answers.append("")
            rest = memoryview("\n".join(self.answers).encode("ascii"))
            self.answers.clear()
            while rest:
                rest = rest[os.write(1, rest) :]


def read_tools(folder: str) -> list[Any]:
    tools = []
    for entry in sorted(os.listdir(folder)):
        if entry.endswith(".sh"):
            try:
                with open(f"{folder}/{entry[:-3]}.meta.json", "rb") as file:
                    tools.append(ujson.loads(file.read()))
            except FileNotFoundError:
                tools.append({"name": entry[:-3], "inputSchema": {"type": "object"}})
    return tools


if __name__ == "__main__":
    Loop(f"{sys.argv[1]}/tools").run()
