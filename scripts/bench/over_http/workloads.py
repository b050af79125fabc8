"""What every subject is asked over HTTP, and what is measured meanwhile.

A load is a cell of `cells.py`; the others count what an idle session and an idle listen take. Their servers are new, so
that nothing but these is in their memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import processes
from bars import HTTP_SDKS, OURS, STDIO
from client import SubjectError, text_of
from stand import Values, Workload, since_ms

from over_http import clients
from over_http.cells import CELLS, TOOL, Cell
from over_http.stand import HttpStand, PipeStand

AnyStand = HttpStand | PipeStand
BEFORE_COUNTING = 20  # what is imported or allocated once is there by then
KIB_PER_MB = 1e6 / 1024
SLOW_MS = 3000.0


def loaded(cell: Cell) -> Callable[[AnyStand], Values]:
    def measure(stand: AnyStand) -> Values:
        if isinstance(stand, PipeStand):
            return calls_over_stdio(stand, cell)
        return put_load(stand, cell)

    return measure


def put_load(stand: HttpStand, cell: Cell) -> Values:
    """Nothing the second time, if the first took long: it is far behind, and the others would wait for it."""
    if cell.key in stand.slow_cells:
        return {}
    server = stand.shared()
    requests = cell.requests(stand.session_ids(cell.connections))
    cpu_before, start = processes.cpu_secs(server.pid), time.perf_counter()
    secs = stand.counts.call_secs if cell.runs_script else stand.counts.secs
    outcome = stand.generator.run(
        requests, port=server.port, connections=cell.connections, secs=secs, wanted=cell.wanted
    )
    if since_ms(start) > SLOW_MS:
        stand.slow_cells.add(cell.key)
    cpu_ms = (processes.cpu_secs(server.pid) - cpu_before) * 1000
    values = {cell.key: outcome.per_sec, cell.p50_key: outcome.p50_ms, cell.p99_key: outcome.p99_ms}
    if cell.tells_cpu:
        values[cell.cpu_key] = cpu_ms / outcome.answered
    return values


def calls_over_stdio(stand: PipeStand, cell: Cell) -> Values:
    """As many calls in flight as there are connections otherwise."""
    session = stand.shared()
    requests = [session.encode_call(TOOL) for _ in range(stand.counts.calls_over_stdio)]
    cpu_before, start = processes.cpu_secs(session.pid), time.perf_counter()
    answers = session.exchange(requests, in_flight=cell.connections)
    took_ms, cpu_secs = since_ms(start), processes.cpu_secs(session.pid) - cpu_before
    for answer in answers:
        if text_of(answer).strip() != "ok":
            raise SubjectError(f"wrong answer: {answer[:200]!r}")
    return {cell.key: len(requests) / took_ms * 1000, cell.cpu_key: cpu_secs * 1000 / len(requests)}


def idle_sessions(stand: AnyStand) -> Values:
    """After the handshake, with their connections closed, as clients between two requests may leave them."""
    assert isinstance(stand, HttpStand)
    with stand.start() as server:
        for _ in range(BEFORE_COUNTING):
            clients.new_session(server.port)
        before = settled_mb(server.pid)
        for _ in range(stand.counts.sessions):
            clients.new_session(server.port)
        taken_mb = settled_mb(server.pid) - before
    return {"http_idle_session": taken_mb * KIB_PER_MB / stand.counts.sessions}


def idle_listens(stand: AnyStand) -> Values:
    """Without FastMCP, which has no listens."""
    assert isinstance(stand, HttpStand)
    listens: list[clients.Listen] = []
    with stand.start(is_for_listens=True) as server:
        try:
            for _ in range(BEFORE_COUNTING):
                listens.append(clients.Listen(server.port))
            before = settled_mb(server.pid)
            for _ in range(stand.counts.listens):
                listens.append(clients.Listen(server.port))
            taken_mb = settled_mb(server.pid) - before
        finally:
            for listen in listens:
                listen.close()
    return {"http_idle_listen": taken_mb * KIB_PER_MB / stand.counts.listens}


def settled_mb(pid: int) -> float:
    """Memory once the server has done what it does after the last request: connections closed, garbage collected."""
    time.sleep(0.5)
    return processes.pss_mb(pid)


def metrics_of(cell: Cell) -> tuple[str, ...]:
    keys = (cell.key, cell.p50_key, cell.p99_key)
    return (*keys, cell.cpu_key) if cell.tells_cpu else keys


def subjects_of(cell: Cell) -> tuple[str, ...]:
    names = (OURS, *HTTP_SDKS)
    return (*names, STDIO) if cell.has_stdio_twin else names


WORKLOADS: tuple[Workload[AnyStand], ...] = (
    *(Workload(cell.title, metrics_of(cell), loaded(cell), subjects_of(cell)) for cell in CELLS),
    Workload("idle sessions", ("http_idle_session",), idle_sessions, (OURS, *HTTP_SDKS)),
    Workload("idle listens", ("http_idle_listen",), idle_listens, (OURS, "python-sdk", "typescript-sdk")),
)
