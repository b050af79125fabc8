"""Measure mcpgreen against SDKs and floors, over pipes and over HTTP, in one interleaved run each.

Run as `python scripts/bench`. Progress goes to stderr, the tables to stdout, everything to a JSON file.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from types import FrameType
from typing import NoReturn

import report
from bars import METRICS
from over_http.rounds import measure_http
from over_http.stand import FULL as HTTP_FULL
from over_http.stand import QUICK as HTTP_QUICK
from over_http.workloads import WORKLOADS as HTTP_WORKLOADS
from rounds import Measurements, measure
from stand import FULL, QUICK
from subjects import ALL_NAMES, CHECKOUT, HTTP_NAMES, NAMES
from workloads import WORKLOADS

ROUNDS = 5
HTTP_ROUNDS = 3


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    signal.signal(signal.SIGTERM, leave)
    with tempfile.TemporaryDirectory(prefix="mcpgreen-bench-") as scratch:
        over_pipes = None if options.http else measure_pipes(options, Path(scratch).resolve() / "pipes")
        over_http = measure_http_part(options, Path(scratch).resolve() / "http")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    document = json.dumps(report.document(over_pipes, over_http), indent=2, ensure_ascii=False)
    options.json.write_text(document + "\n", encoding="utf-8")
    parts = [part for part in (over_pipes, over_http) if part is not None]
    for part in parts:
        print(report.text(part))
    print(f"All figures: {options.json}")
    return 1 if options.strict and any(map(report.missed, parts)) else 0


def measure_pipes(options: argparse.Namespace, scratch: Path) -> Measurements | None:
    names = [name for name in NAMES if name in options.only]
    workloads = [workload for workload in WORKLOADS if set(workload.metrics) & set(options.metric)]
    if not names or not workloads:
        return None
    scratch.mkdir()
    counts = QUICK if options.quick else FULL
    round_count = 1 if options.quick else options.rounds or ROUNDS
    return measure(names, workloads, counts=counts, round_count=round_count, scratch=scratch)


def measure_http_part(options: argparse.Namespace, scratch: Path) -> Measurements | None:
    names = [name for name in HTTP_NAMES if name in options.only]
    workloads = [workload for workload in HTTP_WORKLOADS if set(workload.metrics) & set(options.metric)]
    if not names or not workloads:
        return None
    scratch.mkdir()
    counts = HTTP_QUICK if options.quick else HTTP_FULL
    round_count = 1 if options.quick else options.rounds or HTTP_ROUNDS
    return measure_http(names, workloads, counts=counts, round_count=round_count, scratch=scratch)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python scripts/bench", description=__doc__)
    parser.add_argument("--http", action="store_true", help="only what goes over HTTP")
    parser.add_argument(
        "--rounds", type=positive, metavar="N", help=f"how many rounds (default {ROUNDS}, over HTTP {HTTP_ROUNDS})"
    )
    parser.add_argument("--quick", action="store_true", help="one round with small counts: a check, not a measurement")
    parser.add_argument(
        "--only", type=names_from(ALL_NAMES), default=ALL_NAMES, metavar="SUBJECT,…", help=", ".join(ALL_NAMES)
    )
    parser.add_argument(
        "--metric", type=names_from(METRICS), default=tuple(METRICS), metavar="NAME,…", help=", ".join(METRICS)
    )
    parser.add_argument(
        "--json", type=Path, default=CHECKOUT / "build" / "bench.json", metavar="PATH", help="default build/bench.json"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 if a bar is missed")
    return parser.parse_args(arguments)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def names_from(known: Collection[str]) -> Callable[[str], list[str]]:
    def parse_names(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"unknown: {name}; known: {', '.join(known)}")
        return names

    return parse_names


def leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    # As an exception, so that servers are stopped and the scratch folder is removed on the way out.
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
