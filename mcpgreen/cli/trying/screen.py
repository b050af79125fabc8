"""How results look to a person: text as text, the rest by what it is. Colours, tables and bars come from rich, which is
loaded only here.

Rule: what scripts and descriptions say is data. Nothing of it is read as markup, and nothing that steers a terminal
gets through.
"""

from __future__ import annotations

import base64
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from mcpgreen.cli.commands import Options
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

SUFFIX_OF = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}
SUFFIX_OF |= {"image/svg+xml": ".svg", "audio/wav": ".wav", "audio/mpeg": ".mp3", "application/pdf": ".pdf"}
STYLE_OF_LEVEL = {"debug": "dim", "info": "", "notice": "", "warning": "yellow"}  # the others are errors
ALLOWED_CONTROLS = "\n\t"
UNBROKEN = 10_000  # characters of a line that a program reads; for a person it is as wide as the terminal
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # programs print them without harm, and they say nothing here


def wants_json(options: Options) -> bool:
    """Whether one line of JSON is what the caller expects: asked for, or because a program reads it."""
    return bool(options["--json"]) or not (sys.stdout.isatty() or options["--plain"])


class Screen:
    """What a person sees. Plain without colours and frames, where they were not wanted or stdout is no terminal."""

    def __init__(self, options: Options) -> None:
        is_dumb = os.environ.get("TERM") == "dumb"
        self.is_plain = bool(options["--plain"] or os.environ.get("NO_COLOR") or is_dumb or not sys.stdout.isatty())

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
        """As it is, but for what would steer the terminal. Not wrapped: it may be meant to be copied."""
        self.out.print(harmless(text), style=style or None, soft_wrap=True)

    def problem(self, text: str) -> None:
        self.err.print(harmless(text), style="bold red", soft_wrap=True)

    def note(self, text: str, style: str = "dim") -> None:
        """Beside the result, so on stderr."""
        self.err.print(harmless(text), style=style or None, soft_wrap=True)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title, title_justify="left", title_style="bold", box=None if self.is_plain else box.SIMPLE)
        for number, column in enumerate(columns):
            table.add_column(column, overflow="fold", no_wrap=False, style="cyan" if number == 0 else None)
        for row in rows:
            table.add_row(*(Text(harmless(cell)) for cell in row))
        self.out.print(table)

    def content(self, blocks: Iterable[Json]) -> None:
        """Content blocks of a result or a message."""
        for block in blocks:
            kind = block.get("type")
            if kind == "text":
                self.text(str(block.get("text", "")).rstrip("\n"))
            elif kind in ("image", "audio"):
                self.text(saved(block.get("data", ""), str(block.get("mimeType", ""))))
            elif kind == "resource":
                self.resource(block.get("resource", {}))
            elif kind == "resource_link":
                self.text(f"{block.get('name', '')}: {block.get('uri', '')}")
            else:
                self.text(jsontext.pretty(block).rstrip("\n"))

    def resource(self, contents: Json) -> None:
        if "text" in contents:
            self.text(str(contents["text"]).rstrip("\n"))
        else:
            self.text(saved(str(contents.get("blob", "")), str(contents.get("mimeType", ""))))

    def result(self, result: Json) -> None:
        """Of a call: what it says, then the structured part if that says more."""
        blocks = result.get("content", [])
        structured = result.get("structuredContent")
        shown = [block for block in blocks if structured is None or not _repeats(block, structured)]
        if result.get("isError"):
            self.problem("The tool reports an error:")
        self.content(shown)
        if structured is not None:
            self.text(jsontext.pretty(structured).rstrip("\n"))
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
        elif notification.get("method") == "notifications/message":
            data = params.get("data")
            text = data if isinstance(data, str) else jsontext.dumps(data).decode("ascii")
            level = str(params.get("level"))
            self._screen.note(f"{level}: {text}", STYLE_OF_LEVEL.get(level, "red"))

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _advance(self, params: Json) -> None:
        done, total, message = params.get("progress", 0), params.get("total"), harmless(str(params.get("message", "")))
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


def saved(data: str, mime_type: str) -> str:
    """Where a picture or another file was put, for a person to open."""
    content = base64.b64decode(data)
    fd, path = tempfile.mkstemp(suffix=SUFFIX_OF.get(mime_type, ".bin"), prefix="mcpgreen-")
    with open(fd, "wb") as file:
        file.write(content)
    return f"{path} ({mime_type or 'unknown type'}, {len(content)} bytes)"


def harmless(text: str) -> str:
    """Without what would move the cursor, change colours or the title of a terminal."""
    plain = COLOURS.sub("", text)
    return "".join(char if char in ALLOWED_CONTROLS or char.isprintable() else "\ufffd" for char in plain)


def _repeats(block: Json, structured: Any) -> bool:
    """Whether a text is only the structured result once more."""
    if block.get("type") != "text":
        return False
    try:
        return bool(jsontext.loads(block["text"]) == structured)
    except ValueError:
        return False
