"""Several links of one server, without a pipe: sessions, streams, and what belongs to neither."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import gevent
import pytest

from mcpgreen.engine.link import MEMBERS_A_TURN
from mcpgreen.engine.server import Server
from mcpgreen.links.session import Session
from tests.support.fake_link import FakeLink, serving
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM
from tests.support.waiting import is_alive

WAIT = (
    'echo >> "$MCPGREEN_PROJECT_ROOT/began"; until [ -e "$MCPGREEN_PROJECT_ROOT/go" ]; do sleep 0.01; done; echo slow'
)
ASKER = f"""{ASK}
note('pids', os.getpid())
print(ask({{'who': form('Who?', name=TEXT)}})['who']['result']['content']['name'])
"""
ANSWER = {"who": {"action": "accept", "content": {"name": "Ada"}}}


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    project.tool("slow", WAIT)
    project.tool("quick", "echo quick")
    project.tool("where", 'echo "$MCPBASH_TRANSPORT"')
    project.python_tool("asker", ASKER)
    with serving(project.root, max_concurrent_requests=2) as server:
        yield server


def text_of(answer: dict[str, object]) -> object:
    return answer["result"]["content"][0]["text"]  # type: ignore[index]


@pytest.mark.parametrize("is_stateless", [False, True], ids=["of one session", "without a session"])
def test_equal_ids_on_two_streams_do_not_meet(server: Server, project: ProjectBuilder, is_stateless: bool) -> None:
    first = FakeLink(server)
    first.initialize()
    second = FakeLink(server, session=first.session)
    for link, name in ((first, "slow"), (second, "quick")):
        if is_stateless:
            link.send_stateless("tools/call", {"name": name}, id=1)
        else:
            link.send(id=1, method="tools/call", params={"name": name})

    assert text_of(second.response(1)) == "quick\n"
    assert not first.sink.responses
    project.write("go", "")
    assert text_of(first.response(1)) == "slow\n"
    assert not second.sink.responses


def test_a_parked_call_is_taken_up_from_another_stream_when_its_own_is_gone(server: Server) -> None:
    first = FakeLink(server)
    asked = first.ask_stateless("tools/call", {"name": "asker"}, id=1, capabilities=FORM)["result"]
    assert asked["resultType"] == "input_required"
    first.close()
    second = FakeLink(server)
    retry = {"name": "asker", "requestState": asked["requestState"], "inputResponses": ANSWER}

    assert text_of(second.ask_stateless("tools/call", retry, id=1, capabilities=FORM)) == "Ada\n"


def test_a_parked_call_ends_with_the_server(project: ProjectBuilder) -> None:
    project.python_tool("asker", ASKER)
    with serving(project.root) as server:
        link = FakeLink(server)
        link.ask_stateless("tools/call", {"name": "asker"}, id=1, capabilities=FORM)
        link.close()
        (pid,) = project.read("pids").split()
        assert is_alive(pid)

    assert not is_alive(pid)


def greenlets() -> set[int]:
    """Those that are alive."""
    gc.collect()
    return {id(each) for each in gc.get_objects() if isinstance(each, gevent.Greenlet) and not each.dead}


def test_a_parked_call_leaves_no_greenlet_behind_when_the_server_stops(project: ProjectBuilder) -> None:
    project.python_tool("asker", ASKER)
    already = greenlets()
    with serving(project.root) as server:
        link = FakeLink(server)
        link.ask_stateless("tools/call", {"name": "asker"}, id=1, capabilities=FORM)
        assert greenlets() - already

    link.wait_for(lambda: not greenlets() - already)


CHANGED = {"method": "notifications/roots/list_changed"}
CALLED = {"id": 1, "method": "tools/call", "params": {"name": "any"}}


@pytest.mark.requirement("G-asking")
@pytest.mark.parametrize("before", [[], [CHANGED], [CALLED], [CHANGED, CALLED]], ids=["none", "change", "call", "both"])
def test_a_link_that_closes_while_the_client_is_asked_leaves_no_greenlet(
    server: Server, before: list[dict[str, Any]]
) -> None:
    already = greenlets()
    link = FakeLink(server)
    link.initialize(capabilities={"roots": {}})
    for message in before:
        link.send(**message)
    gevent.sleep(0)
    assert len(link.session.requests._pending) == 1
    assert greenlets() - already

    link.close()
    link.wait_for(lambda: not greenlets() - already)
    assert not link.session.requests._pending
    assert not link.sink.notifications


@pytest.mark.requirement("G-roots-wait")
def test_links_of_one_server_have_roots_of_their_own(server: Server, project: ProjectBuilder) -> None:
    links = [FakeLink(server), FakeLink(server)]
    for link in links:
        link.initialize(capabilities={"roots": {}})
    named = {"roots": [{"uri": (project.root / "tools").as_uri()}]}
    links[0].send(id=links[0].request()["id"], result=named)
    gevent.sleep(0)

    assert links[0].session.roots.current.paths == [str(project.root / "tools")]
    assert links[1].session.roots.current.paths == [str(project.root)]


def test_a_parked_call_is_not_heard(project: ProjectBuilder) -> None:
    progress = "control({'method': 'notifications/progress', 'params': {'progress': %d}})"
    body = f"""{ASK}
