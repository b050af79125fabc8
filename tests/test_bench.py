"""The benchmark runs and reports. How fast anything is, is not tested here: that depends on the machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent / "scripts" / "bench"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark looks at processes through /proc")


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


def test_a_quick_run_gives_tables_and_json_with_ratios(tmp_path: Path) -> None:
    report = tmp_path / "bench.json"
    floors = ["floor-py", "floor-c"] if shutil.which("cc") else ["floor-py"]

    run = run_bench("--quick", "--only", ",".join(floors), "--json", str(report))

    assert run.returncode == 0, run.stderr
    assert "exec to first answer" in run.stdout
    assert "≤ 2.5x floor-py" in run.stdout
    assert "round 1/1: start-up" in run.stderr
    document = json.loads(report.read_text(encoding="utf-8"))
    assert document["failures"] == {}
    assert document["left_out"] == {}
    for key in ("first_answer", "call_p50", "calls_16", "pings", "list_1000_warm", "output_10mb", "cancel", "rss_1000"):
        metric = document["metrics"][key]
        for floor in floors:
            assert metric["medians"][floor] > 0
            assert metric["ratios"][floor]["floor-py"] > 0
        assert metric["ratios"]["floor-py"]["floor-py"] == 1


def test_a_floor_without_a_compiler_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    report = tmp_path / "bench.json"

    run = run_bench("--quick", "--only", "floor-c,floor-py", "--metric", "first_answer", "--json", str(report))

    assert run.returncode == 0, run.stderr
    assert "left out: floor-c: no compiler" in run.stdout
    assert json.loads(report.read_text(encoding="utf-8"))["left_out"] == {"floor-c": "no compiler"}


def test_strict_fails_when_our_server_cannot_be_measured(tmp_path: Path) -> None:
    """A package called mcpgreen that cannot serve, found before the real one."""
    broken = tmp_path / "mcpgreen"
    broken.mkdir()
    (broken / "__init__.py").touch()
    (broken / "__main__.py").write_text("raise SystemExit('broken')", encoding="utf-8")
    copy = tmp_path / "scripts" / "bench"
    shutil.copytree(BENCH, copy, ignore=shutil.ignore_patterns("__pycache__"))
    arguments = ["--quick", "--strict", "--only", "mcpgreen,floor-py", "--metric", "first_answer", "--json"]

    run = subprocess.run(
        [sys.executable, str(copy), *arguments, str(tmp_path / "bench.json")],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )

    assert run.returncode == 1
    assert "left out: mcpgreen: does not work here: the server ended: broken" in run.stdout
