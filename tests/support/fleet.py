"""Fleets for tests: workers as processes; and a way to run other tests with every tool on a worker.

With MCPGREEN_TEST_FLEET=1, each server of a test has a fleet: `pytest tests/features` then tries that clients cannot
tell where a call ran. The worker has the environment of the server.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.redis import Redis, require_fleet
from tests.support.waiting import eventually
from tests.support.wire import clean_environment

DATABASES = 1000
IS_EVERYWHERE = "MCPGREEN_TEST_FLEET" in os.environ
READY = re.compile(r"^mcpgreen: worker .+$", re.MULTILINE)


class Worker:
    def __init__(
        self, root: Path | str, url: str, *, env: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
    ) -> None:
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115  # closed by `end`
        command = [sys.executable, "-m", "mcpgreen", "worker", "--project-root", str(root), *arguments]
        environment = clean_environment({**(env or {}), "MCPGREEN_FLEET_URL": url})
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )

    @property
    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def ready(self) -> Worker:
        eventually(lambda: READY.search(self.log) or self.process.poll() is not None, within_secs=20)
        assert self.process.poll() is None, self.log
        return self

    def end(self) -> None:
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGCONT)
                self.process.terminate()
                self.process.terminate()
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()


class Everywhere:
    """The fleet of all tests."""

    def __init__(self) -> None:
        self.redis: Redis | None = None
        self.workers: dict[str, Worker] = {}  # by project
        self._databases: dict[str, int] = {}

    def environment(self, root: Path | str | None, env: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Return the environment for a server, and start its worker."""
        if not IS_EVERYWHERE or root is None or "MCPGREEN_FLEET_URL" in (env or {}):
            return env
        if self.redis is None:
            require_fleet()
            self.redis = Redis()
            self.redis.start()
        number = self._databases.setdefault(str(root), len(self._databases) % DATABASES)  # projects have the same name
        url = self.redis.url.replace("db=0", f"db={number}")
        slots = (env or {}).get("MCPGREEN_MAX_CONCURRENT_REQUESTS", "16")
        if str(root) not in self.workers:
            self.workers[str(root)] = Worker(root, url, env=env, arguments=["--slots", slots])
        return {**(env or {}), "MCPGREEN_FLEET_URL": url, "MCPGREEN_FLEET_TOOLS": "*"}

    def end_project(self, root: Path | str) -> None:
        if worker := self.workers.pop(str(root), None):
            worker.end()
            from redis import Redis as Client

            with Client(
                unix_socket_path=str(self.redis and self.redis.socket), db=self._databases[str(root)]
            ) as client:
                client.flushdb()

    def close(self) -> None:
        if self.redis is not None:
            self.redis.close()


everywhere = Everywhere()
