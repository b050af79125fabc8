"""Replicas of the server, and a proxy in front of them that reads a file of `examples/proxy`.

The file is used as it is, but for ports and paths.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import trustme

from tests.deployment.speaking import Speaker
from tests.support.forking import Forked
from tests.support.waiting import eventually
from tests.support.wire import CHECKOUT, clean_environment, nursery

EXAMPLES = CHECKOUT / "examples" / "proxy"
HOST = "mcp.example.com"
STATE_KEY = "k" * 40
OF_A_REPLICA = {
    "MCPGREEN_STATE_KEY": STATE_KEY,
    "MCPGREEN_HTTP_ALLOWED_HOSTS": HOST,
    "MCPGREEN_HTTP_ACCEPT_SESSION_IDS": "true",
}
ANNOUNCED = re.compile(rb"^mcpgreen: serving http://127\.0\.0\.1:(\d+)/mcp$")
END_SECS = 20.0


class Fetched(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Replica:
    """A server that can be started again, at the port that it has had from the beginning."""

    def __init__(self, root: Path, settings: Mapping[str, str]) -> None:
        self._root = root
        self._environment = clean_environment(settings)
        self.port = 0
        self.process: Forked

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self) -> Replica:
        address = f"127.0.0.1:{self.port}"
        self.process = nursery().fork(
            ["serve", "--http", address, "--project-root", str(self._root)], self._environment
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.process.stdin.close()
        self.process.stdout.close()
        said = b""
        for line in self.process.stderr:
            said += line
            if found := ANNOUNCED.fullmatch(line.rstrip()):
                self.port = int(found[1])
                break
        else:
            raise AssertionError(f"the server has ended: {said!r}")
        self.process.stderr.close()
        return self

    def fetch(
        self, method: str, path: str, message: object = None, headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """Past the proxy."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=END_SECS)
        own = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request(method, path, None if message is None else json.dumps(message), {**own, **(headers or {})})
        response = connection.getresponse()
        fetched = Fetched(response.status, dict(response.headers), response.read())
        connection.close()
        return fetched

    def restart(self) -> None:
        """As an operator does: told to stop, waited for, started anew."""
        self.process.terminate()
        assert self.process.wait(END_SECS) == 0
        self.start()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(END_SECS)

    def end(self) -> None:
        for _ in range(2):  # the second one: do not wait for what runs
            if self.process.poll() is None:
                self.process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(0.5)
        self.kill()


class Cluster:
    """What clients see: one address."""

    def __init__(self, replicas: Sequence[Replica], port: int, trust: ssl.SSLContext) -> None:
        self.replicas = replicas
        self._port = port
        self._trust = trust
        self._speakers: list[Speaker] = []

    def speaker(self, token: str = "") -> Speaker:
        speaker = Speaker(HOST, self._port, self._trust, token)
        self._speakers.append(speaker)
        return speaker

    def replica(self, pid: int) -> Replica:
        (found,) = (each for each in self.replicas if each.pid == pid)
        return found

    def close(self) -> None:
        for speaker in self._speakers:
            speaker.close()


@contextlib.contextmanager
def replicas_of(root: Path, count: int = 3, **settings: str) -> Iterator[list[Replica]]:
    replicas = [Replica(root, {**OF_A_REPLICA, **settings}).start() for _ in range(count)]
    try:
        yield replicas
    finally:
        for each in replicas:
            each.end()


@contextlib.contextmanager
def behind(proxy: Sequence[str], replicas: Sequence[Replica], port: int, directory: Path) -> Iterator[Cluster]:
    """`proxy`: how it is started, in the foreground."""
    log = directory / "proxy.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            proxy,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**clean_environment(), "HOME": str(directory)},
        )
    cluster = None
    try:
        eventually(lambda: _answers(port) or process.poll() is not None)
        assert process.poll() is None, log.read_text(encoding="utf-8")
        trust = ssl.create_default_context(cafile=str(directory / "authority.pem"))
        cluster = Cluster(replicas, port, trust)
        yield cluster
    finally:
        if cluster is not None:
            cluster.close()
        process.terminate()
        try:
            process.wait(END_SECS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def certificate(directory: Path) -> tuple[Path, Path]:
    """Of the name that clients use; `authority.pem` beside it is who vouches for it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(directory / "authority.pem"))
    issued = authority.issue_cert(HOST)
    chain, key = directory / "certificate.pem", directory / "key.pem"
    for index, each in enumerate(issued.cert_chain_pems):
        each.write_to_path(str(chain), append=index > 0)
    issued.private_key_pem.write_to_path(str(key))
    return chain, key


def filled_in(text: str, values: Mapping[str, str]) -> str:
    """Every key has to be there: else the test would not use what it thinks."""
    for key, value in values.items():
        assert key in text, key
        text = text.replace(key, value)
    return text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
