"""Tools as people write them: Python scripts with arguments, as often as a model calls them and as fast as they go.

The peers answer with a function in their own process, which is what their users would write; `script-hello` runs the
script instead.
"""

from __future__ import annotations

import time
from statistics import median, quantiles

import processes
from client import Session, SubjectError, text_of
from functions import FUNCTIONS
from stand import Stand, Values, greet, list_tools, since_ms

REST_SECS = 0.008  # between two calls of a client that thinks
WARM_UP = 20
IN_FLIGHT = 16
ARGUMENTS = {"name": "Ada"}
SCRIPT = "script-hello"
NAMES = ("hello", "marked", "plain", "ten", "work")


def python_calls(stand: Stand) -> Values:
    """The first call; calls with a rest in between, of each kind of script; back to back; many at a time; memory."""
    counts = stand.counts
    with stand.start("python") as session:
        greet(session)
        list_tools(session)
        first = timed(session, "hello")
        samples = {name: measured(session, name, counts.python_calls) for name in NAMES}
        rested = {name: median(each) for name, each in samples.items()}
        back_to_back = median(timed(session, "hello") for _ in range(counts.python_calls))
        requests = [session.encode_call("hello", ARGUMENTS) for _ in range(counts.python_calls_in_flight)]
        start = time.perf_counter()
        answers = session.exchange(requests, in_flight=IN_FLIGHT)
        took_ms = since_ms(start)
        for answer in answers:
            check("hello", answer)
        time.sleep(1)  # what was started for sixteen at a time is let go, or is not
        memory = processes.pss_mb(session.pid)
        helpers = memory - processes.own_pss_mb(session.pid)
        rested["settings"] = median(measured(session, "settings", counts.python_calls))  # perhaps with its own helper
        script = rested["hello"]
        if stand.subject.is_peer:
            script = median(timed(session, SCRIPT, rest_secs=REST_SECS) for _ in range(counts.python_scripts))
    return {
        "python_plain": rested["plain"],
        "python_marked": rested["marked"],
        "python_script": script,
        "python_helpers": helpers,
        "python_first": first,
        "python_rested": rested["hello"],
        "python_p99": quantiles(samples["hello"], n=100)[-1],
        "python_p50": back_to_back,
        "python_16": len(requests) / took_ms * 1000,
        "python_ten": rested["ten"],
        "python_imports": rested["ten"] / rested["hello"],
        "python_work": rested["work"],
        "python_yaml": rested["settings"],
        "python_memory": memory,
    }


def measured(session: Session, name: str, count: int) -> list[float]:
    """With a rest between calls."""
    warm_up(session, name)
    return [timed(session, name, rest_secs=REST_SECS) for _ in range(count)]


def warm_up(session: Session, name: str) -> None:
    """So often that a server which makes ready for a script is ready for it."""
    for _ in range(WARM_UP):
        timed(session, name, rest_secs=REST_SECS)


def timed(session: Session, name: str, *, rest_secs: float = 0.0) -> float:
    request = session.encode_call(name, ARGUMENTS)
    time.sleep(rest_secs)
    start = time.perf_counter()
    answer = session.ask(request)
    took_ms = since_ms(start)
    check(name, answer)
    return took_ms


def check(name: str, answer: bytes) -> None:
    if text_of(answer).rstrip("\n") != FUNCTIONS[name.removeprefix("script-")](**ARGUMENTS).rstrip("\n"):
        raise SubjectError(f"wrong answer: {answer[:200]!r}")
