"""`mcpgreen trace`: write the events of running servers to a file, show such a file, or turn it into another format."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO

from mcpgreen.cli.commands import Options
from mcpgreen.cli.output import put, tell, width_of
from mcpgreen.cli.watching import filters
from mcpgreen.cli.watching.board import Board, board_of
from mcpgreen.cli.watching.feed import Feed
from mcpgreen.cli.watching.watch import print_row
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import without_waiting
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_LINE_BYTES = 1 << 20


def run(options: Options) -> int:
    """Raises UsageError and ProjectError."""
    path = options["FILE"]
    if options["--show"] or options["--har"] or options["--otlp"]:
        try:
            board = board_of(events_in(path))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProjectError(path, "it has something that is not an event") from error
        if options["--show"]:
            test, width = filters.parsed(options["--filter"] or ""), width_of(sys.stdout)
            for row in board.rows.values():
                if test(row):
                    print_row(row, width)
            return 0
        from mcpgreen.cli.watching import exports

        export: Callable[[Board], Json] = exports.har if options["--har"] else exports.otlp
        put(jsontext.pretty(export(board)) + "\n", sys.stdout)
        return 0
    return _record(path, options["SERVER"] or "all")


def _record(path: str, wanted: str) -> int:
    """Write events until the servers have ended, or the user presses Ctrl-C."""
    try:
        # Only we can read it, and nothing that has this name already is followed or overwritten.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ProjectError(path, f"it cannot be written: {error.strerror}") from error
    with open(fd, "wb") as file:
        feed = Feed(lambda server, event: _write(file, event), wanted)
        tell(f"writing what happens in {feed.servers} server(s) to {path}; Ctrl-C ends it\n")
        try:
            with suppress(KeyboardInterrupt):
                feed.ended.wait()
        finally:
            feed.close()
    return 0


def _write(file: BinaryIO, event: Json) -> None:
    file.write(jsontext.dumps(event) + b"\n")
    file.flush()


def events_in(path: str) -> Iterator[Json]:
    """Yield the events in a file. Raises ProjectError."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), start=1):
                try:
                    event = jsontext.loads(line)
                except ValueError:
                    event = None
                if type(event) is not dict or "kind" not in event:
                    raise ProjectError(path, f"line {number} is not an event")
                yield event
    except OSError as error:
        raise ProjectError(path, f"it cannot be read: {error.strerror}") from error
