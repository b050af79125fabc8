"""How calls look: as a table with bars, as a line of text, and one of them opened to all that happened to it.

Rule: names, arguments and output are data. They pass through `shown` or `say`, and are never read as markup.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from rich.table import Table
from rich.text import Text

from mcpgreen.cli.trying.screen import uncoloured
from mcpgreen.cli.watching.calls import Call
from mcpgreen.journal import cut
from mcpgreen.text import jsontext

STYLE_OF = {"ok": "green", "running": "cyan", "queued": "yellow", "asks": "magenta", "cancelled": "dim"}
FAILED = "bold red"
BARS = (("░", "yellow"), ("█", "green"), ("▒", "blue"))
HEADS = ("time", " call", "what, client", "status", "    took", "░ wait █ run ▒ write")
WIDTHS = (9, 6, 0, 11, 9, 0)  # of columns
MAX_CHARS = 2000  # of one value
NOT_SHORT = ("n", "at", "kind", "call", "link", "server", "way", "frame", "tail", "variables")


def shown(text: str, style: str = "", *, no_wrap: bool | None = None) -> Text:
    return Text(uncoloured(text), style, no_wrap=no_wrap, overflow="ellipsis" if no_wrap else None)


def duration(ms: float) -> str:
    """Return a time as people read it: 0.8 ms, 43 ms, 1.2 s, 0:03:05."""
    if ms < 999.5:
        return f"{ms:.1f} ms" if ms < 9.95 else f"{ms:.0f} ms"
    return f"{ms / 1000:.1f} s" if ms < 100_000 else str(timedelta(seconds=round(ms / 1000)))


def cells(call: Call) -> tuple[str, ...]:
    """Return when a call came, its number, what it is, its status, and how long it took."""
    at, number = time.strftime("%H:%M:%S", time.localtime(call.at)), str(call.number) if call.number > 0 else ""
    what = f"{call.text('method')} {call.text('name')}".removeprefix("tools/call ")
    return at, number, " ".join(what.split()), "hung?" if call.is_hung else call.status, duration(call.took_ms)


def line(call: Call) -> str:
    """Return a call as a line of text."""
    at, number, what, status, took = cells(call)
    reason = " ".join(call.text("reason").split())
    return f"{at} {number:>6} {what:<30} {status:<10} {took:>8}  {reason}".rstrip() + "\n"


def calls_table(calls: Sequence[Call], chosen: Call | None, width: int) -> Table:
    wide = (width - sum(WIDTHS)) // 2  # what is left for the columns without a width
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for name, size in zip(HEADS, WIDTHS, strict=True):
        table.add_column(name, width=size - 1 if size else wide - 1, no_wrap=True)
    longest_ms = max((call.took_ms for call in calls if call.status != "listens"), default=0.0)
    for call in calls:
        at, number, what, status, took = cells(call)
        style = FAILED if call.is_failure or call.is_hung else STYLE_OF.get(call.status, "")
        about = shown(f"{what} ").append_text(shown(call.client, "dim"))
        row = (at, f"{number:>5}", about, shown(status, style), f"{took:>8}", bar(call, longest_ms, wide - 1))
        table.add_row(*row, style="reverse" if call is chosen else "")
    return table


def bar(call: Call, longest_ms: float, width: int) -> Text:
    """Return how long the call waited, ran and was written, as shares of the longest call."""
    text = Text()
    for part_ms, (mark, style) in zip(call.parts_ms, BARS, strict=True):
        size = round(part_ms / longest_ms * width) if longest_ms else 0
        text.append(mark * min(size, width), FAILED if mark == "█" and call.is_failure else style)
    return text or Text("▏", "dim")


def opened(call: Call) -> Table:
    """Return all that happened to a call: its frames, its process, its output; and the variables of its process."""
    page = Table.grid(padding=(0, 2, 0, 0))
    page.add_column(justify="right", no_wrap=True, style="dim")
    page.add_column(no_wrap=True, style="cyan")
    page.add_column(overflow="fold")
    waited, ran, written = map(duration, call.parts_ms)
    page.add_row("", shown(call.client), f"waited {waited}, ran {ran}, written {written}\n")
    for event in call.events:
        after = duration(max(0.0, float(event["at"]) - call.at) * 1000)
        short = [f"{name} {_written(value)}" for name, value in event.items() if name not in NOT_SHORT]
        long = [str(event[name]).rstrip("\n") for name in ("frame", "tail") if name in event]
        told = "\n".join(cut(text, MAX_CHARS) for text in (", ".join(short), *long) if text)
        page.add_row(after, shown(f"{event['kind']} {event.get('way', '')}"), shown(told))
    origins: dict[str, list[str]] = {}
    for name, origin in call.about.get("variables", ()):
        origins.setdefault(origin, []).append(name)
    variables = [f"from {origin}: {' '.join(names)}" for origin, names in origins.items()]
    page.add_row("", "variables" if variables else "", shown("\n".join(variables)))
    return page


def _written(value: object) -> str:
    return value if isinstance(value, str) else jsontext.dumps(value).decode("utf-8")
