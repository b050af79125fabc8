"""`mcpgreen fleet`: the workers of a fleet and what waits for them, for people and scripts."""

from __future__ import annotations

import time
from contextlib import closing, suppress

import gevent

from mcpgreen.cli.commands import Options
from mcpgreen.cli.fleet.commands import use_fleet
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import print_json
from mcpgreen.cli.trying.screen import Screen
from mcpgreen.errors import McpgreenError, UsageError
from mcpgreen.fleet.address import VARIABLE, url_of
from mcpgreen.fleet.ledger import RedisTaskStore
from mcpgreen.tasks import life
from mcpgreen.text.json_types import Json

REFRESH_SECS = 1.0
MOST_TASKS = 1000


class UnknownWorker(McpgreenError):
    """There is no living worker with this name."""


def run(options: Options) -> int:
    use_fleet(options)
    project, settings, _ = open_named(options)
    if not settings.fleet_url:
        raise UsageError(f"There is no fleet: --fleet URL, or {VARIABLE}.")
    screen = Screen(options)
    with (
        closing(RedisTaskStore(url_of(settings.fleet_url), project.server_name())) as ledger,
        suppress(KeyboardInterrupt),
    ):
        if options["drain"]:
            _drain(ledger, str(options["NAME"]), options, screen)
        while not options["drain"]:
            state: Json = {"tasks": _tasks(ledger)} if options["tasks"] else ledger.state()
            if options["--json"]:
                print_json(state)
            else:
                _show(state, screen)
            if options["--json"] or screen.is_plain:
                break
            gevent.sleep(REFRESH_SECS)
            screen.out.clear()
    return 0


def _show(state: Json, screen: Screen) -> None:
    """Print each list as a table."""
    for title, entries in state.items():
        if isinstance(entries, list):
            rows = [
                [" ".join(each) if isinstance(each, list) else str(each) for each in row.values()] for row in entries
            ]
            screen.table(f"{title} ({len(rows)})", list(entries[0]) if entries else [], rows)


def _tasks(ledger: RedisTaskStore) -> list[Json]:
    names = {runner: said.get("name", "") for runner, said in ledger.members().items()}
    return [
        {
            "taskId": task.id,
            "tool": task.tool,
            "status": task.status,
            "attempt": task.attempt,
            "worker": "" if task.runner == life.NO_RUNNER else names.get(task.runner, "lost"),
            "queue": task.client["fleet"]["queue"],
            "secs": round((task.ended_at or time.time()) - task.created_at, 1),
            "statusMessage": task.status_message,
        }
        for task in ledger.list(None, limit=MOST_TASKS)
        if "fleet" in task.client
    ]


def _drain(ledger: RedisTaskStore, name: str, options: Options, screen: Screen) -> None:
    runners = [runner for runner, said in ledger.members().items() if said.get("name") == name and "labels" in said]
    if not runners:
        raise UnknownWorker(f"{name}: there is no such worker; mcpgreen fleet status lists all.")
    for runner in runners:
        ledger.tell(runner, drain=b"1")
    if options["--json"]:
        print_json({"draining": name})
    else:
        screen.text(f"{name} finishes what it runs, takes nothing new, and ends.")
