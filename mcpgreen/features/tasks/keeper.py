"""The keeper: a second server of the same project, in a process that outlives this one. It serves the calls of tools
whose tasks survive the client.

The keeper is an ordinary server on a socket, so it decides by itself when a call becomes a task, and asks by itself.
This server is its client: it passes on the call, and to its own client all that the keeper says meanwhile. The task is
in the store, which both use. When this server ends, the keeper runs its tasks to their end and leaves.

Rule: nothing about a call or a task is decided here.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import gevent
from gevent.event import AsyncResult
from gevent.fileobject import FileObjectPosix
from gevent.os import nb_write
from gevent.queue import Queue

from mcpgreen import journal
from mcpgreen.errors import InternalError, MethodNotFound, RpcError, Unanswered
from mcpgreen.protocol import messages
from mcpgreen.protocol.messages import Line
from mcpgreen.running.processes.spawning import spawn_helper
from mcpgreen.running.processes.stopping import Tags
from mcpgreen.running.shares import let_others
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.call import Call
    from mcpgreen.features.services import Services
    from mcpgreen.links.session import Session
    from mcpgreen.links.sink import Sink
    from mcpgreen.project.roots import Roots

# With our own path, and without that of the working directory.
PROGRAM = "import sys; root, *sys.path = sys.argv[1:]"
PROGRAM += "; from mcpgreen.__main__ import serve; sys.exit(serve(root, keeps=True))"
READ_BYTES = 65536
ANSWER_SECS = 86_400.0  # the keeper gives up earlier
GONE_SECS = 0.01  # between two looks whether the process has ended
MAX_TOKENS = 1000
RELAYED = ("notifications/message", "notifications/tasks/status", "notifications/elicitation/complete")


class Keeper:
    """The process, which is started with the first call, and again if it was killed. `tools` are those whose calls it
    has served: an answer to a question of theirs is for it."""

    def __init__(self, services: Services, environ: Mapping[str, str]) -> None:
        """`environ` is the environment that this server was started with."""
        self.tools: set[str] = set()
        self._services = services
        self._environ = environ
        self._tag = Tags().of(0)  # so that its guardian, if it is killed, may clean up, although it is our child then
        self._fd = -1
        self._lines: Queue[bytes] = Queue()
        self._greenlets: list[gevent.Greenlet] = []
        self._last_id = 0
        self._calls: dict[int, tuple[Call, AsyncResult[Json]]] = {}
        self._askers: dict[object, gevent.Greenlet] = {}  # by the keeper's ids of its requests
        self._tokens: deque[str | int] = deque(maxlen=MAX_TOKENS)  # for the progress of tasks
        self._sink: Sink | None = None
        self._session: Session | None = None
        self._roots: Roots | None = None
        self._log_level: str | None = None

    def start(self) -> bool:
        """Start the process, unless it runs. Return False if that is not possible."""
        if self._fd >= 0:
            return True
        runner, root = self._services.runner, self._services.project.root
        command = [sys.executable, "-I", "-c", PROGRAM, root, *sys.path]
        try:
            runner.prepare()
            runner.tags.put_on(self._tag)
            pid, fd = spawn_helper(sys.executable, command, self._environ, as_fd=0, inherits=(2,))
        except (OSError, RpcError) as error:
            journal.error("tasks end with the client, because their process cannot be started: %s", error)
            return False
        finally:
            runner.tags.take_off()
        runner.expected_tags.add(self._tag)
        runner.know(pid)
        self._fd, self._session, self._lines = fd, None, Queue()
        self._greenlets = [gevent.spawn(self._write, fd, self._lines), gevent.spawn(self._read, fd, pid)]
        return True

    def serve(self, call: Call) -> Line:
        """Return the keeper's answer to the request: a result, questions, or a task."""
        self._services.waiting.remove(call)
        self.tools.add(str(call.params.get("name")))
        self._sink = call.stream.sink
        if call.session is not None:
            self._introduce(call, call.session)
        number, answer = self._ask(call.method, call.params)
        self._calls[number] = call, answer
        try:
            message = answer.get()
        except gevent.GreenletExit:
            self._send(messages.notification("notifications/cancelled", {"requestId": number}))
            raise
        finally:
            self._calls.pop(number, None)
        if "error" in message:
            return messages.error(call.id, message["error"])
        result = message["result"]
        if call.token is not None and "task" in result:
            self._tokens.append(call.token)
        return messages.response_in_pieces(call.id, jsontext.dump_pieces(result))

    def close(self) -> None:
        """Let go of the process, which leaves as soon as its tasks have ended."""
        ending = {*self._greenlets, *self._askers.values()} - {gevent.getcurrent()}
        gevent.killall(list(ending), block=False)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _introduce(self, call: Call, session: Session) -> None:
        """Tell the keeper what the client and this server have agreed on, if it is new."""
        view, roots = call.view, session.roots.current
        if session is not self._session:
            about = {"protocolVersion": view.revision.name, "capabilities": view.capabilities}
            self._ask("initialize", {**about, "clientInfo": {"name": "mcpgreen", "version": "1"}})
            self._send(messages.notification("notifications/initialized"))
            self._session, self._roots, self._log_level = session, roots, None
        if view.log_level is not None and view.log_level != self._log_level:
            self._log_level = view.log_level
            self._ask("logging/setLevel", {"level": view.log_level})
        if roots is not self._roots:
            self._roots = roots
            self._send(messages.notification("notifications/roots/list_changed"))

    def _ask(self, method: str, params: Json) -> tuple[int, AsyncResult[Json]]:
        self._last_id += 1
        self._send(messages.request(self._last_id, method, params))
        return self._last_id, AsyncResult()

    def _send(self, line: bytes) -> None:
        self._lines.put(line + b"\n")

    def _write(self, fd: int, lines: Queue[bytes]) -> None:
        """A greenlet of its own, since a call may be cancelled in the middle of a line."""
        with suppress(OSError):
            while True:
                rest = memoryview(lines.get())
                while rest:
                    rest = rest[nb_write(fd, rest[:READ_BYTES]) :]

    def _read(self, fd: int, pid: int) -> None:
        with suppress(OSError, ValueError):  # it may be killed in the middle of a line
            for line in FileObjectPosix(fd, "rb", READ_BYTES, close=False):
                self._take(jsontext.loads(line, let_others))
        self._end(pid)

    def _end(self, pid: int) -> None:
        """The process has ended by itself, or was killed. Another one may recover its tasks."""
        self.close()
        self._askers.clear()
        for _, answer in self._calls.values():
            answer.set({"error": {"code": InternalError.code, "message": "The process that ran the tool has ended."}})
        while self._services.runner.knows(pid):
            gevent.sleep(GONE_SECS)
        self._services.tasks.recover_soon()

    def _take(self, message: Json) -> None:
        number, method = message.get("id"), message.get("method")
        if method is None:
            if number in self._calls:
                self._calls[number][1].set(message)
        elif "id" in message:
            self._askers[number] = gevent.spawn(self._ask_client, number, method, message.get("params"))
        elif method == "notifications/cancelled":
            if asker := self._askers.pop(message["params"]["requestId"], None):
                asker.kill(block=False)
        elif method == "notifications/progress":
            token = message["params"]["progressToken"]
            call = next((call for call, _ in self._calls.values() if call.token == token), None)
            if self._sink is not None and (call is not None or token in self._tokens):
                self._sink.notify(jsontext.dumps(message), call)
        elif method in RELAYED and self._sink is not None:
            self._sink.notify(jsontext.dumps(message), is_droppable=method == RELAYED[0])

    def _ask_client(self, number: str | int, method: str, params: Json | None) -> None:
        session = self._session
        try:
            if session is None:
                raise Unanswered("there is no client")
            result = session.requests.ask(session.sink, method, params, timeout_secs=ANSWER_SECS)
            self._send(messages.response(number, jsontext.dumps(result)))
        except Unanswered as error:
            code = MethodNotFound.code if error.status == "unsupported" else InternalError.code
            self._send(messages.error(number, {"code": code, "message": str(error)}))
        finally:
            self._askers.pop(number, None)
