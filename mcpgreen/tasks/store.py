"""`TaskStore`: where tasks are kept, and where the processes that serve them meet.

Progress, questions, answers, wishes to cancel and results go through the store, so every server on it can serve a task
that another process runs. `TaskStore` applies the rules of `life` to records, one transaction for each method.
Subclasses keep the records: `MemoryTaskStore` in a dict, `sqlite_store` on disk.

Rule: a method may wait for a disk in the calling greenlet, but never blocks the hub. Any of them may raise
StoreUnusable.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeVar

from mcpgreen.errors import McpgreenError
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Task
from mcpgreen.tasks.secrets import Vault
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

Value = TypeVar("Value")
Tasks = list[Task]
EVER = float("inf")
MAX_LISTED = 1000
PIECE = 500  # tasks that are removed in one transaction
RUNNER_BYTES = 12
NOT_STORED = "The result of the task could not be stored"


class StoreUnusable(McpgreenError):
    """The store cannot be trusted, or not be read or written. The message says why."""


class TooManyTasks(McpgreenError):
    """The owner has too many unfinished tasks, or there are too many in all."""


class TaskStore(ABC):
    """The tasks of a project. `runner` is this process, as the store knows it."""

    def __init__(self, *, max_per_owner: int = 1000, max_tasks: int = 10_000, vault: Vault | None = None) -> None:
        self.runner = os.urandom(RUNNER_BYTES).hex()
        self._max_per_owner = max_per_owner
        self._max_tasks = max_tasks
        self._vault = vault  # None if nothing is written to a disk

    def create(self, task: Task) -> Task:
        """Store a new task, with this runner and the times; durable on return. Raises TooManyTasks."""
        now = time.time()
        if task.asked_ttl_ms is not None:
            task = task._replace(asked_ttl_ms=min(task.asked_ttl_ms, int(life.MAX_TTL_SECS * 1000)))
        task = task._replace(runner=task.runner or self.runner, created_at=task.created_at or now, updated_at=now)

        def insert() -> Task:
            of_owner, in_all = self._count_unfinished(task.owner)
            if of_owner >= self._max_per_owner:
                raise TooManyTasks(f"There are {self._max_per_owner} unfinished tasks already; wait until a task ends.")
            if in_all >= self._max_tasks:
                raise TooManyTasks(f"The server has {self._max_tasks} unfinished tasks; wait until a task ends.")
            self._insert(task)
            return task

        return self._transact(insert)

    def get(self, task_id: str) -> Task | None:
        """Return the task. A long result is left out: see `result_of`."""
        return self._change(task_id, lambda task: task, writes=False)

    @abstractmethod
    def result_of(self, task: Task) -> bytes:
        """Return the result of a completed task, as JSON. Raises LookupError if it has none, or has expired."""

    @abstractmethod
    def list(self, owner: str | None, *, after: str = "", limit: int = 100) -> Tasks:
        """Return tasks in the order of their creation; of all owners if `owner` is None. Raises LookupError if `after`
        is not one of them. Long fields are left out, as `Task` says."""

    def note(
        self,
        task_id: str,
        attempt: int,
        *,
        status: str | None = None,
        status_message: str | None = None,
        stderr_end: bytes | None = None,
    ) -> bool:
        """Store how far the task is. Return False if it has ended, or if this attempt is not the current one."""

        def change(task: Task) -> Task | None:
            return life.noted(task, attempt, status=status, message=status_message, stderr=stderr_end)

        return self._change(task_id, change) is not None

    def ask(self, task_id: str, attempt: int, requests: dict[str, Json]) -> bool:
        """Open questions: the task is `input_required`. Raises ValueError if there are too many, or a key is used."""
        return self._change(task_id, lambda task: life.asked(task, attempt, requests)) is not None

    def answer(self, task_id: str, answers: dict[str, Json]) -> set[str]:
        """Store answers to open questions, and return their keys. Raises ValueError if they are too long."""
        encoded = {key: jsontext.dumps(answer) for key, answer in answers.items()}
        if sum(map(len, encoded.values())) > life.MAX_ANSWERS_BYTES:
            raise ValueError(f"the answers have more than {life.MAX_ANSWERS_BYTES} bytes")
        keys: set[str] = set()

        def change(task: Task) -> Task | None:
            keys.update(task.open_questions.keys() & encoded.keys())
            return life.answered(task, {key: self._seal(encoded[key]).decode("ascii") for key in keys})

        return keys if self._change(task_id, change, is_news=True) else set()

    def take_answers(self, task_id: str, attempt: int, keys: Iterable[str]) -> dict[str, Json]:
        """Return the answers that have arrived, each of them once."""
        taken: dict[str, Json] = {}

        def change(task: Task) -> Task | None:
            for key, sealed in life.answers(task, keys).items() if task.attempt == attempt else ():
                plain = self._unseal(sealed.encode("ascii"))
                taken[key] = jsontext.parsed(plain) if plain else {"action": "cancel"}
            return life.closed(task, taken) if taken else None

        self._change(task_id, change)
        return taken

    def finish(
        self,
        task_id: str,
        attempt: int,
        status: str,
        *,
        result: bytes | None = None,
        error: Json | None = None,
        status_message: str = "",
        stderr_end: bytes = b"",
        is_error: bool = False,
    ) -> Task | None:
        """End the task. Exactly one caller gets it back, others None. A runner whose task was ended by others finds it
        in `news`. The task fails if its result cannot be stored, as on a full disk."""

        def change(task: Task) -> Task | None:
            if task.attempt != attempt:
                return None
            ended = life.finished(task, status, message=status_message, error=error, stderr=stderr_end)
            return ended and self._keep_result(ended._replace(is_error=is_error), result) if result else ended

        try:
            return self._change(task_id, change, is_news=True)
        except StoreUnusable:
            if result is None:
                raise
        error = life.error_of(NOT_STORED)
        return self.finish(task_id, attempt, life.Status.FAILED, error=error, stderr_end=stderr_end)

    def want_cancel(self, task_id: str) -> Task | None:
        """Ask the runner to cancel the task, which it learns from `news`. Without a living runner it is cancelled at
        once. Return it as it is then; None if it is unknown."""
        return self._change(task_id, self._with_wish, is_news=True)

    def _with_wish(self, task: Task) -> Task:
        if task.has_ended or task.wants_cancel:
            return task
        return task._replace(wants_cancel=True) if self._is_alive(task.runner) else life.cancelled(task)

    def has_runner(self, task: Task) -> bool:
        """Tell whether the process that runs the task is alive."""
        return self._transact(lambda: self._is_alive(task.runner), writes=False)

    @abstractmethod
    def news(self) -> Tasks:
        """Return this runner's tasks that others have answered, ended or wanted to be cancelled since the last call.
        Its own changes may be among them. Cheap if there are none."""

    @abstractmethod
    def changed_since(self, mark: int) -> tuple[int, Tasks]:
        """Return the next mark, and the tasks that have changed since this one, `MAX_LISTED` at a time, without long
        fields. With a negative mark no tasks: that is how to begin."""

    def recover(self) -> Tasks:
        """End the unfinished tasks of dead runners, or take them over. Return those that are to be run again."""

        def work() -> Tasks:
            dead = (task for task in self._unfinished() if not self._is_alive(task.runner))
            return [task for task in map(self._recover, dead) if not task.has_ended]

        return self._transact(work)

    def _recover(self, task: Task) -> Task:
        self._save(task, recovered := life.recovered(task, self.runner))
        return recovered

    def end_tasks_of(self, owner: str) -> None:
        """Cancel the owner's tasks, except for those that survive, and remove those that have ended."""

        def work() -> None:
            for task in self._unfinished():
                if task.owner == owner and not task.survives:
                    self._save(task, self._with_wish(task), is_news=True)

        self._transact(work)
        self._remove(EVER, owner)

    def expire(self, now: float) -> int:
        """Remove tasks that are over their time. Return how many."""
        return self._remove(now, None)

    def clear(self) -> int:
        """Remove all tasks that have ended. Return how many."""
        return self._remove(EVER, None)

    def _remove(self, now: float, owner: str | None) -> int:
        removed = 0
        while piece := self._transact(lambda: self._remove_ended(now, owner)):  # so that others need not wait for long
            removed += piece
        return removed

    def seal(self, params: Json) -> bytes | None:
        """Encrypt params for `Task.sealed_params`. None if they are too long to be stored."""
        plain = jsontext.dumps(params)
        return self._transact(lambda: self._seal(plain)) if len(plain) <= life.MAX_SEALED_BYTES else None

    def unseal(self, sealed: bytes) -> Json | None:
        """Undo `seal`. None if they were sealed with another key."""
        plain = self._transact(lambda: self._unseal(sealed))
        params = jsontext.parsed(plain) if plain else None
        return params if isinstance(params, dict) else None

    @abstractmethod
    def close(self) -> None:
        """End the life of this runner. Its unfinished tasks can be recovered by others."""

    def _change(
        self, task_id: str, change: Callable[[Task], Task | None], *, is_news: bool = False, writes: bool = True
    ) -> Task | None:
        """Change a record, if the rules allow it. Return the new one."""

        def work() -> Task | None:
            old = self._load(task_id)
            if old is None or (life.expires_at(old) or EVER) <= time.time():
                return None
            new = change(old)
            if new is not None and new is not old:
                is_own_end = new.has_ended and new.runner == self.runner
                self._save(old, new, is_news=is_news and not is_own_end)
            return new

        return self._transact(work, writes=writes)

    # What subclasses do; all but the first are called within a transaction.

    @abstractmethod
    def _transact(self, work: Callable[[], Value], *, writes: bool = True) -> Value:
        """Run the work, undisturbed by others: all of it happens, or nothing. Raises StoreUnusable."""

    @abstractmethod
    def _load(self, task_id: str) -> Task | None: ...

    @abstractmethod
    def _insert(self, task: Task) -> None: ...

    @abstractmethod
    def _save(self, old: Task, new: Task, *, is_news: bool = False) -> None:
        """Replace a record. With `is_news`, its runner will find it in `news`."""

    @abstractmethod
    def _count_unfinished(self, owner: str) -> tuple[int, int]:
        """Return how many tasks the owner has, and how many there are in all."""

    @abstractmethod
    def _unfinished(self) -> Iterable[Task]: ...

    @abstractmethod
    def _remove_ended(self, now: float, owner: str | None) -> int:
        """Remove up to `PIECE` tasks that have expired by then, with their files. Return how many."""

    @abstractmethod
    def _is_alive(self, runner: str) -> bool: ...

    def _keep_result(self, task: Task, result: bytes) -> Task:
        return task._replace(result=result, result_bytes=len(result))

    def _seal(self, plain: bytes) -> bytes:
        """Return ASCII that only `_unseal` can read."""
        return self._vault.seal(plain) if self._vault else plain

    def _unseal(self, sealed: bytes) -> bytes | None:
        return self._vault.unseal(sealed) if self._vault else sealed


