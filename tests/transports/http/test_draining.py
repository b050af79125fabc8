"""A server that was told to stop: what runs is finished, what is new is refused in a way that a proxy understands."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.http import HttpServer
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import MODERN, modern_meta, text_of

STEPS = "cd {root} && touch began && until [[ -e go ]]; do sleep 0.02; done && echo done"
CONFIRM = """source "${MCP_SDK:?}/tool-sdk.sh"
mcp_elicit_confirm "Go on?"
"""


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[HttpServer]:
    project.tool("steps", STEPS.format(root=project.root))
    project.tool("confirm", CONFIRM)
    with HttpServer(project.root, shutdown_timeout=60) as server:
        yield server


def health(server: HttpServer) -> int:
    with server.client().send("GET", path="/healthz") as reply:
        return reply.status


def began(root: Path) -> bool:
    return (root / "began").exists()


def test_what_runs_is_finished_and_what_is_new_is_refused(server: HttpServer, project: ProjectBuilder) -> None:
    running = server.stateless().start_tool("steps")
    eventually(lambda: began(project.root))

    server.process.terminate()
    eventually(lambda: health(server) == 503)
    refused = server.stateless().start("tools/list", id=7)
    opened = server.client().start("initialize", {"protocolVersion": "2025-11-25"})
    project.write("go", "")

    assert (refused.status, refused.headers["Connection"], refused.headers["Retry-After"]) == (503, "close", "1")
    assert refused.json()["id"] == 7
    assert opened.status == 503
    assert text_of(running.result()) == "done\n"
    assert server.wait() == 0


def test_a_connection_that_was_kept_has_one_answer_more(server: HttpServer, project: ProjectBuilder) -> None:
    """It was closed at once. A proxy that had just sent a request could not know whether it was begun, and gave up."""
    kept = http.client.HTTPConnection(*server.address, timeout=60)
    assert asked(kept) == (200, None)
    running = server.stateless().start_tool("steps")
    eventually(lambda: began(project.root))

    server.process.terminate()
    eventually(lambda: health(server) == 503)

    assert asked(kept) == (503, "close")
    project.write("go", "")
    assert text_of(running.result()) == "done\n"
    kept.close()


def test_a_session_may_still_answer_and_end(server: HttpServer) -> None:
    """A call that asks could not be finished: its answer was refused like a request."""
    client = server.session(capabilities={"elicitation": {}})
    other = server.session()
    running = client.start_tool("confirm")
    question = running.asked("elicitation/create")

    server.process.terminate()
    eventually(lambda: health(server) == 503)

    assert client.start("tools/list").status == 503
    assert client.get().status == 503
    assert other.delete().status == 204
    client.answer(question, {"action": "accept", "content": {"confirmed": True}})
    assert '"accept"' in text_of(running.result())
    assert server.wait() == 0


def test_a_client_may_still_come_back_for_the_rest_of_a_call(server: HttpServer, project: ProjectBuilder) -> None:
    """Its connection was lost and its GET refused, so that the call was finished for nobody."""
    project.tool("walk", f'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 10; {STEPS.format(root=project.root)}')
    client = server.session()
    first = client.start_tool("walk", meta={"progressToken": 1})
    first.notice("notifications/progress")
    first.close()

    server.process.terminate()
    eventually(lambda: health(server) == 503)
    second = client.get(last_event_id=first.last_event_id)
    project.write("go", "")

    assert text_of(second.result()) == "done\n"
    assert server.wait() == 0


def test_answers_to_the_questions_of_running_calls_may_come_as_a_batch(
    server: HttpServer, project: ProjectBuilder
) -> None:
    """Revision 2025-03-26 has batches, of answers too. They were refused, because there might be requests in them."""
    project.tool("sample", 'source "$MCP_SDK/tool-sdk.sh"; mcp_sample \'"Say hi."\' 10')
    client = server.session("2025-03-26", capabilities={"sampling": {}})
    running = client.start_tool("sample")
    question = running.asked("sampling/createMessage")

    server.process.terminate()
    eventually(lambda: health(server) == 503)
    said = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m", "stopReason": "endTurn"}
    answers = client.post([{"jsonrpc": "2.0", "id": question["id"], "result": said}])
    refused = client.post([{"jsonrpc": "2.0", "id": 5, "method": "ping"}])

    assert (answers.status, refused.status) == (202, 503)
    assert "hi" in text_of(running.result())
    assert server.wait() == 0


def asked(connection: http.client.HTTPConnection) -> tuple[int, str | None]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/list",
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": modern_meta()}}
    connection.request("POST", "/mcp", json.dumps(message), headers)
    response = connection.getresponse()
    response.read()
    return response.status, response.headers["Connection"]
