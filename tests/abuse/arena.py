"""A server to be attacked: its project, its process, and whether it is as it was once an attack is over.

As root the server runs as `nobody`, as far as it can read the checkout: a script of root's could do everything, and
nothing that is forbidden to scripts could be seen to hold. RLIMIT_AS keeps a server that is not bounded by itself from
taking the machine with it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.abuse.hub_turns import STACKS, environment
from tests.abuse.link import PULSE, SECRET, Json, Link, ServerDied, ServerHangs, decline
from tests.abuse.measure import Figures, Probe, family_of, files_below, forget_peak
from tests.abuse.notes import Reader
from tests.abuse.scripts import hostile
from tests.support.constants import variables_of
from tests.support.descriptors import descriptors_of, new_descriptors
from tests.support.processes import MIB, command_of, memory_bytes, proc_text
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import CHECKOUT, LATEST_HANDSHAKE, clean_environment, modern_meta

MOST_ADDRESS_SPACE_KIB = 2 << 20
WITH_LESS_MEMORY = ("/bin/sh", "-c", f'ulimit -v {MOST_ADDRESS_SPACE_KIB}; exec "$@"', "sh")
NOBODY = 65534
SETTLE_SECS = 15.0
EXIT_SECS = 20.0
TOKEN = "a-secret-of-more-than-32-characters-for-the-owner"
SOCKETS = f"mcpgreen-{os.geteuid()}"
OF_SCRIPTS = ("churn.", "odd.", "filler.")  # how the names begin of what hostile scripts leave behind
CAPABILITIES: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}
SETTINGS = {
    "compat_batches": "true",
    "KILL_GRACE_SECS": 0.2,
    "DRAIN_SECS": 0.1,
    "EOF_GRACE_SECS": 0.2,
    "max_progress_per_min": 0,  # the pulse; what hostile scripts report is not throttled either then
    "PARKED_SECS": 1,
    "ASK_SECS": 2,
    "max_timeout_secs": 86400,
}

MAIL = r"^([a-zA-Z0-9_.+-]+)*@([a-zA-Z0-9-]+\.)+[a-z]{2,}$"
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "unique": {"type": "array", "uniqueItems": True},
        "mail": {"type": "string", "pattern": MAIL},
        "slow": {"type": "string", "pattern": r"^(a|aa)+$"},
        "words": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
        "plain": {"type": "array", "items": {"type": "integer"}},
        "text": {"type": "string"},
        "tree": {"$ref": "#/$defs/tree"},
        "choice": {"type": "array", "items": {"anyOf": [{"properties": {"kind": {"const": c}}} for c in "abc"]}},
    },
    "$defs": {"tree": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}},
}
PULSE_TOOL = """
import os, time
fd = int(os.environ["MCP_LOG_STREAM"].rpartition("/")[2])
number = 0
while True:
    number += 1
    params = '{"progress": %d, "message": "%d"}' % (number, time.monotonic_ns())
    os.write(fd, ('{"method": "notifications/progress", "params": %s}\\n' % params).encode())
    time.sleep(0.01)
"""
REPORTING_TOOL = """for number in 1 2 3 4 5; do
  echo '{"method":"notifications/progress","params":{"progress":'$number'}}'
done > "$MCP_LOG_STREAM"
"""
ASKING_TOOL = """reply="$MCP_ASK_REPLY.$$.1"
printf '{"reply": "%s", "ask": {"who": {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?",
 "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}}}\\n' "$reply" |
  tr -d '\\n' >> "$MCP_LOG_STREAM"
