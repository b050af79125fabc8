"""Tasks on disk: places that cannot be trusted, full disks, kills at any moment, several processes, what is left."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import IO

import gevent
import pytest
from gevent.pool import Pool

from mcpgreen.project import task_place as place
from mcpgreen.tasks import life, sqlite_store
from mcpgreen.tasks.life import Task
from mcpgreen.tasks.sqlite_store import SqliteTaskStore
from mcpgreen.tasks.store import NOT_STORED, StoreUnusable

SECRET = "hunter2-and-more"
LONG = b"x" * (life.INLINE_RESULT_BYTES + 1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(place.directory_of(str(tmp_path / "project"), {"XDG_STATE_HOME": str(tmp_path / "state")}))


@pytest.fixture
def store(directory: Path) -> Iterator[SqliteTaskStore]:
    store = SqliteTaskStore(str(directory))
    yield store
    store.close()


def new(owner: str = "", **fields: object) -> Task:
    return Task(life.new_id(), owner, "build", **fields)  # type: ignore[arg-type]  # of several types


def files_in(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if not path.is_dir())


def test_each_project_has_a_place_in_the_users_state(tmp_path: Path) -> None:
    def find(root: str, **environ: str) -> str:
        return place.directory_of(root, environ)

    here = find(str(tmp_path), XDG_STATE_HOME="/state")
    assert here.startswith("/state/mcpgreen/tasks/") and here != find("/elsewhere", XDG_STATE_HOME="/state")
    (tmp_path / "link").symlink_to(tmp_path)
    assert find(str(tmp_path / "link"), XDG_STATE_HOME="/state") == here
    assert find("/x", HOME="/h").startswith("/h/.local/state/mcpgreen/tasks/")
    assert find("/x", HOME="/h", XDG_STATE_HOME="relative") == find("/x", HOME="/h")


def test_nothing_is_made_before_it_is_needed(store: SqliteTaskStore, directory: Path, tmp_path: Path) -> None:
    assert not place.has_store(str(directory)) and not (tmp_path / "state").exists()
    task = store.create(new())
    store.finish(task.id, 1, "completed", result=LONG)
    store.seal({"x": 1})
    assert place.has_store(str(directory))
    paths = [directory, *directory.rglob("*")]
    modes = {path.name: path.stat().st_mode & 0o777 for path in paths}
    assert {modes.pop(name) for name in (directory.name, place.RESULTS, place.RUNNERS)} == {0o700}
    assert set(modes.values()) == {0o600} and {task.id, store.runner, "key", "tasks.sqlite"} <= modes.keys()


def make_other_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


LEVELS = ("state", "state/mcpgreen", "state/mcpgreen/tasks", "DIRECTORY", "DIRECTORY/results", "DIRECTORY/runners")
DATABASE = "DIRECTORY/tasks.sqlite"
# What there is, where, and the shell command that makes it.
ATTACKS = {
    "a link": (LEVELS[1:], "mkdir elsewhere; ln -s elsewhere $1"),
    "a file in the way": (LEVELS, "touch $1"),
    "writable by others": (LEVELS, "mkdir $1; chmod 777 $1"),
    "owned by another user": (LEVELS, "mkdir $1; chown 65534:65534 $1"),
    "a file elsewhere": ((DATABASE, f"{DATABASE}-wal", "DIRECTORY/key"), "touch elsewhere; ln -s elsewhere $1"),
    "a file with two names": ((DATABASE,), "touch elsewhere; ln elsewhere $1"),
    "a FIFO": ((DATABASE,), "mkfifo $1"),
    "no database": ((DATABASE,), "yes rubbish | head -c 7000 >$1"),
    "a file that others may write": ((DATABASE,), "touch $1; chmod 666 $1"),
    "of another version": ((DATABASE,), "touch $1"),
}


@pytest.mark.parametrize(
    "attack, where", [(attack, each) for attack, (levels, _) in ATTACKS.items() for each in levels]
)
def test_an_untrusted_place_is_refused_and_left_alone(
    attack: str, where: str, tmp_path: Path, directory: Path, store: SqliteTaskStore
) -> None:
    if attack.startswith("owned") and os.geteuid():
        pytest.skip("only root can give a file to another user")
    path = tmp_path / where.replace("DIRECTORY", str(directory))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    subprocess.run(["sh", "-c", ATTACKS[attack][1], "sh", path], cwd=path.parent, check=True)
    if attack == "of another version":
        make_other_version(path)
    before = {each: each.lstat().st_size for each in files_in(tmp_path)}
    with pytest.raises(StoreUnusable) as caught:
        store.create(new())
    assert str(caught.value).startswith(str(path).removesuffix("-wal"))
    assert ("another version" in str(caught.value)) == (attack == "of another version")
    after = {each: each.lstat().st_size for each in files_in(tmp_path)}
    assert after == before
    with pytest.raises(StoreUnusable):
        store.recover()


def test_a_place_that_cannot_be_written_is_refused() -> None:
    store = SqliteTaskStore(place.directory_of("/project", {"XDG_STATE_HOME": "/proc/state"}))
    with pytest.raises(StoreUnusable, match="/proc/state: No such file"):
        store.create(new())
    store.close()


@pytest.mark.parametrize("package", ["sqlite3", "cryptography.fernet"])
def test_a_python_without_a_package_stores_nothing(
    package: str, store: SqliteTaskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StoreUnusable, match=package):
        store.create(new(sealed_params=store.seal({"x": 1})))


def test_a_full_disk_refuses_new_tasks_and_ends_old_ones(
    store: SqliteTaskStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "MAX_DATABASE_BYTES", 200_000)
    tasks = [store.create(new()) for _ in range(20)]
    for task in tasks:
        assert store.finish(task.id, 1, "completed", result=LONG[:60_000])
    ended = [each.status for each in store.list(None)]
    assert set(ended) == {"completed", "failed"}
    failed = store.list(None)[ended.index("failed")]
    assert failed.error == life.error_of(NOT_STORED)
    with pytest.raises(StoreUnusable, match="full"):
        for _ in range(1000):
            store.create(new())
    assert store.remove() == 20, "there is a way out"
    monkeypatch.setattr(sqlite_store, "MAX_RESULTS_BYTES", len(LONG))
    first, second = store.create(new()), store.create(new())
    assert store.finish(first.id, 1, "completed", result=LONG) and store.finish(second.id, 1, "completed", result=LONG)
    assert [each.status for each in (store.get(first.id), store.get(second.id)) if each] == ["completed", "failed"]
    assert os.listdir(directory / "results") == [first.id]


def test_one_that_fails_does_not_take_others_with_it(store: SqliteTaskStore, directory: Path) -> None:
    tasks = [store.create(new()) for _ in range(4)]
    (directory / "results" / tasks[1].id).mkdir()  # where its result should be
    ends = [gevent.spawn(store.finish, task.id, 1, "completed", result=LONG) for task in tasks]
    gevent.joinall(ends, raise_error=True)
    assert all(each.value for each in ends)
    assert [each.status for each in store.list(None)] == ["completed", "failed", "completed", "completed"]
    (directory / "results" / tasks[1].id).rmdir()


def test_a_fault_of_ours_is_no_success_for_others(store: SqliteTaskStore) -> None:
    faulty = new("\ud800")  # a text that a database cannot hold
    both = [gevent.spawn(store.create, each) for each in (new(), faulty)]
    gevent.joinall(both)
    assert len(store.list(None)) == sum(each.successful() for each in both)
    assert not both[1].successful() and store.create(new())


def test_secrets_are_not_on_disk(store: SqliteTaskStore, directory: Path) -> None:
    sealed = store.seal({"arguments": {"password": SECRET}})
    task = store.create(new(sealed_params=sealed, idempotent=True))
    store.ask(task.id, 1, {"pin": {"method": "elicitation/create"}})
    assert store.answer(task.id, {"pin": {"action": "accept", "content": {"pin": SECRET}}})
    contents = [path.read_bytes() for path in files_in(directory)]
    assert sum(task.id.encode() in content for content in contents) and not any(
        SECRET.encode() in each for each in contents
    )
    again = SqliteTaskStore(str(directory))
    found = again.get(task.id)
    assert found is not None and found.sealed_params and SECRET not in str(found)
    assert again.unseal(found.sealed_params) == {"arguments": {"password": SECRET}}
    again.close()
    with_key = SqliteTaskStore(str(directory), state_key="a key that servers share")
    assert with_key.unseal(found.sealed_params) is None, "another key"
    assert with_key.take_answers(task.id, 1, ["pin"]) == {"pin": {"action": "cancel"}}
    resealed = with_key.seal({"x": 1})
    assert resealed and SqliteTaskStore(str(directory), state_key="a key that servers share").unseal(resealed) == {
        "x": 1
    }
    with_key.close()


def test_a_slow_disk_does_not_block_the_hub(store: SqliteTaskStore, directory: Path) -> None:
    task = store.create(new())
    blocker = sqlite3.connect(directory / place.DATABASE, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    waiting = gevent.spawn(store.finish, task.id, 1, "completed")
    ticks = [time.monotonic()]
    while len(ticks) < 20:
        gevent.sleep(0.01)
        ticks.append(time.monotonic())
    assert not waiting.ready() and max(late - early for early, late in pairwise(ticks)) < 0.2
    waiting.kill()  # the one that waits may end; what it wanted is done
    blocker.execute("COMMIT")
    blocker.close()
    assert (found := store.get(task.id)) and found.status == "completed"


def test_ten_thousand_tasks_leave_nothing(store: SqliteTaskStore, directory: Path) -> None:
    def live(number: int) -> None:
        task = store.create(new())
        store.note(task.id, 1, status_message="50 %")
        result = LONG if number % 500 == 0 else b"r" * 1000
        assert store.finish(task.id, 1, ("completed", "cancelled")[number % 2], result=result)

    for _ in Pool(64).imap_unordered(live, range(10_000)):
        pass
    sizes = sum(path.stat().st_size for path in files_in(directory))
    assert sizes > 10_000_000
    assert store.remove(time.time() + 3601) == 10_000
    assert store.list(None) == [] and os.listdir(directory / "results") == []
    assert sum(path.stat().st_size for path in files_in(directory)) < 1_000_000


# In another process: does what its arguments say, and prints what it has done.
PROGRAM = """
import sys
from mcpgreen.tasks.life import Task, new_id
from mcpgreen.tasks.sqlite_store import SqliteTaskStore
import gevent

