"""`mcpgreen replay --serve`: answer a client as the server of a recording did, over stdin and stdout.

A request gets the answer to a recorded request with the same method and params, wherever that is in the recording. If
there are several, each is used once, in their order, and the last one again and again.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from mcpgreen import journal
from mcpgreen.cli.output import print_json
from mcpgreen.cli.recording.files import Recording, fitted, is_request
from mcpgreen.engine.recorder import is_message
from mcpgreen.errors import InvalidParams
from mcpgreen.protocol.admission import PROTOCOL_VERSION
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_LINE_BYTES = 64 << 20
ABOUT_THE_CLIENT = ("initialize", "server/discover")  # their params may be those of another client
TOKEN = "progressToken"


class Exchange(NamedTuple):
    about: list[Any]  # what the request is known by
    token: Any  # for progress
    replies: list[Json]  # notifications, questions, the answer


def play(recording: Recording) -> int:
    exchanges = _exchanges_in(recording)
    waiting: dict[object, list[Json]] = {}  # by the id of a question: what follows its answer
    while line := sys.stdin.buffer.readline(MAX_LINE_BYTES):
        try:
            message = jsontext.loads(line)
        except ValueError:
            message = None
        replies: list[Json] = []
        if not is_message(message):
            journal.warning("ignored a line that is no message of JSON-RPC")
        elif "method" not in message:
            replies = waiting.pop(message.get("id"), [])
        elif "id" in message:
            replies = _replies_to(message, exchanges)
        for number, reply in enumerate(replies, 1):
            print_json(reply)
            if is_request(reply):
                waiting[reply["id"]] = replies[number:]
                break
    return 0


def _replies_to(request: Json, exchanges: list[Exchange]) -> list[Json]:
    """Return what was sent for such a request, with the id and the progress token of this one."""
    about, own_token = _about(request)
    fitting = [each for each in exchanges if each.about == fitted(each.about, about)]
    if not fitting:
        text = f"The recording has no answer to {request['method']} with these params."
        return [{"jsonrpc": "2.0", "id": request["id"], "error": {"code": InvalidParams.code, "message": text}}]
    _, token, replies = fitting[0]
    if len(fitting) > 1:
        exchanges.remove(fitting[0])

    def own(_: Json, name: str, value: Any) -> Any:
        return own_token if name == TOKEN and value == token else value

    *before, answer = [jsontext.rewritten(each, own) for each in replies]
    return [*before, {**answer, "id": request["id"]}]


def _about(request: Json) -> tuple[list[Any], Any]:
    """Return what a request is known by (its method, its params, its revision), and its progress token."""
    params = dict(request.get("params", {}))
    meta = params.pop("_meta", {})
    known = [] if request["method"] in ABOUT_THE_CLIENT else [params, meta.get(PROTOCOL_VERSION)]
    return [request["method"], *known], meta.get(TOKEN)


def _exchanges_in(recording: Recording) -> list[Exchange]:
    """Return the requests that were answered. What belongs to none of them by its id or token belongs to the latest."""
    exchanges: list[Exchange] = []
    pending: dict[object, Exchange] = {}
    for _, sender, message in recording.messages:
        if sender == "client" and is_request(message):
            pending[message["id"]] = Exchange(*_about(message), [])
        elif sender == "server" and "method" in message and pending:
            token = message.get("params", {}).get(TOKEN)
            owners = [each for each in pending.values() if token is not None and each.token == token]
            [*pending.values(), *owners][-1].replies.append(message)
        elif sender == "server" and message.get("id") in pending:
            exchanges.append(pending.pop(message["id"]))
            exchanges[-1].replies.append(message)
    return exchanges
