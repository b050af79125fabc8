"""One POST that is answered, with the real server in this process: what is left if its client goes at a bad moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from mcpgreen.engine.server import Server
from mcpgreen.protocol import admission, revisions
from mcpgreen.transports.http.exchange import Accepts, ClientGone, Parts, Post, answer_post
from mcpgreen.transports.http.sessions import HttpSession, HttpSessions
from mcpgreen.transports.http.streams.outlet import Outlet, Outlets
from mcpgreen.transports.http.wire.connection import Request
from tests.support.fake_link import FakeLink, serving
from tests.support.project import ProjectBuilder

META = {
    admission.PROTOCOL_VERSION: revisions.STATELESS_NAMES[0],
    admission.CLIENT_CAPABILITIES: {},
    admission.CLIENT_INFO: {"name": "tests", "version": "1"},
}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "quick", "_meta": META}}


class Carrier:
    """A connection, as far as an exchange knows it."""

    hang_up: Callable[[], None]
    sent_at = 0.0

    def on_hangup(self, callback: Callable[[], None]) -> None:
        self.hang_up = callback

    def end(self) -> None:
        pass


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    project.tool("quick", "echo quick")
    with serving(project.root) as server:
        yield server


def test_nothing_waits_for_a_client_that_went_before_it_had_a_place_to_come_back_to(
    server: Server, project: ProjectBuilder
) -> None:
    """All that its call said afterwards was held until the call was over, and its questions waited for an answer."""
    project.tool(
        "tell",
        """source "$MCP_SDK/tool-sdk.sh"; cd "$MCPGREEN_PROJECT_ROOT"; touch began
until [ -e on ]; do sleep 0.01; done; mcp_progress 10; mcp_progress 20; touch told; exec sleep 600""",
    )
    carrier, parts = Carrier(), parts_of(server)
    session = parts.sessions.open(None)
    link = FakeLink(server, session=session.session)
    link.initialize()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    params = {"name": "tell", "_meta": {"progressToken": 1}}

    def hang_up_soon() -> None:
        link.wait_for((project.root / "began").exists)
        carrier.hang_up()

    hanging_up = gevent.spawn(hang_up_soon)
    with pytest.raises(ClientGone):
        respond(parts, {**call, "params": params}, carrier, session)
    hanging_up.join()
    project.write("on", "")
    link.wait_for((project.root / "told").exists)
    gevent.sleep(0.05)  # what is in the pipe is read

    (outlet,) = (stream.sink for stream in session.session.streams if isinstance(stream.sink, Outlet))
    assert outlet.unread_bytes == 0
    assert not outlet.carries_requests
    parts.sessions.stop()


def parts_of(server: Server, **options: Any) -> Parts:
    outlets = Outlets(max_backlog_bytes=1 << 20, **options)
    return Parts(server, outlets, HttpSessions(server, server.services.settings, outlets), None)


def respond(parts: Parts, message: Any, carrier: Carrier, session: HttpSession | None = None) -> None:
    request: Any = Request("POST", "/mcp", "", {}, None, carrier)  # type: ignore[arg-type]
    post = Post(request, message, 100, Accepts(json=True, events=True))
    answer_post(parts, post, session, key=None if session is None else 1)


def test_a_client_that_goes_just_when_its_answer_is_there_leaves_nothing(server: Server) -> None:
    """The answer counted as unread for ever, and its stream was held: each such client made less room for others."""
    carrier = Carrier()

    def hang_up_next(*_: Any) -> None:
        gevent.get_hub().loop.run_callback(carrier.hang_up)

    parts = parts_of(server, on_frame=hang_up_next)

    with pytest.raises(ClientGone):
        respond(parts, CALL, carrier)

    assert not server.is_busy
    assert "0 bytes unread, of 0 streams" in repr(parts.outlets)
