"""Floods from another process, which `tests.abuse.http_floods` measures: somebody else is served all the time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from tests.abuse.http_floods import FLOODS
from tests.support.descriptors import needs_proc
from tests.support.programs import completed
from tests.support.waiting import PATIENCE_SECS
from tests.support.wire import CHECKOUT, clean_environment

ROW = re.compile(r"^(.+?) +(\d+) +([\d.]+) ms +([\d.]+) ms$", re.MULTILINE)


@pytest.mark.alone
@needs_proc
def test_whatever_one_client_floods_the_server_with_another_is_served(
    record_property: Callable[[str, object], None],
) -> None:
    run = completed(
        [sys.executable, "-m", "tests.abuse.http_floods"],
        env=clean_environment({"MCPGREEN_FLOOD_SECS": "0.3"}),
        cwd=CHECKOUT,
        timeout=3 * PATIENCE_SECS,
    )
    rows = {name: (int(answers), float(turn_ms)) for name, answers, _, turn_ms in ROW.findall(run.stdout)}
    assert run.returncode == 0, run.stdout + run.stderr
    assert set(rows) == set(FLOODS)
    assert all(answers > 0 for answers, _ in rows.values()), rows
    record_property("longest turn of the hub in ms of cpu", max(turn_ms for _, turn_ms in rows.values()))
