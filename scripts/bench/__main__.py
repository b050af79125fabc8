"""Measure mcpgreen against two SDKs and two floors, in one interleaved run.

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
from rounds import measure
from stand import FULL, QUICK
from subjects import CHECKOUT, NAMES
from workloads import WORKLOADS


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    signal.signal(signal.SIGTERM, leave)
    workloads = [workload for workload in WORKLOADS if set(workload.metrics) & set(options.metric)]
    names = [name for name in NAMES if name in options.only]
    with tempfile.TemporaryDirectory(prefix="mcpgreen-bench-") as scratch:
        results = measure(
            names,
            workloads,
            counts=QUICK if options.quick else FULL,
            round_count=1 if options.quick else options.rounds,
            scratch=Path(scratch).resolve(),
        )
    options.json.parent.mkdir(parents=True, exist_ok=True)
    document = json.dumps(report.document(results), indent=2, ensure_ascii=False)
    options.json.write_text(document + "\n", encoding="utf-8")
    print(report.text(results))
    print(f"All figures: {options.json}")
    return 1 if options.strict and report.missed(results) else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python scripts/bench", description=__doc__)
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="how many rounds (default 5)")
    parser.add_argument("--quick", action="store_true", help="one round with small counts: a check, not a measurement")
    parser.add_argument("--only", type=names_from(NAMES), default=NAMES, metavar="SUBJECT,…", help=", ".join(NAMES))
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
