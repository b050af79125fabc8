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
from mcpgreen.links.sink import MemorySink
from mcpgreen.project.project import open_project
from tests.support.project import ProjectBuilder

Json = dict[str, Any]
HELLO: Json = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c"}}


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    found, settings, environ = open_project({"project_root": str(project.root)}, os.environ)
    server = Server(settings, found, environ=environ)
    yield server
    server.stop()


def greenlets() -> int:
    """How many are alive."""
    gc.collect()
    return sum(1 for each in gc.get_objects() if isinstance(each, gevent.Greenlet) and not each.dead)


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
