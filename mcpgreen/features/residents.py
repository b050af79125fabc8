"""Have a resident process serve a call: choose the process, and send it the call.

A script that is started for each call finds everything in its environment. Here, what is the same for all calls is in
the environment of the process, and the rest is in the line of the call.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING

from mcpgreen.features.call import Call
from mcpgreen.features.scripts import Reports, encoded
from mcpgreen.running.processes.run import Deadline, Outcome, ScriptRun, Stays, unheard
from mcpgreen.running.processes.spawning import CALLS_FD, CONTROL_FD
from mcpgreen.running.resident.pools import Key, Pool
from mcpgreen.running.scripts import environment
from mcpgreen.running.system import MAX_SECS, stamp_of_file
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.features.tools import ToolTerms


def pool_for(call: Call, terms: ToolTerms, stays: Stays) -> Pool:
    """Return the processes that may serve the call. A stateless caller is known by its own token, or by its pipe; any
    other call has a process for itself."""
    scope: Hashable = None
    if stays.scope == "session":
        is_known = call.principal is not None and not call.principal.is_shared
        own = call.stream if call.stream.owner is None else call
        scope = call.session or (call.principal if is_known else own)
    return call.services.residents.pool(Key(terms.tool.staying[0], stays, scope, scope and call.principal))


def run_resident(
    call: Call, terms: ToolTerms, stays: Stays, arguments_json: bytes, deadline: Deadline, timeout_secs: float
) -> tuple[Outcome, bytes, bytes]:
    """Have the call served, as `run_for` does. Its time begins when it is sent to a process that is ready. Raises
    ToolFailure and RpcError."""
    assert call.run is not None
    pool = pool_for(call, terms, stays)
    described = _descriptions(call, terms)
    try:
        deadline.pause()
        version = stamp_of_file(terms.tool.path), described
        process = pool.take(version, partial(_new_process, call, terms, stays, described))
        deadline.resume()
        if stays.concurrency == 1:
            call.run.stderr_so_far = partial(process.tail.since, process.tail.size)
        outcome, error_report, resources_report = process.call(
            _line(call, terms, arguments_json, timeout_secs), deadline, Reports(call, deadline)
        )
    finally:
        call.stop_helpers()
        if pool.key.scope is call:
            call.services.residents.end_scope(call)
    call.run.output_place = outcome.place
    call.run.note_end(outcome)
    return outcome, error_report, resources_report


def _line(call: Call, terms: ToolTerms, arguments_json: bytes, timeout_secs: float) -> tuple[bytes, bytes]:
    """Return the line of a call, before and after its number. A table of the arguments, for the shell SDK, is first."""
    table = environment.table_of(arguments_json).decode("ascii") if terms.script.wants_table else ""
    before = b'{"table":%b,"call":' % jsontext.dumps(table) if table else b'{"call":'
    asked = call.interaction
    meta = [
        b'"_meta":' + encoded(call.params.get("_meta") or {}, "_meta"),
        b'"roots":' + call.roots.variables["MCP_ROOTS_JSON"].encode("ascii"),
        b'"auth":' + (call.auth_json.encode("ascii") or b"null"),
        b'"timeoutSecs":%g' % timeout_secs,
        b'"client":' + jsontext.dumps(call.client_variables),
    ]
    if asked.answers or asked.own_state is not None:  # of a tool that asks by its result
        meta.append(jsontext.dumps({"inputResponses": asked.answers, "requestState": asked.own_state})[1:-1])
    after = b',"tool":%b,"arguments":%b,"meta":{%b}}\n'
    return before, after % (jsontext.dumps(terms.tool.name), arguments_json, b",".join(meta))


def _descriptions(call: Call, terms: ToolTerms) -> dict[str, str]:
    """Return the descriptions of all tools that share the process, as a variable."""
    tool, snapshot = terms.tool, call.services.catalog.snapshot("tools")
    key = ("descriptions", tool.name)
    found: dict[str, str] | None = snapshot.cache.get(key)
    if found is None:
        entries = {each.name: each.registry_entry for each in snapshot.items if each.staying == tool.staying}
        found = snapshot.cache[key] = environment.described("MCP_TOOLS_JSON", entries)
    return found


def _new_process(call: Call, terms: ToolTerms, stays: Stays, described: dict[str, str]) -> ScriptRun:
    """Return what a new process runs. One for all callers knows nothing of the first of them."""
    services = call.services
    script, variables, _ = terms.with_packages()
    kept = {name: value for name, value in variables.items() if name != "MCP_TOOL_NAME"}  # there may be several
    is_shared = stays.scope == "server"
    about = [services.roots.variables] if is_shared else [call.roots.variables, call.client_variables]
    own = {"MCP_CALLS_FD": CALLS_FD, "MCP_ANSWERS_FD": CONTROL_FD, "MCP_CONCURRENCY": stays.concurrency}
    own["MCP_MAX_ANSWER_BYTES"] = terms.limits.stdout_bytes
    env = services.environment.with_more(kept, *about, described, {name: str(own[name]) for name in own})
    return ScriptRun(script, env, Deadline(MAX_SECS), terms.limits, services.next_serial(), unheard)
