"""Fixtures: a site on loopback, and providers run as programs."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.providers.repositories import build_repositories
from tests.providers.site import Site
from tests.support.constants import variables_of
from tests.support.prerequisites import require_module
from tests.support.wire import clean_environment

# Names that only the Python process can resolve: whoever connects to one was told the address by the guard.
RESOLVER = """
import socket, time
from tests.support import constants
constants.apply()
ANSWERS = {"pinned.test": ["127.0.0.1"], "mixed.test": ["93.184.215.14", "10.0.0.1"]}
real = socket.getaddrinfo
def resolve(host, port, *rest, **options):
    if host == "slow.test":
        time.sleep(60)
    if host not in ANSWERS:
        return real(host, port, *rest, **options)
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ANSWERS[host]]
socket.getaddrinfo = resolve
"""


class Ended(NamedTuple):
    status: int
    content: bytes
    reason: str


class Desk:
    """Starts providers with a clean environment; keyword arguments are settings."""

    def __init__(self, directory: Path, authority_file: Path) -> None:
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        resolver = directory / "resolver"
        resolver.mkdir()
        (resolver / "sitecustomize.py").write_text(RESOLVER, encoding="utf-8")
        self.env = clean_environment({"SSL_CERT_FILE": str(authority_file), "TMPDIR": str(self.temporary)})
        self.env["PYTHONPATH"] = f"{resolver}{os.pathsep}{self.env['PYTHONPATH']}"
        self.command = [sys.executable, "-m", "mcpgreen.providers"]

    def start(
        self, name: str, uri: str | bytes, *, env: dict[str, str] | None = None, **settings: Any
    ) -> subprocess.Popen[bytes]:
        variables = variables_of(settings) | {"PYTHONPATH": self.env["PYTHONPATH"]}
        return subprocess.Popen(
            [*self.command, name, uri],
            env={**self.env, **variables, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, name: str, uri: str | bytes, **options: Any) -> Ended:
        with self.start(name, uri, **options) as child:
            try:
                content, reason = child.communicate(timeout=120)
            finally:
                child.kill()
        return Ended(child.returncode, content, reason.decode("utf-8"))

    def left_behind(self) -> list[str]:
        """Files that are still there, and processes that were started for them."""
        files = [str(path) for path in self.temporary.iterdir()]
        return files + [each for each in processes() if str(self.temporary) in each]


def processes() -> Iterator[str]:
    """The environment of each process with one of its own."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environment = (directory / "environ").read_bytes()
        except OSError:
            continue
        if environment:
            yield f"{directory.name}: {environment.decode('utf-8', 'replace')}"


@pytest.fixture(scope="session")
def authority() -> Any:
    """Whoever signs our certificates."""
    return require_module("trustme").CA()


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("repositories")
    build_repositories(directory)
    return directory


@pytest.fixture(scope="module")
def site(authority: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serves with a certificate for 127.0.0.1, localhost and pinned.test."""
    with _site(authority, tmp_path_factory.mktemp("no-repositories")) as serving:
        yield serving


@pytest.fixture(scope="module")
def git_site(authority: Any, repositories: Path) -> Iterator[Site]:
    """As `site`, with repositories below /git/."""
    with _site(authority, repositories) as serving:
        yield serving


class _site:
    def __init__(self, authority: Any, repositories: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1", "localhost", "pinned.test").configure_cert(context)
        self.site = Site(context, repositories)

    def __enter__(self) -> Site:
        return self.site

    def __exit__(self, *_: object) -> None:
        self.site.close()


@pytest.fixture
def desk(tmp_path: Path, authority: Any) -> Desk:
    authority_file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(authority_file))
    return Desk(tmp_path, authority_file)


@pytest.fixture
def fetch(desk: Desk, site: Site) -> Callable[..., Ended]:
    """Fetch a path of the site; the guard is open for 127.0.0.1 alone."""

    def fetch_path(path: str, *, host: str = "127.0.0.1", **options: Any) -> Ended:
        settings = {"https_allow_hosts": host, "net_allow_addresses": "127.0.0.1", **options}
        return desk.run("https", f"https://{host}:{site.port}{path}", **settings)

    return fetch_path
