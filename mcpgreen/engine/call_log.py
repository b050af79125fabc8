"""Write a line about each call when it ends: what was asked for, how it ended, how long that took, and why it failed.

It has neither arguments nor results. For a failed script it has the end of its stderr, without secrets.
"""

from __future__ import annotations

import time
from collections import Counter

from mcpgreen import journal
from mcpgreen.events.stream import Event
from mcpgreen.features.call import Call
from mcpgreen.features.services import Services
from mcpgreen.logs.secrets import Secrets
from mcpgreen.text.json_types import Json

MAX_CHARS = 500  # of a string from a client or a script
MENTIONED_A_SECOND = 20  # lines of one kind: a client must not be able to fill the log
LONG_WAIT_MS = 100  # a longer wait for the script to begin is mentioned
MAX_STDERR_BYTES = 1024


class CallLog:
    """The reader of `ended`."""

    def __init__(self, services: Services) -> None:
        self.confidential = services.confidential
        self._mentions = Mentions()

    def write(self, event: Event) -> None:
        """Log how a request has ended."""
        call, told = event.call, event.fields
        if told["outcome"] in ("failed", "refused", "timed out"):
            if journal.tells_calls or self._mentions.count(told["outcome"]):  # if every call is logged, so is this one
                self._write_failure(call, told)
        elif _has_line(call, told["outcome"]):
            if journal.tells_frames:  # of a batch, whose answers come later, the tools were perhaps not known yet
                self.confidential.shown_of(call)
            line, fields = _line(call, told, self.confidential.learned)
            journal.record("info", line, fields=fields)

    def _write_failure(self, call: Call | None, told: Json) -> None:
        """`call` is None for a request that was refused before it became one."""
        secrets = self.confidential.shown_of(call)
        line, fields = _line(call, told, self.confidential.learned if secrets.hides_all else secrets)
        reason = journal.cut(secrets.text(told.get("reason", "")), MAX_CHARS)
        stderr_end = call.run.stderr_end[-MAX_STDERR_BYTES:] if call is not None and call.run is not None else b""
        stderr = secrets.text(stderr_end.decode("utf-8", "replace")).strip() if stderr_end else ""
        rest = ""
        if reason:
            fields["reason"] = reason
            if reason.removeprefix("Tool failed: ") not in stderr:
                rest = f": {journal.in_one_line(reason)}"
        if stderr:
            fields["stderr"] = stderr
            rest += f"; stderr ends: {journal.in_one_line(stderr)}"
        journal.record("warning", line, rest, fields)


def _has_line(call: Call, outcome: str) -> bool:
    """A call that is parked, or becomes a task, has its line when it is over, and a retry that asks again has none.
    Neither has a subscription, or another call without a greenlet, that is cancelled."""
    if outcome == "cancelled":
        return call.greenlet is not None
    return outcome == call.end.outcome != "task"


class Mentions:
    """Counts the lines of each kind: a client can have requests refused as fast as it likes."""

    def __init__(self) -> None:
        self._second = 0
        self._counts: Counter[str] = Counter()  # of lines within this second, by their kind

    def count(self, kind: str) -> bool:
        """Count a line, and return False if it is one too many within this second."""
        if self._second != int(time.monotonic()):
            self._second = int(time.monotonic())
            self._counts.clear()
        self._counts[kind] += 1
        if self._counts[kind] == MENTIONED_A_SECOND + 1:
            journal.warning("further requests of this kind (%s) are not logged during this second", kind)
        return self._counts[kind] <= MENTIONED_A_SECOND


def _line(call: Call | None, told: Json, secrets: Secrets) -> tuple[str, Json]:
    """Return the beginning of a line, and the same as fields."""
    fields: Json = {"method": _shown(told["method"][:MAX_CHARS])}
    if told["name"] is not None:
        fields["name"] = _shown(secrets.text(told["name"])[:MAX_CHARS])
    line = " ".join([*fields.values(), told["outcome"]])
    if call is None:
        return line, {**fields, "outcome": "refused"}
    fields |= {"id": call.id if isinstance(call.id, int) else _shown(call.id), "outcome": told["outcome"]}
    fields |= _times(call, told)
    if "ms" in fields:
        line += f" {fields['ms']} ms"
    if "exit" in fields:
        line += f" exit {fields['exit']}"
    if call.run is not None and call.run.child is not None and call.run.child.way:
        line += f", {call.run.child.way}" + (f" {fields['process']}" if "calls" in fields else "")
    if fields.get("waited_ms", 0) >= LONG_WAIT_MS:
        line += f", waited {fields['waited_ms']} ms"
    return line, fields


def _times(call: Call, told: Json) -> Json:
    """Return how long the script, or the call, took, how the script ended, and how long the call waited."""
    child = call.run.child if call.run is not None else None
    if child is None:
        return {"ms": round(told["queue_ms"] + told["run_ms"] + told["write_ms"])} if journal.tells_calls else {}
    times: Json = {"ms": round((child.ended_at - child.began_at) * 1000), "exit": child.exit_code, "process": child.pid}
    if child.way:
        times[child.way] = True
    if (calls := getattr(child, "calls", None)) is not None:  # of a resident process, which has not exited
        times["calls"] = calls
        del times["exit"]
    if journal.tells_calls:
        times["waited_ms"] = round(told["queue_ms"])
    return times


def _shown(text: str) -> str:
    return journal.cut(journal.in_one_line(text), MAX_CHARS)
