"""What a command does that takes a while, for a person who waits at a terminal. In a pipe nothing is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(text: str) -> Iterator[None]:
    """On stderr, and gone when it is done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False, markup=False, emoji=False).status(f"{text} ..."):
        yield
