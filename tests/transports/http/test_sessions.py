"""Sessions of handshake clients, as classes with a real server: what they keep, and how they end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcpgreen.engine.server import Server
from mcpgreen.running import shares
from mcpgreen.transports.http.sessions import MAX_OUTLETS, HttpSessions
from mcpgreen.transports.http.streams.outlet import Outlets
from tests.support.fake_link import FakeLink, serving
from tests.support.project import ProjectBuilder
from tests.transports.http.test_outlet import Carrier


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    with serving(project.root) as server:
        yield server


@pytest.fixture
def outlets() -> Outlets:
    return Outlets(max_backlog_bytes=1 << 20)


@pytest.fixture
def sessions(server: Server, outlets: Outlets) -> Iterator[HttpSessions]:
    sessions = HttpSessions(server, server.services.settings, outlets)
    yield sessions
    sessions.stop()


def test_streams_beyond_those_that_are_kept_are_forgotten_when_they_are_over(
    sessions: HttpSessions, outlets: Outlets
) -> None:
    """A session that once had a thousand calls at a time kept a thousand streams."""
    session = sessions.open(None)
    many = [outlets.new(key=session.new_key()) for _ in range(3 * MAX_OUTLETS)]
    for key, outlet in enumerate(many, start=1):
        session.keep(key, outlet)
    for outlet in many:
        outlet.respond(b"{}")
        assert list(outlet.stream(Carrier(), keep_alive_secs=10))

    last = session.new_key()
    session.keep(last, outlets.new(key=last))

    assert len([key for key in range(last + 1) if session.outlet(key)]) == MAX_OUTLETS


def test_a_session_with_many_subscriptions_ends_wholly_when_its_client_says_exit(
    server: Server, sessions: HttpSessions, project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was ended in the hub, where nobody can wait: to end many subscriptions takes pauses, which failed there. Half
    of them stayed, and the streams of the session never ended."""
    notes = [project.resource(f"{number}.txt", "x") for number in range(50)]
    session = sessions.open(None)
    link = FakeLink(server, session=session.session)
    link.initialize()
    for number, note in enumerate(notes):
        assert "result" in link.ask("resources/subscribe", {"uri": note.as_uri()}, id=number)
    monkeypatch.setattr(shares, "TURN_SECS", -1.0)

    link.ask("shutdown", id="shutdown")
    link.send(method="exit")

    link.wait_for(lambda: session.standing.is_over)
    assert not len(sessions)
