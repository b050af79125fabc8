"""Do something again whenever files of a project change, until Ctrl-C.

The system reports changes; where it does not, the files are looked at now and then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

import gevent
from gevent.event import Event

from mcpgreen.cli.output import tell
from mcpgreen.errors import McpgreenError
from mcpgreen.project.project import Project
from mcpgreen.running.disk_watcher import DiskWatcher

QUIET_SECS = 0.2
LOOK_SECS = 1.0
MAX_DIRECTORIES = 2000
MADE_BY_RUNS = ("snapshots", "__pycache__")


def whenever_files_change(project: Project, act: Callable[[], int]) -> int:
    """Return the status of the last time."""
    changed = Event()

    def on_change(paths: dict[str, bool]) -> None:
        if any(_matters(path) for path in paths) or not paths:
            changed.set()

    disk = DiskWatcher(uses_events=True)
    interest = disk.interest(on_change)
    status = 0
    try:
        while True:
            interest.want(_directories(project))
            changed.clear()
            before = {} if interest.hears_all else _stamps(_directories(project))
            try:
                status = act()
            except McpgreenError as error:
                tell(f"mcpgreen: error: {error}\n")
                status = 2
            tell("Waiting for changes; Ctrl-C ends.\n")
            disk.catch_up()
            while not changed.wait(None if interest.hears_all else LOOK_SECS):
                if _stamps(_directories(project)) != before:
                    break
            gevent.sleep(QUIET_SECS)
    except KeyboardInterrupt:
        return status
    finally:
        disk.close()


def _directories(project: Project) -> list[str]:
    """Return the directories whose files decide what tests find."""
    tops = (project.tools_dir, project.resources_dir, project.prompts_dir, project.providers_dir, project.server_dir)
    return list(islice(_walk((*tops, os.path.join(project.root, "tests"))), MAX_DIRECTORIES))


def _walk(tops: tuple[str, ...]) -> Iterator[str]:
    for top in tops:
        for directory, inner, _ in os.walk(top):
            inner[:] = [name for name in inner if _matters(name)]
            yield directory


def _matters(path: str) -> bool:
    name = os.path.basename(path)
    return name not in MADE_BY_RUNS and not name.startswith(".")


def _stamps(directories: list[str]) -> dict[str, int]:
    stamps = {}
    for entry in (entry for directory in directories for entry in os.scandir(directory) if _matters(entry.name)):
        with suppress(OSError):
            stamps[entry.path] = entry.stat().st_mtime_ns
    return stamps