class Records:
    """What several stores in memory share."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.changed: dict[str, int] = {}  # the mark of each task's last change, in this order
        self.mark = 0
        self.news: set[str] = set()
        self.living: set[str] = set()


class MemoryTaskStore(TaskStore):
    """Tasks that end with the process. Stores with the same `records` are like servers on one store."""

    def __init__(self, *, max_per_owner: int = 1000, max_tasks: int = 10_000, records: Records | None = None) -> None:
        super().__init__(max_per_owner=max_per_owner, max_tasks=max_tasks)
        self.records = records or Records()
        self.records.living.add(self.runner)

    def result_of(self, task: Task) -> bytes:
        found = self.get(task.id)
        if found is None or found.result is None:
            raise LookupError(task.id)
        return found.result

    def list(self, owner: str | None, *, after: str = "", limit: int = 100) -> Tasks:
        found = [each for each in self.records.tasks.values() if owner in (None, each.owner) and self.get(each.id)]
        start = next((number + 1 for number, each in enumerate(found) if each.id == after), 0)
        if after and not start:
            raise LookupError(after)
        return [each.listed() for each in found[start : start + min(limit, MAX_LISTED)]]

    def news(self) -> Tasks:
        own = [each for each in map(self._load, self.records.news) if each and each.runner == self.runner]
        self.records.news.difference_update(each.id for each in own)
        return own

    def changed_since(self, mark: int) -> tuple[int, Tasks]:
        if mark < 0:
            return self.records.mark, []
        changed = [(at, task_id) for task_id, at in self.records.changed.items() if at > mark][:MAX_LISTED]
        return max((at for at, _ in changed), default=mark), [self.records.tasks[each].listed() for _, each in changed]

    def close(self) -> None:
        self.records.living.discard(self.runner)

    def _transact(self, work: Callable[[], Value], *, writes: bool = True) -> Value:
        return work()  # no greenlet switches in between

    def _load(self, task_id: str) -> Task | None:
        return self.records.tasks.get(task_id)

    def _insert(self, task: Task) -> None:
        self.records.tasks[task.id] = task
        self.records.mark += 1
        self.records.changed.pop(task.id, None)
        self.records.changed[task.id] = self.records.mark

    def _save(self, old: Task, new: Task, *, is_news: bool = False) -> None:
        self._insert(new)
        if is_news:
            self.records.news.add(new.id)

    def _count_unfinished(self, owner: str) -> tuple[int, int]:
        owners = [each.owner for each in self._unfinished()]
        return owners.count(owner), len(owners)

    def _unfinished(self) -> Tasks:
        return [each for each in self.records.tasks.values() if not each.has_ended]

    def _remove_ended(self, now: float, owner: str | None) -> int:
        ended = [each for each in self.records.tasks.values() if each.has_ended and owner in (None, each.owner)]
        expired = [each.id for each in ended if (life.expires_at(each) or EVER) <= now][:PIECE]
        for task_id in expired:
            del self.records.tasks[task_id], self.records.changed[task_id]
            self.records.news.discard(task_id)
        return len(expired)

    def _is_alive(self, runner: str) -> bool:
        return runner in self.records.living
