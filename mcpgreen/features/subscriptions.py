"""Who hears that something changed: handshake clients unasked, stateless clients through `subscriptions/listen`.

A listen is a request that stays open. Its acknowledgement is written before anything else of it; its result only when
the server ends it. It takes no script slot and no greenlet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mcpgreen import jsontext
from mcpgreen.errors import InvalidParams
from mcpgreen.features.call import Call
from mcpgreen.protocol import messages, shapes

Json = dict[str, Any]

# The members of a listen's filter that ask for list changes, by the kind of list.
FILTER_OF = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}


class Listen(NamedTuple):
    """One open `subscriptions/listen`."""

    call: Call
    kinds: frozenset[str]

    def notice(self, method: str, params: Json) -> bytes:
        meta = {shapes.SUBSCRIPTION_ID: self.call.id}
        return messages.notification(method, {**params, "_meta": meta})


class Subscriptions:
    """All who want to hear of changes on one server."""

    def __init__(self) -> None:
        self._listens: list[Listen] = []
        self._links: list[Any] = []

    def add_link(self, link: Any) -> None:
        self._links.append(link)

    def remove_link(self, link: Any) -> None:
        self._links.remove(link)
        self._listens = [listen for listen in self._listens if listen.call.link is not link]

    def open(self, call: Call) -> None:
        """Acknowledge a listen and keep it. Raises InvalidParams for a filter that makes no sense."""
        honoured = _honoured(call.params.get("notifications"), call.services.offered)
        listen = Listen(call, frozenset(kind for kind in FILTER_OF if FILTER_OF[kind] in honoured))
        acknowledged = listen.notice("notifications/subscriptions/acknowledged", {"notifications": honoured})
        call.sink.put(acknowledged, call)
        self._listens.append(listen)

    def close(self, call: Call) -> None:
        self._listens = [listen for listen in self._listens if listen.call is not call]

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


def _honoured(wanted: Any, offered: frozenset[str]) -> Json:
    """The part of the filter that we can serve."""
    if type(wanted) is not dict:
        raise InvalidParams("subscriptions/listen needs notifications (an object).")
    for name in FILTER_OF.values():
        if name in wanted and type(wanted[name]) is not bool:
            raise InvalidParams(f"notifications.{name} must be a boolean.")
    uris = wanted.get("resourceSubscriptions", [])
    if type(uris) is not list or not all(type(uri) is str for uri in uris):
        raise InvalidParams("notifications.resourceSubscriptions must be an array of strings.")
    return {name: True for kind, name in FILTER_OF.items() if kind in offered and wanted.get(name)}
