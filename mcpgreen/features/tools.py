"""`tools/list` and `tools/call`."""

from __future__ import annotations

import errno
import time
from binascii import b2a_base64
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import gevent
from gevent.lock import Semaphore

from mcpgreen import journal, jsontext
from mcpgreen.catalog.discovery import Tool
from mcpgreen.catalog.registry import Snapshot
from mcpgreen.errors import InternalError, InvalidParams, RpcError, ToolFailure
from mcpgreen.features.call import Call
from mcpgreen.protocol import pagination, schemas, shapes
from mcpgreen.running import embedding, policy, results
from mcpgreen.running.channel import Channel
from mcpgreen.running.deadline import Deadline
from mcpgreen.running.process import Outcome

Json = dict[str, Any]

TOTAL_KEY = "mcpbash/total"
LIST_TTL_MS = 0  # a changed directory shows in the next list; a cached one would hide it
NO_TURN: AbstractContextManager[None] = nullcontext()
MAX_KEY_CHARS = 200
URL_SAFE = str.maketrans("+/", "-_")
BUSY_FILE_TRIES = 20
BUSY_FILE_PAUSE_SECS = 0.01


def list_tools(call: Call) -> bytes:
    """One page, encoded. A page is built once per snapshot and revision."""
    settings = call.services.settings
    snapshot = call.services.snapshot("tools")
    cursor = call.params.get("cursor", call.params.get("nextCursor"))
    start, stop, next_cursor = pagination.page(
        snapshot.total,
        cursor,
        limit=call.params.get("limit"),
        collection="tools",
        hash=snapshot.hash,
        timestamp=snapshot.generated_at,
        page_size=settings.page_size,
    )
    revision = call.view.revision
    key = (revision.name, start, stop)
    body: bytes | None = snapshot.cache.get(key)
    if body is None:
        tools = [shapes.fit_tool(tool.definition, revision) for tool in snapshot.items[start:stop]]
        page: Json = {"tools": tools, "ttlMs": LIST_TTL_MS, "_meta": {TOTAL_KEY: snapshot.total}}
        if next_cursor is not None:
            page["nextCursor"] = next_cursor
        body = jsontext.dumps(shapes.finish(page, revision, call.services.identity.info))
        snapshot.cache[key] = body
    return body


def call_tool(call: Call) -> Json:
    services = call.services
    snapshot, tool = _named_tool(call)
    arguments = call.params.get("arguments")
    if arguments is None:
        arguments = {}
    if type(arguments) is not dict:
        raise InvalidParams("arguments must be an object.")
    settings = services.settings
    policy.require_allowed(tool.name, allowlist=settings.tool_allowlist, allow_default=settings.tool_allow_default)
    policy.require_safe(tool.name, _real_path(call, snapshot, tool))
    _require_valid_arguments(snapshot, tool, arguments)
    services.runner.prepare()  # who would have to remove the files after a crash is there before them
    call.files = files = services.state_dir.new_call()
    try:
        deadline, expected = _terms(call, snapshot, tool)
        outcome = _run(call, snapshot, tool, arguments, deadline)
        if deadline.extends:
            reason = "max_exceeded" if deadline.is_at_cap else "idle"
            expected = expected._replace(timeout_reason=reason)
        error_report, resources_report = files.take_reports()
        blocks = _embedded(call, resources_report) if resources_report else []
        result = results.tool_result(outcome, expected, error_report=error_report, resources=blocks)
    except gevent.GreenletExit:
        # The script may still be looking for its cancel file.
        services.runner.after_stopping(files.remove)
        raise
    except Exception:
        files.remove()
        raise
    return result


def turn(call: Call) -> AbstractContextManager[Any]:
    """What a call waits for when its tool says how many of it may run at a time."""
    try:
        _, tool = _named_tool(call)
    except RpcError:
        return NO_TURN  # the handler will say it
    if tool.max_concurrent is None:
        return NO_TURN
    semaphore: AbstractContextManager[Any] = call.services.turns.setdefault(
        (tool.name, tool.max_concurrent), Semaphore(tool.max_concurrent)
    )
    return semaphore


