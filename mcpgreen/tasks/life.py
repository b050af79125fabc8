"""The life of a task: what is stored of it, and which changes are possible.

Pure: a function takes a `Task` and returns the changed one, or None if the change is not possible.

Rule: a task that has ended never changes again, and of two ends the first one counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import chain, count
from typing import Any, NamedTuple

from mcpgreen.errors import RpcError
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json


class Status:
    QUEUED = "queued"  # it waits for a place, or to be run again
    WORKING = "working"
    INPUT_REQUIRED = "input_required"  # a question is open
    COMPLETED = "completed"
    FAILED = "failed"  # with an error of JSON-RPC; a tool that fails is completed
    CANCELLED = "cancelled"


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
UNFINISHED = frozenset({Status.QUEUED, Status.WORKING, Status.INPUT_REQUIRED})
# What may follow each status. An unfinished task is queued again when it is run again.
TRANSITIONS: dict[str, frozenset[str]] = {
    **dict.fromkeys(UNFINISHED, UNFINISHED | ENDED),
    **dict.fromkeys(ENDED, frozenset()),
}

NO_RUNNER = "none"  # the task was handed over, and no process has taken it yet
RESTARTED = "The server was restarted"
NOT_RESTORED = "The server was restarted, and the arguments of the task cannot be restored"
TOO_OFTEN = "The server was restarted too often while the task ran"
CANCELLED = "The task was cancelled"

MAX_ATTEMPTS = 5
MAX_MESSAGE_CHARS = 1000
STDERR_BYTES = 65_536
INLINE_RESULT_BYTES = 65_536  # a longer result is kept as a file
MAX_QUESTIONS = 1000  # in the life of a task
MAX_QUESTIONS_BYTES = 1 << 20  # of all questions of a task
MAX_ANSWERS_BYTES = 1 << 20  # of one round
MAX_SEALED_BYTES = 4 << 20
PLAIN_KEEP_SECS = 60.0  # the result of a task that has not begun is read at once
MIN_POLL_MS, MAX_POLL_MS = 500, 5000

Questions = dict[str, Json]


class Task(NamedTuple):
    """A task as it is stored. Times are in seconds since 1970."""

    id: str  # see `new_id`
    owner: str
    tool: str
    status: str = Status.WORKING
    status_message: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None
    keep_secs: float = 3600.0  # after its end
    attempt: int = 1
    runner: str = ""  # the process that runs it
    is_begun: bool = True  # if not, its client may still get a plain result, and no client knows the id
    idempotent: bool = False
    survives: bool = False
    wants_cancel: bool = False
    # By key: {"request": ..., "answer": ...}. The answer is None while the question is open, and then a text that only
    # `TaskStore.take_answers` can read; empty once it was taken.
    questions: Questions = {}
    error: Json | None = None
    result_bytes: int = 0
    is_error: bool = False  # the result says that the tool has failed
    # These are left out where many tasks are listed.
    shown_arguments: str = ""  # JSON without secrets
    client: Json = {}  # what a rerun needs to know of the client
    sealed_params: bytes | None = None  # what `TaskStore.seal` made of the whole params
    stderr_end: bytes = b""
    result: bytes | None = None  # JSON; None if it is kept as a file

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    @property
    def open_questions(self) -> Questions:
        """The requests that wait for an answer, by key."""
        return {key: each["request"] for key, each in self.questions.items() if each["answer"] is None}


def new_id() -> str:
    """Return 128 random bits: who knows the id of a task may ask for it. Also the name of a file, and a word of a
    command, so it has only digits and letters."""
    return os.urandom(16).hex()


def message_of(reported: tuple[float, float | None, str | None] | None) -> str:
    """Return the progress of a script as `42 %: compiling`; without a total, the message alone."""
    progress, total, message = reported or (0, None, None)
    percent = f"{int(max(0.0, min(1.0, progress / total)) * 100 + 1e-9)} %" if total else ""
    return ": ".join(part for part in (percent, message or "") if part)[:MAX_MESSAGE_CHARS]


def place_message(before: int) -> str:
    return f"waiting for a place ({before} before it)"


def poll_interval_ms(age_secs: float) -> int:
    """Return how long a client should wait: half a second for a young task, a tenth of its age for an older one."""
    return max(MIN_POLL_MS, min(MAX_POLL_MS, int(age_secs * 100)))


def expires_at(task: Task) -> float | None:
    """Return when the task may be removed; None while it runs."""
    keep_secs = task.keep_secs if task.is_begun else PLAIN_KEEP_SECS
    return None if task.ended_at is None else task.ended_at + keep_secs


def ttl_ms(task: Task) -> int | None:
    """Return how long the task exists, from its creation; None while it runs."""
    end = expires_at(task)
    return None if end is None else max(1, round((end - task.created_at) * 1000))


def shown(task: Task) -> Json:
    """Return what clients and people see of each task."""
    return {
        "status": Status.WORKING if task.status == Status.QUEUED else task.status,
        "statusMessage": task.status_message,
        "createdAt": iso_time(task.created_at),
        "lastUpdatedAt": iso_time(task.updated_at),
    }


def iso_time(at: float) -> str:
    """Return a time as both wires write it."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return f"{whole}.{int(at % 1 * 1000):03d}Z"


