"""`tools/call`: check the arguments, run the tool's script, and turn its output into a result.

What is the same for all calls of a tool (its script, schemas and limits) is put together once per snapshot, as
`ToolTerms`.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import gevent

from mcpgreen import journal
from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.catalog.tools import Tool
from mcpgreen.errors import (
    Denied,
    InternalError,
    InvalidParams,
    MethodNotFound,
    MissingClientCapability,
    ScriptAsks,
    ToolFailure,
    UnexpectedOutput,
)
from mcpgreen.features.call import Call, Route, Slot, State
from mcpgreen.features.scripts import (
    MAX_ROUNDS,
    allowed_secs,
    encoded,
    last_words_of,
    named_item,
    run_for,
    take_answers,
)
from mcpgreen.features.services import Services
from mcpgreen.protocol import revision_fields
from mcpgreen.protocol.input import requests
from mcpgreen.protocol.schemas.validator import BadSchema
from mcpgreen.running.processes.run import Deadline, Ending, Limits, Outcome, Script
from mcpgreen.running.schema_checks import Schema
from mcpgreen.running.scripts import embedding, results
from mcpgreen.running.scripts.environment import packed
from mcpgreen.running.scripts.results import Expectation, stray_in
from mcpgreen.running.scripts.shebang import may_use_shell_sdk
from mcpgreen.running.shares import Places
from mcpgreen.running.warm_python import lasting
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.logs.last_words import LastWords

SMALL_OUTPUT_BYTES = 65_536  # a call that holds more keeps its slot: slots bound how much is held
OPEN_LOOK_SECS = 0.05  # between two looks whether a question is still open
A_MOMENT_SECS = 0.1  # for a check, before the call leaves its slot: most checks are quick, and calls stay in order


def call_tool(call: Call, terms: ToolTerms) -> Json:
    tool = terms.tool
    if call.task is not None:
        call.task.require_same(terms)
    call.services.policy.require_allowed(tool.name, terms.entry_json, call.serial)
    terms.require_variables()
    arguments_json = _checked_arguments(call, terms)
    if tool.description.needs:
        _require_needs(call, tool)
    if tool.description.interaction == "park" and "requestState" not in call.params:
        call.interaction.answers = {}  # it has asked nothing yet, so nothing can be an answer
    for _ in range(MAX_ROUNDS):
        try:
            return _run_once(call, terms, arguments_json)
        except ScriptAsks as script:
            take_answers(call, terms.script.label, script.questions, script.state, failure=ToolFailure)
    raise ToolFailure(f"Tool '{tool.name}' asked {MAX_ROUNDS} times without finishing.")


def _checked_arguments(call: Call, terms: ToolTerms) -> bytes:
    """Check the arguments and return them as JSON for the script."""
    arguments = call.arguments
    if arguments is None:
        arguments = {}
    if type(arguments) is not dict:
        raise InvalidParams("arguments must be an object.")
    sent = encoded(arguments, "arguments")
    problems, arguments_json = terms.checked_arguments(arguments, sent, call)
    if problems:
        raise ToolFailure(f"Invalid arguments for tool '{terms.tool.name}'", problems=problems)
    call.keep_arguments_as(sent)  # as sent, not as checked: a client that comes back sends the same again
    return arguments_json


def _run_once(call: Call, terms: ToolTerms, arguments_json: bytes) -> Json:
    tool = terms.tool
    call.step_in()
    deadline, expected = terms.time_and_expectation(call)
    stays = tool.description.stays
    if stays is not None:
        from mcpgreen.features.residents import run_resident  # few projects have resident tools

        secs = expected.timeout_secs
        outcome, error_report, resources_report = run_resident(call, terms, stays, arguments_json, deadline, secs)
    else:
        script, variables, _ = terms.with_packages()
        outcome, error_report, resources_report = run_for(
            call,
            script,
            call.services.environment.with_more(variables, call.roots.variables, call.client_variables),
            entry_json=terms.entry_json,
            arguments_json=arguments_json,
            deadline=deadline,
            limits=terms.limits,
        )
    if call.task is not None:
        expected = expected._replace(timeout_secs=deadline.secs)  # it may have become a task meanwhile
    if deadline.extends:
        reason = "max_exceeded" if deadline.is_at_cap else "idle"
        expected = expected._replace(timeout_reason=reason)
    elif deadline.has_seen_progress and outcome.ended_by == Ending.DEADLINE:
        _warn(call, f"Tool '{tool.name}' reported progress; progressExtendsTimeout would extend its timeout.")
    blocks = _embedded(call, resources_report) if resources_report else []
    known: list[LastWords] = []

    def words() -> LastWords:
        if not known:
            known.append(last_words_of(call, outcome))
        return known[0]

    if place := results.bad_byte_in(outcome.stdout):
        _warn(call, f"Tool '{tool.name}' printed a byte that is not UTF-8 ({place}); {results.CONVERT}")
    try:
        result = results.tool_result(outcome, expected, error_report=error_report, resources=blocks, last_words=words)
    except UnexpectedOutput as failure:
        call.log("warning", "mcp.tools", f"Tool '{tool.name}': {failure.text}")  # stderr has the line of the call
        raise
    except ToolFailure as failure:
        if results.has_failed(outcome) and _fell_over_a_question(call, outcome, words()):
            needs = ", ".join(dict.fromkeys(call.interaction.unmet_needs))
            reason = results.reason_of(outcome, words())
            text = f"Tool '{tool.name}' failed, because the client does not support {needs}: {reason}"
            raise ToolFailure(text, meta=failure.meta, more_text=failure.more_text) from failure
        if "No module named" in failure.text and (remedy := terms.with_packages()[2]):
            raise ToolFailure(f"{failure.text}\n{remedy}", meta=failure.meta, more_text=failure.more_text) from failure
        raise
    if "structuredContent" not in result and (stray := stray_in(outcome.stdout)):
        _warn(call, f"Tool '{tool.name}' has no structured content: {stray.told()}")
    return result


def _require_needs(call: Call, tool: Tool) -> None:
    """Refuse the call if the tool will ask and the client cannot be asked. A stateless client gets the protocol's
    error: it can repeat the request with more capabilities."""
    try:
        requests.require_met(tool.description.needs, call.view.capabilities, call.view.revision)
    except MissingClientCapability as error:
        text = f"Tool '{tool.name}' cannot run here: {error.message}"
        raise (MissingClientCapability(text, data=error.data) if call.is_stateless else ToolFailure(text)) from error


def _fell_over_a_question(call: Call, outcome: Outcome, words: LastWords) -> bool:
    """Tell whether a script failed because it could not ask: its last words are the reason that it got, or it has
    none. A script that has other last words, or asked again, has gone on without the answer."""
    needs = call.interaction.unmet_needs
    left_silently = not words.last and outcome.exit_code <= 128  # above that, a signal killed it
    return bool(needs) and (left_silently or any(requests.lack_of(need) in words.last for need in needs))


def may_repeat(call: Call, terms: ToolTerms) -> bool:
    """Tell whether running the tool a second time is as good as going on with the first run."""
    tool = terms.tool
    if tool.description.interaction != "auto":
        return bool(tool.description.interaction == "replay")
    hints = tool.definition.get("annotations", {})
    return bool(hints.get("readOnlyHint") or hints.get("idempotentHint"))


def find_tool(call: Call) -> ToolTerms:
    snapshot = call.services.catalog.snapshot("tools")
    tool: Tool = named_item(call, snapshot, "Tool")
    call.require_scopes(tool.description.scopes)  # before the call waits, so that HTTP can answer with a status
    if tool.description.task == "required" or "task" in call.params:
        _require_task_allowed(call, tool)
    return terms_of(call.services, snapshot, tool)


def _require_task_allowed(call: Call, tool: Tool) -> None:
    """Refuse a call without a task if the tool needs one, and in the handshake era one with a task if it has none."""
    is_required, has_tasks = tool.description.task == "required", call.view.has_tasks
    if call.is_stateless:
        if is_required:
            call.view.require_tasks(f"Tool '{tool.name}' runs only as a task, which the client does not support.")
    elif is_required and not (has_tasks and "task" in call.params):
        raise MethodNotFound(f"Tool '{tool.name}' runs only as a task; add params.task.")
    elif has_tasks and "tasks" in call.services.offered and tool.description.task in (None, "never"):
        raise MethodNotFound(f"Tool '{tool.name}' does not run as a task; leave out params.task.")


def prepare_task(call: Call, terms: ToolTerms) -> Route[ToolTerms] | None:
    """Make the call a task, or see to it that it becomes one later; if its client supports tasks. Return another route
    if its task has to survive the client, or if a worker of the fleet runs it."""
    if call.task is not None:
        return None
    is_wanted = (call.session is None or "task" in call.params) and terms.task != "never" and call.view.has_tasks
    is_later = terms.tool.description.task_begins == "script" or (terms.task == "auto" and call.is_stateless)
    if terms.queue:
        return Route(find_tool, partial(_call_on_worker, may_begin=is_wanted, is_later=is_later))
    if not is_wanted:
        return None
    if terms.survives and call.services.tasks.keeper is not None:
        task = call.services.tasks.hand_over(call, terms, is_begun=not is_later)
        if task is not None:
            return Route(find_tool, lambda call, terms: call.services.tasks.follow(call, terms, task))
    if terms.task == "required":
        call.services.tasks.store.changed_since(-1)  # raises an error if no task can be stored
    if is_later:
        call.promotion = Promotion(call, terms)
    else:
        call.services.tasks.begin(call, terms)
    return None


def _call_on_worker(call: Call, terms: ToolTerms, *, may_begin: bool, is_later: bool) -> Json:
    """Have a worker of the fleet run the tool. All else is checked there, by the same project."""
    if terms.tool.description.needs:
        _require_needs(call, terms.tool)
    tasks = call.services.fleet
    sent = tasks.send(call, terms, may_begin=may_begin, is_begun=may_begin and not is_later)
    return tasks.follow_sent(call, terms, sent)


class Promotion:
    """A running call that may become a task: after some seconds, or as soon as its script says so; but not while it
    waits for an answer, because a question that was asked in the usual way is answered in the usual way."""

    def __init__(self, call: Call, terms: ToolTerms) -> None:
        self._call = call
        self._terms = terms
        self._greenlet: gevent.Greenlet | None = None
        self._timer = gevent.get_hub().loop.timer(terms.task_after_secs or 0)
        if terms.task_after_secs is not None:
            self._timer.start(self.begin)

    def begin(self) -> None:
        """Begin to make the call a task. Never waits."""
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._promote)

    def wait(self) -> None:
        """If that has begun, wait until it is done."""
        if self._greenlet is not None:
            self._greenlet.join()

    def settle(self) -> None:
        """The script has ended: from now on, the call stays what it is."""
        self.close()
        if not self._call.is_cancelled:
            self.wait()
        self._call.promotion = None  # breaks a reference cycle, or each call would wait for the garbage collector

    def close(self) -> None:
        self._timer.close()

    def _promote(self) -> None:
        call = self._call
        while call.interaction.state in (State.ASKING, State.PARKED):
            gevent.sleep(OPEN_LOOK_SECS)
        if call.view.has_tasks and not call.is_cancelled:
            with suppress(InternalError):  # it goes on without a task
                call.services.tasks.begin(call, self._terms)


def turn(call: Call, terms: ToolTerms) -> Slot | None:
    """Return the place that a call waits for if its tool has `maxConcurrent`, or a resident process."""
    tool, stays, most = terms.tool, terms.tool.description.stays, terms.tool.description.max_concurrent
    if stays is not None:
        from mcpgreen.features.residents import pool_for

        return Slot(pool_for(call, terms, stays).places, call.stream.owner, is_kept=True)
    if most is None:
        return None
    places = call.services.turns.setdefault(tool.name, Places(most))
    places.resize(most)  # calls that run already count, also if the limit was another one
    return Slot(places, call.stream.owner)


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
    """Tell the author of the tool, on stderr and in the client's log."""
    journal.warning("%s", text)
    call.log("warning", "mcp.tools", text)


