"""Run a program to its end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Any

LONGEST_SECS = 120


def completed(words: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.CompletedProcess[Any]:
    """How a program ended, and what it printed, as text unless `encoding` is None. Without `input` it has none."""
    usual = {"capture_output": True, "encoding": "utf-8", "timeout": LONGEST_SECS, "check": False}
    without_input = {} if "input" in options or "stdin" in options else {"stdin": subprocess.DEVNULL}
    return subprocess.run(words, **{**usual, **without_input, **options})
