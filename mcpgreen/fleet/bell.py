"""The bell: a message of Celery that says that something waits in a queue. Servers ring it, workers hear it.

A message has no more in it than the name of a queue. It may be lost, late or doubled: a worker that hears it looks into
the ledger, and so it does from time to time without it. Another doorbell needs only another `ring` and `app_of`.

Servers ring through a small process of their own, because Celery takes a second to load, and 39 MB.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcpgreen.errors import InternalError
from mcpgreen.fleet.address import broker_of
from mcpgreen.running.processes.spawning import spawn_helper

if TYPE_CHECKING:
    from mcpgreen.running.runner import Runner

App = Any  # of Celery, which has no types
TASK = "mcpgreen.look"
PROGRAM = "import sys; _, *sys.path = sys.argv; from mcpgreen.fleet import bell; bell.ring_as_told()"
URL, PROJECT = "MCPGREEN_BELL_URL", "MCPGREEN_BELL_PROJECT"  # of the process that rings
MAX_LINES_BYTES = 65_536


def app_of(url: str, project: str, *, slots: int = 1) -> App:
    """Return the app, for a server or for a worker with places for so many calls."""
    from celery import Celery  # type: ignore[import-untyped]

    app = Celery(project, broker=broker_of(url), set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_concurrency=slots,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"socket_timeout": 10, "socket_keepalive": True},
    )
    return app


def celery_queue(project: str, queue: str) -> str:
    return f"mg.{project}.{queue}"


class Ringer:
    """The process that rings, as a server knows it. It is started at once, and again if it has died."""

    def __init__(self, url: str, project: str, runner: Runner) -> None:
        self._environ = {**os.environ, URL: url, PROJECT: project}
        self._runner = runner
        self._pid, self._fd = 0, -1

    def ring(self, queue: str) -> None:
        """Have the bell rung. Never waits, and may fail: workers look into their queues without it, too."""
        self.start()
        with suppress(OSError):
            os.write(self._fd, queue.encode("utf-8") + b"\n")

    def start(self) -> None:
        if not self._runner.knows(self._pid):
            self.close()
            command = [sys.executable, "-I", "-c", PROGRAM, *sys.path]
            with suppress(OSError, InternalError):
                self._runner.prepare()
                self._pid, self._fd = spawn_helper(sys.executable, command, self._environ, as_fd=0)
                self._runner.know(self._pid)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def ring_as_told(environ: Mapping[str, str] = os.environ) -> None:
    """Be the process: ring for each line of stdin, until it ends."""
    from kombu.exceptions import OperationalError

    project = environ[PROJECT]
    app = app_of(environ[URL], project)
    signature, rest = app.signature(TASK), b""
    with app.connection_for_write() as connection, connection.Producer() as producer:
        while chunk := os.read(0, MAX_LINES_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in dict.fromkeys(lines):  # a worker that finds more than one call takes more
                with suppress(OperationalError, OSError):
                    signature.apply_async(
                        producer=producer, queue=celery_queue(project, line.decode("utf-8")), retry=False
                    )
