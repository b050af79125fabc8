"""`TaskStore`: where tasks are kept, and where the processes that serve them meet.

Progress, questions, answers, wishes to cancel and results go through the store, so every server on it can serve a task
that another process runs. `TaskStore` applies the rules of `life` to the rows of a table, one transaction for each
method. The stores of `sqlite_store` say where the table is, and which processes are alive.

Rule: a method may wait for a disk in the calling greenlet, but never blocks the hub. Any of them may raise
StoreUnusable.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Task
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    import sqlite3

    from cryptography.fernet import Fernet

Value = TypeVar("Value")
Method = TypeVar("Method", bound=Callable[..., Any])
Tasks = list[Task]
EVER = float("inf")
PIECE = 500  # tasks that are removed in one transaction
RUNNER_BYTES = 12
NOT_STORED = "The result of the task could not be stored"

VERSION = 1  # of the table
LONG = ("result_bytes", "sealed_params", "stderr_end", "result")  # with columns of their own; the rest is JSON
ALL = ", ".join(("fields", *LONG))
SCHEMA = f"""
CREATE TABLE marks (value INTEGER);
INSERT INTO marks VALUES (0);
CREATE TABLE tasks (id UNIQUE, owner, changed INTEGER, expires_at REAL, {ALL});
CREATE INDEX changes ON tasks (changed);
CREATE INDEX unfinished ON tasks (owner) WHERE expires_at IS NULL;
CREATE INDEX ended ON tasks (expires_at) WHERE expires_at IS NOT NULL;
PRAGMA user_version = {VERSION};
"""
OF_OWNER = "owner = coalesce(?, owner)"


class StoreUnusable(InternalError):
    """The store cannot be trusted, or not be read or written. The message says why. `is_away`: it may be back soon."""

    is_away = False


def in_transaction(*, writes: bool) -> Callable[[Method], Method]:
    """Make a method one transaction: all of it happens, or nothing."""

    def decorated(method: Method) -> Method:
        @wraps(method)
        def run(store: TaskStore, *values: object, **named: object) -> Any:
            return store._transact(partial(method, store, *values, **named), writes=writes)

        return cast(Method, run)

    return decorated


class TaskStore(ABC):
    """The tasks of a project. `runner` is this process, as the store knows it."""

    def __init__(self, *, max_per_owner: int = 1000, max_tasks: int = 10_000) -> None:
        self.runner = os.urandom(RUNNER_BYTES).hex()
        self._max_per_owner = max_per_owner
        self._max_tasks = max_tasks
        self._connection: sqlite3.Connection | None = None

    @in_transaction(writes=True)
    def create(self, task: Task) -> Task:
        """Store a new task, with this runner and the times; durable on return. Raises InternalError if there are too
        many."""
        query = "SELECT total(owner = ?), count(*) FROM tasks WHERE expires_at IS NULL"
        of_owner, in_all = self._rows(query, task.owner)[0]
        if of_owner >= self._max_per_owner or in_all >= self._max_tasks:
            both = f"There are {of_owner:g} unfinished tasks of yours, and {in_all} in all; wait until a task ends."
            raise InternalError(both)
        now = time.time()
        task = task._replace(runner=task.runner or self.runner, created_at=task.created_at or now, updated_at=now)
        self._rows("INSERT INTO tasks (id, owner) VALUES (?, ?)", task.id, task.owner)
        self._save(task)
        return task

    @in_transaction(writes=False)
    def get(self, task_id: str) -> Task | None:
        """Return the task. A long result is left out: see `result_of`."""
        return self._load(task_id)

    @in_transaction(writes=False)
    def result_of(self, task: Task) -> bytes:
        """Return the result of a completed task, as JSON. Raises InternalError if it has none, or has expired."""
        found = self._load(task.id)
        if found is None or not found.result_bytes:
            raise InternalError("The task has no result, or has expired.")
        return self._read_result(task.id) if found.result is None else found.result

    @in_transaction(writes=False)
    def list(self, owner: str | None, *, after: str = "", limit: int = 100) -> Tasks:
        """Return tasks in the order of their creation; of all owners if `owner` is None. Raises InvalidParams if
        `after` is not one of them. Long fields are left out, as `Task` says. A negative limit is none."""
        query = f"SELECT rowid FROM tasks WHERE id = ? AND {OF_OWNER}"
        if not after.isascii() or not (found := self._rows(query, after, owner) if after else [(0,)]):
            raise InvalidParams("Unknown cursor.")
        which = f"rowid > ? AND {OF_OWNER} AND coalesce(expires_at > ?, 1) ORDER BY rowid LIMIT ?"
        rows = self._rows(f"SELECT fields FROM tasks WHERE {which}", *found[0], owner, time.time(), limit)
        return [_task(row) for row in rows]

    def note(self, task_id: str, attempt: int, *, status: str | None = None, status_message: str) -> bool:
        """Store how far the task is. Return False if it has ended, or if this attempt is not the current one."""
        return self._change(task_id, lambda task: life.noted(task, attempt, status, status_message)) is not None

    def begin(self, task_id: str) -> None:
        """From now on clients know of the task."""
        self._change(task_id, lambda task: task._replace(is_begun=True))

    def ask(self, task_id: str, attempt: int, requests: dict[str, Json]) -> dict[str, str]:
        """Open questions: the task is `input_required`. Return the key of each in the life of the task; nothing if the
        task has ended. Raises ValueError if there are too many."""
        asking = self._change(task_id, lambda task: life.asked(task, attempt, requests))
        return dict(zip(requests, [*asking.questions][-len(requests) :], strict=True)) if asking else {}

    def answer(self, task_id: str, answers: dict[str, Json]) -> set[str]:
        """Store answers to open questions, and return their keys. Raises InvalidParams if they are too long."""
        encoded = {key: jsontext.dumps(answer) for key, answer in answers.items()}
        if sum(map(len, encoded.values())) > life.MAX_ANSWERS_BYTES:
            raise InvalidParams(f"The answers have more than {life.MAX_ANSWERS_BYTES} bytes.")
        keys: set[str] = set()

        def change(task: Task) -> Task | None:
            keys.update(task.open_questions.keys() & encoded.keys())
            return life.answered(task, {key: self._seal(encoded[key]).decode("ascii") for key in keys})

        return keys if self._change(task_id, change) else set()

    def take_answers(self, task_id: str, attempt: int, keys: Iterable[str]) -> dict[str, Json]:
        """Return the answers that have arrived, each of them once."""
        taken: dict[str, Json] = {}

        def change(task: Task) -> Task | None:
            for key in keys if task.attempt == attempt else ():
                if sealed := task.questions.get(key, {}).get("answer"):
                    plain = self._unseal(sealed.encode("ascii"))
                    taken[key] = jsontext.parsed(plain) if plain else {"action": "cancel"}
            return life.closed(task, taken) if taken else None

        self._change(task_id, change)
        return taken

    def finish(
        self, task_id: str, attempt: int, status: str, *, result: bytes | None = None, **fields: Any
    ) -> Task | None:
        """End the task, with these fields. Exactly one caller gets it back. The task fails if its result cannot be
        stored, as on a full disk."""

        def change(task: Task) -> Task | None:
            ended = life.finished(task, status, **fields) if task.attempt == attempt else None
            return ended and self._keep_result(ended, result) if result else ended

        try:
            return self._change(task_id, change)
        except StoreUnusable as error:
            if result is None or error.is_away:
                raise
        return self.finish(task_id, attempt, life.Status.FAILED, **{**fields, "error": life.error_of(NOT_STORED)})

    def want_cancel(self, task_id: str) -> Task | None:
        """Ask the runner to cancel the task. Without a living runner it is cancelled at once. Return it as it is then;
        None if it is unknown."""

        def change(task: Task) -> Task:
            if task.has_ended or task.wants_cancel:
                return task
            if self._is_alive(task.runner):
                return task._replace(wants_cancel=True)
            return life.finished(task, life.Status.CANCELLED) or task

        return self._change(task_id, change)

    @in_transaction(writes=False)
    def changed_since(self, mark: int) -> tuple[int, Tasks]:
        """Return the next mark, and the tasks that have changed since this one, without long fields. With a negative
        mark no tasks: that is how to begin. So runners and watchers learn what others do."""
        rows = self._rows("SELECT fields FROM tasks WHERE changed > ? ORDER BY changed", mark) if mark >= 0 else ()
        return self._rows("SELECT value FROM marks")[0][0], [_task(row) for row in rows]

    @in_transaction(writes=True)
    def recover(self, may_rerun: Callable[[Task], bool] = lambda task: True) -> Tasks:
        """End the unfinished tasks of dead runners, or take them over. Return those that are to be run again. One that
        may not be rerun here is left to others, and returned with its old runner."""
        rerun: Tasks = []
        for (task_id,) in self._rows("SELECT id FROM tasks WHERE expires_at IS NULL ORDER BY rowid"):
            dead = self._load(task_id)  # one by one, since they may be long
            if dead is None or self._is_alive(dead.runner):
                continue
            task = life.recovered(dead, self.runner)
            if not task.has_ended:
                task = task if may_rerun(dead) else dead
                rerun.append(task)
            if task is not dead:
                self._save(task, dead)
        return rerun

    def is_orphan(self, task: Task) -> bool:
        """Tell whether the task has not ended, but the process that runs it has."""
        is_here = task.has_ended or task.runner == self.runner
        return not is_here and self._transact(lambda: not self._is_alive(task.runner), writes=False)

    def end_tasks_of(self, owner: str) -> None:
        """Cancel the owner's tasks, except for those that survive, and remove those that have ended."""
        for task in self.list(owner, limit=-1):
            if not task.survives:
                self.want_cancel(task.id)
        self.remove(owner=owner)

    def remove(self, now: float = EVER, owner: str | None = None) -> int:
        """Remove tasks that have ended and are over their time then. Return how many."""
        removed = 0
        while piece := self._remove_some(now, owner):  # so that others need not wait for long
            removed += piece
        return removed

    @in_transaction(writes=True)
    def _remove_some(self, now: float, owner: str | None) -> int:
        which = f"SELECT rowid FROM tasks WHERE expires_at <= ? AND {OF_OWNER} LIMIT {PIECE}"
        self._rows(f"DELETE FROM tasks WHERE rowid IN ({which})", now, owner)
        return int(self._rows("SELECT changes()")[0][0])

    @in_transaction(writes=True)
    def seal(self, params: Json) -> bytes | None:
        """Encrypt params for `Task.sealed_params`. None if they are too long to be stored."""
        plain = jsontext.dumps(params)
        return self._seal(plain) if len(plain) <= life.MAX_SEALED_BYTES else None

    @in_transaction(writes=True)
    def unseal(self, sealed: bytes) -> Json | None:
        """Undo `seal`. None if they were sealed with another key."""
        plain = self._unseal(sealed)
        return jsontext.loads(plain) if plain else None

    @abstractmethod
    def close(self) -> None:
        """End the life of this runner. Its unfinished tasks can be recovered by others."""

    @in_transaction(writes=True)
    def _change(self, task_id: str, change: Callable[[Task], Task | None]) -> Task | None:
        """Change a record, if the rules allow it. Return the new one."""
        old = self._load(task_id)
        new = old and change(old)
        if new is not None and new is not old:
            self._save(new, old)
        return new

    # These are called within a transaction.

    def _rows(self, query: str, *values: object) -> Sequence[Any]:
        assert self._connection is not None
        return self._connection.execute(query, values).fetchall()

    def _load(self, task_id: str) -> Task | None:
        if not task_id.isascii():  # a client may send half of a surrogate pair, which SQLite cannot take
            return None
        query = f"SELECT {ALL} FROM tasks WHERE id = ? AND coalesce(expires_at > ?, 1)"
        rows = self._rows(query, task_id, time.time())
        return _task(rows[0]) if rows else None

    def _save(self, new: Task, old: Task | None = None) -> None:
        if new.runner == self.runner:
            self._begin_life()
        values = new._asdict()
        long = {name: values.pop(name) for name in LONG}
        changes = {name: value for name, value in long.items() if old is None or value != getattr(old, name)}
        changes |= {"expires_at": life.expires_at(new), "fields": jsontext.dumps(values)}
        columns = f"{' = ?, '.join(changes)} = ?, changed = (SELECT value FROM marks)"
        self._rows("UPDATE marks SET value = value + 1")
        self._rows(f"UPDATE tasks SET {columns} WHERE id = ?", *changes.values(), new.id)

    # What subclasses do. The first one begins a transaction, the others are called within one.

    @abstractmethod
    def _transact(self, work: Callable[[], Value], *, writes: bool) -> Value:
        """Run the work, undisturbed by others: all of it happens, or nothing. Raises StoreUnusable."""

    @abstractmethod
    def _is_alive(self, runner: str) -> bool: ...

    @abstractmethod
    def _begin_life(self) -> None:
        """Let others see that this runner is alive. Does nothing the second time."""

    def _keep_result(self, task: Task, result: bytes) -> Task:
        return task._replace(result=result, result_bytes=len(result))

    def _read_result(self, task_id: str) -> bytes:
        """Return a result that is not in the table."""
        raise LookupError(task_id)

    def _seal(self, plain: bytes) -> bytes:
        """Return ASCII that only `_unseal` can read, if it is written to a disk."""
        return plain

    def _unseal(self, sealed: bytes) -> bytes | None:
        """Undo `_seal`; None if another key was used, or the text has changed since."""
        return sealed


def _task(row: tuple[Any, ...]) -> Task:
    return Task(**jsontext.parsed(row[0]), **dict(zip(LONG, row[1:], strict=False)))


def fernet_of(state_key: str) -> Fernet:
    """Return what seals with a key made of the setting."""
    from base64 import urlsafe_b64encode
    from hashlib import sha256

    from cryptography.fernet import Fernet

    return Fernet(urlsafe_b64encode(sha256(b"mcpgreen tasks\0" + state_key.encode("utf-8")).digest()))


def unsealed(fernet: Fernet, sealed: bytes) -> bytes | None:
    from cryptography.fernet import InvalidToken

    try:
        return fernet.decrypt(sealed)
    except InvalidToken:
        return None
