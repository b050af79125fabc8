"""The live table: draws what the board has, and follows the keys of a person.

Rule: the terminal is left as it was, whatever happens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event as Bell
from gevent.socket import wait_read

from mcpgreen.cli.watching import filters, table
from mcpgreen.cli.watching.board import Board, CallRow

if TYPE_CHECKING:
    from rich.console import Console, Group

DRAW_SECS = 0.1  # between two pictures
REST_SECS = 1.0  # without news: the times of running calls grow
KEYS = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "k": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "j": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "first",
    "\x1b[F": "last",
    "g": "first",
    "G": "last",
    "\r": "open",
    "\n": "open",
    "\x1b[C": "open",
    "\x1b": "back",
    "\x1b[D": "back",
    "q": "quit",
    "/": "filter",
}
HELP = "↑↓ choose · Enter open · / filter · q leave"
HELP_OF_CALL = "↑↓ scroll · Esc back · q leave"


class LiveTable:
    """`follows`: the newest call is chosen, until a person chooses another one."""

    def __init__(self, board: Board, filter_text: str, servers: Callable[[], int]) -> None:
        self.filter_text = filter_text
        self.news = Bell()
        self._board = board
        self._servers = servers
        self._chosen: CallRow | None = None
        self._opened: CallRow | None = None
        self._offset = 0  # of the opened call
        self._typed: str | None = None  # a filter that is being typed
        self._is_over = False

    def rows(self) -> list[CallRow]:
        wanted = filters.parsed(self.filter_text if self._typed is None else self._typed)
        return [row for row in self._board.rows.values() if wanted(row)]

    def press(self, key: str) -> None:
        """Do what a key means. Keys are those of `KEYS`, and characters."""
        self.news.set()
        action = KEYS.get(key, key)
        if self._typed is not None:
            self._type(key, action)
        elif action == "quit":
            self._is_over = True
        elif self._opened is not None:
            self._scroll(action)
        elif action == "filter":
            self._typed = self.filter_text
        elif action == "back":
            self._chosen = None
        elif action == "open":
            rows = self.rows()
            self._opened, self._offset = self._chosen or (rows[-1] if rows else None), 0
        else:
            self._choose(action)

    def _type(self, key: str, action: str) -> None:
        assert self._typed is not None
        if action == "open":
            self.filter_text, self._typed, self._chosen = self._typed, None, None
        elif action == "back":
            self._typed = None
        elif key in ("\x7f", "\b"):
            self._typed = self._typed[:-1]
        elif key.isprintable():
            self._typed += key

    def _scroll(self, action: str) -> None:
        page = os.get_terminal_size().lines - 3
        if action == "back":
            self._opened = None
        elif action == "first":
            self._offset = 0
        else:
            self._offset += {"up": -1, "down": 1, "page up": -page, "page down": page, "last": 10**6}.get(action, 0)

    def _choose(self, action: str) -> None:
        rows = self.rows()
        if not rows:
            return
        at = rows.index(self._chosen) if self._chosen in rows else len(rows) - (action != "up")
        page = os.get_terminal_size().lines - 5
        step = {"up": -1, "down": 1, "page up": -page, "page down": page, "first": -len(rows), "last": len(rows)}
        at += step.get(action, 0)
        self._chosen = rows[min(max(at, 0), len(rows) - 1)] if action in step and at < len(rows) else None

    def picture(self, width: int, height: int) -> Group:
        from rich.console import Group

        lines = self._call_picture(height) if self._opened is not None else self._table_picture(width, height)
        return Group(*lines)

    def _call_picture(self, height: int) -> list[Any]:
        assert self._opened is not None
        lines, room = table.call_lines(self._opened), height - 1
        self._offset = min(max(self._offset, 0), max(0, len(lines) - room))
        shown = lines[self._offset : self._offset + room]
        return [*shown, *[""] * (room - len(shown)), table.plain_line(HELP_OF_CALL, "dim")]

    def _table_picture(self, width: int, height: int) -> list[Any]:
        rows, room = self.rows(), max(1, height - 3)
        at = rows.index(self._chosen) if self._chosen in rows else len(rows) - 1
        begin = max(0, min(at - room // 2, len(rows) - room)) if self._chosen in rows else max(0, len(rows) - room)
        shown = rows[begin : begin + room]
        longest_ms = max((row.total_ms for row in shown), default=1.0)
        lines = [table.row_line(row, width, longest_ms, is_chosen=row is self._chosen) for row in shown]
        failed = sum(row.is_failure for row in rows)
        counts = f"{self._servers()} server(s), {len(rows)} of {len(self._board.rows)} calls, {failed} failed"
        memory = sum(each.get("rss_kb", 0) for each in self._board.samples.values())
        if memory:
            counts += f", {table.size_of(memory)}"
        foot = f"/{self._typed}▏" if self._typed is not None else HELP
        if self._typed is None and self.filter_text:
            foot = f"filter: {self.filter_text} · {HELP}"
        return [
            table.plain_line(counts, "bold cyan"),
            table.header(width),
            *lines,
            *[""] * (room - len(lines)),
            table.plain_line(foot[:width], "dim"),
        ]

    def run(self, console: Console, ended: Bell) -> None:
        """Draw until the person leaves."""
        from rich.live import Live

        keys = gevent.spawn(self._read_keys)
        try:
            with _raw(sys.stdin.fileno()), Live(console=console, screen=True, auto_refresh=False) as live:
                while not self._is_over:
                    self.news.clear()
                    size = console.size
                    live.update(self.picture(size.width, size.height), refresh=True)
                    gevent.sleep(DRAW_SECS)
                    self.news.wait(REST_SECS)
        finally:
            keys.kill()

    def _read_keys(self) -> None:
        fd = sys.stdin.fileno()
        while True:
            wait_read(fd)
            typed = os.read(fd, 1024).decode("utf-8", "replace")
            if not typed:
                self.press("q")
                return
            for key in keys_in(typed):
                self.press(key)


def keys_in(typed: str) -> Iterator[str]:
    """Cut what a terminal sends into keys: characters, and sequences that begin with Escape."""
    while typed:
        key = typed[0]
        if key == "\x1b":
            key = next((each for each in sorted(KEYS, key=len, reverse=True) if typed.startswith(each)), key)
        yield key
        typed = typed[len(key) :]


@contextmanager
def _raw(fd: int) -> Iterator[None]:
    """Have each key at once, and not shown."""
    import termios
    import tty

    before = termios.tcgetattr(fd)
    tty.setcbreak(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
