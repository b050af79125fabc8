"""Ask the user or the client's model while a request is being served.

A script writes its input requests on the control pipe and waits (`scripts`); a handler calls `ask`. A client with a
session is asked at once, by requests of the server. A stateless client gets an `input_required` result instead, and
its call is parked: the script keeps running, under a handle that only the sealed state contains, and goes on when the
client repeats the request with the answers. If the process has ended by then, a request that may be repeated is run
again with the answers so far.

Parked calls belong to the server, not to a stream: the client may come back on another stream. Their number and their
time are bounded.

Rule: a state is good for one request and nothing else, and only once if a script is parked under it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import gevent
from gevent.event import AsyncResult
from gevent.event import Event as Bell

from mcpgreen import journal
from mcpgreen.errors import InputNeeded, InvalidParams, Unanswered
from mcpgreen.features import telling
from mcpgreen.features.asking.scripts import answered, unanswered
from mcpgreen.features.call import Call, Event
from mcpgreen.links.sink import Sink
from mcpgreen.protocol import messages, revision_fields
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.input.requests import fit, tidy
from mcpgreen.protocol.input.state import Seal
from mcpgreen.running.shares import Shares
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

ASK_SECS = 300.0  # for an answer to a question that has no time of its own
PARKED_SECS = 900.0  # for a stateless client to come back with answers
MAX_PARKED = 32  # scripts that wait for such clients; as many may wait for others without keeping their slots


class Parked(NamedTuple):
    """A call that was answered with input requests. `answers` is what its script waits for."""

    call: Call
    asked: Json
    answers: AsyncResult

    @property
    def is_past_waiting(self) -> bool:
        """Tell whether the script no longer needs an answer: it has ended or given up waiting."""
        return bool(self.answers.ready())

    def resume(self, retry: Call) -> None:
        """Go on as the call of another request, which has brought the answers."""
        interaction = self.call.interaction
        interaction.on(Event.ADOPT)
        self.call.continue_as(retry)
        if interaction.adopted is not None:
            interaction.adopted.set()
        if not self.is_past_waiting:
            self.answers.set({key: retry.interaction.answers[key] for key in self.asked})


class Parking:
    """The parked calls of a server, by handles that cannot be guessed."""

    def __init__(self) -> None:
        self._parked: dict[str, tuple[Parked, gevent.Greenlet]] = {}  # with the timer of each

    def __len__(self) -> int:
        return len(self._parked)

    def add(self, parked: Parked) -> str:
        while self._parked and len(self._parked) >= MAX_PARKED:
            journal.warning("too many scripts are waiting for an answer; stopping the busiest client's oldest one")
            self._give_up(self._oldest_of_greediest(parked.call.stream.owner))
        handle = os.urandom(16).hex()
        self._parked[handle] = parked, gevent.spawn_later(PARKED_SECS, self._give_up, handle)
        return handle

    def _oldest_of_greediest(self, newcomer: Hashable) -> str:
        """Return the handle to give up for a new call. A client pushes out the call of another client only if it has
        fewer parked itself, counting the new one."""
        owners = [parked.call.stream.owner for parked, _ in self._parked.values()]
        greediest, _ = Counter([*owners, newcomer]).most_common(1)[0]
        return next(handle for handle, owner in zip(self._parked, owners, strict=True) if owner == greediest)

    def take(self, handle: str, retry: Call | None = None) -> Parked | None:
        """Take a call out. None if the handle is unknown, used or too old. Raises InsufficientScope if the caller of
        the retry lacks the scopes of the parked call, which stays."""
        if handle not in self._parked:
            return None
        parked, timer = self._parked[handle]
        if retry is not None:
            retry.require_scopes(parked.call.required_scopes)
        del self._parked[handle]
        if timer is not gevent.getcurrent():
            timer.kill(block=False)
        return parked

    def clear(self) -> None:
        for handle in list(self._parked):
            self._give_up(handle)

    def _give_up(self, handle: str) -> None:
        """End the script: the client has not come back."""
        parked = self.take(handle)
        if parked is not None:
            parked.call.end_early(Event.GIVE_UP)


class Asking:
    def __init__(self, *, seal: Seal) -> None:
        self._seal = seal
        self.parking = Parking()
        self._at_rest = Shares(MAX_PARKED)  # calls that have left their slots

    def ask(self, call: Call, asked: Json, *, own_state: str | None = None, knows_answers: bool = True) -> Json:
        """Return answers by key, for a handler without a process. Unless `knows_answers`, ask also what was answered
        before. Raises InputNeeded if the client has to repeat its request, MissingClientCapability if it cannot be
        asked, and Unanswered."""
        call.services.confidential.hear_questions(asked)
        asked = {key: tidy(request) for key, request in asked.items()}
        if call.promotion is not None:
            call.promotion.wait()
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
        telling.tell_asked(call, open_requests)
        if self.parks(call):
            raise InputNeeded(open_requests, self._state_for(call, open_requests, own_state=own_state))
        call.interaction.on(Event.ASK)
        with self.slot_released(call):
            outcomes = self.ask_live(call, open_requests, None)
        call.interaction.on(Event.STOP_ASKING)
        telling.tell_answered(call, outcomes)
        for outcome in outcomes.values():
            if "result" not in outcome:
                raise Unanswered(outcome["message"])
        return answers | {key: outcome["result"] for key, outcome in outcomes.items()}

    def parks(self, call: Call) -> bool:
        """Tell whether the request of a call has to be answered so that its client can be asked."""
        return call.is_stateless and call.task is None

    @contextmanager
    def slot_released(self, call: Call) -> Iterator[None]:
        """Let others use the slot of a call inside of `with`, and take it back at the end: a script never runs on
        without a slot. Only a killed greenlet does not wait for it, because its call is over.

        If very many calls wait for answers already, the slot is kept: without a bound there would be any number of
        processes. Parked calls have a limit of their own."""
        slot = None if call.run is None else call.run.slot
        if slot is None or not (self.parks(call) or self._at_rest.has_room(slot.owner)):
            yield
            return
        self._at_rest.take(slot.owner)
        slot.leave()
        is_killed = False
        try:
            yield
        except gevent.GreenletExit:
            is_killed = True
            raise
        finally:
            self._at_rest.give_back(slot.owner)
            if not is_killed:
                slot.take()

    def ask_live(self, call: Call, asked: Json, timeout_secs: float | None) -> Json:
        """Ask a client that has a session, or the clients of a task, all these tidy requests at once, and return the
        outcome of each."""
        if call.task is not None:
            return call.task.ask(asked, timeout_secs)
        secs = timeout_secs or ASK_SECS
        sink = call.stream.sink
        askers = {key: gevent.spawn(self.ask_one, call, sink, request, secs) for key, request in asked.items()}
        try:
            gevent.joinall(list(askers.values()))
        except gevent.GreenletExit:
            gevent.killall(list(askers.values()), block=False)
            raise
        return {key: asker.value for key, asker in askers.items()}

    def ask_one(self, call: Call, sink: Sink, request: Json, timeout_secs: float, **more: Json) -> Json:
        """Ask one question, with more params, and return its outcome."""
        elicitation_id = os.urandom(16).hex()
        assert call.session is not None
        try:
            params = {**fit(request, call.view.revision, elicitation_id=elicitation_id), **more}
            answer = call.session.requests.ask(sink, request["method"], params, timeout_secs=timeout_secs)
        except ValueError as error:
            return unanswered("unsupported", str(error))
        except Unanswered as error:
            return unanswered(error.status, str(error))
        problem = requests.problem_with_answer(request, answer)
        if problem:
            return unanswered("error", f"The client's answer is invalid: {problem}.")
        if "elicitationId" in params and answer.get("action") == "accept":
            call.interaction.elicitation_ids.append(elicitation_id)
        return answered(answer)

    def park(self, call: Call, asked: Json, timeout_secs: float | None) -> Json:
        """Answer a stateless request with input requests, wait for the retry that brings the answers, and return the
        outcome of each. Nothing more of the call is written until the retry adopts it."""
        parked = Parked(call, asked, AsyncResult())
        handle = self.parking.add(parked)
        line = _input_required_line(call, asked, self._state_for(call, asked, handle=handle))
        call.interaction.on(Event.PARK)
        call.interaction.adopted = Bell()
        call.leave_stream()
        telling.tell_ended(call, telling.ASKS, size_bytes=len(line))
        call.sink.respond(line)  # not as a line of the call: it is written even if the call is given up soon
        try:
            answers: Json = parked.answers.get(timeout=timeout_secs)
        except gevent.Timeout:
            text = f"The client did not come back within {timeout_secs:g} s."
            return dict.fromkeys(asked, unanswered("timeout", text))
        finally:
            if not parked.is_past_waiting:
                parked.answers.set({})
        call.interaction.answers |= answers
        return {key: answered(answer) for key, answer in answers.items()}

    def take_up(self, call: Call) -> bool:
        """Take what a retry brings. Return True if that is all: the parked call goes on with it, or the client is asked
        again. If False, the request is served as any other, with the answers in `call.interaction`.

        Raises InvalidParams, MissingClientCapability and InsufficientScope."""
        responses, interaction = _responses_of(call), call.interaction
        payload: Json = {}
        if "requestState" in call.params:
            payload = self._seal.open(call.params["requestState"], now=time.time(), belongs_to=_identity_of(call))
        interaction.first = payload.get("first", 0)
        telling.tell_queued(call)
        if not payload:
            interaction.answers = responses
            return False
        asked: Json = payload["q"]
        problems = {
            key: requests.problem_with_answer(request, responses[key])
            for key, request in asked.items()
            if key in responses
        }
        answers = {key: responses[key] for key, problem in problems.items() if not problem}
        missing = {key: request for key, request in asked.items() if key not in answers}
        _require_askable(call, missing)
        parked = self.parking.take(payload.get("h", ""), call)
        interaction.answers = {**payload["memo"], **answers}
        interaction.own_state = payload.get("own")
        if parked is not None and (parked.is_past_waiting or not missing):
            parked.resume(call)
            return True
        telling.tell_answered(call, {key: answered(answer) for key, answer in answers.items()})
        interaction.is_repeat = "h" in payload and parked is None
        if missing and not interaction.is_repeat:
            self._ask_again(call, missing, parked, problems)
            return True
        return False

    def _ask_again(self, call: Call, asked: Json, parked: Parked | None, problems: dict[str, str | None]) -> None:
        handle = None if parked is None else self.parking.add(parked)
        state = self._state_for(call, asked, handle=handle, own_state=call.interaction.own_state)
        explained = {key: requests.asked_again(request, problems.get(key)) for key, request in asked.items()}
        line = _input_required_line(call, explained, state)
        telling.tell_asked(call, explained)
        telling.tell_ended(call, telling.ASKS, size_bytes=len(line))
        call.sink.respond(line)

    def _state_for(self, call: Call, asked: Json, *, handle: str | None = None, own_state: str | None = None) -> str:
        identity = {member: value for member, value in _identity_of(call).items() if value is not None}
        first = call.interaction.first or call.number
        payload: Json = {**identity, "q": asked, "memo": call.interaction.answers, "first": first}
        if handle is not None:
            payload["h"] = handle
        if own_state is not None:
            payload["own"] = own_state
        return self._seal.close(payload, expires_at=time.time() + PARKED_SECS)


def _input_required_line(call: Call, asked: Json, state: str) -> bytes:
    result = revision_fields.finish(InputNeeded(asked, state).result, call.view.revision, call.services.identity.info)
    return messages.response(call.id, jsontext.dumps(result))


def _require_askable(call: Call, asked: Json) -> None:
    needs = [requests.need_of(request) for request in asked.values()]
    requests.require_met(needs, call.view.capabilities, call.view.revision)


def _responses_of(call: Call) -> Json:
    """Return the answers in a retry. If an answer is not an object, its input request stays open."""
    responses = call.params.get("inputResponses", {})
    if type(responses) is not dict:
        raise InvalidParams("inputResponses must be an object.")
    try:
        jsontext.dumps(responses)  # as a script will get them
    except ValueError as error:
        raise InvalidParams("inputResponses cannot be passed on as JSON: a number is out of range.") from error
    return {key: response for key, response in responses.items() if type(response) is dict}


def _identity_of(call: Call) -> Json:
    """Return what a state is bound to: this server, everything about the request that matters, and its caller. A member
    that is None must be absent in the state, so that a state without a caller is not good for every caller."""
    params = call.params
    try:
        arguments = jsontext.digest(call.arguments or {})
    except (ValueError, OverflowError):
        raise InvalidParams("arguments cannot be passed on as JSON: a number is out of range.") from None
    named = [params.get("name"), params.get("uri")]
    # A digest, because the name may be long, and the client need not know what the server calls it.
    who = None if call.principal is None else jsontext.digest(call.principal.name)
    return {"s": call.services.identity.info["name"], "m": call.method, "t": named, "a": arguments, "p": who}
