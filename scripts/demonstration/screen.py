"""What the demonstration prints: coloured and moving at a terminal, plain everywhere else.

Rule: nothing here fails because of a terminal. What it cannot show is left out or replaced, and the only control
characters are colours and the carriage return, so that a narrow, dumb or recorded terminal shows the same lines.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Mapping
from typing import TextIO

COLOURS = {"title": "1", "note": "2", "good": "32", "sent": "36", "received": "33", "code": "35"}
WIDTH_WITHOUT_TERMINAL = 100
WIDTHS = range(30, 121)
KEYSTROKE_SECS = 0.008
BAR_CELLS = 24


class Screen:
    """`is_live` is a terminal where a line can be drawn again; only there does the demonstration take its time."""

    def __init__(self, stream: TextIO, environment: Mapping[str, str]) -> None:
        is_terminal = stream.isatty()
        self._stream = stream
        self.is_live = is_terminal and environment.get("TERM", "dumb") != "dumb"
        self._is_coloured = self.is_live and not environment.get("NO_COLOR")
        columns = shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns if is_terminal else 0
        self._width = min(max(columns or WIDTH_WITHOUT_TERMINAL, WIDTHS.start), WIDTHS.stop - 1)
        self._is_plain_ascii = "utf" not in (stream.encoding or "").lower()
        self._bar_is_open = False
        self._next_share = 0.0

    def title(self, text: str) -> None:
        self.line("")
        self.line(text, style="title")
        self.pause(0.2)

    def line(self, text: str, *, style: str = "", indent: int = 0) -> None:
        """One line, cut to the width."""
        self._end_bar()
        self._write(self._styled(self._cut(" " * indent + text), style) + "\n")

    def note(self, text: str, *, indent: int = 0) -> None:
        """A sentence, on as many lines as it takes."""
        for line in textwrap.wrap(text, self._width - indent):
            self.line(line, style="note", indent=indent)

    def typed(self, text: str, *, indent: int = 0) -> None:
        """One line that appears as if somebody typed it."""
        self._end_bar()
        before, _, after = self._styled("|", "code").partition("|")
        self._write(before)
        for character in self._cut(" " * indent + text):
            self._write(character)
            self.pause(KEYSTROKE_SECS)
        self._write(after + "\n")

    def bar(self, share: float, text: str, *, indent: int = 0) -> None:
        """A progress bar: drawn again in its line at a terminal, a line for each quarter elsewhere."""
        filled = round(min(max(share, 0.0), 1.0) * BAR_CELLS)
        full, empty = ("#", ".") if self._is_plain_ascii else ("█", "░")
        drawn = " " * indent + full * filled + empty * (BAR_CELLS - filled)
        line = self._cut(f"{drawn} {share:4.0%}  {text}")
        if not self.is_live:
            if share >= self._next_share:
                self._next_share = int(share * 4 + 1) / 4
                self._write(line + "\n")
            return
        # One column stays free: a cursor behind the last one makes some terminals begin another line.
        shown = line[: self._width - 1].ljust(self._width - 1)
        self._write("\r" + self._styled(shown[: len(drawn)], "good") + shown[len(drawn) :])
        self._bar_is_open = True

    def pause(self, secs: float) -> None:
        if self.is_live:
            self._stream.flush()
            time.sleep(secs)

    def _end_bar(self) -> None:
        self._next_share = 0.0
        if self._bar_is_open:
            self._bar_is_open = False
            self._write("\n")

    def _cut(self, line: str) -> str:
        line = "".join(character if character.isprintable() else " " for character in line)
        if self._is_plain_ascii:
            line = line.replace("→", "->").replace("←", "<-").replace("…", "...").encode("ascii", "replace").decode()
        if len(line) <= self._width:
            return line
        mark = "..." if self._is_plain_ascii else "…"
        return line[: self._width - len(mark)] + mark

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{COLOURS[style]}m{text}\x1b[0m" if style and self._is_coloured and text else text

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def standard_screen() -> Screen:
    """The screen behind stdout."""
    return Screen(sys.stdout, os.environ)
