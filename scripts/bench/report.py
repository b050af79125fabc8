"""Say what was measured: two tables for people, one JSON document for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import metadata
from typing import Any

from bars import BARS, LATENCIES, METRICS, OURS, REFERENCES, Bar, Rounds, describe, judge, median_of, ratio
from rounds import Measurements
from subjects import ALL_NAMES

ABSENT = "-"
PACKAGES = ("mcp", "fastmcp", "uvicorn", "uvloop", "httptools", "gevent", "ujson")
CPUS = os.cpu_count() or 1
ALL_LATENCIES = {key for keys in LATENCIES.values() for key in keys}


def document(over_pipes: Measurements | None, over_http: Measurements | None) -> dict[str, Any]:
    """Everything; what went over HTTP stands under a name of its own."""
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
        "metrics": {
            key: metric_entry(key, results) for key in METRICS if key in results.values or key in results.failures
        },
    }


def metric_entry(key: str, results: Measurements) -> dict[str, Any]:
    metric, measured = METRICS[key], results.values.get(key, {})
    entry: dict[str, Any] = {
        "title": metric.title,
        "unit": metric.unit,
        "higher_is_better": metric.higher_is_better,
        "medians": {name: median_of(rounds) for name, rounds in measured.items()},
        "rounds": measured,
        "ratios": {
            name: {
                reference: ratio(metric, measured, subject=name, reference=reference)
                for reference in REFERENCES
                if reference in measured
            }
            for name in measured
        },
    }
    if key in BARS:
        entry["bar"] = {
            "now": [describe(metric, limit) for limit in BARS[key].now],
            "verdict": verdict_of(key, results)[0],
            "goal": describe(metric, BARS[key].goal),
            "goal_reached": judge(metric, measured, BARS[key].goal).holds,
        }
    return entry


def verdict_of(key: str, results: Measurements) -> tuple[str, str]:
    """PASS, MISS or unknown, and what it rests on. A workload that our server fails is a miss."""
    metric, measured, bar = METRICS[key], results.values.get(key, {}), BARS[key]
    if OURS in results.failures.get(key, {}):
        return "MISS", "failed"
    verdicts = [judge(metric, measured, limit) for limit in bar.now]
    basis = ", ".join(
        f"{number(verdict.measured)}x {limit.of}" if limit.of else f"{number(verdict.measured)} {metric.unit}"
        for verdict, limit in zip(verdicts, bar.now, strict=True)
        if verdict.measured is not None
    )
    if any(verdict.holds is False for verdict in verdicts):
        return "MISS", basis
    if all(verdict.holds for verdict in verdicts):
        return "PASS", basis
    return ABSENT, "; ".join(unknown_reasons(key, results))


def unknown_reasons(key: str, results: Measurements) -> list[str]:
    reasons = []
    for limit in BARS[key].now:
        verdict = judge(METRICS[key], results.values.get(key, {}), limit)
        if verdict.holds is None:
            missing = OURS if verdict.why_unknown.startswith(OURS) else limit.of
            is_short = len(results.left_out.get(missing, "")) in range(1, 40)  # long ones stand below the table
            reasons.append(results.left_out[missing] if is_short else verdict.why_unknown)
    return list(dict.fromkeys(reasons))


def missed(results: Measurements) -> list[str]:
    """The bars that are not kept. If our server could not be measured at all, every bar of the run counts."""
    keys = [key for key in BARS if key in results.values or key in results.failures]
    if OURS in results.left_out:
        return keys
    return [key for key in keys if verdict_of(key, results)[0] == "MISS"]


def text(results: Measurements) -> str:
    parts = [medians_table(results), latencies_table(results), bars_table(results)]
    notes = [f"left out: {name}: {reason}" for name, reason in results.left_out.items()]
    if results.load_before > CPUS / 4:
        notes.append(f"busy machine: load {results.load_before:.1f} on {CPUS} CPUs before the run; trust ratios only")
    for key, by_subject in results.failures.items():
        notes += [f"failed: {name}, {METRICS[key].title}: {reason}" for name, reason in by_subject.items()]
    return "\n\n".join(filter(None, [*parts, "\n".join(notes)])).rstrip() + "\n"


def medians_table(results: Measurements) -> str:
    subjects = [name for name in ALL_NAMES if any(name in row for row in results.values.values())]
    references = [name for name in REFERENCES if name in subjects and OURS in subjects]
    head = ["median of rounds", "unit", *subjects, *(f"x {name}" for name in references)]
    rows = []
    for key, measured in in_order(results):
        cells = [number(median_of(measured.get(name, ()))) for name in subjects]
        ratios = [number(ratio(METRICS[key], measured, subject=OURS, reference=name)) for name in references]
        rows.append([METRICS[key].title, METRICS[key].unit, *cells, *ratios])
    return table(head, rows, left=2)


def latencies_table(results: Measurements) -> str:
    """The median and the slowest hundredth side by side; nothing if no such figure was taken."""
    subjects = [name for name in ALL_NAMES if any(name in results.values.get(key, {}) for key in ALL_LATENCIES)]
    rows = []
    for title, keys in LATENCIES.items():
        if any(key in results.values for key in keys):
            medians = [[median_of(results.values.get(key, {}).get(name, ())) for key in keys] for name in subjects]
            rows.append([title, *(" / ".join(map(number, pair)) for pair in medians)])
    return table(["p50 / p99 in ms", *subjects], rows, left=1) if rows else ""


def bars_table(results: Measurements) -> str:
    rows = []
    for key, bar in BARS.items():
        if key in results.values or key in results.failures:
            verdict, basis = verdict_of(key, results)
            metric = METRICS[key]
            now = " and ".join(describe(metric, limit) for limit in bar.now)
            rows.append([metric.title, now, verdict, describe(metric, bar.goal), goal_mark(key, results, bar), basis])
    return table([f"bars for {OURS}", "bar", "", "goal", "", "measured"], rows, left=6)


def goal_mark(key: str, results: Measurements, bar: Bar) -> str:
    holds = judge(METRICS[key], results.values.get(key, {}), bar.goal).holds
    return ABSENT if holds is None else "reached" if holds else "not yet"


def in_order(results: Measurements) -> list[tuple[str, Rounds]]:
    return [(key, results.values[key]) for key in METRICS if key in results.values and key not in ALL_LATENCIES]


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
