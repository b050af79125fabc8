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
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from mcpgreen.fleet import labels, lua
from mcpgreen.fleet.address import client_of, explained
from mcpgreen.running.shares import let_others
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Status, Task
from mcpgreen.tasks.secrets import Vault
from mcpgreen.tasks.store import EVER, MAX_LISTED, PIECE, StoreUnusable, TaskStore, TooManyTasks, Value
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

Tasks = list[Task]
Ids = list[str]
News = list[dict[bytes, bytes]]
CHUNK_BYTES = 262_144
CHANGE_TRIES = 100  # each time, another process has changed the record
NEWS = 500  # entries that are read at a time
MAX_EVENTS = 10_000  # that wait for a process; the oldest are dropped
IN_FIELDS_OF_THEIR_OWN = ("runner", "sealed_params", "stderr_end", "result")
READ = ("v", "fields", *IN_FIELDS_OF_THEIR_OWN)


class RedisTaskStore(TaskStore):
    """The tasks of the project with this name. `home` is the name under which this process hears news of the tasks that
    it has created; `runner` is the name of its lease. With a `state_key`, params, answers and results are encrypted."""

    def __init__(self, url: str, project: str, *, state_key: str = "", lease_secs: float = 30.0, **limits: int) -> None:
        super().__init__(vault=Vault("", state_key) if state_key else None, **limits)
        self.home = self.runner
        self.lease_secs = lease_secs
        self.prefix = "{mg:" + re.sub(r"[^\w.-]", "-", project) + "}:"  # in braces: a cluster keeps them together
        self.renewed_at = 0.0  # by the monotonic clock
        self._url = url
        self._redis = client_of(url)
        self._scripts = {
            name: self._redis.register_script(getattr(lua, name))
            for name in ("SAVE", "CLAIM", "BEAT", "LEASES", "FORGET", "REMOVE")
        }
        self._has_lease = False
        self._member: Json = {}
        self._read_to: dict[str, bytes] = {}

    # Tasks, as every store has them.

    def create(self, task: Task) -> Task:
        now = time.time()
        task = task._replace(runner=task.runner or self.runner, created_at=task.created_at or now, updated_at=now)
        if task.runner == self.runner:
            self._begin_life()
        refused = self._save(task)
        if refused == -1:
            raise TooManyTasks(f"There are {self._max_per_owner} unfinished tasks already; wait until a task ends.")
        if refused == -2:
            raise TooManyTasks(f"The fleet has {self._max_tasks} unfinished tasks; wait until a task ends.")
        return task

    def result_of(self, task: Task) -> bytes:
        found = self._read(task.id)
        if found is None or not found[0].result_bytes:
            raise LookupError(task.id)
        if found[0].result is not None:
            return found[0].result
        pieces = []
        key = _key_of_result(found[0])
        for number in range(self._ask("llen", key)):
            pieces.append(self._opened(self._ask("lindex", key, number)))
            let_others()
        if sum(map(len, pieces)) != found[0].result_bytes:
            raise LookupError(task.id)
        return b"".join(pieces)

    def list(self, owner: str | None, *, after: str = "", limit: int = 100) -> Tasks:
        key = "all" if owner is None else f"o:{owner}"
        start = self._ask("zscore", key, after) if after and after.isascii() else None
        if after and start is None:
            raise LookupError(after)
        ids = self._ask("zrangebyscore", key, f"({int(start or 0)}", "+inf", start=0, num=min(limit, MAX_LISTED))
        return [_short(task) for each in ids if (task := self.get(each.decode("ascii")))]

    def changed_since(self, mark: int) -> tuple[int, Tasks]:
        """As `TaskStore` says; but only tasks that this process has created or runs."""
        key = self.prefix + f"in:{self.home}"
        if mark < 0:
            last = self._ask("xrevrange", f"in:{self.home}", count=1)
            return (_number_of(last[0][0]) if last else 0), []
        entries = self._ask("xread", None, streams={key: _id_of(mark)}, count=MAX_LISTED)
        found = entries[0][1] if entries else []
        ids = dict.fromkeys(fields[b"t"].decode("ascii") for _, fields in found if b"t" in fields)
        return (_number_of(found[-1][0]) if found else mark), [_short(task) for task in self.get_all(ids)]

    def recover(self, may_rerun: Callable[[Task], bool] = lambda task: True) -> Tasks:
        rerun: Tasks = []
        for runner in (*(each for each, secs in self.leases().items() if secs <= 0), life.NO_RUNNER):
            name = self.name_of(runner)
            for task_id in self._ask("smembers", f"run:{runner}"):
                old = self.get(task_id.decode("ascii"))
                if old is None or old.runner != runner:
                    self._ask("srem", f"run:{runner}", task_id)
                    continue
                new = self._change(old.id, partial(self._recovered, runner, name, may_rerun))
                if new is not None and not new.has_ended:
                    rerun.append(new)
            if runner != life.NO_RUNNER:
                self._run("FORGET", runner)
        return rerun

    def _recovered(self, runner: str, name: str, may_rerun: Callable[[Task], bool], task: Task) -> Task | None:
        if task.runner != runner:
            return None
        fleet = task.client.get("fleet")
        if not fleet or task.wants_cancel:
            new = life.recovered(task, self.runner)
            return new if new.has_ended or may_rerun(task) else task
        if task.attempt < (life.MAX_ATTEMPTS if task.idempotent else 1 + fleet["retries"]):
            return self._back_in_queue(life.closed(task, task.questions)._replace(attempt=task.attempt + 1))
        text = f"The worker {name} was lost while it ran the tool, in attempt {task.attempt}"
        return life.finished(task, Status.FAILED, error=life.error_of(text))

    def _back_in_queue(self, task: Task) -> Task:
        return task._replace(runner=life.NO_RUNNER, status=Status.QUEUED, status_message="", updated_at=time.time())

    def is_orphan(self, task: Task) -> bool:
        is_queued = task.runner == life.NO_RUNNER and "fleet" in task.client
        return not is_queued and super().is_orphan(task)

    def end_tasks_of(self, owner: str) -> None:
        for task_id in self._ask("zrange", f"o:{owner}", 0, -1):
            self._change(task_id.decode("ascii"), lambda task: None if task.survives else self._with_wish(task))
        self._remove(EVER, owner)

    def _remove(self, now: float, owner: str | None) -> int:
        removed, most = 0, "+inf" if now == EVER else int(now * 1000)
        while ids := self._ask("zrangebyscore", "ends", "-inf", most, start=0, num=PIECE):
            if owner is not None:
                theirs = set(self._ask("zrange", f"o:{owner}", 0, -1))
                ids = [each for each in self._ask("zrangebyscore", "ends", "-inf", most) if each in theirs]
            removed += self._run("REMOVE", *ids) if ids else 0
            if owner is not None:
                break
        return removed

    def close(self) -> None:
        """Give up the lease: what this process ran is lost, and can be recovered."""
        if self._has_lease:
            self._has_lease = False
            with explained(StoreUnusable, self._url):
                self._redis.zadd(self.prefix + "leases", {self.runner: 0})
        self._redis.close()

    # What a fleet needs besides.

    def get_all(self, ids: Iterable[str]) -> Tasks:
        return list(filter(None, map(self.get, ids)))

    def claim(self, queues: Sequence[str]) -> Task | None:
        """Take the task that has waited longest in these queues, for this runner."""
        task_id = self._run("CLAIM", self.runner, *queues)
        return self.get(task_id.decode("ascii")) if task_id else None

    @staticmethod
    def may_take(member: Json, queue: str) -> bool:
        """Tell whether a member is a worker that takes calls from this queue."""
        return "labels" in member and not member.get("draining") and labels.fits(queue, member["labels"])

    def remove(self, task_id: str) -> None:
        """Remove a task that has ended, whatever its time."""
        self._run("REMOVE", task_id)

    def take_back(self, known: set[str]) -> set[str]:
        """Return the ids of tasks that this runner has claimed, but does not know of."""
        claimed = {each.decode("ascii") for each in self._ask("smembers", f"run:{self.runner}")}
        return claimed - known

    def unclaim(self, task_id: str) -> None:
        """Put a task back into its queue that was claimed by this runner, but has not begun."""
        self._change(task_id, lambda task: self._back_in_queue(task) if task.runner == self.runner else None)

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
        found = self._run("LEASES")
        pairs = zip(found[::2], found[1::2], strict=True)
        return {runner.decode("ascii"): int(left_ms) / 1000 for runner, left_ms in pairs}

    def members(self) -> dict[str, Json]:
        """Return what the living processes say of themselves."""
        living = {runner for runner, secs in self.leases().items() if secs > 0}
        found = {each.decode("ascii"): jsontext.parsed(said) for each, said in self._ask("hgetall", "members").items()}
        return {runner: said for runner, said in found.items() if runner in living}

    def name_of(self, runner: str) -> str:
        """Return the name of a worker, also of one that is lost."""
        said = self._ask("hget", "members", runner)
        return str(jsontext.parsed(said).get("name", runner)) if said else runner

    def running(self, runner: str) -> Ids:
        return [each.decode("ascii") for each in self._ask("smembers", f"run:{runner}")]

    def tell(self, reader: str, **fields: bytes) -> None:
        """Add to the news of a process. What it does not read in time is dropped."""
        self._ask("xadd", f"in:{reader}", {**fields}, maxlen=MAX_EVENTS, approximate=True)

    def news(self, wait_secs: float) -> News:
        """Return what others have told this process since the last time. Waits until there is something."""
        for name in (self.home, self.runner):
            self._read_to.setdefault(self.prefix + f"in:{name}", b"0-0")
        found: News = []
        for key, entries in self._ask("xread", None, streams=self._read_to, count=NEWS, block=int(wait_secs * 1000)):
            self._read_to[key.decode()] = entries[-1][0]
            found += [fields for _, fields in entries]
        return found

    def beat(self, **member: Any) -> bool:
        """Renew the lease, and say this of the process. Return whether other leases are over. Raises LookupError if its
        own is: its tasks may run elsewhere by now."""
        self._member = {**self._member, **member}
        began_at = time.monotonic()
        said = jsontext.dumps(self._member)
        is_new = not self._has_lease
        over = self._run("BEAT", self.runner, int(self.lease_secs * 1000), said, "1" if is_new else "0")
        if over < 0:
            raise LookupError(self.runner)
        self._has_lease, self.renewed_at = True, began_at
        return bool(over)

    def begin_anew(self) -> None:
        """Get another name, after the lease was lost."""
        self._read_to.pop(self.prefix + f"in:{self.runner}", None)
        self.runner, self._has_lease = os.urandom(12).hex(), False

    def ping(self) -> None:
        """Raises StoreUnusable if there is no Redis."""
        self._ask("ping", None)

    # Rows.

    def _transact(self, work: Callable[[], Value], *, writes: bool = True) -> Value:
        return work()  # what has to happen at once is in `lua`

    def _is_alive(self, runner: str) -> bool:
        return self.leases().get(runner, 0.0) > 0

    def _begin_life(self) -> None:
        if not self._has_lease:
            self.beat()

    def _change(self, task_id: str, change: Callable[[Task], Task | None], *, writes: bool = True) -> Task | None:
        for _ in range(CHANGE_TRIES):
            found = self._read(task_id)
            if found is None or (life.expires_at(found[0]) or EVER) <= time.time():
                return None
            new = change(found[0])
            if new is None or new is found[0] or self._save(new, *found) == 1:
                return new
        raise StoreUnusable(f"{task_id}: others change the task all the time")

    def _read(self, task_id: str) -> tuple[Task, int] | None:
        """Return a record and its version."""
        if not task_id.isascii():
            return None
        version, fields, *own = self._ask("hmget", f"t:{task_id}", READ)
        if fields is None:
            return None
        runner, sealed, stderr, result = own
        values = jsontext.parsed(fields)
        more = {
            "sealed_params": sealed or None,
            "stderr_end": stderr or b"",
            "result": self._unseal(result) if result else None,
        }
        return Task(**{**values, **more, "runner": runner.decode("ascii")}), int(version)

    def _save(self, new: Task, old: Task | None = None, version: int = 0) -> int:  # type: ignore[override]
        values = new._asdict()
        changed = {
            name: value or b""
            for name in IN_FIELDS_OF_THEIR_OWN
            if (value := values.pop(name)) != (getattr(old, name) if old else None)
        }
        changed |= {"fields": jsontext.dumps(values), "attempt": new.attempt}
        if old is None:
            queue = new.client.get("fleet", {}).get("queue", "")
            changed |= {"runner": new.runner, "owner": new.owner, "home": self.home, "queue": queue}
        expires_at = life.expires_at(new)
        ends = "" if expires_at is None else int(expires_at * 1000)
        pairs = [each for pair in changed.items() for each in pair]
        limits = self._max_per_owner, self._max_tasks
        return int(self._run("SAVE", new.id, version, self.runner, ends, *limits, *pairs))

    def _keep_result(self, task: Task, result: bytes) -> Task:
        if len(result) <= life.INLINE_RESULT_BYTES:
            return task._replace(result=self._seal(result), result_bytes=len(result))
        key = _key_of_result(task)
        self._ask("delete", key)
        for start in range(0, len(result), CHUNK_BYTES):
            self._ask("rpush", key, self._seal(result[start : start + CHUNK_BYTES]))
            let_others()
        keep_secs = max(task.keep_secs, life.PLAIN_KEEP_SECS, (task.asked_ttl_ms or 0) / 1000)
        self._ask("expire", key, int(keep_secs) + 3600)
        return task._replace(result=None, result_bytes=len(result))

    def _sealed(self, plain: bytes) -> bytes:
        return self._seal(plain) if self._vault else plain

    def _opened(self, sealed: bytes | None) -> bytes:
        plain = self._unseal(sealed) if sealed else None
        if plain is None:
            raise LookupError("sealed with another key")
        return plain

    def _run(self, script: str, *values: Any) -> Any:
        with explained(StoreUnusable, self._url):
            return self._scripts[script](keys=[self.prefix], args=values)

    def _ask(self, command: str, key: str | None, *values: Any, **named: Any) -> Any:
        with explained(StoreUnusable, self._url):
            keys = () if key is None else (self.prefix + key,)
            return getattr(self._redis, command)(*keys, *values, **named)


def _short(task: Task) -> Task:
    return task._replace(sealed_params=None, stderr_end=b"", result=None)


def _key_of_result(task: Task) -> str:
    """Another attempt, which may still run somewhere, must not write to the same key."""
    return f"r:{task.id}:{task.attempt}"


def _number_of(entry: bytes) -> int:
    """Return the id of an entry of a stream as one number."""
    at, _, number = entry.partition(b"-")
    return int(at) << 20 | int(number)


def _id_of(number: int) -> str:
    return f"{number >> 20}-{number & 0xFFFFF}"
