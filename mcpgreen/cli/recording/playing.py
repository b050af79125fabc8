"""`mcpgreen replay --serve`: answer a client as the server of a recording did, over stdin and stdout.

A request gets the answer to the recorded request with the same method and params, wherever that is in the recording.
If there are several, each is used once, in their order, and then the last one again.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, NamedTuple

from mcpgreen import journal
from mcpgreen.cli.output import print_json
from mcpgreen.cli.recording.files import Recording, is_usual, with_hidden
from mcpgreen.cli.testing.expecting import is_same
from mcpgreen.errors import InvalidParams
from mcpgreen.protocol.admission import PROTOCOL_VERSION
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_LINE_BYTES = 64 << 20
BY_METHOD = ("initialize", "server/discover", "ping")  # their params describe the client
VOLATILE = ("_meta", "requestState")
RELATED = "progressToken"


class Exchange(NamedTuple):
    """What the server sent from a request to its answer: notifications, questions, the answer."""

    token: Any  # for progress
    frames: list[Json]


class Player:
    def __init__(self, recording: Recording) -> None:
        self._exchanges = _exchanges_in(recording)
        self._open: dict[object, deque[Json]] = {}  # by the id of our question: what comes after it

    def receive(self, message: Any) -> None:
        if not is_usual(message):
            journal.warning("ignored what is not a message of JSON-RPC")
        elif "method" not in message:
            if (rest := self._open.pop(message.get("id"), None)) is not None:
                self._play(rest)
        elif "id" in message:
            self._answer(message)

    def _answer(self, request: Json) -> None:
        exchanges = self._exchanges_for(_about(request))
        if not exchanges:
            text = f"The recording has no answer to {request['method']} with these params."
            print_json({"jsonrpc": "2.0", "id": request["id"], "error": {"code": InvalidParams.code, "message": text}})
            return
        exchange = exchanges.popleft() if len(exchanges) > 1 else exchanges[0]
        self._play(deque(_adapted(frame, request, exchange) for frame in exchange.frames))

    def _exchanges_for(self, about: list[Any]) -> deque[Exchange] | None:
        """Return the exchanges for a request. Where the recording hides a secret, any value fits."""
        same = self._exchanges.get(jsontext.digest(about))
        if same is not None:
            return same[1]
        fitting = (found for wanted, found in self._exchanges.values() if is_same(wanted, with_hidden(wanted, about)))
        return next(fitting, None)

    def _play(self, frames: deque[Json]) -> None:
        """Send frames up to the next question, which the client has to answer first."""
        while frames:
            frame = frames.popleft()
            print_json(frame)
            if "method" in frame and "id" in frame:
                self._open[frame["id"]] = frames
                return


def _adapted(frame: Json, request: Json, exchange: Exchange) -> Json:
    """Return a frame with the id and the progress token of this client."""
    if "method" not in frame:
        return {**frame, "id": request["id"]}
    token = request.get("params", {}).get("_meta", {}).get(RELATED)
    if token is not None and frame.get("params", {}).get(RELATED) == exchange.token:
        return {**frame, "params": {**frame["params"], RELATED: token}}
    return frame


def play(recording: Recording) -> int:
    player = Player(recording)
    while line := sys.stdin.buffer.readline(MAX_LINE_BYTES):
        try:
            message = jsontext.loads(line) if line.strip() else []
        except ValueError as error:
            journal.warning("cannot read a line from the client: %s", error)
            continue
        for each in message if isinstance(message, list) else [message]:
            player.receive(each)
    return 0


def _about(request: Json) -> list[Any]:
    """Return what a request is known by: its method, its params, and the revision if it names one."""
    if request["method"] in BY_METHOD:
        return [request["method"]]
    params = request.get("params", {})
    revision = params.get("_meta", {}).get(PROTOCOL_VERSION)
    kept = {name: value for name, value in params.items() if name not in VOLATILE}
    return [request["method"], kept, revision]


def _exchanges_in(recording: Recording) -> dict[str, tuple[list[Any], deque[Exchange]]]:
    """Return the exchanges by what their requests are known by, and its digest. What names no request belongs to the
    latest one that is open, apart from progress, which names it."""
    exchanges: dict[str, tuple[list[Any], deque[Exchange]]] = {}
    pending: dict[object, tuple[list[Any], Exchange]] = {}
    for recorded in recording.frames:
        frame = recorded.frame
        if frame is None:
            continue
        if recorded.sender == "client" and {"id", "method"} <= frame.keys():
            token = frame.get("params", {}).get("_meta", {}).get(RELATED)
            pending[frame["id"]] = _about(frame), Exchange(token, [])
        elif recorded.sender == "server" and "method" not in frame and frame.get("id") in pending:
            about, exchange = pending.pop(frame["id"])
            exchange.frames.append(frame)
            exchanges.setdefault(jsontext.digest(about), (about, deque()))[1].append(exchange)
        elif recorded.sender == "server" and "method" in frame and pending:
            token = frame.get("params", {}).get(RELATED)
            owners = [exchange for _, exchange in pending.values() if token is not None and exchange.token == token]
            [*_, (_, latest)] = pending.values()
            (owners or [latest])[0].frames.append(frame)
    return exchanges
