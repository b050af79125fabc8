"""Calls that run on workers: what is the same for clients, and what ends them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.conftest import Fleet
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM, Talk, accept, form
from tests.support.waiting import eventually, is_alive
from tests.support.wire import MODERN, text_of
from tests.tasks.clients import WITH_TASKS, begin, ended, look_until

GO = "until [[ -e $MCPGREEN_PROJECT_ROOT/go ]]; do sleep 0.05; done"
NAME = form("Who?", name={"type": "string"})


def test_a_call_runs_on_a_worker_with_its_labels(fleet: Fleet, project: ProjectBuilder) -> None:
    project.tool("far", 'printf "$MCP_TOOL_ARGS_JSON by $PPID"', run_on=["gpu", "host=a"])
    project.tool("here", 'printf "$PPID"')
    fleet.worker("--labels", "gpu", "--name", "other")
    worker = fleet.worker("--labels", "gpu,host=a,fast", "--name", "right")
    client = fleet.client(log_level="debug")
    result = client.call_tool("far", {"x": 1})

    assert text_of(result) == f'{{"x":1}} by {worker.process.pid}'
    assert result["_meta"] == {"mcpgreen/worker": "right"}
    assert text_of(client.call_tool("here")) == str(client.wire.pid)


def test_progress_log_and_failure_come_as_if_the_tool_ran_here(fleet: Fleet, project: ProjectBuilder) -> None:
    script = (
        'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 50 half 100; mcp_log_info tests "it runs"; echo no >&2; exit 3'
    )
    project.tool("far", script, run_on="any")
    fleet.worker()
    client = fleet.client(MODERN)
    answer = client.request("tools/call", {"name": "far"}, meta={"progressToken": 7, LOG_LEVEL: "info"})
    notices = {each["method"]: each["params"] for each in client.wire.seen if "method" in each and "id" not in each}

    assert answer["result"]["isError"] and "no" in text_of(answer["result"])
    assert notices["notifications/progress"]["message"] == "half"
    assert "it runs" in str(notices["notifications/message"])


LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def test_a_cancelled_call_kills_the_tree_on_the_worker(fleet: Fleet, project: ProjectBuilder, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    project.tool("stuck", f"sleep 60 & echo $! > {pid}.new; mv {pid}.new {pid}; wait", run_on="any")
    fleet.worker()
    client = fleet.client()
    id = client.start_tool("stuck")
    child = int(eventually(lambda: pid.exists() and pid.read_text(encoding="utf-8")))
    client.wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})

    eventually(lambda: not is_alive(child))


def test_a_deadline_counts_from_the_start_of_the_script(fleet: Fleet, project: ProjectBuilder, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    project.tool("stuck", f"sleep 60 & echo $! > {pid}; wait", run_on="any", timeoutSecs=0.5)
    fleet.worker()
    result = fleet.client().call_tool("stuck")

    assert result["isError"] and "timed out" in text_of(result)
    assert not is_alive(int(pid.read_text(encoding="utf-8")))


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_question_is_asked_in_both_eras(fleet: Fleet, project: ProjectBuilder, revision: str) -> None:
    project.python_tool("asker", f"{ASK}\nprint(json.dumps(ask({{'who': {NAME!r}}})), end='')", run_on="any")
    fleet.worker()
    client = fleet.client(revision, capabilities=FORM)
    if revision == MODERN:
        talk = Talk(client, name="asker")
        assert talk.begin()["inputRequests"] == {"who": NAME}
        result = talk.answer(accept(name="Zoë"))
    else:
        id = client.start_tool("asker")
        client.answer(client.asked("elicitation/create"), accept(name="Zoë"))
        result = client.wire.response(id)["result"]

    assert json.loads(text_of(result)) == {"who": {"status": "answered", "result": accept(name="Zoë")}}


@pytest.mark.parametrize("state_key", ["", "k" * 40])
def test_ten_megabytes_and_an_image_arrive_whole(fleet: Fleet, project: ProjectBuilder, state_key: str) -> None:
    project.tool("large", "yes 12345678 | head -c 9000000", run_on="any")
    image = {"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]}
    project.tool("image", f"printf '{json.dumps(image)}'", run_on="any")
    fleet.worker(state_key=state_key)
    client = fleet.client(state_key=state_key)

    assert text_of(client.call_tool("large")) == "12345678\n" * 1_000_000
    assert client.call_tool("image")["content"] == image["content"]


def test_arguments_and_results_are_encrypted_with_the_key(fleet: Fleet, project: ProjectBuilder) -> None:
    project.tool("tell", "printf 'result-%s' visible; " + GO, run_on="any")
    fleet.worker(state_key="k" * 40)
    client = fleet.client(state_key="k" * 40)
    id = client.start_tool("tell", {"secret": "argument-visible"})
    ledger = fleet.ledger()
    eventually(lambda: ledger.list(None))
    project.write("go", "")
    assert text_of(client.wire.response(id)["result"]) == "result-visible"
    stored = (fleet.redis.directory / "appendonlydir").glob("*")
    content = b"".join(each.read_bytes() for each in stored)

    assert b"argument-visible" not in content.replace(b"shown_arguments", b"") and b"result-visible" not in content


def test_a_task_is_one_as_here(fleet: Fleet, project: ProjectBuilder) -> None:
    project.tool("slow", f"echo working on it >&2; {GO}; printf done", run_on="any", task="always")
    fleet.worker()
    client = fleet.client(MODERN, capabilities=WITH_TASKS)
    task = begin(client, "slow")
    look_until(client, task, lambda found: found.get("statusMessage") == "working on it")
    project.write("go", "")

    assert text_of(ended(client, task)["result"]) == "done"


def test_the_worker_refuses_another_version_of_the_tool(fleet: Fleet, project: ProjectBuilder, tmp_path: Path) -> None:
    other = ProjectBuilder(tmp_path / "other" / project.root.name)
    for each, text in ((project, "new"), (other, "old")):
        each.tool("far", f"printf {text}", run_on="any")
    other.tool("same", "printf same", run_on="any")
    project.tool("same", "printf same", run_on="any")
    fleet.worker("--name", "behind", root=other.root)
    client = fleet.client()
    error = client.error("tools/call", {"name": "far"})

    assert "behind has another version of the tool 'far'" in error["message"] and error["message"].count("(") == 2
    assert text_of(client.call_tool("same")) == "same", "where the project lies makes no difference"


def test_a_label_that_no_worker_has(fleet: Fleet, project: ProjectBuilder) -> None:
    project.tool("far", "printf never", run_on=["quantum"], task="always")
    fleet.worker("--labels", "gpu")
    plain, client = fleet.client(), fleet.client(MODERN, capabilities=WITH_TASKS)
    task = begin(client, "far")
    look_until(client, task, lambda found: "no worker has the labels quantum" in found.get("statusMessage", ""))
    reason = "No worker of the fleet has the labels quantum; the call has waited for 2 s"

    assert reason in ended(client, task)["error"]["message"]
    assert reason in plain.error("tools/call", {"name": "far"})["message"]


def test_a_drained_worker_finishes_and_takes_nothing_new(fleet: Fleet, project: ProjectBuilder) -> None:
    project.tool("far", f"{GO}; printf $PPID", run_on="any")
    first = fleet.worker("--name", "first")
    client = fleet.client()
    running = client.start_tool("far")
    ledger = fleet.ledger()
    eventually(lambda: any(ledger.running(runner) for runner in ledger.members()))
    second = fleet.worker("--name", "second")
    command = [sys.executable, "-m", "mcpgreen", "fleet", "drain", "first", "--fleet", fleet.redis.url, "--json"]
    subprocess.run([*command, "--project-root", str(project.root)], check=True, capture_output=True)
    eventually(lambda: any(each.get("draining") for each in ledger.members().values()))
    later = client.start_tool("far")
    project.write("go", "")

    assert text_of(client.wire.response(running)["result"]) == str(first.process.pid)
    assert text_of(client.wire.response(later)["result"]) == str(second.process.pid)
    assert first.process.wait(20) == 0


def test_status_shows_workers_queues_and_tasks(fleet: Fleet, project: ProjectBuilder) -> None:
    project.tool("far", "sleep 30", run_on="any", task="always")
    fleet.worker("--name", "w1", "--labels", "gpu", "--slots", "1")
    client = fleet.client(MODERN, capabilities=WITH_TASKS)
    begin(client, "far"), begin(client, "far")

    def shown(*words: str) -> Any:
        command = [sys.executable, "-m", "mcpgreen", "fleet", *words, "--fleet", fleet.redis.url, "--json"]
        found = subprocess.run([*command, "--project-root", str(project.root)], check=True, capture_output=True)
        return json.loads(found.stdout)

    state = eventually(lambda: (found := shown("status"))["workers"][0]["running"] == 1 and found)
    worker, queue = state["workers"][0], state["queues"][0]
    assert (worker["name"], worker["labels"], worker["slots"]) == ("w1", ["gpu"], 1)
    assert (queue["queue"], queue["waiting"], queue["workers"], state["servers"]) == ("any", 1, 1, 1)
    assert [each["worker"] for each in shown("tasks")["tasks"]] == ["w1", ""]
