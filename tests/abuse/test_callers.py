"""Callers who take all that they can get, by `tests.abuse.callers`: another caller is served all the time."""

from __future__ import annotations

import os
import random
import re
import sys

import pytest

from tests.abuse.callers import ATTACKS
from tests.support.descriptors import needs_proc
from tests.support.programs import completed
from tests.support.waiting import PATIENCE_SECS
from tests.support.wire import CHECKOUT, clean_environment

SECS = float(os.environ.get("MCPGREEN_ABUSE_SECS", "0"))
IS_FULL = SECS >= 60
SEED = random.SystemRandom().getrandbits(16) if IS_FULL else 1
EACH_SECS = SECS / len(ATTACKS) if IS_FULL else 0.3
ROW = re.compile(r"^(.+?) +(\d+) +[\d.]+ ms$", re.MULTILINE)


@pytest.mark.alone
@needs_proc
def test_whatever_one_caller_takes_another_is_served() -> None:
    run = completed(
        [sys.executable, "-m", "tests.abuse.callers", "--seed", str(SEED)],
        env=clean_environment({"MCPGREEN_CALLERS_SECS": str(EACH_SECS)}),
        cwd=CHECKOUT,
        timeout=3 * PATIENCE_SECS + 2 * SECS,
    )

    assert run.returncode == 0, f"--seed {SEED}\n{run.stdout}{run.stderr}"
    assert {name for name, served in ROW.findall(run.stdout) if int(served)} == set(ATTACKS)
