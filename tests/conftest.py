"""Fixtures: a project on disk, and the real server in front of it."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.running.system import PR_SET_CHILD_SUBREAPER
from tests.support import apart, ways
from tests.support.client import Client, Speak
from tests.support.constants import variables_of
from tests.support.fleet import everywhere
from tests.support.http import HttpServer, Serve
from tests.support.project import ProjectBuilder
from tests.support.redis import running_redis
from tests.support.wire import LATEST_HANDSHAKE, Start, Wire

directory_numbers = count()
prctl = ctypes.CDLL(None).prctl if sys.platform.startswith("linux") else None


def pytest_configure(config: pytest.Config) -> None:
    _prefer_real_python()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of jobs in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "requirement(id, ...): the rows of requirements.yaml that this test covers")
    config.addinivalue_line("markers", "per_call(reason, ...), cheapest(...): see tests/support/ways.py")
    apart.set_up(config)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What servers keep for their next start is not left with whoever runs the tests."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


def _prefer_real_python() -> None:
    """A version manager has a shell script as python3, which takes ten times as long as Python itself to start it."""
    found = shutil.which("python3")
    if found and Path(found).read_bytes()[:2] == b"#!":
        real: str = sys._base_executable  # type: ignore[attr-defined]
        os.environ["PATH"] = f"{Path(real).resolve().parent}{os.pathsep}{os.environ['PATH']}"


def pytest_collection() -> None:
    gc.disable()  # ten thousand tests come into being, and stay


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = ways.choose(items)
    items.sort(key=apart.is_alone)  # last: each of them keeps all workers waiting


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """A server inside this process makes it adopt orphans. Those of all later tests would stay with it as zombies, by
    the ten thousand where scripts fork again and again, and whoever looks through /proc then takes seconds."""
    if prctl is not None:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def redis_url() -> Iterator[str]:
    """A Redis of this test alone."""
    with running_redis() as redis:
        yield redis.url


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which looks through the directories of all tests for a free name, and puts a link beside it."""
    return tmp_path_factory.mktemp(f"{request.node.originalname[:30]}{next(directory_numbers)}", numbered=False)


@pytest.fixture
def default_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start servers with tasks, also if the tests run with MCPGREEN_TASKS=off."""
    monkeypatch.delenv("MCPGREEN_TASKS", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return ProjectBuilder(tmp_path / "project")


@pytest.fixture
def start(project: ProjectBuilder) -> Iterator[Start]:
    """Start the server on the project; keyword arguments are settings (`page_size=2`) or those of `Wire`."""
    with servers_on(project) as start_server:
        yield start_server


@pytest.fixture
def speak(start: Start) -> Speak:
    """Start the server and speak one revision with it; the client's capabilities, and arguments as for `start`."""

    def speak_revision(
        revision: str = LATEST_HANDSHAKE, *, capabilities: dict[str, Any] | None = None, **options: Any
    ) -> Client:
        return Client(start(**options), revision, capabilities=capabilities)

    return speak_revision


@pytest.fixture
def serve(project: ProjectBuilder) -> Iterator[Serve]:
    """Start the server on the project over HTTP; keyword arguments are settings, or those of `HttpServer`."""
    with ExitStack() as started:

        def serve_over_http(*, env: dict[str, str] | None = None, **options: Any) -> HttpServer:
            environment = everywhere.environment(project.root, {**variables_of(options), **(env or {})})
            return started.enter_context(HttpServer(project.root, env=environment, **options))

        yield serve_over_http
    everywhere.end_project(project.root)


@pytest.fixture
def wire(start: Start) -> Wire:
    """A server that has said nothing yet. Tools may be added to `project` before and after."""
    return start()


@pytest.fixture
def client(wire: Wire) -> Wire:
    """A server after the handshake of the latest handshake revision."""
    return wire.greeted()


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory: pytest.TempPathFactory) -> ProjectBuilder:
    """One project for all tests of a module that leave it as it is."""
    return ProjectBuilder(tmp_path_factory.mktemp("shared") / "project")


@pytest.fixture(scope="module")
def shared_speak(shared_project: ProjectBuilder) -> Iterator[Speak]:
    """As `speak`, with one server per revision for all tests of a module."""
    clients: dict[Any, Client] = {}
    with servers_on(shared_project) as start_server:

        def speak_revision(revision: str = LATEST_HANDSHAKE, **settings: Any) -> Client:
            key = (revision, *sorted(settings.items()))
            if key not in clients:
                clients[key] = Client(start_server(**settings), revision)
            return clients[key]

        yield speak_revision


@contextmanager
def servers_on(project: ProjectBuilder) -> Iterator[Start]:
    started: list[Wire] = []

    def start_server(*, env: dict[str, str] | None = None, wire: dict[str, Any] | None = None, **settings: Any) -> Wire:
        environment = everywhere.environment(project.root, {**variables_of(settings), **(env or {})})
        server = Wire(project.root, env=environment, **(wire or {}))
        started.append(server)
        return server

    yield start_server
    for server in started:
        server.end()
    everywhere.end_project(project.root)
