"""Start processes: those of scripts, and our own helpers.

`posix_spawn` is the first way: gevent's own forks the whole server and runs Python in the copy, which is five times as
slow, and slower still the more memory the server holds. The second is in `warm.helpers`, for Python scripts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mcpgreen.running.processes.tags import Tags
from mcpgreen.running.system.descriptor_limit import descriptor_limit, fitting_descriptor

if TYPE_CHECKING:
    from mcpgreen.running.processes.run import ScriptRun

Variables = Mapping[bytes, bytes]

CONTROL_FD = fitting_descriptor(descriptor_limit())
NO_INPUT = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
# All that can be: a script ignores no signal that we, or the program that started us, ignore.
RESET_SIGNALS = list(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class Directory:
    """The directory in which processes are started, by its descriptor."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._home_fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        self._is_home = os.path.samestat(os.fstat(self.fd), os.fstat(self._home_fd))

    def __enter__(self) -> None:
        """Change to it. No greenlet may switch until we are back."""
        if not self._is_home:
            os.fchdir(self.fd)

    def __exit__(self, *_: object) -> None:
        if not self._is_home:
            os.fchdir(self._home_fd)

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._home_fd)


class Spawner(Protocol):
    """Starts one process. It is our child, or becomes it; leads a session of its own; has no input, and no descriptor
    but its stdout, its stderr and the control pipe, which is `CONTROL_FD` there; ignores no signal; and carries the
    tag, as do all processes that it starts."""

    way: str  # what this way of starting is called; empty for a fresh start

    def spawn(self, run: ScriptRun, *, outputs: Sequence[int], tag: int) -> int:
        """Start it, and return its number. `outputs` are our descriptors of the three. Raises OSError when there is no
        such process. From when it can end on, nothing may switch greenlets before the number is given back: its end
        would be missed."""

    def has_begun(self) -> bool:
        """Tell whether the process has become the script."""

    def let_go(self) -> None:
        """Free what belongs to the process: it is over."""


class Way(Protocol):
    """A way to start some of the scripts that is quicker than a fresh start."""

    def spawner_for(self, run: ScriptRun) -> Spawner | None:
        """A spawner for this run; None if it has to be started in another way. May wait for a moment."""

    def why_not(self, run: ScriptRun) -> str:
        """Say why this run was started in another way; empty if it never could be in this one."""

    def end(self) -> None:
        """Stop everything: the server ends."""


class PosixSpawner:
    """Starts processes in one directory by `posix_spawn`, which knows neither working directory nor limits: we take on
    both for it."""

    way = ""

    def __init__(self, directory: Directory, tags: Tags) -> None:
        self._directory = directory
        self._tags = tags

    def spawn(self, run: ScriptRun, *, outputs: Sequence[int], tag: int) -> int:
        stdout, stderr, control = outputs
        actions = [
            NO_INPUT,
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
            (os.POSIX_SPAWN_DUP2, control, CONTROL_FD),
        ]
        return self.start(run.script.command, run.env, actions, tag=tag)

    def has_begun(self) -> bool:
        return True

    def let_go(self) -> None:
        """There is nothing to let go of."""

    def start(self, command: Sequence[str], env: Variables, actions: Sequence[tuple[Any, ...]], *, tag: int) -> int:
        """Start a process with the descriptors that these actions give it, and return its number."""
        self._tags.put_on(tag)
        try:
            with self._directory:
                return os.posix_spawnp(
                    command[0],
                    list(command),
                    env,
                    file_actions=actions,
                    setsid=True,
                    setsigmask=[],
                    setsigdef=RESET_SIGNALS,
                )
        finally:
            self._tags.take_off()


def spawn_helper(path: str, command: list[str], env: Mapping[str, str], *, socket: int, as_fd: int) -> int:
    """Start a process of ours that is no script, and return its number: it has a socket, under this number, and no
    other descriptor of the server: a client that waits for the end of our output must see it."""
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2) if fd != as_fd]
    return os.posix_spawn(
        path,
        command,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, socket, as_fd), *nothing],
        setsid=True,
        setsigmask=[],
        setsigdef=RESET_SIGNALS,
    )
