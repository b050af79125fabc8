"""`scripts/conformance.py`: the official suite against the real server, and what is made of its verdicts.

Run by `make conformance`, after all scenarios, and not by `make test`: the packages of the suite take longer to fetch
than all other tests to run. Four scenarios are enough here, one or two for each era.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.prerequisites import require_conformance_suite
from tests.support.programs import completed
from tests.support.waiting import eventually

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPT = CHECKOUT / "scripts" / "conformance.py"
PATIENCE_SECS = 120.0
SCENARIOS = ("tools-call-elicitation", "dns-rebinding-protection", "caching", "sep-2640-skills-manifest")


@pytest.fixture(scope="module")
def conformance() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conformance", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command(results: Path, *scenarios: str) -> list[str]:
    chosen = [word for name in scenarios for word in ("--scenario", name)]
    return [sys.executable, str(SCRIPT), "--results", str(results), *chosen]


def test_the_suite_finds_nothing(tmp_path: Path) -> None:
    require_conformance_suite()

    run = completed(command(tmp_path / "results", *SCENARIOS), timeout=PATIENCE_SECS)

    assert run.returncode == 0, run.stdout + run.stderr
    rows = dict(re.findall(r"^([a-z0-9-]+)  +(\S.*)$", run.stdout, re.MULTILINE))
    assert {name: re.split("  +", row) for name, row in rows.items()} == {
        "tools-call-elicitation": ["passes", "-"],
        "dns-rebinding-protection": ["passes", "passes"],
        "caching": ["-", "passes"],
        "sep-2640-skills-manifest": ["-", "passes"],
    }
    assert "2026-07-28: 1 of 1 scenarios of extensions pass" in run.stdout
    assert "2025-11-25: 2 of 2 required scenarios pass" in run.stdout


def test_a_scenario_that_does_not_exist_is_named(tmp_path: Path) -> None:
    require_conformance_suite()

    run = subprocess.run(command(tmp_path, "cashing"), capture_output=True, encoding="utf-8", timeout=PATIENCE_SECS)

    assert (run.returncode, run.stdout) == (1, "")
    assert "no scenario cashing" in run.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_a_run_that_is_stopped_leaves_no_process_and_no_copy(tmp_path: Path) -> None:
    require_conformance_suite()
    results, scratch = tmp_path / "results", tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(command(results), env={**os.environ, "TMPDIR": str(scratch)}, stdout=subprocess.DEVNULL)
    eventually(lambda: any(results.glob("*/server-*/checks.json")), within_secs=PATIENCE_SECS)
    assert list(processes_with(scratch))

    process.send_signal(signal.SIGTERM)

    assert process.wait(PATIENCE_SECS) == 128 + signal.SIGTERM
    assert list(scratch.iterdir()) == []
    eventually(lambda: not list(processes_with(scratch)), within_secs=PATIENCE_SECS)


def processes_with(scratch: Path) -> Iterator[str]:
    """Command lines that name the copy of the project: the server and its scripts."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue  # it has just ended
        if str(scratch) in line:
            yield line


def test_a_failure_is_a_complaint(conformance: ModuleType) -> None:
    complaints = list_complaints(conformance, {"ping": conformance.Verdict({"ping": "no answer"}, {})})

    assert complaints == ["R ping: ping: no answer"]


def test_a_required_scenario_without_a_verdict_is_a_complaint(conformance: ModuleType) -> None:
    assert list_complaints(conformance, {}) == ["R ping: the suite says nothing about it"]


def test_warnings_and_what_is_not_required_are_no_complaints(conformance: ModuleType) -> None:
    verdicts = {
        "ping": conformance.Verdict({}, {"ping": "slow"}),
        "tasks-lifecycle": conformance.Verdict({"tasks": "none"}, {}),
    }

    assert list_complaints(conformance, verdicts, not_scored=["tasks-lifecycle"]) == []


def test_a_skipped_check_counts_as_failed_for_an_extension_only(conformance: ModuleType) -> None:
    checks = [{"id": "first", "status": "SUCCESS"}, {"id": "second", "status": "SKIPPED", "errorMessage": "no skills"}]

    assert conformance.verdict_of(checks).failures == {}
    assert conformance.verdict_of(checks, may_skip=False).failures == {"second": "no skills"}


def test_what_fails_and_is_not_required_is_named_with_the_reason(conformance: ModuleType) -> None:
    verdicts = {
        "tasks-lifecycle": conformance.Verdict({"tasks": "no such method"}, {}),
        "new-thing": conformance.Verdict({"first": "too new", "second": "too"}, {}),
        "json-schema": conformance.Verdict({}, {}),
    }
    demanded = {"R": conformance.Requirements([], list(verdicts), [])}

    assert list(conformance.remarks_about({"R": verdicts}, demanded)) == [
        "R tasks-lifecycle (not required): tasks: no such method",
        "R new-thing (not required): first: too new",
    ]


def list_complaints(
    conformance: ModuleType, verdicts: dict[str, Any], *, scored: Any = ("ping",), not_scored: Any = ()
) -> list[str]:
    demanded = {"R": conformance.Requirements(list(scored), list(not_scored), [])}
    return list(conformance.complaints_about({"R": verdicts}, demanded, is_whole=True))
