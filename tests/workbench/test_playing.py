"""Calls from the page: as a client of any revision, with questions, tasks, and an end before the end."""

from __future__ import annotations

import json

import pytest

from tests.support.client import ALL_REVISIONS
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, accept
from tests.support.waiting import eventually, is_alive
from tests.support.wire import LATEST_HANDSHAKE, MODERN, text_of
from tests.workbench.dev_server import Dev

ERAS = (LATEST_HANDSHAKE, MODERN)
ASKING = ASK + 'name = ask({"who": form("Who?", name=TEXT)})["who"]\nprint(name.get("result", {}).get("content"))'
STUCK = 'echo $$ > "$MCPGREEN_PROJECT_ROOT/pid.new"; cd "$MCPGREEN_PROJECT_ROOT"; mv pid.new pid; sleep 60'
PROGRESS = {
    "method": "notifications/progress",
    "params": {"progressToken": "x", "progress": 1, "total": 2, "type": "answer"},  # which it is not
}
LOG = {"method": "notifications/message", "params": {"level": "debug", "logger": "stats", "data": "counting"}}


@pytest.fixture(scope="module", autouse=True)
def tools(shared_project: ProjectBuilder) -> None:
    said = f"echo '{json.dumps(PROGRESS)}' >> $MCP_PROGRESS_STREAM; echo '{json.dumps(LOG)}' >> $MCP_LOG_STREAM"
    shared_project.tool("stats", f"{said}; printf '3 lines %s' \"$MCP_TOOL_ARGS_JSON\"")
    shared_project.python_tool("asks", ASKING)
    shared_project.python_tool("asks-later", ASKING, task="always")
    shared_project.tool("stuck", STUCK)
    shared_project.tool("stuck-later", STUCK, task="always")


def pid_in(project: ProjectBuilder) -> str:
    pid = eventually(lambda: (project.root / "pid").exists() and project.read("pid"))
    project.remove("pid")
    return str(pid)


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_call_is_served_as_to_a_client_of_the_revision(dev: Dev, revision: str) -> None:
    interaction = dev.play("stats", {"a": [1, 2.5, "u"]}, revision=revision)
    answer = interaction.wait_for("answer")

    (progress,), (log,) = map(interaction.of_type, ("notifications/progress", "notifications/message"))
    assert (progress["progress"], progress["total"]) == (1, 2)
    assert (log["level"], log["logger"], log["data"]) == ("debug", "stats", "counting")
    assert text_of(answer["frame"]["result"]) == '3 lines {"a":[1,2.5,"u"]}'
    assert ("resultType" in answer["frame"]["result"]) == (revision == MODERN)
    assert answer["ms"] > 0 and answer["call"] > 0


@pytest.mark.parametrize("revision", ERAS)
def test_a_question_is_answered_by_the_page_in_both_eras(dev: Dev, revision: str) -> None:
    interaction = dev.play("asks", revision=revision)
    question = interaction.wait_for("question")
    assert (question["method"], question["params"]["message"]) == ("elicitation/create", "Who?")
    assert dev.refusal("/api/answer", id=interaction.id, key=99, answer={})[0] == 404
    interaction.answer(question["key"], result=accept(name="Ada"))
    assert text_of(interaction.wait_for("answer")["frame"]["result"]) == "{'name': 'Ada'}\n"


def test_without_capabilities_nothing_is_asked(dev: Dev) -> None:
    interaction = dev.play("asks", revision=MODERN, capabilities="none")
    assert "result" in interaction.wait_for("answer")["frame"] or interaction.seen[-1]["frame"]["error"]
    assert not interaction.of_type("question")


@pytest.mark.parametrize("revision", ERAS)
def test_a_task_is_followed_and_its_question_answered_on_both_wires(dev: Dev, revision: str) -> None:
    interaction = dev.play("asks-later", revision=revision, task=True)
    question = interaction.wait_for("question")
    interaction.answer(question["key"], result=accept(name="Grace"))
    assert text_of(interaction.wait_for("answer")["frame"]["result"]) == "{'name': 'Grace'}\n"
    statuses = [event["status"] for event in interaction.of_type("task")]
    assert statuses[0] == "working" and statuses[-1] == "completed" and "input_required" in statuses


@pytest.mark.parametrize("revision", ERAS)
def test_cancelling_stops_the_script(dev: Dev, shared_project: ProjectBuilder, revision: str) -> None:
    interaction = dev.play("stuck", revision=revision)
    pid = pid_in(shared_project)
    interaction.cancel()
    interaction.wait_for("cancelled")
    eventually(lambda: not is_alive(pid))


@pytest.mark.parametrize("revision", ERAS)
def test_cancelling_a_task_ends_it(dev: Dev, shared_project: ProjectBuilder, revision: str) -> None:
    interaction = dev.play("stuck-later", revision=revision, task=True)
    pid = pid_in(shared_project)
    interaction.cancel()
    assert "cancelled" in interaction.wait_for("answer")["frame"]["error"]["message"]
    eventually(lambda: not is_alive(pid))


def test_a_page_that_is_closed_leaves_no_script_and_no_client(dev: Dev, shared_project: ProjectBuilder) -> None:
    interaction = dev.play("stuck")
    pid = pid_in(shared_project)
    interaction.leave()
    eventually(lambda: not is_alive(pid))
    eventually(lambda: dev.send("POST", "/api/cancel", {"id": interaction.id}).status == 404)
