"""Who hears that something changed: handshake clients unasked, stateless clients through `subscriptions/listen`.

A listen is a request that stays open. It is acknowledged when what it watches has been looked at for the first time, so
that no change after the acknowledgement is lost. A look that takes long is not waited for, and told of when it is over.
Its result comes only when the server ends it. `resources/subscribe` is the older way to hear of one resource.

Rule: nothing of a listen is written before its acknowledgement.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import gevent

from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.features.call import Call
from mcpgreen.links.session import Session
from mcpgreen.links.stream import Request, Stream
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.admission import ClientView
from mcpgreen.running.turns import Turns
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import problem_with

if TYPE_CHECKING:
    from mcpgreen.features.watching.watches import Watch, Watcher
    from mcpgreen.providers.reading import Request as ReadRequest

# The members of a listen's filter that ask for list changes, by the kind of list.
FILTER_OF = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
UPDATED = "notifications/resources/updated"
FIRST_LOOK_SECS = 2.0  # how long an acknowledgement waits at most
MAX_URIS = 10_000  # of one listen, unless more may be watched
MAX_ID_CHARS = 1024
FEW = 50  # watches, which can be ended at once


class Listen:
    """One open `subscriptions/listen`. What is to be told before it is acknowledged is told right after."""

    __slots__ = ("_held", "call", "greenlet", "honoured", "is_acknowledged", "is_over", "kinds", "watches")

    def __init__(self, call: Call, honoured: Json) -> None:
        self.call = call
        self.honoured = honoured
        self.kinds = frozenset(kind for kind in FILTER_OF if FILTER_OF[kind] in honoured)
        self.watches: list[Watch] = []
        self.greenlet: Any = None  # until it is acknowledged
        self.is_acknowledged = False
        self.is_over = False
        self._held: dict[bytes, None] = {}

    def tell(self, method: str, params: Json) -> None:
        line = self._notice(method, params)
        if self.is_acknowledged:
            self.call.sink.notify(line, self.call)
        else:
            self._held[line] = None

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


class Subscriptions:
    """All who want to hear of changes on one server."""

    def __init__(self, watcher: Callable[[], Watcher], *, limit: int, max_listens: int) -> None:
        self._watcher = watcher  # made when somebody watches something
        self._limit = limit
        self._max_listens = max_listens
        self._listens: dict[Request, Listen] = {}
        # Each subscription twice, by its URI and by its id, which is no URI.
        self._sessions: dict[Session, dict[str, Subscription]] = {}
        self._watched = 0  # how many resources, for all together

    def __len__(self) -> int:
        """How many listens are open."""
        return len(self._listens)

    def has_subscribed(self, session: Session) -> bool:
        """Whether its client waits for news of a resource."""
        return bool(self._sessions.get(session))

    def add_session(self, session: Session) -> None:
        self._sessions[session] = {}

    def remove_session(self, session: Session) -> None:
        watches = [subscription.watch for subscription in set(self._sessions.pop(session).values())]
        self._watched -= len(watches)
        self._end_each(watches)

    def open(self, call: Call) -> None:
        """Keep a listen, and acknowledge it as soon as may be. Never waits. Raises InvalidParams for a filter that
        makes no sense, and for one listen too many."""
        if type(call.id) is str and len(call.id) > MAX_ID_CHARS:
            raise InvalidParams(f"The id of a listen, which is repeated often, may have {MAX_ID_CHARS} characters.")
        if len(self._listens) >= self._max_listens:
            raise InvalidParams(f"There are {self._max_listens} listens already; cancel some.")
        max_uris = max(MAX_URIS, self._limit)
        honoured, uris = _honoured(call.params.get("notifications"), call.services.offered, max_uris=max_uris)
        # It may be open for days, and a client may send much that nobody needs.
        call.params, call.view = {}, ClientView(call.view.revision, {}, call.view.log_level)
        call.stream.listens[call.id] = call
        listen = self._listens[call] = Listen(call, honoured)
        if "resourceSubscriptions" in honoured:
            listen.greenlet = gevent.spawn(self._begin, listen, uris)
        else:
            listen.acknowledge()

    def close(self, call: Request) -> None:
        """The client does not listen any more."""
        listen = self._listens.pop(call)
        self._stop(listen)
        call.cancel()

    def subscribe(self, call: Call) -> Json:
        """`resources/subscribe`. The same resource has the same id. The result may hold nothing but `_meta`."""
        assert call.session is not None  # only there is this method
        wishes, uri = self._sessions[call.session], call.target.request.uri
        if uri not in wishes:
            self._watch_for(call, call.session, wishes, uri)
        return {"_meta": {"subscriptionId": wishes[uri].id}}

    def _watch_for(self, call: Call, session: Session, wishes: dict[str, Subscription], uri: str) -> None:
        self._require_room()
        line = messages.notification(UPDATED, {"uri": uri})
        watch = self._watcher().new_watch(partial(_request_for, call, uri), partial(session.sink.notify, line))
        try:
            watch.look(call.target.request)
            if call.is_cancelled:
                raise InternalError("This request has been cancelled.")
            if uri not in wishes:
                self._require_room()  # others may have come while we looked
        except BaseException:
            self._watcher().end(watch)
            raise
        if uri in wishes:
            self._watcher().end(watch)  # another request for the same was quicker
        else:
            subscription = Subscription(f"sub-{os.urandom(16).hex()}", uri, watch)
            wishes[uri] = wishes[subscription.id] = subscription
            self._watched += 1
            watch.start()

    def unsubscribe(self, call: Call) -> Json:
        """`resources/unsubscribe`, by URI or by the id that subscribing gave. That there is no such subscription is no
        error."""
        named = [each for each in map(call.params.get, ("uri", "subscriptionId")) if isinstance(each, str)]
        if not named:
            raise InvalidParams("resources/unsubscribe needs uri or subscriptionId (a string).")
        assert call.session is not None
        wishes = self._sessions[call.session]
        for key in named:
            if subscription := wishes.get(key):
                del wishes[subscription.uri], wishes[subscription.id]
                self._watched -= 1
                self._watcher().end(subscription.watch)
        return {}

    def end_all(self, stream: Stream) -> None:
        """The orderly end from our side: each listen of this stream gets its result. In turns: there may be many."""
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
        """Tell everybody concerned, once each."""
        method = f"notifications/{kind}/list_changed"
        line = messages.notification(method)
        for session in list(self._sessions):
            if session.handshake.is_ready:
                session.sink.notify(line)
        for listen in list(self._listens.values()):
            if kind in listen.kinds:
                listen.tell(method, {})
        if kind == "resources" and self._watched:
            self._watcher().try_again()

    def _begin(self, listen: Listen, uris: Iterable[str]) -> None:
        """Look at what a listen watches, and acknowledge it."""
        give_up_at = time.monotonic() + FIRST_LOOK_SECS
        watcher, turns = self._watcher(), Turns()
        watched: list[str] = listen.honoured["resourceSubscriptions"]
        for uri in uris:
            if self._watched >= self._limit:
                break
            if not problem_with(uri):
                tell = partial(listen.tell, UPDATED, {"uri": uri})
                watch = watcher.new_watch(partial(_request_for, listen.call, uri), tell)
                listen.watches.append(watch)
                watched.append(uri)
                self._watched += 1
                watch.start()
            turns.pause()
            if listen.is_over:
                return  # it was ended while we paused, and this is what was about to run
        for watch in listen.watches:
            watch.wait_until_seen(give_up_at - time.monotonic())
        listen.greenlet = None
        if not listen.is_over:
            listen.acknowledge()

    def _stop(self, listen: Listen) -> None:
        listen.is_over = True
        listen.call.stream.listens.pop(listen.call.id, None)
        greenlet, listen.greenlet = listen.greenlet, None
        if greenlet is not None:
            greenlet.kill(block=False)
        watches, listen.watches = listen.watches, []  # they know each other, and would be garbage for the collector
        self._watched -= len(watches)
        if len(watches) <= FEW:
            self._end_each(watches)
        else:
            gevent.spawn(self._end_each, watches)

    def _end_each(self, watches: list[Watch]) -> None:
        turns, are_many = Turns(), len(watches) > FEW
        while watches:
            self._watcher().end(watches.pop())
            if are_many:
                turns.pause()

    def _require_room(self) -> None:
        if self._watched >= self._limit:
            raise InvalidParams(f"There are {self._limit} subscriptions already; unsubscribe from some.")


def _request_for(call: Call, uri: str, known: ReadRequest | None) -> ReadRequest:
    """How it is read now: as it was known, or found anew; in any case within the limits of this moment."""
    from mcpgreen.features import resources

    return resources.within_limits(call, known or resources.find(call, uri).request)


def _honoured(wanted: Any, offered: frozenset[str], *, max_uris: int) -> tuple[Json, Iterable[str]]:
    """The part of the filter that we can serve, and the URIs in it, each once, which have yet to be looked at."""
    if type(wanted) is not dict:
        raise InvalidParams("subscriptions/listen needs notifications (an object).")
    for name in FILTER_OF.values():
        if name in wanted and type(wanted[name]) is not bool:
            raise InvalidParams(f"notifications.{name} must be a boolean.")
    uris = wanted.get("resourceSubscriptions", [])
    if type(uris) is list and len(uris) > max_uris:
        raise InvalidParams(f"notifications.resourceSubscriptions has more than {max_uris} addresses.")
    if type(uris) is not list or not all(type(uri) is str for uri in uris):
        raise InvalidParams("notifications.resourceSubscriptions must be an array of strings.")
    honoured: Json = {name: True for kind, name in FILTER_OF.items() if kind in offered and wanted.get(name)}
    if uris and "resources" in offered:
        honoured["resourceSubscriptions"] = []
    return honoured, dict.fromkeys(uris)
