"""Calls and servers as lines for people: a table with bars, and one call opened.

Rule: names, arguments and output are data. They pass through `harmless`, and are never read as markup.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mcpgreen.cli.output import harmless
from mcpgreen.cli.watching.board import CallRow
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from rich.text import Text

STYLE_OF = {"ok": "green", "running": "cyan", "queued": "yellow", "asks": "magenta", "cancelled": "dim"}
FAILED = "bold red"
BARS = (("░", "yellow"), ("█", "green"), ("▒", "blue"))  # waiting, running, writing
HUNG_MS = 60_000.0
MAX_LINES = 2000  # of one call
WIDE = 100  # from this width on, there is a column for the client


def columns_for(width: int) -> tuple[int, int, int]:
    """Return how wide tool, client and bar are."""
    client = 14 if width >= WIDE else 0
    rest = max(30, width - 8 - 1 - 6 - 1 - 10 - 1 - 8 - 1 - client - bool(client))
    tool = min(40, rest * 3 // 5)
    return tool, client, max(10, rest - tool - 1)


def header(width: int) -> Text:
    tool, client, bar = columns_for(width)
    names = f"{'time':<8} {'call':>6} {'what':<{tool}} " + (f"{'client':<{client}} " if client else "")
    return plain_line(f"{names}{'status':<10} {'took':>8} {'waiting ░ run █ write ▒':<{bar}}"[:width], "bold")


def row_line(row: CallRow, width: int, longest_ms: float, *, is_chosen: bool = False) -> Text:
    """Return one line of the table."""
    tool, client, bar = columns_for(width)
    at = time.strftime("%H:%M:%S", time.localtime(row.at))
    number = str(row.number) if row.number > 0 else "-"
    line = plain_line(f"{at} {number:>6} {_fitted(row.title, tool)} ")
    if client:
        line.append(f"{_fitted(row.client, client)} ", "dim")
    is_hung = row.ended_at is None and row.status != "listens" and row.total_ms > HUNG_MS
    line.append(_fitted("hung?" if is_hung else row.status, 10) + " ", style_of(row))
    line.append(f"{duration(row.total_ms):>8} ", FAILED if is_hung else "")
    for size, (mark, style) in zip(shares(row.parts_ms, longest_ms, bar), BARS, strict=True):
        line.append(mark * size, FAILED if mark == "█" and row.is_failure else style)
    line.truncate(width)
    if is_chosen:
        line.pad_right(max(0, width - line.cell_len))
        line.stylize("reverse")
    return line


def style_of(row: CallRow) -> str:
    return FAILED if row.is_failure else STYLE_OF.get(row.status, "")


def shares(parts_ms: tuple[float, ...], longest_ms: float, width: int) -> list[int]:
    """Return how many characters each part of a bar has: in proportion, and at least one in all."""
    ends = []
    total = 0.0
    for part in parts_ms:
        total += part
        ends.append(min(width, round(total / longest_ms * width)) if longest_ms > 0 else 0)
    sizes = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    if not any(sizes):
        sizes[max(range(len(sizes)), key=parts_ms.__getitem__)] = 1
    return sizes


def duration(ms: float) -> str:
    """Return a time as people read it: 0.8 ms, 43 ms, 1.2 s, 3:05."""
    if ms < 10:
        return f"{ms:.1f} ms"
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 100_000:
        return f"{ms / 1000:.1f} s"
    minutes, secs = divmod(round(ms / 1000), 60)
    return f"{minutes}:{secs:02d}"


def size_of(kib: float) -> str:
    return f"{kib / 1024:.1f} MiB" if kib >= 1024 else f"{kib:.0f} KiB"


def call_lines(row: CallRow) -> list[Text]:
    """Return one call opened: its times, its process, its output, and all its events."""
    lines = [
        plain_line(f"call {row.number}  {harmless(row.title)}", "bold"),
        _pair("status", row.status, style_of(row)),
    ]
    if row.reason:
        lines.append(_pair("reason", row.reason))
    queue, run, write = map(duration, row.parts_ms)
    lines.append(_pair("took", f"{duration(row.total_ms)} = waited {queue} + ran {run} + written {write}"))
    for name, value in (("client", row.client), ("task", row.task), ("request id", row.id)):
        if value not in ("", None):
            lines.append(_pair(name, str(value)))
    if row.interaction != row.number:
        lines.append(_pair("goes on", f"call {row.interaction}, which asked a question"))
    if row.arguments is not None:
        lines.append(_pair("arguments", jsontext.pretty(row.arguments)))
    lines += _process_lines(row.process)
    for stream, output in row.output.items():
        lines += [plain_line(""), plain_line(f"{stream}: {output.get('bytes', 0)} bytes", "bold")]
        lines += [plain_line(harmless(line)) for line in str(output.get("tail", "")).splitlines()]
    lines += [plain_line(""), plain_line("events", "bold")]
    lines += [_event_line(row, event) for event in row.events]
    return lines[:MAX_LINES]


def _process_lines(process: Json) -> list[Text]:
    if not process:
        return []
    lines = [plain_line(""), plain_line(f"process {process.get('pid')}, {process.get('way', '')}", "bold")]
    lines.append(_pair("command", " ".join(map(str, process.get("argv", ())))))
    lines.append(_pair("directory", str(process.get("cwd", ""))))
    used = [
        f"{name} {duration(float(process[field]))}"
        for name, field in (("user", "user_ms"), ("system", "system_ms"))
        if field in process
    ]
    if "peak_kb" in process:
        used.append(f"at most {size_of(process['peak_kb'])} of memory")
    end = [f"{name} {process[name]}" for name in ("exit", "signal") if name in process]
    if used or end:
        lines.append(_pair("used", ", ".join([*end, *used])))
    origins: dict[str, list[str]] = {}
    for name, origin in process.get("variables", ()):
        origins.setdefault(origin, []).append(name)
    lines += [_pair(f"from {origin}", " ".join(names)) for origin, names in sorted(origins.items())]
    return lines


def _event_line(row: CallRow, event: Json) -> Text:
    told = {name: value for name, value in event.items() if name not in ("n", "at", "kind", "call", "link", "server")}
    arrow = {"in": "-->", "out": "<--"}.get(str(event.get("way")), "")
    what = f"{arrow} {event.get('bytes')} bytes  {event.get('frame')}" if event["kind"] == "frame" else ""
    shown = what or ", ".join(f"{name} {_short(value)}" for name, value in told.items() if name != "variables")
    line = plain_line(f"{(float(event['at']) - row.at) * 1000:>9.1f} ms  {event['kind']:<9} ", "dim")
    line.append(harmless(shown).replace("\n", "\\n"))
    return line


def servers_table(servers: Iterable[Json]) -> list[list[str]]:
    """Return the rows of the table of servers, its heads first."""
    rows = [["PID", "name", "client", "transport", "age", "calls", "failed", "running", "project"]]
    for each in servers:
        age = duration(max(0.0, time.time() - float(each.get("started_at", 0))) * 1000)
        about = [str(each.get(key, "")) for key in ("pid", "name", "client", "transport")]
        counts = [str(each.get(key, 0)) for key in ("calls", "failures", "running")]
        rows.append([*map(harmless, about), age, *counts, harmless(str(each.get("project", "")))])
    return rows


def _fitted(text: str, width: int) -> str:
    text = harmless(text).replace("\n", " ")
    return f"{text[: width - 1]}…" if len(text) > width else f"{text:<{width}}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else jsontext.dumps(value).decode("ascii")
    return f"{text[:200]}…" if len(text) > 200 else text


def _pair(name: str, value: str, style: str = "") -> Text:
    line = plain_line(f"{name:>14}  ", "dim")
    line.append(harmless(value), style)
    return line


def plain_line(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style, no_wrap=True, overflow="ellipsis")
