"""Tell the stream of events what happens to a call: that it waits, that its process begins and ends, what it asks and
prints, and how it ends.

Nothing here decides anything. All but the end of a call is told only if somebody wants to know; the caller checks that.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import gevent

from mcpgreen.errors import InternalError, RpcError, ToolFailure
from mcpgreen.running.processes.ending import Ending
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.call import Call
    from mcpgreen.running.processes.process import Child
    from mcpgreen.running.processes.run import Outcome, ScriptRun

FIRST_LOOK_SECS = 0.005  # at the memory of a process; the pauses grow
LAST_PAUSE_SECS = 0.5
TAIL_BYTES = 8192  # more than is shown, so that secrets in it can be recognised
WAYS = {"": "fresh", "warm": "forked"}
CLOCK_MS = 1000 / os.sysconf("SC_CLK_TCK")


class End(NamedTuple):
    """How a call ends: `ok`, `failed`, `refused`, `timed out`, `cancelled`, `asks` or `task`, and why."""

    outcome: str
    reason: str = ""


OK, ASKS, TASK = End("ok"), End("asks"), End("task")
SET_IS_ERROR = End("failed", "the tool set isError in its result")


def end_of_failure(call: Call, error: ToolFailure | RpcError) -> End:
    """Return how a call ends that is answered with an error, or with a failure that the model reads. Values from a
    client or a script are not in the reason."""
    if call.run is None or call.run.child is None:
        outcome = "failed" if isinstance(error, InternalError) else "refused"
    else:
        outcome = "timed out" if call.run.ended_by == Ending.DEADLINE else "failed"
    if isinstance(error, RpcError):
        return End(outcome, error.message)
    if not error.problems:
        return End(outcome, error.what)
    from mcpgreen.protocol.schemas.problems import without_values  # few calls need it

    return End(outcome, f"{error.what}: {without_values(error.problems)}")


def target_of(params: object) -> str | None:
    """Return the name or the URI of what a request is about."""
    if type(params) is not dict:
        return None
    about = params["ref"] if type(params.get("ref")) is dict else params
    name = about.get("name", about.get("uri"))
    return name if isinstance(name, str) and name else None


def tell_queued(call: Call) -> None:
    """The request has become a call. Of a retry, it is known by now what it belongs to."""
    events, waiting = call.services.events, call.services.waiting
    if "queued" in events.wants:
        task_id = call.params.get("taskId")
        fields = {
            "method": call.method,
            "name": target_of(call.params),
            "id": call.id,
            "arguments": call.params.get("arguments"),
            "place": len(waiting),
            "interaction": call.interaction.first or None,
            "task": task_id if isinstance(task_id, str) else None,
        }
        events.tell("queued", call, fields)


def tell_ended(
    call: Call, end: End, *, size_bytes: int | None = None, by: str | None = None, task_id: str | None = None
) -> None:
    """The request of a call is answered now, or will not be."""
    now, run = monotonic(), call.run
    child = run.child if run is not None else None
    began_at = ended_at = call.arrived_at
    if child is not None:
        began_at = max(call.arrived_at, child.began_at)
        ended_at = max(began_at, child.ended_at)
    elif end.outcome != "refused":
        ended_at = now
    fields: Json = {
        "outcome": end.outcome,
        "method": call.method,
        "name": target_of(call.params),
        "queue_ms": _ms(began_at - call.arrived_at),
        "run_ms": _ms(ended_at - began_at),
        "write_ms": _ms(now - ended_at),
        "bytes": size_bytes,
        "by": by,
        "task": task_id if call.task is None else call.task.id,
        "interaction": call.interaction.first or None,
    }
    if end.reason:
        fields["reason"] = end.reason
    if run is not None and run.ended_by not in ("", Ending.EXIT):
        is_late = run.ended_by == Ending.DEADLINE and run.deadline is not None
        fields["limit"] = f"{run.deadline.secs:g} s" if is_late and run.deadline is not None else run.ended_by
    call.services.events.tell("ended", call, fields)


def tell_asked(call: Call, asked: Json) -> None:
    if "asked" in call.services.events.wants:
        for key, request in asked.items():
            message = (request.get("params") or {}).get("message")
            fields = {"key": key, "method": request["method"], "message": message}
            call.services.events.tell("asked", call, fields)


def tell_answered(call: Call, outcomes: Json) -> None:
    if "answered" in call.services.events.wants:
        for key, outcome in outcomes.items():
            status = str(outcome.get("status"))
            action = outcome["result"].get("action", status) if status == "answered" else status
            call.services.events.tell("answered", call, {"key": key, "action": str(action)[:20]})


def tell_output(call: Call, outcome: Outcome) -> None:
    """The script has ended: tell what it printed."""
    if size := sum(map(len, outcome.stdout)):
        _tell_stream(call, "stdout", size, b"".join(outcome.stdout[-2:])[-TAIL_BYTES:])
    if outcome.stderr:
        _tell_stream(call, "stderr", len(outcome.stderr), outcome.stderr[-TAIL_BYTES:])


def _tell_stream(call: Call, stream: str, size: int, tail: bytes) -> None:
    text = tail.decode("utf-8", "replace")
    fields = {"stream": stream, "bytes": size, "tail": (text, size > len(tail))}
    call.services.events.tell("output", call, fields)


def tell_resident_start(call: Call, pid: int, argv: list[str]) -> None:
    """A resident process gets the call."""
    _tell_started(call, monotonic(), pid, argv, "resident", [])


def _tell_started(call: Call, began_at: float, pid: int, argv: list[str], way: str, variables: list[list[str]]) -> None:
    fields = {"argv": argv, "cwd": call.services.project.root, "pid": pid, "way": way, "variables": variables}
    call.services.events.tell("started", call, {**fields, "waited_ms": _ms(began_at - call.arrived_at)})


def tell_resident_end(call: Call, outcome: Outcome, cpu: tuple[float, float]) -> None:
    """A resident process is done with the call. `cpu` is what it had used before."""
    child = outcome.child
    (user, system), wall_ms = cpu_ms(child.pid), _ms(child.ended_at - child.began_at)
    used = {"user_ms": user - cpu[0], "system_ms": system - cpu[1]}
    call.services.events.tell("exited", call, {"pid": child.pid, "wall_ms": wall_ms, **used})
    tell_output(call, outcome)


def cpu_ms(pid: int) -> tuple[float, float]:
    """Return the user and system time of a process, with that of its children that have ended; zeros if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            values = file.read().rpartition(b")")[2].split()[11:15]
    except OSError:
        return 0.0, 0.0
    user, system, of_children, system_of_children = map(int, values)
    return (user + of_children) * CLOCK_MS, (system + system_of_children) * CLOCK_MS


