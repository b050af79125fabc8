"""A caller who takes all that can be had, of one pool after the other, and another who wants to be served meanwhile.

    python -m tests.abuse.callers [--seed N] [NAME ...]

for half a second each, or for MCPGREEN_CALLERS_SECS. Over HTTP with OAuth: Mallory attacks from a process of its own,
as one principal or, now and then, as two; what it sends is drawn by lot. Ada calls tools, has arguments checked, lists,
subscribes and opens sessions. Each of these has to succeed; how long the longest took is a figure of the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.abuse.luck import Luck
from tests.support.http import HttpClient, HttpServer
from tests.support.issuer import RESOURCE, Issuer
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM
from tests.support.wire import MODERN, modern_meta
from tests.transports.http.attacking import Raw, head, mcp_lines, posted

SECS = float(os.environ.get("MCPGREEN_CALLERS_SECS", "0.5"))
SETTINGS: dict[str, Any] = {
    "http_max_connections": 200,
    "http_max_sessions": 40,
    "http_session_idle_secs": 5,
    "max_line_bytes": 100_000,
    "MAX_QUEUED_REQUESTS": 100,
    "MAX_QUEUED_BYTES": 4 << 20,
    "MAX_BACKLOG_BYTES": 4 << 20,
    "MAX_SUBSCRIPTIONS": 100,
    "MAX_LISTENS": 100,
    "MAX_PARKED": 8,
    "CHECK_SECS": 1,
}
SLOW = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a|a)*$"}}}
CHECKED = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^[a-z]+$"}}}
RESOURCES = 120
MOST_CONNECTIONS = 150


class Attacker:
    """What one attack needs to draw: `token` and `session` are those of one of its principals."""

    def __init__(self, address: tuple[str, int], luck: Luck, tokens: list[str], uris: list[str]) -> None:
        self.address = address
        self.luck = luck
        self.uris = uris
        self._tokens = tokens
        self._sessions: list[tuple[str, str]] = []  # with their tokens

    def request(self, method: str, params: dict[str, Any], *lines: str, capabilities: Any = None) -> bytes:
        """A stateless one."""
        meta = modern_meta(capabilities=capabilities)
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        named = [f"Mcp-Name: {params['name']}"] if "name" in params else []
        version = f"MCP-Protocol-Version: {MODERN}"
        return posted(message, self.bearer(), version, f"Mcp-Method: {method}", *named, *lines)

    def call(self, name: str, arguments: Any = None, **options: Any) -> bytes:
        """By a session as often as without."""
        if self._sessions and self.luck.chance(0.5) and not options:
            key, token = self.luck.pick(self._sessions)
            params = {"name": name, "arguments": arguments or {}, "_meta": {"progressToken": 1}}
            message = {"jsonrpc": "2.0", "id": self.luck.size(1, 1 << 30), "method": "tools/call", "params": params}
            version = "MCP-Protocol-Version: 2025-11-25"
            return posted(message, f"Authorization: Bearer {token}", f"Mcp-Session-Id: {key}", version)
        return self.request("tools/call", {"name": name, "arguments": arguments or {}}, **options)

    def bearer(self) -> str:
        return f"Authorization: Bearer {self.luck.pick(self._tokens)}"

    def initialize(self) -> bytes:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "m", "version": "1"}}
        return posted({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, self.bearer())

    def open_sessions(self, number: int) -> None:
        for _ in range(number):
            with socket.create_connection(self.address, timeout=60) as sock:
                request = self.initialize()
                answer = Raw(sock).send(request).answer()
                if answer.status == 200:
                    token = request.partition(b"Bearer ")[2].partition(b"\r\n")[0].decode()
                    self._sessions.append((answer.headers["mcp-session-id"], token))

    def flood(self, draw: Callable[[Attacker], bytes], give_up_at: float, *, is_read: bool) -> None:
        """Requests on many connections, which are kept open, or left for others, as it happens."""
        with contextlib.ExitStack() as ends:
            socks: list[socket.socket] = []
            while time.monotonic() < give_up_at:
                if len(socks) < MOST_CONNECTIONS:
                    socks.append(ends.enter_context(socket.create_connection(self.address, timeout=60)))
                    socks[-1].setblocking(False)
                sock = socks[-1] if len(socks) < MOST_CONNECTIONS else self.luck.pick(socks)
                is_over = self.luck.chance(0.002)
                try:
                    with contextlib.suppress(BlockingIOError):
                        while is_read:
                            is_over |= not sock.recv(1 << 20)
                            if is_over:
                                break
                    sock.send(draw(self))
                except BlockingIOError:
                    pass  # the server does not read what is on its way already
                except OSError:
                    is_over = True
                if is_over:
                    sock.close()
                    socks.remove(sock)
                time.sleep(0.0005)


class Attack(NamedTuple):
    """`draw` is its next request."""

    draw: Callable[[Attacker], bytes]
    sessions: int = 0
    is_read: bool = True


def uris_of(one: Attacker) -> list[str]:
    return [one.luck.pick(one.uris) for _ in range(one.luck.size(1, len(one.uris)))]


def listen(one: Attacker, wanted: dict[str, Any]) -> bytes:
    return one.request("subscriptions/listen", {"notifications": wanted})


ATTACKS = {
    "nothing": Attack(lambda one: b""),
    "slots": Attack(lambda one: one.call("wait"), sessions=8),
    "one tool": Attack(lambda one: one.call(one.luck.pick(["single", "quick"])), sessions=2),
    "the line": Attack(lambda one: one.call("quick", {"x": "y" * one.luck.size(1, 90_000)}), sessions=8),
    "checkers": Attack(lambda one: one.call(one.luck.pick(["slow", "slow-output"]), {"text": "a" * 60 + "b"})),
    "watches": Attack(lambda one: listen(one, {"resourceSubscriptions": uris_of(one)})),
    "listens": Attack(lambda one: listen(one, {"toolsListChanged": True})),
    "questions": Attack(lambda one: one.call("asker", capabilities=FORM)),
    "sessions": Attack(lambda one: one.initialize()),
    "half heads": Attack(lambda one: one.call("quick")[: one.luck.size(1, 300)]),
    "half bodies": Attack(
        lambda one: (
            head("POST", "/mcp", one.bearer(), *mcp_lines(), "Content-Length: 99999") + b" " * one.luck.size(1, 99_999)
        )
    ),
    "large outputs": Attack(lambda one: one.call("large"), sessions=4),
    "unread answers": Attack(lambda one: one.call("large"), sessions=4, is_read=False),
    "kept streams": Attack(lambda one: one.call("chatty"), sessions=8),
    "made-up tokens": Attack(
        lambda one: one.request("tools/list", {}).replace(b"Bearer ", b"Bearer %d" % one.luck.size(1, 9999))
    ),
}


class Figures(NamedTuple):
    """Of one attack: how often Ada was served, how long that took at the worst, and what went wrong."""

    served: int
    longest_secs: float
    findings: list[str]


class Victim:
    """One round is a bit of everything."""

    def __init__(self, server: HttpServer, token: str, uri: str) -> None:
        self._server = server
        self._token = token
        self._uri = uri

    def wishes(self) -> Iterator[tuple[str, Callable[[HttpClient], object]]]:
        yield "call", lambda ada: ada.call_tool("quick")["content"][0]["text"] == "done\n"
        yield "checked call", lambda ada: ada.call_tool("checked", {"text": "abc"})["content"][0]["text"] == "done\n"
        yield "list", lambda ada: ada.result("tools/list")["tools"]
        yield "listen", self._listens
        yield "session", lambda ada: self._opens_session()

    def be_served(self, name: str, wish: Callable[[HttpClient], object]) -> tuple[float, str]:
        """How long it took, and what is wrong."""
        ada = HttpClient(self._server.url, revision=MODERN, token=self._token)
        began_at, problem = time.monotonic(), ""
        try:
            if not wish(ada):
                problem = f"{name}: a wrong answer"
        except (AssertionError, OSError, LookupError, ValueError) as error:
            problem = f"{name}: {type(error).__name__} {str(error)[:200]}"
        finally:
            ada.close()
        return time.monotonic() - began_at, problem

    def _listens(self, ada: HttpClient) -> object:
        reply = ada.start("subscriptions/listen", {"notifications": {"resourceSubscriptions": [self._uri]}})
        params = reply.notice("notifications/subscriptions/acknowledged")["params"]
        return params["notifications"]["resourceSubscriptions"] == [self._uri]

    def _opens_session(self) -> bool:
        client = HttpClient(self._server.url, token=self._token)
        try:
            client.handshake()
            return client.delete().status == 204
        finally:
            client.close()


def suffer(victim: Victim, attacker: Attacker, attack: Attack, secs: float) -> Figures:
    pid = os.fork()
    if pid == 0:
        try:
            attacker.open_sessions(attack.sessions)
            attacker.flood(attack.draw, time.monotonic() + secs, is_read=attack.is_read)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    served, longest_secs, findings, ended = 0, 0.0, [], (0, 0)
    while ended == (0, 0):
        for name, wish in victim.wishes():
            took_secs, problem = victim.be_served(name, wish)
            longest_secs = max(longest_secs, took_secs)
            served += not problem
            findings += [problem] if problem else []
        ended = os.waitpid(pid, os.WNOHANG)
    return Figures(served, longest_secs, findings if ended[1] == 0 else [*findings, "the attack itself has failed"])


def project_at(place: Path) -> ProjectBuilder:
    project = ProjectBuilder(place)
    project.tool("quick", "echo done")
    project.tool("wait", "sleep 600")
    project.tool("single", "sleep 0.2; echo done", maxConcurrent=2)
    project.tool("slow", "echo done", inputSchema=SLOW)
    project.tool("slow-output", 'echo "$MCP_TOOL_ARGS_JSON"', outputSchema=SLOW)
    project.tool("checked", "echo done", inputSchema=CHECKED)
    project.tool("large", "head -c 1500000 /dev/zero | tr '\\0' x; sleep 1")
    line = '{"progress": %d, "message": "\'$(printf %01000d 0)\'"}'
    project.tool("chatty", f"for n in 1 2 3 4 5 6 7 8; do printf '{line}\\n' $n >>\"$MCP_PROGRESS_STREAM\"; done")
    project.python_tool("asker", f"{ASK}\nask({{'who': form('Who?', name=TEXT)}})\n")
    for number in range(RESOURCES):
        project.resource(f"r{number}.txt", "one")
    return project


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.abuse.callers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ATTACKS))
    options = parser.parse_args(arguments)
    issuer, faults = Issuer(), 0
    with tempfile.TemporaryDirectory() as place:
        project = project_at(Path(place) / "project")
        keys = str(project.write("keys.json", json.dumps({"keys": issuer.keys})))
        uris = [(project.root / "resources" / f"r{number}.txt").as_uri() for number in range(RESOURCES)]
        oauth = {"http_oauth_issuer": issuer.name, "http_oauth_jwks_url": keys, "http_public_url": RESOURCE}
        settings = {**SETTINGS, **oauth}
        ada, mallory, eve = (issuer.token(sub=name, exp=time.time() + 36_000) for name in ("ada", "mallory", "eve"))
        print(f"{'attack':16} {'served':>8} {'longest wait':>13}")
        for name in options.names or ATTACKS:
            luck = Luck(options.seed * len(ATTACKS) + list(ATTACKS).index(name))
            tokens = [mallory, eve] if luck.chance(0.3) else [mallory]
            with HttpServer(project.root, **settings) as server:
                attacker = Attacker(server.address, luck, tokens, uris)
                figures = suffer(Victim(server, ada, uris[0]), attacker, ATTACKS[name], SECS)
                findings = figures.findings + (["a traceback"] if "Traceback" in server.stderr else [])
            print(f"{name:16} {figures.served:8} {figures.longest_secs * 1000:10.1f} ms", flush=True)
            for finding in findings[:5]:
                print(f"  {finding} (--seed {options.seed} '{name}')", flush=True)
            faults += len(findings)
    issuer.stop()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
