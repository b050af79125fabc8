"""Runs a Python program in two ways: as a fresh process, and as a spare of a real helper program becomes it.

Both get the same environment, directory, descriptors and limits, as the server gives them to a script. What the server
decides (whether a script may be forked, from which helper) is not here: the protocol is spoken by hand.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mcpgreen.running.processes.spawning import CONTROL_FD, NO_INPUT, PosixSpawner
from mcpgreen.running.processes.stopping import Tags, tag_of
from mcpgreen.running.scripts.jq import SDK_DIR
from mcpgreen.running.system import adopt_orphans
from mcpgreen.running.warm_python import lasting

HELPER = os.path.join(SDK_DIR, "warm", "start.py")
SDK = os.path.join(SDK_DIR, "python")
WORDS = ("/usr/bin/env", "python3")
PATIENCE_SECS = 60.0
TAG_SERIAL = 1
SOCKET_FD = 3


class Ran(NamedTuple):
    """All that others can see of a run."""

    status: int  # negative: the signal that ended it
    stdout: bytes
    stderr: bytes
    control: bytes
    files: dict[str, tuple[int, bytes]]  # by their path below the project: mode and content


class Helper:
    """A helper program, and our end of its socket."""

    def __init__(self, spawner: PosixSpawner, env: Mapping[bytes, bytes], *, tag: int) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._said_fd, said_fd = os.pipe()
        with theirs:
            actions = [NO_INPUT, *((os.POSIX_SPAWN_DUP2, said_fd, number) for number in (1, 2))]
            actions.append((os.POSIX_SPAWN_DUP2, theirs.fileno(), SOCKET_FD))
            self.pid = spawner.start([*WORDS, HELPER], env, actions, tag=tag)
        os.close(said_fd)
        self._socket.settimeout(PATIENCE_SECS)
        self.word = self._socket.recv(2000)

    def fork(self) -> Spare:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._socket, [b"fork"], [theirs.fileno()])
        ours.settimeout(PATIENCE_SECS)
        return Spare(ours, int(ours.recv(100).partition(b"ready ")[2]))

    def close(self) -> None:
        self._socket.close()
        os.close(self._said_fd)
        os.waitpid(self.pid, 0)


class Spare(NamedTuple):
    """A process that waits for its job."""

    socket: socket.socket
    pid: int

    def become(self, command: Sequence[str], env: Mapping[bytes, bytes], *, outputs: Sequence[int], tag: int) -> None:
        variables = [name + b"=" + value for name, value in env.items()]
        words = b"\0".join(map(os.fsencode, command))
        with self.socket:
            job = b"\0\0".join((b"%d %d" % (tag, CONTROL_FD), os.fsencode(command[-1]), words, b"\0".join(variables)))
            socket.send_fds(self.socket, [job], list(outputs))

    def dismiss(self) -> None:
        self.socket.close()
        os.waitpid(self.pid, 0)


class Harness:
    """A directory in which programs are run, and the helpers that they need."""

    def __init__(self, directory: Path, python: Path) -> None:
        """`python` is a `python3` in its own directory."""
        self.directory = directory
        tags = Tags()
        self._tag = tags.of(TAG_SERIAL)
        self._spawner = PosixSpawner(str(directory), tags)
        self._helpers: dict[frozenset[tuple[bytes, bytes]], Helper] = {}
        self._path = f"{python.parent}{os.pathsep}{os.defpath}"

    def environment(self, more: Mapping[str, str]) -> dict[bytes, bytes]:
        own = {
            "HOME": str(self.directory),
            "LANG": "C.UTF-8",
            "MCPGREEN_CALL": str(self._tag),
            "MCP_SDK": SDK_DIR,
            "MCP_TOOL_ARGS_JSON": '{"name":"Ada"}',
            "PATH": self._path,
            "PYTHONPATH": SDK,
            "TMPDIR": str(self.directory),
        }
        return {os.fsencode(name): os.fsencode(value) for name, value in {**own, **more}.items()}

    def helper(self, env: Mapping[bytes, bytes]) -> Helper:
        """That for this environment; the variables of a call do not matter."""
        kept = lasting(env)
        key = frozenset(kept.items())
        if key not in self._helpers:
            adopt_orphans()
            self._helpers[key] = self._new_helper(kept)
        return self._helpers[key]

    def _new_helper(self, env: Mapping[bytes, bytes]) -> Helper:
        """One that can fork. A helper refuses if a file that it has loaded was written a moment ago."""
        while (helper := Helper(self._spawner, env, tag=self._tag)).word.endswith(b"was changed while it started"):
            helper.close()
        return helper

    def fresh(self, command: Sequence[str], env: Mapping[bytes, bytes], *, reads_stdout: bool = True) -> Ran:
        before = self._begin()
        pipes = Pipes(reads_stdout=reads_stdout)
        actions = [NO_INPUT]
        for theirs, number in zip(pipes.theirs, (1, 2, CONTROL_FD), strict=True):
            actions.append((os.POSIX_SPAWN_DUP2, theirs, number))
        pid = self._spawner.start(command, env, actions, tag=self._tag)
        return self._ended(pid, pipes, before)

    def warm(
        self,
        command: Sequence[str],
        env: Mapping[bytes, bytes],
        *,
        reads_stdout: bool = True,
        spare: Spare | None = None,
    ) -> Ran:
        """By a spare that was forked before, or is forked now."""
        helper = self.helper(env)
        before = self._begin()
        spare = spare or helper.fork()
        pipes = Pipes(reads_stdout=reads_stdout)
        spare.become(command, env, outputs=pipes.theirs, tag=self._tag)
        return self._ended(spare.pid, pipes, before)

    def close(self) -> None:
        for helper in self._helpers.values():
            helper.close()
        self._spawner.close()

    def _begin(self) -> dict[str, int]:
        adopt_orphans()
        self._children = _children()
        return _entries(self.directory)

    def _ended(self, pid: int, pipes: Pipes, before: Mapping[str, int]) -> Ran:
        """What came of it, when the last process that it has left is gone. Takes away the files that it wrote."""
        try:
            stdout, stderr, control = pipes.read_all()
        except TimeoutError:
            for child in _children() - self._children:
                if tag_of(child) == self._tag:
                    os.kill(child, signal.SIGKILL)
            raise
        finally:
            status = os.waitpid(pid, 0)[1]
        for child in _children() - self._children:
            if tag_of(child) == self._tag:  # else it has come from elsewhere, and is not ours to wait for
                os.waitpid(child, 0)
        return Ran(os.waitstatus_to_exitcode(status), stdout, stderr, control, self._new_files(before))

    def _new_files(self, before: Mapping[str, int]) -> dict[str, tuple[int, bytes]]:
        new = {}
        for name, mode in sorted(_entries(self.directory).items(), reverse=True):
            path = self.directory / name
            if name in before:
                continue
            # What is in bytecode depends on how often its names are in use at that time.
            new[name] = mode, path.read_bytes() if path.is_file() and path.suffix != ".pyc" else b""
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)  # its entries have been looked at before it
            else:
                path.unlink(missing_ok=True)
        return new


class Pipes:
    """Stdout, stderr and control pipe of a run."""

    def __init__(self, *, reads_stdout: bool) -> None:
        pairs = [os.pipe() for _ in range(3)]
        self._ours = [pair[0] for pair in pairs]
        self.theirs = [pair[1] for pair in pairs]
        if not reads_stdout:
            os.close(self._ours[0])
            self._ours[0] = os.open(os.devnull, os.O_RDONLY)

    def read_all(self) -> list[bytes]:
        """Until all who could write are gone. Raises TimeoutError."""
        for fd in self.theirs:
            os.close(fd)
        read: dict[int, bytes] = dict.fromkeys(self._ours, b"")
        pending = set(self._ours)
        give_up_at = time.monotonic() + PATIENCE_SECS
        try:
            while pending:
                ready = select.select(list(pending), [], [], max(0.0, give_up_at - time.monotonic()))[0]
                if not ready:
                    raise TimeoutError(f"still running, and has said {read}")
                for fd in ready:
                    chunk = os.read(fd, 1 << 20)
                    read[fd] += chunk
                    if not chunk:
                        pending.discard(fd)
        finally:
            for fd in self._ours:
                os.close(fd)
        return list(read.values())


def _children() -> set[int]:
    """Of this process, zombies and adopted ones too."""
    numbers: set[int] = set()
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/children") as file:
            numbers.update(map(int, file.read().split()))
    return numbers


def _entries(directory: Path) -> dict[str, int]:
    """All that is below it, and its mode."""
    return {str(path.relative_to(directory)): path.lstat().st_mode for path in directory.rglob("*")}
