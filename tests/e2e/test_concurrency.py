"""Many things at once: tools side by side, and everything else beside busy tools."""

from __future__ import annotations

import os

import pytest

from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import text_of

WAIT = "touch running.$$; until [ -e go ]; do sleep 0.02; done; echo done"


def running(project: ProjectBuilder) -> int:
    return len(list(project.root.glob("running.*")))


@pytest.mark.requirement("P-025")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_two_tools_that_wait_for_each_other_both_finish(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    for name in ("there", "back"):
        os.mkfifo(project.root / name)
    project.tool("ask", "echo question > there; cat back")
    project.tool("answer", "cat there > /dev/null; echo answer > back; echo replied")
    client = speak(revision)
    ask, answer = client.start_tool("ask"), client.start_tool("answer")

    assert text_of(client.wire.response(ask)["result"]) == "answer\n"
    assert text_of(client.wire.response(answer)["result"]) == "replied\n"


@pytest.mark.requirement("P-025")
def test_lists_and_pings_are_served_while_all_slots_are_busy(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("wait", WAIT)
    client = speak()
    client.tools()  # else the first calls wait for a look at the project, and later ones may overtake them
    ids = [client.start_tool("wait") for _ in range(216)]
    eventually(lambda: running(project) == 16)

    assert client.result("ping") == {}
    assert list(client.tools()) == ["wait"]
    assert client.wire.modern("server/discover")["result"]["resultType"] == "complete"
    assert running(project) == 16

    for id in ids[16:]:
        client.wire.notify("notifications/cancelled", {"requestId": id})
    client.result("ping")
    project.write("go", "")
    for id in ids[:16]:
        assert text_of(client.wire.response(id)["result"]) == "done\n"
    assert running(project) == 16


@pytest.mark.requirement("P-113")
@pytest.mark.parametrize("where", ["setting", "description"])
def test_no_more_calls_run_at_once_than_allowed(project: ProjectBuilder, speak: Speak, where: str) -> None:
    fields = {"maxConcurrent": 1} if where == "description" else {}
    project.tool("alone", "mkdir busy || echo OVERLAP; sleep 0.02; rmdir busy", **fields)
    client = speak() if fields else speak(max_concurrent_requests=1)
    ids = [client.start_tool("alone") for _ in range(8)]

    assert [text_of(client.wire.response(id)["result"]) for id in ids] == [""] * 8


@pytest.mark.requirement("P-113")
def test_calls_that_wait_for_their_tool_take_no_place_from_others(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("wait", WAIT, maxConcurrent=1)
    project.tool("other", "echo other")
    client = speak(max_concurrent_requests=2)
    ids = [client.start_tool("wait") for _ in range(3)]
    eventually(lambda: running(project) == 1)

    assert text_of(client.call_tool("other")) == "other\n"

    project.write("go", "")
    for id in ids:
        assert text_of(client.wire.response(id)["result"]) == "done\n"


@pytest.mark.requirement("P-113")
def test_a_line_that_is_too_long_is_refused_and_served_again_later(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("wait", WAIT)
    client = speak(max_concurrent_requests=1, MAX_QUEUED_REQUESTS=2)
    served = [client.start_tool("wait")]
    eventually(lambda: running(project) == 1)
    served += [client.start_tool("wait") for _ in range(2)]
    refused = client.error("tools/call", {"name": "wait"})
    assert refused["code"] == -32603
    assert client.result("ping") == {}

    project.write("go", "")
    for id in served:
        assert text_of(client.wire.response(id)["result"]) == "done\n"
    assert text_of(client.call_tool("wait")) == "done\n"


@pytest.mark.requirement("P-024", "P-025")
def test_a_client_that_reads_late_gets_every_answer(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("large", "head -c 200000 /dev/zero | tr '\\0' x")
    client = speak(MAX_BACKLOG_BYTES=65536)
    ids = [client.start_tool("large") for _ in range(20)]

    assert {len(text_of(client.wire.response(id)["result"])) for id in ids} == {200_000}
