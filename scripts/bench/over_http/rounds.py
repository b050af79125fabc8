"""Run the rounds over HTTP. The servers live through all of them, so that each has compiled what it compiles."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bars import OURS, STDIO
from client import SubjectError
from projects import write_tools
from rounds import Measurements, run_round, tell
from stand import Workload
from subjects import Unavailable, subject_named

from over_http import clients, messages
from over_http.cells import TOOL, TOOL_COUNT
from over_http.load import Generator
from over_http.servers import HttpSubject, http_subject_named
from over_http.stand import PROJECT, HttpCounts, HttpStand, PipeStand
from over_http.workloads import AnyStand

LOAD = "everything over HTTP"
CALL = ("tools/call", {"name": TOOL, "arguments": {}})


def measure_http(
    names: Sequence[str],
    workloads: Sequence[Workload[AnyStand]],
    *,
    counts: HttpCounts,
    round_count: int,
    scratch: Path,
) -> Measurements:
    results = Measurements(round_count, load_before=os.getloadavg()[0])
    tell("preparing what goes over HTTP")
    write_tools(scratch / PROJECT, TOOL_COUNT)
    try:
        generator = Generator.build(scratch)
    except Unavailable as reason:
        results.left_out[LOAD] = str(reason)
        return results
    with ExitStack() as cleanup:
        stands: list[AnyStand] = []
        for name in names:
            try:
                stands.append(ready_stand(name, generator=generator, counts=counts, scratch=scratch))
                cleanup.callback(stands[-1].close)
            except Unavailable as reason:
                results.left_out[name] = str(reason)
                tell(f"leaving out {name}: {reason}")
        for number in range(round_count):
            run_round(number, stands, workloads, results=results)
    return results


def ready_stand(name: str, *, generator: Generator, counts: HttpCounts, scratch: Path) -> AnyStand:
    """Raises Unavailable."""
    if name == STDIO:
        return PipeStand(subject_named(OURS, scratch=scratch), counts=counts, scratch=scratch)
    subject = http_subject_named(name)
    try_out(subject, scratch)
    return HttpStand(subject, generator=generator, counts=counts, scratch=scratch)


def try_out(subject: HttpSubject, scratch: Path) -> None:
    """Start it once, unmeasured, and ask in both eras. Raises Unavailable."""
    try:
        with subject.start(scratch / PROJECT, scratch=scratch) as server, clients.connected(server.port) as connection:
            session_id = clients.new_session(server.port)
            for request in (messages.in_session(session_id, *CALL), messages.stateless(*CALL)):
                _, result = clients.ask(connection, request)
                if not result["content"][0]["text"].startswith("ok"):
                    raise SubjectError(f"wrong answer: {result}")
    except (SubjectError, OSError) as error:
        raise Unavailable(f"does not work here: {error}") from error