class Witness:
    """Tells of the process of one call, from its start to its end, and of what it prints meanwhile."""

    def __init__(self, call: Call, variables: list[list[str]]) -> None:
        """`variables`: the name of each, and where it comes from."""
        self._call = call
        self._variables = variables
        self._looking: gevent.Greenlet | None = None
        self._peak_kb = self._own_kb = 0
        self._told: dict[str, int] = {}
        self._child: Child | None = None

    def started(self, child: Child, run: ScriptRun) -> None:
        import resource

        self._child, self._own_kb = child, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        call = self._call
        way = WAYS.get(child.way, child.way)
        _tell_started(call, child.began_at, child.pid, list(run.script.command), way, self._variables)
        self._looking = gevent.spawn_later(FIRST_LOOK_SECS, self._look)
        call.services.witnesses.add(self)

    def exited(self, child: Child) -> None:
        """In the hub: the process has ended."""
        if self._looking is not None:
            self._looking.kill(block=False)
        self._call.services.witnesses.discard(self)
        usage, code = child.usage, child.returncode or 0
        fields: Json = {"exit": code} if code >= 0 else {"signal": -code}
        if usage is not None:
            # A child that was spawned counts as having held what we held, until it became its program (Linux).
            if usage.ru_maxrss > self._own_kb or child.way:
                self._peak_kb = max(self._peak_kb, usage.ru_maxrss)
            fields |= {"user_ms": _ms(usage.ru_utime), "system_ms": _ms(usage.ru_stime)}
        fields |= {"pid": child.pid, "wall_ms": _ms(child.ended_at - child.began_at), "peak_kb": self._peak_kb or None}
        self._call.services.events.tell("exited", self._call, fields)

    def tell_output(self) -> None:
        """Tell what is new since the last time."""
        captures = self._child.captures if self._child is not None else {}
        for stream, capture in captures.items():
            if capture.size > self._told.get(stream, 0):
                self._told[stream] = capture.size
                _tell_stream(self._call, stream, capture.size, capture.end())

    def _look(self) -> None:
        """See how much memory it takes, until it has ended."""
        pause_secs = FIRST_LOOK_SECS
        while self._child is not None and self._child.returncode is None:
            self._peak_kb = max(self._peak_kb, _status_kb(self._child.pid, b"VmHWM"))
            pause_secs = min(LAST_PAUSE_SECS, pause_secs * 2)
            gevent.sleep(pause_secs)


def _status_kb(pid: int, name: bytes) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return int(file.read().partition(name + b":")[2].split(None, 1)[0])
    except (OSError, ValueError, IndexError):
        return 0


def _ms(secs: float) -> float:
    return round(secs * 1000, 3)
