"""The keeper: a second process of the same program, which outlives this server and runs the tasks that do so, too.

The two meet in the store: this server stores a call there as a task without a runner, and the keeper takes it.
Everything else (progress, questions, answers, the wish to cancel, the result) is in the store as well, so to clients it
is a task like one of another server. Over the socket between them goes only the news that there is something to take.
At its end, the keeper runs its tasks to their end, and leaves. It has no stderr: who waits for the end of ours must not
wait for its.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import gevent
from gevent.os import nb_read

from mcpgreen import journal
from mcpgreen.errors import RpcError
from mcpgreen.running.processes.spawning import spawn_helper
from mcpgreen.running.processes.stopping import Tags

if TYPE_CHECKING:
    from mcpgreen.features.services import Services

# With our own path, and without that of the working directory.
PROGRAM = "import sys; root, *sys.path = sys.argv[1:]; from mcpgreen.__main__ import keep; sys.exit(keep(root))"
LOOK_SECS = 0.1  # between two looks whether a task runs


class Keeper:
    """The process, as the server knows it. It is started when there is something to take for the first time, and again
    if it was killed. `environ` is the environment that the server was started with."""

    def __init__(self, services: Services, environ: Mapping[str, str]) -> None:
        self._services = services
        self._environ = environ
        self._tag = Tags().of(0)  # so that its guardian, if it is killed, may clean up, although it is our child then
        self._pid, self._fd = 0, -1

    def wake(self) -> bool:
        """Have the process look for tasks. Return False if it cannot be started."""
        runner, tasks = self._services.runner, self._services.tasks
        if not runner.knows(self._pid):
            self.close()
            command = [sys.executable, "-I", "-c", PROGRAM, self._services.project.root, *sys.path]
            try:
                runner.prepare()
                runner.tags.put_on(self._tag)
                self._pid, self._fd = spawn_helper(sys.executable, command, self._environ, as_fd=0)
            except (OSError, RpcError) as error:
                journal.error("tasks end with the client, because their process cannot be started: %s", error)
                return False
            finally:
                runner.tags.take_off()
            runner.expected_tags.add(self._tag)
            runner.know(self._pid, tasks.recover_soon)
        with suppress(OSError):  # it has ended just now, or has not read for long
            os.write(self._fd, b"\n")
        return True

    def close(self) -> None:
        """Let go of the process, which leaves as soon as its tasks have ended."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def keep(services: Services, fd: int) -> None:
    """Be the keeper of the server at the other end of the socket, until it and all tasks have ended."""
    os.set_blocking(fd, False)
    services.is_keeper = True
    with suppress(OSError):
        while nb_read(fd, 1024):
            services.tasks.recover_soon()
    while services.has_tasks:
        gevent.sleep(LOOK_SECS)