def terms_of(services: Services, snapshot: Snapshot, tool: Tool) -> ToolTerms:
    key = ("terms", tool.name)
    terms: ToolTerms | None = snapshot.cache.get(key)
    if terms is None:
        terms = snapshot.cache[key] = ToolTerms(services, tool)
    return terms


class ToolTerms:
    """What every call of a tool needs to know of it."""

    def __init__(self, services: Services, tool: Tool) -> None:
        settings = services.settings
        described = tool.description
        extends, warm = described.progress_extends_timeout, described.warm
        self.tool = tool
        self._has_output_schema = "outputSchema" in tool.definition
        self._checks = services.schema_checks
        self._schemas: dict[str, Schema] = {}
        is_strict = described.strict_arguments
        self._is_lenient = not (settings.strict_arguments if is_strict is None else is_strict)
        self._extends = settings.progress_extends_timeout if extends is None else extends
        self._cap_secs = described.max_timeout_secs or settings.max_timeout_secs
        self.task = described.task or ("auto" if settings.tasks == "auto" else "never")
        self.task_secs = max(described.timeout_secs or 0.0, described.task_timeout_secs or 0.0)
        self.task_secs = self.task_secs or settings.task_timeout_secs
        survives = described.task_survives_client
        self.survives = settings.tasks_survive_client if survives is None else survives
        after_secs = settings.task_after_secs if described.task_after_secs is None else described.task_after_secs
        self.task_after_secs = None if described.task_begins == "script" else after_secs
        self.queue = services.queue_of(tool)
        self.limits = Limits.of(settings)
        self._expected = Expectation(
            stdout_limit_bytes=self.limits.stdout_bytes,
            stderr_limit_bytes=self.limits.stderr_bytes,
            stderr_tail_bytes=settings.tool_stderr_tail_limit,
            timeout_secs=described.timeout_secs or settings.default_tool_timeout,
            meta_on=settings.result_meta,
            timeout_hint=described.timeout_hint,
            max_timeout_secs=self._cap_secs,
            response_limit_bytes=settings.max_response_bytes,
        )
        ground = services.project.ground(services.project.tools_dir)
        self.script = Script(
            f"Tool '{tool.name}'",
            tool.path,
            tool.command,
            ground,
            warm=tuple(warm) if isinstance(warm, list) else () if warm else None,  # modules to load ahead
            wants_table=may_use_shell_sdk(tool.path),
        )
        self._project = services.project
        self._path = services.environment.base["PATH"]
        self.entry_json = jsontext.dumps(tool.registry_entry)
        names = [each.removesuffix("!") for each in described.env]
        passed = {name: services.environ[name] for name in names if name in services.environ}
        if passed:
            services.confidential.add(passed.values())
        if lasting(packed(passed)):
            self.script = self.script._replace(warm=None)  # a helper would keep them for other calls
        self.variables = {**_variables(tool), **passed}

    def with_packages(self) -> tuple[Script, dict[str, str], str]:
        """Return the script with the Python that has its packages, its variables, and what to do if it lacks a module:
        without an installed `requirements.txt`, it may have its packages from elsewhere. Raises ToolFailure, Denied."""
        if self.script.wants_table:  # a shell script
            return self.script, self.variables, ""
        from mcpgreen.running.scripts import packages  # not before the first answer

        root = self._project.root
        needed = packages.packages_of(root, self.tool.path)
        if needed is None:
            return self.script, self.variables, ""
        if needed.are_installed:
            programs = f"{needed.place}/bin"
            if problem := self._project.ground(f"{root}/{packages.PLACE}").problem_with_directory(programs):
                raise Denied(f"{self.script.label} cannot use its packages: {problem}")
            variables = {"PATH": f"{programs}:{self._path}", "VIRTUAL_ENV": needed.place, **self.variables}
            return self.script._replace(command=[needed.interpreter, self.tool.path]), variables, ""
        if needed.is_optional:
            return self.script, self.variables, f"{packages.REQUIREMENTS} is not installed: {packages.REMEDY}."
        person = f"Ask the person who runs this server to {packages.REMEDY}."
        raise ToolFailure(f"{self.script.label} needs {needed.lack}. {person}")

    def require_variables(self) -> None:
        """Raises ToolFailure if the tool needs a variable that the server does not have."""
        needed = [each[:-1] for each in self.tool.description.env if each.endswith("!")]
        if missing := [name for name in needed if not self.variables.get(name)]:
            set_them = (
                f"set {'it' if len(missing) == 1 else 'them'}, for example with the --env option of mcpgreen config"
            )
            text = f"Tool '{self.tool.name}' needs {' and '.join(missing)} in the server's environment."
            raise ToolFailure(f"{text} Ask the person who runs this server to {set_them}, and to restart it.")

    def checked_arguments(self, arguments: Json, encoded: bytes, call: Call | None = None) -> tuple[list[str], bytes]:
        """Check the arguments, which are also given as JSON, by the tool's inputSchema. Return the problems, and the
        JSON for its script. May wait; the call has left its places then."""
        return self._judge("inputSchema", "argument", arguments, encoded, call, is_lenient=self._is_lenient)

    def time_and_expectation(self, call: Call) -> tuple[Deadline, Expectation]:
        """Return how long a call that begins now may take, and what is expected of its output."""
        expected = self._expected
        if self._has_output_schema:
            expected = expected._replace(output_problems=partial(self._output_problems, call))
        if call.task is not None and not call.task.is_plain:
            expected = expected._replace(timeout_secs=self.task_secs)
        if "timeoutSecs" in call.params:
            expected = expected._replace(timeout_secs=allowed_secs(call, expected.timeout_secs, self._cap_secs))
        return Deadline(expected.timeout_secs, extends=self._extends, cap_secs=self._cap_secs), expected

    def _output_problems(self, call: Call, value: object) -> list[str]:
        encoded = jsontext.dumps(value)
        return self._judge("outputSchema", "property", value, encoded, call, is_lenient=False)[0]

    def _judge(
        self, which: str, noun: str, value: object, encoded: bytes, call: Call | None, *, is_lenient: bool
    ) -> tuple[list[str], bytes]:
        try:
            schema = self._schemas.get(which)
            if schema is None:
                schema = self._schemas[which] = Schema(self.tool.definition[which], noun=noun)
            valid = schema.judge_at_once(value, encoded, is_lenient=is_lenient)
            if valid is not None:
                return [], valid
            if call is None:
                return self._checks.judge(schema, encoded, is_lenient=is_lenient)
            may_leave = which == "inputSchema" or len(encoded) <= SMALL_OUTPUT_BYTES
            leaving = gevent.spawn_later(A_MOMENT_SECS, call.step_aside) if may_leave else None
            try:
                return self._checks.judge(schema, encoded, is_lenient=is_lenient, owner=call.stream.owner)
            finally:
                if leaving is not None:
                    leaving.kill(block=False)
        except BadSchema as error:
            raise InternalError(f"Tool '{self.tool.name}' has an invalid {which}: {error}") from error


def _variables(tool: Tool) -> dict[str, str]:
    """Return the variables that every run of this tool has."""
    variables = {"MCP_TOOL_NAME": tool.name, "MCP_TOOL_PATH": tool.path}
    described = tool.description
    if described.progress_extends_timeout is not None:
        variables["MCPBASH_PROGRESS_EXTENDS_TIMEOUT"] = "true" if described.progress_extends_timeout else "false"
    if described.max_timeout_secs:
        variables["MCPBASH_MAX_TIMEOUT_SECS"] = f"{described.max_timeout_secs:g}"
    if described.timeout_hint:
        variables["MCPBASH_TIMEOUT_HINT"] = described.timeout_hint
    return variables


CALL = Route(
    find_tool,
    call_tool,
    needs_process=lambda call, terms: True,
    may_repeat=may_repeat,
    turn=turn,
    fit=revision_fields.fit_call_result,
    prepare=prepare_task,
)
