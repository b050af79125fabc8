"""Many clients of one server: whoever has many calls does not keep others waiting, nor takes all the room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcpgreen.engine.server import Server
from mcpgreen.features import services
from mcpgreen.features.asking import asking
from tests.support.fake_link import FakeLink, serving
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM

NOTE = (
    'until [ -e "$MCPGREEN_PROJECT_ROOT/go" ]; do sleep 0.01; done; '
    'echo "$MCP_TOOL_ARGS_JSON" >> "$MCPGREEN_PROJECT_ROOT/order"'
)


@pytest.fixture
def server(project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    project.tool("note", NOTE)
    monkeypatch.setattr(services, "MAX_QUEUED_REQUESTS", 16)
    with serving(project.root, max_concurrent_requests=1) as server:
        server.services.snapshot("tools")  # a look at the disk would be a line of its own
        yield server


def call(link: FakeLink, number: int, who: str) -> None:
    link.send_stateless("tools/call", {"name": "note", "arguments": {"who": who}}, id=number)


def test_a_client_with_one_call_does_not_wait_for_all_calls_of_another(server: Server, project: ProjectBuilder) -> None:
    greedy, modest = FakeLink(server, owner="greedy"), FakeLink(server, owner="modest")
    for number in range(4):
        call(greedy, number, "greedy")
    call(modest, 0, "modest")
    project.write("go", "")

    modest.response(0)
    for number in range(4):
        greedy.response(number)

    order = project.read("order").split()
    assert order.index('{"who":"modest"}') <= 2, order  # behind the one that ran, and the one that stood in line


def test_those_of_one_client_run_in_their_order(server: Server, project: ProjectBuilder) -> None:
    link = FakeLink(server, owner="one")
    for number in range(4):
        call(link, number, str(number))
    project.write("go", "")

    for number in range(4):
        link.response(number)

    assert project.read("order").split() == [f'{{"who":"{number}"}}' for number in range(4)]


def test_a_client_can_not_take_all_the_places_in_line(server: Server, project: ProjectBuilder) -> None:
    greedy, modest = FakeLink(server, owner="greedy"), FakeLink(server, owner="modest")
    for number in range(14):
        call(greedy, number, "greedy")

    refused = greedy.response(13)

    assert "your requests are waiting" in refused["error"]["message"]
    call(modest, 0, "modest")
    project.write("go", "")
    assert "result" in modest.response(0)


def test_a_client_that_is_gone_does_not_keep_others_waiting(server: Server, project: ProjectBuilder) -> None:
    greedy, modest = FakeLink(server, owner="greedy"), FakeLink(server, owner="modest")
    for number in range(4):
        call(greedy, number, "greedy")
    call(modest, 0, "modest")

    greedy.link.drop()
    project.write("go", "")

    assert "result" in modest.response(0)
    assert not greedy.sink.responses
    assert len(server.services.waiting) == 0


def test_a_client_with_many_open_questions_does_not_push_out_those_of_another(
    project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MAX_PARKED", 2)
    project.python_tool("asker", f"{ASK}\nprint(ask({{'who': form('Who?', name=TEXT)}})['who']['result']['content'])\n")
    with serving(project.root) as server:
        modest, greedy = FakeLink(server, owner="modest"), FakeLink(server, owner="greedy")
        asked = modest.ask_stateless("tools/call", {"name": "asker"}, id=1, capabilities=FORM)["result"]
        for number in range(3):
            greedy.ask_stateless("tools/call", {"name": "asker"}, id=number, capabilities=FORM)
        answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
        retry = {"name": "asker", "requestState": asked["requestState"], "inputResponses": answers}

        answer = modest.ask_stateless("tools/call", retry, id=2, capabilities=FORM)

        assert "Ada" in answer["result"]["content"][0]["text"]
