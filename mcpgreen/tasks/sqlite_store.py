"""`SqliteTaskStore`: tasks in a database on disk, which several processes of one machine share. `MemoryTaskStore` is a
fake for tests.

One native thread reads and writes. Greenlets wait for it, and the hub never does. A long result is a file beside the
database. A runner is alive as long as it holds the lock on its file, which the kernel releases when the process dies;
process ids say nothing.

Rule: everything that is done to a file of a task or a runner happens within a writing transaction, so that no other
process does something to it at the same time. A kill between the file and the end of the transaction leaves a file that
belongs to no task; `remove` removes it. What must not lie on disk in the clear is encrypted there: the params of calls,
and the answers of users. What takes long to import is imported in the thread, when it is needed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gevent.threadpool import ThreadPool

from mcpgreen.errors import McpgreenError
from mcpgreen.files.regular_files import existing_file, new_file, replacing
from mcpgreen.project import task_place as place
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Task
from mcpgreen.tasks.store import (
    EVER,
    SCHEMA,
    VERSION,
    StoreUnusable,
    TaskStore,
    Value,
    fernet_of,
    in_transaction,
    unsealed,
)

if TYPE_CHECKING:
    import sqlite3

    from cryptography.fernet import Fernet

BUSY_SECS = 30.0  # other processes hold the lock for milliseconds
KEPT_WAL_BYTES = 1 << 20
PAGE_BYTES = 4096
GIVE_BACK = "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)"  # free pages, to the disk
MAX_DATABASE_BYTES = 1 << 30
MAX_RESULTS_BYTES = 4 << 30  # of all files


class SqliteTaskStore(TaskStore):
    """The tasks in a directory, which is made with the first task. `state_key` is the setting; without it, a random key
    is kept in a file."""

    def __init__(self, directory: str, *, state_key: str = "", **limits: int) -> None:
        super().__init__(**limits)
        self.directory = directory
        self._state_key = state_key
        self._pool = ThreadPool(1)
        self._lock_fd: int | None = None  # only the thread uses it, and the connection

    def close(self) -> None:
        self._pool.apply(self._disconnect)
        self._pool.kill()

    def _transact(self, work: Callable[[], Value], *, writes: bool) -> Value:
        value, error = self._pool.apply(self._outcome, (work, "BEGIN IMMEDIATE" if writes else "BEGIN"))
        if error is not None:
            raise error
        found: Value = value
        return found

    def _outcome(self, work: Callable[[], Value], begin: str) -> tuple[Value | None, Exception | None]:
        """Return what `work` returns or raises: gevent would print what is raised in a thread."""
        try:
            import sqlite3

            try:
                with self._connected() as connection:  # commits, or rolls back
                    connection.execute(begin)
                    return work(), None
            except sqlite3.Error as error:
                raise OSError(0, str(error)) from error
        except (McpgreenError, ValueError, LookupError) as error:
            return None, error
        except (OSError, ImportError) as error:  # some builds of Python lack sqlite3
            path = getattr(error, "filename", None) or self._path(place.DATABASE)
            return None, StoreUnusable(f"{path}: {getattr(error, 'strerror', None) or error}")

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            place.prepare(self.directory)
            path = self._path(place.DATABASE)
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
        if self._lock_fd is not None:
            with suppress(OSError):
                os.unlink(self._path(place.RUNNERS, self.runner))
            os.close(self._lock_fd)
        self._connection = self._lock_fd = None

    @in_transaction(writes=True)
    def _sweep(self) -> None:
        """Remove files that belong to no task: it was removed, or its process was killed before it was stored."""
        query = "SELECT id FROM tasks WHERE result_bytes > ?"
        kept = {row[0] for row in self._rows(query, life.INLINE_RESULT_BYTES)}
        for name in os.listdir(self._path(place.RESULTS)):
            if name not in kept:
                os.unlink(self._path(place.RESULTS, name))
        for name in os.listdir(self._path(place.RUNNERS)):
            if not self._is_alive(name):  # without its file it is as dead as before
                os.unlink(self._path(place.RUNNERS, name))

    def remove(self, now: float = EVER, owner: str | None = None) -> int:
        removed = super().remove(now, owner)
        self._sweep()
        if removed:
            with suppress(StoreUnusable):  # another process is busy with the pages
                # Only a script is run to its end; it ends the transaction first.
                self._transact(lambda: self._connected().executescript(GIVE_BACK), writes=True)
        return removed

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

    def _path(self, *names: str) -> str:
        return os.path.join(self.directory, *names)

    def _keep_result(self, task: Task, result: bytes) -> Task:
        if len(result) <= life.INLINE_RESULT_BYTES:
            return super()._keep_result(task, result)
        total = self._rows("SELECT total(result_bytes) FROM tasks")[0][0]
        if total + len(result) > MAX_RESULTS_BYTES:
            raise OSError(0, f"the results have more than {MAX_RESULTS_BYTES} bytes; run mcpgreen tasks clear")
        with replacing(self._path(place.RESULTS, task.id)) as file:
            file.write(result)
        return task._replace(result=None, result_bytes=len(result))

    def _read_result(self, task_id: str) -> bytes:
        with open(existing_file(self._path(place.RESULTS, task_id)), "rb") as file:
            return file.read()

    def _seal(self, plain: bytes) -> bytes:
        return self._fernet.encrypt(plain)

    def _unseal(self, sealed: bytes) -> bytes | None:
        return unsealed(self._fernet, sealed)

    @cached_property
    def _fernet(self) -> Fernet:
        from cryptography.fernet import Fernet

        if self._state_key:
            return fernet_of(self._state_key)
        path = self._path(place.KEY)
        if not os.path.lexists(path):
            with replacing(path) as file:
                file.write(Fernet.generate_key())
        try:
            with open(existing_file(path), "rb") as file:
                return Fernet(file.read())
        except ValueError:
            raise OSError(0, "this is not a key; remove it, and a new one is made", path) from None


class MemoryTaskStore(TaskStore):
    """A fake for tests: its tasks end with the process. Stores beside each other are like servers on one store."""

    def __init__(self, *, beside: MemoryTaskStore | None = None, **limits: Any) -> None:
        super().__init__(**limits)
        self._living: set[str] = beside._living if beside else set()
        self._connection = beside._connection if beside else _opened(":memory:")

    def close(self) -> None:
        self._living.discard(self.runner)

    def _transact(self, work: Callable[[], Value], *, writes: bool) -> Value:
        return work()  # no greenlet switches in between

    def _is_alive(self, runner: str) -> bool:
        return runner in self._living

    def _begin_life(self) -> None:
        self._living.add(self.runner)


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
