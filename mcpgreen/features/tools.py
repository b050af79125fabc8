"""`tools/call`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from gevent.lock import Semaphore

from mcpgreen import journal, jsontext
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.catalog.tools import Tool
from mcpgreen.errors import InternalError, InvalidParams, MissingClientCapability, ScriptAsks, ToolFailure, Unanswered
from mcpgreen.features.call import Call, Reports
from mcpgreen.features.scripts import encoded, files_of, requested_secs
from mcpgreen.protocol import questions, schemas, shapes
from mcpgreen.running import embedding, policy, results
from mcpgreen.running.channel import Channel
from mcpgreen.running.deadline import Deadline
from mcpgreen.running.process import Outcome
from mcpgreen.running.starting import Script, run_script

Json = dict[str, Any]

MAX_ROUNDS = 10
NO_TURN: AbstractContextManager[None] = nullcontext()


def call_tool(call: Call) -> Json:
    services = call.services
    snapshot, tool = call.target
    arguments = call.params.get("arguments")
    if arguments is None:
        arguments = {}
    if type(arguments) is not dict:
        raise InvalidParams("arguments must be an object.")
    settings = services.settings
    policy.require_allowed(tool.name, allowlist=settings.tool_allowlist, allow_default=settings.tool_allow_default)
    policy.require_safe(tool.name, _real_path(call, snapshot, tool))
    services.policy.require_allowed(tool.name, _entry_json(snapshot, tool))
    _require_valid_arguments(snapshot, tool, arguments)
    if tool.needs:
        _require_needs(call, tool)
    if tool.interaction == "park" and "requestState" not in call.params:
        call.memo = {}  # answers to questions that it has not asked
    for _ in range(MAX_ROUNDS):
        try:
            return _run_once(call, snapshot, tool, arguments)
        except ScriptAsks as script:
            _take_answers(call, tool, script)
    raise ToolFailure(f"Tool '{tool.name}' asked {MAX_ROUNDS} times without coming to an end.")


def _run_once(call: Call, snapshot: Snapshot, tool: Tool, arguments: Json) -> Json:
    with files_of(call) as files:
        deadline, expected = _terms(call, snapshot, tool)
        outcome = _run(call, snapshot, tool, arguments, deadline)
        if deadline.extends:
            reason = "max_exceeded" if deadline.is_at_cap else "idle"
            expected = expected._replace(timeout_reason=reason)
        error_report, resources_report = files.take_reports()
        blocks = _embedded(call, resources_report) if resources_report else []
        if call.unmet_needs and call.is_stateless and results.has_failed(outcome) and not error_report.strip():
            raise _gave_up(call, tool, outcome)
        return results.tool_result(outcome, expected, error_report=error_report, resources=blocks)


def _require_needs(call: Call, tool: Tool) -> None:
    """A tool that will ask does not start for a client that cannot be asked."""
    try:
        questions.require_met(tool.needs, call.view.capabilities, call.view.revision)
    except MissingClientCapability as error:
        raise _cannot_be_asked(call, tool, error) from error


def _take_answers(call: Call, tool: Tool, script: ScriptAsks) -> None:
    """Ask what a script printed, so that it can be run again with the answers."""
    asked = script.questions
    fault = questions.fault_of(asked)
    if fault or not isinstance(script.state, (str, type(None))):
        raise ToolFailure(f"Tool '{tool.name}' asks what cannot be asked: {fault or 'requestState must be a string'}")
    try:
        answers = call.services.asking().ask(call, asked, own_state=script.state, knows_answers=False)
    except MissingClientCapability as error:
        raise _cannot_be_asked(call, tool, error) from error
    except Unanswered as error:
        raise ToolFailure(f"Tool '{tool.name}' asked, and there is no answer: {error}") from error
    call.memo = {**call.memo, **answers}
    call.own_state = script.state


def _cannot_be_asked(call: Call, tool: Tool, error: MissingClientCapability) -> Exception:
    """A stateless client can repeat the request with more capabilities; of others only the model can make sense."""
    text = f"Tool '{tool.name}' cannot run here: {error.message}"
    return MissingClientCapability(text, data=error.data) if call.is_stateless else ToolFailure(text)


def _gave_up(call: Call, tool: Tool, outcome: Outcome) -> MissingClientCapability:
    """A script that could not ask, and failed: the client may repeat the request with more capabilities."""
    needs = list(dict.fromkeys(call.unmet_needs))
    reason = results.reason_of(outcome)
    text = f"Tool '{tool.name}' failed without a client that has {', '.join(needs)}: {reason}"
    return questions.missing_capability(text, needs)


def may_repeat(call: Call) -> bool:
    """Whether running the tool a second time is as good as going on with the first."""
    _, tool = call.target
    if tool.interaction != "auto":
        return bool(tool.interaction == "replay")
    hints = tool.definition.get("annotations", {})
    return bool(hints.get("readOnlyHint") or hints.get("idempotentHint"))


def runs_script(call: Call) -> bool:
    """Find the tool. It always takes a process."""
    call.target = _named_tool(call)
    return True


def turn(call: Call) -> AbstractContextManager[Any]:
    """What a call waits for when its tool says how many of it may run at a time."""
    _, tool = call.target
    if tool.max_concurrent is None:
        return NO_TURN
    semaphore: AbstractContextManager[Any] = call.services.turns.setdefault(
        (tool.name, tool.max_concurrent), Semaphore(tool.max_concurrent)
    )
    return semaphore


def fit_result(call: Call, result: Json) -> Json:
    return shapes.fit_call_result(result, call.view.revision)


def _named_tool(call: Call) -> tuple[Snapshot, Tool]:
    """The tool that a call names, with the snapshot that it is from."""
    name = call.params.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidParams("Tool name is required")
    snapshot = call.services.catalog.snapshot("tools")
    if name not in snapshot.by_name:
        snapshot = call.services.snapshot("tools")  # it may have come this very moment
    tool = snapshot.by_name.get(name)
    if tool is None:
        raise InvalidParams(f"Tool '{name}' not found")
    return snapshot, tool


def argument_problems(snapshot: Snapshot, tool: Tool, arguments: Json) -> list[str]:
    """What is wrong with the arguments, by the tool's inputSchema."""
    return _problems(snapshot, tool, "inputSchema", arguments)


