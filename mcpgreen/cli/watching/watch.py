"""`mcpgreen watch`: list the running servers of this user, or show the calls of one, or of all, as they happen."""

from __future__ import annotations

import sys

from mcpgreen.cli.commands import Options
from mcpgreen.cli.output import print_json, put, say, tell, width_of
from mcpgreen.cli.watching import filters, table
from mcpgreen.cli.watching.board import Board, CallRow
from mcpgreen.cli.watching.feed import Feed
from mcpgreen.events.attach import running_servers
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json


def run(options: Options) -> int:
    """Raises UsageError."""
    wanted = options["SERVER"]
    if wanted is None:
        return _list_servers(options)
    if options["--json"]:
        return _print_events(wanted)
    if options["--plain"] or not (sys.stdout.isatty() and sys.stdin.isatty()):
        return _print_calls(wanted, options["--filter"] or "")
    return _show_table(wanted, options["--filter"] or "")


def _list_servers(options: Options) -> int:
    servers = [found.server for found in running_servers()]
    if options["--json"]:
        print_json(servers)
    elif not servers:
        tell("no server of yours runs, or none that may be watched (setting observe)\n")
    else:
        from mcpgreen.cli.trying.screen import Screen

        heads, *rows = table.servers_table(servers)
        Screen({**options, "--plain": options["--plain"]}).table("", heads, rows)
        if sys.stdout.isatty():
            tell("Calls of one: mcpgreen watch PID. Of all: mcpgreen watch all.\n")
    return 0


def _print_events(wanted: str) -> int:
    """Print each event as a line, until the servers have ended."""
    feed = Feed(lambda server, event: put(jsontext.dumps(event).decode("ascii") + "\n", sys.stdout), wanted)
    return _wait(feed)


def _print_calls(wanted: str, filter_text: str) -> int:
    """Print a line for each call that ends."""
    board, test, width = Board(), filters.parsed(filter_text), width_of(sys.stdout)

    def take(server: Json, event: Json) -> None:
        row = board.take(server, event)
        if row is not None and event["kind"] == "ended" and test(row):
            print_row(row, width)

    return _wait(Feed(take, wanted))


def print_row(row: CallRow, width: int) -> None:
    """Print a call as a line of text, without colours."""
    say(table.row_line(row, width, row.total_ms).plain.rstrip() + (f"  {row.reason}" if row.reason else "") + "\n")


def _show_table(wanted: str, filter_text: str) -> int:
    from rich.console import Console

    from mcpgreen.cli.watching.screen import LiveTable

    board = Board()

    def take(server: Json, event: Json) -> None:
        board.take(server, event)
        live.news.set()

    feed: Feed | None = None
    live = LiveTable(board, filter_text, lambda: 0 if feed is None else feed.servers)
    feed = Feed(take, wanted)
    try:
        live.run(Console(highlight=False, markup=False, emoji=False), feed.ended)
    finally:
        feed.close()
    return 0


def _wait(feed: Feed) -> int:
    try:
        feed.ended.wait()
    finally:
        feed.close()
    return 0
