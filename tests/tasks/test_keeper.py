"""Tasks that outlive a client over stdio: their calls are served by a keeper."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, accept, form
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Json, text_of
from tests.tasks.clients import ASKABLE, GO, LATEST_HANDSHAKE, MODERN, begin, ended, get, look_until, status_message

SURVIVES: Json = {"task": "always", "taskSurvivesClient": True}
NOTE_PID = 'echo "$PPID" > "$MCPGREEN_PROJECT_ROOT/keeper"; echo "$$" > "$MCPGREEN_PROJECT_ROOT/script"'
SLOW = f"{NOTE_PID}; {GO}; printf done"


@pytest.fixture(autouse=True)
def _own_state(project: ProjectBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield
    project.write("go", "")  # whatever happened, scripts end, and with them the keeper


def pid_in(project: ProjectBuilder, name: str) -> int:
    path = project.root / name
    return int(eventually(lambda: path.exists() and path.read_text().strip()))


def left_by(pid: int) -> list[str]:
    """What a process has left in the store, if it is over."""
    places = Path(os.environ["XDG_STATE_HOME"]).glob("mcpgreen/tasks/*/runners/*")
    return [str(each) for each in places] if not is_alive(pid) else ["a process"]


@pytest.mark.parametrize("end", ["eof", "kill", "group"])
@pytest.mark.parametrize("revision", [LATEST_HANDSHAKE, MODERN])
def test_a_task_goes_on_without_its_client_and_the_next_server_has_its_result(
    end: str, revision: str, project: ProjectBuilder, speak: Speak
) -> None:
    project.tool("slow", SLOW, **SURVIVES)
    client = speak(revision, capabilities=ASKABLE, wire={"new_session": True})
    task = begin(client, "slow")
    keeper, script = pid_in(project, "keeper"), pid_in(project, "script")
    if end == "eof":
        assert client.wire.stop() == 0
    else:
        (os.killpg if end == "group" else os.kill)(client.wire.pid, signal.SIGKILL)
        client.wire.wait()
    client.wire._threads[1].join(5)  # it reads stderr, which the keeper must not hold
    assert not client.wire._threads[1].is_alive()
    assert is_alive(keeper) and is_alive(script)

    other = speak(MODERN, capabilities=ASKABLE)
    assert get(other, task)["status"] == "working"
    project.write("go", "")
    assert text_of(ended(other, task)["result"]) == "done"
    assert eventually(lambda: left_by(keeper) == []) and not is_alive(script)


def test_without_tasks_the_keeper_ends_with_its_server(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("slow", SLOW, **SURVIVES)
    client = speak(MODERN, capabilities=ASKABLE)
    project.write("go", "")
    first = ended(client, begin(client, "slow"))
    keeper = pid_in(project, "keeper")
    second = ended(client, begin(client, "slow"))
    assert first["status"] == second["status"] == "completed"
    assert pid_in(project, "keeper") == keeper and is_alive(keeper)
    assert client.wire.stop() == 0
    assert eventually(lambda: left_by(keeper) == [])


@pytest.mark.parametrize("rerun", [False, True])
def test_tasks_of_a_killed_keeper_are_recovered_while_the_server_lives(
    rerun: bool, project: ProjectBuilder, speak: Speak
) -> None:
    project.tool("slow", f'{NOTE_PID}; {GO}; printf "%s" "$MCP_TASK_ATTEMPT"', **SURVIVES, idempotent=rerun)
    client = speak(MODERN, capabilities=ASKABLE)
    task = begin(client, "slow")
    keeper, script = pid_in(project, "keeper"), pid_in(project, "script")
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: not is_alive(script))
    if rerun:
        eventually(lambda: pid_in(project, "keeper") != keeper)
        keeper = pid_in(project, "keeper")
        client.wire.stop()
        client = speak(MODERN, capabilities=ASKABLE)
    project.write("go", "")
    found = ended(client, task)
    if rerun:
        assert text_of(found["result"]) == "2"
    else:
        assert found["error"] == {"code": -32603, "message": "The server was restarted"}


def test_what_a_killed_keeper_leaves_is_removed_while_the_server_runs_other_scripts(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    """The server took the keeper's guardian, which cleans up, for a process that a script had left, and killed it."""
    (tmp_path / "tmp").mkdir()
    project.tool("slow", SLOW, **SURVIVES)
    project.tool("quick", "")
    client = speak(MODERN, capabilities=ASKABLE, env={"TMPDIR": str(tmp_path / "tmp")})
    client.call_tool("quick")
    begin(client, "slow")
    keeper, script = pid_in(project, "keeper"), pid_in(project, "script")
    assert len(list((tmp_path / "tmp").glob("mcpgreen.state.*"))) == 2
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: client.call_tool("quick") and len(list((tmp_path / "tmp").glob("mcpgreen.state.*"))) == 1)
    assert not is_alive(script)


