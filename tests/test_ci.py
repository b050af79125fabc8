"""The workflow for GitHub runs what .ci/run runs, on Linux and on macOS."""

from __future__ import annotations

import yaml

from tests.support.wire import CHECKOUT


def test_every_job_runs_the_checks() -> None:
    workflow = yaml.safe_load((CHECKOUT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]

    assert {job["runs-on"].partition("-")[0] for job in jobs.values()} == {"ubuntu", "macos"}
    assert [name for name, job in jobs.items() if {"run": ".ci/run"} not in job["steps"]] == []
    assert workflow["permissions"] == {"contents": "read"}
