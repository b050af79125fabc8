"""Start the server as a client does, and be that client: handshake, tools, what is missing. Part of `doctor --as`.

Rule: the server gets what the client gives it and nothing of ours; it is ended whatever happens.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from mcpgreen.catalog.tools import discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli import children
from mcpgreen.cli.checking.findings import ERROR, OK, WARNING, Check
from mcpgreen.cli.clients.launch import ALLOW_LIST, ROOT, launch_of
from mcpgreen.cli.doctor.client_entry import Start
from mcpgreen.errors import McpgreenError
from mcpgreen.project.project import Project
from mcpgreen.protocol.revisions import LATEST_HANDSHAKE
from mcpgreen.running.scripts import shebang
from mcpgreen.settings.settings import Settings
from mcpgreen.settings.table import ROWS, load
from mcpgreen.text import jsontext

START_SECS = 30.0
SLOW_SECS = 10.0  # after which some clients give up
MAX_LINE_BYTES = 10 << 20  # as clients have it
STDERR_BYTES = 600
LAST_WORDS_SECS = 0.2
MAX_PAGES = 64
MOST_NAMED = 5


PROJECT_FILE = "project file: "  # of an origin

# The entry's arguments name the project, and without an allow-list all tools are allowed.
SAID_OTHERWISE = (ROOT, ALLOW_LIST)


class NoAnswer(McpgreenError):
    """The server did not do what a client needs. Says what."""


class Met(NamedTuple):
    """What was seen of a server that works."""

    took_secs: float
    info: dict[str, Any]
    tools: list[str]


def start_checks(start: Start, project: Project, settings: Settings) -> Iterator[Check]:
    """Whether it starts, how long that takes, and what is missing."""
    command = start.words[0]
    place = shutil.which(command, path=start.env["PATH"])
    if place is None:
        fix = f"write the whole path of the command: mcpgreen config --client {start.client.word} --install"
        yield Check("entry", ERROR, f"{start.client.title} does not find {command}, on the PATH that it has", fix)
        return
    if not os.path.isdir(start.cwd):
        yield Check(
            "entry", ERROR, f"the directory {start.cwd} of the entry does not exist", "correct cwd in the entry"
        )
        return
    yield Check("entry", OK, f"{start.path}: {' '.join(start.words)}")
    yield from _overruled(start, settings)
    try:
        met = meet(start)
    except NoAnswer as error:
        yield Check("start", ERROR, str(error), "try the same line in a terminal; mcpgreen doctor checks the rest")
        return
    name = met.info.get("name", "a server without a name")
    message = f"{name} answered after {met.took_secs * 1000:.0f} ms and has {len(met.tools)} tools"
    is_slow = met.took_secs > SLOW_SECS
    advice = "see what server.d/env.sh and register.sh do that takes so long" if is_slow else None
    yield Check("start", WARNING if is_slow else OK, message, advice)
    yield from _missing(start, project, settings, met)


def _overruled(start: Start, settings: Settings) -> Iterator[Check]:
    """The environment comes before the files of the project, so an entry can undo what they say: an allow-list that was
    written after the entry, for one."""
    of_entry = load({}, start.env, {})
    for row in ROWS:
        name = next((variable for variable in row.variables if start.env.get(variable)), None)
        is_of_project = settings.origin(row.name).startswith(PROJECT_FILE)
        if name and is_of_project and getattr(of_entry, row.name) != getattr(settings, row.name):
            message = f"{name} in the entry overrules {row.name}, which the project sets in server.d/"
            fix = f"remove it from the entry, or: mcpgreen config --client {start.client.word} --install"
            yield Check("entry", WARNING, message, fix)


def _missing(start: Start, project: Project, settings: Settings, met: Met) -> Iterator[Check]:
    tools = discover_tools(project, survey(project, [project.tools_dir])).items
    lost = sorted({tool.name for tool in tools} - set(met.tools))
    if lost and not os.path.lexists(project.server_file("register.json")):
        fix = "see that the entry names this project, and has the variables that it needs"
        yield Check("missing", WARNING, f"tools that are in the project: {_some(lost)}", fix)
    unrunnable = []
    for tool in tools:
        fault = shebang.fault_of(tool.path, search_path=start.env["PATH"]) if tool.command[0] == tool.path else None
        if fault:
            unrunnable.append(f"{project.shown(tool.path)} {fault}")
    if unrunnable:
        fix = "add a PATH with these interpreters to env in the entry, or name them by their whole path"
        yield Check("missing", ERROR, _some(unrunnable), fix)
    launch = launch_of(project, settings, os.environ)
    unset = [name for name in (*launch.env, *launch.left_out) if name not in start.env and name not in SAID_OTHERWISE]
    if unset:
        fix = f"mcpgreen config --client {start.client.word} --install; add secrets to env in the entry yourself"
        yield Check("missing", WARNING, f"variables that are set here, and not in the entry: {_some(unset)}", fix)
    if not lost and not unrunnable and not unset:
        yield Check("missing", OK, "nothing")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def meet(start: Start) -> Met:
    """Greet the server and ask for its tools. Raises NoAnswer."""
    began_at = time.monotonic()
    try:
        # Popen looks for the program on our PATH, the client on its own.
        words = (shutil.which(start.words[0], path=start.env["PATH"]) or start.words[0], *start.words[1:])
        child = children.started(words, env=start.env, cwd=start.cwd, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, ValueError) as error:
        raise NoAnswer(f"{start.words[0]} cannot be started: {error}") from error
    session = _Session(child, began_at + START_SECS)
    try:
        info = session.ask("initialize", _GREETING).get("serverInfo")
        took_secs = time.monotonic() - began_at
        session.send({"method": "notifications/initialized"})
        return Met(took_secs, info if isinstance(info, dict) else {}, session.tool_names())
    except (OSError, NoAnswer) as error:
        raise NoAnswer(f"{error}{session.last_words()}") from error
    finally:
        children.end(child)


_GREETING = {
    "protocolVersion": LATEST_HANDSHAKE.name,
    "capabilities": {},
    "clientInfo": {"name": "mcpgreen doctor", "version": "1"},
}


class _Session:
    def __init__(self, child: subprocess.Popen[bytes], give_up_at: float) -> None:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        self._child = child
        self._stdin = child.stdin
        self._stdout, self._stderr = child.stdout.fileno(), child.stderr.fileno()
        self._open = [self._stdout, self._stderr]
        self._give_up_at = give_up_at
        self._last_id = 0
        self._unread = b""
        self._tail = b""  # of what it says on stderr

    def send(self, message: dict[str, Any]) -> None:
        self._stdin.write(jsontext.dumps({"jsonrpc": "2.0", **message}) + b"\n")

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        self.send({"id": self._last_id, "method": method, "params": params})
        while True:
            line = self._line(method)
            try:
                message = jsontext.loads(line)
            except ValueError:
                raise NoAnswer(f"it printed what is no message: {line[:80].decode('utf-8', 'replace')!r}") from None
            if isinstance(message, dict) and message.get("id") == self._last_id and "method" not in message:
                if not isinstance(message.get("result"), dict):
                    raise NoAnswer(f"{method} was refused: {str(message.get('error'))[:200]}")
                result: dict[str, Any] = message["result"]
                return result

    def tool_names(self) -> list[str]:
        names: list[str] = []
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            page = self.ask("tools/list", params)
            names += [str(tool.get("name")) for tool in page.get("tools", ())]
            if not page.get("nextCursor"):
                break
            params = {"cursor": page["nextCursor"]}
        return names

    def _line(self, method: str) -> bytes:
        while b"\n" not in self._unread:
            if not self._read(self._give_up_at):
                is_late = time.monotonic() >= self._give_up_at
                why = f"{method}: no answer in {START_SECS:.0f} s" if is_late else "it ended without an answer"
                raise NoAnswer(why)
            if len(self._unread) > MAX_LINE_BYTES:
                raise NoAnswer(f"{method}: an answer of more than {MAX_LINE_BYTES >> 20} MiB")
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _read(self, until: float) -> bool:
        """Take what comes next on either; whether there can be more on stdout."""
        heard = children.hear(self._open, until)
        for descriptor, chunk in heard:
            if descriptor == self._stdout:
                self._unread += chunk
            else:
                self._tail = (self._tail + chunk)[-STDERR_BYTES:]
        return bool(heard) and self._stdout in self._open

    def last_words(self) -> str:
        """How it ended, if it did, and what it said before."""
        until = time.monotonic() + LAST_WORDS_SECS
        while self._stderr in self._open and time.monotonic() < until:
            self._read(until)
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(LAST_WORDS_SECS)
        status = f" (status {self._child.returncode})" if self._child.returncode else ""
        tail = self._tail.decode("utf-8", "replace").strip()
        return f"{status}; it said: {tail}" if tail else status
