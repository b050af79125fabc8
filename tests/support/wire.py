"""Start the real server as a process and speak lines with it over real pipes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from tests.support.forking import Forked, Nursery, can_fork
from tests.support.waiting import PATIENCE_SECS

CHECKOUT = Path(__file__).resolve().parents[2]
LATEST_HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"
END_SECS = 2.0  # for a server to end when the test is over; then it is killed
Json = dict[str, Any]

META_PREFIX = "io.modelcontextprotocol/"
Server = TypeVar("Server", bound="ServerProcess")


def modern_meta(*, log_level: str | None = None, capabilities: Json | None = None, **more: Any) -> Json:
    meta = {META_PREFIX + "protocolVersion": MODERN, META_PREFIX + "clientCapabilities": capabilities or {}, **more}
    if log_level:
        meta[META_PREFIX + "logLevel"] = log_level
    return meta


class Asker:
    """Somebody with a `request` that gives the whole answer."""

    def request(self, method: str, params: Json | None = None, **options: Any) -> Json:
        raise NotImplementedError

    def result(self, method: str, params: Json | None = None, **options: Any) -> Json:
        answer = self.request(method, params, **options)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, params: Json | None = None, **options: Any) -> Json:
        answer = self.request(method, params, **options)
        assert "error" in answer, answer
        return answer["error"]


class ServerProcess:
    """A server, from its start to its end. A command line of its own makes it a fresh process, and so does `is_fresh`;
    others need not be one (see `forking`)."""

    def __init__(
        self,
        words: Sequence[str],
        environment: dict[str, str],
        *,
        command: Sequence[str] | None = None,
        directory: str | None = None,
        new_session: bool = False,
        is_fresh: bool = False,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.process: subprocess.Popen[bytes] | Forked
        if command is None and not is_fresh and can_fork(environment):
            self.process = nursery().fork(words, environment, directory, new_session=new_session)
        else:
            self.process = subprocess.Popen(
                [*(command or [sys.executable, "-m", "mcpgreen"]), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=directory,
                start_new_session=new_session,
                pass_fds=pass_fds,
            )
        self._threads: list[threading.Thread] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait(self, *, within_secs: float = PATIENCE_SECS) -> int:
        """Wait for the end of the process; its exit status."""
        return self.process.wait(within_secs)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for thread in self._threads:
            thread.join(PATIENCE_SECS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()

    def end(self) -> None:
        raise NotImplementedError

    def __enter__(self: Server) -> Server:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def _begin_thread(self, target: Callable[..., None], *values: object) -> None:
        self._threads.append(threading.Thread(target=target, args=values, daemon=True))
        self._threads[-1].start()


class Wire(Asker, ServerProcess):
    """One server process. Everything it writes is kept, and validated against `revision` when one is agreed."""

    def __init__(
        self,
        root: Path | str | None,
        *,
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = ("serve",),
        command: Sequence[str] | None = None,
        cwd: Path | str | None = None,
        new_session: bool = False,
        is_fresh: bool = False,
        pass_fds: Sequence[int] = (),
    ) -> None:
        words = [*(arguments if command is None else ()), *([] if root is None else ["--project-root", str(root)])]
        options = {"command": command, "new_session": new_session, "is_fresh": is_fresh, "pass_fds": pass_fds}
        super().__init__(words, clean_environment(env), directory=str(cwd) if cwd else None, **options)
        self.root = Path(root or "")
        self.revision: str | None = None
        self.methods: dict[Any, str] = {}  # of our requests, by id
        self.modern_marks: list[Any] = []  # ids and progress tokens of stateless requests
        self.seen: list[Json] = []
        self.raw_lines: list[bytes] = []
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._unclaimed: list[Json] = []
        self._stderr: list[bytes] = []
        self._next_id = 0
        self.may_read = threading.Event()  # a client that reads slowly clears it for a while
        self.may_read.set()
        self._begin_thread(self._read)
        self._begin_thread(self._read_stderr)

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        for line in data.split(b"\n"):
            self._note(line)
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, *values: Any) -> None:
        self.send_bytes(b"".join(json.dumps(value).encode() + b"\n" for value in values))

    def start_request(self, method: str, params: Json | None = None, *, id: Any = None) -> Any:
        """Send a request and give its id without waiting."""
        if id is None:
            self._next_id += 1
            id = self._next_id
        self.send({"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})})
        return id

    def notify(self, method: str, params: Json | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def receive(self, matches: Callable[[Json], bool], *, within_secs: float = PATIENCE_SECS) -> Json:
        """The first message that matches, also among those that came while we waited for something else."""
        for index, message in enumerate(self._unclaimed):
            if matches(message):
                return self._unclaimed.pop(index)
        give_up_at = time.monotonic() + within_secs
        while True:
            message = self._next_message(give_up_at)
            if matches(message):
                return message
            self._unclaimed.append(message)

    def next_line(self, *, within_secs: float = PATIENCE_SECS) -> bytes:
        """What the server says next, as it is."""
        line = self._lines.get(timeout=within_secs)
        assert line is not None, f"the server closed its output; stderr: {self.stderr[-2000:]}"
        return line

    def response(self, id: Any, *, within_secs: float = PATIENCE_SECS) -> Json:
        """The response with this id: same value, same JSON type."""
        return self.receive(
            lambda message: "method" not in message and type(message.get("id")) is type(id) and message.get("id") == id,
            within_secs=within_secs,
        )

    def notice(self, method: str, *, within_secs: float = PATIENCE_SECS) -> Json:
        return self.receive(lambda message: message.get("method") == method, within_secs=within_secs)

    def notices(self, method: str) -> list[Json]:
        """All notifications of this kind that have been read so far, without waiting."""
        return [message for message in self.seen if message.get("method") == method]

    def settle(self) -> list[Json]:
        """Everything that the server has said up to now: it answers a ping in the order of its input."""
        self.request("ping")
        return self.seen[:-1]

    def request(self, method: str, params: Json | None = None, **options: Any) -> Json:
        return self.response(self.start_request(method, params, **options))

    def handshake(self, revision: str = LATEST_HANDSHAKE, capabilities: Json | None = None) -> Json:
        result = self.result(
            "initialize",
            {
                "protocolVersion": revision,
                "capabilities": capabilities or {},
                "clientInfo": {"name": "tests", "version": "1"},
            },
        )
        self.notify("notifications/initialized")
        return result

    def greeted(self) -> Wire:
        """The same server, after a handshake."""
        try:
            self.handshake()
        except BaseException:
            self.end()
            raise
        return self

    def call_tool(self, name: str, arguments: Json | None = None, **params: Any) -> Json:
        """Handshake era: the result of a tool."""
        return self.result("tools/call", {"name": name, "arguments": arguments or {}, **params})

    def modern(self, method: str, params: Json | None = None, *, meta: Json | None = None, **options: Any) -> Json:
        """Stateless era: the whole answer."""
        return self.request(method, {**(params or {}), "_meta": {**modern_meta(), **(meta or {})}}, **options)

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def stop(self) -> int:
        """Leave as a client does: close the pipe and wait."""
        self.close_stdin()
        try:
            return self.wait()
        finally:
            self.kill()

    def end(self) -> None:
        """The test is over: the server goes at once and takes its scripts along. If it were killed, its guardian would
        do that, and look through all of /proc again and again."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECS)
        self.kill()

    @property
    def stderr(self) -> str:
        """So far; all of it, once the server has ended."""
        if self.process.poll() is not None:
            self._threads[1].join(END_SECS)
        return b"".join(self._stderr).decode("utf-8", "replace")

    def _next_message(self, give_up_at: float) -> Json:
        from tests.support import validation  # a second, which the process that only hands out tests need not take

        try:
            line = self._lines.get(timeout=max(0.001, give_up_at - time.monotonic()))
        except queue.Empty:
            raise AssertionError(f"no such message; seen: {self.seen[-5:]}; stderr: {self.stderr[-2000:]}") from None
        assert line is not None, f"the server closed its output; seen: {self.seen[-5:]}; stderr: {self.stderr[-2000:]}"
        self.raw_lines.append(line)
        message = json.loads(line)
        for single in message if isinstance(message, list) else [message]:
            validation.check(single, revision=self.revision, methods=self.methods, modern=self.modern_marks)
            if "result" in single and self.methods.get(single["id"]) == "initialize":
                self.revision = single["result"]["protocolVersion"]
        received = message if isinstance(message, dict) else {"batch": message}
        self.seen.append(received)
        return received

    def _note(self, line: bytes) -> None:
        """Remember what the answer to this request has to look like. Rubbish is not our business here."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        for single in message if isinstance(message, list) else [message]:
            id = single.get("id") if isinstance(single, dict) else None
            if not isinstance(id, (str, int, float)) or not isinstance(single.get("method"), str):
                continue
            self.methods[id] = single["method"]
            params = single.get("params")
            meta = params.get("_meta") if isinstance(params, dict) else None
            if isinstance(meta, dict) and META_PREFIX + "protocolVersion" in meta:
                self.modern_marks += [id, *([meta["progressToken"]] if "progressToken" in meta else [])]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.may_read.wait()
            self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._stderr.append(line)


Start = Callable[..., Wire]  # what the fixture `start` gives
CLIENTS_PASS_ON = ("HOME", "PATH", "TERM", "USER", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME")


@cache
def nursery() -> Nursery:
    return Nursery(clean_environment())


def command_of_tests() -> Path:
    """A program that is `mcpgreen` to shell scripts, and takes a tenth of the time to start."""
    return nursery().program if can_fork({}) else CHECKOUT / "scripts" / "mcpgreen"


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the SDK clients pass on to a server, and the checkout on Python's path. The tests can be run without forks
    from a running Python, and without tasks: these settings are passed on, too."""
    passed_on = (*CLIENTS_PASS_ON, "MCPGREEN_WARM_PYTHON", "MCPGREEN_TASKS")
    kept = {name: os.environ[name] for name in passed_on if name in os.environ}
    return {**kept, "PYTHONPATH": str(CHECKOUT), **(extra or {})}


def text_of(result: Json) -> str:
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")
