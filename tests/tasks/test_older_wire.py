"""Tasks for clients of 2025-11-25, which ask for them, over both transports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http import Serve
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM, accept
from tests.support.task_shapes import RELATED
from tests.support.wire import Json, text_of
from tests.tasks.clients import GO, LATEST_HANDSHAKE, MODERN, WITH_TASKS, begin, ended, get, look_until
from tests.tasks.conftest import Connect

OFFERED = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


def result_of(client: Any, task: Json) -> Json:
    found: Json = client.result("tasks/result", {"taskId": task["taskId"]})
    return found


@pytest.mark.requirement("T-old-create", "T-old-result", "T-old-list")
def test_a_client_asks_for_a_task_and_waits_for_its_result(project: ProjectBuilder, older: Any) -> None:
    project.tool("slow", f"{GO}; printf done", task="auto")
    task = begin(older, "slow", {"x": 1})
    listed = older.result("tasks/list")["tasks"]
    first = get(older, task)
    project.write("go", "")
    result = result_of(older, task)

    assert task["status"] == first["status"] == "working" and task["ttl"] is None
    assert [each["taskId"] for each in listed] == [task["taskId"]]
    assert text_of(result) == "done" and result["_meta"][RELATED] == {"taskId": task["taskId"]}
    assert get(older, task)["status"] == "completed"


def test_a_large_result_is_whole(project: ProjectBuilder, older: Any) -> None:
    project.tool("large", "yes 'é\"' | head -c 3000000", task="auto")

    assert text_of(result_of(older, begin(older, "large"))) == ('é"\n' * 750_000)


@pytest.mark.requirement("T-old-support")
def test_tools_say_whether_they_may_be_tasks(project: ProjectBuilder, connect: Connect) -> None:
    for way in ("never", "auto", "always", "required"):
        project.tool(way, "printf plain", task=way)
    project.tool("silent", "printf plain")
    client = connect(LATEST_HANDSHAKE)
    tools = {tool["name"]: tool.get("execution") for tool in client.result("tools/list")["tools"]}

    assert tools == {
        **dict.fromkeys(("never", "silent")),
        **{name: {"taskSupport": "optional"} for name in ("auto", "always")},
        "required": {"taskSupport": "required"},
    }
    assert client.error("tools/call", {"name": "required"})["code"] == -32601
    for name in ("never", "silent"):
        assert client.error("tools/call", {"name": name, "task": {}})["code"] == -32601
    for name in ("never", "silent", "auto", "always"):
        assert text_of(client.call_tool(name)) == "plain"


@pytest.mark.requirement("T-old-failed")
def test_a_tool_that_fails_is_a_failed_task_with_its_result(project: ProjectBuilder, older: Any) -> None:
    project.tool("fails", "echo broken >&2; exit 3", task="auto")
    project.tool("refuses", 'source "$MCP_SDK/tool-sdk.sh"; mcp_fail -32050 "not today"', task="auto")
    failed, refused = (ended(older, begin(older, name)) for name in ("fails", "refuses"))

    assert (failed["status"], refused["status"]) == ("failed", "failed")
    assert "broken" in failed["statusMessage"] and refused["statusMessage"] == "not today"
    assert result_of(older, failed)["isError"]
    assert older.error("tasks/result", {"taskId": refused["taskId"]})["code"] == -32050


@pytest.mark.requirement("T-old-input")
def test_a_question_is_asked_while_the_client_waits_for_the_result(project: ProjectBuilder, speak: Any) -> None:
    project.python_tool("asker", f"{ASK}\nprint(ask({{'who': form('?', name=TEXT)}})['who']['result'])", task="auto")
    client = speak(LATEST_HANDSHAKE, capabilities=FORM)
    task = begin(client, "asker")
    look_until(client, task, lambda found: found["status"] == "input_required")
    number = client.start("tasks/result", {"taskId": task["taskId"]})
    asked = client.asked("elicitation/create")
    client.answer(asked, accept(name="Zoe"))

    assert asked["params"]["_meta"][RELATED] == {"taskId": task["taskId"]}
    assert "Zoe" in text_of(client.wire.response(number)["result"])


def test_a_question_survives_the_connection_that_waited(project: ProjectBuilder, serve: Serve) -> None:
    project.python_tool("asker", f"{ASK}\nprint(ask({{'who': form('?', name=TEXT)}})['who']['result'])", task="auto")
    client = serve().session(capabilities=FORM)
    task = begin(client, "asker")
    with client.start("tasks/result", {"taskId": task["taskId"]}, id=77) as lost:
        lost.asked("elicitation/create")
        client.notify("notifications/cancelled", {"requestId": 77})
    with client.start("tasks/result", {"taskId": task["taskId"]}) as waiting:
        client.answer(waiting.asked("elicitation/create"), accept(name="Zoe"))

        assert "Zoe" in text_of(waiting.result())


@pytest.mark.requirement("T-old-cancel")
def test_a_cancelled_task_is_cancelled_in_the_answer_and_cannot_be_cancelled_again(
    project: ProjectBuilder, older: Any
) -> None:
    project.tool("slow", "sleep 1000", task="auto")
    task = begin(older, "slow")
    cancelled = older.result("tasks/cancel", {"taskId": task["taskId"]})

    assert cancelled["status"] == "cancelled"
    assert older.error("tasks/cancel", {"taskId": task["taskId"]})["code"] == -32602
    assert older.error("tasks/result", {"taskId": task["taskId"]})["code"] == -32603


@pytest.mark.requirement("T-old-cancel")
def test_a_client_that_waits_for_a_cancelled_task_gets_an_error(project: ProjectBuilder, speak: Any) -> None:
    project.tool("slow", "sleep 1000", task="auto")
    client = speak(LATEST_HANDSHAKE)
    task = begin(client, "slow")
    number = client.start("tasks/result", {"taskId": task["taskId"]})
    client.result("tasks/cancel", {"taskId": task["taskId"]})

    assert client.wire.response(number)["error"]["code"] == -32603


@pytest.mark.requirement("T-old-list", "T-old-unknown")
def test_pages_and_unknown_ids(project: ProjectBuilder, connect: Connect) -> None:
    project.tool("quick", "", task="auto")
    client = connect(LATEST_HANDSHAKE, page_size=2)
    made = [begin(client, "quick")["taskId"] for _ in "12345"]
    seen, params = [], {}
    while True:
        page = client.result("tasks/list", params)
        seen += [task["taskId"] for task in page["tasks"]]
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}

    assert seen == made
    assert client.error("tasks/list", {"cursor": "unknown"})["code"] == -32602
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        assert client.error(method, {"taskId": "unknown"})["code"] == -32602
    assert client.error("tasks/update", {"taskId": made[0], "inputResponses": {}})["code"] == -32601


@pytest.mark.requirement("T-old-push")
def test_the_session_is_told_when_a_task_ends(project: ProjectBuilder, speak: Any, serve: Serve) -> None:
    project.tool("slow", f'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 10 begun; {GO}', task="auto")
    client, over_http = speak(LATEST_HANDSHAKE), serve().session()
    with over_http.get() as stream:
        tasks = [begin(each, "slow", _meta={"progressToken": "p"}) for each in (client, over_http)]
        progress = client.wire.notice("notifications/progress")["params"]
        project.write("go", "")
        told = [each.notice("notifications/tasks/status")["params"] for each in (client.wire, stream)]

    assert [each["taskId"] for each in told] == [task["taskId"] for task in tasks]
    assert [each["status"] for each in told] == ["completed"] * 2
    assert progress["_meta"][RELATED] == {"taskId": tasks[0]["taskId"]}


def test_both_wires_share_the_tasks_of_a_project_on_stdio(project: ProjectBuilder, speak: Any) -> None:
    project.tool("slow", f"{GO}; printf done", task="always")
    older = speak(LATEST_HANDSHAKE)
    newer = speak(MODERN, capabilities=WITH_TASKS)
    task = begin(older, "slow")
    assert get(newer, task)["status"] == "working"
    project.write("go", "")

    assert text_of(ended(newer, task)["result"]) == "done"
    assert text_of(result_of(older, begin(newer, "slow"))) == "done"


@pytest.mark.requirement("T-off")
def test_without_any_tool_for_tasks_nothing_is_offered(project: ProjectBuilder, connect: Connect) -> None:
    project.tool("silent", "sleep 0.2; printf plain", taskAfterSecs=0.01)
    older, newer = connect(LATEST_HANDSHAKE, tasks="off"), connect(capabilities=WITH_TASKS, tasks="off")

    assert "extensions" not in newer.result("server/discover")["capabilities"] or "tasks" not in str(
        newer.result("server/discover")["capabilities"]
    )
    assert newer.error("tasks/get", {"taskId": "x"})["code"] == -32601
    assert text_of(newer.call_tool("silent")) == "plain"
    assert text_of(older.result("tools/call", {"name": "silent", "task": {}})) == "plain"  # as in older revisions


@pytest.mark.requirement("T-off")
def test_one_tool_is_enough_for_the_wires_to_be_offered(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("slow", "printf done", task="always")
    server = serve(tasks="off")
    client = server.client()

    assert client.initialize()["capabilities"]["tasks"] == OFFERED
    assert ended(newer := server.stateless(capabilities=WITH_TASKS), begin(newer, "slow"))["status"] == "completed"
