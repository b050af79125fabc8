"""Run a script for a request, with its own temporary files, the SDK and a time limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import gevent

from mcpgreen import journal
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.errors import (
    InternalError,
    InvalidParams,
    MissingClientCapability,
    OutputTooLarge,
    ToolFailure,
    Unanswered,
)
from mcpgreen.features.asking.scripts import AskingScript, ElicitationFiles
from mcpgreen.features.call import Call
from mcpgreen.protocol.input import requests
from mcpgreen.running.processes.run import Deadline, Ending, Limits, Outcome, Script, ScriptRun
from mcpgreen.running.runner import run_script
from mcpgreen.running.scripts import results
from mcpgreen.running.scripts.channel import Channel
from mcpgreen.running.scripts.environment import Environment
from mcpgreen.running.scripts.scratch import CallFiles
from mcpgreen.running.system import MAX_SECS
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.logs.last_words import LastWords

Failure = type[ToolFailure] | type[InternalError]

MAX_ROUNDS = 10  # of a script that prints its input requests and is run again with the answers


def named_item(call: Call, snapshot: Snapshot, noun: str) -> Any:
    """Return the item that a request names. Raises InvalidParams if there is none."""
    name = call.params.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidParams(f"{noun} name is required")
    item = snapshot.by_name.get(name)
    if item is None:
        raise InvalidParams(f"{noun} '{name}' not found")
    return item


class ScriptFiles:
    """The temporary files of one script of a call, inside of `with`. At the end they are removed and the helpers of the
    script stopped. The next script of the call gets another serial, and so other files."""

    def __init__(self, call: Call) -> None:
        services, run = call.services, call.run
        assert run is not None
        services.runner.prepare()  # first: the guardian has to be there to remove the files after a crash
        self._call = call
        self._run = run
        self._files = run.files = services.state_dir.new_call(call.serial)
        if journal.tells_frames:
            journal.debug("request %r to %s is call %d", call.id, call.method, call.serial)

    def __enter__(self) -> CallFiles:
        return self._files

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        call = self._call
        self._run.files = None  # from now on a cancellation has no script to tell
        if kind is not None and issubclass(kind, gevent.GreenletExit):
            # The script may still be looking for its cancel file.
            call.services.runner.after_stopping(self._files.remove)
        elif kind is not None:
            self._files.remove()
        call.stop_helpers()
        call.serial = call.services.next_serial()


class Reports:
    """Passes on what a script writes on its control pipe: progress, log messages and input requests."""

    def __init__(self, call: Call, deadline: Deadline) -> None:
        self._call = call
        self._deadline = deadline
        self._asking: AskingScript | None = None
        self.log = call.log
        assert call.run is not None
        call.run.deadline = deadline

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._deadline.progressed()
        self._call.progress(progress, total, message)

    def begin_task(self) -> None:
        begins = self._call.promotion or self._call.task
        if begins is not None:
            begins.begin()

    @property
    def has_room(self) -> bool:
        return self._asking is None or self._asking.has_room

    def asking_script(self) -> AskingScript:
        """Return one object for both control pipe and elicitation by file, so that their input requests take turns."""
        if self._asking is None:
            self._asking = AskingScript(self._call, self._deadline)
        return self._asking

    def ask(self, asked: object, reply: object, timeout_secs: float | None, *, size_bytes: int) -> None:
        """Ask for a script; `reply` is the place for the answers, or a function that takes them."""
        if not callable(reply):
            self.asking_script().ask(asked, reply, timeout_secs, size_bytes=size_bytes)
        elif not self._call.is_cancelled:
            self.asking_script().begin(asked, timeout_secs, reply, size_bytes=size_bytes)


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
    """Run a script with the SDK at hand. `env` has the variables that several calls share. Return how the script ended,
    its error report and its report of embedded resources."""
    services, interaction = call.services, call.interaction
    assert call.run is not None
    with ScriptFiles(call) as files:
        services.environment.add_call(
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
        if call.task is not None:
            env[b"MCP_TASK_ATTEMPT"] = b"%d" % call.task.attempt
        reports = Reports(call, deadline)
        feed, hear_stderr = Channel(reports).feed, call.run.hear_stderr
        run = ScriptRun(script, env, deadline, limits, call.serial, feed, call.stream.owner, on_start=hear_stderr)
        can_elicit = call.client_variables["MCP_ELICIT_SUPPORTED"] == "1"
        with ElicitationFiles(files, reports.asking_script) if can_elicit else nullcontext():
            outcome = run_script(services.runner, run)
        call.run.output_place = outcome.place
        call.run.note_end(outcome)
        call.stop_helpers()  # before the reports are taken: an answer that comes later would leave its file behind
        return outcome, *files.take_reports()


@contextmanager
def explained(label: str, failure: Failure) -> Iterator[None]:
    """Name the script in the error for an input request without an answer. For a tool it is always a ToolFailure: a
    model can read that, while few clients show the model the protocol's own errors."""
    try:
        yield
    except MissingClientCapability as error:
        if failure is ToolFailure:
            raise ToolFailure(f"{label} cannot run here: {error.message}") from error
        raise MissingClientCapability(f"{label}: {error.message}", data=error.data) from error
    except Unanswered as error:
        raise failure(f"{label} asked a question and got no answer: {error}") from error


