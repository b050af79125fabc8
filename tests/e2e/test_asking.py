"""Requests of the server to its client, seen from inside: whoever asks gets one end, and nothing is left of it."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from mcpgreen.engine.link import Link
from mcpgreen.engine.server import Server
from mcpgreen.errors import LinkClosed
from mcpgreen.links.session import OutgoingRequests
from mcpgreen.links.sink import MemorySink
from mcpgreen.project.project import open_project
from tests.support.project import ProjectBuilder

Json = dict[str, Any]
FOR_EVER = 600
SOON_SECS = 0.05
HELLO: Json = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c"}}


class Desk:
    """Someone who asks, and the lines that come of it."""

    def __init__(self) -> None:
        self.sink = MemorySink()
        self.requests = OutgoingRequests()

    def ask(self, *, timeout_secs: float = FOR_EVER, **params: Any) -> gevent.Greenlet[..., Any]:
        asking = gevent.spawn(self.requests.ask, self.sink, "some/thing", params or None, timeout_secs=timeout_secs)
        gevent.sleep(0)
        return asking

    def answer(self, id: Any, **outcome: Any) -> None:
        self.requests.take_answer({"jsonrpc": "2.0", "id": id, **outcome})

    @property
    def lines(self) -> list[Json]:
        return self.sink.frames

    @property
    def is_clear(self) -> bool:
        return not self.requests._pending


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    found, settings, environ = open_project({"project_root": str(project.root)}, os.environ)
    server = Server(settings, found, environ=environ)
    yield server
    server.stop()


def failure_of(asking: gevent.Greenlet[..., Any]) -> BaseException | None:
    asking.join(60)
    return asking.exception


def greenlets() -> int:
    """How many are alive."""
    gc.collect()
    return sum(1 for each in gc.get_objects() if isinstance(each, gevent.Greenlet) and not each.dead)


@pytest.mark.requirement("G-asking")
def test_a_question_fails_when_its_link_ends(desk: Desk) -> None:
    asking = desk.ask()
    desk.requests.close()

    assert isinstance(failure_of(asking), LinkClosed)
    assert isinstance(failure_of(desk.ask()), LinkClosed)
    assert len(desk.lines) == 1
    assert desk.is_clear


@pytest.mark.requirement("P-030", "G-asking")
@pytest.mark.parametrize("id", ["1", 2, 0, True, None, [], 1.5], ids=str)
def test_an_answer_under_another_id_is_ignored_by_the_engine(desk: Desk, id: Any) -> None:
    asking = desk.ask()
    desk.answer(id, result="wrong")
    desk.answer(1, result="right")
    desk.answer(1, result="again")

    assert asking.get(timeout=120) == "right"
    assert desk.is_clear


def ready_link(server: Server) -> Link:
    link = server.connect(MemorySink(), transport="fake")
    link.receive({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
    link.receive({"jsonrpc": "2.0", "method": "notifications/initialized"})
    gevent.sleep(0)
    return link


def change(link: Link) -> None:
    link.receive({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})


def call(link: Link) -> None:
    link.receive({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "any"}})


@pytest.mark.requirement("G-asking")
@pytest.mark.parametrize("before", [(), (change,), (call,), (change, call)], ids=["none", "change", "call", "both"])
def test_a_link_that_closes_while_the_client_is_asked_leaves_no_greenlet(
    server: Server, before: tuple[Callable[[Link], None], ...]
) -> None:
    already = greenlets()
    link = ready_link(server)
    for act in before:
        act(link)
    gevent.sleep(0)
    assert len(link.session.requests._pending) == 1
    assert greenlets() > already

    server.disconnect(link)
    until(lambda: greenlets() == already)
    assert not link.session.requests._pending
    assert isinstance(link.stream.sink, MemorySink)
    assert not [frame for frame in link.stream.sink.frames if frame.get("method") == "notifications/cancelled"]


@pytest.mark.requirement("G-roots-wait")
def test_links_of_one_server_have_roots_of_their_own(server: Server, project: ProjectBuilder) -> None:
    (project.root / "data").mkdir()
    links = [ready_link(server), ready_link(server)]
    named = {"roots": [{"uri": (project.root / "data").as_uri()}]}
    links[0].receive({"jsonrpc": "2.0", "id": 1, "result": named})
    gevent.sleep(0)

    assert links[0].session.roots.current.paths == [str(project.root / "data")]
    assert links[1].session.roots.current.paths == [str(project.root)]


def until(condition: Callable[[], bool]) -> None:
    """`eventually`, while greenlets go on."""
    with gevent.Timeout(60):
        while not condition():
            gevent.sleep(0.01)
