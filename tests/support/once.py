"""What takes long to make is made once in a run, by the worker that first asks for it; the others wait for it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def directory_of_run(factory: pytest.TempPathFactory, name: str) -> Path:
    """A directory for all workers."""
    base = factory.getbasetemp()
    directory = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / name
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Any]) -> Any:
    """What `make` gives, as JSON has it. It gets a directory in which the things may stay that the value speaks of."""
    directory = directory_of_run(factory, name)
    made = directory / "made.json"
    with open(directory / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            place = directory / "place"
            place.mkdir()  # if a worker failed here before, the next one fails too, and says so
            made.write_text(json.dumps(make(place)), encoding="utf-8")
    return json.loads(made.read_text(encoding="utf-8"))
