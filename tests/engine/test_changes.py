"""Requests that come while the server looks at the disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gevent.event import Event

from mcpgreen.catalog.catalog import Catalog
from mcpgreen.engine.server import Server
from tests.support.fake_link import FakeLink, serving
from tests.support.project import ProjectBuilder


class SlowLook:
    """Looks at the disk that go on until `end`."""

    def __init__(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self.end = Event()
        self.count = 0
        refresh = Catalog.refresh

        def refresh_slowly(catalog: Catalog, source: str, **options: Any) -> bool:
            self.count += 1
            self.end.wait()
            return refresh(catalog, source, **options)

        monkeypatch.setattr(Catalog, "refresh", refresh_slowly)
        server.services.catalog.mark_stale()


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    project.resource("known.txt", "known")
    project.tool("known", "echo known")
    with serving(project.root) as server:
        yield server


@pytest.fixture
def link(server: Server) -> FakeLink:
    link = FakeLink(server)
    link.initialize()
    link.ask("resources/list", id="first")
    link.ask("tools/list", id="second")
    return link


def uri(project: ProjectBuilder, name: str) -> str:
    return (project.root / "resources" / name).as_uri()


def test_a_known_item_and_a_ping_do_not_wait_for_a_long_look(
    project: ProjectBuilder, server: Server, link: FakeLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 20,000 files each request after a change waited for more than a second."""
    look = SlowLook(server, monkeypatch)
    link.send(id=1, method="resources/list", params={})

    assert link.ask("resources/read", {"uri": uri(project, "known.txt")}, id=2)["result"]
    assert link.ask("tools/call", {"name": "known"}, id=3)["result"]
    assert link.ask("ping", id=4)["result"] == {}
    assert not link.sink.responses

    look.end.set()
    assert link.response(1)["result"]


def test_an_item_that_is_not_known_yet_is_looked_for(
    project: ProjectBuilder, server: Server, link: FakeLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = SlowLook(server, monkeypatch)
    project.tool("new", "echo new")
    link.send(id=1, method="tools/call", params={"name": "new"})
    assert link.ask("tools/call", {"name": "known"}, id=2)["result"]
    assert not link.sink.responses

    look.end.set()
    assert link.response(1)["result"]["content"][0]["text"] == "new\n"
    assert "not found" in link.ask("tools/call", {"name": "none"}, id=3)["error"]["message"]


def test_a_request_that_waits_for_a_look_can_be_cancelled(
    project: ProjectBuilder, server: Server, link: FakeLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = SlowLook(server, monkeypatch)
    project.resource("new.txt", "new")
    link.send(id=1, method="resources/list", params={})
    link.send(method="notifications/cancelled", params={"requestId": 1})
    look.end.set()

    listed = link.ask("resources/list", id=2)["result"]["resources"]
    assert [each["name"] for each in listed] == ["known", "new"]
    assert not link.sink.responses
