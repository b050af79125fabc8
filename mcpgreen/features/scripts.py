"""Run a script for a request: with files of its own, as tools are run, and with the client's patience."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.errors import InternalError, InvalidParams, OutputTooLarge, ToolFailure
from mcpgreen.features.asking.files import ElicitationFiles
from mcpgreen.features.call import Call, Reports
from mcpgreen.protocol.input import requests
from mcpgreen.running.processes.deadline import MAX_SECS, Deadline
from mcpgreen.running.processes.process import Ending, Outcome
from mcpgreen.running.scripts import results
from mcpgreen.running.scripts.channel import Channel
from mcpgreen.running.scripts.environment import Environment
from mcpgreen.running.scripts.launch import Limits, Script, ScriptRun, run_script
from mcpgreen.running.scripts.scratch import CallFiles
from mcpgreen.text import jsontext

MAX_ROUNDS = 10  # of a script that prints its input requests and is run again with the answers


class ScriptFiles:
    """Temporary files for the script of a call. Whatever happens to it, they go, and its helpers with them. What the
    call runs next has another number, and so other files."""

    __slots__ = ("_call", "_files", "_run")

    def __init__(self, call: Call) -> None:
        services, run = call.services, call.run
        assert run is not None
        services.runner.prepare()  # who would have to remove the files after a crash is there before them
        self._call = call
        self._run = run
        self._files = run.files = services.state_dir.new_call(call.serial)
        journal.debug("request %r to %s is call %d", call.id, call.method, call.serial)

    def __enter__(self) -> CallFiles:
        return self._files

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        call = self._call
        self._run.files = None  # whoever cancels the call from now on has no script to tell
        if kind is not None and issubclass(kind, gevent.GreenletExit):
            # The script may still be looking for its cancel file.
            call.services.runner.after_stopping(self._files.remove)
        elif kind is not None:
            self._files.remove()
        call.stop_helpers()
        call.serial = call.services.runner.next_serial()


def run_for(
    call: Call,
    script: Script,
    env: Environment,
    *,
    entry_json: bytes,
    arguments_json: bytes,
    deadline: Deadline,
    limits: Limits,
) -> tuple[Outcome, bytes, bytes]:
    """Run it as a tool is run, with the SDK at hand: `env` has what is the same for several calls. Gives how it ended,
    and what it left as error and as embedded resources."""
    services, interaction = call.services, call.interaction
    assert call.run is not None
    with ScriptFiles(call) as files:
        env = services.environment.for_call(
            env,
            files,
            entry_json=entry_json,
            arguments_json=arguments_json,
            meta_json=encoded(call.params.get("_meta") or {}, "_meta"),
            worker_key=call.worker_key,
            progress_token=call.token,
            answers_json=jsontext.dumps(interaction.answers) if interaction.answers else b"",
            own_state=interaction.own_state,
            auth_json=call.auth_json,
            wants_table=script.wants_table,
        )
        reports = Reports(call, deadline)
        run = ScriptRun(script, env, deadline, limits, call.serial, Channel(reports).feed)
        with ElicitationFiles(call, files, reports.asking_script):
            outcome = run_script(services.runner, run)
        call.run.output_place = outcome.place
        call.run.note_end(outcome)
        call.stop_helpers()  # before its files are looked for: an answer that comes now would stay behind
        return outcome, *files.take_reports()


def take_answers(call: Call, label: str, asked: Any, state: Any, *, failure: type[ToolFailure | InternalError]) -> None:
    """Ask what a script printed, so that it can be run again with the answers and its state. Raises `failure` for what
    cannot be asked, MissingClientCapability and Unanswered."""
    fault = requests.fault_of(asked) or requests.fault_of_state(state)
    if fault:
        raise failure(f"{label} asks what cannot be asked: {fault}")
    call.interaction.answers |= call.services.asking.ask(call, asked, own_state=state, knows_answers=False)
    call.interaction.own_state = state
    call.interaction.unmet_needs = []


def output_or_error(label: str, outcome: Outcome, timeout_secs: float) -> list[bytes]:
    if outcome.ended_by in (Ending.STDOUT_LIMIT, Ending.STDERR_LIMIT):
        raise OutputTooLarge(f"{label} printed too much")
    if outcome.ended_by == Ending.DEADLINE:
        raise InternalError(f"{label} timed out after {timeout_secs:g}s")
    if outcome.exit_code != 0:
        raise InternalError(f"{label} failed: {results.reason_of(outcome)}")
    return outcome.stdout


def encoded(value: Mapping[str, Any], what: str) -> bytes:
    """What a client sent, as JSON for a script. Raises InvalidParams for a number such as 1e999."""
    if not value:
        return b"{}"
    try:
        return jsontext.dumps(value)
    except ValueError as error:
        raise InvalidParams(f"{what} cannot be passed on as JSON: a number is out of range.") from error


def as_text(value: Any) -> str:
    """A text as it is, any other value as JSON. Raises ValueError for a number such as 1e999."""
    return value if isinstance(value, str) else jsontext.dumps(value).decode("ascii")


def allowed_secs(call: Call, own_secs: float, cap_secs: float = 0) -> float:
    """How long a script may take that has `own_secs` for itself. A client may choose another time (`timeoutSecs` in the
    parameters, an extension), but no place is its own for longer than the cap, or than the script may have anyway."""
    secs = call.params.get("timeoutSecs")
    if secs is None:
        return own_secs
    if type(secs) not in (int, float) or not 0 < secs <= MAX_SECS:
        raise InvalidParams(f"timeoutSecs must be a positive number up to {MAX_SECS:g}.")
    return min(float(secs), max(own_secs, cap_secs or call.services.settings.max_timeout_secs))