def _require_valid_arguments(snapshot: Snapshot, tool: Tool, arguments: Json) -> None:
    problems = argument_problems(snapshot, tool, arguments)
    if problems:
        raise ToolFailure(f"Invalid arguments for tool '{tool.name}': " + "; ".join(problems))


def _problems(snapshot: Snapshot, tool: Tool, which: str, value: Any) -> list[str]:
    """What is wrong with a value by one of the tool's schemas. Schemas are compiled once per snapshot."""
    key = (which, tool.name)
    checker: schemas.Checker | None = snapshot.cache.get(key)
    try:
        if checker is None:
            noun = "argument" if which == "inputSchema" else "property"
            checker = snapshot.cache[key] = schemas.compile_schema(tool.definition[which], noun=noun)
        return checker.problems(value)
    except schemas.BadSchema as error:
        raise InternalError(f"Tool '{tool.name}' has an unusable {which}: {error}") from error


def _real_path(call: Call, snapshot: Snapshot, tool: Tool) -> str:
    """Where the script really lies, made sure once per snapshot."""
    key = ("real path", tool.name)
    path: str | None = snapshot.cache.get(key)
    if path is None:
        path = policy.path_inside(tool.name, tool.path, directory=call.services.project.tools_dir)
        snapshot.cache[key] = path
    return path


def _entry_json(snapshot: Snapshot, tool: Tool) -> bytes:
    key = ("entry", tool.name)
    encoded: bytes | None = snapshot.cache.get(key)
    if encoded is None:
        encoded = snapshot.cache[key] = jsontext.dumps(tool.registry_entry)
    return encoded


def _terms(call: Call, snapshot: Snapshot, tool: Tool) -> tuple[Deadline, results.Expectation]:
    """How long the tool may take and what is expected of its output."""
    settings = call.services.settings
    secs = requested_secs(call) or tool.timeout_secs or settings.default_tool_timeout
    extends = tool.progress_extends_timeout
    if extends is None:
        extends = settings.progress_extends_timeout
    cap_secs = tool.max_timeout_secs or settings.max_timeout_secs
    expected = results.Expectation(
        stdout_limit_bytes=settings.max_tool_output_size,
        stderr_limit_bytes=settings.max_tool_stderr_size or settings.max_tool_output_size,
        stderr_tail_bytes=settings.tool_stderr_tail_limit if settings.tool_stderr_capture else 0,
        timeout_secs=secs,
        timeout_hint=tool.timeout_hint,
        max_timeout_secs=cap_secs,
        output_problems=(
            partial(_problems, snapshot, tool, "outputSchema") if "outputSchema" in tool.definition else None
        ),
    )
    return Deadline(secs, extends=extends, cap_secs=cap_secs), expected


def _run(call: Call, snapshot: Snapshot, tool: Tool, arguments: Json, deadline: Deadline) -> Outcome:
    services = call.services
    assert call.files is not None
    env = services.environment.for_call(
        call.files,
        about_the_tool=_variables(snapshot, tool),
        about_the_roots=call.roots.variables,
        entry_json=_entry_json(snapshot, tool),
        arguments_json=encoded(arguments, "arguments"),
        meta_json=encoded(call.params.get("_meta") or {}, "_meta"),
        worker_key=call.worker_key,
        progress_token=call.token,
        about_the_client=call.about_the_client,
        answers_json=jsontext.dumps(call.memo) if call.memo else b"",
        own_state=call.own_state,
    )
    script = Script(f"Tool '{tool.name}'", tool.path, tool.command)
    channel = Channel(Reports(call, deadline))
    return run_script(services.runner, script, env=env, deadline=deadline, on_control=channel.feed)


def _variables(snapshot: Snapshot, tool: Tool) -> dict[str, str]:
    """What every run of this tool sees, put together once per snapshot."""
    key = ("variables", tool.name)
    variables: dict[str, str] | None = snapshot.cache.get(key)
    if variables is None:
        variables = {"MCP_TOOL_NAME": tool.name, "MCP_TOOL_PATH": tool.path}
        if tool.progress_extends_timeout is not None:
            variables["MCPBASH_PROGRESS_EXTENDS_TIMEOUT"] = "true" if tool.progress_extends_timeout else "false"
        if tool.max_timeout_secs:
            variables["MCPBASH_MAX_TIMEOUT_SECS"] = f"{tool.max_timeout_secs:g}"
        if tool.timeout_hint:
            variables["MCPBASH_TIMEOUT_HINT"] = tool.timeout_hint
        snapshot.cache[key] = variables
    return variables


def _embedded(call: Call, report: bytes) -> list[Json]:
    services = call.services

    def warn(text: str) -> None:
        journal.warning("%s", text)
        call.log("warning", "mcp.tools", text)

    return embedding.embedded_resources(
        report,
        base=services.project.root,
        roots=call.roots.paths,
        limit_bytes=services.settings.max_tool_output_size,
        warn=warn,
    )
