"""Ask the person or model at the other end while a request is being served.

A script writes its input requests on the control pipe and waits (`scripts`); a handler calls `ask`. A client that
shook hands is asked at once, by requests of ours. A stateless client gets an `input_required` result instead: the
script stays where it is, parked under a handle that only the sealed state knows, and goes on when the retry of the
request brings the answers. When the process is gone by then, a request that may be repeated is run anew with the
answers so far.

Rule: a state is good for one request, once if a script is parked under it, and for nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gevent
from gevent.event import AsyncResult

from mcpgreen.errors import (
    AnswerOverdue,
    InputNeeded,
    InvalidParams,
    LinkClosed,
    MethodNotFound,
    RefusedByClient,
    Unanswered,
)
from mcpgreen.features.asking.interaction import Event
from mcpgreen.features.asking.parking import Parked, Parking
from mcpgreen.features.asking.scripts import AskingScript, answered, unanswered
from mcpgreen.features.call import Call
from mcpgreen.features.scripts import encoded
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.input.shapes import fit, tidy
from mcpgreen.protocol.input.state import Seal
from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext

Json = dict[str, Any]


class Asking:
    """Asks for all calls of one server."""

    def __init__(self, settings: Settings, *, seal: Seal) -> None:
        self._settings = settings
        self._seal = seal
        self.parking = Parking(limit=settings.parked_max, ttl_secs=settings.parked_ttl_secs)
        self._at_rest = 0  # how many calls have left their slots

    def script_of(self, call: Call, deadline: Deadline) -> AskingScript:
        """For one run of a script."""
        assert call.run is not None  # there is a script
        return AskingScript(self, call, call.run, deadline)

    def ask(self, call: Call, asked: Json, *, own_state: str | None = None, knows_answers: bool = True) -> Json:
        """Answers by key, for a handler without a process. Raises InputNeeded where the client has to come back,
        MissingClientCapability for what it cannot be asked, and Unanswered. Not `knows_answers`: ask also what was
        answered before."""
        asked = {key: tidy(request) for key, request in asked.items()}
        _require_askable(call, asked)
        known = call.interaction.answers if knows_answers else {}
        answers = {
            key: known[key]
            for key, request in asked.items()
            if key in known and not requests.problem_with_answer(request, known[key])
        }
        open_requests = {key: request for key, request in asked.items() if key not in answers}
        if not open_requests:
            return answers
        if call.is_stateless:
            raise InputNeeded(open_requests, self._state_for(call, open_requests, own_state=own_state))
        call.interaction.on(Event.ASK)
        with self.slot_left(call):
            statuses = self.ask_live(call, open_requests, None)
        call.interaction.on(Event.STOP_ASKING)
        for status in statuses.values():
            if "result" not in status:
                raise Unanswered(status["message"])
        return answers | {key: status["result"] for key, status in statuses.items()}

    @contextmanager
    def slot_left(self, call: Call) -> Iterator[None]:
        """While an input request is open, others may use the slot; but not if so many wait for answers already that
        there would be no end of processes. What is parked has a limit of its own. However it ends, the slot is taken
        back: a script never runs on without one. Only who is killed meanwhile is done, and waits for nothing."""
        slot = None if call.run is None else call.run.slot
        if slot is None or (self._at_rest >= self._settings.parked_max and not call.is_stateless):
            yield
            return
        self._at_rest += 1
        slot.leave()
        is_killed = False
        try:
            yield
        except gevent.GreenletExit:
            is_killed = True
            raise
        finally:
            self._at_rest -= 1
            if not is_killed:
                slot.take()

    def ask_live(self, call: Call, asked: Json, timeout_secs: float | None) -> Json:
        """What becomes of each input request to a client that has a session. They are tidy, and may be asked."""
        secs = timeout_secs or self._settings.ask_timeout_secs
        askers = {key: gevent.spawn(self._ask_one, call, request, secs) for key, request in asked.items()}
        try:
            gevent.joinall(list(askers.values()))
        except gevent.GreenletExit:
            gevent.killall(list(askers.values()), block=False)
            raise
        return {key: asker.value for key, asker in askers.items()}

    def _ask_one(self, call: Call, request: Json, timeout_secs: float) -> Json:
        elicitation_id = os.urandom(16).hex()
        assert call.session is not None
        try:
            params = fit(request, call.view.revision, elicitation_id=elicitation_id)
            answer = call.session.requests.ask(call.stream.sink, request["method"], params, timeout_secs=timeout_secs)
        except ValueError as error:
            return unanswered("unsupported", str(error))
        except AnswerOverdue as error:
            return unanswered("timeout", str(error))
        except LinkClosed as error:
            return unanswered("cancelled", str(error))
        except RefusedByClient as error:
            return unanswered("unsupported" if error.code == MethodNotFound.code else "error", str(error))
        problem = requests.problem_with_answer(request, answer)
        if problem:
            return unanswered("error", f"The client's answer does not fit: {problem}.")
        if "elicitationId" in params and answer.get("action") == "accept":
            call.interaction.elicitation_ids.append(elicitation_id)
        return answered(answer)

    def park(self, call: Call, asked: Json, timeout_secs: float | None) -> Json:
        """The same for any other: answer its request with what is asked, and wait for the retry that brings the
        answers."""
        parked = Parked(call, asked, AsyncResult())
        handle = self.parking.add(parked)
        parked.answer_with_what_is_asked(_result_line(call, asked, self._state_for(call, asked, handle=handle)))
        try:
            answers: Json = parked.answers.get(timeout=timeout_secs)
        except gevent.Timeout:
            text = f"The client has not come back within {timeout_secs:g} s."
            return dict.fromkeys(asked, unanswered("timeout", text))
        finally:
            parked.stop_waiting()
        call.interaction.answers |= answers
        return {key: answered(answer) for key, answer in answers.items()}

    def take_up(self, call: Call) -> bool:
        """Whether a retry goes on with what was parked, or has to be asked again. If not, it is to be served as any
        request, and `call.interaction` has what it brought. Raises InvalidParams and MissingClientCapability."""
        responses, interaction = _responses_of(call), call.interaction
        if "requestState" not in call.params:
            interaction.answers = responses
            return False
        payload = self._seal.open(call.params["requestState"], now=time.time(), belongs_to=_identity_of(call))
        asked: Json = payload["q"]
        problems = {
            key: requests.problem_with_answer(request, responses[key])
            for key, request in asked.items()
            if key in responses
        }
        answers = {key: responses[key] for key, problem in problems.items() if not problem}
        missing = {key: request for key, request in asked.items() if key not in answers}
        _require_askable(call, missing)
        self.parking.require_scopes(payload.get("h"), call)
        parked = self.parking.take(payload.get("h"))
        interaction.answers = {**payload["memo"], **answers}
        interaction.own_state = payload.get("own")
        if parked is not None and (parked.is_past_waiting or not missing):
            parked.resume(call)
            return True
        interaction.is_repeat = "h" in payload and parked is None
        if missing and not interaction.is_repeat:
            self._ask_again(call, missing, parked, problems)
            return True
        return False

    def _ask_again(self, call: Call, asked: Json, parked: Parked | None, problems: dict[str, str | None]) -> None:
        handle = None if parked is None else self.parking.add(parked)
        state = self._state_for(call, asked, handle=handle, own_state=call.interaction.own_state)
        explained = {key: requests.asked_again(request, problems.get(key)) for key, request in asked.items()}
        call.sink.respond(_result_line(call, explained, state))

    def _state_for(self, call: Call, asked: Json, *, handle: str | None = None, own_state: str | None = None) -> str:
        identity = {member: value for member, value in _identity_of(call).items() if value is not None}
        payload: Json = {**identity, "q": asked, "memo": call.interaction.answers}
        if handle is not None:
            payload["h"] = handle
        if own_state is not None:
            payload["own"] = own_state
        return self._seal.close(payload, expires_at=time.time() + self._settings.parked_ttl_secs)


def _result_line(call: Call, asked: Json, state: str) -> bytes:
    result = revision_fields.finish(
        requests.input_required(asked, state), call.view.revision, call.services.identity.info
    )
    return messages.response(call.id, jsontext.dumps(result))


def _require_askable(call: Call, asked: Json) -> None:
    needs = [requests.need_of(request) for request in asked.values()]
    requests.require_met(needs, call.view.capabilities, call.view.revision)


def _responses_of(call: Call) -> Json:
    """The answers that a retry brings. Of what makes no sense as an answer the input request is still open."""
    responses = call.params.get("inputResponses", {})
    if type(responses) is not dict:
        raise InvalidParams("inputResponses must be an object.")
    encoded(responses, "inputResponses")  # so that a script can be given them
    return {key: response for key, response in responses.items() if type(response) is dict}


def _identity_of(call: Call) -> Json:
    """What a state is bound to: this server, the request in all that matters, and who sends it. A member that is None
    must be absent, so that nobody is not everybody."""
    params = call.params
    try:
        arguments = jsontext.digest(call.arguments or {})
    except (ValueError, OverflowError):
        raise InvalidParams("arguments cannot be passed on as JSON: a number is out of range.") from None
    named = [params.get("name"), params.get("uri")]
    # The name may be long, and the client need not read how we call it.
    who = None if call.principal is None else jsontext.digest(call.principal.name)
    return {"s": call.services.identity.info["name"], "m": call.method, "t": named, "a": arguments, "p": who}
