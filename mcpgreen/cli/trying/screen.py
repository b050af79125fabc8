"""Show results to a person. Colours, tables and bars come from rich, which only this module loads.

Rule: text from scripts and descriptions is data. It is not read as markup, and cannot control a terminal.
"""

from __future__ import annotations

import base64
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from mcpgreen.cli.commands import Options
from mcpgreen.cli.output import harmless, has_colour, print_json, tell
from mcpgreen.protocol.content import CONTENT_TYPES, Attachment, view_of_resource
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.progress import Progress, TaskID

SUFFIX_OF = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}
SUFFIX_OF |= {"image/svg+xml": ".svg", "audio/wav": ".wav", "audio/mpeg": ".mp3", "application/pdf": ".pdf"}
STYLE_OF_LEVEL = {"debug": "dim", "info": "", "notice": "", "warning": "yellow"}  # the others are errors
OURS = "mcp.tools"  # a logger, for what stderr gets as well
UNBROKEN = 10_000  # characters of a line that a program reads; for a person it is as wide as the terminal
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # programs print them, and they mean nothing here


def wants_json(options: Options) -> bool:
    """Tell whether to print one line of JSON: the user asks for it, or a program reads stdout."""
    return bool(options["--json"]) or not (sys.stdout.isatty() or options["--plain"])


class Screen:
    """Prints for a person; without colours and frames if the user wants none, or stdout is not a terminal."""

    def __init__(self, options: Options) -> None:
        self.is_plain = bool(options["--plain"]) or not has_colour(sys.stdout)

    def console(self, file: TextIO) -> Console:
        from rich.console import Console

        width = None if file.isatty() else UNBROKEN
        is_terminal = False if self.is_plain else None
        return Console(file=file, force_terminal=is_terminal, highlight=False, markup=False, emoji=False, width=width)

    @cached_property
    def out(self) -> Console:
        return self.console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        return self.console(sys.stderr)

    def text(self, text: str, style: str = "") -> None:
        """Print text without wrapping it, because it may be meant to be copied."""
        self.out.print(uncoloured(text), style=style or None, soft_wrap=True)

    def note(self, text: str, style: str = "dim") -> None:
        """Print on stderr something that is not part of the result."""
        self.err.print(uncoloured(text), style=style or None, soft_wrap=True)

    def problem(self, text: str) -> None:
        self.note(text, "bold red")

    def table(
        self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], live: Live | None = None
    ) -> None:
        """Print a table, or show it in place of what `live` shows now."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title, title_justify="left", title_style="bold", box=None if self.is_plain else box.SIMPLE)
        for number, column in enumerate(columns):
            table.add_column(column, overflow="fold", no_wrap=False, style="cyan" if number == 0 else None)
        for row in rows:
            table.add_row(*(Text(uncoloured(cell)) for cell in row))
        if live is None:
            self.out.print(table, *[""] * self.is_plain)
        else:
            live.update(table, refresh=True)

    def content(self, blocks: Iterable[Json]) -> None:
        """Print the content blocks of a result or a message."""
        for block in blocks:
            row = CONTENT_TYPES.get(block.get("type", ""))
            self._show(row.view(block) if row else jsontext.pretty(block))

    def resource(self, contents: Json) -> None:
        self._show(view_of_resource(contents))

    def _show(self, view: str | Attachment) -> None:
        self.text(save(*view) if isinstance(view, Attachment) else view.rstrip("\n"))

    def result(self, result: Json) -> None:
        """Print the content of a result, then its structured part if that says more."""
        blocks = result.get("content", [])
        structured = result.get("structuredContent")
        value = structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured
        if any(_repeats(block, value) for block in blocks):
            structured = value  # that a function returned
        shown = [block for block in blocks if structured is None or not _repeats(block, structured)]
        if result.get("isError"):
            self.problem("The tool reported an error:")
        self.content(shown)
        if structured is not None:
            self.text(structured if isinstance(structured, str) else jsontext.pretty(structured).rstrip("\n"))
        if not shown and structured is None and not result.get("isError"):
            self.note("(The tool printed nothing.)")


class Bars:
    """Progress notifications as a bar, log messages as lines, on stderr, while a call runs."""

    def __init__(self, screen: Screen) -> None:
        # Loaded before the call: an import in its middle would hold the hub, and the script is not read meanwhile.
        import rich.progress

        self._rich = rich.progress
        self._screen = screen
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def tell(self, notification: Json) -> None:
        params = notification.get("params", {})
        if notification.get("method") == "notifications/progress":
            self._advance(params)
        elif notification.get("method") == "notifications/message" and params.get("logger") != OURS:
            data = params.get("data")
            text = data if isinstance(data, str) else jsontext.dumps(data).decode("ascii")
            level = str(params.get("level"))
            self._screen.note(f"{level}: {text}", STYLE_OF_LEVEL.get(level, "red"))

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _advance(self, params: Json) -> None:
        done, total = params.get("progress", 0), params.get("total")
        message = uncoloured(str(params.get("message", "")))
        if not sys.stderr.isatty():
            self._screen.note(f"{done:g}{f'/{total:g}' if total else ''} {message}".rstrip(), "")
            return
        if self._progress is None or self._task is None:
            text = self._rich.TextColumn("{task.description}", markup=False)
            columns = (self._rich.BarColumn(), self._rich.TimeElapsedColumn(), text)
            self._progress = self._rich.Progress(*columns, console=self._screen.err, transient=True, auto_refresh=False)
            self._progress.start()
            self._task = self._progress.add_task("", total=total)
        said = f"{100 * done / total:.0f}% {message}" if total else message
        self._progress.update(self._task, completed=done, total=total, description=said, refresh=True)


def print_outcome(result: Json, options: Options, screen: Screen, *, as_json: bool) -> int:
    """Print the result of a tool, and return the exit status."""
    meta = result.get("_meta", {})
    # A script that was never started has no exit code.
    has_failed = bool(result.get("isError")) and (meta.get("exitCode") != 0 or options["--check"])
    said = meta.get("stderr", "")
    is_verbose = options.get("--verbose")
    if as_json:
        if is_verbose:
            tell(said)
        print_json(result)
    else:
        if said and (has_failed or is_verbose):
            screen.note(said.rstrip("\n"))
        screen.result(result)
    return 1 if has_failed else 0


def save(data: str, mime_type: str) -> str:
    """Save a picture or another file for the person to open, and return its path and size."""
    content = base64.b64decode(data)
    fd, path = tempfile.mkstemp(suffix=SUFFIX_OF.get(mime_type, ".bin"), prefix="mcpgreen-")
    with open(fd, "wb") as file:
        file.write(content)
    return f"{path} ({mime_type or 'unknown type'}, {len(content)} bytes)"


def uncoloured(text: str) -> str:
    return harmless(COLOURS.sub("", text))


def _repeats(block: Json, structured: object) -> bool:
    try:
        return block.get("type") == "text" and bool(jsontext.loads(block["text"]) == structured)
    except ValueError:
        return bool(block["text"] == structured)
