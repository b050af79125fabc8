"""Attacks are measured in /proc."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if sys.platform != "linux" and str(item.path).startswith(here):
            item.add_marker(pytest.mark.skip(reason="attacks are measured in /proc"))
