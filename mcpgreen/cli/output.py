"""What commands print that are no lines for people: JSON for programs, and that something takes a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcpgreen.text import jsontext


def print_json(value: Any) -> None:
    """One line on stdout, at once: what is said on stderr next comes after it."""
    sys.stdout.buffer.write(jsontext.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


@contextmanager
def step(text: str) -> Iterator[None]:
    """For a person who waits at a terminal: on stderr, and gone when it is done. In a pipe nothing is said."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False, markup=False, emoji=False).status(f"{text} ..."):
        yield
