"""The planted faults fit the code as it is. That the tests catch them takes minutes: see `make faults`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.planted_faults import FAULTS, Fault, why_stale

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    assert why_stale(fault, REPOSITORY) is None
    assert fault.new != fault.old


def test_each_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []
