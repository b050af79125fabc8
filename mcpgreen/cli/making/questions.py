"""What `new` asks at a terminal. In a pipe nobody is asked, and the defaults count."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def asked(question: str, default: str, choices: Sequence[str] = ()) -> str:
    """The answer, or the default for an empty one; one of the choices if there are any."""
    options = f" ({', '.join(choices)})" if choices else ""
    while True:
        try:
            answer = input(f"{question}{options} [{default}]: ")
        except EOFError:
            sys.stdout.write("\n")
            return default
        # As a terminal gives it: what is no text in UTF-8 comes as lone surrogates.
        answer = answer.encode("utf-8", "replace").decode("utf-8").strip() or default
        if not choices or answer in choices:
            return answer
        sys.stdout.write(f"Please choose one of {', '.join(choices)}.\n")
