"""What happens to calls when workers, servers, Redis, bells and connections fail.

Each script leaves a mark when it begins and one when it ends, so that a test can see how often it ran. At random and
under load: `MCPGREEN_FLEET_FAULTS=200 pytest tests/fleet/test_faults.py -k random`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.fleet import bell
from tests.fleet.conftest import LEASE_SECS, Fleet
from tests.support.fleet import Worker
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

FAULTS = int(os.environ.get("MCPGREEN_FLEET_FAULTS", "6"))
PROXY = """
import asyncio, sys
async def copy(reader, writer):
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()
    writer.close()
async def serve(reader, writer):
    there, back = await asyncio.open_unix_connection(sys.argv[2])
    await asyncio.gather(copy(reader, back), copy(there, writer), return_exceptions=True)
async def main():
    async with await asyncio.start_unix_server(serve, sys.argv[1]) as server:
        await server.serve_forever()
asyncio.run(main())
"""


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    directory = tmp_path / "marks"
    directory.mkdir()
    return directory


def marking(project: ProjectBuilder, marks: Path, name: str = "far", secs: str = "1", **fields: Any) -> None:
    """A tool that marks its beginning with its process, and its end."""
    number = 'n=$(jq -r .n <<<"$MCP_TOOL_ARGS_JSON")'
    script = f"{number}; echo $$ >> {marks}/begun-$n; sleep {secs}; echo >> {marks}/ended-$n; printf $n"
    project.tool(name, script, run_on="any", **fields)


def begun(marks: Path, number: int = 0) -> list[int]:
    path = marks / f"begun-{number}"
    return [int(each) for each in path.read_text(encoding="utf-8").split()] if path.exists() else []


def answer(client: Any, id: Any) -> Any:
    found = client.wire.response(id, within_secs=60)
    return text_of(found["result"]) if "result" in found else found["error"]["message"]


def test_a_lost_worker_fails_its_calls_and_leaves_no_process(
    fleet: Fleet, project: ProjectBuilder, marks: Path
) -> None:
    marking(project, marks, secs="60")
    worker, client = fleet.worker("--name", "w1"), fleet.client()
    id = client.start_tool("far", {"n": 0})
    (pid,) = eventually(lambda: begun(marks))
    fleet.worker("--name", "w2")
    worker.process.kill()

    assert answer(client, id) == "The worker w1 was lost while it ran the tool, in attempt 1"
    eventually(lambda: not is_alive(pid))
    assert len(begun(marks)) == 1


@pytest.mark.parametrize("fields", [{"idempotent": True}, {"retries": 1}], ids=["idempotent", "retries"])
def test_a_tool_that_allows_it_runs_again(
    fleet: Fleet, project: ProjectBuilder, marks: Path, fields: dict[str, Any]
) -> None:
    marking(project, marks, secs="2", **fields)
    worker, client = fleet.worker(), fleet.client()
    id = client.start_tool("far", {"n": 0})
    eventually(lambda: begun(marks))
    fleet.worker()
    worker.process.kill()

    assert answer(client, id) == "0" and len(begun(marks)) == 2


def test_lost_late_and_doubled_bells_do_no_harm(fleet: Fleet, project: ProjectBuilder, marks: Path) -> None:
    marking(project, marks, secs="0.2")
    fleet.worker()
    client = fleet.client()
    ringers = subprocess.run(
        ["pgrep", "-P", str(client.wire.pid), "-f", "ring_as_told"], capture_output=True, check=False
    )
    for pid in map(int, ringers.stdout.split()):
        os.kill(pid, signal.SIGSTOP)  # its bells are late
    ids = [client.start_tool("far", {"n": number}) for number in range(5)]
    assert [answer(client, id) for id in ids] == list("01234")
    app = bell.app_of(fleet.redis.url, "test-project")
    for _ in range(50):
        app.send_task(bell.TASK, queue=bell.celery_queue("test-project", "any"))
    ids = [client.start_tool("far", {"n": number}) for number in range(5, 10)]

    assert [answer(client, id) for id in ids] == list("56789")
    assert [len(begun(marks, number)) for number in range(10)] == [1] * 10


def test_a_worker_that_stalls_beyond_its_lease_stops_its_scripts(
    fleet: Fleet, project: ProjectBuilder, marks: Path
) -> None:
    marking(project, marks, secs="30")
    worker, client = fleet.worker("--name", "w1"), fleet.client()
    id = client.start_tool("far", {"n": 0})
    (pid,) = eventually(lambda: begun(marks))
    worker.process.send_signal(signal.SIGSTOP)
    assert "w1 was lost" in answer(client, id)
    worker.process.send_signal(signal.SIGCONT)
    eventually(lambda: not is_alive(pid))
    marking(project, marks, name="next", secs="0")

    assert answer(client, client.start_tool("next", {"n": 1})) == "1", "it works again, with another lease"
    assert not (marks / "ended-0").exists()


def test_a_worker_that_is_cut_off_stops_its_scripts_before_others_begin(
    fleet: Fleet, project: ProjectBuilder, marks: Path
) -> None:
    marking(project, marks, secs="4", idempotent=True)
    place = fleet.redis.directory / "proxy.sock"
    proxy = subprocess.Popen([sys.executable, "-c", PROXY, str(place), str(fleet.redis.socket)])
    try:
        eventually(place.exists)
        cut_off = Worker(
            project.root, f"unix://{place}?db=0", env={"MCPGREEN_FLEET_LEASE_SECS": str(LEASE_SECS)}
        ).ready()
        fleet.workers.append(cut_off)
        client = fleet.client()
        id = client.start_tool("far", {"n": 0})
        (first,) = eventually(lambda: begun(marks))
        fleet.worker()
        proxy.send_signal(signal.SIGSTOP)
        eventually(lambda: len(begun(marks)) == 2)
        assert not is_alive(first)
        proxy.send_signal(signal.SIGCONT)
        assert answer(client, id) == "0"
    finally:
        proxy.kill()
        proxy.wait()


def test_redis_may_be_killed_and_started_again(fleet: Fleet, project: ProjectBuilder, marks: Path) -> None:
    marking(project, marks, secs="1")
    fleet.worker(fleet_lease_secs=20)
    client = fleet.client(fleet_lease_secs=20)
    id = client.start_tool("far", {"n": 0})
    eventually(lambda: begun(marks))
    fleet.redis.kill()
    time.sleep(0.5)
    fleet.redis.start()

    assert answer(client, id) == "0" and len(begun(marks)) == 1
    assert answer(client, client.start_tool("far", {"n": 1})) == "1"


def test_calls_begin_in_the_order_of_their_arrival(fleet: Fleet, project: ProjectBuilder, marks: Path) -> None:
    count, slots = int(os.environ.get("MCPGREEN_FLEET_QUEUED", "60")), 8
    script = f'n=$(jq -r .n <<<"$MCP_TOOL_ARGS_JSON"); echo "$n $EPOCHREALTIME" >> {marks}/order; printf $n'
    project.tool("far", script, run_on="any")
    client = fleet.client(fleet_wait_secs=600)
    ledger = fleet.ledger()
    ids = []
    for number in range(count):
        ids.append(client.start_tool("far", {"n": number}))
        eventually(lambda: sum(ledger.queues().values()) > number)  # noqa: B023
    for _ in range(2):
        fleet.worker("--slots", str(slots), fleet_wait_secs=600)
    assert [answer(client, id) for id in ids] == [str(number) for number in range(count)]
    order = [int(line.split()[0]) for line in (marks / "order").read_text(encoding="utf-8").splitlines()]

    assert sorted(order) == list(range(count))
    assert max(abs(place - number) for place, number in enumerate(order)) < 4 * slots


def test_random_faults_under_load(fleet: Fleet, project: ProjectBuilder, marks: Path) -> None:
    """Every call ends once, with its result or with a clear error, and no script runs twice unless its tool says so."""
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    marking(project, marks, name="once", secs="0.3")
    marking(project, marks, name="again", secs="0.3", idempotent=True)
    workers = [fleet.worker("--slots", "4") for _ in range(2)]
    client = fleet.client(fleet_wait_secs=60, max_tasks_per_principal=10_000)
    app = bell.app_of(fleet.redis.url, "test-project")
    calls: dict[Any, tuple[str, int]] = {}
    for fault in range(FAULTS):
        for _ in range(6):
            name = chance.choice(("once", "again"))
            calls[client.start_tool(name, {"n": len(calls)})] = name, len(calls)
        time.sleep(chance.uniform(0, 0.5))
        kind = chance.choice(("kill", "stall", "redis", "bells", "freeze"))
        which = chance.randrange(2)
        if kind == "kill":
            workers[which].process.kill()
            workers[which] = fleet.worker("--slots", "4")
        elif kind == "stall":
            workers[which].process.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(0, 2 * LEASE_SECS))
            workers[which].process.send_signal(signal.SIGCONT)
        elif kind == "redis":
            fleet.redis.kill()
            fleet.redis.start()
        elif kind == "bells":
            for _ in range(chance.randrange(20)):
                app.send_task(bell.TASK, queue=bell.celery_queue("test-project", "any"), retry=False)
        else:
            assert fleet.redis.process is not None
            fleet.redis.process.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(0, LEASE_SECS))
            fleet.redis.process.send_signal(signal.SIGCONT)
        print(fault, kind, flush=True)
    results = {id: answer(client, id) for id in calls}
    pids = set()
    for id, (name, number) in calls.items():
        runs = begun(marks, number)
        pids.update(runs)
        ended = (
            len((marks / f"ended-{number}").read_text(encoding="utf-8")) if (marks / f"ended-{number}").exists() else 0
        )
        text = results[id]
        assert text == str(number) or any(each in text for each in CLEAR), (seed, number, text)
        assert name == "again" or len(runs) <= 1, (seed, number, runs)
        assert text != str(number) or ended >= 1, (seed, number, "the result is of a script that has ended")
    failed = sum(not text.isdecimal() for text in results.values())
    print(f"{FAULTS} faults, {len(calls)} calls, {failed} failed")
    eventually(lambda: not any(map(is_alive, pids)))


CLEAR = ("was lost while it ran", "cannot be used", "cannot be reached", "does not know this call")
