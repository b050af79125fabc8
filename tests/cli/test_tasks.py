"""`mcpgreen tasks`, beside a living server (the store of this process) and without one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest

from mcpgreen.project import task_place as place
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Task
from mcpgreen.tasks.sqlite_store import SqliteTaskStore
from tests.cli.test_commands import mcpgreen
from tests.support.project import ProjectBuilder
from tests.support.terminal import at_terminal

RESULT = {"content": [{"type": "text", "text": "built"}], "isError": False}
KEYS = ["taskId", "tool", "status", "statusMessage", "createdAt", "lastUpdatedAt"]


@pytest.fixture
def store(project: ProjectBuilder) -> Iterator[SqliteTaskStore]:
    store = SqliteTaskStore(place.directory_of(str(project.root), {"HOME": str(project.root)}))
    yield store
    store.close()


def tasks(project: ProjectBuilder, *words: str) -> tuple[int, str, str]:
    env = {"HOME": str(project.root), "XDG_STATE_HOME": ""}
    done = mcpgreen("tasks", *words, "--project-root", str(project.root), env=env)
    return done.returncode, done.stdout, done.stderr


def decoded(project: ProjectBuilder, *words: str, status: int = 0) -> Any:
    code, printed, said = tasks(project, *words, "--json")
    assert (code, said) == (status, "")
    return json.loads(printed)


def create(store: SqliteTaskStore, **fields: Any) -> Task:
    return store.create(Task(life.new_id(), "", "build", **fields))


def ended(store: SqliteTaskStore, status: str, result: object = None, **fields: Any) -> Task:
    task = create(store)
    content = None if result is None else json.dumps(result).encode()
    assert store.finish(task.id, 1, status, result=content, **fields)
    return task


def test_without_a_store_there_are_no_tasks_and_nothing_is_made(project: ProjectBuilder) -> None:
    before = sorted(project.root.rglob("*"))
    assert decoded(project) == decoded(project, "list") == []
    assert decoded(project, "clear") == {"removed": 0}
    assert "No tasks" in tasks(project)[2]
    for word in ("show", "result", "cancel"):
        assert tasks(project, word, "unknown")[0] == 1
    assert sorted(project.root.rglob("*")) == before
    assert tasks(project, "show")[0] == tasks(project, "fly")[0] == 2


def test_tasks_are_listed_and_shown(project: ProjectBuilder, store: SqliteTaskStore) -> None:
    done = ended(store, "completed", RESULT, stderr_end=b"cc x.c\n\x1b[2J")
    queued = create(store, status="queued", status_message=life.place_message(3))
    listed = decoded(project)
    assert [list(each) for each in listed] == [KEYS, KEYS]
    assert [(each["taskId"], each["status"]) for each in listed] == [(done.id, "completed"), (queued.id, "working")]
    assert decoded(project, "show", done.id) == {**listed[0], "stderr": "cc x.c\n\x1b[2J"}
    asking = create(store, shown_arguments='{"target":"all"}')
    store.ask(asking.id, 1, {"a": {"method": "elicitation/create", "params": {"message": "Sure?"}}})
    shown = tasks(project, "show", asking.id)[1]
    assert '{"target":"all"}' in shown and "input_required" in shown and "Sure?" in shown
    assert "\x1b" not in tasks(project, "show", done.id)[1]
    assert "waiting for a place (3 before it)" in tasks(project)[1]
    assert tasks(project, "show", "unknown")[0] == 1
    store.close()
    assert "its server is gone" in tasks(project)[1]


def test_a_result_is_printed_as_by_run_tool(project: ProjectBuilder, store: SqliteTaskStore) -> None:
    error = {"code": -32603, "message": "No way"}
    long = {"content": [{"type": "text", "text": "x" * life.INLINE_RESULT_BYTES}], "isError": False}
    wrong = {**RESULT, "isError": True, "_meta": {"exitCode": 0}}
    assert decoded(project, "result", ended(store, "completed", RESULT).id) == RESULT
    assert decoded(project, "result", ended(store, "completed", long).id) == long
    assert tasks(project, "result", ended(store, "completed", RESULT).id, "--plain") == (0, "built\n", "")
    assert decoded(project, "result", (failing := ended(store, "completed", wrong)).id) == wrong
    assert decoded(project, "result", failing.id, "--check", status=1) == wrong
    assert decoded(project, "result", ended(store, "failed", error=error).id, status=1) == {
        "_mcpToolError": True,
        **error,
    }
    assert tasks(project, "result", ended(store, "cancelled").id)[0] == 1
    code, printed, said = tasks(project, "result", create(store).id)
    assert (code, printed) == (1, "") and "has not ended" in said


def test_cancelling_reaches_a_living_server(project: ProjectBuilder, store: SqliteTaskStore) -> None:
    task, other = create(store), ended(store, "completed")
    words = [sys.executable, "-m", "mcpgreen", "tasks", "cancel", task.id, "--project-root", str(project.root)]
    command = subprocess.Popen(words, env={"HOME": str(project.root)}, stdout=subprocess.PIPE, text=True)
    with gevent.Timeout(30), command:
        while not any(each.wants_cancel for each in store.list(None)):
            gevent.sleep(0.01)
        assert store.finish(task.id, 1, "cancelled")
        assert command.communicate()[0] == f"{task.id} is cancelled.\n"
    assert command.returncode == 0
    assert tasks(project, "cancel", other.id)[0] == 1, "it has ended"
    orphan = create(store)
    store.close()
    assert decoded(project, "cancel", orphan.id)["status"] == "cancelled"
    assert decoded(project, "clear") == {"removed": 3}
    assert decoded(project) == []


def test_the_table_at_a_terminal_lives_until_all_have_ended(project: ProjectBuilder, store: SqliteTaskStore) -> None:
    def seen(answers: list[tuple[str, str]]) -> str:
        screen = at_terminal(["tasks"], cwd=project.root, width=120, answers=answers)
        assert screen.status == 0
        return screen.text

    task = create(store, status_message="42 %: compiling\x1b[2J")
    assert "tasks (1, 1 unfinished)" in seen([("42 %: compiling", "\x03")])
    store.finish(task.id, 1, "completed")
    assert "tasks (1, 0 unfinished)" in seen([])


def test_a_store_that_cannot_be_trusted_is_an_error(project: ProjectBuilder, store: SqliteTaskStore) -> None:
    create(store)
    Path(store.directory).chmod(0o777)
    code, printed, said = tasks(project, "--json")
    assert (code, printed) == (1, "") and place.DATABASE not in said and store.directory in said
    done = mcpgreen("doctor", cwd=project.root, env={"HOME": str(project.root), "XDG_STATE_HOME": ""})
    assert f"no task can be stored: {store.directory}" in " ".join(done.stdout.split())
