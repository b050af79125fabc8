"""Tests that others would disturb, or that would disturb others, when several workers share the machine.

Whatever counts processes, uses up memory or descriptors, or lets order decide within milliseconds is marked `alone`. It
waits until the tests of the other workers are over, and they wait for it. Without workers there is nothing to do.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Apart:
    """The plugin of one worker. All of them lock the same two files, which are there anyway."""

    def __init__(self) -> None:
        here = Path(__file__)
        self._door = here.open()
        self._room = (here.parents[1] / "conftest.py").open()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        with self._turn(is_alone=is_alone(item)):
            yield

    @contextmanager
    def _turn(self, *, is_alone: bool) -> Iterator[None]:
        # Through the door one at a time: who waits there to be alone is not overtaken again and again.
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._room, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        fcntl.flock(self._door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)


def is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


def set_up(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: runs while no other worker runs a test")
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Apart())
