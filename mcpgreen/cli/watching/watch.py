"""The commands `watch` and `trace`: list the running servers of this user, show their calls as they happen, and write
down what happens, for later or for other programs."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

import gevent

from mcpgreen.cli.commands import Options
from mcpgreen.cli.output import print_json, say, tell
from mcpgreen.cli.trying.screen import Screen
from mcpgreen.cli.watching import exports, filters, table
from mcpgreen.cli.watching.calls import Calls
from mcpgreen.errors import ProjectError
from mcpgreen.events.attach import follow, running_servers
from mcpgreen.files.regular_files import content_of, new_file
from mcpgreen.text import jsontext

MAX_TRACE_BYTES = 1 << 30
FIELDS = ("pid", "name", "client", "transport", "age", "calls", "failures", "project")


def run(options: Options) -> int:
    """`mcpgreen watch`. Raises UsageError."""
    if options["SERVER"] is None:
        return _list_servers(options)
    events, filter_text = follow(options["SERVER"]), options["--filter"] or ""
    is_for_a_person = sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM") != "dumb"
    if is_for_a_person and not options["--json"] and not options["--plain"]:
        from mcpgreen.cli.watching.screen import LiveTable  # takes a while to load

        LiveTable(filter_text).run(events)
        return 0
    calls, is_wanted = Calls(), filters.parsed(filter_text)
    for event in events:
        if options["--json"]:
            print_json(event)
        elif (call := calls.take(event)) is not None and event["kind"] == "ended" and is_wanted(call):
            say(table.line(call))
    return 0


def _list_servers(options: Options) -> int:
    servers = running_servers()
    if options["--json"]:
        print_json(servers)
    elif not servers:
        tell("no server of yours runs, or none that may be watched (setting observe)\n")
    else:
        aged = [{**each, "age": table.duration((time.time() - each["started_at"]) * 1000)} for each in servers]
        rows = [[str(each.get(field, "")) for field in FIELDS] for each in aged]
        Screen(options).table(f"servers ({len(rows)})", FIELDS, rows)
        if sys.stdout.isatty():
            tell("\nCalls of one: mcpgreen watch PID. Of all: mcpgreen watch all.\n")
    return 0


def run_trace(options: Options) -> int:
    """`mcpgreen trace`. Raises UsageError and ProjectError."""
    path = options["FILE"]
    if options["--show"]:
        for call in _calls_in(path).chosen(filters.parsed(options["--filter"] or "")):
            say(table.line(call))
    elif options["--har"] or options["--otlp"]:
        export = exports.har if options["--har"] else exports.otlp
        print_json(export(_calls_in(path)))
    else:
        _record(path, options["SERVER"] or "all")
    return 0


def _record(path: str, wanted: str) -> None:
    """Write events until the servers have ended, or the user presses Ctrl-C."""
    events = follow(wanted)
    try:
        fd = new_file(path)
    except OSError as error:
        raise ProjectError(path, f"it cannot be written: {error.strerror}") from error
    tell(f"writing what happens to {path}; Ctrl-C ends it\n")
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)  # Ctrl-C needs no traceback
    with open(fd, "wb", buffering=0) as file, suppress(KeyboardInterrupt):
        for event in events:
            file.write(jsontext.dumps(event) + b"\n")


def _calls_in(path: str) -> Calls:
    calls = Calls()
    for number, line in enumerate(content_of(path, MAX_TRACE_BYTES).splitlines(), start=1):
        try:
            calls.take(jsontext.loads(line))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProjectError(path, f"line {number} is not an event") from error
    return calls
