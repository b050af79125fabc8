"""The life of a task: which status follows which, and what a client is told."""

from __future__ import annotations

import pytest

from mcpgreen.tasks import life
from mcpgreen.tasks.life import Status, Task

UNFINISHED = ("queued", "working", "input_required")
ENDED = ("completed", "failed", "cancelled")


def task(status: str, **fields: object) -> Task:
    return Task(life.new_id(), "", "tool", status=status, **fields)  # type: ignore[arg-type]  # of several types


def noted(before: str, after: str, attempt: int = 1) -> Task | None:
    return life.noted(task(before), attempt, after, "x")


@pytest.mark.parametrize("before", (*UNFINISHED, *ENDED))
@pytest.mark.parametrize("after", (*UNFINISHED, *ENDED))
def test_only_a_task_that_has_not_ended_changes(before: str, after: str) -> None:
    ended = life.finished(task(before), after)
    assert (ended is not None) == (before in UNFINISHED and after in ENDED)
    assert (noted(before, after) is not None) == (before in UNFINISHED and after in UNFINISHED)


def test_every_status_is_in_the_table() -> None:
    assert set(life.TRANSITIONS) == {*UNFINISHED, *ENDED} == life.UNFINISHED | life.ENDED
    assert all(life.TRANSITIONS[status] == frozenset() for status in ENDED)


def test_a_stale_attempt_changes_nothing() -> None:
    assert noted("working", "working", attempt=2) is None
    assert life.asked(task("working"), 2, {"a": {}}) is None


@pytest.mark.parametrize(
    "progress, total, message, expected",
    [
        (42, 100, "compiling", "42 %: compiling"),
        (42.9, 100, "compiling", "42 %: compiling"),
        (3, 12, None, "25 %"),
        (29, 100, "", "29 %"),  # 0.29 * 100 is less than 29
        (500, 100, "x", "100 %: x"),
        (-1, 100, "x", "0 %: x"),
        (7, None, "file 7", "file 7"),
        (7, 0, "file 7", "file 7"),
        (7, None, None, ""),
        (1, 2, "x" * 5000, "50 %: " + "x" * (life.MAX_MESSAGE_CHARS - 6)),
    ],
)
def test_progress_becomes_a_message(progress: float, total: float | None, message: str | None, expected: str) -> None:
    assert life.message_of((progress, total, message)) == expected


def test_older_tasks_are_polled_less_often() -> None:
    ages = [0, 4.99, 5, 10, 30, 50, 10_000]
    assert [life.poll_interval_ms(age) for age in ages] == [500, 500, 500, 1000, 3000, 5000, 5000]


def test_a_task_has_a_time_to_live_once_it_has_ended() -> None:
    running = task("working", created_at=1000.0, keep_secs=60.0)
    assert life.ttl_ms(running) is None
    ended = running._replace(status=Status.COMPLETED, ended_at=1010.0)
    assert life.ttl_ms(ended) == 70_000


def test_what_a_client_reads() -> None:
    assert life.iso_time(0.25) == "1970-01-01T00:00:00.250Z"
    assert life.place_message(3) == "waiting for a place (3 before it)"
    assert len({life.new_id() for _ in range(100)}) == 100
    failed = life.finished(task("working"), "failed", error={"code": -1, "message": "no"})
    assert failed is not None and failed.status_message == "no"


def test_questions_are_bounded_and_keys_are_used_once() -> None:
    asking = life.asked(task("working"), 1, {"a": {}, "b": {}})
    assert asking is not None and asking.status == "input_required"
    half = life.answered(asking, {"a": "x"})
    assert half is not None and half.status == "input_required" and half.open_questions == {"b": {}}
    assert noted_of(half, "working").status == "input_required"
    whole = life.answered(life.closed(half, ["a"]), {"b": "y"})
    assert whole is not None and whole.status == "working" and whole.questions["b"]["answer"] == "y"
    again = life.asked(whole, 1, {"a": {}})
    assert again is not None and list(again.open_questions) == ["a-2"]
    with pytest.raises(ValueError):
        life.asked(whole, 1, {str(number): {} for number in range(life.MAX_QUESTIONS)})
    with pytest.raises(ValueError):
        life.asked(whole, 1, {"long": {"message": "x" * life.MAX_QUESTIONS_BYTES}})


def noted_of(one: Task, status: str) -> Task:
    new = life.noted(one, one.attempt, status, "x")
    assert new is not None
    return new


@pytest.mark.parametrize(
    "fields, status, message",
    [
        ({}, "failed", "The server was restarted"),
        ({"wants_cancel": True, "idempotent": True, "sealed_params": b"x"}, "cancelled", "The task was cancelled"),
        ({"idempotent": True}, "failed", life.NOT_RESTORED),
        ({"idempotent": True, "sealed_params": b"x", "attempt": life.MAX_ATTEMPTS}, "failed", life.TOO_OFTEN),
        ({"idempotent": True, "sealed_params": b"x"}, "queued", ""),
    ],
)
def test_what_becomes_of_a_task_whose_runner_died(fields: dict[str, object], status: str, message: str) -> None:
    new = life.recovered(task("working", **fields), "us")
    assert (new.status, new.status_message) == (status, message)
    if status == "failed":
        assert new.error == {"code": -32603, "message": message}
    if status == "queued":
        assert (new.attempt, new.runner, new.sealed_params) == (2, "us", b"x")
