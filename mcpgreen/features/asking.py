"""Ask the person or model at the other end while a request is being served.

A script writes its questions on the control pipe and waits; a handler calls `ask`. A client that shook hands is asked
at once, by requests of ours. A stateless client gets an `input_required` result instead: the script stays where it is,
parked under a handle that only the sealed state knows, and goes on when the retry of the request brings the answers.
When the process is gone by then, a request that may be repeated is run anew with the answers so far.

Rule: while a question is open nothing else of the call is: its slot is free, its deadline stands still, and nothing of
it is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gevent
from gevent.event import AsyncResult

from mcpgreen import journal, jsontext
from mcpgreen.errors import (
    AnswerOverdue,
    InputNeeded,
    InvalidParams,
    LinkClosed,
    RefusedByClient,
)
from mcpgreen.features.call import Call
from mcpgreen.features.parking import Parked, Parking
from mcpgreen.protocol import messages, questions, shapes
from mcpgreen.protocol.request_state import Seal
from mcpgreen.running.deadline import Deadline
from mcpgreen.running.replies import deliver
from mcpgreen.settings import Settings

Json = dict[str, Any]

METHOD_NOT_FOUND = -32601


class Asking:
    """Asks for all calls of one server."""

    def __init__(self, settings: Settings, *, seal: Seal) -> None:
        self._settings = settings
        self._seal = seal
        self._parking = Parking(limit=settings.parked_max, ttl_secs=settings.parked_ttl_secs)

    def close(self) -> None:
        self._parking.clear()

    # --- a script asks ------------------------------------------------------------------------------------------

    def ask_for_script(
        self, call: Call, deadline: Deadline, asked: Any, reply: Any, timeout_secs: float | None
    ) -> None:
        """Begin to ask; the answers are written to `reply`. Called where nobody may wait."""
        if call.files is None or not isinstance(reply, str) or not reply.startswith(call.files.reply_prefix):
            journal.warning("a script asks without a place for the answer below MCP_ASK_REPLY; ignored")
            return
        call.help_with(
            self._serve_script, call, deadline, asked, reply, timeout_secs or self._settings.ask_timeout_secs
        )

    def _serve_script(self, call: Call, deadline: Deadline, asked: Any, reply: str, timeout_secs: float) -> None:
        fault = questions.fault_of(asked)
        if fault:
            journal.warning("a script asks something that cannot be asked: %s", fault)
            keys = list(asked) if isinstance(asked, dict) else []
            deliver(reply, jsontext.dumps({key: _status("error", fault) for key in keys}))
            return
        wire_keys = {key: _wire_key(key, question) for key, question in asked.items()}
        open_questions = {wire_keys[key]: question for key, question in asked.items()}
        statuses = self._settled(call, open_questions)
        if open_questions:
            with _at_rest(call, deadline):
                if call.is_stateless:
                    answers = self._park(call, open_questions)
                    statuses |= {key: _answered(answers[key]) for key in open_questions}
                else:
                    statuses |= self._ask_live(call, open_questions, timeout_secs)
        deliver(reply, jsontext.dumps({key: statuses[wire_keys[key]] for key in asked}))

    def _settled(self, call: Call, open_questions: Json) -> Json:
        """What can be said without asking; those questions are taken out."""
        statuses: Json = {}
        for key, question in list(open_questions.items()):
            if not questions.is_met(questions.need_of(question), call.view.capabilities, call.view.revision):
                statuses[key] = _status("unsupported", f"The client has no {questions.need_of(question)}.")
            elif key in call.memo and not questions.problem_with_answer(question, call.memo[key]):
                statuses[key] = _answered(call.memo[key])
            else:
                continue
            del open_questions[key]
        return statuses

    # --- a handler asks -----------------------------------------------------------------------------------------

    def ask(self, call: Call, asked: Json, *, own_state: str | None = None, knows_answers: bool = True) -> Json:
        """Answers by key, for a handler without a process. Raises InputNeeded where the client has to come back, and
        MissingClientCapability for what it cannot be asked. Not `knows_answers`: ask also what was answered before."""
        questions.require_met(
            tuple(questions.need_of(question) for question in asked.values()),
            call.view.capabilities,
            call.view.revision,
        )
        answers = {
            key: call.memo[key]
            for key, question in asked.items()
            if knows_answers and key in call.memo and not questions.problem_with_answer(question, call.memo[key])
        }
        open_questions = {key: question for key, question in asked.items() if key not in answers}
        if not open_questions:
            return answers
        if call.is_stateless:
            raise InputNeeded(open_questions, self._state_for(call, open_questions, own_state=own_state))
        statuses = self._ask_live(call, open_questions, self._settings.ask_timeout_secs)
        return answers | {key: status["result"] for key, status in statuses.items() if "result" in status}

    # --- clients that shook hands -------------------------------------------------------------------------------

    def _ask_live(self, call: Call, asked: Json, timeout_secs: float) -> Json:
        askers = {key: gevent.spawn(self._ask_one, call, question, timeout_secs) for key, question in asked.items()}
        try:
            gevent.joinall(list(askers.values()))
        except gevent.GreenletExit:
            gevent.killall(list(askers.values()), block=False)
            raise
        return {key: asker.value for key, asker in askers.items()}

    def _ask_one(self, call: Call, question: Json, timeout_secs: float) -> Json:
        elicitation_id = os.urandom(8).hex()
        try:
            params = questions.fit(question, call.view.revision, elicitation_id=elicitation_id)
            answer = call.link.requests.ask(question["method"], params, timeout_secs=timeout_secs)
        except ValueError as error:
            return _status("unsupported", f"{error}.")
        except AnswerOverdue as error:
            return _status("timeout", str(error))
        except LinkClosed as error:
            return _status("cancelled", str(error))
        except RefusedByClient as error:
            return _status("unsupported" if error.code == METHOD_NOT_FOUND else "error", str(error))
        problem = questions.problem_with_answer(question, answer)
        if problem:
            return _status("error", f"The client's answer does not fit: {problem}.")
        if "elicitationId" in params and answer.get("action") == "accept":
            call.elicitation_ids.append(elicitation_id)
        return _answered(answer)

    # --- stateless clients --------------------------------------------------------------------------------------

    def _park(self, call: Call, asked: Json) -> Json:
        """Answer the request with the questions, and wait for the retry that brings the answers."""
        parked = Parked(call, asked, AsyncResult())
        handle = self._parking.add(parked)
        call.park(_result_line(call, asked, self._state_for(call, asked, handle=handle)))
        answers: Json = parked.answers.get()
        call.memo |= answers
        return answers

    def take_up(self, call: Call, may_repeat: Callable[[Call], bool]) -> bool:
        """Whether a retry goes on with what was parked, or has to be asked again. If not, it is to be served as any
        request, and `call.memo` has what it brought. Raises InvalidParams."""
        responses = call.params.get("inputResponses")
        if responses is None:
            responses = {}
        if type(responses) is not dict:
            raise InvalidParams("inputResponses must be an object.")
        state = call.params.get("requestState")
        if state is None:
            call.memo = dict(responses)
            return False
        payload = self._seal.open(state, now=time.time(), belongs_to=_identity_of(call))
        parked = self._parking.take(payload.get("h"))
        asked: Json = payload["q"]
        answers = {
            key: responses[key]
            for key, question in asked.items()
            if key in responses and not questions.problem_with_answer(question, responses[key])
        }
        call.memo = {**payload["memo"], **answers}
        missing = {key: question for key, question in asked.items() if key not in answers}
        if missing:
            self._ask_again(call, missing, parked, own_state=payload.get("own"))
            return True
        if parked is not None:
            parked.call.adopt(call)
            parked.answers.set({key: call.memo[key] for key in parked.asked})
            return True
        if "h" in payload and not may_repeat(call):
            raise InvalidParams("This interaction has expired; start again without requestState.")
        call.own_state = payload.get("own")
        return False

    def _ask_again(self, call: Call, asked: Json, parked: Parked | None, *, own_state: str | None) -> None:
        handle = None if parked is None else self._parking.add(parked)
        state = self._state_for(call, asked, handle=handle, own_state=own_state)
        call.sink.put(_result_line(call, asked, state))

    def _state_for(self, call: Call, asked: Json, *, handle: str | None = None, own_state: str | None = None) -> str:
        payload: Json = {**_identity_of(call), "q": asked, "memo": call.memo}
        if handle is not None:
            payload["h"] = handle
        if own_state is not None:
            payload["own"] = own_state
        return self._seal.close(payload, expires_at=time.time() + self._settings.parked_ttl_secs)


def _result_line(call: Call, asked: Json, state: str) -> bytes:
    result = shapes.finish(questions.input_required(asked, state), call.view.revision, call.services.identity.info)
    return messages.response(call.id, jsontext.dumps(result))


def _identity_of(call: Call) -> Json:
    """What a state is bound to: the request must be the same in all that matters."""
    params = call.params
    name = params.get("name") if call.method != "resources/read" else params.get("uri")
    return {"m": call.method, "t": name, "a": jsontext.digest(params.get("arguments") or {})}


def _wire_key(key: str, question: Json) -> str:
    """A counted key gets a digest of its question, so that an answer never lands on another one."""
    if key[:1] == "q" and key[1:].isdigit():
        return f"{key}-{jsontext.digest(question)[:8]}"
    return key


def _answered(result: Any) -> Json:
    return {"status": "answered", "result": result}


def _status(status: str, message: str) -> Json:
    return {"status": status, "message": message}


@contextmanager
def _at_rest(call: Call, deadline: Deadline) -> Iterator[None]:
    """While a question is open: others may use the slot, and time does not count. Who is killed meanwhile is done."""
    deadline.pause()
    call.slot.leave()
    yield
    call.slot.take_again()
    deadline.resume()
