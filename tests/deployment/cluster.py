"""Replicas of the server, and a proxy in front of them that reads a file of `examples/proxy`.

The file is used as it is, but for ports and paths.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import trustme

from tests.deployment.speaking import Speaker
from tests.support.http import HttpServer
from tests.support.http_replies import Reply
from tests.support.waiting import eventually
from tests.support.wire import CHECKOUT, clean_environment

EXAMPLES = CHECKOUT / "examples" / "proxy"
HOST = "mcp.example.com"
STATE_KEY = "k" * 40
OF_A_REPLICA = {
    "MCPGREEN_STATE_KEY": STATE_KEY,
    "MCPGREEN_HTTP_ALLOWED_HOSTS": HOST,
    "MCPGREEN_HTTP_ACCEPT_SESSION_IDS": "true",
}
END_SECS = 20.0


class Replica:
    """A server that can be started again, at the port that it has had from the beginning."""

    def __init__(self, root: Path, settings: Mapping[str, str]) -> None:
        self._root = root
        self._settings = settings
        self._server: HttpServer
        self.port = 0

    @property
    def pid(self) -> int:
        return self._server.pid

    def start(self) -> Replica:
        self._server = HttpServer(self._root, address=f"127.0.0.1:{self.port}", env=self._settings)
        self.port = self._server.port
        return self

    def fetch(self, path: str) -> Reply:
        """What is there, past the proxy."""
        return self._server.client().send("GET", path=path)

    def begin_session(self) -> str:
        """The id of a session that began here, past the proxy."""
        session = self._server.session().session_id
        assert session is not None
        return session

    def ask_to_stop(self) -> None:
        self._server.process.terminate()

    def wait(self) -> None:
        assert self._server.wait(within_secs=END_SECS) == 0
        self._server.end()

    def restart(self) -> None:
        """As an operator does: told to stop, waited for, started anew."""
        self.ask_to_stop()
        self.wait()
        self.start()

    def kill(self) -> None:
        self._server.kill()
        self._server.end()

    def end(self) -> None:
        self._server.end()


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
