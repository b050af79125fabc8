"""`mcpgreen tasks`: the stored tasks of a project, for people and scripts.

Reads and writes the store itself, whether a server runs or not. Makes nothing if there is no store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.tasks.store import TaskStore

COLUMNS = ("task", "tool", "status", "for", "message")
REFRESH_SECS = 0.5
CANCEL_SECS = 10.0  # a server may have to wait until the script has ended
PAGE = 1000
BESIDE_ROWS = 6  # lines of a screen: title, heading, frame, prompt
ORPHANED = "its server is gone; the next one will end the task, or run it again"
NONE_YET = "No tasks are stored for {}. A call becomes a task if the client supports tasks and the tool takes long."


class UnknownTask(McpgreenError):
    """There is no task with this id."""


def run(options: Options) -> int:
    project, _, environ = open_named(options)
    screen = Screen(options)
    with _opened(place.directory_of(project.root, environ)) as store:
        if options["clear"]:
            return _clear(store, options, screen)
        if not options["ID"]:
            return _list(store, options, screen, project.root)
        task = store.get(options["ID"]) if store else None
        if store is None or task is None:
            raise UnknownTask(f"{options['ID']}: there is no such task; mcpgreen tasks lists all.")
        command = _show if options["show"] else _result if options["result"] else _cancel
        return command(store, task, options, screen)


@contextmanager
def _opened(directory: str) -> Iterator[TaskStore | None]:
    """Open the store, if there is one."""
    if not place.has_store(directory):
        yield None
        return
    from mcpgreen.tasks.sqlite_store import SqliteTaskStore

    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)  # Ctrl-C needs no traceback
    store = SqliteTaskStore(directory)
    try:
        yield store
    finally:
        store.close()


def entry_of(task: Task) -> Json:
    """Return a task as JSON for programs."""
    entry = {"taskId": task.id, "tool": task.tool, "status": _status(task), "statusMessage": task.status_message}
    times = {"createdAt": task.created_at, "lastUpdatedAt": task.updated_at}
    return {**entry, **{name: life.iso_time(at) for name, at in times.items()}}


def _status(task: Task) -> str:
    return Status.WORKING if task.status == Status.QUEUED else task.status  # as clients see it


def _all(store: TaskStore | None) -> list[Task]:
    tasks: list[Task] = []
    while store is not None:
        with suppress(LookupError):  # the last one has been removed meanwhile
            tasks += (page := store.list(None, after=tasks[-1].id if tasks else "", limit=PAGE))
            if len(page) == PAGE:
                continue
        break
    return tasks


def _list(store: TaskStore | None, options: Options, screen: Screen, root: str) -> int:
    tasks = _all(store)
    if options["--json"]:
        print_json([entry_of(task) for task in tasks])
    elif store is None or not tasks:
        screen.note(NONE_YET.format(root))
    elif screen.is_plain:
        screen.table(_title(tasks), COLUMNS, [_row(store, task) for task in tasks])
    else:
        with suppress(KeyboardInterrupt):
            _watch(store, screen)
    return 0


def _watch(store: TaskStore, screen: Screen) -> None:
    """Show the newest tasks, until none of them runs."""
    from rich.live import Live

    with Live(console=screen.out, auto_refresh=False) as live:
        while True:
            tasks = _all(store)
            shown = tasks[-max(1, screen.out.size.height - BESIDE_ROWS) :]
            live.update(screen.rich_table(_title(tasks), COLUMNS, [_row(store, task) for task in shown]), refresh=True)
            if all(task.has_ended or store.is_orphan(task) for task in tasks):
                return
            gevent.sleep(REFRESH_SECS)


def _title(tasks: list[Task]) -> str:
    return f"tasks ({len(tasks)}, {sum(not task.has_ended for task in tasks)} unfinished)"


def _row(store: TaskStore, task: Task) -> tuple[str, ...]:
    secs = (task.ended_at or time.time()) - task.created_at
    return (task.id, task.tool, _status(task), _duration(secs), _message(store, task))


def _message(store: TaskStore, task: Task) -> str:
    return ORPHANED if store.is_orphan(task) else task.status_message


def _duration(secs: float) -> str:
    if secs < 100:
        return f"{secs:.0f} s"
    return f"{secs / 60:.0f} min" if secs < 6000 else f"{secs / 3600:.0f} h"


def _show(store: TaskStore, task: Task, options: Options, screen: Screen) -> int:
    stderr = task.stderr_end.decode("utf-8", "replace")
    if options["--json"]:
        print_json({**entry_of(task), "stderr": stderr})
        return 0
    ended = f", ended {life.iso_time(task.ended_at)}" if task.ended_at else ""
    lines = {
        "task": task.id,
        "tool": f"{task.tool} {jsontext.dumps(task.shown_arguments).decode('ascii') if task.shown_arguments else ''}",
        "status": ": ".join(filter(None, (_status(task), _message(store, task)))),
        "time": f"created {life.iso_time(task.created_at)}, changed {life.iso_time(task.updated_at)}{ended}",
        "attempt": str(task.attempt) if task.attempt > 1 else "",
        "asks": "; ".join(str(each["params"].get("message", key)) for key, each in task.open_questions.items()),
        "result": f"{task.result_bytes} bytes; see mcpgreen tasks result {task.id}" if task.result_bytes else "",
    }
    for name, value in lines.items():
        if value:
            screen.text(f"{name:<8} {value}".rstrip())
    if stderr:
        screen.text(f"stderr:\n{stderr}".rstrip("\n"))
    return 0


def _result(store: TaskStore, task: Task, options: Options, screen: Screen) -> int:
    as_json = wants_json(options)
    if task.status == Status.COMPLETED:
        try:
            result = jsontext.loads(store.result_of(task))
        except LookupError:
            raise UnknownTask(f"{task.id}: the task has expired meanwhile.") from None
        return print_outcome(result, options, screen, as_json=as_json)
    if task.status == Status.FAILED and task.error is not None and as_json:
        print_json({"_mcpToolError": True, **task.error})
    elif task.has_ended:
        screen.problem(task.status_message)
    else:
        screen.problem(f"The task has not ended: {_status(task)}. {_message(store, task)}".rstrip())
    return 1


def _cancel(store: TaskStore, task: Task, options: Options, screen: Screen) -> int:
    give_up_at = time.monotonic() + CANCEL_SECS
    task = store.want_cancel(task.id) or task
    while not task.has_ended and time.monotonic() < give_up_at:
        gevent.sleep(REFRESH_SECS / 10)
        task = store.get(task.id) or task._replace(status=Status.CANCELLED)  # it may be removed at once
    if options["--json"]:
        print_json(entry_of(task))
    elif task.status == Status.CANCELLED:
        screen.text(f"{task.id} is cancelled.")
    elif task.has_ended:
        screen.problem(f"{task.id} has ended before: {task.status}.")
    else:
        screen.problem(f"{task.id} still runs after {CANCEL_SECS:g} s; its server knows that it should be cancelled.")
    return 0 if task.status == Status.CANCELLED else 1


def _clear(store: TaskStore | None, options: Options, screen: Screen) -> int:
    removed = store.clear() if store else 0
    if options["--json"]:
        print_json({"removed": removed})
    else:
        screen.text(f"Removed {removed} task{'s' * (removed != 1)}.")
    return 0