def fit_result(call: Call, result: Json) -> Json:
    return shapes.fit_call_result(result, call.view.revision)


def worker_key(request_id: str | int) -> str:
    """A file name for a request: base64url of its JSON id, or a digest when that is too long."""
    text = jsontext.dumps(request_id)
    key = b2a_base64(text, newline=False).decode("ascii").rstrip("=").translate(URL_SAFE)
    if len(key) <= MAX_KEY_CHARS:
        return key
    import hashlib

    return hashlib.sha256(text).hexdigest()


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


def _encoded(value: Json, what: str) -> bytes:
    if not value:
        return b"{}"
    try:
        return jsontext.dumps(value)
    except ValueError as error:
        raise InvalidParams(f"{what} cannot be passed on as JSON: a number is out of range.") from error


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
    secs = _requested_secs(call) or tool.timeout_secs or settings.default_tool_timeout
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


def _requested_secs(call: Call) -> float | None:
    """`timeoutSecs` in the parameters, an extension: how long this client wants to wait."""
    secs = call.params.get("timeoutSecs")
    if secs is None:
        return None
    if type(secs) not in (int, float) or not 0 < secs < float("inf"):
        raise InvalidParams("timeoutSecs must be a positive number.")
    return float(secs)


class _Reports:
    """What the script reports goes to the call, and keeps its deadline away."""

    def __init__(self, call: Call, deadline: Deadline) -> None:
        self._call = call
        self._deadline = deadline
        self.log = call.log

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._deadline.progressed()
        self._call.progress(progress, total, message)


def _run(call: Call, snapshot: Snapshot, tool: Tool, arguments: Json, deadline: Deadline) -> Outcome:
    services = call.services
    assert call.files is not None
    env = services.environment.for_call(
        call.files,
        about_the_tool=_variables(call, snapshot, tool),
        entry_json=_entry_json(snapshot, tool),
        arguments_json=_encoded(arguments, "arguments"),
        meta_json=_encoded(call.params.get("_meta") or {}, "_meta"),
        worker_key=worker_key(call.id),
        progress_token=call.token,
    )
    channel = Channel(_Reports(call, deadline))
    started_at = time.monotonic()
    for command in (tool.command, ["/bin/sh", tool.path]):
        try:
            return _start(call, command, env, deadline, channel)
        except OSError as error:
            if error.errno == errno.ENOEXEC and command is tool.command:
                continue  # an executable text without a shebang: what a shell would do
            journal.error("tool %s cannot be started after %.3f s: %s", tool.name, time.monotonic() - started_at, error)
            raise InternalError(_why_not_started(tool, error)) from error
    raise InternalError(f"Tool '{tool.name}' could not be started.")


def _start(call: Call, command: list[str], env: dict[str, str], deadline: Deadline, channel: Channel) -> Outcome:
    for _ in range(BUSY_FILE_TRIES):
        try:
            return call.services.runner.run(command, env=env, deadline=deadline, on_control=channel.feed)
        except OSError as error:
            if error.errno != errno.ETXTBSY:
                raise
            gevent.sleep(BUSY_FILE_PAUSE_SECS)  # an editor or compiler is still writing the file
    return call.services.runner.run(command, env=env, deadline=deadline, on_control=channel.feed)


def _why_not_started(tool: Tool, error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return f"Tool '{tool.name}' could not be started: the file or its interpreter does not exist."
    if error.errno == errno.E2BIG:
        return f"Tool '{tool.name}' could not be started: its environment is too large."
    return f"Tool '{tool.name}' could not be started: {error.strerror}."


def _variables(call: Call, snapshot: Snapshot, tool: Tool) -> dict[str, str]:
    """What every run of this tool sees, put together once per snapshot."""
    key = ("variables", tool.name)
    variables: dict[str, str] | None = snapshot.cache.get(key)
    if variables is None:
        variables = {**call.services.roots.variables, "MCP_TOOL_NAME": tool.name, "MCP_TOOL_PATH": tool.path}
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
        roots=services.roots.paths,
        limit_bytes=services.settings.max_tool_output_size,
        warn=warn,
    )
