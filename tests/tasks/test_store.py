"""What every store of tasks does, in memory and on disk. The second store is another process's, on the same tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest

from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.fleet.ledger import RedisTaskStore
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Task
from mcpgreen.tasks.sqlite_store import MemoryTaskStore, SqliteTaskStore
from mcpgreen.tasks.store import TaskStore

Open = Callable[..., TaskStore]
QUESTION = {"method": "elicitation/create", "params": {"message": "Sure?"}}
YES = {"action": "accept", "content": {"sure": True}}


class Ledger(RedisTaskStore):
    """It tells each process of its own tasks, as news."""

    def changed_since(self, mark: int) -> tuple[int, list[Task]]:
        found = dict.fromkeys(fields[b"t"].decode() for fields in self.news(0.01))
        changed = list(filter(None, map(self.get, found))) if mark >= 0 else []
        return mark + bool(found), changed


@pytest.fixture(params=["memory", "sqlite", "redis"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    opened: list[TaskStore] = []
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""

    def open_one(**limits: Any) -> TaskStore:
        if request.param == "redis":
            opened.append(Ledger(url, "project", **limits))
        elif request.param == "sqlite":
            opened.append(SqliteTaskStore(str(tmp_path / "state/mcpgreen/tasks/project"), **limits))
        else:
            first = opened[0] if opened else None
            assert first is None or isinstance(first, MemoryTaskStore)
            opened.append(MemoryTaskStore(beside=first, **limits))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> TaskStore:
    return open_store()


@pytest.fixture
def other(store: TaskStore, open_store: Open) -> TaskStore:
    return open_store()


def new(owner: str = "", **fields: object) -> Task:
    return Task(life.new_id(), owner, "build", **fields)  # type: ignore[arg-type]  # of several types


def current(store: TaskStore, task: Task) -> Task:
    found = store.get(task.id)
    assert found is not None
    return found


def test_a_task_is_stored_whole(store: TaskStore, other: TaskStore) -> None:
    task = store.create(
        new("sub:x", keep_secs=5.0, survives=True, idempotent=True, sealed_params=b"\x00sealed")
        ._replace(shown_arguments='{"a": ["é"]}', client={"revision": "é", "n": [1.5, None]}, status="queued")
    )  # fmt: skip
    assert task.runner == store.runner and abs(task.created_at - time.time()) < 5
    assert store.get(task.id) == other.get(task.id) == task
    assert store.get(life.new_id()) is None and store.get("../../etc/passwd") is None


def test_progress_is_noted(store: TaskStore, other: TaskStore) -> None:
    task = store.create(new(status="queued"))
    assert store.note(task.id, 1, status="working", status_message="1 %: x" * 1000)
    seen = current(other, task)
    assert seen.status == "working" and seen.status_message.startswith("1 %: x")
    assert len(seen.status_message) == life.MAX_MESSAGE_CHARS
    assert seen.updated_at > task.updated_at
    assert store.note(task.id, 1, status_message=seen.status_message)
    assert current(store, task).updated_at == seen.updated_at, "nothing has changed"
    assert not store.note(task.id, 2, status_message="stale")
    assert not store.note(task.id, 1, status="completed", status_message="x"), "only `finish` ends a task"
    assert not store.note("unknown", 1, status_message="x")


@pytest.mark.parametrize("size", [10, life.INLINE_RESULT_BYTES + 1])
def test_exactly_one_end_counts(store: TaskStore, other: TaskStore, size: int) -> None:
    task = store.create(new(sealed_params=b"x"))
    result = b'"' + b"r" * size + b'"'
    with pytest.raises(InternalError):
        store.result_of(task)
    ends: list[tuple[str, bool]] = []

    def end(which: TaskStore, status: str) -> None:
        content = result if status == "completed" else None
        ended = which.finish(task.id, 1, status, result=content, stderr_end=b"a" * 100_000 + b"end")
        ends.append((status, ended is not None))

    everyone = [(which, status) for status in sorted(life.ENDED) for which in (store, other)]
    gevent.joinall([gevent.spawn(end, *each) for each in everyone], raise_error=True)
    assert [won for _, won in ends].count(True) == 1
    ended = current(other, task)
    assert (ended.status, True) in ends
    assert len(ended.stderr_end) == life.STDERR_BYTES and ended.stderr_end.endswith(b"end")
    assert ended.ended_at and ended.sealed_params is None
    assert not store.note(task.id, 1, status_message="late")
    if ended.status == "completed":
        assert ended.result_bytes == len(result)
        assert other.result_of(ended) == result


def test_a_long_result_is_read_from_its_file(store: TaskStore, other: TaskStore) -> None:
    task, result = store.create(new()), b"x" * (life.INLINE_RESULT_BYTES + 1)
    assert store.finish(task.id, 1, "completed", result=result)
    assert other.result_of(current(other, task)) == result
    assert store.remove() == 1
    with pytest.raises(InternalError):
        other.result_of(task)


def test_questions_are_answered_one_by_one_elsewhere(store: TaskStore, other: TaskStore) -> None:
    task = store.create(new())
    assert store.ask(task.id, 1, {"a": QUESTION}) and store.ask(task.id, 1, {"b": QUESTION})
    assert current(other, task).open_questions == {"a": QUESTION, "b": QUESTION}
    mark = store.changed_since(-1)[0]
    assert other.answer(task.id, {"b": YES, "unknown": YES}) == {"b"}
    assert [each.id for each in store.changed_since(mark)[1]] == [task.id]
    seen = current(store, task)
    assert seen.status == "input_required" and seen.open_questions == {"a": QUESTION}
    assert other.answer(task.id, {"b": {"action": "decline"}}) == set(), "answered before"
    assert store.take_answers(task.id, 2, ["b"]) == {}, "a stale attempt"
    assert store.take_answers(task.id, 1, ["a", "b"]) == {"b": YES}
    assert store.take_answers(task.id, 1, ["a", "b"]) == {}
    assert store.answer(task.id, {"a": YES}) == {"a"}
    assert current(other, task).status == "working"
    assert store.take_answers(task.id, 1, ["a", "b"]) == {"a": YES}
    assert store.ask(task.id, 1, {"b": QUESTION, "c": QUESTION}) == {"b": "b-2", "c": "c"}, "no key is used twice"
    with pytest.raises(InvalidParams):
        store.answer(task.id, {"a": {"content": "x" * life.MAX_ANSWERS_BYTES}})
    assert store.answer("unknown", {"a": YES}) == set()


def test_a_wish_to_cancel_reaches_the_runner(store: TaskStore, other: TaskStore) -> None:
    task = store.create(new())
    mark = store.changed_since(-1)[0]
    wished = other.want_cancel(task.id)
    assert wished is not None and wished.wants_cancel and wished.status == "working"
    mark, changed = store.changed_since(mark)
    assert [each.wants_cancel for each in changed] == [True]
    assert other.want_cancel(task.id) == wished and store.changed_since(mark)[1] == [], "once is enough"
    assert other.finish(task.id, 1, "cancelled")
    assert [each.status for each in store.changed_since(mark)[1]] == ["cancelled"], "ended by another process"
    cancelled = other.want_cancel(task.id)
    assert cancelled is not None and cancelled.status == "cancelled"
    assert other.want_cancel("unknown") is None


def test_tasks_of_a_dead_runner_are_recovered_once(store: TaskStore, other: TaskStore, open_store: Open) -> None:
    plain, rerun, queued = (store.create(each) for each in (new(), new(idempotent=True, sealed_params=b"x"), new()))
    store.ask(rerun.id, 1, {"a": QUESTION})
    living = other.create(new())
    third = open_store()
    assert third.recover() == [], "a living server's tasks are left alone"
    store.close()
    assert (wished := other.want_cancel(queued.id)) and wished.status == "cancelled", "there is no one to do it"
    claimed = [each for which in (other, third) for each in which.recover()]
    assert [(each.id, each.attempt, each.runner, each.status) for each in claimed] == [
        (rerun.id, 2, other.runner, "queued")
    ]
    ended = current(third, plain)
    assert (ended.status, ended.status_message) == ("failed", "The server was restarted")
    assert ended.error == {"code": -32603, "message": "The server was restarted"}
    assert current(third, living) == living
    assert not other.finish(rerun.id, 1, "completed"), "the attempt that died"
    assert other.ask(rerun.id, 2, {"a": QUESTION}) == {"a": "a-2"}
    assert other.finish(rerun.id, 2, "completed", result=b"{}")


def test_lists_are_of_one_owner_and_in_order(store: TaskStore, other: TaskStore) -> None:
    ids = [store.create(new("ann" if number % 2 else "bob", stderr_end=b"x")).id for number in range(6)]
    assert [each.id for each in other.list("ann")] == ids[1::2]
    assert [each.id for each in other.list(None, limit=4)] == ids[:4]
    assert [each.id for each in other.list("ann", after=ids[1], limit=1)] == [ids[3]]
    assert other.list("eve") == [] and other.list("ann", after=ids[5]) == []
    assert other.list(None)[0].stderr_end == b"", "long fields are left out"
    for foreign in (ids[0], "unknown"):
        with pytest.raises(InvalidParams):
            other.list("ann", after=foreign)


def test_changes_are_told_after_a_mark(store: TaskStore, other: TaskStore) -> None:
    if isinstance(store, Ledger):
        other = store
    first, second = store.create(new()), store.create(new())
    mark, nothing = other.changed_since(-1)
    assert nothing == [] and other.changed_since(mark) == (mark, [])
    store.note(first.id, 1, status_message="x")
    store.note(first.id, 1, status_message="y")
    later, changed = other.changed_since(mark)
    assert [(each.id, each.status_message) for each in changed] == [(first.id, "y")]
    store.finish(second.id, 1, "completed")
    assert [each.id for each in other.changed_since(later)[1]] == [second.id]
    latest = other.changed_since(later)[0]
    store.remove()
    third = store.create(new())
    assert [each.id for each in other.changed_since(latest)[1]] == [third.id], "marks are never used again"


def test_tasks_go_when_their_time_is_over(store: TaskStore, other: TaskStore) -> None:
    running, short, long = store.create(new()), store.create(new(keep_secs=0.0)), store.create(new(keep_secs=100.0))
    for each in (short, long):
        store.finish(each.id, 1, "completed", result=b"{}")
    assert other.get(short.id) is None, "even before it is removed"
    assert [each.id for each in other.list(None)] == [running.id, long.id]
    assert store.remove(time.time()) == 1 and store.remove(time.time()) == 0
    assert store.remove(time.time() + 101) == 1 and other.get(long.id) is None
    assert other.get(running.id) is not None and other.remove() == 0


def test_the_tasks_of_a_session_end_with_it(store: TaskStore, other: TaskStore) -> None:
    here, gone, survivor, foreign = (
        which.create(new(owner, survives=owner == "s" and which is other and True))
        for which, owner in ((store, "s"), (store, "s"), (other, "s"), (store, "t"))
    )
    store.finish(gone.id, 1, "completed")
    other.end_tasks_of("s")
    assert current(store, here).wants_cancel
    assert store.get(gone.id) is None
    assert not current(store, survivor).wants_cancel and not current(store, foreign).wants_cancel


def test_unfinished_tasks_are_bounded(open_store: Open) -> None:
    store = open_store(max_per_owner=2, max_tasks=3)
    first = store.create(new("a"))
    store.create(new("a"))
    with pytest.raises(InternalError, match="unfinished tasks"):
        store.create(new("a"))
    store.create(new("b"))
    with pytest.raises(InternalError, match="unfinished tasks"):
        store.create(new("c"))
    store.finish(first.id, 1, "completed")
    store.create(new("c"))
    assert len(store.list(None)) == 4


def test_odd_input_does_no_harm(store: TaskStore) -> None:
    task = store.create(new())
    assert store.get("\ud800") is None and store.want_cancel("\ud800") is None
    with pytest.raises(InvalidParams):
        store.list(None, after="\ud800")
    assert store.note(task.id, 1, status_message="half \ud800") and current(store, task).status_message == "half ?"
    assert store.finish(task.id, 1, "failed", error={"code": 1, "message": "half \ud800"})


def test_params_are_sealed(store: TaskStore) -> None:
    params = {"name": "build", "arguments": {"password": "hunter2"}}
    sealed = store.seal(params)
    assert sealed is not None and store.unseal(sealed) == params
    assert store.seal({"x": "y" * life.MAX_SEALED_BYTES}) is None
