"""Who hears that something changed: handshake clients unasked, stateless clients through `subscriptions/listen`.

A listen is a request that stays open. Its acknowledgement is written before anything else of it and waits for nobody;
its result comes only when the server ends it. `resources/subscribe` is the older way to hear of one resource.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen import jsontext
from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.features.call import Call
from mcpgreen.protocol import messages, shapes
from mcpgreen.uris import problem_with

if TYPE_CHECKING:
    from mcpgreen.features.watching import Watch, Watcher
    from mcpgreen.providers.reading import Request

Json = dict[str, Any]

# The members of a listen's filter that ask for list changes, by the kind of list.
FILTER_OF = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}


class Listen(NamedTuple):
    """One open `subscriptions/listen`."""

    call: Call
    kinds: frozenset[str]
    watches: list[Watch]

    def notice(self, method: str, params: Json) -> bytes:
        meta = {shapes.SUBSCRIPTION_ID: self.call.id}
        return messages.notification(method, {**params, "_meta": meta})


class Subscription(NamedTuple):
    """One `resources/subscribe` of a link."""

    id: str
    link: Any
    uri: str
    watch: Watch


class Subscriptions:
    """All who want to hear of changes on one server."""

    def __init__(self, watcher: Callable[[], Watcher], *, limit: int) -> None:
        self._watcher = watcher  # made when somebody watches something
        self._limit = limit
        self._listens: list[Listen] = []
        self._links: list[Any] = []
        self._subscriptions: dict[tuple[int, str], Subscription] = {}

    def has_subscribed(self, link: Any) -> bool:
        """Whether a client waits for news of a resource."""
        return any(subscription.link is link for subscription in self._subscriptions.values())

    def add_link(self, link: Any) -> None:
        self._links.append(link)

    def remove_link(self, link: Any) -> None:
        self._links.remove(link)
        for listen in [listen for listen in self._listens if listen.call.link is link]:
            self.close(listen.call)
        for subscription in [each for each in self._subscriptions.values() if each.link is link]:
            self._drop(subscription)

    def open(self, call: Call) -> None:
        """Acknowledge a listen and keep it. Raises InvalidParams for a filter that makes no sense."""
        honoured = _honoured(call.params.get("notifications"), call.services.offered, limit=self._room())
        listen = Listen(call, frozenset(kind for kind in FILTER_OF if FILTER_OF[kind] in honoured), [])
        acknowledged = listen.notice("notifications/subscriptions/acknowledged", {"notifications": honoured})
        call.sink.put(acknowledged, call)
        self._listens.append(listen)
        for uri in honoured.get("resourceSubscriptions", ()):
            watch = self._watcher().new_watch(partial(_request_for, call, uri), partial(_tell_listen, listen, uri))
            listen.watches.append(watch)
            watch.start(can_find=call.services.is_registered())  # this is the reader, which must not wait for a hook

    def close(self, call: Call) -> None:
        for listen in [listen for listen in self._listens if listen.call is call]:
            self._listens.remove(listen)
            for watch in listen.watches:
                self._watcher().end(watch)

    def subscribe(self, call: Call, uri: str) -> str:
        """Watch for a handshake client. The id of the subscription; the same one for the same resource."""
        link, key = call.link, (id(call.link), uri)
        if key in self._subscriptions:
            return self._subscriptions[key].id
        self._require_room()
        watch = self._watcher().new_watch(partial(_request_for, call, uri), partial(_tell_link, link, uri))
        try:
            watch.look()
            if call.is_cancelled:
                raise InternalError("This request has been cancelled.")
            if key not in self._subscriptions:
                self._require_room()  # others may have come while we looked
        except BaseException:
            self._watcher().end(watch)
            raise
        if key in self._subscriptions:
            self._watcher().end(watch)  # another request for the same was quicker
        else:
            self._subscriptions[key] = Subscription(f"sub-{os.urandom(16).hex()}", link, uri, watch)
            watch.start()
        return self._subscriptions[key].id

    def unsubscribe(self, link: Any, *, uri: str | None, subscription_id: str | None) -> None:
        """By either. That there is no such subscription is no error."""
        for subscription in [each for each in self._subscriptions.values() if each.link is link]:
            if subscription.uri == uri or subscription.id == subscription_id:
                self._drop(subscription)

    def _drop(self, subscription: Subscription) -> None:
        del self._subscriptions[id(subscription.link), subscription.uri]
        self._watcher().end(subscription.watch)

    def _room(self) -> int:
        return self._limit - len(self._subscriptions) - sum(len(listen.watches) for listen in self._listens)

    def _require_room(self) -> None:
        if not self._room():
            raise InvalidParams(f"There are {self._limit} subscriptions already; unsubscribe from some.")

    def end_all(self, link: Any) -> None:
        """The orderly end from our side: each listen of this link gets its result."""
        for listen in [listen for listen in self._listens if listen.call.link is link]:
            call = listen.call
            self.close(call)
            result = shapes.finish(
                {"_meta": {shapes.SUBSCRIPTION_ID: call.id}}, call.view.revision, call.services.identity.info
            )
            call.sink.put(messages.response(call.id, jsontext.dumps(result)), call)

    def list_changed(self, kind: str) -> None:
        """Tell everybody concerned, once each."""
        method = f"notifications/{kind}/list_changed"
        for sink, line, call in self._due(kind, method):
            sink.put(line, call, is_droppable=True)
        if kind == "resources" and (self._subscriptions or self._listens):
            self._watcher().try_again()

    def _due(self, kind: str, method: str) -> list[tuple[Any, bytes, Call | None]]:
        plain = messages.notification(method)
        due: list[tuple[Any, bytes, Call | None]] = [
            (link.sink, plain, None) for link in self._links if link.handshake.is_ready
        ]
        due.extend(
            (listen.call.sink, listen.notice(method, {}), listen.call)
            for listen in self._listens
            if kind in listen.kinds
        )
        return due


def subscribe(call: Call) -> Json:
    """`resources/subscribe`. The result may hold nothing but `_meta`."""
    return {"_meta": {"subscriptionId": call.services.subscriptions.subscribe(call, call.target.request.uri)}}


def unsubscribe(call: Call) -> Json:
    """`resources/unsubscribe`, by address or by the id that subscribing gave."""
    uri, subscription_id = call.params.get("uri"), call.params.get("subscriptionId")
    if not isinstance(uri, str) and not isinstance(subscription_id, str):
        raise InvalidParams("resources/unsubscribe needs uri or subscriptionId (a string).")
    call.services.subscriptions.unsubscribe(call.link, uri=uri, subscription_id=subscription_id)
    return {}


def _request_for(call: Call, uri: str, known: Request | None) -> Request:
    """How it is read now: as it was known, or found anew; in any case within the limits of this moment."""
    from mcpgreen.features import resources

    return resources.within_limits(call, known or resources.find(call, uri).request)


def _tell_listen(listen: Listen, uri: str) -> None:
    line = listen.notice("notifications/resources/updated", {"uri": uri})
    listen.call.sink.put(line, listen.call, is_droppable=True)


def _tell_link(link: Any, uri: str) -> None:
    link.sink.put(messages.notification("notifications/resources/updated", {"uri": uri}), is_droppable=True)


def _honoured(wanted: Any, offered: frozenset[str], *, limit: int) -> Json:
    """The part of the filter that we can serve."""
    if type(wanted) is not dict:
        raise InvalidParams("subscriptions/listen needs notifications (an object).")
    for name in FILTER_OF.values():
        if name in wanted and type(wanted[name]) is not bool:
            raise InvalidParams(f"notifications.{name} must be a boolean.")
    uris = wanted.get("resourceSubscriptions", [])
    if type(uris) is not list or not all(type(uri) is str for uri in uris):
        raise InvalidParams("notifications.resourceSubscriptions must be an array of strings.")
    honoured: Json = {name: True for kind, name in FILTER_OF.items() if kind in offered and wanted.get(name)}
    if uris and "resources" in offered:
        honoured["resourceSubscriptions"] = [uri for uri in dict.fromkeys(uris) if not problem_with(uri)][:limit]
    return honoured
