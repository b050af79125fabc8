"""The live table of `watch`: draws the calls, and follows the keys of a person.

Rule: the terminal is left as it was, whatever happens.
"""

from __future__ import annotations

import os
import re
import sys
import termios
import tty
from collections.abc import Iterable

import gevent
from gevent.event import Event as Bell
from gevent.socket import wait_read
from rich.console import Console, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.segment import Segment, Segments

from mcpgreen.cli.watching import filters, table
from mcpgreen.cli.watching.calls import Call, Calls
from mcpgreen.text.json_types import Json

DRAW_SECS = 0.1  # between two pictures
REST_SECS = 1.0  # without news: the times of running calls grow
PAGE, ALL = 20, 1_000_000
KEY = re.compile(r"\x1b(?:[\[O][0-9;]*[A-Za-z~])?|.", re.DOTALL)  # a sequence, or a character
STEPS = {"\x1b[A": -1, "\x1b[B": 1, "\x1b[5~": -PAGE, "\x1b[6~": PAGE}
STEPS |= {"\x1b[H": -ALL, "\x1b[1~": -ALL, "\x1b[F": ALL, "\x1b[4~": ALL}
ENTER, BACK, DELETE = ("\r", "\n", "\x1b[C"), ("\x1b", "\x1b[D"), ("\x7f", "\b")
HELP = "↑↓ choose · Enter open · / filter · q leave"
HELP_OF_CALL = "↑↓ scroll · Esc back · q leave"


class LiveTable:
    """The newest call is chosen, until a person chooses another one."""

    def __init__(self, filter_text: str) -> None:
        self._calls = Calls()
        self._filter_text = filter_text
        self._is_typing = False  # a filter
        self._chosen: Call | None = None
        self._opened: Call | None = None
        self._offset = 0  # of the opened call
        self._is_over = False
        self._news = Bell()
        self._page = Layout()
        self._page.split_column(Layout(name="head", size=1), Layout(name="body"), Layout(name="foot", size=1))

    def run(self, events: Iterable[Json]) -> None:
        """Draw what happens until the person leaves."""
        console = Console(highlight=False, markup=False, emoji=False)
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
        readers = gevent.spawn(self._read_events, events), gevent.spawn(self._read_keys, keyboard)
        try:
            tty.setcbreak(keyboard)
            with Live(self._page, console=console, screen=True, auto_refresh=False) as live:
                while not self._is_over:
                    self._news.clear()
                    self._draw(console)
                    live.refresh()
                    gevent.sleep(DRAW_SECS)
                    self._news.wait(REST_SECS)
        finally:
            gevent.killall(readers)
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)

    def _read_events(self, events: Iterable[Json]) -> None:
        for event in events:
            self._calls.take(event)
            self._news.set()

    def _read_keys(self, keyboard: int) -> None:
        while not self._is_over:
            wait_read(keyboard)
            typed = os.read(keyboard, 1024).decode("utf-8", "replace").replace("\x1bO", "\x1b[")
            self._is_over = not typed
            for key in KEY.findall(typed):
                self._press(key)
            self._news.set()

    def _press(self, key: str) -> None:
        if self._is_typing:
            self._type(key)
        elif key == "q":
            self._is_over = True
        elif key == "/":
            self._opened, self._is_typing = None, True
        elif key in BACK:
            self._chosen, self._opened = (self._chosen if self._opened is not None else None), None
        elif key in STEPS and self._opened is not None:
            self._offset = max(0, self._offset + STEPS[key])
        elif key in STEPS:
            calls = self._wanted()
            at = (calls.index(self._chosen) if self._chosen in calls else len(calls)) + STEPS[key]
            self._chosen = calls[max(0, at)] if at < len(calls) else None
        elif key in ENTER:
            self._opened, self._offset = self._opened or self._chosen or next(reversed(self._wanted()), None), 0

    def _type(self, key: str) -> None:
        """Change the filter. What is typed counts at once."""
        if key in ENTER or key in BACK:
            self._is_typing = False
        elif key in DELETE:
            self._filter_text = self._filter_text[:-1]
        elif key.isprintable():
            self._filter_text += key

    def _wanted(self) -> list[Call]:
        return self._calls.chosen(filters.parsed(self._filter_text))

    def _draw(self, console: Console) -> None:
        room, calls = max(1, console.height - 3), self._wanted()
        if self._opened is not None:
            head, foot = table.line(self._opened), HELP_OF_CALL
            lines = console.render_lines(table.opened(self._opened))
            self._offset = min(self._offset, max(0, len(lines) - room))
            part = lines[self._offset : self._offset + room]
            body: RenderableType = Segments(segment for line in part for segment in (*line, Segment.line()))
        else:
            head = f"{len(calls)} of {len(self._calls)} calls, {sum(call.is_failure for call in calls)} failed"
            servers = [each for each in self._calls.servers.values() if "has_ended" not in each]
            head += f", {len(servers)} server(s), {sum(each.get('rss_kb', 0) for each in servers) / 1024:.1f} MiB"
            head += f", {self._calls.lost} events lost" if self._calls.lost else ""
            foot = f"/{self._filter_text}▏" if self._is_typing else f"{self._filter_text}  {HELP}".lstrip()
            at = calls.index(self._chosen) if self._chosen in calls else len(calls)
            first = max(0, min(at - room // 2, len(calls) - room))
            body = table.calls_table(calls[first : first + room], self._chosen, console.width)
        self._page["head"].update(table.shown(head, "bold", no_wrap=True))
        self._page["body"].update(body)
        self._page["foot"].update(table.shown(foot, "dim", no_wrap=True))
