"""`RedisTaskStore`: the ledger of a fleet. The tasks of a project in Redis, which servers and workers share.

A call of a tool of the fleet is a task that waits in the queue of its labels until a worker claims it. Its progress and
its logs are events for the process that sent it; all else (questions, answers, the wish to cancel, the result) is in
its record, as for any task. The bell only says that there is something to claim: the truth is here.

Each process holds a lease, which it renews. The tasks of a process whose lease is over are lost: anybody may end them
or put them back into their queue. A record is changed only if nobody has changed it since it was read, so of two
processes that try the same, one succeeds; and a process that has lost a task cannot write to it any more.

Keys, all with the prefix of the project: `t:ID` is a record and `r:ID:ATTEMPT` its result in pieces, `q:QUEUE` what
waits there, `run:RUNNER` what a process runs, `in:RUNNER` the news for it, `leases` and `members` the processes; `all`,
`open`, `ends`, `o:OWNER` and `unfinished` find and count tasks.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.fleet import labels
from mcpgreen.fleet.address import client_of, explained
from mcpgreen.running.shares import let_others
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Status, Task
from mcpgreen.tasks.store import EVER, PIECE, RUNNER_BYTES, StoreUnusable, TaskStore, Value, fernet_of, unsealed
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

Tasks = list[Task]
Ids = list[str]
News = list[dict[bytes, bytes]]
CHUNK_BYTES = 262_144
CHANGE_TRIES = 100  # each time, another process has changed the record
NEWS = 500  # entries that are read at a time
MAX_EVENTS = 10_000  # that wait for a process; the oldest are dropped
OWN_FIELDS = ("runner", "sealed_params", "stderr_end", "result")
READ = ("v", "fields", *OWN_FIELDS)


class RedisTaskStore(TaskStore):
    """The tasks of the project with this name. `home` is the name under which this process hears news of the tasks that
    it has created; `runner` is the name of its lease. With a `state_key`, params, answers and results are encrypted."""

    def __init__(self, url: str, project: str, *, state_key: str = "", lease_secs: float = 30.0, **limits: int) -> None:
        super().__init__(**limits)
        self.home = self.runner
        self.lease_secs = lease_secs
        self.is_of_worker = False
        self.renewed_at = 0.0  # by the monotonic clock
        self._prefix = "{mg:" + re.sub(r"[^\w.-]", "-", project) + "}:"  # in braces: a cluster keeps them together
        self._fernet = fernet_of(state_key) if state_key else None
        self._redis = client_of(url)
        self._scripts: dict[str, Any] = {}
        self._has_lease = self.has_more = False
        self._read_to: dict[str, bytes] = {}

    # Tasks, as every store has them.

    def create(self, task: Task) -> Task:
        now = time.time()
        task = task._replace(runner=task.runner or self.runner, created_at=task.created_at or now, updated_at=now)
        if self._write(task) < 0:
            raise InternalError("There are too many unfinished tasks; wait until a task ends.")
        return task

    def result_of(self, task: Task) -> bytes:
        found = self._load(task.id)
        key, pieces = _key_of_result(task), list[bytes]()
        if found is not None and found.result is not None:
            return found.result
        for number in range(self._ask("llen", key)):
            pieces.append(self._unseal(self._ask("lindex", key, number) or b"") or b"")
            let_others()
        if found is None or not found.result_bytes or sum(map(len, pieces)) != found.result_bytes:
            raise InternalError("The task has no result, or has expired.")
        return b"".join(pieces)

    def list(self, owner: str | None, *, after: str = "", limit: int = 100) -> Tasks:
        key = "all" if owner is None else f"o:{owner}"
        start = self._ask("zscore", key, after) if after and after.isascii() else None
        if after and start is None:
            raise InvalidParams("Unknown cursor.")
        ids = self._ask("zrangebyscore", key, f"({int(start or 0)}", "+inf", start=0, num=limit)
        short: Json = {"sealed_params": None, "stderr_end": b"", "result": None}
        return [task._replace(**short) for task in self.get_all(each.decode("ascii") for each in ids)]

    def changed_since(self, mark: int) -> tuple[int, Tasks]:
        """Return nothing: each process hears what happens to its own tasks by `news`."""
        self._ask("ping")
        return 0, []

    def recover(self, may_rerun: Callable[[Task], bool] = lambda task: True) -> Tasks:
        rerun: Tasks = []
        for runner in (*(each for each, secs in self.leases().items() if secs <= 0), life.NO_RUNNER):
            name = self.name_of(runner)
            for task_id in self.running(runner):
                new = self._change(task_id, partial(self._recovered, runner, name, may_rerun))
                if new is not None and not new.has_ended:
                    rerun.append(new)
            if runner != life.NO_RUNNER:
                self._run("forget", runner)
        return rerun

    def _recovered(self, runner: str, name: str, may_rerun: Callable[[Task], bool], task: Task) -> Task | None:
        fleet = task.client.get("fleet")
        if task.runner != runner or (not fleet and self.is_of_worker):
            return None
        if not fleet or task.wants_cancel:
            new = life.recovered(task, self.runner)
            return new if new.has_ended or may_rerun(task) else task
        if task.attempt < (life.MAX_ATTEMPTS if task.idempotent else 1 + fleet["retries"]):
            return _in_queue(life.closed(task, task.questions)._replace(attempt=task.attempt + 1))
        text = f"The worker {name} was lost while it ran the tool, in attempt {task.attempt}"
        return life.finished(task, Status.FAILED, error=life.error_of(text))

    def is_orphan(self, task: Task) -> bool:
        is_queued = task.runner == life.NO_RUNNER and "fleet" in task.client
        return not is_queued and super().is_orphan(task)

    def _remove_some(self, now: float, owner: str | None) -> int:
        ids = self._ask("zrangebyscore", "ends", "-inf", min(now * 1000, 2.0**60), start=0, num=PIECE)
        if owner is not None:
            ids = [each.id for each in self.list(owner, limit=-1) if each.has_ended]
        return int(self._run("remove", *ids[:PIECE])) if ids else 0

    def close(self) -> None:
        if self._has_lease:
            self._has_lease = False
            self._ask("zadd", "leases", {self.runner: 0})
        self._redis.close()

    # What a fleet needs besides.

    def get_all(self, ids: Iterable[str]) -> Tasks:
        return [task for each in ids if (task := self._load(each))]

    def claim(self, queues: Sequence[str]) -> Task | None:
        """Take the task that has waited longest in these queues, for this runner. Sets `has_more`."""
        found = self._run("claim", self.runner, *queues)
        self.has_more = bool(found and found[1])
        return self._parsed(found[0])[0] if found else None

    def unclaim(self, task_id: str) -> None:
        """Put a task back into its queue that was claimed by this runner, but has not begun."""
        self._change(task_id, lambda task: _in_queue(task) if task.runner == self.runner else None)

    def queues(self) -> dict[str, int]:
        """Return the queues that there ever were, and how many tasks wait in each."""
        names = sorted(each.decode() for each in self._ask("smembers", "queues"))
        return {name: self._ask("zcard", f"q:{name}") for name in names}

    def waiting(self, queue: str, limit: int) -> Tasks:
        """Return the tasks that have waited longest in a queue."""
        return self.get_all(each.decode("ascii") for each in self._ask("zrange", f"q:{queue}", 0, limit - 1))

    def place_of(self, task: Task) -> int | None:
        """Return how many tasks are before this one in its queue; None if it does not wait there."""
        place: int | None = self._ask("zrank", f"q:{task.client['fleet']['queue']}", task.id)
        return place

    def leases(self) -> dict[str, float]:
        """Return for how many seconds the lease of each process still counts."""
        found = self._run("leases")
        return {runner.decode("ascii"): int(left) / 1000 for runner, left in zip(found[::2], found[1::2], strict=True)}

    def members(self) -> dict[str, Json]:
        """Return what the living processes say of themselves."""
        leases, said = self.leases(), self._ask("hgetall", "members")
        found = {runner.decode("ascii"): jsontext.parsed(each) for runner, each in said.items()}
        return {runner: each for runner, each in found.items() if leases.get(runner, 0.0) > 0}

    def state(self) -> Json:
        """Return the workers, the queues, and how many processes there are besides, as people and programs see them."""
        members, queues = self.members(), list[Json]()
        workers = [{**said, "running": len(self.running(each))} for each, said in members.items() if "labels" in said]
        for name, count in self.queues().items():
            oldest = self.waiting(name, 1)
            secs = round(time.time() - oldest[0].updated_at, 1) if oldest else 0.0
            fitting = sum(may_take(each, name) for each in workers)
            queues.append({"queue": name, "waiting": count, "oldestSecs": secs, "workers": fitting})
        lost = sum(secs <= 0 for secs in self.leases().values())
        workers.sort(key=lambda each: str(each["name"]))
        return {"workers": workers, "queues": queues, "servers": len(members) - len(workers), "lost": lost}

    def has_worker_for(self, queue: str) -> bool:
        return any(may_take(member, queue) for member in self.members().values())

    def name_of(self, runner: str) -> str:
        """Return the name of a worker, also of one that is lost."""
        said = self._ask("hget", "members", runner)
        return str(jsontext.parsed(said).get("name", runner)) if said else runner

    def running(self, runner: str) -> Ids:
        return [each.decode("ascii") for each in self._ask("smembers", f"run:{runner}")]

    def forget(self, task_id: str) -> None:
        """Remove a task that has ended, whatever its time."""
        self._run("remove", task_id)

    def tell(self, reader: str, **fields: bytes) -> None:
        """Add to the news of a process. What it does not read in time is dropped."""
        self._ask("xadd", f"in:{reader}", {**fields}, maxlen=MAX_EVENTS, approximate=True)

    def news(self, wait_secs: float) -> News:
        """Return what others have told this process since the last time. Waits until there is something."""
        for name in (self.home, self.runner):
            self._read_to.setdefault(f"{self._prefix}in:{name}", b"0-0")
        found: News = []
        for key, entries in self._ask("xread", streams=self._read_to, count=NEWS, block=int(wait_secs * 1000)):
            self._read_to[key.decode()] = entries[-1][0]
            found += [fields for _, fields in entries]
        return found

    def beat(self, member: Json) -> bool:
        """Renew the lease, and say this of the process. Return whether other leases are over. Raises LookupError if its
        own is: its tasks may run elsewhere by now."""
        began_at = time.monotonic()
        values = int(self.lease_secs * 1000), jsontext.dumps(member), int(not self._has_lease)
        over = self._run("beat", self.runner, *values)
        if over < 0:
            raise LookupError(self.runner)
        self._has_lease, self.renewed_at = True, began_at
        return bool(over)

    def begin_anew(self) -> None:
        """Get another name and another lease. What runs under the old name is lost when that lease is over."""
        self._read_to.pop(f"{self._prefix}in:{self.runner}", None)
        self.runner, self._has_lease, self.renewed_at = os.urandom(RUNNER_BYTES).hex(), False, 0.0

    # Rows.

    def _transact(self, work: Callable[[], Value], *, writes: bool) -> Value:
        return work()  # what has to happen at once is in `lua`

    def _is_alive(self, runner: str) -> bool:
        return self.leases().get(runner, 0.0) > 0

    def _begin_life(self) -> None:
        if not self._has_lease:
            self.beat({})

    def _change(self, task_id: str, change: Callable[[Task], Task | None]) -> Task | None:
        for _ in range(CHANGE_TRIES):
            found = self._read(task_id)
            new = found and change(found[0])
            if not found or new is None or new is found[0] or self._write(new, *found) > 0:
                return new
        raise StoreUnusable(f"{task_id}: others change the task all the time")

    def _load(self, task_id: str) -> Task | None:
        found = self._read(task_id)
        return found and found[0]

    def _read(self, task_id: str) -> tuple[Task, int] | None:
        """Return a record and its version."""
        row: Any = self._ask("hmget", f"t:{task_id}", READ) if task_id.isascii() else [None]
        found = None if row[0] is None else self._parsed(row)
        return found if found and (life.expires_at(found[0]) or EVER) > time.time() else None

    def _parsed(self, row: Sequence[Any]) -> tuple[Task, int]:
        version, fields, runner, sealed, stderr, result = row
        more = {
            "sealed_params": sealed or None,
            "stderr_end": stderr,
            "result": self._unseal(result) if result else None,
        }
        return Task(**{**jsontext.parsed(fields), **more, "runner": runner.decode("ascii")}), int(version)

    def _write(self, new: Task, old: Task | None = None, version: int = 0) -> int:
        """Store a record if it has this version. Return 0 if it has another one, and less if there are too many."""
        if new.runner == self.runner:
            self._begin_life()
        values = new._asdict()
        own = {name: values.pop(name) for name in OWN_FIELDS}
        changed = {name: value or b"" for name, value in own.items() if old is None or value != getattr(old, name)}
        changed |= {"fields": jsontext.dumps(values), "attempt": new.attempt}
        if old is None:
            changed |= {"owner": new.owner, "home": self.home, "queue": new.client.get("fleet", {}).get("queue", "")}
        expires_at = life.expires_at(new)
        ends = "" if expires_at is None else int(expires_at * 1000)
        pairs = (each for pair in changed.items() for each in pair)
        return int(self._run("save", new.id, version, self.runner, ends, self._max_per_owner, self._max_tasks, *pairs))

    def _keep_result(self, task: Task, result: bytes) -> Task:
        if len(result) <= life.INLINE_RESULT_BYTES:
            return task._replace(result=self._seal(result), result_bytes=len(result))
        key = _key_of_result(task)
        self._ask("delete", key)
        for start in range(0, len(result), CHUNK_BYTES):
            self._ask("rpush", key, self._seal(result[start : start + CHUNK_BYTES]))
            let_others()
        self._ask("expire", key, int(max(task.keep_secs, life.PLAIN_KEEP_SECS)) + 3600)
        return task._replace(result=None, result_bytes=len(result))

    def _seal(self, plain: bytes) -> bytes:
        return self._fernet.encrypt(plain) if self._fernet else plain

    def _unseal(self, sealed: bytes) -> bytes | None:
        return unsealed(self._fernet, sealed) if self._fernet else sealed

    def _run(self, name: str, *values: Any) -> Any:
        """Run a script of `lua/`, which happens at once."""
        if name not in self._scripts:
            with open(os.path.join(os.path.dirname(__file__), "lua", f"{name}.lua"), encoding="ascii") as file:
                self._scripts[name] = self._redis.register_script(file.read())
        with explained():
            return self._scripts[name](keys=[self._prefix], args=values)

    def _ask(self, command: str, key: str = "", *values: Any, **named: Any) -> Any:
        with explained():
            return getattr(self._redis, command)(*([self._prefix + key] if key else []), *values, **named)


def may_take(member: Json, queue: str) -> bool:
    """Tell whether a member is a worker that takes calls from this queue."""
    return "labels" in member and not member.get("draining") and labels.fits(queue, member["labels"])


def _in_queue(task: Task) -> Task:
    return task._replace(runner=life.NO_RUNNER, status=Status.QUEUED, status_message="", updated_at=time.time())


def _key_of_result(task: Task) -> str:
    """Another attempt, which may still run somewhere, must not write to the same key."""
    return f"r:{task.id}:{task.attempt}"
