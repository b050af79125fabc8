"""How much memory a process has used at its worst."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MIB = 1 << 20


def peak_bytes(pid: int) -> int:
    """The most that was resident at one time so far."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        pytest.skip("this system does not say how much memory a process has used")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024
