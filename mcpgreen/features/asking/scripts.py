"""Questions from a running script: read its input requests from the control pipe or a file, and deliver the replies.

Rule: while an input request is open, the slot of the call is free, its deadline stands still, and nothing of the call
is written. So a script has one round of input requests open at a time, and the next round waits for its end; a task
may have several. Their number is bounded: beyond it the control pipe is not read, so that the script has to wait.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import gevent
from gevent.lock import Semaphore

from mcpgreen import journal
from mcpgreen.features.call import Event, State
from mcpgreen.files.regular_files import existing_file
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.input.requests import ELICIT, tidy
from mcpgreen.running.processes.run import Deadline
from mcpgreen.running.scripts import scratch
from mcpgreen.running.scripts.replies import deliver
from mcpgreen.running.shares import OneAtATime
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.call import Call

TakeReply = Callable[[Json], None]  # gets the outcome of each input request, by key

MAX_OPEN = 8  # rounds of one script that wait for their turn, or for the script to read their reply
MAX_OPEN_BYTES = 1 << 20  # of all open rounds; reading stops at this size
MAX_ROUNDS = 10_000  # of one run
MENTIONED_KEYS = 1000  # in the refusal of a round that has too many
MENTIONED_FAULTS = 5  # a script that makes a mistake makes it often
# One for the process, as the hub is: a script whose requests are refused at once could keep it busy with replies.
REPLIES = OneAtATime()

LOOK_SECS = 0.1
SETTLED_SECS = 1.0  # after which a file that is not JSON and has not changed is taken as finished
NO_FIELDS: Json = {"type": "object", "properties": {}}
ACTION_OF = {"unsupported": "decline", "cancelled": "cancel"}  # "error" for any other outcome without an answer


class AskingScript:
    """Asks the input requests of one run of a script."""

    def __init__(self, call: Call, deadline: Deadline) -> None:
        assert call.run is not None  # there is a script
        self._asking = call.services.asking
        self._call = call
        self._run = call.run
        self._deadline = deadline
        self._turn = Semaphore(1)
        self._uses: dict[str, int] = {}  # how often each key has been used
        self._open = self._open_bytes = 0
        self._rounds = 0
        self._faults = 0

    @property
    def has_room(self) -> bool:
        return self._open < MAX_OPEN and self._open_bytes < MAX_OPEN_BYTES

    def ask(self, asked: object, reply: object, timeout_secs: float | None, *, size_bytes: int) -> None:
        """Begin to ask, and write the answers to the path `reply`. Never waits."""
        if self._run.files is None or not _is_place(reply, self._run.files.reply_prefix):
            self._mention("ignored a question from a script: its reply path is not below MCP_ASK_REPLY")
        elif not self._call.is_cancelled:  # a script that is being stopped may still ask
            self.begin(asked, timeout_secs, partial(_write_reply, str(reply)), size_bytes=size_bytes)

    def begin(self, asked: object, timeout_secs: float | None, take_reply: TakeReply, *, size_bytes: int) -> None:
        """Begin to ask; `take_reply` is called with the outcomes unless the script has ended by then."""
        self._run.help_with(self._serve, asked, timeout_secs, take_reply, size_bytes)
        self._open += 1
        self._open_bytes += size_bytes

    def refuse(self, fault: str, take_reply: TakeReply) -> None:
        """Tell the script that its input request makes no sense."""
        self._mention(f"a script sent an invalid question: {fault}")
        self._run.help_with(take_reply, {requests.NAMELESS: _senseless(fault)})

    def _serve(self, asked: object, timeout_secs: float | None, take_reply: TakeReply, size_bytes: int) -> None:
        try:
            if self._call.promotion is not None:
                self._call.promotion.wait()  # what is asked after its beginning belongs to the task
            task = self._call.task
            with self._turn if task is None or task.is_plain else nullcontext():
                outcomes = self._outcomes(asked, timeout_secs) if self._is_wanted() else {}
            if self._is_wanted():
                take_reply(outcomes)  # outside of the turn: it may wait until the script reads a FIFO
                with REPLIES:
                    pass  # all scripts take turns here before more of their input requests are read
        finally:
            self._open -= 1
            self._open_bytes -= size_bytes

    def _is_wanted(self) -> bool:
        return self._run.is_helped_by(gevent.getcurrent()) and not self._call.is_cancelled

    def _mention(self, fault: str) -> None:
        self._faults += 1
        if self._faults <= MENTIONED_FAULTS:
            journal.warning("%s", fault)

    def _outcomes(self, asked: object, timeout_secs: float | None) -> Json:
        self._call.interaction.unmet_needs = []  # a script that asks again has gone on without those answers
        self._rounds += 1
        fault = requests.fault_of(asked)
        if not fault and self._rounds > MAX_ROUNDS:
            fault = f"a call may ask at most {MAX_ROUNDS} times"
        if fault or not isinstance(asked, dict):
            self._mention(f"a script sent an invalid question: {fault}")
            keys = list(asked)[:MENTIONED_KEYS] if isinstance(asked, dict) else []
            return dict.fromkeys(keys, _senseless(str(fault)))
        wire_keys = {key: self._wire_key(key, request) for key, request in asked.items()}
        open_requests = {wire_keys[key]: tidy(request) for key, request in asked.items()}
        if b'"pattern":' in jsontext.dumps(asked) and b'"pattern":' not in jsontext.dumps(open_requests):
            self._mention("MCP forms don't support pattern, so it is not sent; the script must check the answer itself")
        outcomes = self._take_settled(open_requests)
        if open_requests and self._call.interaction.state == State.PARKED:
            # The script gave up waiting before the client came back, and nothing can be asked until it does.
            outcomes |= dict.fromkeys(open_requests, unanswered("timeout", "The client did not come back."))
        elif open_requests:
            outcomes |= self._ask_client(open_requests, timeout_secs)
        return {key: outcomes[wire_keys[key]] for key in asked}

    def _ask_client(self, open_requests: Json, timeout_secs: float | None) -> Json:
        call = self._call
        self._deadline.pause()
        try:
            with self._asking.slot_released(call):
                if self._asking.parks(call):
                    return self._asking.park(call, open_requests, timeout_secs)
                call.interaction.on(Event.ASK)
                return self._asking.ask_live(call, open_requests, timeout_secs)
        finally:
            self._deadline.resume()
            if self._is_wanted():
                call.interaction.on(Event.STOP_ASKING)

    def _take_settled(self, open_requests: Json) -> Json:
        """Take out the requests that need not be asked, and return their outcomes."""
        call = self._call
        known = call.interaction.answers
        outcomes: Json = {}
        for key, request in list(open_requests.items()):
            need = requests.need_of(request)
            if not requests.is_met(need, call.view.capabilities, call.view.revision):
                call.interaction.unmet_needs.append(need)
                outcomes[key] = unanswered("unsupported", requests.lack_of(need))
            elif key in known and not requests.problem_with_answer(request, known[key]):
                outcomes[key] = answered(known[key])
            else:
                continue
            del open_requests[key]
        return outcomes

    def _wire_key(self, key: str, request: Json) -> str:
        """Return a key that no other request of this run has, and that the same request has in another run. If the
        author did not choose the key, a digest makes sure that an answer never lands on another request."""
        uses = self._uses[key] = self._uses.get(key, 0) + 1
        is_nameless = key == requests.NAMELESS or (key[:1] == "q" and key[1:].isdigit())
        if uses == 1 and not is_nameless:
            return key
        return f"{key}-{uses}-{jsontext.digest(request)[:8]}"


class ElicitationFiles:
    """Elicitation by file, as scripts for older servers ask without an SDK. Active inside of `with`.

    The script writes `MCP_ELICIT_REQUEST_FILE`: `{"message", "schema", "mode"}`, or `{"message", "url", "mode"}`. Then
    it waits for `MCP_ELICIT_RESPONSE_FILE`: `{"action", "content"}`. No event says that the first file has been
    written, so a timer looks for it while the script runs.

    Rule: looking at the file never waits, whatever is there, and reads no more than a line on the control pipe may
    have. One input request is open at a time. If the script writes another one meanwhile, the answer to the first is
    dropped, so that the script does not take it for the answer to the second.
    """

    def __init__(self, files: scratch.CallFiles, script: Callable[[], AskingScript]) -> None:
        self._files = files
        self._script = script
        self._name = files.name_of(scratch.REQUEST_FILE)
        self._is_open = False
        self._unfinished: tuple[tuple[int, int, int], float] | None = None  # a file without JSON yet, and since when
        self._timer: Any = gevent.get_hub().loop.timer(LOOK_SECS, LOOK_SECS)

    def __enter__(self) -> None:
        self._timer.start(self._look)

    def __exit__(self, *_: object) -> None:
        self._timer.close()

    def _look(self) -> None:
        """Take a request file that is complete. Runs on the hub."""
        status = None if self._is_open else self._request_status()
        if status is None or not status.st_size or not self._script().has_room:
            return
        seen = status.st_ino, status.st_size, status.st_mtime_ns
        if self._unfinished is not None and self._unfinished[0] == seen:
            if time.monotonic() - self._unfinished[1] >= SETTLED_SECS:
                self._take(fault="it is not JSON")
            return
        try:
            with open(existing_file(self._name, dir_fd=self._files.directory.fd), "rb") as file:
                content = file.read(requests.MAX_ROUND_BYTES + 1)
        except OSError:
            return  # it is gone again
        if len(content) > requests.MAX_ROUND_BYTES:
            self._take(fault=f"it has more than {requests.MAX_ROUND_BYTES} bytes")
            return
        try:
            question = jsontext.loads(content)
        except ValueError:
            self._unfinished = seen, time.monotonic()
            return
        fault = "" if isinstance(question, dict) else "it must be an object with a message"
        self._take(question, size_bytes=len(content), fault=fault)

    def _request_status(self) -> os.stat_result | None:
        """Return the stat of the request file; None if there is none."""
        try:
            status = os.stat(self._name, dir_fd=self._files.directory.fd, follow_symlinks=False)
        except OSError:
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _take(self, question: Any = None, *, size_bytes: int = 0, fault: str) -> None:
        self._unfinished = None
        try:
            os.unlink(self._name, dir_fd=self._files.directory.fd)
        except OSError:
            return
        self._is_open = True
        if fault:
            self._script().refuse(fault, self._take_reply)
        else:
            asked = {requests.NAMELESS: _request_of(question)}
            self._script().begin(asked, None, self._take_reply, size_bytes=size_bytes)

    def _take_reply(self, outcomes: Json) -> None:
        self._is_open = False
        if self._request_status() is None:  # an empty file is a question that is just being written
            answer = _file_answer(outcomes.get(requests.NAMELESS, {}))
            deliver(os.fsdecode(self._files.place + scratch.RESPONSE_FILE), jsontext.dumps(answer))


def answered(result: Json) -> Json:
    return {"status": "answered", "result": result}


def unanswered(status: str, message: str) -> Json:
    return {"status": status, "message": message}


def _senseless(fault: str) -> Json:
    return unanswered("invalid", f"The question is invalid: {fault}.")


def _write_reply(place: str, outcomes: Json) -> None:
    deliver(place, jsontext.dumps(outcomes))


def _is_place(path: object, prefix: str) -> bool:
    """Tell whether a script may have its reply written to this path."""
    if not isinstance(path, str) or not path.startswith(prefix):
        return False
    rest = path[len(prefix) :]
    return "/" not in rest and rest.isascii() and rest.isprintable()


def _request_of(question: Json) -> Json:
    """Return the input request of a file, in the newest dialect. It is checked later, as any other is."""
    params = {"mode": question.get("mode") or "form", "message": question.get("message")}
    if params["mode"] == "url":
        params["url"] = question.get("url")
    else:
        params["requestedSchema"] = question.get("schema") or NO_FIELDS
    return {"method": ELICIT, "params": params}


def _file_answer(outcome: Json) -> Json:
    kind = outcome.get("status", "error")
    if kind == "answered":
        return {"action": outcome["result"]["action"], "content": outcome["result"].get("content")}
    action = ACTION_OF.get(kind, "error")
    return {"action": action, "content": None, "reason": kind, "message": outcome.get("message", "")}
