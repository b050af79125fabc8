"""A client that lost its connection comes back by `Last-Event-ID`, and gets the rest: all of it, once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.http import HttpClient, HttpServer
from tests.support.http_replies import Reply
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

LISTED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"


@pytest.fixture
def client(project: ProjectBuilder, serve: Callable[..., HttpServer]) -> HttpClient:
    return serve().session()


def walking(project: ProjectBuilder, client: HttpClient) -> Reply:
    """The stream of a call that has told its first step, and waits for the file `on`."""
    project.tool(
        "walk",
        f"""cd '{project.root}'
source "$MCP_SDK/tool-sdk.sh"
echo $$ > pid
mcp_progress 10 one
until [ -e on ]; do sleep 0.01; done
mcp_progress 90 two
echo arrived""",
    )
    reply = client.start_tool("walk", id="walk", meta={"progressToken": "steps"})
    reply.notice(PROGRESS)
    return reply


@pytest.mark.requirement("G-http-resuming")
def test_the_rest_of_a_call_comes_on_another_connection(project: ProjectBuilder, client: HttpClient) -> None:
    first = walking(project, client)
    first.close()
    assert is_alive(project.read("pid"))

    with client.get(last_event_id=first.last_event_id) as second:
        project.write("on", "")

        assert second.notice(PROGRESS)["params"]["progress"] == 90
        assert text_of(second.result()) == "arrived\n"
        assert second.rest() == []


@pytest.mark.requirement("G-http-resuming")
def test_what_came_while_nobody_was_there_is_sent_again(project: ProjectBuilder, client: HttpClient) -> None:
    first = walking(project, client)
    first.close()
    project.write("on", "")
    eventually(lambda: not is_alive(project.read("pid")))

    with client.get(last_event_id=first.last_event_id) as second:
        assert [message.get("method", "answer") for message in second.rest()] == [PROGRESS, "answer"]


def test_a_client_may_begin_at_the_beginning(project: ProjectBuilder, client: HttpClient) -> None:
    first = walking(project, client)
    first.close()
    project.write("on", "")

    with client.get(last_event_id=first.events[0].id) as second:
        told = second.rest()

    assert [message["params"]["progress"] for message in told[:-1]] == [10, 90]
    assert text_of(told[-1]["result"]) == "arrived\n"


def test_a_connection_that_brings_nothing_names_the_place_to_go_on_from(
    project: ProjectBuilder, client: HttpClient
) -> None:
    """The TypeScript clients know only what the last connection told them: if that was nothing, they came back without
    an event, took the stream of the session, and never got their answer."""
    first = walking(project, client)
    first.close()

    with client.get(last_event_id=first.last_event_id) as second:
        event = second.next_event()

    assert event is not None
    assert (event.id, event.data) == (first.last_event_id, "")


def test_there_is_no_stream_to_go_on_with_once_all_of_it_was_sent(project: ProjectBuilder, client: HttpClient) -> None:
    first = walking(project, client)
    project.write("on", "")
    first.result()

    with client.get(last_event_id=first.last_event_id) as second:
        assert second.status == 405


@pytest.mark.requirement("G-http-resuming")
def test_there_is_no_stream_to_go_on_with_after_a_cancelled_call(project: ProjectBuilder, client: HttpClient) -> None:
    """Clients whose call was cancelled see the stream end without an answer, and come back for it. They got a stream
    that ended at once, and came back every second, for ever."""
    first = walking(project, client)
    client.notify("notifications/cancelled", {"requestId": "walk"})
    assert first.rest() == []
    eventually(lambda: not is_alive(project.read("pid")))

    with client.get(last_event_id=first.last_event_id) as second:
        assert second.status == 405


@pytest.mark.parametrize("last_event_id", ["77-1", "99999-0"])
def test_a_stream_that_is_not_known_any_more_does_not_become_that_of_the_session(
    project: ProjectBuilder, client: HttpClient, last_event_id: str
) -> None:
    """A client with two GETs would have had each push the other out, every second, for ever."""
    standing = client.get()
    assert standing.status == 200

    with client.get(last_event_id=last_event_id) as other:
        assert other.status == 405

    project.tool("late", "echo")
    standing.notice(LISTED)


@pytest.mark.requirement("G-http-resuming")
def test_a_change_while_the_stream_of_the_session_was_lost_is_told_later(
    project: ProjectBuilder, client: HttpClient
) -> None:
    first = client.get()
    project.tool("early", "echo")
    first.notice(LISTED)
    first.close()
    project.tool("late", "echo")
    eventually(lambda: "late" in {tool["name"] for tool in client.result("tools/list")["tools"]})

    with client.get(last_event_id=first.last_event_id) as second:
        second.notice(LISTED)


def test_what_was_told_is_not_told_again(project: ProjectBuilder, client: HttpClient) -> None:
    first = client.get()
    project.tool("early", "echo")
    first.notice(LISTED)
    first.close()

    with client.get(last_event_id=first.last_event_id) as second:
        project.prompt("note.txt", "x")
        assert second.next_message()["method"] == "notifications/prompts/list_changed"


def test_a_new_stream_of_the_session_begins_after_what_was_told(project: ProjectBuilder, client: HttpClient) -> None:
    """Its first event named the very beginning. A client that then lost it before anything came was told again what it
    had heard on the stream before."""
    first = client.get()
    project.tool("early", "echo")
    first.notice(LISTED)
    first.close()

    with client.get() as second:
        event = second.next_event()

    assert event is not None
    assert event.id == first.last_event_id
