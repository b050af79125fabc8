"""Print and ask: text for people, JSON for programs, suggestions for mistyped names, progress, questions, a welcome.

Rule: names and text from files, scripts and clients are data. Commands print them with `say` (stdout) and `tell`
(stderr), or through `harmless`, so that they cannot control a terminal.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING

from mcpgreen.cli.commands import text_named
from mcpgreen.errors import InternalError
from mcpgreen.journal import in_one_line
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.engine.server import Server

MOST_COMPARED = 200
WORDS = {"tools": "tool", "resources": "resource", "resourceTemplates": "template", "prompts": "prompt"}


def harmless(text: str) -> str:
    """Escape characters that would move the cursor, change colours or the order of letters, or name the window."""
    return "\n".join("\t".join(map(in_one_line, line.split("\t"))) for line in text.split("\n"))


def say(text: str, *, is_exact: bool = False) -> None:
    """Print a result on stdout. With `is_exact`, it is printed unchanged unless stdout is a terminal."""
    sys.stdout.flush()
    shown = text if is_exact and not sys.stdout.isatty() else harmless(text)
    sys.stdout.buffer.write(shown.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def tell(text: str) -> None:
    """Print a remark on stderr."""
    sys.stderr.write(harmless(text))
    sys.stderr.flush()


def print_json(value: object) -> None:
    """Print one line on stdout, at once, so that later lines on stderr come after it."""
    sys.stdout.buffer.write(jsontext.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: a question, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(islice(known, MOST_COMPARED)), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def step(text: str) -> AbstractContextManager[object]:
    """Show on stderr what a person at a terminal is waiting for, until it is done."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False).status(f"{text} ...")


def can_ask() -> bool:
    """Tell whether a person is at the terminal. Without one, the defaults count."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask(question: str, default: str, choices: Sequence[str] = ()) -> str:
    """Ask a question and return the answer, or the default for an empty one. Choices are the only valid answers."""
    options = f" ({', '.join(choices)})" if choices else ""
    while True:
        try:
            answer = input(f"{question}{options} [{default}]: ")
        except EOFError:
            sys.stdout.write("\n")
            return default
        # Bytes of a terminal that are not UTF-8 are lone surrogates.
        answer = answer.encode("utf-8", "replace").decode("utf-8").strip() or default
        if not choices or answer in choices:
            return answer
        sys.stdout.write(f"Please choose one of {', '.join(choices)}.\n")


def welcome(server: Server) -> None:
    """Say on stderr what a server at a terminal serves. Otherwise it would seem to hang."""
    services = server.services
    counts, tool = [], "NAME"
    for kind, word in WORDS.items():
        try:
            items = services.snapshot(kind).items
        except InternalError as error:
            counts.append(f"{kind} cannot be read: {error}")
            continue
        counts.append(f"{len(items)} {word}{'' if len(items) == 1 else 's'}")
        if kind == "tools" and items:
            tool = items[0].name
    root = services.project.root
    values = {"name": services.identity.info["name"], "counts": ", ".join(counts), "root": root}
    tell(text_named("welcome").format(**values, quoted=shlex.quote(root), tool=shlex.quote(tool)))
