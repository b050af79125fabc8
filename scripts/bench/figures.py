"""What a figure is, and how good mcpgreen has to be at it: the words of the table of workloads, and its arithmetic.

A bar is what a release must keep; a goal is where we want to be. Both are ratios wherever possible, because ratios
survive a change of machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

OURS = "mcpgreen"
FRESH = "mcpgreen-fresh"
STDIO = "mcpgreen-stdio"
FLOORS = ("floor-c", "floor-py")
SDKS = ("python-sdk", "fastmcp")
REDIS = "fastmcp-redis"
HTTP_SDKS = (*SDKS, "typescript-sdk")
BEST_SDK = "best SDK"
NAMES = (*FLOORS, OURS, FRESH, *SDKS, REDIS)
HTTP_NAMES = (OURS, STDIO, *HTTP_SDKS)
ALL_NAMES = (*FLOORS, OURS, FRESH, STDIO, *HTTP_SDKS, REDIS)

Values = dict[str, float]


class SubjectError(Exception):
    """The server under test did not do what was asked."""


class Unavailable(Exception):
    """This subject cannot be measured here. The text says why."""


class Limit(NamedTuple):
    """At most (for a rate: at least) `factor` times what `of` has; without `of`, `factor` as it stands."""

    factor: float
    of: str = ""


def limit_from(text: str) -> Limit:
    factor, _, of = text.partition(" ")
    return Limit(float(factor), of)


class Metric(NamedTuple):
    """A row of the table. `bar` is one limit or two, as `factor of, factor of`; `goal` is one."""

    title: str
    unit: str = "ms"
    bar: str = ""
    goal: str = ""

    @property
    def bars(self) -> list[Limit]:
        return list(map(limit_from, filter(None, self.bar.split(", "))))

    @property
    def higher_is_better(self) -> bool:
        return self.unit == "/s"

    def describe(self, limit: Limit) -> str:
        sign = "≥" if self.higher_is_better else "≤"
        return f"{sign} {limit.factor:g}x {limit.of}" if limit.of else f"{sign} {limit.factor:g} {self.unit}"


class Workload(NamedTuple):
    """What is done, which figures come out, who does it, and the project folder that has to be there."""

    measure: Callable[[Any], Values]
    metrics: tuple[str, ...]
    subjects: tuple[str, ...] = (*FLOORS, OURS, *SDKS)
    project: str = "calls"


@dataclass
class Measurements:
    """Values by metric and subject, one per round; and what could not be measured, with the reason."""

    round_count: int
    load_before: float
    values: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failures: dict[str, dict[str, str]] = field(default_factory=dict)

    def put(self, key: str, subject: str, *, number: int, value: float) -> None:
        row = self.values.setdefault(key, {}).setdefault(subject, [None] * self.round_count)
        row[number] = value

    def has(self, key: str) -> bool:
        return key in self.values or key in self.failures

    def median(self, key: str, subject: str) -> float | None:
        return _median(self.values.get(key, {}).get(subject, ()))

    def ratio(self, key: str, metric: Metric, reference: str, subject: str = OURS) -> float | None:
        """The median of the ratios within each round. A machine that slows down for one round slows both sides."""
        rows = self.values.get(key, {})
        references = [rows[name] for name in (HTTP_SDKS if reference == BEST_SDK else (reference,)) if name in rows]
        best = max if metric.higher_is_better else min
        quotients: list[float | None] = []
        for number, value in enumerate(rows.get(subject, ())):
            others = [other for row in references if (other := row[number]) is not None]
            if value is not None and others and best(others):
                quotients.append(value / best(others))
        return _median(quotients)

    def judge(self, key: str, metric: Metric, limit: Limit) -> tuple[float | None, bool | None]:
        """What was measured for the limit, and whether that keeps it; None where something is missing."""
        value = self.ratio(key, metric, limit.of) if limit.of else self.median(key, OURS)
        if value is None:
            return None, None
        return value, value >= limit.factor if metric.higher_is_better else value <= limit.factor


def since_ms(start: float) -> float:
    return (time.perf_counter() - start) * 1000


def _median(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return median(present) if present else None
