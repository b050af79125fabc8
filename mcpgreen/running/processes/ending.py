"""Why a run has ended. A module of its own, since calls are told of before any script has run."""

from __future__ import annotations


class Ending:
    EXIT = "exit"
    DEADLINE = "deadline"
    STDOUT_LIMIT = "stdout limit"
    STDERR_LIMIT = "stderr limit"
