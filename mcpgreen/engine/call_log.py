"""The line of a call: what was asked for, how it ended, how long that took, and why it failed.

The only place that writes it. Neither arguments nor results are in it, and of what a failed script wrote to stderr the
end, without what is secret.
"""

from __future__ import annotations

import time
from typing import Any

from mcpgreen import journal
from mcpgreen.engine.confidential import Confidential
from mcpgreen.errors import InternalError, RpcError, ToolFailure
from mcpgreen.features.call import Call
from mcpgreen.features.services import Services
from mcpgreen.logs.mentions import A_SECOND, Mentions
from mcpgreen.logs.secrets import Secrets
from mcpgreen.protocol.schemas.problems import without_values
from mcpgreen.running.processes.process import Ending

MAX_CHARS = 500  # of what others chose
LONG_WAIT_MS = 100  # before the script began: a line says so

Json = dict[str, Any]


class CallLog:
    """Of one server."""

    def __init__(self, services: Services) -> None:
        self.confidential = Confidential(services)
        self._mentions = Mentions()

    def ended(self, call: Call, result: Json | bytes, failure: ToolFailure | None) -> None:
        """A call with a result, perhaps one in which a tool says that it failed, or we say it."""
        if failure is not None:
            self.failed(call, failure)
        elif isinstance(result, dict) and result.get("isError"):
            self._tell_failure(call, "failed", "The tool says so itself.")
        else:
            self._tell_success(call, "ok")

    def asks(self, call: Call) -> None:
        """The client has to come back with answers."""
        self._tell_success(call, "asks")

    def cancelled(self, call: Call) -> None:
        self._tell_success(call, "cancelled")

    def failed(self, call: Call, error: ToolFailure | RpcError) -> None:
        """A call that is answered by an error, or by words for the model."""
        has_run = call.run is not None and call.run.child is not None
        if has_run and call.run is not None and call.run.ended_by == Ending.DEADLINE:
            outcome = "timed out"
        else:
            outcome = "failed" if has_run or isinstance(error, InternalError) else "refused"
        self._tell_failure(call, outcome, _reason(error))

    def refused(self, method: str, params: Any, error: RpcError) -> None:
        """What never became a call."""
        if self._is_worth_a_line("refused"):
            head, fields = _who(method, params, self.confidential.always)
            reason = _cut(self.confidential.always.text(error.message))
            fields |= {"outcome": "refused", "reason": reason}
            journal.record("warning", f"{head} refused", f": {journal.in_one_line(reason)}", fields)

    def answered(self, method: str) -> None:
        """What takes no call to be answered."""
        journal.record("info", f"{method} ok", fields={"method": method, "outcome": "ok"})

    def _tell_success(self, call: Call, outcome: str) -> None:
        line, fields = _line(call, outcome, self.confidential.always)
        journal.record("info", line, fields=fields)

    def _tell_failure(self, call: Call, outcome: str, reason: str) -> None:
        if not self._is_worth_a_line(outcome):
            return
        secrets = self.confidential.of(call.method, {**call.params, "arguments": call.arguments})
        line, fields = _line(call, outcome, self.confidential.always if secrets.hides_all else secrets)
        reason = _cut(secrets.text(reason))
        stderr = secrets.text(call.run.stderr_end.decode("utf-8", "replace")).strip() if call.run is not None else ""
        rest = ""
        if reason:
            fields["reason"] = reason
            if reason.removeprefix("Tool failed: ") not in stderr:
                rest = f": {journal.in_one_line(reason)}"
        if stderr:
            fields["stderr"] = stderr
            rest += f"; stderr ends: {journal.in_one_line(stderr)}"
        journal.record("warning", line, rest, fields)

    def _is_worth_a_line(self, kind: str) -> bool:
        """A client can have calls refused as fast as it likes. Who wants a line of each call gets it all the same."""
        if journal.tells_calls:
            return True
        count = self._mentions.count(kind)
        if count == A_SECOND + 1:
            journal.warning("more calls of this kind (%s) are not mentioned within this second", kind)
        return count <= A_SECOND


def _reason(error: ToolFailure | RpcError) -> str:
    """What it says, without values that a client sent or a script printed."""
    if isinstance(error, RpcError):
        return error.message
    return f"{error.what}: {without_values(error.problems)}" if error.problems else error.what


def _line(call: Call, outcome: str, secrets: Secrets) -> tuple[str, Json]:
    """What a line begins with, and the same apart."""
    line, fields = _who(call.method, call.params, secrets)
    line += f" {outcome}"
    fields |= {"id": call.id if type(call.id) is int else _cut(journal.in_one_line(call.id)), "outcome": outcome}
    fields |= _times(call)
    if "ms" in fields:
        line += f" {fields['ms']} ms"
    if "exit" in fields:
        line += f" exit {fields['exit']}"
    if "warm" in fields:
        line += ", warm"
    if fields.get("waited_ms", 0) >= LONG_WAIT_MS:
        line += f", waited {fields['waited_ms']} ms"
    return line, fields


def _who(method: str, params: Any, secrets: Secrets) -> tuple[str, Json]:
    """The method, and the name or address of what it is about."""
    name: Any = None
    if type(params) is dict:
        about = params["ref"] if type(params.get("ref")) is dict else params
        name = about.get("name", about.get("uri"))
    shown_method = _cut(journal.in_one_line(method[:MAX_CHARS]))
    if not isinstance(name, str) or not name:
        return shown_method, {"method": shown_method}
    shown = _cut(journal.in_one_line(secrets.text(name)[:MAX_CHARS]))
    return f"{shown_method} {shown}", {"method": shown_method, "name": shown}


def _times(call: Call) -> Json:
    """How long the script took, or else the call; how the script ended; and for how long it was waited for."""
    child = call.run.child if call.run is not None else None
    if child is None:
        return {"ms": round((time.monotonic() - call.received_at) * 1000)} if call.received_at else {}
    times: Json = {
        "ms": round((child.ended_at - child.began_at) * 1000),
        "exit": child.exit_code,
        "process": child.pid,
    }
    if child.is_warm:
        times["warm"] = True
    if call.received_at:
        times["waited_ms"] = round((child.began_at - call.received_at) * 1000)
    return times


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}... (cut)"
