"""Stands that are cleared away, whatever became of the test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stress.support import Stand


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if sys.platform != "linux" and str(item.path).startswith(here):
            item.add_marker(pytest.mark.skip(reason="leftovers are looked for in /proc"))


@pytest.fixture
def new_stand(tmp_path: Path) -> Iterator[Callable[..., Stand]]:
    """Make a stand; keyword arguments are settings of its server."""
    stands: list[Stand] = []

    def make(**settings: Any) -> Stand:
        stands.append(Stand(tmp_path, **settings))
        return stands[-1]

    yield make
    for stand in stands:
        stand.close()
