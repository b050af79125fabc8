"""What is measured, and how good mcpgreen has to be at it.

Two tables, and the arithmetic that holds measurements against them. A bar is what a release must keep; a goal is where
we want to be. Both are ratios wherever possible, because ratios survive a change of machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from over_http.cells import CELLS, Cell

OURS = "mcpgreen"
FRESH = "mcpgreen-fresh"
STDIO = "mcpgreen-stdio"
FLOORS = ("floor-c", "floor-py")
SDKS = ("python-sdk", "fastmcp")
HTTP_SDKS = (*SDKS, "typescript-sdk")
BEST_SDK = "best SDK"
REFERENCES = ("floor-c", "floor-py", "python-sdk", "typescript-sdk")

Rounds = Mapping[str, Sequence[float | None]]
"""Subject to its value in each round; None where it has none."""


@dataclass(frozen=True)
class Metric:
    title: str
    unit: str
    higher_is_better: bool = False


@dataclass(frozen=True)
class Limit:
    """At most (at least, where higher is better) `factor` times what `of` has; without `of`, `factor` as it stands."""

    factor: float
    of: str = ""


@dataclass(frozen=True)
class Bar:
    now: tuple[Limit, ...]
    goal: Limit


@dataclass(frozen=True)
class Verdict:
    measured: float | None
    holds: bool | None
    why_unknown: str = ""


def _http_bar(cell: Cell) -> Bar:
    best = Limit(1, BEST_SDK)
    now = (best, Limit(0.8, STDIO)) if cell.has_stdio_twin else (best,)
    return Bar(now, goal=Limit(2, BEST_SDK))


METRICS = {
    "first_answer": Metric("exec to first answer", "ms"),
    "first_list": Metric("exec to first tools/list (100 tools)", "ms"),
    "first_list_1000": Metric("exec to first tools/list (1000 tools)", "ms"),
    "again_list_1000": Metric("the same, second start", "ms"),
    "static_list": Metric("exec to first tools/list (100, static registry)", "ms"),
    "call_p50": Metric("tools/call p50, one by one", "ms"),
    "calls_16": Metric("calls/s, 16 in flight", "/s", higher_is_better=True),
    "calls_500": Metric("calls/s, 500 pipelined", "/s", higher_is_better=True),
    "call_cpu": Metric("own CPU per call", "ms"),
    "ping_p50": Metric("ping p50, one by one", "µs"),
    "pings": Metric("pings/s, pipelined", "/s", higher_is_better=True),
    "list_1_cold": Metric("list of 1, cold", "ms"),
    "list_1_warm": Metric("list of 1, warm", "ms"),
    "list_100_cold": Metric("list of 100, cold", "ms"),
    "list_100_warm": Metric("list of 100, warm", "ms"),
    "list_1000_cold": Metric("list of 1000, cold", "ms"),
    "list_1000_warm": Metric("list of 1000, warm", "ms"),
    "output_1mb": Metric("1 MB of output", "ms"),
    "output_10mb": Metric("10 MB of output", "ms"),
    "cancel": Metric("cancel until the tree is gone", "ms"),
    "rss_start": Metric("RSS at start", "MB"),
    "rss_1000": Metric("RSS after 1,000 calls", "MB"),
    "list_changed": Metric("change on disk to list_changed", "ms"),
    "read_1kb": Metric("resources/read p50, 1 KB", "ms"),
    "read_1mb": Metric("resources/read p50, 1 MB", "ms"),
    "subscriptions_idle": Metric("CPU of 1,000 idle subscriptions", "% of a core"),
    "resource_updated": Metric("change on disk to resources/updated", "ms"),
    "shell_one_ms": Metric("shell tool p50, one argument", "ms"),
    "shell_one": Metric("one argument beside the floor", "x"),
    "shell_parsed_ms": Metric("shell tool p50, arguments parsed", "ms"),
    "shell_parsed": Metric("parsed arguments beside the floor", "x"),
    "shell_several_ms": Metric("shell tool p50, several arguments", "ms"),
    "shell_several": Metric("several arguments beside the floor", "x"),
    "python_first": Metric("first call of a Python tool", "ms"),
    "python_plain": Metric("Python tool p50 that prints", "ms"),
    "python_marked": Metric("Python tool p50 that is a function", "ms"),
    "python_rested": Metric("Python tool p50, 8 ms between calls", "ms"),
    "python_p99": Metric("Python tool p99, 8 ms between calls", "ms"),
    "python_p50": Metric("Python tool p50, back to back", "ms"),
    "python_16": Metric("Python tool, calls/s, 16 in flight", "/s", higher_is_better=True),
    "python_ten": Metric("Python tool p50, ten imports", "ms"),
    "python_imports": Metric("ten imports beside none", "x"),
    "python_work": Metric("Python tool p50, work with ten modules", "ms"),
    "python_yaml": Metric("Python tool p50, with yaml", "ms"),
    "python_script": Metric("the same script, run by each", "ms"),
    "python_memory": Metric("memory with Python tools", "MB"),
    "python_helpers": Metric("that of helpers alone", "MB"),
    "mix_p50": Metric("a day's mix, p50", "ms"),
    "mix_p99": Metric("a day's mix, p99", "ms"),
    "mix_16": Metric("a day's mix, calls/s, 16 in flight", "/s", higher_is_better=True),
    **{cell.key: Metric(cell.title, "/s", higher_is_better=True) for cell in CELLS},
    **{cell.cpu_key: Metric(f"own CPU, {cell.method}, {cell.era}", "ms") for cell in CELLS if cell.tells_cpu},
    "http_idle_session": Metric("memory per idle session", "KiB"),
    "http_idle_listen": Metric("memory per idle listen", "KiB"),
    **{cell.p50_key: Metric(f"{cell.title}, p50", "ms") for cell in CELLS},
    **{cell.p99_key: Metric(f"{cell.title}, p99", "ms") for cell in CELLS},
}

LATENCIES = {cell.title: (cell.p50_key, cell.p99_key) for cell in CELLS}
"""Title to the two metrics that stand side by side in a table of their own."""

BARS = {
    "first_answer": Bar((Limit(2.5, "floor-py"),), goal=Limit(1.5, "floor-py")),
    "first_list": Bar((Limit(2.2, "floor-py"),), goal=Limit(1.8, "floor-py")),
    "again_list_1000": Bar((Limit(3, "floor-py"),), goal=Limit(1.5, "floor-py")),
    "static_list": Bar((Limit(1.5, "floor-py"),), goal=Limit(1.3, "floor-py")),
    "call_p50": Bar((Limit(2.0, "floor-c"),), goal=Limit(1.5, "floor-c")),
    "calls_16": Bar((Limit(0.70, "floor-c"), Limit(1, BEST_SDK)), goal=Limit(0.9, "floor-c")),
    "call_cpu": Bar((Limit(0.4, "python-sdk"),), goal=Limit(0.15, "python-sdk")),
    "pings": Bar((Limit(0.5, "floor-py"),), goal=Limit(1.0, "floor-py")),
    "list_1000_warm": Bar((Limit(2, "floor-py"),), goal=Limit(1, "floor-py")),
    "output_10mb": Bar((Limit(1.5, "floor-c"),), goal=Limit(1.2, "floor-c")),
    "cancel": Bar((Limit(1, BEST_SDK),), goal=Limit(2, "floor-c")),
    "rss_start": Bar((Limit(0.45, "python-sdk"),), goal=Limit(0.33, "python-sdk")),
    "rss_1000": Bar((Limit(0.45, "python-sdk"),), goal=Limit(0.33, "python-sdk")),
    "list_changed": Bar((Limit(20),), goal=Limit(5)),
    "read_1kb": Bar((Limit(1, BEST_SDK),), goal=Limit(0.25, BEST_SDK)),
    "read_1mb": Bar((Limit(1, BEST_SDK),), goal=Limit(0.5, BEST_SDK)),
    "subscriptions_idle": Bar((Limit(1),), goal=Limit(0.5)),
    "resource_updated": Bar((Limit(20),), goal=Limit(5)),
    "shell_one": Bar((Limit(2.0),), goal=Limit(1.7)),
    "shell_parsed": Bar((Limit(2.3),), goal=Limit(2.0)),
    "shell_several": Bar((Limit(2.3),), goal=Limit(2.0)),
    "python_rested": Bar((Limit(1.1, "fastmcp"), Limit(0.2, FRESH)), goal=Limit(0.9, "fastmcp")),
    "python_p50": Bar((Limit(1.3, "fastmcp"), Limit(0.2, FRESH)), goal=Limit(1.1, "fastmcp")),
    "python_16": Bar((Limit(1, "fastmcp"),), goal=Limit(1.2, "fastmcp")),
    "python_imports": Bar((Limit(1.3),), goal=Limit(1.1)),
    "python_work": Bar((Limit(1.43, "fastmcp"),), goal=Limit(1.1, "fastmcp")),  # 1.1 as above, and 30 % more
    "python_memory": Bar((Limit(0.5, "fastmcp"),), goal=Limit(0.4, "fastmcp")),
    **{cell.key: _http_bar(cell) for cell in CELLS},
    "http_idle_session": Bar((Limit(60),), goal=Limit(30)),
    "http_idle_listen": Bar((Limit(40),), goal=Limit(20)),
}


def median_of(rounds: Sequence[float | None]) -> float | None:
    values = [value for value in rounds if value is not None]
    return median(values) if values else None


def ratio(metric: Metric, measured: Rounds, *, subject: str, reference: str) -> float | None:
    """The median of the ratios within each round. A machine that slows down for one round slows both sides of it."""
    quotients = []
    for number, value in enumerate(measured.get(subject, ())):
        other = _reference_value(metric, measured, reference=reference, number=number)
        if value is not None and other:
            quotients.append(value / other)
    return median(quotients) if quotients else None


def judge(metric: Metric, measured: Rounds, limit: Limit) -> Verdict:
    ours = median_of(measured.get(OURS, ()))
    if ours is None:
        return Verdict(None, None, f"{OURS} not measured")
    value = ratio(metric, measured, subject=OURS, reference=limit.of) if limit.of else ours
    if value is None:
        return Verdict(None, None, f"{limit.of} not measured")
    return Verdict(value, value >= limit.factor if metric.higher_is_better else value <= limit.factor)


def describe(metric: Metric, limit: Limit) -> str:
    sign = "≥" if metric.higher_is_better else "≤"
    return f"{sign} {limit.factor:g}x {limit.of}" if limit.of else f"{sign} {limit.factor:g} {metric.unit}"


def _reference_value(metric: Metric, measured: Rounds, *, reference: str, number: int) -> float | None:
    names = HTTP_SDKS if reference == BEST_SDK else (reference,)
    rows = [measured[name] for name in names if name in measured]
    values = [value for row in rows if (value := row[number]) is not None]
    best = max if metric.higher_is_better else min
    return best(values) if values else None
