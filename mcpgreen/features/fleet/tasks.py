"""The tasks of a server or a worker of a fleet: they are in the ledger, and some of them run elsewhere.

A server sends calls: it stores them in the queue of their labels, rings the bell, and follows them. A worker claims
what its labels fit, and runs it as it would run a stored task. Both renew a lease, hear the news about their tasks, and
recover what lost processes have left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event as Bell
from gevent.queue import Full, JoinableQueue

from mcpgreen import journal
from mcpgreen.errors import InternalError
from mcpgreen.features.call import Call
from mcpgreen.features.fleet.following import Follower
from mcpgreen.features.fleet.serving import FleetTask
from mcpgreen.features.tasks import wires
from mcpgreen.features.tasks.tasks import POLLS_OF_TASK, Tasks
from mcpgreen.fleet import labels
from mcpgreen.fleet.address import url_of
from mcpgreen.fleet.bell import Ringer
from mcpgreen.fleet.ledger import MAX_EVENTS, RedisTaskStore
from mcpgreen.links.principal import Principal
from mcpgreen.links.session import wants_level
from mcpgreen.protocol.admission import progress_token
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Status, Task
from mcpgreen.tasks.store import StoreUnusable, TaskStore
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.services import Services
    from mcpgreen.features.tasks.running import RunningTask
    from mcpgreen.features.tools import ToolTerms

BEATS = 6  # in the time of a lease
GIVE_UP_PART = 0.7  # of a lease: then scripts are killed, so that they are gone when it is over
NEWS_SECS = 5.0  # for a look whether there is news
FOREIGN_SECS = 1.0  # between two looks at tasks of other servers
HOPELESS = 100  # tasks without a worker that are ended at a time
TELL_SECS = 2.0  # for events to be told before the end of their task
WORKER_META = "mcpgreen/worker"


class FleetTasks(Tasks):
    """`member` is what others may know of this process. A worker has labels in it; a server does not."""

    def __init__(self, services: Services, **member: Any) -> None:
        self.followed: dict[str, Follower] = {}
        self._messages = JoinableQueue(MAX_EVENTS)
        self._beat_now = Bell()
        self._strange: set[str] = set()  # tasks of which only this process or only the ledger knew at the last beat
        self._foreign_at = 0.0
        self.queues = [labels.ANY]
        self.is_draining = False
        self.on_drain: Callable[[], None] = lambda: None
        self.member, self.is_worker = member, "labels" in member
        super().__init__(services)
        project = services.project.server_name()
        self.ringer = Ringer(url_of(services.settings.fleet_url), project, services.runner)
        if not self.is_worker:
            self.ringer.start()  # now, so that no call has to wait for it
        self._greenlets = [gevent.spawn(each) for each in (self._keep_lease, self._listen, self._tell_messages)]

    def __len__(self) -> int:
        """Return how many tasks run here, or elsewhere for this server."""
        return len(self._running) + len(self.followed)

    def _open_store(self, **options: Any) -> TaskStore:
        settings, project = self._services.settings, self._services.project
        url, lease_secs = url_of(settings.fleet_url), settings.fleet_lease_secs
        self.ledger = RedisTaskStore(url, project.server_name(), lease_secs=lease_secs, **options)
        self.ledger.is_of_worker = self.is_worker
        return self.ledger

    # A server sends a call.

    def send(self, call: Call, terms: ToolTerms, *, may_begin: bool, is_begun: bool) -> Task:
        """Store a call for a worker. Raises InternalError."""
        call.wait_for_roots()
        record = self._new_record(call, terms, runner=life.NO_RUNNER, is_begun=is_begun)
        if record.sealed_params is None:
            raise InternalError("The arguments are too long to be sent to a worker.")
        fleet = {
            "queue": terms.queue,
            "home": self.ledger.home,
            "retries": terms.tool.description.retries,
            "digest": labels.digest_of(terms.tool.path, terms.entry_json),
            "may_begin": may_begin,
            "task_secs": terms.task_secs,
            "lengthens": "timeoutSecs" not in call.params,
        }
        record = record._replace(client={**record.client, "fleet": fleet}, status=Status.QUEUED)
        try:
            self.store.create(record)
        except gevent.GreenletExit:  # cancelled; the ledger may have it
            gevent.spawn(self.cancel, record.id)
            raise
        self.ringer.ring(terms.queue)
        return record

    def follow_sent(self, call: Call, terms: ToolTerms, task: Task) -> Json:
        """Return the result of a call that a worker runs, or the task that it becomes."""
        self._services.waiting.remove(call)
        follower = self.followed[task.id] = Follower(self, call, task)
        goes_on = False
        try:
            if not task.is_begun:
                secs = terms.task_after_secs if task.client["fleet"]["may_begin"] else None
                task = follower.wait(math.inf if secs is None else secs)
                if task.has_ended and not task.is_begun:
                    return self._result_of(call, task)
                self.attempt(self.store.begin, task.id)
            self.count_polls(call, -POLLS_OF_TASK)
            self.tell_of(call, task.id)
            self.watch(task.id, follower.hear)
            goes_on = True
            return wires.created(task._replace(is_begun=True), call.view)
        except gevent.GreenletExit:
            gevent.spawn(self.cancel, task.id)
            raise
        finally:
            if not goes_on:
                self.followed.pop(task.id, None)

    def _result_of(self, call: Call, task: Task) -> Json:
        """Return the result of a plain call, and forget the task."""
        try:
            result = wires.result_for(call, task)
        finally:
            gevent.spawn(self.attempt, self.ledger.forget, task.id)
        if wants_level(call.view, "debug"):
            result["_meta"] = {**result.get("_meta", {}), WORKER_META: self.attempt(self.ledger.name_of, task.runner)}
        return result

    def find(self, call: Call, task_id: str) -> Task:
        task = super().find(call, task_id)
        if task.status != Status.QUEUED or "fleet" not in task.client:
            return task
        queue, place = task.client["fleet"]["queue"], self.attempt(self.ledger.place_of, task)
        message = life.place_message(place) if place is not None else ""
        if place is not None and not self.ledger.has_worker_for(queue):
            message = f"no worker has the labels {queue}; {message}"
        return task._replace(status_message=message)

    def _end_hopeless(self) -> None:
        """End calls that have waited too long for a worker with their labels."""
        wait_secs = self._services.settings.fleet_wait_secs
        for queue, count in self.ledger.queues().items():
            if count and not self.ledger.has_worker_for(queue):
                text = f"No worker of the fleet has the labels {queue}; the call has waited for {wait_secs:g} s"
                for task in self.ledger.waiting(queue, HOPELESS):
                    if time.time() > task.updated_at + wait_secs:
                        self.store.finish(task.id, task.attempt, Status.FAILED, error=life.error_of(text))

    # A worker runs it.

    def find_queues(self) -> None:
        """Find out which queues there are that this worker may take from."""
        found = self.attempt(self.ledger.queues) or ()
        self.queues = [each for each in found if labels.fits(each, self.member["labels"])] or self.queues

    def claim(self) -> FleetTask | None:
        """Take a call that waits for a worker like this one, and begin to run it. Return None if there is none."""
        record: Task | None = None if self.is_draining else self.attempt(self.ledger.claim, self.queues)
        if record is None:
            return None
        self.run_record(record)
        running = self._running.get(record.id)
        return running if isinstance(running, FleetTask) else None

    def _run(self, call: Call, record: Task, line: bytes) -> None:
        if not self.is_worker:
            super()._run(call, record, line)
            return
        task = call.task = self._running[record.id] = FleetTask(self, call, record)
        self.watch(task.id, task.hear)
        call.stream, call.sink, call.token = task.stream, task.stream.sink, progress_token(call.params)

    def _stored_params(self, call: Call, params: Json) -> Json:
        """Return the params of a call, with all else that another machine has to know of it."""
        principal = call.principal
        who = principal and {"name": principal.name, "claims": dict(principal.claims), "shared": principal.is_shared}
        return {
            "params": params,
            "answers": call.interaction.answers,
            "own_state": call.interaction.own_state,
            "principal": who,
            "owner": None if call.stream.owner is None else jsontext.digest(str(call.stream.owner)),
            "transport": call.stream.transport,
        }

    def _call_of(self, record: Task, params: Json) -> Call:
        call = super()._call_of(record, params["params"])
        call.view.log_level = "debug"  # the server knows which level its client wants
        call.interaction.answers, call.interaction.own_state = params["answers"], params["own_state"]
        call.stream.transport, call.stream.owner = params["transport"], params["owner"]
        if who := params["principal"]:  # its scopes were checked by the server
            call.stream.principal = Principal(who["name"], claims=who["claims"], is_shared=who["shared"])
        return call

    def tell_later(self, home: str, message: bytes) -> None:
        """Send a server a message of its call. Never waits."""
        with suppress(Full):
            self._messages.put_nowait((home, message))

    def tell_now(self) -> None:
        """Wait until all is told."""
        self._messages.join(TELL_SECS)

    def _tell_messages(self) -> None:
        for home, message in self._messages:
            self.attempt(self.ledger.tell, home, m=message)
            self._messages.task_done()

    # What both do.

    def _hear_news(self) -> None:
        """Look at watched tasks of other servers; what happens to those of this one is news."""
        if time.monotonic() >= self._foreign_at:
            self._foreign_at = time.monotonic() + FOREIGN_SECS
            home = self.ledger.home
            tasks = self.attempt(self.ledger.get_all, [each for each in self._watches if each not in self.followed])
            self._tell(each for each in tasks or () if each.client.get("fleet", {}).get("home") != home)

    def _listen(self) -> None:
        while True:
            try:
                news = self.ledger.news(NEWS_SECS)
            except StoreUnusable as error:
                self.mention(error)
                gevent.sleep(FOREIGN_SECS)
                continue
            self._mentioned = ""
            changed = dict.fromkeys(fields[b"t"].decode("ascii") for fields in news if b"t" in fields)
            for fields in news:
                if b"m" in fields:
                    task_id, attempt, line = fields[b"m"].split(b" ", 2)
                    if follower := self.followed.get(task_id.decode("ascii")):
                        follower.hear_message(int(attempt), line)
                elif b"drain" in fields:
                    self.drain()
            self._tell(self.attempt(self.ledger.get_all, [each for each in changed if each in self._watches]) or ())

    def drain(self) -> None:
        """Finish what runs, and take nothing new."""
        self.is_draining = self.member["draining"] = True
        self._beat_now.set()
        self.on_drain()

    def _keep_lease(self) -> None:
        lease_secs = self.ledger.lease_secs
        while True:
            try:
                with gevent.Timeout(lease_secs / BEATS):
                    if self.ledger.beat(self.member):
                        self.recover_soon()
                    if self.is_worker:
                        self._compare()
                    else:
                        self._end_hopeless()
            except LookupError:
                self._abandon("the lease was over")
                continue
            except (StoreUnusable, gevent.Timeout) as error:
                journal.warning("the lease in the fleet could not be renewed: %s", error)
            if self.ledger.renewed_at and time.monotonic() > self.ledger.renewed_at + GIVE_UP_PART * lease_secs:
                self._abandon("the lease could not be renewed")
            self._beat_now.wait(min(lease_secs / BEATS, max(0.5, self._services.settings.fleet_wait_secs / 2)))
            self._beat_now.clear()

    def _compare(self) -> None:
        """Put back what was claimed by a call of the ledger whose answer was lost. Stop what the ledger knows nothing
        of: a Redis that was restarted has lost the claim, and another worker may begin."""
        theirs = set(self.ledger.running(self.ledger.runner))
        strange = theirs ^ self._running.keys()
        for task_id in strange & self._strange:
            if task_id in theirs:
                self.ledger.unclaim(task_id)
            elif task := self._running.get(task_id):
                self._give_up(task)
        self._strange = strange

    def _abandon(self, reason: str) -> None:
        """Kill what runs here: others may run it by now."""
        if self._running:
            journal.error("%s, so %d tools are stopped", reason, len(self._running))
        for task in list(self._running.values()):
            self._give_up(task)
        self.ledger.begin_anew()  # or what was stopped would look as if it had never begun

    def _give_up(self, task: RunningTask) -> None:
        task.call.cancel()
        if isinstance(task, FleetTask):
            task.freed.set()
        self.forget(task, None)

    def close(self, *, is_client_gone: bool) -> None:
        self.ringer.close()
        if is_client_gone:
            for task_id, follower in list(self.followed.items()):
                if not follower.latest.survives:
                    self.cancel(task_id)
        gevent.killall(self._greenlets, block=False)
        super().close(is_client_gone=is_client_gone)
