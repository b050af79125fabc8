"""Notify clients about changes to lists and subscribed resources.

Handshake clients hear of changed lists unasked, and subscribe to a resource by `resources/subscribe`. Stateless clients
use `subscriptions/listen`, a request that stays open until the server ends it. A listen is acknowledged after the first
look at each of its resources, so that no change after the acknowledgement is lost. If a look takes long, the
acknowledgement does not wait for it, and its outcome is sent as an update.

Rule: nothing of a listen is written before its acknowledgement.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import gevent

from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.links.session import Request, Session, Stream
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.admission import ClientView
from mcpgreen.running.shares import Shares, Turns
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import problem_with

if TYPE_CHECKING:
    from mcpgreen.features.call import Call
    from mcpgreen.features.watching.watches import Watch, Watcher
    from mcpgreen.providers.reading import Request as ReadRequest
    from mcpgreen.tasks.life import Task

# The members of a listen's filter that ask for list changes, by the kind of list.
FILTER_OF = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
UPDATED = "notifications/resources/updated"
FIRST_LOOK_SECS = 2.0  # an acknowledgement waits no longer
MAX_SUBSCRIPTIONS = 4096
MAX_LISTENS = 1024  # at the same time
MAX_URIS = 10_000  # of one listen, unless more may be watched
MAX_ID_CHARS = 1024


class Listen:
    """One open `subscriptions/listen`. It holds back notifications until it is acknowledged."""

    def __init__(self, call: Call, honoured: Json) -> None:
        self.call = call
        self.honoured = honoured
        self.watches: list[Watch] = []
        self.greenlet: gevent.Greenlet | None = None  # until it is acknowledged
        self.is_acknowledged = False
        self.is_over = False
        self._held: dict[bytes, None] = {}

    def notify(self, method: str, params: Json) -> None:
        self.send(self._notice(method, params))

    def send(self, line: bytes) -> None:
        if self.is_over:
            return  # its watches are ended in turns
        if self.is_acknowledged:
            self.call.sink.notify(line, self.call)
        else:
            self._held[line] = None

    def tell_task(self, task: Task) -> None:
        """Tell all about a task that has changed."""
        from mcpgreen.features.tasks import wires

        with suppress(InternalError):  # its result has expired
            self.send(wires.notice(self.call.services.tasks, task, {revision_fields.SUBSCRIPTION_ID: self.call.id}))

    def acknowledge(self) -> None:
        if self.is_acknowledged:
            return
        self.is_acknowledged = True
        line = self._notice("notifications/subscriptions/acknowledged", {"notifications": self.honoured})
        self.call.sink.notify(line, self.call, is_droppable=False)
        for held in self._held:
            self.call.sink.notify(held, self.call)
        self._held.clear()

    def _notice(self, method: str, params: Json) -> bytes:
        meta = {revision_fields.SUBSCRIPTION_ID: self.call.id}
        return messages.notification(method, {**params, "_meta": meta})


class Subscription(NamedTuple):
    """One `resources/subscribe` of a session."""

    id: str
    uri: str
    watch: Watch
    owner: Hashable


class Subscriptions:
    """The listens and subscriptions of one server."""

    def __init__(self, watcher: Callable[[], Watcher], *, limit: int, max_listens: int) -> None:
        self._watcher = watcher  # made when the first resource is watched
        self._limit = limit
        self._places = Shares(max_listens)
        self._listens: dict[Request, Listen] = {}
        # Each subscription is in here twice: by its URI, and by its id, which is not a URI.
        self._sessions: dict[Session, dict[str, Subscription]] = {}
        self._watched = Shares(limit)  # resources

    def __len__(self) -> int:
        """Return how many listens are open."""
        return len(self._listens)

    def has_subscribed(self, session: Session) -> bool:
        """Tell whether its client has subscribed to a resource."""
        return bool(self._sessions.get(session))

    def add_session(self, session: Session) -> None:
        self._sessions[session] = {}

    def remove_session(self, session: Session) -> None:
        subscriptions = set(self._sessions.pop(session).values())
        for each in subscriptions:
            self._watched.give_back(each.owner)
        gevent.spawn(self._end_in_turns, [each.watch for each in subscriptions])

    def open(self, call: Call) -> None:
        """Open a listen, to be acknowledged as soon as possible. Never waits. Raises InvalidParams for a filter that
        makes no sense, and for one listen too many."""
        if type(call.id) is str and len(call.id) > MAX_ID_CHARS:
            raise InvalidParams(f"The id of subscriptions/listen may have at most {MAX_ID_CHARS} characters.")
        if not self._places.has_room(call.stream.owner):
            held = _how_many(self._places, call.stream.owner)
            raise InvalidParams(f"{held} open subscriptions/listen streams already; cancel some.")
        max_uris = max(MAX_URIS, self._limit)
        honoured, uris, task_ids = _honoured(call.params.get("notifications"), call.services.offered, max_uris=max_uris)
        if task_ids:
            call.view.require_tasks()
        # A listen may be open for days, so it keeps no more of the request than it needs.
        call.params, call.view = {}, ClientView(call.view.revision, {}, call.view.log_level)
        call.stream.listens[call.id] = call
        self._places.take(call.stream.owner)
        listen = self._listens[call] = Listen(call, honoured)
        if "resourceSubscriptions" in honoured or task_ids:
            listen.greenlet = gevent.spawn(self._begin, listen, uris, task_ids)
        else:
            listen.acknowledge()

    def close(self, call: Request) -> None:
        """End a listen that the client has cancelled."""
        listen = self._listens.pop(call)
        self._stop(listen)
        call.cancel()

    def subscribe(self, call: Call, request: ReadRequest) -> Json:
        """Serve `resources/subscribe`. The same resource has the same id. The result may have no member but `_meta`."""
        assert call.session is not None  # the method exists only in sessions
        subscribed, uri = self._sessions[call.session], request.uri
        if uri not in subscribed:
            self._add_subscription(call, call.session, request)
        return {"_meta": {"subscriptionId": subscribed[uri].id}}

    def _add_subscription(self, call: Call, session: Session, request: ReadRequest) -> None:
        subscribed, uri = self._sessions[session], request.uri
        self._require_room(call.stream.owner)
        line = messages.notification(UPDATED, {"uri": uri})
        watch = self._watcher().new_watch(partial(_request_for, call, uri), partial(session.sink.notify, line))
        with ExitStack() as unless_it_is_used:
            unless_it_is_used.callback(self._watcher().end, watch)
            watch.look(request)
            if call.is_cancelled:
                raise InternalError("This request has been cancelled.")
            if uri in subscribed:
                return  # another request for the same resource was quicker
            self._require_room(call.stream.owner)  # other requests may have come during the look
            unless_it_is_used.pop_all()
        subscription = Subscription(f"sub-{os.urandom(16).hex()}", uri, watch, call.stream.owner)
        subscribed[uri] = subscribed[subscription.id] = subscription
        self._watched.take(subscription.owner)
        watch.start()

    def unsubscribe(self, call: Call) -> Json:
        """Serve `resources/unsubscribe`, by URI or by id. A subscription that does not exist is no error."""
        named = [each for each in map(call.params.get, ("uri", "subscriptionId")) if isinstance(each, str)]
        if not named:
            raise InvalidParams("resources/unsubscribe needs uri or subscriptionId (a string).")
        assert call.session is not None
        subscribed = self._sessions[call.session]
        for key in named:
            if subscription := subscribed.get(key):
                del subscribed[subscription.uri], subscribed[subscription.id]
                self._watched.give_back(subscription.owner)
                self._watcher().end(subscription.watch)
        return {}

    def end_all(self, stream: Stream) -> None:
        """End each listen of a stream with its result, in turns with other greenlets."""
        turns = Turns()
        while stream.listens:
            listen = self._listens.pop(next(iter(stream.listens.values())))
            call = listen.call
            listen.acknowledge()
            self._stop(listen)
            result = revision_fields.finish(
                {"_meta": {revision_fields.SUBSCRIPTION_ID: call.id}}, call.view.revision, call.services.identity.info
            )
            call.sink.respond(messages.response(call.id, jsontext.dumps(result)), call)
            turns.pause()

    def list_changed(self, kind: str) -> None:
        """Tell each client that a list has changed."""
        method = f"notifications/{kind}/list_changed"
        line = messages.notification(method)
        for session in list(self._sessions):
            if session.handshake.is_ready:
                session.sink.notify(line)
        for listen in list(self._listens.values()):
            if FILTER_OF[kind] in listen.honoured:
                listen.notify(method, {})
        if kind == "resources" and self._watched.held:
            self._watcher().try_again()

    def _begin(self, listen: Listen, uris: Iterable[str], task_ids: list[str]) -> None:
        """Begin to watch the resources and tasks of a listen, and acknowledge it."""
        give_up_at = time.monotonic() + FIRST_LOOK_SECS
        watcher, turns = self._watcher(), Turns()
        watched: list[str] = listen.honoured.get("resourceSubscriptions", [])
        owner = listen.call.stream.owner
        for uri in uris:
            if not self._watched.has_room(owner):
                break
            if not problem_with(uri):
                notify = partial(listen.notify, UPDATED, {"uri": uri})
                watch = watcher.new_watch(partial(_request_for, listen.call, uri), notify)
                listen.watches.append(watch)
                watched.append(uri)
                self._watched.take(owner)
                watch.start()
            turns.pause()
            if listen.is_over:
                return  # it was ended during the pause
        if task_ids:
            self._watch_tasks(listen, task_ids)
        for watch in listen.watches:
            watch.wait_until_seen(give_up_at - time.monotonic())
        listen.greenlet = None
        if not listen.is_over:
            listen.acknowledge()

    def _watch_tasks(self, listen: Listen, task_ids: list[str]) -> None:
        """Watch the tasks that the caller may see, and tell how they are now."""
        call, listen.honoured["taskIds"] = listen.call, []
        for task_id in task_ids:
            with suppress(InvalidParams):  # there is no such task
                if self._watched.has_room(call.stream.owner):
                    task = call.services.tasks.find(call, task_id)
                    call.services.tasks.watch(task_id, listen.tell_task)
                    listen.honoured["taskIds"].append(task_id)
                    self._watched.take(call.stream.owner)
                    listen.tell_task(task)

    def _stop(self, listen: Listen) -> None:
        owner = listen.call.stream.owner
        listen.is_over = True
        self._places.give_back(owner)
        listen.call.stream.listens.pop(listen.call.id, None)
        greenlet, listen.greenlet = listen.greenlet, None
        if greenlet is not None:
            greenlet.kill(block=False)
        watches, listen.watches = listen.watches, []  # breaks a reference cycle
        task_ids = listen.honoured.pop("taskIds", ())
        self._watched.give_back(owner, len(watches) + len(task_ids))
        for task_id in task_ids:
            listen.call.services.tasks.unwatch(task_id, listen.tell_task)
        gevent.spawn(self._end_in_turns, watches)

    def _end_in_turns(self, watches: list[Watch]) -> None:
        turns = Turns()
        while watches:
            self._watcher().end(watches.pop())
            turns.pause()

    def _require_room(self, owner: Hashable) -> None:
        if not self._watched.has_room(owner):
            raise InvalidParams(f"{_how_many(self._watched, owner)} subscriptions already; unsubscribe from some.")


def _how_many(shares: Shares, owner: Hashable) -> str:
    return f"There are {shares.held}" if not shares.has_room(None) else f"You have {shares.held_by(owner)}"


def _request_for(call: Call, uri: str, known: ReadRequest | None) -> ReadRequest:
    """Return how a resource is read now: as `known`, or else found again; within the limits that are in force now."""
    from mcpgreen.features import resources

    return resources.within_limits(call, known or resources.find(call, uri).request)


def _honoured(wanted: object, offered: frozenset[str], *, max_uris: int) -> tuple[Json, list[str], list[str]]:
    """Return the part of a filter that the server can serve, and its URIs and ids of tasks, which have yet to be
    checked."""
    if type(wanted) is not dict:
        raise InvalidParams("subscriptions/listen needs notifications (an object).")
    for name in FILTER_OF.values():
        if name in wanted and type(wanted[name]) is not bool:
            raise InvalidParams(f"notifications.{name} must be a boolean.")
    uris = _strings_in(wanted, "resourceSubscriptions", max_uris) if "resources" in offered else []
    task_ids = _strings_in(wanted, "taskIds", MAX_URIS) if "tasks" in offered else []
    honoured: Json = {name: True for kind, name in FILTER_OF.items() if kind in offered and wanted.get(name)}
    if uris:
        honoured["resourceSubscriptions"] = []
    return honoured, uris, task_ids


def _strings_in(wanted: Json, name: str, most: int) -> list[str]:
    """Return an array of a filter, each member once."""
    found = wanted.get(name, [])
    if type(found) is list and len(found) > most:
        raise InvalidParams(f"notifications.{name} has more than {most} members.")
    if type(found) is not list or not all(type(each) is str for each in found):
        raise InvalidParams(f"notifications.{name} must be an array of strings.")
    return list(dict.fromkeys(found))
