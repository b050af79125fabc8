"""Say what was measured: three tables for people, one JSON document for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import metadata
from typing import Any

from figures import ALL_NAMES, OURS, Measurements, limit_from
from table import LATENCIES, METRICS

ABSENT = "-"
REFERENCES = ("floor-c", "floor-py", "python-sdk", "fastmcp", "typescript-sdk", "fastmcp-redis")
PACKAGES = ("mcp", "fastmcp", "fastmcp-tasks", "pydocket", "uvicorn", "uvloop", "httptools", "gevent", "ujson")
CPUS = os.cpu_count() or 1
BARS = [key for key, metric in METRICS.items() if metric.bars]


def document(over_pipes: Measurements | None, over_http: Measurements | None) -> dict[str, Any]:
    """All figures of all rounds. Those over HTTP stand under a name of their own."""
    return {
        "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": {
            "system": platform.platform(),
            "cpus": CPUS,
            "python": platform.python_version(),
            "packages": {name: version_of(name) for name in PACKAGES},
        },
        **(part(over_pipes) if over_pipes else {}),
        **({"http": part(over_http)} if over_http else {}),
    }


def part(results: Measurements) -> dict[str, Any]:
    return {
        "load_before": results.load_before,
        "rounds": results.round_count,
        "left_out": results.left_out,
        "failures": results.failures,
        "metrics": {key: metric_entry(key, results) for key in METRICS if results.has(key)},
    }


def metric_entry(key: str, results: Measurements) -> dict[str, Any]:
    metric, measured = METRICS[key], results.values.get(key, {})
    entry: dict[str, Any] = {
        "title": metric.title,
        "unit": metric.unit,
        "higher_is_better": metric.higher_is_better,
        "medians": {name: results.median(key, name) for name in measured},
        "rounds": measured,
        "ratios": {
            name: {each: results.ratio(key, metric, each, name) for each in REFERENCES if each in measured}
            for name in measured
        },
    }
    if metric.bars:
        entry["bar"] = dict(
            zip(("now", "verdict", "goal", "goal_verdict", "measured"), judged(key, results), strict=True)
        )
    return entry


def judged(key: str, results: Measurements) -> list[str]:
    """The bar, PASS or MISS, the goal, how far it is, and what was measured. If our server fails, that is a miss."""
    metric = METRICS[key]
    verdicts = [(limit, *results.judge(key, metric, limit)) for limit in metric.bars]
    basis = [
        f"{limit.of or OURS} not measured" if value is None
        else f"{number(value)}x {limit.of}" if limit.of
        else f"{number(value)} {metric.unit}"
        for limit, value, _ in verdicts
    ]  # fmt: skip
    holds = [held for _, _, held in verdicts]
    verdict = "MISS" if False in holds else ABSENT if None in holds else "PASS"
    if OURS in results.failures.get(key, {}):
        verdict, basis = "MISS", ["failed"]
    goal = limit_from(metric.goal)
    _, is_reached = results.judge(key, metric, goal)
    mark = {None: ABSENT, True: "reached", False: "not yet"}[is_reached]
    return [
        " and ".join(map(metric.describe, metric.bars)),
        verdict,
        metric.describe(goal),
        mark,
        ", ".join(basis),
    ]


def missed(results: Measurements) -> list[str]:
    """The bars that are not kept. If our server could not be measured at all, every bar of the run counts."""
    if OURS in results.left_out:
        return [key for key in BARS if results.has(key)] or [OURS]
    return [key for key in BARS if results.has(key) and judged(key, results)[1] == "MISS"]


def text(results: Measurements) -> str:
    notes = [f"left out: {name}: {reason}" for name, reason in results.left_out.items()]
    if results.load_before > CPUS / 4:
        notes.append(f"busy machine: load {results.load_before:.1f} on {CPUS} CPUs before the run; trust ratios only")
    for key, by_subject in results.failures.items():
        notes += [f"failed: {name}, {METRICS[key].title}: {reason}" for name, reason in by_subject.items()]
    bars = [[METRICS[key].title, *judged(key, results)] for key in BARS if results.has(key)]
    head = [f"bars for {OURS}", "bar", "", "goal", "", "measured"]
    parts = [medians_table(results), latencies_table(results), table(head, bars, left=6), "\n".join(notes)]
    return "\n\n".join(filter(None, parts)).rstrip() + "\n"


def medians_table(results: Measurements) -> str:
    subjects = [name for name in ALL_NAMES if any(name in row for row in results.values.values())]
    references = [name for name in REFERENCES if name in subjects and OURS in subjects]
    head = ["median of rounds", "unit", *subjects, *(f"x {name}" for name in references)]
    rows = []
    for key, metric in METRICS.items():
        if key in results.values and key not in LATENCIES:
            cells = [number(results.median(key, name)) for name in subjects]
            ratios = [number(results.ratio(key, metric, name)) for name in references]
            rows.append([metric.title, metric.unit, *cells, *ratios])
    return table(head, rows, left=2)


def latencies_table(results: Measurements) -> str:
    """The median and the slowest hundredth side by side; nothing if no such figure was taken."""
    taken = [key for key in METRICS if f"{key}_p50" in results.values and f"{key}_p99" in LATENCIES]
    subjects = [name for name in ALL_NAMES if any(name in results.values[f"{key}_p50"] for key in taken)]
    rows = []
    for key in taken:
        pairs = [[results.median(f"{key}_{share}", name) for share in ("p50", "p99")] for name in subjects]
        rows.append([METRICS[key].title, *(" / ".join(map(number, pair)) for pair in pairs)])
    return table(["p50 / p99 in ms", *subjects], rows, left=1) if rows else ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Columns as wide as their widest cell; the first `left` of them flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["─" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def number(value: float | None) -> str:
    if value is None:
        return ABSENT
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
