"""`mcpgreen tasks`: the stored tasks of a project, for people and scripts.

Reads and writes the store itself, whether a server runs or not. Makes nothing if there is no store.
"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import gevent

from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import print_json
from mcpgreen.cli.trying.screen import Screen, print_outcome, wants_json
from mcpgreen.errors import McpgreenError
from mcpgreen.project import task_place as place
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Status, Task
from mcpgreen.tasks.sqlite_store import MemoryTaskStore, SqliteTaskStore
from mcpgreen.tasks.store import TaskStore
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from rich.live import Live

REFRESH_SECS = 0.5
CANCEL_SECS = 10.0  # a server may have to wait until the script has ended
BESIDE_ROWS = 6  # lines of a screen: title, heading, frame, prompt
ORPHANED = "its server is gone; the next one will end the task, or run it again"
NONE_YET = "No tasks are stored for {}. A call becomes a task if the client supports tasks and the tool takes long."


def run(options: Options) -> int:
    project, _, environ = open_named(options)
    screen, directory = Screen(options), place.directory_of(project.root, environ)
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)  # Ctrl-C needs no traceback
    with closing(SqliteTaskStore(directory) if place.has_store(directory) else MemoryTaskStore()) as store:
        if options["clear"]:
            removed = store.remove()
            return _print({"removed": removed}, f"Removed {removed} task{'s' * (removed != 1)}.", options, screen)
        if not options["ID"]:
            return _list(store, options, screen, project.root)
        task = store.get(options["ID"])
        if task is None:
            raise McpgreenError(f"{options['ID']}: there is no such task; mcpgreen tasks lists all.")
        command = _show if options["show"] else _result if options["result"] else _cancel
        return command(store, task, options, screen)


def _print(entry: object, text: str, options: Options, screen: Screen) -> int:
    if options["--json"]:
        print_json(entry)
    else:
        screen.text(text)
    return 0


def _entry_of(task: Task) -> Json:
    """Return a task as JSON for programs."""
    return {"taskId": task.id, "tool": task.tool, **life.shown(task)}


def _list(store: TaskStore, options: Options, screen: Screen, root: str) -> int:
    from rich.live import Live

    tasks = _begun_tasks(store)
    if options["--json"]:
        print_json([_entry_of(task) for task in tasks])
    elif not tasks:
        screen.note(NONE_YET.format(root))
    elif screen.is_plain:
        _draw(store, screen)
    else:
        with suppress(KeyboardInterrupt), Live(console=screen.out, auto_refresh=False) as live:
            while _draw(store, screen, live):
                gevent.sleep(REFRESH_SECS)
    return 0


def _begun_tasks(store: TaskStore) -> list[Task]:
    return [task for task in store.list(None, limit=-1) if task.is_begun]


def _draw(store: TaskStore, screen: Screen, live: Live | None = None) -> bool:
    """Draw the tasks; on a live screen, the newest for which there is room. Tell whether one of them runs."""
    tasks = _begun_tasks(store)
    most = len(tasks) if live is None else max(1, screen.out.size.height - BESIDE_ROWS)
    rows = [(task.id, task.tool, *_state(store, task)) for task in tasks[-most:]]
    title = f"tasks ({len(tasks)}, {sum(not task.has_ended for task in tasks)} unfinished)"
    screen.table(title, ("task", "tool", "status", "for", "message"), rows, live)
    return any(not task.has_ended and not store.is_orphan(task) for task in tasks)


def _state(store: TaskStore, task: Task) -> tuple[str, str, str]:
    """Return the status, how long the task has lasted, and what it says."""
    secs, shown = (task.ended_at or time.time()) - task.created_at, life.shown(task)
    lasted = f"{secs:.0f} s" if secs < 100 else f"{secs / 60:.0f} min" if secs < 6000 else f"{secs / 3600:.0f} h"
    return shown["status"], lasted, ORPHANED if store.is_orphan(task) else shown["statusMessage"]


def _show(store: TaskStore, task: Task, options: Options, screen: Screen) -> int:
    status, lasted, message = _state(store, task)
    stderr = task.stderr_end.decode("utf-8", "replace")
    lines = {
        "task": task.id,
        "tool": f"{task.tool} {task.shown_arguments}",
        "status": ": ".join(filter(None, (status, message))),
        "time": f"{lasted} from {life.iso_time(task.created_at)}, attempt {task.attempt}",
        "asks": "; ".join(str(each["params"].get("message", key)) for key, each in task.open_questions.items()),
        "result": f"{task.result_bytes} bytes; see mcpgreen tasks result {task.id}" if task.result_bytes else "",
        "stderr": stderr and f"\n{stderr}",
    }
    text = "\n".join(f"{name:<8} {value}".rstrip() for name, value in lines.items() if value)
    return _print({**_entry_of(task), "stderr": stderr}, text, options, screen)


def _result(store: TaskStore, task: Task, options: Options, screen: Screen) -> int:
    as_json = wants_json(options)
    if task.status == Status.COMPLETED:
        return print_outcome(jsontext.loads(store.result_of(task)), options, screen, as_json=as_json)
    if task.error is not None and as_json:
        print_json({"_mcpToolError": True, **task.error})
    else:
        status, _, message = _state(store, task)
        screen.problem(message if task.has_ended else f"The task has not ended: {status}. {message}".rstrip())
    return 1


def _cancel(store: TaskStore, task: Task, options: Options, screen: Screen) -> int:
    give_up_at = time.monotonic() + CANCEL_SECS
    task = store.want_cancel(task.id) or task
    while not task.has_ended and time.monotonic() < give_up_at:
        gevent.sleep(REFRESH_SECS / 10)
        task = store.get(task.id) or task._replace(status=Status.CANCELLED)  # it may be removed at once
    text = f"has ended before: {task.status}" if task.has_ended else "still runs, but will be cancelled"
    is_cancelled = task.status == Status.CANCELLED
    _print(_entry_of(task), f"{task.id} {'is cancelled' if is_cancelled else text}.", options, screen)
    return 0 if is_cancelled else 1