def test_a_quick_call_is_plain_and_a_slow_one_is_promoted(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("quick", 'echo "$PPID" > "$MCPGREEN_PROJECT_ROOT/keeper"; printf plain')
    script = f'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 25 working; mcp_task_begin; {GO}; printf done'
    project.tool("slow", script, taskAfterSecs=60)
    client = speak(MODERN, capabilities=ASKABLE, tasks_survive_client=True)
    assert text_of(client.call_tool("quick")) == "plain"
    assert pid_in(project, "keeper") != client.wire.pid
    task = begin(client, "slow")
    status_message(client, task, "25 %: working")
    project.write("go", "")
    assert text_of(ended(client, task)["result"]) == "done"
    listed = speak(LATEST_HANDSHAKE).result("tasks/list")["tasks"]
    assert [each["taskId"] for each in listed] == [task["taskId"]]


def test_cancelling_reaches_calls_and_tasks_in_the_keeper(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("slow", SLOW, **SURVIVES)
    project.tool("plain", SLOW, taskSurvivesClient=True, taskAfterSecs=60)
    client = speak(MODERN, capabilities=ASKABLE)
    request = client.start("tools/call", {"name": "plain"})
    script = pid_in(project, "script")
    client.wire.notify("notifications/cancelled", {"requestId": request})
    eventually(lambda: not is_alive(script))
    project.remove("script")
    task = begin(client, "slow")
    script = pid_in(project, "script")
    client.result("tasks/cancel", {"taskId": task["taskId"]})
    assert ended(client, task)["status"] == "cancelled"
    eventually(lambda: not is_alive(script))


def ask_twice(project: ProjectBuilder) -> None:
    """A tool that asks before it says that its task begins, and after that."""
    question = form("Who?", name={"type": "string"})
    body = f"{ASK}\nfirst = ask({{'one': {question!r}}})\ncontrol({{'task': 'begin'}})\n"
    body += f"second = ask({{'two': {question!r}}})\n"
    body += "print(*(each['result']['content']['name'] for each in (first['one'], second['two'])))"
    project.python_tool("asks", body, **SURVIVES, taskBegins="script")


def test_a_question_begins_the_task_and_another_client_answers_the_next_one(
    project: ProjectBuilder, speak: Speak
) -> None:
    ask_twice(project)
    client = speak(MODERN, capabilities=ASKABLE)
    task = begin(client, "asks")
    assert list(get(client, task)["inputRequests"]) == ["one"]
    client.result("tasks/update", {"taskId": task["taskId"], "inputResponses": {"one": accept(name="Ada")}})
    look_until(client, task, lambda found: "two" in found.get("inputRequests", {}))
    client.wire.stop()
    other = speak(MODERN, capabilities=ASKABLE)
    other.result("tasks/update", {"taskId": task["taskId"], "inputResponses": {"two": accept(name="Bob")}})
    assert text_of(ended(other, task)["result"]).strip() == "Ada Bob"


def test_on_the_older_wire_the_client_is_asked_by_requests(project: ProjectBuilder, speak: Speak) -> None:
    ask_twice(project)
    client = speak(LATEST_HANDSHAKE, capabilities={"elicitation": {}, "roots": {}})
    request = client.start("tools/call", {"name": "asks", "arguments": {}, "task": {}})
    client.answer(client.asked("roots/list"), {"roots": []})
    task = client.wire.response(request)["result"]["task"]
    waiting = client.start("tasks/result", {"taskId": task["taskId"]})
    for name in ("Ada", "Bob"):
        client.answer(client.asked("elicitation/create"), accept(name=name))
    assert text_of(client.wire.response(waiting)["result"]).strip() == "Ada Bob"
    assert client.wire.notice("notifications/tasks/status")["params"]["taskId"] == task["taskId"]
