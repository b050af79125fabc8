"""Have a call served by a process that stays: which one, and what it is told.

A script that is started for each call finds everything in its environment. Here, what is the same for all calls is in
the environment of the process, and the rest is in the line of the call.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING

from mcpgreen.errors import ToolFailure
from mcpgreen.features.call import Call
from mcpgreen.features.scripts import Reports, encoded
from mcpgreen.running.processes.run import Deadline, Outcome, ScriptRun, unheard
from mcpgreen.running.processes.spawning import CALLS_FD, CONTROL_FD
from mcpgreen.running.resident.pools import Key, Pool, StartFailed
from mcpgreen.running.scripts import environment
from mcpgreen.running.scripts.results import Expectation
from mcpgreen.running.system import MAX_SECS, stamp_of_file
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.features.tools import ToolTerms


def pool_for(call: Call, terms: ToolTerms) -> Pool:
    """Return the processes that may serve the call."""
    if terms.pool is not None and not terms.pool.is_over:
        return terms.pool
    stays = terms.tool.description.stays
    assert stays is not None
    scope, owner = (None, None) if stays.scope == "server" else (_scope_of(call), call.principal)
    pool = call.services.residents.pool(Key(terms.tool.process_path, stays, scope, owner))
    if scope is None:
        terms.pool = pool
    return pool


def _scope_of(call: Call) -> Hashable:
    """Return the session of the call. A stateless caller is known by its own token, or by its pipe; any other call has
    a process for itself."""
    if call.session is not None:
        return call.session
    if call.principal is not None and not call.principal.is_shared:
        return call.principal
    return call.stream if call.stream.owner is None else call


def run_resident(call: Call, terms: ToolTerms, arguments_json: bytes) -> tuple[Outcome, bytes, Deadline, Expectation]:
    """Have the call served. Return how it ended, its error report, its deadline and what is expected of its output.
    Its time begins when it is sent to a process that is ready. Raises ToolFailure and RpcError."""
    assert call.run is not None
    services = call.services
    pool = pool_for(call, terms)
    try:
        described = _descriptions(call, terms)
        process = pool.take((stamp_of_file(terms.tool.path), described), lambda: _new_process(call, terms, described))
        if process.stays.concurrency == 1:
            call.run.tail = partial(process.tail.since, process.tail.size)
        deadline, expected = terms.time_and_expectation(call)
        try:
            line = _line(call, terms, arguments_json, expected.timeout_secs)
            outcome, error_report, fault = process.call(line, deadline, Reports(call, deadline))
        finally:
            call.stop_helpers()
    except StartFailed as failed:
        raise _failure(call, failed.process.fault, failed.process.tail.since(0)) from failed
    finally:
        if pool.key.scope is call:
            services.residents.end_scope(call)
    call.run.output_place = outcome.place
    call.run.note_end(outcome)
    if fault:
        raise _failure(call, fault, outcome.stderr)
    return outcome, error_report, deadline, expected


def _failure(call: Call, fault: str, printed: bytes) -> ToolFailure:
    reason = call.services.confidential.last_words(printed, call).reason
    return ToolFailure(f"{fault}: {reason}" if reason else f"{fault}.")


def _line(call: Call, terms: ToolTerms, arguments_json: bytes, timeout_secs: float) -> tuple[bytes, bytes]:
    """Return the line of a call, before and after its number. A table of the arguments, for the shell SDK, is first."""
    table = environment.table_of(arguments_json).decode("ascii") if terms.script.wants_table else ""
    before = b'{"table":%b,"call":' % jsontext.dumps(table) if table else b'{"call":'
    after = b',"tool":%b,"arguments":%b,"meta":%b}\n'
    return before, after % (jsontext.dumps(terms.tool.name), arguments_json, _meta_json(call, timeout_secs))


def _descriptions(call: Call, terms: ToolTerms) -> dict[str, str]:
    """Return the descriptions of all tools that share the process, as a variable."""
    tool, snapshot = terms.tool, call.services.catalog.snapshot("tools")
    key = ("descriptions", tool.name)
    found: dict[str, str] | None = snapshot.cache.get(key)
    if found is None:
        own = tool.process_path, tool.description.stays
        same = [each for each in snapshot.items if (each.process_path, each.description.stays) == own]
        entries = {each.name: each.registry_entry for each in same}
        found = snapshot.cache[key] = environment.described("MCP_TOOLS_JSON", entries)
    return found


def _new_process(call: Call, terms: ToolTerms, described: dict[str, str]) -> ScriptRun:
    """Return what a new process runs. One for all callers knows nothing of the first of them."""
    services, stays = call.services, terms.tool.description.stays
    assert stays is not None
    script, variables, _ = terms.with_packages()
    kept = {name: value for name, value in variables.items() if name != "MCP_TOOL_NAME"}  # there may be several
    is_shared = stays.scope == "server"
    about = [services.roots.variables] if is_shared else [call.roots.variables, call.client_variables]
    own = {"MCP_CALLS_FD": CALLS_FD, "MCP_ANSWERS_FD": CONTROL_FD, "MCP_CONCURRENCY": stays.concurrency}
    own["MCP_MAX_ANSWER_BYTES"] = terms.limits.stdout_bytes
    numbers = {name: str(number) for name, number in own.items()}
    env = services.environment.with_more(kept, *about, described, numbers)
    return ScriptRun(script, env, Deadline(MAX_SECS), terms.limits, services.next_serial(), unheard)


def _meta_json(call: Call, timeout_secs: float) -> bytes:
    interaction, client = call.interaction, call.client_variables
    asks = client["MCP_ELICIT_MODES"].split() + ["sampling"] * (client["MCP_SAMPLING_SUPPORTED"] == "1")
    members = [
        b'{"_meta":' + encoded(call.params.get("_meta") or {}, "_meta"),
        b'"roots":' + call.roots.variables["MCP_ROOTS_JSON"].encode("ascii"),
        b'"auth":' + (call.auth_json.encode("ascii") or b"null"),
        b'"timeoutSecs":%g' % timeout_secs,
        b'"asks":' + jsontext.dumps(asks),
    ]
    if interaction.answers or interaction.own_state is not None:  # of a tool that asks by its result
        again = {"inputResponses": interaction.answers, "requestState": interaction.own_state}
        members.append(jsontext.dumps(again)[1:-1])
    return b",".join(members) + b"}"
