"""A Redis of one test: a process on a socket in a temporary directory, with its data on disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

BINARY = shutil.which("redis-server")


def require_fleet() -> None:
    """Skip the test if something that a fleet needs is missing."""
    pytest.importorskip("redis", reason="redis is not installed: pip install 'mcpgreen[fleet]'")
    pytest.importorskip("celery", reason="celery is not installed: pip install 'mcpgreen[fleet]'")
    if BINARY is None:
        pytest.skip("redis-server is not installed (Debian: apt install redis-server)")


class Redis:
    """`url` is that of its socket; paths of sockets are short, so it is not in the directory of the test."""

    def __init__(self, *, fsync: str = "always") -> None:
        self._fsync = fsync
        self.directory = Path(tempfile.mkdtemp(prefix="mg-redis-"))
        self.socket = self.directory / "redis.sock"
        self.url = f"unix://{self.socket}?db=0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert BINARY is not None
        options = {
            "port": "0", "unixsocket": str(self.socket), "dir": str(self.directory), "save": "",
            "appendonly": "yes", "appendfsync": self._fsync,
            "maxmemory-policy": "noeviction", "databases": "1000",
        }  # fmt: skip
        command = [BINARY, *(word for name, value in options.items() for word in (f"--{name}", value))]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        from redis import Redis as Client

        give_up_at = time.monotonic() + 20
        while True:
            with suppress(Exception), Client(unix_socket_path=str(self.socket), socket_timeout=2) as client:
                client.ping()
                return
            assert time.monotonic() < give_up_at, (self.directory / "log").read_text(encoding="utf-8")
            time.sleep(0.05)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextmanager
def running_redis() -> Iterator[Redis]:
    require_fleet()
    redis = Redis()
    try:
        redis.start()
        yield redis
    finally:
        redis.close()
