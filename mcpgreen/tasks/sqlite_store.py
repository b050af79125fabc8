"""`SqliteTaskStore`: tasks in a database on disk, which several processes of one machine share. `MemoryTaskStore` is a
fake for tests.

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
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from gevent.threadpool import ThreadPool

from mcpgreen.files.regular_files import existing_file, new_file
from mcpgreen.project import task_place as place
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Task
from mcpgreen.tasks.secrets import Vault
from mcpgreen.tasks.store import SCHEMA, VERSION, StoreUnusable, TaskStore, TooManyTasks, Value

if TYPE_CHECKING:
    import sqlite3

MAX_BATCH = 200
BUSY_SECS = 30.0  # other processes hold the lock for milliseconds
KEPT_WAL_BYTES = 1 << 20
PAGE_BYTES = 4096
MAX_DATABASE_BYTES = 1 << 30
MAX_RESULTS_BYTES = 4 << 30  # of all files


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
        # Only the thread uses these, and the connection.
        self._lock_fd: int | None = None
        self._faults: tuple[type[Exception], ...] = (OSError, ImportError)  # that a disk or a package may have

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
                connection.execute("COMMIT")
                for job in batch:
                    job.error = job.refusal
            finally:
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
                os.unlink(self._path(place.RUNNERS, self.runner))
            os.close(self._lock_fd)
            self._lock_fd = None

    def _sweep(self) -> None:
        """Remove files that belong to no task: it was removed, or its process was killed before it was stored."""
        query = "SELECT id FROM tasks WHERE result_bytes > ?"
        kept = {row[0] for row in self._rows(query, life.INLINE_RESULT_BYTES)}
        for name in os.listdir(os.path.join(self.directory, place.RESULTS)):
            if name not in kept:
                os.unlink(self._path(place.RESULTS, name))
        for name in os.listdir(os.path.join(self.directory, place.RUNNERS)):
            if not self._is_alive(name):  # without its file it is as dead as before
                os.unlink(self._path(place.RUNNERS, name))

    def _remove(self, now: float, owner: str | None) -> int:
        removed = super()._remove(now, owner)
        self._transact(self._sweep)
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
            fd = existing_file(self._path(place.RUNNERS, runner))
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
            fd = new_file(self._path(place.RUNNERS, self.runner))
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._lock_fd = fd

    def _path(self, folder: str, name: str) -> str:
        return os.path.join(self.directory, folder, os.path.basename(name) or "-")

    def _keep_result(self, task: Task, result: bytes) -> Task:
        if len(result) <= life.INLINE_RESULT_BYTES:
            return super()._keep_result(task, result)
        total = self._rows("SELECT total(result_bytes) FROM tasks")[0][0]
        if total + len(result) > MAX_RESULTS_BYTES:
            raise OSError(0, f"the results have more than {MAX_RESULTS_BYTES} bytes; run mcpgreen tasks clear")
        path = self._path(place.RESULTS, task.id)
        with suppress(FileNotFoundError):
            os.unlink(path)  # of a process that was killed here
        with open(new_file(path), "wb") as file:
            file.write(result)
        return task._replace(result=None, result_bytes=len(result))

    def _read_result(self, task_id: str) -> bytes:
        with open(existing_file(self._path(place.RESULTS, task_id)), "rb") as file:
            return file.read()


class MemoryTaskStore(TaskStore):
    """A fake for tests: its tasks end with the process. Stores beside each other are like servers on one store."""

    def __init__(self, *, beside: MemoryTaskStore | None = None, **limits: Any) -> None:
        super().__init__(**limits)
        self._living: set[str] = beside._living if beside else set()
        self._connection = beside._connection if beside else _opened(":memory:")

    def close(self) -> None:
        self._living.discard(self.runner)

    def _transact(self, work: Callable[[], Value], *, writes: bool = True) -> Value:
        return work()  # no greenlet switches in between

    def _is_alive(self, runner: str) -> bool:
        return runner in self._living

    def _begin_life(self) -> None:
        self._living.add(self.runner)


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
