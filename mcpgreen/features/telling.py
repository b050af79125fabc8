"""Tell the stream of events what happens to a call: that it waits, that its process begins and ends, what it asks and
prints, and how it ends.

Nothing here decides anything. All but the end of a call is told only if somebody wants to know; of a process, the
caller checks that.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import gevent

from mcpgreen.errors import InternalError, RpcError, ToolFailure
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.call import Call
    from mcpgreen.running.processes.pipes import Capture
    from mcpgreen.running.processes.process import Child
    from mcpgreen.running.processes.run import Outcome

FIRST_LOOK_SECS = 0.005  # at a process that runs; the pauses grow
LAST_PAUSE_SECS = 0.5
TAIL_BYTES = 8192  # more than is shown, so that secrets in it can be recognised
WAYS = {"": "fresh", "warm": "forked"}
CLOCK_MS = 1000 / os.sysconf("SC_CLK_TCK")


class End(NamedTuple):
    """How a call ends (ok, failed, refused, timed out, cancelled, asks, or task), why, and at what limit."""

    outcome: str
    reason: str = ""
    limit: str = ""


OK, ASKS, TASK = End("ok"), End("asks"), End("task")
SET_IS_ERROR = End("failed", "the tool set isError in its result")


def end_of_failure(call: Call, error: ToolFailure | RpcError) -> End:
    """Return how a call ends that is answered with an error, or with a failure that the model reads. Values from a
    client or a script are not in the reason."""
    run, limit = call.run, ""
    outcome = "failed" if isinstance(error, InternalError) else "refused"
    if run is not None and run.child is not None:
        from mcpgreen.running.processes.run import Ending  # comes with the first script

        is_late = run.ended_by == Ending.DEADLINE
        outcome = "timed out" if is_late else "failed"
        if run.ended_by != Ending.EXIT:
            limit = f"{run.deadline.secs:g} s" if is_late and run.deadline is not None else run.ended_by
    reason = error.message if isinstance(error, RpcError) else error.what
    if isinstance(error, ToolFailure) and error.problems:
        from mcpgreen.protocol.schemas.problems import without_values  # few calls need it

        reason += f": {without_values(error.problems)}"
    return End(outcome, reason, limit)


def target_of(params: object) -> str | None:
    """Return the name or the URI of what a request is about."""
    if type(params) is not dict:
        return None
    about = params["ref"] if type(params.get("ref")) is dict else params
    name = about.get("name", about.get("uri"))
    return name if isinstance(name, str) and name else None


def tell(kind: str, call: Call, **fields: object) -> None:
    """Tell something that is rare, if somebody wants to know."""
    if kind in call.services.events.wants:
        call.services.events.tell(kind, call, fields)


def tell_queued(call: Call) -> None:
    """The request has become a call. Of a retry, it is known by now what it belongs to."""
    if "queued" in call.services.events.wants:
        task_id = call.params.get("taskId")
        fields = {
            "method": call.method,
            "name": target_of(call.params),
            "id": call.id,
            "arguments": call.params.get("arguments"),
            "place": len(call.services.waiting),
            "interaction": call.interaction.first or None,
            "task": task_id if isinstance(task_id, str) else None,
        }
        call.services.events.tell("queued", call, fields)


def tell_ended(call: Call, end: End, *, size_bytes: int | None = None, by: str | None = None) -> None:
    """The request of a call is answered now, or will not be."""
    now, run = monotonic(), call.run
    child = run.child if run is not None else None
    began_at, ended_at = (call.began_at, call.ready_at) if child is None else (child.began_at, child.ended_at)
    began_at = max(call.arrived_at, began_at or ended_at or now)
    ended_at = max(began_at, ended_at or now)
    fields: Json = {
        "outcome": end.outcome,
        "method": call.method,
        "name": target_of(call.params),
        "queue_ms": (began_at - call.arrived_at) * 1000,
        "run_ms": (ended_at - began_at) * 1000,
        "write_ms": (now - ended_at) * 1000,
        "bytes": size_bytes,
        "by": by,
        "task": call.task.id if call.task is not None else None,
        "interaction": call.interaction.first or None,
        "limit": end.limit,
    }
    if end.reason:
        fields["reason"] = end.reason
    call.services.events.tell("ended", call, fields)


def tell_asked(call: Call, asked: Json) -> None:
    for key, request in asked.items():
        message = (request.get("params") or {}).get("message")
        tell("asked", call, key=key, method=request["method"], message=message)


def tell_answered(call: Call, outcomes: Json) -> None:
    call.services.confidential.hear({"result": outcomes})  # also while nobody looks: the call may fail later
    for key, outcome in outcomes.items():
        action = outcome.get("result", {}).get("action", outcome.get("status"))
        tell("answered", call, key=key, action=str(action)[:20])


def tell_started(
    call: Call, pid: int, argv: Sequence[str], way: str, *, began_at: float, variables: Sequence[list[str]] = ()
) -> None:
    """`variables`: the name of each, and where it comes from."""
    about = {"argv": list(argv), "cwd": call.services.project.root, "pid": pid, "way": way, "variables": variables}
    tell("started", call, **about, waited_ms=_ms(began_at - call.arrived_at))


def tell_output(call: Call, outcome: Outcome) -> None:
    """The script has ended: tell what it printed."""
    if size := sum(map(len, outcome.stdout)):
        _tell_stream(call, "stdout", size, b"".join(outcome.stdout[-2:]))
    if outcome.stderr:
        _tell_stream(call, "stderr", len(outcome.stderr), outcome.stderr)


def _tell_stream(call: Call, stream: str, size: int, end: bytes) -> None:
    tail = end[-TAIL_BYTES:]
    tell("output", call, stream=stream, bytes=size, tail=(tail.decode("utf-8", "replace"), size > len(tail)))


def tell_resident_end(call: Call, outcome: Outcome, cpu_before: tuple[float, float]) -> None:
    """A resident process is done with the call."""
    child = outcome.child
    user, system = (max(0.0, after - before) for after, before in zip(cpu_ms(child.pid), cpu_before, strict=True))
    wall_ms = _ms(child.ended_at - child.began_at)
    tell("exited", call, pid=child.pid, wall_ms=wall_ms, user_ms=user, system_ms=system)
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

    def __init__(self, call: Call, variables: list[list[str]], child: Child, captures: dict[str, Capture]) -> None:
        """The process has begun."""
        import resource

        self._call = call
        self._child = child
        self._captures = captures  # by the names of the streams
        self._told_bytes = dict.fromkeys(captures, 0)
        self._own_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._peak_kb = 0
        way = WAYS.get(child.way, child.way)
        tell_started(call, child.pid, child.args, way, began_at=child.began_at, variables=variables)
        self._looking = gevent.spawn_later(FIRST_LOOK_SECS, self._look)

    def exited(self) -> None:
        """In the hub: the process has ended."""
        self._looking.kill(block=False)
        child, usage = self._child, self._child.usage
        code = child.returncode or 0
        fields: Json = {"exit": code} if code >= 0 else {"signal": -code}
        if usage is not None:
            # A child that was spawned counts as having held what we held, until it became its program (Linux).
            if usage.ru_maxrss > self._own_kb or child.way:
                self._peak_kb = max(self._peak_kb, usage.ru_maxrss)
            fields |= {"user_ms": _ms(usage.ru_utime), "system_ms": _ms(usage.ru_stime)}
        wall_ms = _ms(child.ended_at - child.began_at)
        tell("exited", self._call, **fields, pid=child.pid, wall_ms=wall_ms, peak_kb=self._peak_kb or None)

    def _look(self) -> None:
        """See how much memory it takes, and what it has printed, until it has ended."""
        pause_secs = FIRST_LOOK_SECS
        while self._child.returncode is None:
            self._peak_kb = max(self._peak_kb, _peak_kb(self._child.pid))
            if pause_secs == LAST_PAUSE_SECS:
                self._tell_new_output()
            pause_secs = min(LAST_PAUSE_SECS, pause_secs * 2)
            gevent.sleep(pause_secs)

    def _tell_new_output(self) -> None:
        for stream, capture in self._captures.items():
            if capture.size > self._told_bytes[stream]:
                self._told_bytes[stream] = capture.size
                _tell_stream(self._call, stream, capture.size, capture.end())


def _peak_kb(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return int(file.read().partition(b"VmHWM:")[2].split(None, 1)[0])
    except (OSError, ValueError, IndexError):
        return 0


def _ms(secs: float) -> float:
    return round(secs * 1000, 3)
