"""What every subject is asked to do over pipes, and what is measured meanwhile.

A function here gets a `Stand` and returns values by metric. It either starts servers of its own or uses the stand's
shared one. Answers are checked while no clock runs: a fast wrong answer is a failure, not a measurement.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import cycle, repeat
from pathlib import Path
from statistics import median, quantiles

import client
from client import Session, cpu_ms, descendants, memory_mb, result_of, text_of
from figures import OURS, SubjectError, Values, since_ms
from projects import (
    FUNCTIONS,
    LINE,
    MANY,
    MB,
    RESOURCE_BYTES,
    SHELL_TOOLS,
    function_meta,
    function_script,
    write_meta,
    write_script,
)
from subjects import OUR_COMMAND, PYTHONPATH, Stand

Check = Callable[[bytes], object]
IN_FLIGHT = 16
REST_SECS = 0.008  # between two calls of a client that thinks
REST_AFTER_SECS = 0.3  # until a server has come to rest after a change
WARM_UP = 20  # calls until a server that makes ready for a script is ready for it
LIST_DEBOUNCE_MS = 100.0  # `QUIET_SECS` of the server: a deliberate wait, taken off the measurement
RESOURCE_DEBOUNCE_MS = 20.0  # the same for subscribed resources, `SETTLE_SECS` in `features/watching/watches.py`


def says(text: str) -> Check:
    """A check for calls. A server may strip the last newline."""

    def check(answer: bytes) -> None:
        if text_of(answer).rstrip("\n") != text:
            raise SubjectError(f"wrong answer: {answer[:200]!r}")

    return check


def ask_in_turn(
    session: Session, encode: Callable[[], bytes], count: int, check: Check, *, rest_secs: float = 0.0
) -> list[float]:
    """Ask so many times, one after the other; return how many milliseconds each answer took."""
    durations = []
    for _ in range(count):
        request = encode()
        time.sleep(rest_secs)
        start = time.perf_counter()
        answer = session.ask(request)
        durations.append(since_ms(start))
        check(answer)
    return durations


def ask_at_once(session: Session, requests: Sequence[bytes], check: Check, in_flight: int) -> tuple[float, float]:
    """Return the answers per second, and the CPU time that the server took for each, in milliseconds."""
    cpu_before, start = cpu_ms(session.pid), time.perf_counter()
    answers = session.exchange(requests, in_flight=in_flight)
    took_ms, cpu_taken_ms = since_ms(start), cpu_ms(session.pid) - cpu_before
    for answer in answers:
        check(answer)
    return len(requests) / took_ms * 1000, cpu_taken_ms / len(requests)


def start_up(stand: Stand) -> Values:
    answered, listed = time_starts(stand, "tools-100", tool_count=100)
    return {"first_answer": answered, "first_list": listed}


def start_up_of_many(stand: Stand) -> Values:
    return {"first_list_1000": time_starts(stand, "tools-1000", tool_count=MANY)[1]}


def start_up_static(stand: Stand) -> Values:
    if stand.name == OURS and not (stand.folder("static") / ".registry").exists():
        scan_cpu_ms(stand.folder("static"))
    env = {"MCPGREEN_STATIC_REGISTRY": "true"}
    return {"static_list": time_starts(stand, "static", env, tool_count=100)[1]}


def time_starts(
    stand: Stand, project: str, env: Mapping[str, str] | None = None, *, tool_count: int
) -> tuple[float, float]:
    """Return the medians of exec to first answer, and of exec to first list."""
    answered, listed = [], []
    for _ in range(stand.times(5, slow=1)):
        with stand.start(project, env) as session:
            session.initialize()
            answered.append(since_ms(session.started_at))
            session.confirm()
            session.list_tools(tool_count)
            listed.append(since_ms(session.started_at))
    return median(answered), median(listed)


def lists(stand: Stand) -> Values:
    durations = []
    with stand.start("tools-1000") as session:
        session.get_ready()
        for _ in range(stand.times(20, slow=5)):
            start = time.perf_counter()
            session.list_tools(MANY)
            durations.append(since_ms(start))
    return {"list_1000_warm": median(durations)}


def memory_at_start(stand: Stand) -> Values:
    return {"rss_start": memory_mb(stand.shared().pid, field="Rss:")}


def memory_after_calls(stand: Stand) -> Values:
    """After at least 1,000 calls: those of the workloads before, and more if there were fewer."""
    session = stand.shared()
    missing = stand.times(1000) - session.calls_made
    session.exchange([session.encode_call("ok") for _ in range(missing)], in_flight=IN_FLIGHT)
    return {"rss_1000": memory_mb(session.pid, field="Rss:")}


def calls(stand: Stand) -> Values:
    session, check = stand.shared(), says("ok")
    encode = partial(session.encode_call, "ok")
    in_turn = ask_in_turn(session, encode, stand.times(200, slow=100), check)
    rate, cpu = ask_at_once(session, [encode() for _ in range(stand.times(600, slow=400))], check, IN_FLIGHT)
    pipelined, _ = ask_at_once(session, [encode() for _ in range(stand.times(500))], check, 500)
    return {"call_p50": median(in_turn), "calls_16": rate, "call_cpu": cpu, "calls_500": pipelined}


def pings(stand: Stand) -> Values:
    session = stand.shared()
    encode = partial(session.encode, "ping")
    in_turn = ask_in_turn(session, encode, stand.times(1000, slow=300), result_of)
    requests = [encode() for _ in range(stand.times(20_000, slow=1000))]
    rate, _ = ask_at_once(session, requests, result_of, len(requests))
    return {"ping_p50": median(in_turn) * 1000, "pings": rate}


def outputs(stand: Stand) -> Values:
    session = stand.shared()
    values = {}
    for size_mb in (1, 10):
        encode = partial(session.encode_call, f"print{size_mb}mb")
        check = says((LINE * (size_mb * MB // len(LINE))).decode().rstrip())
        values[f"output_{size_mb}mb"] = median(ask_in_turn(session, encode, stand.times(3), check))
    return values


def reads(stand: Stand) -> Values:
    """A server of its own: the shared one has no resources, so that its memory is that of its tools."""
    values = {}
    with stand.start("resources") as session:
        session.get_ready()
        for name, size_bytes in RESOURCE_BYTES.items():

            def check(answer: bytes, size_bytes: int = size_bytes) -> None:
                (content,) = result_of(answer)["contents"]
                if len(content["text"]) != size_bytes:
                    raise SubjectError(f"{len(content['text'])} bytes of {size_bytes} came back")

            path = stand.folder("resources") / "resources" / f"{name}.txt"
            encode = partial(session.encode, "resources/read", {"uri": path.as_uri()})
            count = stand.times(200, slow=100) if name == "1kb" else stand.times(20, slow=5)
            values[f"read_{name}"] = median(ask_in_turn(session, encode, count, check))
    return values


def cancels(stand: Stand) -> Values:
    """From sending the cancel until the shell and both its sleeps have ended."""
    session = stand.shared()
    # A server may start a helper of its own with the first call. It is no part of the tree that has to go.
    text_of(session.ask(session.encode_call("ok")))
    helpers = frozenset(descendants(session.pid))
    durations = []
    for _ in range(stand.times(10)):
        session.send(session.encode_call("stuck"))
        cancel = session.encode_cancel()
        with client.handles(await_tree(session.pid, helpers, size=3)) as tree:
            start = time.perf_counter()
            session.send(cancel)
            is_gone = client.wait_until_gone(tree, timeout_secs=10)
            durations.append(since_ms(start))
            if not is_gone:
                client.kill(tree)
                raise SubjectError("the cancelled script is alive after 10 s")
        await_tree(session.pid, helpers, size=0)
    return {"cancel": median(durations)}


def await_tree(pid: int, helpers: frozenset[int], *, size: int) -> list[int]:
    """Wait until the server has exactly `size` processes below it, its helpers aside."""
    deadline = time.monotonic() + 10
    while True:
        tree = [member for member in descendants(pid) if member not in helpers]
        if len(tree) == size:
            return tree
        if time.monotonic() > deadline:
            raise SubjectError(f"{len(tree)} processes below the server instead of {size}")
        time.sleep(0.001)


def tool_changes(stand: Stand) -> Values:
    """A tool appears in one step, by rename, so that there is one moment to count from."""
    root, durations = stand.folder("changing"), []
    with stand.start("changing") as session:
        session.get_ready()
        for _ in range(stand.times(3)):
            write_script(root / "draft.sh", "#!/bin/sh\necho ok\n")
            new = root / "tools" / f"new{time.monotonic_ns()}.sh"
            durations.append(time_change(session, root / "draft.sh", new, "tools/list_changed"))
    return {"list_changed": median(durations) - LIST_DEBOUNCE_MS}


def resource_changes(stand: Stand) -> Values:
    """One of many subscribed files is replaced by another; and what the subscriptions cost while nothing changes."""
    root, durations = stand.folder("watched"), []
    paths = sorted(root.glob("resources/*.txt"))
    idle_secs = 0.1 if stand.is_quick else 4.0  # twice the interval at which subscribed files are looked at
    with stand.start("watched") as session:
        session.get_ready()
        requests = [session.encode("resources/subscribe", {"uri": path.as_uri()}) for path in paths]
        ask_at_once(session, requests, result_of, len(requests))
        time.sleep(idle_secs)
        cpu_before, start = cpu_ms(session.pid), time.perf_counter()
        time.sleep(idle_secs)
        idle_share = (cpu_ms(session.pid) - cpu_before) / since_ms(start)
        for _ in range(stand.times(3)):
            (root / "draft.txt").write_text(f"{time.monotonic_ns()}\n", encoding="ascii")
            durations.append(time_change(session, root / "draft.txt", paths[0], "resources/updated"))
    return {"subscriptions_idle": idle_share * 100, "resource_updated": median(durations) - RESOURCE_DEBOUNCE_MS}


def time_change(session: Session, draft: Path, place: Path, notice: str) -> float:
    """From renaming the draft to the notification."""
    wanted = f'"notifications/{notice}"'.encode()
    time.sleep(REST_AFTER_SECS)
    start = time.perf_counter()
    draft.rename(place)
    session.next_line(lambda line: wanted in line[:500], timeout_secs=10)
    return since_ms(start)


def scans(stand: Stand) -> Values:
    """CPU time of `mcpgreen scan`: functions read from their source, beside functions with a .meta.json each."""
    roots = [stand.folder(f"functions/{each}") for each in ("plain", "described")]
    took = [[scan_cpu_ms(root) for root in roots] for _ in range(stand.times(3))]
    plain, described = map(median, zip(*took, strict=True))
    return {"scan_functions_ms": plain, "scan_functions": plain / described}


def scan_cpu_ms(project: Path) -> float:
    scan = subprocess.Popen(
        [*OUR_COMMAND, "scan", "--quiet", "--project-root", project],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(scan.pid, 0)
    scan.returncode = os.waitstatus_to_exitcode(status)
    if scan.returncode != 0:
        raise SubjectError(f"mcpgreen scan ended with status {scan.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def second_looks(stand: Stand) -> Values:
    """CPU time of the server from the change of one description of 1,000 to the end of the new list; the same two
    projects in turn."""
    took: dict[str, list[float]] = {"functions/plain": [], "functions/described": []}
    with ExitStack() as cleanup:
        sessions = {project: cleanup.enter_context(stand.start(project)) for project in took}
        for session in sessions.values():
            session.get_ready()
        for _ in range(stand.times(5)):
            for project, session in sessions.items():
                took[project].append(look_again(session, stand.folder(project)))
    plain, described = map(median, took.values())
    return {"look_functions_ms": plain, "look_functions": plain / described}


def look_again(session: Session, root: Path) -> float:
    description, script = f"Changed at {time.monotonic_ns()}.", root / "tools" / "tool0042.py"
    draft = root / "draft.py"
    write_script(draft, function_script("tool0042", description))
    if script.with_suffix(".meta.json").exists():
        write_meta(draft, function_meta("tool0042", description))
        draft, script = draft.with_suffix(".meta.json"), script.with_suffix(".meta.json")
    time.sleep(REST_AFTER_SECS)
    before = cpu_ms(session.pid)
    time_change(session, draft, script, "tools/list_changed")
    session.list_tools(MANY)
    return cpu_ms(session.pid) - before


def shell_calls(stand: Stand) -> Values:
    """Tool and floor in turn, so that a noisy moment hurts both."""
    values: Values = {}
    with stand.start("shell") as session:
        session.get_ready()
        for tool in SHELL_TOOLS:
            check = says(tool.text)
            in_turn = map(session.encode_call, cycle((tool.name, tool.floor_name)), repeat(tool.arguments))
            encode = partial(next, in_turn)
            ask_in_turn(session, encode, 2 * WARM_UP, check)
            durations = ask_in_turn(session, encode, 2 * stand.times(60), check)
            values[f"{tool.metric}_ms"] = median(durations[::2])
            values[tool.metric] = median(durations[::2]) / median(durations[1::2])
    return values


def resident_calls(stand: Stand) -> Values:
    """Calls of a resident function, back to back and with a rest in between; memory of the server and its
    process; then many at a time, by one process and by two."""
    count, check = max(2, stand.times(400, slow=200)), says("Hello, Ada!")
    with stand.start("resident") as session:
        session.get_ready()
        encode = partial(session.encode_call, "alone", {"name": "Ada"})
        ask_in_turn(session, encode, WARM_UP, check)
        back_to_back = ask_in_turn(session, encode, count, check)
        rested = ask_in_turn(session, encode, count, check, rest_secs=REST_SECS)
        values = {
            "resident_p50": median(back_to_back),
            "resident_rested": median(rested),
            "resident_memory": memory_mb(session.pid),
        }
        for key, name in (("resident_16", "side_by_side"), ("resident_workers", "two_workers")):
            encode = partial(session.encode_call, name, {"name": "Ada"})
            ask_at_once(session, [encode() for _ in range(2 * WARM_UP)], check, IN_FLIGHT)
            requests = [encode() for _ in range(stand.times(2000, slow=1000))]
            values[key], _ = ask_at_once(session, requests, check, IN_FLIGHT)
    return values


def resident_shell_calls(stand: Stand) -> Values:
    """A loop in a resident process and the same as a script for each call, in turn."""
    tool = SHELL_TOOLS[0]
    with stand.start("resident") as session:
        session.get_ready()
        encode = partial(next, map(session.encode_call, cycle(("loop", "each")), repeat(tool.arguments)))
        ask_in_turn(session, encode, 2 * WARM_UP, says(tool.text))
        durations = ask_in_turn(session, encode, 2 * stand.times(100), says(tool.text))
    loop, each = median(durations[::2]), median(durations[1::2])
    return {"resident_shell_ms": loop, "resident_shell": loop / each}


def python_calls(stand: Stand) -> Values:
    """The first call; calls with a rest in between, of each kind of script; back to back; many at a time; memory."""
    count = max(2, stand.times(150, slow=40))
    with stand.start("python") as session:
        session.get_ready()
        rested = {}
        for name, function in FUNCTIONS.items():
            encode, check = partial(session.encode_call, name, {"name": "Ada"}), says(function("Ada"))
            warm_up = ask_in_turn(session, encode, WARM_UP, check, rest_secs=REST_SECS)
            rested[name] = ask_in_turn(session, encode, count, check, rest_secs=REST_SECS)
            if name == "hello":
                first = warm_up[0]
                back_to_back = ask_in_turn(session, encode, count, check)
                requests = [encode() for _ in range(stand.times(400, slow=100))]
                rate, _ = ask_at_once(session, requests, check, IN_FLIGHT)
        time.sleep(1)  # what was started for sixteen at a time is let go, or is not
        memory = memory_mb(session.pid)
    medians = {name: median(durations) for name, durations in rested.items()}
    return {
        "python_first": first,
        "python_rested": medians["hello"],
        "python_p99": quantiles(rested["hello"], n=100)[-1],
        "python_p50": median(back_to_back),
        "python_16": rate,
        "python_marked": medians["marked"],
        "python_ten": medians["ten"],
        "python_imports": medians["ten"] / medians["hello"],
        "python_work": medians["work"],
        "python_memory": memory,
    }
