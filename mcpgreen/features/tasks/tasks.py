"""The tasks of a server: a call becomes one, is taken over from a process that died, is watched, cancelled and ended.

The store is where processes meet. One greenlet looks there for what others have done to the tasks that run here, tells
watchers about changes, and removes what has expired.

Rules: a handle is sent when the task is stored, not before. If the store cannot be used, calls run without tasks.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import gevent
from gevent.event import Event as Bell

from mcpgreen import journal
from mcpgreen.errors import InvalidParams, TooManyPolls
from mcpgreen.features.call import Call, State
from mcpgreen.features.tasks import wires
from mcpgreen.features.tasks.keeper import Keeper
from mcpgreen.features.tasks.running import RunningTask
from mcpgreen.links.session import Session, Stream
from mcpgreen.links.sink import MemorySink
from mcpgreen.project import task_place
from mcpgreen.project.roots import Root, Roots
from mcpgreen.protocol import messages, revision_fields, revisions
from mcpgreen.protocol.admission import ClientView
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Status, Task
from mcpgreen.tasks.sqlite_store import SqliteTaskStore
from mcpgreen.tasks.store import StoreUnusable, TaskStore
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.services import Services
    from mcpgreen.features.tools import ToolTerms

LOOK_SECS = 0.25  # between two looks at the store while tasks run or are watched
REST_SECS = 60.0
WAIT_SECS = 2.0  # between two looks at a task that may be removed meanwhile
FREE_POLLS_A_SEC = 50  # of one caller
POLLS_OF_TASK = 4  # more for each task that runs here, and for a new one: it may be asked for twice a second

Watch = Callable[[Task], None]


class Tasks:
    """`asked` are the questions that clients of the handshake era are being asked. Making one never waits."""

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self._services = services
        self.store = self._open_store(
            state_key=settings.state_key,
            max_per_owner=settings.max_tasks_per_principal,
            max_tasks=settings.max_tasks,
        )
        environ = services.keeper_environ
        self.keeper = None if environ is None else Keeper(services, environ)
        self.asked: set[tuple[str, str]] = set()
        self.streams: WeakValueDictionary[Any, Stream] = WeakValueDictionary()  # one for tasks of the same caller
        self._running: dict[str, RunningTask] = {}
        self._watches: dict[str, set[Watch]] = {}
        self._polls: tuple[int, Counter[object]] = 0, Counter()  # in this second, by caller
        self._mark = -1
        self._mentioned = ""
        self._bell = Bell()
        self._recover_at = 0.0
        self._greenlet = gevent.spawn(self._look)

    def _open_store(self, **options: Any) -> TaskStore:
        services = self._services
        return SqliteTaskStore(task_place.directory_of(services.project.root, services.environ), **options)

    def __len__(self) -> int:
        """Return how many tasks run here."""
        return len(self._running)

    def mention(self, error: StoreUnusable) -> None:
        if str(error) != self._mentioned:
            self._mentioned = str(error)
            journal.error("tasks cannot be stored: %s", error)

    def attempt(self, function: Callable[..., Any], *values: object, **named: object) -> Any:
        """Call a method of the store. Return None if the store cannot be used."""
        try:
            return function(*values, **named)
        except StoreUnusable as error:
            self.mention(error)
            return None

    def ring(self) -> None:
        """Look at the store now: something has changed."""
        self._bell.set()

    # How a task begins.

    def begin(self, call: Call, terms: ToolTerms) -> None:
        """Make the call a task; leave it as it is if the store cannot be used. Raises InternalError if there are too
        many tasks, or if the tool needs one."""
        record = self._create(call, terms)
        if record is None:
            return
        if call.interaction.state not in (State.RUNNING, State.ADOPTED):  # it has been cancelled meanwhile
            self.attempt(self.store.finish, record.id, record.attempt, Status.CANCELLED)
        else:
            handle = wires.created(record, call.view)
            finished = revision_fields.finish(handle, call.view.revision, self._services.identity.info)
            self._run(call, record, messages.response(call.id, jsontext.dumps(finished)))
            if call.run is not None and call.run.deadline is not None and "timeoutSecs" not in call.params:
                call.run.deadline.lengthen(terms.task_secs)

    def _run(self, call: Call, record: Task, line: bytes) -> None:
        task = self._running[record.id] = RunningTask(self, call, record)
        self.count_polls(call, -POLLS_OF_TASK)
        self.watch(task.id, task.hear)
        call.detach(task, line)
        self.tell_of(call, task.id)

    def tell_of(self, call: Call, task_id: str) -> None:
        """Tell the session of the call, if it has one, how its task changes."""
        if call.session is not None:
            self.watch(task_id, wires.SessionWatch(call, call.session).tell)

    def hand_over(self, call: Call, terms: ToolTerms, *, is_begun: bool) -> Task | None:
        """Store the call as a task for the keeper. Return None if the store cannot be used."""
        call.wait_for_roots()
        record = self._create(call, terms, runner=life.NO_RUNNER, is_begun=is_begun)
        if record is not None and self.keeper is not None and not self.keeper.wake():
            self.keeper = None
            self.recover()
        return record

    def follow(self, call: Call, terms: ToolTerms, task: Task) -> Json:
        """Return the result of a call that was handed over, if it is plain, or the task."""
        self._services.waiting.remove(call)
        if not task.is_begun:
            secs = math.inf if terms.task_after_secs is None else terms.task_after_secs
            try:
                task = wires.wait(call, task.id, time.monotonic() + secs, since=task)
            except gevent.GreenletExit:
                self.cancel(task.id)
                raise
            if task.has_ended and not task.is_begun:
                return wires.result_for(call, task)
            self.attempt(self.store.begin, task.id)
        self.tell_of(call, task.id)
        return wires.created(task, call.view)

    def _create(self, call: Call, terms: ToolTerms, **fields: Any) -> Task | None:
        """Store a new task. Return None if that is not possible. Raises InternalError if there are too many, or if the
        tool needs one."""
        try:
            record = self._new_record(call, terms, **fields)
            try:
                return self.store.create(record)
            except gevent.GreenletExit:  # cancelled, but the store goes on
                gevent.spawn(self.attempt, self.store.finish, record.id, record.attempt, Status.CANCELLED)
                raise
        except StoreUnusable as error:
            self.mention(error)
            if terms.task == "required":
                raise
            return None

    def _new_record(self, call: Call, terms: ToolTerms, **fields: Any) -> Task:
        described, settings, arguments = terms.tool.description, self._services.settings, call.arguments or {}
        params, view, roots = {**call.params, "arguments": arguments}, call.view, call.roots.variables["MCP_ROOTS_JSON"]
        is_stored = described.idempotent or "runner" in fields
        return Task(
            id=life.new_id(),
            owner=self.owner_of(call),
            tool=terms.tool.name,
            status=Status.QUEUED if call in self._services.waiting else Status.WORKING,
            status_message=life.message_of(call.reported),
            keep_secs=settings.task_keep_secs if described.task_keep_secs is None else described.task_keep_secs,
            idempotent=described.idempotent,
            survives=terms.survives,
            shown_arguments=self._services.confidential.of(call.method, params).shown({"arguments": arguments}),
            client={"revision": view.revision.name, "capabilities": view.capabilities, "roots": roots},
            sealed_params=self.store.seal(self._stored_params(call, params)) if is_stored else None,
            **fields,
        )

    def _stored_params(self, call: Call, params: Json) -> Json:
        return params

    def recover_soon(self) -> None:
        """Recover in the greenlet that looks at the store: it ends before the server stops scripts."""
        self._recover_at = 0.0
        self.ring()

    def recover(self) -> None:
        """Recover the tasks of processes that have died, and remove expired tasks."""
        self.attempt(self.store.remove, time.time())
        is_keeper, has_keeper = self._services.is_keeper, self.keeper is not None

        def may_rerun(task: Task) -> bool:  # what survives a client is for the keeper, if there is one
            return task.survives == is_keeper or not (is_keeper or has_keeper)

        for record in self.attempt(self.store.recover, may_rerun) or ():
            if record.runner == self.store.runner:
                self.run_record(record)
            elif self.keeper is not None:
                self.keeper.wake()  # and it recovers the task

    def run_record(self, record: Task) -> None:
        """Run a task that is stored with all its params, and belongs to this process. Does not wait for its end."""
        params = self.attempt(self.store.unseal, record.sealed_params) if record.sealed_params else None
        if params is None:
            error = life.error_of(life.NOT_RESTORED)
            self.attempt(self.store.finish, record.id, record.attempt, Status.FAILED, error=error)
            return
        call = self._call_of(record, params)
        self._run(call, record, b"{}")
        self._services.serve_call(call)

    def _call_of(self, record: Task, params: Json) -> Call:
        revision = revisions.BY_NAME.get(str(record.client.get("revision")), revisions.NEWEST)
        view = ClientView(revision, record.client.get("capabilities") or {}, None)
        stream = Stream(MemorySink(), transport="task")
        call = Call(record.id, "tools/call", params, view, None, stream, stream.sink, self._services)
        call.own_roots = Roots(Root(each["path"], each["name"]) for each in jsontext.loads(record.client["roots"]))
        return call

    # What clients do with tasks.

    def owner_of(self, call: Call) -> str:
        """Return to whom a task of this call belongs: to a name, or to the session, or to all who know its id."""
        if call.principal is not None and not call.principal.is_shared:
            return "sub:" + jsontext.digest(call.principal.name)
        return call.session.task_owner if call.session is not None else ""

    def find(self, call: Call, task_id: str) -> Task:
        """Raises InvalidParams if there is no such task, or if it belongs to another caller."""
        task: Task | None = self.attempt(self.store.get, task_id)
        if task is not None and self.store.is_orphan(task):
            self.recover()
            task = self.store.get(task_id)
        if task is None or task.owner != self.owner_of(call):
            raise InvalidParams("There is no such task; it may have expired.")
        return task

    def count_polls(self, call: Call, polls: int = 1) -> None:
        """Raises TooManyPolls if the caller has asked too often in this second."""
        second, caller = int(time.monotonic()), call.stream.owner
        if second != self._polls[0]:
            self._polls = second, Counter()
        self._polls[1][caller] += polls
        if polls > 0 and self._polls[1][caller] > FREE_POLLS_A_SEC + POLLS_OF_TASK * len(self):
            raise TooManyPolls()

    def cancel(self, task_id: str) -> None:
        """Ask the process that runs a task to cancel it. That may be this one."""
        self.attempt(self.store.want_cancel, task_id)
        self.ring()

    def watch(self, task_id: str, watch: Watch) -> None:
        """Call this with each change of the task, up to its end."""
        if not self._watches:
            self.ring()
        self._watches.setdefault(task_id, set()).add(watch)

    def unwatch(self, task_id: str, watch: Watch) -> None:
        self._watches.get(task_id, set()).discard(watch)
        if not self._watches.get(task_id):
            self._watches.pop(task_id, None)

    def changes(self, task_id: str, until: float) -> Iterator[None]:
        """Go on now, at each change of the task, and for the last time when the time is up."""
        bell = Bell()

        def ring(task: Task) -> None:
            bell.set()

        self.watch(task_id, ring)
        try:
            yield
            while (left_secs := until - time.monotonic()) > 0:
                bell.wait(min(left_secs, WAIT_SECS))
                bell.clear()
                yield
        finally:
            self.unwatch(task_id, ring)

    # How tasks end.

    def forget(self, task: RunningTask, ended: Task | None) -> None:
        """It does not run here any more: it has `ended`, unless another process has ended it."""
        self._running.pop(task.id, None)
        self.unwatch(task.id, task.hear)
        if ended is None:
            self.ring()
        else:
            self._tell([ended])

    def end_session(self, session: Session) -> None:
        """End the tasks of an HTTP session that is over."""
        if session.task_owner:
            self.attempt(self.store.end_tasks_of, session.task_owner)
            self.ring()

    def close(self, *, is_client_gone: bool) -> None:
        """The server stops. Tasks that can go on are left to the next process that recovers them."""
        self._greenlet.kill()  # from now on, no task is taken over
        for task in list(self._running.values()):
            is_of_client = is_client_gone and task.attempt == 1  # others were taken over
            if task.survives if is_of_client else task.idempotent:
                task.call.cancel()
            elif is_client_gone:
                task.stop(Status.CANCELLED)
            else:
                task.stop(Status.FAILED, life.error_of(life.RESTARTED))
        self.attempt(self.store.close)
        if self.keeper is not None:
            self.keeper.close()

    # The greenlet.

    def _look(self) -> None:
        rest_secs = min(REST_SECS, max(1.0, self._services.settings.task_keep_secs))
        while True:
            self.attempt(self._hear_news)
            if time.monotonic() >= self._recover_at:
                self._recover_at = time.monotonic() + rest_secs
                self.recover()
            waiting = [each for each in self._services.waiting if not each.method.startswith("tasks/")]
            before = {each: number for number, each in enumerate(waiting)}
            for task in list(self._running.values()):
                task.store_message(before.get(task.call))
            self._bell.wait(LOOK_SECS if self._watches else rest_secs)
            self._bell.clear()

    def _hear_news(self) -> None:
        if self._mark < 0:  # tasks may have begun, and others may have changed them
            self._mark = self.store.changed_since(-1)[0]
            self._tell(filter(None, map(self.store.get, list(self._watches))))
        self._mark, changed = self.store.changed_since(self._mark)
        self._tell(changed)

    def _tell(self, changed: Iterable[Task]) -> None:
        for task in changed:
            watches = self._watches.pop(task.id, ()) if task.has_ended else self._watches.get(task.id, ())
            for watch in list(watches):
                watch(task)
