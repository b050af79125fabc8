"""Print text for people and JSON for programs, suggest names, show progress, ask questions, and greet users.

Rule: names and text from files, scripts and clients are data. Commands print them with `say` (stdout) and `tell`
(stderr), or through `harmless`, so that they cannot control a terminal. Colours are added after that.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from textwrap import TextWrapper
from typing import TYPE_CHECKING, TextIO

from mcpgreen.cli.commands import text_named
from mcpgreen.errors import InternalError
from mcpgreen.journal import in_one_line
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.engine.server import Server
    from mcpgreen.features.services import Services

MOST_COMPARED = 200
USUAL_WIDTH, NARROWEST = 80, 40
BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "1;31", "32", "33", "36"  # as terminals number them
_CONTINUED = re.compile(r"\n {8,}(?=\S)|(?<=[^:\n])\n(?=\S)")  # where a line of a help text goes on
_START = re.compile(r"([A-Z][a-z ]*:)|  (?:mcpgreen [a-z-]+ |(\S+(?: \S+)*)  +(?=\S))")  # a heading; what is listed
_IN_BRACKETS = re.compile(r"\[[^]]*]")
WORDS = {kind: kind[:-1] for kind in ("tools", "resources", "resourceTemplates", "prompts", "skills")}
WORDS["resourceTemplates"] = "template"


def harmless(text: str) -> str:
    """Escape characters that would move the cursor, change colours or the order of letters, or name the window."""
    return "\n".join("\t".join(map(in_one_line, line.split("\t"))) for line in text.split("\n"))


def say(text: str, *, is_exact: bool = False) -> None:
    """Print a result on stdout. With `is_exact`, it is printed unchanged unless stdout is a terminal."""
    put(text if is_exact and not sys.stdout.isatty() else harmless(text), sys.stdout)


def put(text: str, file: TextIO) -> None:
    """Print text that is harmless already, whatever the encoding of the file is."""
    file.flush()
    file.buffer.write(text.encode("utf-8", "backslashreplace"))
    file.buffer.flush()


def has_colour(file: TextIO) -> bool:
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, style: str, file: TextIO) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if text and has_colour(file) else text


def width_of(file: TextIO) -> int:
    columns = 0
    with suppress(OSError, ValueError):
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(file.fileno()).columns
    return max(columns or USUAL_WIDTH, NARROWEST)  # some terminals do not know their width


def wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> str:
    """Break harmless text at spaces. `first` and `rest` begin its lines. Words, such as paths, stay whole."""
    return TextWrapper(width, first, rest, break_long_words=False, break_on_hyphens=False).fill(text)


def filled(text: str, width: int) -> str:
    """Return a help text with all paragraphs, options and forms of usage as wide as they may be."""
    lines = []
    for line in _CONTINUED.sub(" ", text).splitlines():
        start = _START.match(line)
        words = _IN_BRACKETS.sub(lambda found: found[0].replace(" ", "\0"), line)
        lines.append(wrapped(words, width, rest=" " * start.end() if start and not start[1] else ""))
    return "\n".join([*lines, ""]).replace("\0", " ")


def say_help(text: str) -> None:
    for line in filled(text, width_of(sys.stdout)).splitlines():
        start = _START.match(line)
        for mark, style in zip(start.groups(""), (BOLD, CYAN), strict=True) if start else ():
            line = line.replace(mark, painted(mark, style, sys.stdout), 1)
        put(f"{line}\n", sys.stdout)


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
    counts, tool = _served(services)
    root = services.project.root
    values = {"name": services.identity.info["name"], "counts": counts, "root": root}
    tell(text_named("welcome").format(**values, quoted=shlex.quote(root), tool=shlex.quote(tool)))


def welcome_over_http(server: Server) -> None:
    """Say on stderr what a server at a terminal serves over HTTP, and which clients it lets in."""
    services, settings = server.services, server.services.settings
    counts, _ = _served(services)
    access = "no token is set, so any program that can reach the server can call the tools"
    if settings.http_oauth_issuer:
        access = f"clients need an access token from {settings.http_oauth_issuer}"
    elif settings.http_token:
        access = f"clients need the token in {settings.origin('http_token')}"
    tell(f"mcpgreen: {services.identity.info['name']} in {services.project.root}: {counts}\nmcpgreen: {access}\n")


def _served(services: Services) -> tuple[str, str]:
    """Return how many items of each kind are served, and the name of a tool."""
    counts, tool = [], "NAME"
    for kind, word in WORDS.items():
        try:
            items = services.snapshot(kind).items
        except InternalError as error:
            counts.append(f"{kind} cannot be read: {error}")
            continue
        if items or kind != "skills":
            counts.append(f"{len(items)} {word}{'' if len(items) == 1 else 's'}")
        if kind == "tools" and items:
            tool = items[0].name
    return ", ".join(counts), tool
