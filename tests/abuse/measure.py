"""What an attack costs the server, seen from outside: answers in time, memory, descriptors, processes, files.

Nothing of the server's own means is used, so a server that is held, or lies, cannot embellish its figures. /proc tells
what it has; three clocks tell how long its hub was held:

* a *ping* runs from the moment at which the pipe has taken its last byte (all hostile bytes before it are accepted by
  then, at most one pipe of them still unread) to its answer. It also counts while the server chooses not to read.
* a *pulse* is a report of progress that a script writes every few milliseconds, with the time at which it was written.
  It does not queue behind what the client sends, so it tells how long the hub itself was away.
* a *turn* of the hub is what it did between two polls; see `hub_turns`.

On a machine that others use as well a late answer need not be the server's fault; the time that a turn computed is.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.abuse.notes import Reader
from tests.support.processes import MIB, children_of, command_of, peak_bytes

SAMPLE_PAUSE_SECS = 0.05
NAME_WIDTH = 33
LEGEND = """ping ms: the longest ping. hub cpu: the longest that the hub computed between two polls, slept: that it was
in a system call, late: that it was ready and the machine did not let it.
exit ms: from a signal or the end of the input to the end of the process; the pings of that row are those before.
MiB: the peak of the server, helper: that of its helpers."""


class Relative(NamedTuple):
    """A process below the server."""

    pid: int
    parent: int
    command: str


@dataclass
class Figures:
    """The worst of one attack, over all times that it was run."""

    runs: int = 0
    pings: int = 0
    longest_ping_secs: float = 0.0
    longest_hub_cpu_secs: float = 0.0
    longest_hub_late_secs: float = 0.0
    longest_hub_asleep_secs: float = 0.0
    longest_pulse_secs: float = 0.0
    longest_exit_secs: float = 0.0
    peak_bytes: int = 0
    helpers_peak_bytes: int = 0
    most_descriptors: int = 0
    most_processes: int = 0
    most_files: int = 0
    largest_reply_bytes: int = 0
    stderr_bytes: int = 0
    findings: list[str] = field(default_factory=list)

    def pinged(self, secs: float) -> None:
        self.pings += 1
        self.longest_ping_secs = max(self.longest_ping_secs, secs)

    def pulsed(self, secs: float) -> None:
        self.longest_pulse_secs = max(self.longest_pulse_secs, secs)

    def replied(self, size: int) -> None:
        self.largest_reply_bytes = max(self.largest_reply_bytes, size)

    def absorb(self, other: Figures) -> None:
        """The worse of both."""
        self.runs += other.runs
        self.pings += other.pings
        self.findings += other.findings
        for name, value in vars(other).items():
            if name not in ("runs", "pings", "findings"):
                setattr(self, name, max(getattr(self, name), value))


class Probe:
    """Looks at one server in /proc, as often as it is asked but not more often than it is worth."""

    def __init__(self, pid: int, turns: Reader, *, project: Path, tmp: Path) -> None:
        self.pid = pid
        self._turns = turns
        self._project = str(project)
        self._tmp = tmp
        self._sampled_at = 0.0
        self.figures = Figures()

    def begin(self) -> Figures:
        """Figures of an attack that is about to be run."""
        self.note_turns()
        self.figures = Figures(runs=1)
        return self.figures

    def note_turns(self) -> None:
        figures = self.figures
        for turn in self._turns.fresh():
            figures.longest_hub_cpu_secs = max(figures.longest_hub_cpu_secs, turn.cpu_ns / 1e9)
            figures.longest_hub_late_secs = max(figures.longest_hub_late_secs, turn.late_ns / 1e9)
            figures.longest_hub_asleep_secs = max(figures.longest_hub_asleep_secs, turn.asleep_ns / 1e9)

    def sample_if_due(self, *, pause_secs: float = SAMPLE_PAUSE_SECS) -> None:
        if time.monotonic() - self._sampled_at >= pause_secs:
            self.sample()

    def sample(self) -> None:
        self.note_turns()
        figures = self.figures
        figures.peak_bytes = max(figures.peak_bytes, peak_bytes(self.pid))
        family = family_of(self.pid)
        figures.most_processes = max(figures.most_processes, len(family))
        helpers = [peak_bytes(relative.pid) for relative in family if self.is_helper(relative)]
        figures.helpers_peak_bytes = max([figures.helpers_peak_bytes, *helpers])
        figures.most_descriptors = max(figures.most_descriptors, count_descriptors(self.pid) or 0)
        figures.most_files = max(figures.most_files, len(files_below(self._tmp)))
        self._sampled_at = time.monotonic()

    def is_helper(self, relative: Relative) -> bool:
        """Whether a process is part of the server: started by it, and no script of the project."""
        command = relative.command
        is_script = any(f"{self._project}/{folder}/" in command for folder in ("tools", "providers", "prompts"))
        return relative.parent == self.pid and "mcpgreen" in command and not is_script


def forget_peak(pid: int) -> None:
    """Let `peak_bytes` begin anew; where we may not, it goes on from what it was."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def count_descriptors(pid: int) -> int | None:
    """How many are open; None if we may not know, as with a process that lets nobody look."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def family_of(pid: int) -> list[Relative]:
    """Everything below a process, zombies not counted."""
    found: list[Relative] = []
    pending = [pid]
    while pending:
        parent = pending.pop()
        for child in children_of(parent):
            pending.append(child)
            command = command_of(child)
            if command:
                found.append(Relative(child, parent, command))
    return found


def files_below(directory: Path) -> list[str]:
    """Names in a directory and in its folders. No deeper: a script may nest them further than anybody can walk."""
    found: list[str] = []
    for name in _names_in(directory):
        found.append(name)
        if not (directory / name).is_symlink():
            found.extend(f"{name}/{each}" for each in _names_in(directory / name))
    return found


def table_of(rows: dict[str, Figures]) -> str:
    """The figures of all attacks for people, the slowest first."""
    slowest_first = sorted(rows.items(), key=lambda row: -row[1].longest_ping_secs)
    heads = [f"{head:>9}" for head in _columns(Figures())]
    lines = [f"{'attack':<{NAME_WIDTH}}" + "".join(heads)]
    for name, figures in slowest_first:
        lines.append(f"{name:<{NAME_WIDTH}}" + "".join(f"{value:>9}" for value in _columns(figures).values()))
    return "\n".join([*lines, LEGEND, *_findings_of(rows.items())])


def _columns(figures: Figures) -> dict[str, str]:
    return {
        "runs": f"{figures.runs}",
        "ping ms": _ms(figures.longest_ping_secs),
        "hub cpu": _ms(figures.longest_hub_cpu_secs),
        "slept": _ms(figures.longest_hub_asleep_secs),
        "late": _ms(figures.longest_hub_late_secs),
        "pulse ms": _ms(figures.longest_pulse_secs),
        "exit ms": _ms(figures.longest_exit_secs),
        "MiB": f"{figures.peak_bytes / MIB:.0f}",
        "helper": f"{figures.helpers_peak_bytes / MIB:.0f}",
        "fds": f"{figures.most_descriptors}",
        "procs": f"{figures.most_processes}",
        "files": f"{figures.most_files}",
        "reply": f"{figures.largest_reply_bytes / MIB:.1f}",
        "log": f"{figures.stderr_bytes / MIB:.1f}",
    }


def _ms(secs: float) -> str:
    return f"{secs * 1000:.0f}"


def _findings_of(rows: Iterable[tuple[str, Figures]]) -> list[str]:
    return [f"! {name}: {finding}" for name, figures in rows for finding in figures.findings]


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