def error_of(message: str) -> Json:
    return {"code": RpcError.code, "message": message}


def _storable(message: str) -> str:
    """Cut a message of a script, and replace halves of surrogate pairs."""
    return message[:MAX_MESSAGE_CHARS].encode("utf-8", "replace").decode("utf-8")


def noted(task: Task, attempt: int, status: str | None, message: str) -> Task | None:
    wanted = status or task.status
    if task.attempt != attempt or wanted in ENDED or wanted not in TRANSITIONS[task.status]:
        return None
    if wanted == Status.WORKING and task.open_questions:
        wanted = Status.INPUT_REQUIRED
    changed = task._replace(status=wanted, status_message=_storable(message))
    return task if changed == task else changed._replace(updated_at=time.time())


def asked(task: Task, attempt: int, requests: dict[str, Json]) -> Task | None:
    """Open questions. A key that was used before gets a number. Raises ValueError if there are too many."""
    if task.attempt != attempt or task.has_ended:
        return None
    questions = dict(task.questions)
    for key, request in requests.items():
        keys = chain((key,), (f"{key}-{number}" for number in count(2)))
        questions[next(each for each in keys if each not in questions)] = {"request": request, "answer": None}
    if len(questions) > MAX_QUESTIONS or len(jsontext.dumps(questions)) > MAX_QUESTIONS_BYTES:
        raise ValueError(f"a task may ask {MAX_QUESTIONS} questions of {MAX_QUESTIONS_BYTES} bytes in all")
    return task._replace(questions=questions, status=Status.INPUT_REQUIRED, updated_at=time.time())


def answered(task: Task, sealed: dict[str, str]) -> Task | None:
    """Store answers to open questions."""
    if not sealed:
        return None
    changed = {key: {**task.questions[key], "answer": answer} for key, answer in sealed.items()}
    task = task._replace(questions={**task.questions, **changed}, updated_at=time.time())
    return task if task.open_questions else task._replace(status=Status.WORKING)


def closed(task: Task, keys: Iterable[str]) -> Task:
    """Drop questions and their answers, but not their keys, which must not be used again."""
    return task._replace(questions={**task.questions, **{key: {"request": {}, "answer": ""} for key in keys}})


def finished(
    task: Task, status: str, *, status_message: str = "", error: Json | None = None, **more: Any
) -> Task | None:
    """End the task, with more fields. Its questions, and what only a rerun needs, are dropped."""
    if status not in ENDED or status not in TRANSITIONS[task.status]:
        return None
    if status == Status.FAILED:
        error = error or error_of("The task failed")
        status_message = status_message or str(error["message"])
    elif status == Status.CANCELLED:
        status_message = CANCELLED
    more["stderr_end"] = more.get("stderr_end", b"")[-STDERR_BYTES:]
    now = time.time()
    ended = task._replace(status=status, status_message=_storable(status_message), updated_at=now, ended_at=now)
    return ended._replace(error=error, questions={}, sealed_params=None, **more)


def recovered(task: Task, runner: str) -> Task:
    """Return what becomes of an unfinished task whose runner is dead: it ends, or this runner runs it again."""
    if task.wants_cancel:
        return finished(task, Status.CANCELLED) or task
    if task.runner == NO_RUNNER:
        return task._replace(runner=runner)
    reason = RESTARTED
    if task.idempotent:
        reason = NOT_RESTORED if task.sealed_params is None else TOO_OFTEN if task.attempt >= MAX_ATTEMPTS else ""
    if reason:
        return finished(task, Status.FAILED, error=error_of(reason)) or task
    task = closed(task, task.questions)._replace(attempt=task.attempt + 1, runner=runner, updated_at=time.time())
    return task._replace(status=Status.QUEUED, status_message="", stderr_end=b"")