store, what = SqliteTaskStore(sys.argv[1]), sys.argv[2]
say = lambda *words: print(*words, flush=True)
if what == "write":
    while True:
        task = store.create(Task(new_id(), "", "build"))
        say("created", task.id)
        store.finish(task.id, 1, "completed", result=b"x" * 70_000)
        say("finished", task.id)
say("ready", store.runner)
for line in sys.stdin:
    if line == "create\\n":
        say(store.create(Task(new_id(), "", "build", idempotent=True, sealed_params=b"x")).id)
    elif line == "recover\\n":
        say(*(task.id for task in store.recover()))
    elif line == "ask\\n":
        task = store.create(Task(new_id(), "", "build"))
        store.ask(task.id, 1, {"a": {}, "b": {}})
        say(task.id)
        answers = {}
        while len(answers) < 2:
            gevent.sleep(0.01)
            answers |= store.take_answers(task.id, 1, "ab")
        say(sorted(answers.items()))
        while not store.get(task.id).wants_cancel:
            gevent.sleep(0.01)
        say(bool(store.finish(task.id, 1, "cancelled")))
    else:
        say(sum(bool(store.finish(each, 1, what, result=b"y" * 70_000)) for each in line.split()))
"""


class Neighbour:
    """Another process on the same store."""

    def __init__(self, directory: Path, what: str) -> None:
        argv = [sys.executable, "-c", PROGRAM, str(directory), what]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._out: IO[str] = self.process.stdout  # type: ignore[assignment]  # a pipe, see above

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self) -> list[str]:
        return self._out.readline().split()

    def kill(self) -> str:
        """Kill it, and return the rest of its output."""
        self.process.send_signal(signal.SIGKILL)
        with self.process:
            return self._out.read()


def test_a_kill_at_any_moment_loses_no_task(store: SqliteTaskStore, directory: Path) -> None:
    writers = [Neighbour(directory, "write") for _ in range(2)]
    lines = []
    for number, writer in enumerate(writers):
        lines += [writer.hear() for _ in range(50 + 31 * number)]
    lines += [line.split() for writer in writers for line in writer.kill().splitlines()]
    assert store.recover() == []
    created = {task_id for what, task_id in filter(lambda line: len(line) == 2, lines) if what == "created"}
    finished = {line[1] for line in lines if len(line) == 2 and line[0] == "finished"}
    stored = {task.id: task for task in store.list(None, limit=1000)}
    assert created <= stored.keys() and {stored[each].status for each in finished} == {"completed"}
    assert all(task.has_ended for task in stored.values())
    assert all(store.result_of(task) for task in stored.values() if task.status == "completed")
    store.create(new())
    store.remove()
    assert os.listdir(directory / "results") == [] and os.listdir(directory / "runners") == [store.runner]


def test_processes_share_the_tasks(store: SqliteTaskStore, directory: Path) -> None:
    both = [Neighbour(directory, what) for what in ("completed", "cancelled")]
    try:
        runners = [each.hear()[1] for each in both]
        for each in both:
            each.say("create")
        [(of_first,), (of_second,)] = [each.hear() for each in both]
        assert {task.runner for task in store.list(None)} == set(runners)
        assert store.recover() == [], "both live"

        ids = [store.create(new()).id for _ in range(100)]
        mark = store.changed_since(-1)[0]
        for each in both:
            each.say(" ".join(ids))
        won = [int(each.hear()[0]) for each in both]
        assert sum(won) == 100, "each task ends once"
        assert len(store.changed_since(mark)[1]) == 100, "and its runner learns of it"
        ended = [task.status for task in store.list(None, limit=1000) if task.id in ids]
        assert [ended.count(what) for what in ("completed", "cancelled")] == won

        both[0].say("ask")
        [asked] = both[0].hear()
        assert store.answer(asked, {"b": {"n": 2}}) == {"b"} and store.answer(asked, {"a": {"n": 1}, "b": {}}) == {"a"}
        assert both[0].hear() == str([("a", {"n": 1}), ("b", {"n": 2})]).split()
        assert (wished := store.want_cancel(asked)) and wished.wants_cancel
        assert both[0].hear() == ["True"]

        for _ in range(20):
            both[0].say("create")
        dead = {of_first, *(both[0].hear()[0] for _ in range(20))}
        both[0].kill()
        both[1].say("recover")
        own = {task.id for task in store.recover()}
        others = set(both[1].hear())
        assert own | others == dead and not own & others and of_second not in dead
    finally:
        for each in both:
            if each.process.returncode is None:
                each.kill()
