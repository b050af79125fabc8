"""What every subject is asked to do, and what is measured meanwhile.

A workload gets a `Stand` and returns values by metric. It either starts servers of its own or uses the stand's shared
one. Answers are checked after the clock has stopped: a fast wrong answer
is a failure, not a measurement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import processes
from bars import FRESH, METRICS, OURS, SDKS
from changes import idle_subscriptions, resource_changes, tool_changes
from client import Session, SubjectError, result_of, text_of
from mix import PROJECT as MIX
from mix import mixed_calls
from projects import MB, RESOURCE_BYTES
from real_tools import python_calls
from restarts import first_starts, second_starts, static_starts
from shell_calls import shell_calls
from stand import Stand, Values, Workload, greet, list_tools, settle, since_ms

IN_FLIGHT = 16
SHELL_METRICS = tuple(name for name in METRICS if name.startswith("shell_"))
PYTHON_METRICS = tuple(name for name in METRICS if name.startswith("python_"))


def start_up(stand: Stand) -> Values:
    answered, listed, cold, warm = [], [], [], []
    for _ in range(stand.counts.starts):
        with stand.start("tools-100") as session:
            session.initialize()
            answered.append(since_ms(session.started_at))
            session.confirm()
            cold.append(timed_list(session, 100))
            listed.append(since_ms(session.started_at))
            settle(session)
            warm += [timed_list(session, 100) for _ in range(stand.counts.lists)]
    return {
        "first_answer": median(answered),
        "first_list": median(listed),
        "list_100_cold": median(cold),
        "list_100_warm": median(warm),
    }


def listing(tool_count: int) -> Callable[[Stand], Values]:
    def measure(stand: Stand) -> Values:
        with stand.start(f"tools-{tool_count}") as session:
            greet(session)
            cold = timed_list(session, tool_count)
            settle(session)
            warm = [timed_list(session, tool_count) for _ in range(stand.counts.lists)]
        return {f"list_{tool_count}_cold": cold, f"list_{tool_count}_warm": median(warm)}

    return measure


def timed_list(session: Session, tool_count: int) -> float:
    start = time.perf_counter()
    listed = list_tools(session)
    took_ms = since_ms(start)
    if listed != tool_count:
        raise SubjectError(f"listed {listed} tools instead of {tool_count}")
    return took_ms


def memory_at_start(stand: Stand) -> Values:
    return {"rss_start": processes.rss_mb(stand.shared().pid)}


def memory_after_calls(stand: Stand) -> Values:
    """After at least 1,000 calls: those of the workloads before, and more if there were fewer."""
    session = stand.shared()
    missing = stand.counts.calls_before_rss - session.calls_made
    session.exchange([session.encode_call("ok") for _ in range(missing)], in_flight=IN_FLIGHT)
    return {"rss_1000": processes.rss_mb(session.pid)}


def calls_one_by_one(stand: Stand) -> Values:
    session = stand.shared()
    requests = [session.encode_call("ok") for _ in range(stand.counts.calls_one_by_one)]
    durations, answers = [], []
    for request in requests:
        start = time.perf_counter()
        answers.append(session.ask(request))
        durations.append(since_ms(start))
    check_calls(answers, len(requests))
    return {"call_p50": median(durations)}


def calls_in_flight(stand: Stand) -> Values:
    session = stand.shared()
    requests = [session.encode_call("ok") for _ in range(stand.counts.calls_in_flight)]
    cpu_before, start = processes.cpu_secs(session.pid), time.perf_counter()
    answers = session.exchange(requests, in_flight=IN_FLIGHT)
    took_ms, cpu_secs = since_ms(start), processes.cpu_secs(session.pid) - cpu_before
    check_calls(answers, len(requests))
    return {"calls_16": len(requests) / took_ms * 1000, "call_cpu": cpu_secs * 1000 / len(requests)}


def calls_pipelined(stand: Stand) -> Values:
    session = stand.shared()
    requests = [session.encode_call("ok") for _ in range(stand.counts.calls_pipelined)]
    start = time.perf_counter()
    answers = session.exchange(requests, in_flight=len(requests))
    took_ms = since_ms(start)
    check_calls(answers, len(requests))
    return {"calls_500": len(requests) / took_ms * 1000}


def check_calls(answers: list[bytes], expected: int) -> None:
    if len(answers) != expected:
        raise SubjectError(f"{len(answers)} answers to {expected} calls")
    for answer in answers:
        if text_of(answer).strip() != "ok":
            raise SubjectError(f"wrong answer: {answer[:200]!r}")


def pings_one_by_one(stand: Stand) -> Values:
    session = stand.shared()
    durations = []
    for request in [session.encode("ping") for _ in range(stand.counts.pings_one_by_one)]:
        start = time.perf_counter()
        answer = session.ask(request)
        durations.append(since_ms(start))
        result_of(answer)
    return {"ping_p50": median(durations) * 1000}


def pings_pipelined(stand: Stand) -> Values:
    session = stand.shared()
    requests = [session.encode("ping") for _ in range(stand.counts.pings_pipelined)]
    start = time.perf_counter()
    answers = session.exchange(requests, in_flight=len(requests))
    took_ms = since_ms(start)
    for answer in answers:
        result_of(answer)
    return {"pings": len(requests) / took_ms * 1000}


def outputs(stand: Stand) -> Values:
    session = stand.shared()
    values = {}
    for size_mb in (1, 10):
        durations = []
        for _ in range(stand.counts.outputs):
            request = session.encode_call(f"print{size_mb}mb")
            start = time.perf_counter()
            answer = session.ask(request)
            durations.append(since_ms(start))
            if len(text_of(answer)) < size_mb * MB - 1:  # a server may strip the last newline
                raise SubjectError(f"only {len(text_of(answer))} bytes of {size_mb} MB came back")
        values[f"output_{size_mb}mb"] = median(durations)
    return values


def reads(stand: Stand) -> Values:
    """A server of its own: the shared one has no resources, so that its memory is that of its tools."""
    counts = {"1kb": stand.counts.reads, "1mb": stand.counts.large_reads}
    values = {}
    with stand.start("resources") as session:
        greet(session)
        for name, size_bytes in RESOURCE_BYTES.items():
            params = {"uri": (stand.folder("resources") / "resources" / f"{name}.txt").as_uri()}
            durations = []
            for _ in range(counts[name]):
                request = session.encode("resources/read", params)
                start = time.perf_counter()
                answer = session.ask(request)
                durations.append(since_ms(start))
                (content,) = result_of(answer)["contents"]
                if len(content["text"]) != size_bytes:
                    raise SubjectError(f"{len(content['text'])} bytes of {size_bytes} came back")
            values[f"read_{name}"] = median(durations)
    return values


def cancels(stand: Stand) -> Values:
    session = stand.shared()
    # A server may start a helper of its own with the first call. It is no part of the tree that has to go.
    text_of(session.ask(session.encode_call("ok")))
    helpers = frozenset(processes.descendants(session.pid))
    return {"cancel": median(cancel_once(session, helpers) for _ in range(stand.counts.cancels))}


def cancel_once(session: Session, helpers: frozenset[int]) -> float:
    """From sending the cancel until the shell and both its sleeps have ended."""
    session.send(session.encode_call("stuck"))
    cancel = session.encode_cancel()
    with processes.handles(await_tree(session.pid, helpers, size=3)) as tree:
        start = time.perf_counter()
        session.send(cancel)
        is_gone = processes.wait_until_gone(tree, timeout_secs=10)
        took_ms = since_ms(start)
        if not is_gone:
            processes.kill(tree)
            raise SubjectError("the cancelled script is alive after 10 s")
    await_tree(session.pid, helpers, size=0)
    return took_ms


def await_tree(pid: int, helpers: frozenset[int], *, size: int) -> list[int]:
    """Wait until the server has exactly `size` processes below it, its helpers aside."""
    deadline = time.monotonic() + 10
    while True:
        tree = [member for member in processes.descendants(pid) if member not in helpers]
        if len(tree) == size:
            return tree
        if time.monotonic() > deadline:
            raise SubjectError(f"{len(tree)} processes below the server instead of {size}")
        time.sleep(0.001)


WORKLOADS = (
    Workload(
        "start-up", ("first_answer", "first_list", "list_100_cold", "list_100_warm"), start_up, project="tools-100"
    ),
    Workload("start-up of 1000", ("first_list_1000",), first_starts, project="tools-1000"),
    Workload("second start of 1000", ("again_list_1000",), second_starts, project="tools-1000"),
    Workload("static registry", ("static_list",), static_starts, project="static"),
    Workload("list of 1", ("list_1_cold", "list_1_warm"), listing(1), project="tools-1"),
    Workload("list of 1000", ("list_1000_cold", "list_1000_warm"), listing(1000), project="tools-1000"),
    Workload("memory at start", ("rss_start",), memory_at_start),
    Workload("tools/call one by one", ("call_p50",), calls_one_by_one),
    Workload("tools/call, 16 in flight", ("calls_16", "call_cpu"), calls_in_flight),
    Workload("tools/call, 500 pipelined", ("calls_500",), calls_pipelined),
    Workload("memory after 1,000 calls", ("rss_1000",), memory_after_calls),
    Workload("ping one by one", ("ping_p50",), pings_one_by_one),
    Workload("ping pipelined", ("pings",), pings_pipelined),
    Workload("1 MB and 10 MB of output", ("output_1mb", "output_10mb"), outputs),
    # After everything else on the shared server: a late answer to a cancelled call would be taken for another one.
    Workload("cancel", ("cancel",), cancels),
    Workload("resources/read", ("read_1kb", "read_1mb"), reads, (OURS, *SDKS), project="resources"),
    Workload("change on disk", ("list_changed",), tool_changes, (OURS,), project="changing"),
    Workload("change of a resource", ("resource_updated",), resource_changes, (OURS,), project="watched"),
    Workload("idle subscriptions", ("subscriptions_idle",), idle_subscriptions, (OURS,), project="watched"),
    Workload("shell tools", SHELL_METRICS, shell_calls, (OURS,), project="shell"),
    Workload("Python tools", PYTHON_METRICS, python_calls, (OURS, FRESH, *SDKS), project="python"),
    Workload("a day's mix", ("mix_p50", "mix_p99", "mix_16"), mixed_calls, (OURS, FRESH, *SDKS), project=MIX),
)
