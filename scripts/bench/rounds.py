"""Run the rounds: every workload on every subject, in turn, so that a noisy minute hurts all of them alike."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from client import SubjectError
from projects import write_projects
from stand import AnyPlace, Counts, Stand, Workload
from subjects import Unavailable, subject_named, try_out

TRIAL = "calls"


@dataclass
class Measurements:
    """Values by metric and subject, one per round; and what could not be measured, with the reason."""

    round_count: int
    load_before: float = 0.0
    values: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failures: dict[str, dict[str, str]] = field(default_factory=dict)

    def put(self, metric: str, subject: str, *, number: int, value: float) -> None:
        row = self.values.setdefault(metric, {}).setdefault(subject, [None] * self.round_count)
        row[number] = value


def measure(
    names: Sequence[str], workloads: Sequence[Workload[Stand]], *, counts: Counts, round_count: int, scratch: Path
) -> Measurements:
    results = Measurements(round_count, load_before=os.getloadavg()[0])
    tell("preparing")
    write_projects(scratch, {TRIAL, *(workload.project for workload in workloads)})
    subjects = []
    for name in names:
        try:
            subject = subject_named(name, scratch=scratch)
            try_out(subject, scratch / TRIAL, scratch=scratch)
            subjects.append(subject)
        except Unavailable as reason:
            results.left_out[name] = str(reason)
            tell(f"leaving out {name}: {reason}")
    for number in range(round_count):
        with ExitStack() as cleanup:
            stands = [Stand(subject, counts=counts, scratch=scratch) for subject in subjects]
            for stand in stands:
                cleanup.callback(stand.close)
            run_round(number, stands, workloads, results=results)
    return results


def run_round(
    number: int, stands: Sequence[AnyPlace], workloads: Sequence[Workload[AnyPlace]], *, results: Measurements
) -> None:
    for position, workload in enumerate(workloads):
        suitable = [stand for stand in stands if stand.name in workload.subjects]
        if suitable:
            tell(f"round {number + 1}/{results.round_count}: {workload.title}")
        for stand in rotated(suitable, number + position):
            run_workload(workload, stand, number=number, results=results)


def run_workload(workload: Workload[AnyPlace], stand: AnyPlace, *, number: int, results: Measurements) -> None:
    name = stand.name
    try:
        values = workload.measure(stand)
    except (SubjectError, OSError) as error:
        for metric in workload.metrics:
            results.failures.setdefault(metric, {})[name] = str(error)
        tell(f"{name} failed at {workload.title}: {error}")
        stand.close()  # it may be in any state; the next workload gets a new server
        return
    for metric, value in values.items():
        results.put(metric, name, number=number, value=value)


def rotated(stands: Sequence[AnyPlace], by: int) -> list[AnyPlace]:
    by %= len(stands) or 1
    return [*stands[by:], *stands[:by]]


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
