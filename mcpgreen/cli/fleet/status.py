"""`mcpgreen fleet`: the workers of a fleet and what waits for them, for people and scripts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing, suppress

import gevent

from mcpgreen.cli.commands import Options
from mcpgreen.cli.fleet.commands import use_fleet
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import print_json
from mcpgreen.cli.trying.screen import Screen
from mcpgreen.errors import McpgreenError, UsageError
from mcpgreen.fleet.address import VARIABLE, url_of
from mcpgreen.fleet.ledger import RedisTaskStore, may_take
from mcpgreen.tasks import life
from mcpgreen.text.json_types import Json

REFRESH_SECS = 1.0
MOST_TASKS = 1000
WORKER_COLUMNS = ("worker", "labels", "running", "host", "state")
QUEUE_COLUMNS = ("queue", "waiting", "oldest", "workers")
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]
TASK_COLUMNS = ("task", "tool", "status", "attempt", "worker", "for")


class UnknownWorker(McpgreenError):
    """There is no living worker with this name."""


def run(options: Options) -> int:
    use_fleet(options)
    project, settings, _ = open_named(options)
    if not settings.fleet_url:
        raise UsageError(f"There is no fleet: --fleet URL, or {VARIABLE}.")
    screen = Screen(options)
    with closing(RedisTaskStore(url_of(settings.fleet_url), project.server_name())) as ledger:
        if options["drain"]:
            return _drain(ledger, str(options["NAME"]), options, screen)
        if options["--json"]:
            print_json(_tasks(ledger) if options["tasks"] else _state(ledger))
        else:
            with suppress(KeyboardInterrupt):
                _show(ledger, options, screen)
    return 0


def _show(ledger: RedisTaskStore, options: Options, screen: Screen) -> None:
    """Print the tables; at a terminal, again and again."""
    while True:
        tables = _tables(ledger, options)
        if not screen.is_plain:
            screen.out.clear()
        for table in tables:
            screen.table(*table)
        if screen.is_plain:
            return
        gevent.sleep(REFRESH_SECS)


def _state(ledger: RedisTaskStore) -> Json:
    """Return the workers and the queues of a fleet, as JSON for programs."""
    members = ledger.members()
    workers = [
        {**said, "running": len(ledger.running(runner)), "draining": bool(said.get("draining"))}
        for runner, said in members.items()
        if "labels" in said
    ]
    queues = []
    for name, waiting in ledger.queues().items():
        oldest = ledger.waiting(name, 1)
        fitting = sum(may_take(each, name) for each in workers)
        secs = round(time.time() - oldest[0].created_at, 1) if oldest else 0.0
        queues.append({"queue": name, "waiting": waiting, "oldestSecs": secs, "workers": fitting})
    return {
        "workers": sorted(workers, key=lambda each: str(each["name"])),
        "queues": queues,
        "servers": len(members) - len(workers),
        "lost": sum(secs <= 0 for secs in ledger.leases().values()),
    }


def _tasks(ledger: RedisTaskStore) -> list[Json]:
    names = {runner: said.get("name", "") for runner, said in ledger.members().items()}
    return [
        {
            "taskId": task.id,
            "tool": task.tool,
            "attempt": task.attempt,
            "worker": "" if task.runner == life.NO_RUNNER else names.get(task.runner, "lost"),
            "queue": task.client["fleet"]["queue"],
            **life.shown(task),
            "status": task.status,
            "secs": round((task.ended_at or time.time()) - task.created_at, 1),
        }
        for task in ledger.list(None, limit=MOST_TASKS)
        if "fleet" in task.client
    ]


def _tables(ledger: RedisTaskStore, options: Options) -> list[Table]:
    if options["tasks"]:
        tasks = [
            (each["taskId"], each["tool"], each["status"], str(each["attempt"]), each["worker"], f"{each['secs']:g} s")
            for each in _tasks(ledger)
        ]
        return [(f"tasks ({len(tasks)})", TASK_COLUMNS, tasks)]
    state = _state(ledger)
    workers = [
        (
            each["name"],
            " ".join(each["labels"]) or "-",
            f"{each['running']} of {each['slots']}",
            each["host"],
            "draining" if each["draining"] else "ready",
        )
        for each in state["workers"]
    ]
    queues = [
        (each["queue"], str(each["waiting"]), f"{each['oldestSecs']:g} s", str(each["workers"] or "none"))
        for each in state["queues"]
    ]
    title = f"workers ({len(workers)}, servers: {state['servers']}, lost: {state['lost']})"
    return [(title, WORKER_COLUMNS, workers), ("queues", QUEUE_COLUMNS, queues)]


def _drain(ledger: RedisTaskStore, name: str, options: Options, screen: Screen) -> int:
    runners = [runner for runner, said in ledger.members().items() if said.get("name") == name and "labels" in said]
    if not runners:
        raise UnknownWorker(f"{name}: there is no such worker; mcpgreen fleet status lists all.")
    for runner in runners:
        ledger.tell(runner, drain=b"1")
    if options["--json"]:
        print_json({"draining": name})
    else:
        screen.text(f"{name} finishes what it runs, takes nothing new, and ends.")
    return 0
