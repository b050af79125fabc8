"""Write a line about each call: what was asked for, how it ended, how long that took, and why it failed. At the level
debug, write a line about each frame as well: its direction, its size, the process behind it, its content.

The line of a call has neither arguments nor results. For a failed script it has the end of its stderr, without secrets.
Secrets in a frame are not shown (`features.confidential`), nor is a frame that is too long to be searched for them.
"""

from __future__ import annotations

import time
from collections import Counter, deque

from mcpgreen import journal
from mcpgreen.engine.link import Link
from mcpgreen.errors import InternalError, RpcError, ToolFailure
from mcpgreen.features.call import Call
from mcpgreen.features.services import Services
from mcpgreen.links.sink import Answerable
from mcpgreen.logs.secrets import Secrets
from mcpgreen.protocol import messages
from mcpgreen.protocol.messages import Line, size_of, whole
from mcpgreen.protocol.schemas.problems import without_values
from mcpgreen.running.processes.run import Ending
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_CHARS = 500  # of a string from a client or a script
MENTIONED_A_SECOND = 20  # lines of one kind: a client must not be able to fill the log
LONG_WAIT_MS = 100  # a longer wait for the script to begin is mentioned
MAX_READ_BYTES = 1 << 18  # of a frame
MAX_UNSEEN = 100
MAX_STDERR_BYTES = 1024
ARROWS = {"in": "-->", "out": "<--"}


class CallLog:
    def __init__(self, services: Services) -> None:
        self.confidential = services.confidential
        self._mentions = Mentions()

    def ended(self, call: Call, result: Json | bytes, failure: ToolFailure | None) -> None:
        """Log a call that has a result. `failure` is set if the server says that the tool failed, not the tool."""
        if failure is not None:
            self.failed(call, failure)
        elif isinstance(result, dict) and result.get("isError"):
            self._write_failure(call, "failed", "the tool set isError in its result")
        else:
            self.succeeded(call, "ok")

    def succeeded(self, call: Call, outcome: str) -> None:
        """Log a call that ended without a failure: `outcome` is "ok", "asks" or "cancelled"."""
        line, fields = _line(call, outcome, self.confidential.always)
        journal.record("info", line, fields=fields)

    def failed(self, call: Call, error: ToolFailure | RpcError) -> None:
        """Log a call that is answered with an error, or with a failure that the model reads."""
        if call.run is None or call.run.child is None:
            outcome = "failed" if isinstance(error, InternalError) else "refused"
        else:
            outcome = "timed out" if call.run.ended_by == Ending.DEADLINE else "failed"
        self._write_failure(call, outcome, _reason(error))

    def refused(self, method: str, params: object, error: RpcError) -> None:
        """Log a request that was refused before it became a call."""
        if self._count("refused"):
            head, fields = _target(method, params, self.confidential.always)
            reason = journal.cut(self.confidential.always.text(error.message), MAX_CHARS)
            fields |= {"outcome": "refused", "reason": reason}
            journal.record("warning", f"{head} refused", f": {journal.in_one_line(reason)}", fields)

    def _write_failure(self, call: Call, outcome: str, reason: str) -> None:
        if not self._count(outcome):
            return
        secrets = self.confidential.of(call.method, {**call.params, "arguments": call.arguments})
        line, fields = _line(call, outcome, self.confidential.always if secrets.hides_all else secrets)
        reason = journal.cut(secrets.text(reason), MAX_CHARS)
        stderr_end = call.run.stderr_end[-MAX_STDERR_BYTES:] if call.run is not None else b""
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

    def _count(self, kind: str) -> bool:
        """If every call is logged, nothing is left out."""
        return journal.tells_calls or self._mentions.count(kind)


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


def _reason(error: ToolFailure | RpcError) -> str:
    """Return the message of an error, without values from a client or a script."""
    if isinstance(error, RpcError):
        return error.message
    return f"{error.what}: {without_values(error.problems)}" if error.problems else error.what


def _line(call: Call, outcome: str, secrets: Secrets) -> tuple[str, Json]:
    """Return the beginning of a line, and the same as fields."""
    line, fields = _target(call.method, call.params, secrets)
    line += f" {outcome}"
    fields |= {"id": call.id if isinstance(call.id, int) else _shown(call.id), "outcome": outcome}
    fields |= _times(call)
    if "ms" in fields:
        line += f" {fields['ms']} ms"
    if "exit" in fields:
        line += f" exit {fields['exit']}"
    if call.run is not None and call.run.child is not None and call.run.child.way:
        line += f", {call.run.child.way}" + (f" {fields['process']}" if "calls" in fields else "")
    if fields.get("waited_ms", 0) >= LONG_WAIT_MS:
        line += f", waited {fields['waited_ms']} ms"
    return line, fields


