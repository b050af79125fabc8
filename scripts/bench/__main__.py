"""Measure mcpgreen against SDKs and floors, over pipes and over HTTP, in one interleaved run each.

Run as `python scripts/bench`. Progress goes to stderr, the tables to stdout, everything to a JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

import report
from figures import ALL_NAMES, HTTP_NAMES, NAMES, STDIO, Measurements, SubjectError, Unavailable, Workload
from over_http import PROJECT, HttpStand
from projects import write_projects
from subjects import CHECKOUT, Stand
from table import HTTP_WORKLOADS, METRICS, PIPE_WORKLOADS

ROUNDS = 5
HTTP_ROUNDS = 3
JSON = CHECKOUT / "build" / "bench.json"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    signal.signal(signal.SIGTERM, leave)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each start would compile what it imports
    over_pipes = None
    with tempfile.TemporaryDirectory(prefix="mcpgreen-bench-") as scratch:
        if not options.http:
            stand_of = partial(Stand, is_quick=options.quick)
            over_pipes = measure(options, NAMES, PIPE_WORKLOADS, stand_of, Path(scratch).resolve() / "pipes", ROUNDS)
        stand_of = partial(stand_for_http, is_quick=options.quick)
        over_http = measure(
            options, HTTP_NAMES, HTTP_WORKLOADS, stand_of, Path(scratch).resolve() / "http", HTTP_ROUNDS
        )
    options.json.parent.mkdir(parents=True, exist_ok=True)
    document = json.dumps(report.document(over_pipes, over_http), indent=2, ensure_ascii=False)
    options.json.write_text(document + "\n", encoding="utf-8")
    parts = [part for part in (over_pipes, over_http) if part is not None]
    for part in parts:
        print(report.text(part))
    print(f"All figures: {options.json}")
    return 1 if options.strict and any(map(report.missed, parts)) else 0


def stand_for_http(name: str, *, scratch: Path, is_quick: bool) -> Stand:
    if name == STDIO:
        return Stand(name, scratch=scratch, is_quick=is_quick, project=PROJECT)
    return HttpStand(name, scratch=scratch, is_quick=is_quick)


def measure(
    options: argparse.Namespace,
    all_names: Sequence[str],
    all_workloads: Sequence[Workload],
    stand_of: Callable[..., Stand],
    scratch: Path,
    round_count: int,
) -> Measurements | None:
    """Every workload on every subject, in turn, so that a noisy minute hurts all of them alike."""
    names = [name for name in all_names if name in options.only]
    workloads = [workload for workload in all_workloads if set(workload.metrics) & set(options.metric)]
    if not names or not workloads:
        return None
    results = Measurements(1 if options.quick else options.rounds or round_count, load_before=os.getloadavg()[0])
    tell(f"preparing what goes over {scratch.name}")
    write_projects(scratch, {"calls", PROJECT, *(workload.project for workload in workloads)})
    with ExitStack() as cleanup:
        stands: list[Stand] = []
        for name in names:
            try:
                stands.append(stand_of(name, scratch=scratch))
                cleanup.callback(stands[-1].close)
            except Unavailable as reason:
                results.left_out[name] = str(reason)
                tell(f"leaving out {name}: {reason}")
        for number in range(results.round_count):
            for position, workload in enumerate(workloads):
                suitable = [stand for stand in stands if stand.name in workload.subjects]
                if suitable:
                    tell(f"round {number + 1}/{results.round_count}: {METRICS[workload.metrics[0]].title}")
                    first = (number + position) % len(suitable)
                    for stand in (*suitable[first:], *suitable[:first]):
                        run_workload(workload, stand, number=number, results=results)
            for stand in stands:
                stand.end_round()
    return results


def run_workload(workload: Workload, stand: Stand, *, number: int, results: Measurements) -> None:
    try:
        for key, value in workload.measure(stand).items():
            results.put(key, stand.name, number=number, value=value)
    except (SubjectError, OSError) as error:
        for key in workload.metrics:
            results.failures.setdefault(key, {})[stand.name] = str(error)
        tell(f"{stand.name} failed at {METRICS[workload.metrics[0]].title}: {error}")
        stand.close()  # it may be in any state; the next workload gets a new server


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python scripts/bench", description=__doc__)
    rounds = f"how many rounds (default {ROUNDS}, over HTTP {HTTP_ROUNDS})"
    parser.add_argument("--http", action="store_true", help="only what goes over HTTP")
    parser.add_argument("--rounds", type=int, choices=range(1, 100), metavar="N", help=rounds)
    parser.add_argument("--quick", action="store_true", help="one round with small counts: a check, not a measurement")
    parser.add_argument("--only", default=",".join(ALL_NAMES), metavar="SUBJECT,…", help=", ".join(ALL_NAMES))
    parser.add_argument("--metric", default=",".join(METRICS), metavar="NAME,…", help=", ".join(METRICS))
    parser.add_argument("--json", type=Path, default=JSON, metavar="PATH", help="default build/bench.json")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a bar is missed")
    options = parser.parse_args(arguments)
    options.only, options.metric = options.only.split(","), options.metric.split(",")
    for name in {*options.only, *options.metric} - {*ALL_NAMES, *METRICS}:
        parser.error(f"unknown: {name}; --help lists the names")
    return options


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    # As an exception, so that servers are stopped and the scratch folder is removed on the way out.
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
