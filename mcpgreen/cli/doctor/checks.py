"""What `doctor` says of one thing: whether it is well, and what to do if it is not."""

from __future__ import annotations

from typing import NamedTuple

OK, WARNING, ERROR = "ok", "warning", "error"


class Check(NamedTuple):
    """Rule: what is not well has a `fix`."""

    name: str
    status: str
    message: str
    fix: str | None = None