echo >> "$MCP_LOG_STREAM"
until [ -e "$reply" ]; do sleep 0.01; done
cat "$reply"
"""

_numbers = itertools.count(1)


class Arena:
    """A place on disk, and the servers that run there one after another."""

    def __init__(self, base: Path | None = None) -> None:
        self.mark = f"90.{os.getpid():07d}{next(_numbers):05d}"
        self.base = Path(tempfile.mkdtemp(prefix="abuse.", dir=base))
        self.project = ProjectBuilder(self.base / self.mark / "project")
        self.tmp = self.base / self.mark / "tmp"
        self.stderr = self.base / "stderr"
        self.tmp.mkdir()
        _furnish(self.project)
        self._user = NOBODY if os.geteuid() == 0 and _can_nobody_read(CHECKOUT) else None
        if self._user is not None:
            self.base.chmod(0o755)
            for path in (self.base / self.mark).rglob("*"):
                shutil.chown(path, NOBODY, NOBODY)
            shutil.chown(self.base / self.mark, NOBODY, NOBODY)

    def start(self, *, has_token: bool = False) -> Bout:
        """A server after its handshake, used once for everything, so that what it keeps for good is there."""
        token = TOKEN if has_token else None
        bout = Bout(self, *self._spawn(token), token)
        bout.greet()
        return bout

    def start_silent(self) -> Bout:
        """A server that nobody has spoken to."""
        return Bout(self, *self._spawn(None), None)

    def _spawn(self, token: str | None) -> tuple[subprocess.Popen[bytes], Reader]:
        turns = Reader()
        env = clean_environment(
            {
                **variables_of(SETTINGS),
                **environment(turns, stacks=os.environ.get(STACKS, "")),
                "TMPDIR": str(self.tmp),
                **({"MCPGREEN_REMOTE_TOKEN": token} if token else {}),
            }
        )
        identity: dict[str, Any] = {}
        if self._user is not None:
            identity = {"user": self._user, "group": self._user, "extra_groups": []}
            env["HOME"] = str(self.tmp)
        with open(self.stderr, "ab") as stderr:
            process = subprocess.Popen(
                [
                    *WITH_LESS_MEMORY,
                    sys.executable,
                    "-m",
                    "mcpgreen",
                    "serve",
                    "--project-root",
                    str(self.project.root),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                cwd="/",
                pass_fds=[turns.fd],
                **identity,
            )
        return process, turns

    def left_processes(self) -> list[str]:
        """What carries our mark, be it below a server or not."""
        return [f"{pid} {command}" for pid, command in _marked(self.mark)]

    def left_attributable_processes(self) -> list[str]:
        """The same without those that have shed every mark of their call: while others run nobody can tell whose they
        are, and when the server is killed nobody knows them."""
        return [f"{pid} {command}" for pid, command in _marked(self.mark) if not _is_nobodys(pid)]

    def left_files(self) -> list[str]:
        """But for what a script put in the place of the state directory, and the directory for the sockets of all
        servers: those are not the server's to remove."""
        names = sorted(files_below(self.tmp))
        return [name for name in names if name != SOCKETS and not _is_stand_in(self.tmp / name.partition("/")[0])]

    def tidy(self) -> None:
        """Remove what scripts left of their own accord: it is theirs, and goes with the server at the latest."""
        for path in (*self.project.root.glob("*/*"), *self.tmp.glob("*/*")):
            if path.name.startswith(OF_SCRIPTS):
                _remove(path)

    def clear(self) -> None:
        """End whatever is left, and remove what it left."""
        for pid, _ in _marked(self.mark):
            _kill(pid)
        self.tidy()
        for path in self.tmp.iterdir():
            _remove(path)

    def close(self) -> None:
        self.clear()
        _remove(self.base)


