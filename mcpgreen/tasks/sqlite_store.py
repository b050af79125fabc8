"""`SqliteTaskStore`: tasks in a database on disk, which several processes of one machine share.

One native thread reads and writes. Greenlets wait for it, and the hub never does. What several greenlets want meanwhile
becomes one transaction. A long result is a file beside the database. A runner is alive as long as it holds the lock on
its file, which the kernel releases when the process dies; process ids say nothing.

Rule: everything that is done to a file of a task or a runner happens within a writing transaction, so that no other
process does something to it at the same time. A kill between the file and the end of the transaction leaves a file that
belongs to no task; `expire` removes it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from gevent.threadpool import ThreadPool

from mcpgreen.files.regular_files import existing_file, new_file
from mcpgreen.tasks import life, place
from mcpgreen.tasks.life import Task
from mcpgreen.tasks.secrets import Vault
from mcpgreen.tasks.store import MAX_LISTED, PIECE, StoreUnusable, Tasks, TaskStore, TooManyTasks, Value
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    import sqlite3

VERSION = 1  # of the table
MAX_BATCH = 200
BUSY_SECS = 30.0  # other processes hold the lock for milliseconds
KEPT_WAL_BYTES = 1 << 20
PAGE_BYTES = 4096
MAX_DATABASE_BYTES = 1 << 30
MAX_RESULTS_BYTES = 4 << 30  # of all files

FIELDS = Task._fields
AS_JSON = [FIELDS.index(name) for name in ("questions", "error", "shown_arguments", "client")]
LONG = FIELDS[FIELDS.index("shown_arguments") :]  # the last columns, since SQLite reads a row from its beginning
ERROR = FIELDS.index("error")
ALL = ", ".join(FIELDS)
LISTED = ", ".join(name for name in FIELDS if name not in LONG)
SCHEMA = f"""
CREATE TABLE marks (value INTEGER);
INSERT INTO marks VALUES (0);
CREATE TABLE tasks (changed INTEGER, is_news INTEGER DEFAULT 0, expires_at REAL, {ALL}, UNIQUE (id));
CREATE INDEX changes ON tasks (changed);
CREATE INDEX unfinished ON tasks (owner) WHERE expires_at IS NULL;
CREATE INDEX ended ON tasks (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX news ON tasks (runner) WHERE is_news = 1;
PRAGMA user_version = {VERSION};
"""
INSERT = f"INSERT INTO tasks (changed, {ALL}) VALUES ({', '.join('?' * (len(FIELDS) + 1))})"
OF_OWNER = "owner = coalesce(?, owner)"


Rows = list[Any]


class _Job:
    """Work for the thread, its outcome, and an event for the greenlet that waits for it."""

    def __init__(self, work: Callable[[], Any], *, writes: bool) -> None:
        self.work = work
        self.writes = writes
        self.value: Any = None
        self.refusal: Exception | None = None
        self.error: Exception | None = StoreUnusable("The store of the tasks has failed")  # until it is committed
        self.is_done = Event()

    def run(self) -> None:
        self.refusal = None
        try:
            self.value = self.work()
        except (TooManyTasks, ValueError, LookupError) as error:  # raised before anything was changed
            self.refusal = error


Batch = list[_Job]


class SqliteTaskStore(TaskStore):
    """The tasks in a directory, which is made with the first task. `state_key` is the setting."""

    def __init__(
        self, directory: str, *, state_key: str = "", max_per_owner: int = 1000, max_tasks: int = 10_000
    ) -> None:
        vault = Vault(os.path.join(directory, place.KEY), state_key)
        super().__init__(max_per_owner=max_per_owner, max_tasks=max_tasks, vault=vault)
        self.directory = directory
        self._pool = ThreadPool(1)
        self._pending: Batch = []
        self._worker: gevent.Greenlet | None = None
        # Only the thread uses these.
        self._connection: sqlite3.Connection | None = None
        self._lock_fd: int | None = None
        self._mark: int | None = None  # of the last change in this transaction
        self._faults: tuple[type[Exception], ...] = (OSError, ImportError)  # that a disk or a package may have

    def result_of(self, task: Task) -> bytes:
        def read() -> bytes:
            found = self._load(task.id)
            if found is None or not found.result_bytes:
                raise LookupError(task.id)
            if found.result is not None:
                return found.result
            with open(existing_file(self._result_path(task.id)), "rb") as file:
                return file.read()

        return self._transact(read, writes=False)

    def list(self, owner: str | None, *, after: str = "", limit: int = 100) -> Tasks:
        def select() -> Tasks:
            query = f"SELECT rowid FROM tasks WHERE id = ? AND {OF_OWNER}"
            if not after.isascii() or not (found := self._rows(query, after, owner) if after else [(0,)]):
                raise LookupError(after)
            which = f"rowid > ? AND {OF_OWNER} AND coalesce(expires_at > ?, 1) ORDER BY rowid LIMIT ?"
            values = (*found[0], owner, time.time(), min(limit, MAX_LISTED))
            return [_task(row) for row in self._rows(f"SELECT {LISTED} FROM tasks WHERE {which}", *values)]

        return self._transact(select, writes=False)

    def news(self) -> Tasks:
        which = "is_news = 1 AND runner = ?"

        def take() -> Tasks:
            found = [_task(row) for row in self._rows(f"SELECT {ALL} FROM tasks WHERE {which}", self.runner)]
            self._rows(f"UPDATE tasks SET is_news = 0 WHERE {which}", self.runner)
            return found

        query = f"SELECT 1 FROM tasks WHERE {which} LIMIT 1"
        return self._transact(take) if self._transact(lambda: self._rows(query, self.runner), writes=False) else []

    def changed_since(self, mark: int) -> tuple[int, Tasks]:
        def select() -> tuple[int, Tasks]:
            last = self._rows("SELECT value FROM marks")[0][0]
            if mark < 0 or last == mark:
                return last, []
            query = f"SELECT changed, {LISTED} FROM tasks WHERE changed > ? ORDER BY changed LIMIT {MAX_LISTED}"
            rows = self._rows(query, mark)
            return rows[-1][0] if len(rows) == MAX_LISTED else last, [_task(row[1:]) for row in rows]

        return self._transact(select, writes=False)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.join()
        self._pool.apply(self._disconnect)
        self._pool.kill()

    def _transact(self, work: Callable[[], Value], *, writes: bool = True) -> Value:
        job = _Job(work, writes=writes)
        self._pending.append(job)
        if self._worker is None:
            self._worker = gevent.spawn(self._work)
        job.is_done.wait()
        if job.error is not None:
            raise job.error
        value: Value = job.value
        return value

    def _work(self) -> None:
        """Let the thread do what is pending. A greenlet of its own, since a waiting one may be killed."""
        try:
            while self._pending:
                batch, self._pending = self._pending[:MAX_BATCH], self._pending[MAX_BATCH:]
                try:
                    self._pool.apply(self._run, (batch,))
                finally:
                    for job in batch:
                        job.is_done.set()
        finally:
            self._worker = gevent.spawn(self._work) if self._pending else None

    def _run(self, batch: Batch) -> None:
        """Do all jobs of a batch in one transaction."""
        try:
            connection = self._connected()
            connection.execute("BEGIN IMMEDIATE" if any(job.writes for job in batch) else "BEGIN")
            try:
                for job in batch:
                    job.run()
                if self._mark is not None:
                    connection.execute("UPDATE marks SET value = ?", (self._mark,))
                connection.execute("COMMIT")
                for job in batch:
                    job.error = job.refusal
            finally:
                self._mark = None
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except self._faults as error:
            path = getattr(error, "filename", None) or os.path.join(self.directory, place.DATABASE)
            for job in batch:
                job.error = StoreUnusable(f"{path}: {getattr(error, 'strerror', None) or error}")
                if len(batch) > 1:  # it may concern one of them only
                    self._run([job])

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            import sqlite3  # some builds of Python lack it

            self._faults = (OSError, ImportError, sqlite3.Error)
            place.prepare(self.directory)
            path = os.path.join(self.directory, place.DATABASE)
            guard = os.open(self.directory, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(guard, fcntl.LOCK_EX)  # two processes must not make the table at the same time
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
                self._connection = _opened(path)
            finally:
                os.close(guard)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock_fd is not None:
            with suppress(OSError):
                os.unlink(self._runner_path(self.runner))
            os.close(self._lock_fd)
            self._lock_fd = None

    def _rows(self, query: str, *values: object) -> Rows:
        assert self._connection is not None
        return self._connection.execute(query, values).fetchall()

    def _load(self, task_id: str) -> Task | None:
        if not task_id.isascii():  # a client may send half of a surrogate pair, which SQLite cannot take
            return None
        rows = self._rows(f"SELECT {ALL} FROM tasks WHERE id = ?", task_id)
        return _task(rows[0]) if rows else None

    def _insert(self, task: Task) -> None:
        self._begin_life()
        self._rows(INSERT, self._next_mark(), *_values(task))

    def _save(self, old: Task, new: Task, *, is_news: bool = False) -> None:
        if new.runner == self.runner:
            self._begin_life()
        before, after = _values(old), _values(new)
        changes = {name: value for name, value, other in zip(FIELDS, after, before, strict=True) if value != other}
        changes |= {"changed": self._next_mark(), "expires_at": life.expires_at(new)}
        changes |= {"is_news": 1} if is_news else {}
        self._rows(f"UPDATE tasks SET {' = ?, '.join(changes)} = ? WHERE id = ?", *changes.values(), new.id)

    def _next_mark(self) -> int:
        last = self._rows("SELECT value FROM marks")[0][0] if self._mark is None else self._mark
        self._mark = last + 1
        return self._mark

    def _count_unfinished(self, owner: str) -> tuple[int, int]:
        of_owner, in_all = self._rows("SELECT total(owner = ?), count(*) FROM tasks WHERE expires_at IS NULL", owner)[0]
        return int(of_owner), in_all

    def _unfinished(self) -> Iterator[Task]:
        for (task_id,) in self._rows("SELECT id FROM tasks WHERE expires_at IS NULL ORDER BY rowid"):
            if task := self._load(task_id):  # one by one, since they may be long
                yield task

    def _remove_ended(self, now: float, owner: str | None) -> int:
        which = f"SELECT rowid FROM tasks WHERE expires_at <= ? AND {OF_OWNER} LIMIT {PIECE}"
        self._rows(f"DELETE FROM tasks WHERE rowid IN ({which})", now, owner)
        removed: int = self._rows("SELECT changes()")[0][0]
        if not removed:
            self._sweep()
        return removed

    def _sweep(self) -> None:
        """Remove files that belong to no task: it was removed, or its process was killed before it was stored."""
        query = "SELECT id FROM tasks WHERE result_bytes > ?"
        kept = {row[0] for row in self._rows(query, life.INLINE_RESULT_BYTES)}
        for name in os.listdir(os.path.join(self.directory, place.RESULTS)):
            if name not in kept:
                os.unlink(self._result_path(name))
        for name in os.listdir(os.path.join(self.directory, place.RUNNERS)):
            if not self._is_alive(name):  # without its file it is as dead as before
                os.unlink(self._runner_path(name))

    def _remove(self, now: float, owner: str | None) -> int:
        removed = super()._remove(now, owner)
        if removed:
            self._pool.apply(self._shrink)
        return removed

    def _shrink(self) -> None:
        """Give free pages back to the disk, unless another process is busy with them. Each of these is a transaction
        of its own, and only a script is run to its end."""
        with suppress(*self._faults):
            self._connected().executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")

    def _is_alive(self, runner: str) -> bool:
        try:
            fd = existing_file(self._runner_path(runner))
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def _begin_life(self) -> None:
        if self._lock_fd is None:
            fd = new_file(self._runner_path(self.runner))
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._lock_fd = fd

    def _runner_path(self, runner: str) -> str:
        return os.path.join(self.directory, place.RUNNERS, os.path.basename(runner) or "-")

    def _result_path(self, task_id: str) -> str:
        return os.path.join(self.directory, place.RESULTS, os.path.basename(task_id) or "-")

    def _keep_result(self, task: Task, result: bytes) -> Task:
        if len(result) <= life.INLINE_RESULT_BYTES:
            return super()._keep_result(task, result)
        total = self._rows("SELECT total(result_bytes) FROM tasks")[0][0]
        if total + len(result) > MAX_RESULTS_BYTES:
            raise OSError(0, f"the results have more than {MAX_RESULTS_BYTES} bytes; run mcpgreen tasks clear")
        path = self._result_path(task.id)
        with suppress(FileNotFoundError):
            os.unlink(path)  # of a process that was killed here
        with open(new_file(path), "wb") as file:
            file.write(result)
        return task._replace(result=None, result_bytes=len(result))


def open_store(root: str, environ: Mapping[str, str], **options: Any) -> SqliteTaskStore:
    """Return the store of a project. Nothing is made before the first task."""
    return SqliteTaskStore(place.directory_of(root, environ), **options)


def _opened(path: str) -> sqlite3.Connection:
    import sqlite3

    connection = sqlite3.connect(path, timeout=BUSY_SECS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")  # a commit survives a kill; only a power cut may undo it
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if not version:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        elif version != VERSION:
            raise OSError(
                0, "the tasks were stored by another version of mcpgreen; use that one, or remove the file", path
            )
        connection.execute(f"PRAGMA journal_size_limit = {KEPT_WAL_BYTES}")
        connection.execute(f"PRAGMA max_page_count = {MAX_DATABASE_BYTES // PAGE_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _values(task: Task) -> list[Any]:
    values: list[Any] = list(task)
    for column in AS_JSON:
        values[column] = jsontext.dumps(values[column]) if values[column] else None
    return values


def _task(row: tuple[Any, ...]) -> Task:
    values = list(row)
    for column in AS_JSON:
        if column < len(values):
            values[column] = jsontext.parsed(values[column]) if values[column] else None if column == ERROR else {}
    return Task(*values)