def _target(method: str, params: object, secrets: Secrets) -> tuple[str, Json]:
    """Return the method and the name or URI of its target, as text and as fields."""
    name: object = None
    if type(params) is dict:
        about = params["ref"] if type(params.get("ref")) is dict else params
        name = about.get("name", about.get("uri"))
    shown_method = _shown(method[:MAX_CHARS])
    if not isinstance(name, str) or not name:
        return shown_method, {"method": shown_method}
    shown = _shown(secrets.text(name)[:MAX_CHARS])
    return f"{shown_method} {shown}", {"method": shown_method, "name": shown}


def _times(call: Call) -> Json:
    """Return how long the script, or the call, took, how the script ended, and how long the call waited."""
    child = call.run.child if call.run is not None else None
    if child is None:
        return {"ms": round((time.monotonic() - call.received_at) * 1000)} if call.received_at else {}
    times: Json = {"ms": round((child.ended_at - child.began_at) * 1000), "exit": child.exit_code, "process": child.pid}
    if child.way:
        times[child.way] = True
    if (calls := getattr(child, "calls", None)) is not None:  # of a resident process, which has not exited
        times["calls"] = calls
        del times["exit"]
    if call.received_at:
        times["waited_ms"] = round((child.began_at - call.received_at) * 1000)
    return times


def _shown(text: str) -> str:
    return journal.cut(journal.in_one_line(text), MAX_CHARS)


class FrameLog:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._confidential = services.confidential
        self._unseen: deque[str | int | None] = deque(maxlen=MAX_UNSEEN)  # requests whose arguments are shown later

    def log_first(self, line: bytes, answer: bytes) -> None:
        """Log the first request and its answer, which came before anything else was ready."""
        for way, frame in (("in", line), ("out", answer)):
            self._write(way, len(frame), self._confidential.always.shown(jsontext.loads(frame.strip())))

    def log_incoming(self, link: Link | None, line: bytes, message: object) -> None:
        """Log a message of the client. `link` knows the process that a cancellation ends."""
        secrets, process = self._confidential.always, None
        if type(message) is dict and type(message.get("params")) is dict:
            params = message["params"]
            secrets = self._confidential.of(message.get("method"), params)
            if self._confidential.is_unknown(message.get("method"), params):
                self._unseen.append(messages.normal_id(message.get("id")))
            if message.get("method") == "notifications/cancelled" and link is not None:
                process = self._process_of(link.stream.in_flight.get(messages.normal_id(params.get("requestId")) or 0))
        elif type(message) is list:
            requests = [each for each in message[:1000] if type(each) is dict and type(each.get("params")) is dict]
            every = [self._confidential.of(each.get("method"), each["params"]) for each in requests]
            secrets = secrets.with_those(every)
        self._write("in", len(line), secrets.shown(message), process)

    def log_outgoing(self, line: Line, call: Answerable | None) -> None:
        secrets, process = self._confidential.always, None
        if isinstance(call, Call):
            secrets = self._confidential.of(call.method, {**call.params, "arguments": call.arguments})
            process = self._process_of(call)
            if call.id in self._unseen:
                self._unseen.remove(call.id)
                shown = secrets.shown({"arguments": call.arguments})
                journal.debug("request %r to %s had %s", call.id, call.method, shown)
        size = size_of(line)
        try:
            shown = f"... ({size} bytes)" if size > MAX_READ_BYTES else secrets.shown(jsontext.loads(whole(line)))
        except ValueError:
            shown = "(not JSON)"
        self._write("out", size, shown, process)

    def _process_of(self, call: object) -> int | None:
        """Return the process that runs for a call, or has run for it."""
        if not isinstance(call, Call) or call.run is None:
            return None
        return call.run.child.pid if call.run.child is not None else self._services.runner.process_of(call.serial)

    def _write(self, way: str, size: int, shown: str, process: int | None = None) -> None:
        fields: Json = {"direction": way, "bytes": size, "frame": shown}
        text = f"{ARROWS[way]} {size} bytes"
        if process is not None:
            fields["process"] = process
            text += f", process {process}"
        journal.record("debug", text, f": {shown}", fields)