class Bout:
    """One server, from its start to its end."""

    def __init__(self, arena: Arena, process: subprocess.Popen[bytes], turns: Reader, token: str | None) -> None:
        self.arena = arena
        self.process = process
        self._turns = turns
        self.probe = Probe(process.pid, turns, project=arena.project.root, tmp=arena.tmp)
        self.link = Link(process, self.probe, token=token, mark=arena.mark, project=arena.project.root)
        self.memory_at_first_bytes = 0
        self._own: set[int] = set()  # processes that live as long as the server
        self._descriptors: list[str] = []

    def greet(self) -> None:
        link = self.link
        about = {
            "protocolVersion": LATEST_HANDSHAKE,
            "capabilities": CAPABILITIES,
            "clientInfo": {"name": "x", "version": "1"},
        }
        hello = link.request("initialize", about)
        link.send(hello, link.honest({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        link.wait_for(hello)
        for arguments in ({"unique": [{"a": 1}, {"a": 2}]}, {"mail": "ada@example.com"}, {"mail": "ada"}):
            link.ask(link.call("strict", arguments))
        self.require_right_answers()
        link.send(link.call("pulse", {}, timeoutSecs=3600, _meta={"progressToken": PULSE}))
        link.wait(0.15)
        self._own = {relative.pid for relative in family_of(self.process.pid)}
        self._descriptors = self._open_descriptors()
        self.memory_at_first_bytes = memory_bytes(self.process.pid)

    def suffer(self, action: Callable[[Link], None]) -> Figures:
        """Let somebody do harm, and see whether all is as before."""
        figures = self.probe.begin()
        forget_peak(self.process.pid)
        logged_before = self.arena.stderr.stat().st_size
        try:
            action(self.link)
            self.link.answer = decline
            self.link.forget_answers()
            self.link.settle()
            self.probe.sample()
            self.arena.tidy()
            self.require_right_answers()
            figures.findings += self._leftovers()
        except (ServerDied, ServerHangs) as error:
            figures.findings.append(f"{error}{self._last_words()}")
        except AssertionError as error:
            figures.findings.append(f"wrong answers afterwards: {error}")
        figures.findings += sorted(set(self.link.faults))
        self.link.faults.clear()
        self.link.forget_answers()
        figures.stderr_bytes = self.arena.stderr.stat().st_size - logged_before
        return figures

    @property
    def is_well(self) -> bool:
        """Whether the next attack can be seen apart from this one."""
        return self.process.poll() is None and not self.probe.figures.findings

    def require_right_answers(self) -> None:
        link = self.link
        names = {tool["name"] for tool in _result(link.ask(link.request("tools/list")))["tools"]}
        assert {"quick", "strict", "hostile"} <= names, names
        assert _result(link.ask(link.call("quick")))["content"] == [{"type": "text", "text": "done\n"}]
        assert _result(link.ask(link.call("strict", {"plain": ["x"]})))["isError"] is True
        note = _result(link.ask(link.request("resources/read", {"uri": "notes:note"})))
        assert note["contents"][0]["text"] == "a note\n", note
        meta = modern_meta()
        stateless = link.ask(link.request("tools/call", {"name": "quick", "arguments": {}, "_meta": meta}))
        assert _result(stateless)["content"][0]["text"] == "done\n", stateless

    def end(self, how: Callable[[subprocess.Popen[bytes]], None]) -> Figures:
        """Let the server end, and see whether anything is left."""
        figures = self.probe.figures
        self.probe.note_turns()  # whoever ends may take its time
        began_at = time.monotonic()
        how(self.process)
        status = self._wait_for_end()
        figures.longest_exit_secs = time.monotonic() - began_at
        if status is None:
            figures.findings.append(f"the server still runs {EXIT_SECS:g} s after its end{self._last_words()}")
        elif status not in (0, 130, -signal.SIGKILL):
            figures.findings.append(f"the server exited with status {status}{self._last_words()}")
        self.kill()
        is_killed = status == -signal.SIGKILL
        processes = self.arena.left_attributable_processes if is_killed else self.arena.left_processes
        for what, left in (("processes", processes), ("files", self.arena.left_files)):
            if found := _settled(left):
                figures.findings.append(f"{what} are left after the end: {found[:5]}")
        self.arena.clear()
        return figures

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._turns.close()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue

    def _wait_for_end(self) -> int | None:
        """Read on, as a client does, until the server has ended."""
        give_up_at = time.monotonic() + EXIT_SECS
        while time.monotonic() < give_up_at:
            if self.process.poll() is not None:
                return self.process.returncode
            if self.process.stdout is not None and not self.process.stdout.closed:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.process.stdout.fileno(), 1 << 20)
            time.sleep(0.001)
        return None

    def _leftovers(self) -> list[str]:
        findings = []
        for what, left in (
            ("processes", self._left_processes),
            ("files", self._left_files),
            ("descriptors", self._left_descriptors),
        ):
            if found := _settled(left, meanwhile=lambda: self.link.wait(0.02)):
                findings.append(f"{what} are left: {found[:5]}")
        return findings

    def _left_processes(self) -> list[str]:
        ours = {self.process.pid, *self._own}
        family = [r for r in family_of(self.process.pid) if r.pid not in ours and not self.probe.is_helper(r)]
        strays = [(pid, command) for pid, command in _marked(self.arena.mark) if pid not in ours]
        found = {(r.pid, r.command) for r in family} | set(strays)
        return sorted(f"{pid} {command[:100]}" for pid, command in found if not _is_nobodys(pid))

    def _left_files(self) -> list[str]:
        names = [name.partition("/")[2] for name in files_below(self.arena.tmp)]
        own = f"{self.process.pid}.sock"
        return [name for name in names if name not in ("", own) and not name.startswith(OF_SCRIPTS)]

    def _left_descriptors(self) -> list[str]:
        """What is new, but for one way to each helper that has come since."""
        if not self._descriptors:
            return []
        helpers = [r for r in family_of(self.process.pid) if self.probe.is_helper(r) and r.pid not in self._own]
        found = new_descriptors(self.process.pid, self._descriptors)
        ways = [name for name in found if name in ("socket", "pipe")][: len(helpers)]
        ways += [name for name in found if "/mcpgreen.state." in name][:1]  # another in the place of one that was lost
        for name in ways:
            found.remove(name)
        return found

    def _open_descriptors(self) -> list[str]:
        try:
            return descriptors_of(self.process.pid)
        except OSError:
            return []  # a process that lets nobody look

    def _last_words(self) -> str:
        with open(self.arena.stderr, "rb") as file:
            file.seek(max(0, self.arena.stderr.stat().st_size - 400))
            said = file.read().decode("utf-8", "replace").strip()
        return f"; status {self.process.poll()}; it said: ...{said}"


def _furnish(project: ProjectBuilder) -> None:
    project.tool("quick", "#!/bin/sh\necho done\n")
    project.tool("slow", "#!/bin/sh\nexec sleep 0.2\n")
    project.tool("slower", "#!/bin/sh\nexec sleep 3\n")
    project.tool("chatty", "#!/bin/sh\nprintf '%020000d' 7\n")
    project.tool("strict", "#!/bin/sh\necho done\n", inputSchema=SCHEMA)
    project.tool("asking", ASKING_TOOL)
    project.tool("reporting", REPORTING_TOOL)
    project.tool("pulse", f"#!{sys.executable} -SE\n{PULSE_TOOL}", timeoutSecs=3600)
    hostility = f"#!{sys.executable} -SE\n" + Path(hostile.__file__).read_text(encoding="utf-8")
    project.tool("hostile", hostility)
    project.tool("declaring", hostility, outputSchema=SCHEMA)
    project.resource("note.txt", "a note\n", uri="notes:note")
    project.resource("big.txt", "x" * (2 * MIB), uri="notes:big")
    project.described("shout", uriTemplate="shout://{word}")
    project.provider("shout.sh", '#!/bin/sh\necho "$1" | tr a-z A-Z\n')
    project.prompt(
        "hello.md", "Hello, {{name}}!", arguments={"type": "object", "properties": {"name": {"enum": ["Ada", "Bob"]}}}
    )
    project.prompt("echoing.md", "{{name}} " * 200)
    project.write("server.d/env", f"# {SECRET}\n")


def _result(answer: Json) -> Json:
    assert isinstance(answer.get("result"), dict), answer
    return answer["result"]  # type: ignore[no-any-return]


def _settled(leftovers: Callable[[], list[str]], *, meanwhile: Callable[[], None] | None = None) -> list[str]:
    """What is left when there was time enough for it to go."""
    give_up_at = time.monotonic() + SETTLE_SECS
    while (found := leftovers()) and time.monotonic() < give_up_at:
        if meanwhile is None:
            time.sleep(0.01)
        else:
            meanwhile()
    return found


def _marked(mark: str) -> list[tuple[int, str]]:
    """Processes with this in their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            command = command_of(entry)
            if mark in command:
                found.append((int(entry), command))
    return found


def _is_stand_in(path: Path) -> bool:
    is_moved = path.name.endswith(".aside")
    return path.name.startswith("mcpgreen.state.") and (is_moved or path.is_symlink() or not path.is_dir())


def _is_nobodys(pid: int) -> bool:
    """Whether a process has shed the mark of its call, in its limits and in its environment, or is gone."""
    limits = re.search(r"Max realtime timeout +(\S+)", proc_text(f"/proc/{pid}/limits"))
    is_unlimited = limits is None or not limits[1].startswith("8")
    return is_unlimited and "MCPGREEN_CALL=" not in proc_text(f"/proc/{pid}/environ")


def _remove(path: Path) -> None:
    """Folders by a program: Python gives up where they are nested too deeply."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        subprocess.run(["rm", "-rf", "--", str(path)], check=False, stderr=subprocess.DEVNULL)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _can_nobody_read(checkout: Path) -> bool:
    command = [sys.executable, "-c", "import mcpgreen.__main__"]
    env = {"PYTHONPATH": str(checkout), "PATH": os.environ.get("PATH", os.defpath)}
    try:
        ended = completed(command, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", env=env)
    except OSError:
        return False
    return ended.returncode == 0