place = post({{'who': form('Who?', name=TEXT)}})
wait_for('parked')
{progress % 1}
note('told')
read(place)
"""
    project.python_tool("teller", body)
    with serving(project.root) as server:
        link = FakeLink(server)
        params = {"name": "teller", "_meta": {"progressToken": 1}}
        assert "requestState" in link.ask_stateless("tools/call", params, id=1, capabilities=FORM)["result"]
        project.write("parked", "")
        link.wait_for((project.root / "told").exists)
        gevent.sleep(0.1)  # what is in the pipe is read

        assert not link.sink.notifications


def test_what_is_asked_for_a_script_ends_with_it(project: ProjectBuilder) -> None:
    project.python_tool("hasty", f"{ASK}\npost({{'who': form('Who?', name=TEXT)}})\nwait_for('go')\nprint('gone')")
    with serving(project.root) as server:
        link = FakeLink(server)
        link.initialize(capabilities=FORM)
        link.send(id=1, method="tools/call", params={"name": "hasty"})
        asked = link.request()
        project.write("go", "")

        assert text_of(link.response(1)) == "gone\n"
        (told,) = link.wait_for(lambda: link.sink.notifications)
        assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", asked["id"])
        assert not link.session.requests._pending


def test_a_slow_reader_does_not_hold_up_other_clients(server: Server, project: ProjectBuilder) -> None:
    """It held a slot for each call that could not start because nobody read."""
    slow, quick = FakeLink(server), FakeLink(server)
    slow.sink.room.clear()
    for id in range(6):
        slow.send_stateless("tools/call", {"name": "quick"}, id=id)
    gevent.sleep(0)

    assert text_of(quick.ask_stateless("tools/call", {"name": "quick"}, id=1)) == "quick\n"
    assert not slow.sink.responses
    slow.sink.room.set()
    assert [text_of(slow.response(id)) for id in range(6)] == ["quick\n"] * 6


def test_requests_of_ours_go_on_the_stream_of_their_call_and_are_answered_on_any(server: Server) -> None:
    home = FakeLink(server)
    home.initialize(capabilities=FORM)
    asking, other = FakeLink(server, session=home.session), FakeLink(server, session=home.session)
    asking.send(id=1, method="tools/call", params={"name": "asker"})
    request = asking.request()
    assert request["method"] == "elicitation/create"
    assert not home.sink.requests
    assert not other.sink.requests

    other.send(id=request["id"], result=ANSWER["who"])
    assert text_of(asking.response(1)) == "Ada\n"


def test_a_call_can_be_cancelled_from_another_stream_of_its_session_only(
    server: Server, project: ProjectBuilder
) -> None:
    first, stranger = FakeLink(server), FakeLink(server)
    first.initialize()
    stranger.initialize()
    second = FakeLink(server, session=first.session)
    first.send(id=1, method="tools/call", params={"name": "slow"})
    stranger.send(method="notifications/cancelled", params={"requestId": 1})
    assert first.link.stream.in_flight
    second.send(method="notifications/cancelled", params={"requestId": 1})

    assert not first.link.stream.in_flight
    assert not first.sink.responses


def test_what_belongs_to_no_request_goes_to_the_session(server: Server) -> None:
    home = FakeLink(server)
    home.initialize()
    other = FakeLink(server, session=home.session)
    server.services.subscriptions.list_changed("tools")

    assert [frame["method"] for frame in home.sink.notifications] == ["notifications/tools/list_changed"]
    assert not other.sink.notifications


def test_a_session_outlives_its_streams_unless_it_came_with_one(server: Server) -> None:
    session = Session(FakeLink(server).sink, server.services.settings, server.services.roots)
    server.add_session(session)
    link = FakeLink(server, session=session)
    link.initialize()
    link.close()

    assert text_of(FakeLink(server, session=session).ask("tools/call", {"name": "quick"}, id=1)) == "quick\n"


def test_a_request_that_cannot_be_begun_is_answered_and_its_id_is_free(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error ended the reader, and with it the server."""
    link = FakeLink(server)

    def fail() -> None:
        raise RuntimeError("unforeseen")

    with monkeypatch.context() as patch:
        patch.setattr(link.sink, "expect", fail)
        answer = link.ask_stateless("tools/call", {"name": "quick"}, id=1)

    assert answer["error"]["code"] == -32603
    assert text_of(link.ask_stateless("tools/call", {"name": "quick"}, id=1)) == "quick\n"


def test_where_initialized_is_not_waited_for_only_a_request_that_needs_it_counts_as_it(server: Server) -> None:
    for waits in (True, False):
        services = server.services
        session = Session(FakeLink(server).sink, services.settings, services.roots, waits_for_initialized=waits)
        server.add_session(session)
        link = FakeLink(server, session=session)
        assert link.ask("tools/list", id=1)["error"]["code"] == -32000  # before initialize
        assert not session.handshake.is_ready
        link.ask("initialize", id=2)
        for method in ("ping", "initialize", "exit"):
            link.ask(method, id=3)
            assert not session.handshake.is_ready

        answer = link.ask("tools/list", id=4)

        assert ("error" in answer, session.handshake.is_ready) == (waits, not waits)


def test_nothing_more_of_a_batch_is_begun_once_its_link_is_closed(server: Server) -> None:
    """A session that was ended while a batch was taken apart had the rest of it run all the same, and nothing could
    stop these calls any more."""
    link = FakeLink(server)
    link.initialize(revision="2025-03-26")
    link.link.give_turn = link.close
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "slow"}}

    link.link.receive([{**call, "id": number} for number in range(20)])

    assert not link.link.stream.in_flight
    assert not len(server.services.waiting)
    assert [len(answers) for answers in link.sink.responses] == [MEMBERS_A_TURN]
