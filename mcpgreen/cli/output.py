"""What several commands print: JSON for programs, a guess at what was meant, and that something takes a while."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from mcpgreen.text import jsontext

MOST_COMPARED = 200


def print_json(value: Any) -> None:
    """One line on stdout, at once: what is said on stderr next comes after it."""
    sys.stdout.buffer.write(jsontext.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that nothing has; empty if nothing is like it."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(islice(known, MOST_COMPARED)), n=1)
    return f"; did you mean {near[0]}?" if near else ""


@contextmanager
def step(text: str) -> Iterator[None]:
    """For a person who waits at a terminal: on stderr, and gone when it is done. In a pipe nothing is said."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False, markup=False, emoji=False).status(f"{text} ..."):
        yield
