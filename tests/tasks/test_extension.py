"""Tasks for clients of the extension, over both transports."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.http import Serve
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, accept, form
from tests.support.task_shapes import EXTENSION
from tests.support.waiting import eventually
from tests.support.wire import Json, text_of
from tests.tasks.clients import ASKABLE, GO, WITH_TASKS, begin, ended, get, look_until, status_message
from tests.tasks.conftest import Connect

NEEDED = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
UNKNOWN = {"taskId": "0" * 32}


@pytest.mark.requirement("T-handle", "T-durable", "T-get", "T-discover")
def test_a_call_that_is_always_a_task_gets_a_handle_and_then_its_result(project: ProjectBuilder, client: Any) -> None:
    project.tool("slow", f"{GO}; printf done", task="always")
    offered = client.result("server/discover")["capabilities"]
    task = begin(client, "slow", task={"ttl": 1})  # what the older wire would say is ignored
    first = get(client, task)
    project.write("go", "")
    last = ended(client, task)

    assert offered["extensions"][EXTENSION] == {} and "tasks" not in offered
    assert task["status"] == first["status"] == "working"
    assert (task["ttlMs"], task["pollIntervalMs"]) == (None, 500)
    assert last["status"] == "completed" and text_of(last["result"]) == "done"
    assert last["ttlMs"] >= 3_600_000 and "related-task" not in str(last)


@pytest.mark.requirement("T-errors")
def test_a_tool_that_fails_is_completed_and_an_error_of_the_protocol_is_failed(
    project: ProjectBuilder, client: Any
) -> None:
    project.tool("fails", "echo broken >&2; exit 3", task="always")
    project.tool("refuses", 'source "$MCP_SDK/tool-sdk.sh"; mcp_fail -32050 "not today"', task="always")
    failed, refused = (ended(client, begin(client, name)) for name in ("fails", "refuses"))

    assert (failed["status"], failed["result"]["isError"]) == ("completed", True)
    assert (refused["status"], refused["error"]["message"]) == ("failed", "not today")
    assert refused["statusMessage"] == "not today"


@pytest.mark.requirement("T-undeclared")
def test_a_client_that_does_not_declare_the_extension_never_gets_a_task(
    project: ProjectBuilder, connect: Connect
) -> None:
    project.tool("always", "sleep 0.2; printf plain", task="always")
    project.tool("auto", "sleep 0.2; printf plain", task="auto", taskAfterSecs=0.01)
    project.tool("required", "printf never", task="required")
    client = connect(capabilities={})

    assert [text_of(client.call_tool(name)) for name in ("always", "auto")] == ["plain", "plain"]
    requests: list[tuple[str, Json]] = [(f"tasks/{each}", UNKNOWN) for each in ("get", "cancel", "update")]
    requests += [("tools/call", {"name": "required"}), ("subscriptions/listen", {"notifications": {"taskIds": ["x"]}})]
    for method, params in requests:
        error = client.error(method, params)
        assert (error["code"], error["data"]) == (-32021, NEEDED), method


@pytest.mark.requirement("T-unknown", "T-removed")
def test_unknown_ids_and_methods_of_the_older_wire_are_refused(client: Any) -> None:
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        assert client.error(method, {**UNKNOWN, "inputResponses": {}})["code"] == -32602
    for method in ("tasks/result", "tasks/list"):
        assert client.error(method, UNKNOWN)["code"] == -32601
    assert client.error("tasks/get", {})["code"] == -32602


@pytest.mark.requirement("T-cancel")
def test_a_cancelled_task_stops_its_script_and_cancelling_again_is_no_error(
    project: ProjectBuilder, client: Any
) -> None:
    project.tool("slow", 'echo $$ > "$MCPGREEN_PROJECT_ROOT/pid"; sleep 1000', task="always")
    task = begin(client, "slow")
    eventually(lambda: (project.root / "pid").exists() and project.read("pid"))
    acks = [client.result("tasks/cancel", {"taskId": task["taskId"]}) for _ in "12"]

    assert [ack.keys() - {"_meta"} for ack in acks] == [{"resultType"}] * 2
    assert get(client, task)["status"] == "cancelled"
    eventually(lambda: not (project.root / f"/proc/{int(project.read('pid'))}").exists())


@pytest.mark.requirement("T-promote")
def test_a_call_that_takes_long_becomes_a_task_and_its_script_goes_on(project: ProjectBuilder, client: Any) -> None:
    """With a time limit that is shorter than the script, because a task has more time."""
    said = 'echo x >> "$MCPGREEN_PROJECT_ROOT/started"'
    project.tool("slow", f"{said}; {GO}; sleep 0.6; printf done", task="auto", taskAfterSecs=0.3)
    project.tool("quick", "printf quick", task="auto", taskAfterSecs=30)
    assert text_of(client.call_tool("quick")) == "quick"
    task = begin(client, "slow")
    project.write("go", "")

    assert text_of(ended(client, task)["result"]) == "done"
    assert project.read("started") == "x\n"


def test_a_promoted_call_has_the_time_of_a_task(project: ProjectBuilder, connect: Connect) -> None:
    project.tool("silent", "sleep 1.5; printf done")
    project.tool("limited", "sleep 1000", timeoutSecs=0.5)
    project.tool("longer", "sleep 1; printf done", timeoutSecs=0.4, taskTimeoutSecs=60)
    client = connect(task_after_secs=0.2, default_tool_timeout=0.7)
    tasks = [begin(client, name) for name in ("silent", "limited", "longer")]
    silent, limited, longer = (ended(client, task)["result"] for task in tasks)

    assert [text_of(silent), text_of(longer)] == ["done", "done"]
    assert limited["isError"] and "0.5" in text_of(limited)


@pytest.mark.requirement("T-input", "T-keys", "T-partial")
def test_questions_from_two_parts_of_a_script_are_open_together_and_answered_one_by_one(
    project: ProjectBuilder, client: Any
) -> None:
    body = f"{ASK}\nplaces = [post({{key: form(key, name=TEXT)}}) for key in 'ab']"
    project.python_tool("asker", f"{body}\nprint(json.dumps([read(place) for place in places]))", task="always")
    task = begin(client, "asker")
    asked = look_until(client, task, lambda found: len(found.get("inputRequests", ())) == 2)

    def answer(**answers: Json) -> None:
        client.result("tasks/update", {"taskId": task["taskId"], "inputResponses": answers})

    answer(unknown=accept(name="?"), b={"action": "maybe"})  # neither is stored
    assert get(client, task)["inputRequests"].keys() == {"a", "b"}
    answer(b=accept(name="B"))
    assert look_until(client, task, lambda found: len(found["inputRequests"]) == 1)["status"] == "input_required"
    answer(b=accept(name="again"), a=accept(name="A"))

    assert asked["inputRequests"]["a"] == form("a", name={"type": "string"})
    result = text_of(ended(client, task)["result"])
    assert '"A"' in result and '"B"' in result and "again" not in result


@pytest.mark.requirement("T-before")
def test_questions_before_the_beginning_are_asked_in_the_usual_way(project: ProjectBuilder, client: Any) -> None:
    beginning = "control({'task': 'begin'})"
    asking = "ask({'who': form('?', name=TEXT)})['who']['result']['content']['name']"
    project.python_tool(
        "asker",
        f"{ASK}\nfirst = {asking}\n{beginning}\nprint(first, {asking}, end='')",
        task="required",
        taskBegins="script",
    )
    asked = client.result("tools/call", {"name": "asker"})
    assert asked["resultType"] == "input_required"
    params = {"inputResponses": {"who": accept(name="A")}, "requestState": asked["requestState"]}
    task = begin(client, "asker", **params)
    key = next(iter(look_until(client, task, lambda found: found["status"] == "input_required")["inputRequests"]))
    client.result("tasks/update", {"taskId": task["taskId"], "inputResponses": {key: accept(name="B")}})

    assert text_of(ended(client, task)["result"]) == "A B"


@pytest.mark.parametrize("way", ["auto", "always"])
def test_a_script_that_never_begins_its_task_gives_a_plain_result(
    project: ProjectBuilder, client: Any, way: str
) -> None:
    project.tool("quick", "sleep 0.2; printf plain", task=way, taskBegins="script", taskAfterSecs=0.01)
    project.tool("begins", 'source "$MCP_SDK/tool-sdk.sh"; mcp_task_begin; printf done', task=way)

    assert text_of(client.call_tool("quick")) == "plain"
    assert text_of(ended(client, begin(client, "begins"))["result"]) == "done"


@pytest.mark.requirement("T-progress")
def test_progress_is_the_status_message_and_stderr_where_there_is_none(project: ProjectBuilder, client: Any) -> None:
    project.tool("reports", f'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 42 compiling; {GO}', task="always")
    project.tool("prints", f"echo first >&2; echo 'last line' >&2; {GO}", task="always")
    reports, prints = begin(client, "reports"), begin(client, "prints")
    reported = status_message(client, reports, "42 %: compiling")
    status_message(client, prints, "last line")

    assert reported["lastUpdatedAt"] >= reported["createdAt"]


def test_a_task_waits_for_a_place_and_says_so(project: ProjectBuilder, connect: Connect) -> None:
    project.tool("slow", GO, task="always")
    client = connect(max_concurrent_requests=1)
    tasks = [begin(client, "slow") for _ in "12345"]
    status_message(client, tasks[4], "waiting for a place (3 before it)")
    status_message(client, tasks[1], "waiting for a place (0 before it)")
    for cancelled in (tasks[3], tasks[1]):
        client.result("tasks/cancel", {"taskId": cancelled["taskId"]})
    assert status_message(client, tasks[4], "waiting for a place (1 before it)")["status"] == "working"
    project.write("go", "")

    ends = ["completed", "cancelled", "completed", "cancelled", "completed"]
    assert [ended(client, task)["status"] for task in tasks] == ends


def test_a_call_that_waits_for_a_place_becomes_a_task_too(project: ProjectBuilder, connect: Connect) -> None:
    project.tool("slow", f"{GO}; printf done", task="auto", taskAfterSecs=0.2)
    client = connect(max_concurrent_requests=1)
    tasks = [begin(client, "slow") for _ in "12"]
    status_message(client, tasks[1], "waiting for a place (0 before it)")
    project.write("go", "")

    assert [text_of(ended(client, task)["result"]) for task in tasks] == ["done"] * 2


@pytest.mark.requirement("T-bounds")
def test_beyond_the_limit_nothing_runs(project: ProjectBuilder, connect: Connect) -> None:
    project.tool("slow", f'echo x >> "$MCPGREEN_PROJECT_ROOT/started"; {GO}', task="always")
    client = connect(max_tasks_per_principal=2)
    tasks = [begin(client, "slow") for _ in "12"]
    eventually(lambda: (project.root / "started").exists() and len(project.read("started")) == 4)
    error = client.error("tools/call", {"name": "slow"})
    project.write("go", "")

    assert error["code"] == -32603 and "task" in error["message"]
    assert [ended(client, task)["status"] for task in tasks] == ["completed"] * 2
    assert project.read("started") == "x\nx\n"


@pytest.mark.requirement("T-bounds")
def test_polls_have_a_rate(project: ProjectBuilder, connect: Connect) -> None:
    project.tool("quick", "", task="always")
    client = connect(FREE_POLLS_A_SEC=5)
    task = begin(client, "quick")
    ended(client, task)
    time.sleep(1.05)  # another second: what was asked before counts no more
    answers = [client.request("tasks/get", {"taskId": task["taskId"]}) for _ in range(60)]
    codes = [answer["error"]["code"] for answer in answers if "error" in answer]

    assert set(codes) == {-32000} and len(codes) <= 55


@pytest.mark.requirement("T-push")
def test_a_listen_is_told_each_change_of_its_tasks(project: ProjectBuilder, serve: Serve) -> None:
    project.python_tool("asker", f"{ASK}\nask({{'who': form('?', name=TEXT)}})\nprint('done', end='')", task="always")
    client = serve().stateless(capabilities=ASKABLE)
    task = begin(client, "asker")
    stream = client.start("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"], "unknown"]}})
    agreed = stream.notice("notifications/subscriptions/acknowledged")["params"]["notifications"]

    def told(status: str) -> Json:
        while (params := stream.notice("notifications/tasks")["params"])["status"] != status:
            pass
        return params

    key = next(iter(told("input_required")["inputRequests"]))
    client.result("tasks/update", {"taskId": task["taskId"], "inputResponses": {key: accept(name="A")}})

    assert agreed == {"taskIds": [task["taskId"]]}
    assert text_of(told("completed")["result"]) == "done"


@pytest.mark.requirement("T-headers")
def test_over_http_a_header_names_the_task(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("quick", "", task="always")
    client = serve().stateless(capabilities=WITH_TASKS)
    params = {"taskId": begin(client, "quick")["taskId"]}
    for header in (None, "another"):
        with client.start("tasks/get", params, headers={"Mcp-Name": header}) as reply:
            assert (reply.status, reply.answer()["error"]["code"]) == (400, -32020)
    with client.start("tasks/get", params) as reply:
        assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")


def test_a_large_result_is_kept_whole(project: ProjectBuilder, client: Any) -> None:
    project.tool("large", "head -c 3000000 /dev/zero | tr '\\0' x", task="always")

    assert text_of(ended(client, begin(client, "large"))["result"]) == "x" * 3_000_000


@pytest.mark.parametrize("stays", ["server", "session"])
def test_a_process_that_stays_serves_tasks(project: ProjectBuilder, client: Any, stays: str) -> None:
    body = (
        "import mcp_tool\n@mcp_tool.tool\ndef f(name: str) -> str:\n    'Begin a task.'\n    mcp_tool.begin_task()\n"
        "    return mcp_tool.ask_string('more?') + name\n"
    )
    project.forked_tool("f", body, stays=stays, task="auto")
    task = begin(client, "f", {"name": "A"})
    asked = look_until(client, task, lambda found: found["status"] == "input_required")["inputRequests"]
    field = next(iter(next(iter(asked.values()))["params"]["requestedSchema"]["properties"]))
    answers = dict.fromkeys(asked, accept(**{field: "B"}))
    client.result("tasks/update", {"taskId": task["taskId"], "inputResponses": answers})

    assert "BA" in text_of(ended(client, task)["result"])