def take_answers(call: Call, label: str, asked: object, state: object, *, failure: Failure) -> None:
    """Ask what a script printed, so that it can be run again with the answers and its state. Raises `failure` for input
    requests that make no sense, and as `explained`."""
    fault = requests.fault_of(asked) or requests.fault_of_state(state)
    if fault or not isinstance(asked, dict) or not (state is None or isinstance(state, str)):
        raise failure(f"{label} sent an invalid question: {fault}")
    with explained(label, failure):
        call.interaction.answers |= call.services.asking.ask(call, asked, own_state=state, knows_answers=False)
    call.interaction.own_state = state
    call.interaction.unmet_needs = []


def output_or_error(call: Call, label: str, outcome: Outcome, timeout_secs: float) -> list[bytes]:
    """Return what a script printed. Raises OutputTooLarge and InternalError if it failed."""
    if outcome.ended_by in (Ending.STDOUT_LIMIT, Ending.STDERR_LIMIT):
        raise OutputTooLarge(f"{label} printed too much")
    if outcome.ended_by == Ending.DEADLINE:
        raise InternalError(f"{label} timed out after {timeout_secs:g}s")
    if outcome.exit_code != 0:
        raise InternalError(f"{label} failed: {results.reason_of(outcome, last_words_of(call, outcome))}")
    return outcome.stdout


def last_words_of(call: Call, outcome: Outcome) -> LastWords:
    """Return the part of a failed script's stderr that the client may read."""
    return call.services.confidential.last_words(outcome.stderr, call)


def encoded(value: Mapping[str, object], what: str) -> bytes:
    """Write a client's object as JSON for a script. Raises InvalidParams for a number such as 1e999."""
    if not value:
        return b"{}"
    try:
        return jsontext.dumps(value)
    except ValueError as error:
        raise InvalidParams(f"{what} cannot be passed on as JSON: a number is out of range.") from error


def as_text(value: object) -> str:
    """Return a string unchanged, and any other value as JSON. Raises ValueError for a number such as 1e999."""
    return value if isinstance(value, str) else jsontext.dumps(value).decode("ascii")


def allowed_secs(call: Call, own_secs: float, cap_secs: float = 0) -> float:
    """Return how long a script may run. A client may ask for another time than the script's `own_secs` (`timeoutSecs`
    in the parameters, an extension): up to the cap, or up to `own_secs` if that is more."""
    secs = call.params.get("timeoutSecs")
    if secs is None:
        return own_secs
    if type(secs) not in (int, float) or not 0 < secs <= MAX_SECS:
        raise InvalidParams(f"timeoutSecs must be a positive number up to {MAX_SECS:g}.")
    return min(float(secs), max(own_secs, cap_secs or call.services.settings.max_timeout_secs))
