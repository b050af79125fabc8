"""Run a script for a request that is not a tool call: its output, or an error that says what went wrong.

Also what all requests that run a script have in common: values as JSON for its environment, and the client's patience.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gevent

from mcpgreen import jsontext
from mcpgreen.errors import InternalError, InvalidParams, OutputTooLarge
from mcpgreen.features.call import Call, Reports
from mcpgreen.running import results
from mcpgreen.running.channel import Channel
from mcpgreen.running.deadline import MAX_SECS, Deadline
from mcpgreen.running.process import Ending, Outcome
from mcpgreen.running.scratch import CallFiles
from mcpgreen.running.starting import Script, run_script

MAX_ROUNDS = 10  # of a script that prints its questions and is run again with the answers


class ScriptFiles:
    """Temporary files for the script of a call. Whatever happens to it, they go, and its helpers with them."""

    __slots__ = ("_call", "_files", "_run")

    def __init__(self, call: Call) -> None:
        services, run = call.services, call.run
        assert run is not None
        services.runner.prepare()  # who would have to remove the files after a crash is there before them
        self._call = call
        self._run = run
        self._files = run.files = services.state_dir.new_call()

    def __enter__(self) -> CallFiles:
        return self._files

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        self._run.files = None  # whoever cancels the call from now on has no script to tell
        if kind is not None and issubclass(kind, gevent.GreenletExit):
            # The script may still be looking for its cancel file.
            self._call.services.runner.after_stopping(self._files.remove)
        elif kind is not None:
            self._files.remove()
        self._call.stop_helpers()


def output_of(
    call: Call,
    script: Script,
    *,
    variables: Mapping[str, str],
    arguments: Mapping[str, Any],
    entry: Mapping[str, Any],
    timeout_secs: float,
) -> list[bytes]:
    """Run it in the environment of a tool, with its SDK at hand. Raises ScriptError for an error it chose itself."""
    services, interaction = call.services, call.interaction
    assert call.run is not None
    arguments_json = encoded(arguments, "arguments")
    meta_json = encoded(call.params.get("_meta") or {}, "_meta")
    with ScriptFiles(call) as files:
        common = services.environment.with_more(variables, call.roots.variables, call.about_the_client)
        env = services.environment.for_call(
            common,
            files,
            entry_json=jsontext.dumps(entry),
            arguments_json=arguments_json,
            meta_json=meta_json,
            worker_key=call.worker_key,
            progress_token=call.token,
            answers_json=jsontext.dumps(interaction.answers) if interaction.answers else b"",
            own_state=interaction.own_state,
        )
        deadline = Deadline(timeout_secs)
        channel = Channel(Reports(call, deadline))
        outcome = run_script(services.runner, script, env=env, deadline=deadline, on_control=channel.feed)
        call.run.output_place = outcome.place
        call.stop_helpers()
        error_report, _ = files.take_reports()
    if error_report.strip():
        raise results.chosen_error(error_report)
    return output_or_error(script.label, outcome, timeout_secs)


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


def allowed_secs(call: Call, own_secs: float, cap_secs: float = 0) -> float:
    """How long a script may take that has `own_secs` for itself. A client may choose another time (`timeoutSecs` in the
    parameters, an extension), but no place is its own for longer than the cap, or than the script may have anyway."""
    secs = call.params.get("timeoutSecs")
    if secs is None:
        return own_secs
    if type(secs) not in (int, float) or not 0 < secs <= MAX_SECS:
        raise InvalidParams(f"timeoutSecs must be a positive number up to {MAX_SECS:g}.")
    return min(float(secs), max(own_secs, cap_secs or call.services.settings.max_timeout_secs))
