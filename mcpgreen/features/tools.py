"""`tools/call`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcpgreen import journal
from mcpgreen.catalog.tools import Tool
from mcpgreen.errors import (
    InvalidParams,
    MissingClientCapability,
    ScriptAsks,
    ToolFailure,
    Unanswered,
    UnexpectedOutput,
)
from mcpgreen.features.call import Call
from mcpgreen.features.prepared_tool import ToolTerms, terms_of
from mcpgreen.features.run import Places, Slot
from mcpgreen.features.scripts import MAX_ROUNDS, encoded, run_for, take_answers
from mcpgreen.protocol.input import requests
from mcpgreen.running.processes.process import Ending, Outcome
from mcpgreen.running.scripts import embedding, results
from mcpgreen.running.scripts.stray_text import stray_in
from mcpgreen.text.json_types import Json


def call_tool(call: Call) -> Json:
    services = call.services
    snapshot, tool = call.target
    terms = terms_of(services, snapshot, tool)
    services.policy.require_allowed(tool.name, terms.entry_json, call.serial)
    arguments_json = _checked_arguments(call, tool, terms)
    if tool.description.needs:  # one that will ask does not start for a client that cannot be asked
        with _explained(call, tool):
            requests.require_met(tool.description.needs, call.view.capabilities, call.view.revision)
    if tool.description.interaction == "park" and "requestState" not in call.params:
        call.interaction.answers = {}  # answers to what it has not asked
    for _ in range(MAX_ROUNDS):
        try:
            return _run_once(call, tool, terms, arguments_json)
        except ScriptAsks as script:
            with _explained(call, tool):
                take_answers(call, f"Tool '{tool.name}'", script.questions, script.state, failure=ToolFailure)
    raise ToolFailure(f"Tool '{tool.name}' asked {MAX_ROUNDS} times without coming to an end.")


def _checked_arguments(call: Call, tool: Tool, terms: ToolTerms) -> bytes:
    """The arguments as JSON for the script; if what the client sent is large, that is kept in this form alone."""
    arguments = call.arguments
    if arguments is None:
        arguments = {}
    if type(arguments) is not dict:
        raise InvalidParams("arguments must be an object.")
    sent = encoded(arguments, "arguments")
    problems, arguments_json = terms.checked_arguments(arguments, sent)
    if problems:
        raise ToolFailure(f"Invalid arguments for tool '{tool.name}'", problems=problems)
    call.keep_arguments_as(sent)  # not what was made of it: a client that comes back sends the same again
    return arguments_json


def _run_once(call: Call, tool: Tool, terms: ToolTerms, arguments_json: bytes) -> Json:
    deadline, expected = terms.time_and_expectation(call)
    outcome, error_report, resources_report = run_for(
        call,
        terms.script,
        terms.environment(call.roots.variables, call.about_the_client),
        entry_json=terms.entry_json,
        arguments_json=arguments_json,
        deadline=deadline,
        limits=terms.limits,
    )
    if deadline.extends:
        reason = "max_exceeded" if deadline.is_at_cap else "idle"
        expected = expected._replace(timeout_reason=reason)
    elif deadline.has_seen_progress and outcome.ended_by == Ending.DEADLINE:
        _warn(call, f"Tool '{tool.name}' reported progress, which extends no time without progressExtendsTimeout.")
    blocks = _embedded(call, resources_report) if resources_report else []
    try:
        result = results.tool_result(outcome, expected, error_report=error_report, resources=blocks)
    except UnexpectedOutput as failure:
        call.log("warning", "mcp.tools", f"Tool '{tool.name}': {failure.text}")  # stderr has the line of the call
        raise
    except ToolFailure:
        if call.is_stateless and _failed_for_want_of_an_answer(call, outcome):
            raise _gave_up(call, tool, outcome) from None
        raise
    if "structuredContent" not in result and (stray := stray_in(outcome.stdout)):
        _warn(call, f"Tool '{tool.name}' has no structured content: {stray.told()}")
    return result


@contextmanager
def _explained(call: Call, tool: Tool) -> Iterator[None]:
    """Who cannot be asked: a stateless client can repeat the request with more capabilities; of others only the model
    can make sense."""
    try:
        yield
    except MissingClientCapability as error:
        text = f"Tool '{tool.name}' cannot run here: {error.message}"
        raise (MissingClientCapability(text, data=error.data) if call.is_stateless else ToolFailure(text)) from error
    except Unanswered as error:
        raise ToolFailure(f"Tool '{tool.name}' asked, and there is no answer: {error}") from error


def _failed_for_want_of_an_answer(call: Call, outcome: Outcome) -> bool:
    """Whether a script failed because it could not ask: its last words are what it was told then, or it left without
    any. One that says something else, or asked again, has gone on without the answer."""
    if not call.interaction.unmet_needs or not results.has_failed(outcome):
        return False
    words = results.last_words(outcome)
    left_silently = not words and outcome.exit_code <= 128  # above that it was killed
    return left_silently or any(requests.lack_of(need) in words for need in call.interaction.unmet_needs)


def _gave_up(call: Call, tool: Tool, outcome: Outcome) -> MissingClientCapability:
    """A script that could not ask, and failed: the client may repeat the request with more capabilities."""
    needs = list(dict.fromkeys(call.interaction.unmet_needs))
    reason = results.last_words(outcome) or results.reason_of(outcome)
    text = f"Tool '{tool.name}' failed without a client that has {', '.join(needs)}: {reason}"
    return requests.missing_capability(text, needs)


def may_repeat(call: Call) -> bool:
    """Whether running the tool a second time is as good as going on with the first."""
    _, tool = call.target
    if tool.description.interaction != "auto":
        return bool(tool.description.interaction == "replay")
    hints = tool.definition.get("annotations", {})
    return bool(hints.get("readOnlyHint") or hints.get("idempotentHint"))


def runs_script(call: Call) -> bool:
    """Find the tool, with the snapshot that it is from. It always takes a process; if one has to look for it first,
    that of the look."""
    name = call.params.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidParams("Tool name is required")
    snapshot = call.services.catalog.snapshot("tools")
    if name not in snapshot.by_name:
        snapshot = call.services.snapshot("tools")  # it may have come this very moment
    tool = snapshot.by_name.get(name)
    if tool is not None:
        call.require_scopes(tool.description.scopes)  # before anything waits: HTTP can still say it by its status
        call.target = snapshot, tool
    elif not call.may_find_later("tools"):
        raise InvalidParams(f"Tool '{name}' not found")
    return True


def turn(call: Call) -> Slot | None:
    """What a call waits for when its tool says how many of it may run at a time."""
    _, tool = call.target
    most = tool.description.max_concurrent
    if most is None:
        return None
    turns = call.services.turns
    places = turns.get(tool.name)
    if places is None:
        places = turns[tool.name] = Places(most)
    places.resize(most)  # those that run already count, whatever the limit was then
    return Slot(places)


def _embedded(call: Call, report: bytes) -> list[Json]:
    services = call.services
    return embedding.embedded_resources(
        report,
        base=services.project.root,
        roots=call.roots.paths,
        private=services.project.private,
        limit_bytes=services.settings.max_tool_output_size,
        warn=lambda text: _warn(call, text),
    )


def _warn(call: Call, text: str) -> None:
    """Whoever wrote the tool should know, be it from our stderr or from the client's log."""
    journal.warning("%s", text)
    call.log("warning", "mcp.tools", text)
