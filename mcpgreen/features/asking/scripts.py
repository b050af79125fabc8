"""A script asks while it runs: from its questions, on the control pipe or in a file, to the reply that it waits for.

Rule: while an input request is open nothing else of the call is: its slot is free, its deadline stands still, and
nothing of it is written. So a script has one round of them open at a time; another one waits until that is over. How
many wait is bounded: then the control pipe is not read any more, and the script itself has to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import gevent
from gevent.lock import Semaphore

from mcpgreen import journal
from mcpgreen.features.asking.interaction import Event, State
from mcpgreen.features.call import Call
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.input.shapes import tidy
from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.scripts.replies import deliver
from mcpgreen.running.turns import OneAtATime
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.features.asking.asking import Asking
    from mcpgreen.features.run import Run

Json = dict[str, Any]
Answer = Callable[[Json], None]

MAX_OPEN = 8  # rounds of one script that wait for their turn, or for their reply to be taken
MAX_OPEN_BYTES = 1 << 20  # another one is read until there are so many
MAX_ROUNDS = 10_000  # of one run
MENTIONED_KEYS = 1000  # in the refusal of a round that has too many
MENTIONED_FAULTS = 5  # a script that makes a mistake makes it often
# One for the process, as the hub is: whoever asks what is refused at once would have files written without an end.
REPLIES = OneAtATime()


class AskingScript:
    """The input requests of one run of a script."""

    def __init__(self, asking: Asking, call: Call, run: Run, deadline: Deadline) -> None:
        self._asking = asking
        self._call = call
        self._run = run
        self._deadline = deadline
        self._turn = Semaphore(1)
        self._uses: dict[str, int] = {}  # how often each key has been used
        self._open = self._open_bytes = 0
        self._rounds = 0
        self._faults = 0

    @property
    def has_room(self) -> bool:
        return self._open < MAX_OPEN and self._open_bytes < MAX_OPEN_BYTES

    def ask(self, asked: Any, reply: Any, timeout_secs: float | None, *, size_bytes: int) -> None:
        """Begin to ask; the answers are written to `reply`. Called where nobody may wait."""
        if self._run.files is None or not _is_place(reply, self._run.files.reply_prefix):
            self._mention("a script asks without a place for the answer below MCP_ASK_REPLY; ignored")
        elif not self._call.is_cancelled:  # a script that is being stopped may still ask
            self.begin(asked, timeout_secs, partial(_reply, reply), size_bytes=size_bytes)

    def begin(self, asked: Any, timeout_secs: float | None, answer: Answer, *, size_bytes: int) -> None:
        """The same with whatever is to be done with the outcomes, by key. It is not done for a script that is over."""
        self._run.help_with(self._serve, asked, timeout_secs, answer, size_bytes)
        self._open += 1
        self._open_bytes += size_bytes

    def refuse(self, fault: str, answer: Answer) -> None:
        """Tell the script that what it asks makes no sense, under the key that nobody chose."""
        self._mention(f"a script asks what cannot be asked: {fault}")
        self._run.help_with(answer, {requests.NAMELESS: _senseless(fault)})

    def _serve(self, asked: Any, timeout_secs: float | None, answer: Answer, size_bytes: int) -> None:
        try:
            with self._turn:
                statuses = self._statuses(asked, timeout_secs) if self._is_wanted() else {}
            if self._is_wanted():
                answer(statuses)  # which may wait for a FIFO to be read, and keeps nobody else waiting
                with REPLIES:
                    pass  # in turns with all others, before more of the script's is read
        finally:
            self._open -= 1
            self._open_bytes -= size_bytes

    def _is_wanted(self) -> bool:
        return self._run.is_helped_by(gevent.getcurrent()) and not self._call.is_cancelled

    def _mention(self, fault: str) -> None:
        self._faults += 1
        if self._faults <= MENTIONED_FAULTS:
            journal.warning("%s", fault)

    def _statuses(self, asked: Any, timeout_secs: float | None) -> Json:
        self._call.interaction.unmet_needs = []  # whoever asks again has gone on without those answers
        self._rounds += 1
        fault = requests.fault_of(asked)
        if not fault and self._rounds > MAX_ROUNDS:
            fault = f"one call may ask {MAX_ROUNDS} times at the most"
        if fault:
            self._mention(f"a script asks what cannot be asked: {fault}")
            return dict.fromkeys(list(asked)[:MENTIONED_KEYS] if isinstance(asked, dict) else (), _senseless(fault))
        wire_keys = {key: self._wire_key(key, request) for key, request in asked.items()}
        open_requests = {wire_keys[key]: tidy(request) for key, request in asked.items()}
        statuses = self._settled(open_requests)
        if open_requests and self._call.interaction.state == State.PARKED:
            # The script gave up waiting before the client came back: there is nobody to ask until it does.
            statuses |= dict.fromkeys(open_requests, unanswered("timeout", "The client has not come back."))
        elif open_requests:
            statuses |= self._asked(open_requests, timeout_secs)
        return {key: statuses[wire_keys[key]] for key in asked}

    def _asked(self, open_requests: Json, timeout_secs: float | None) -> Json:
        call = self._call
        self._deadline.pause()
        try:
            with self._asking.slot_left(call):
                if call.is_stateless:
                    return self._asking.park(call, open_requests, timeout_secs)
                call.interaction.on(Event.ASK)
                return self._asking.ask_live(call, open_requests, timeout_secs)
        finally:
            self._deadline.resume()
            if self._is_wanted():
                call.interaction.on(Event.STOP_ASKING)

    def _settled(self, open_requests: Json) -> Json:
        """What can be said without asking; those requests are taken out."""
        call = self._call
        known = call.interaction.answers
        statuses: Json = {}
        for key, request in list(open_requests.items()):
            need = requests.need_of(request)
            if not requests.is_met(need, call.view.capabilities, call.view.revision):
                call.interaction.unmet_needs.append(need)
                statuses[key] = unanswered("unsupported", requests.lack_of(need))
            elif key in known and not requests.problem_with_answer(request, known[key]):
                statuses[key] = answered(known[key])
            else:
                continue
            del open_requests[key]
        return statuses

    def _wire_key(self, key: str, request: Json) -> str:
        """A key that no other request of this run has, and that the same request has in another run. Where the
        author did not choose the name, a digest sees to it that an answer never lands on another request."""
        uses = self._uses[key] = self._uses.get(key, 0) + 1
        is_nameless = key == requests.NAMELESS or (key[:1] == "q" and key[1:].isdigit())
        if uses == 1 and not is_nameless:
            return key
        return f"{key}-{uses}-{jsontext.digest(request)[:8]}"


def answered(result: Any) -> Json:
    return {"status": "answered", "result": result}


def unanswered(status: str, message: str) -> Json:
    return {"status": status, "message": message}


def _senseless(fault: str) -> Json:
    return unanswered("invalid", f"The question makes no sense: {fault}.")


def _reply(place: str, statuses: Json) -> None:
    deliver(place, jsontext.dumps(statuses))


def _is_place(path: Any, prefix: str) -> bool:
    """Whether a path is one of those that a script may choose for its replies."""
    if not isinstance(path, str) or not path.startswith(prefix):
        return False
    rest = path[len(prefix) :]
    return "/" not in rest and rest.isascii() and rest.isprintable()
