"""However a call or a server ends: not one process, temporary file or descriptor is left.

MCPGREEN_STRESS_ROUNDS sets how often each way of ending is tried; `make stress` asks for 100. Every other round strikes
when all scripts are up, the rest at a moment drawn by lot.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.stress.support import (
    LEAVING,
    ROUNDS,
    SCRUBBED_STAYING,
    STAYING,
    Stand,
    call,
    cancel,
    greeting,
    guardian_of,
    processes_with,
    require_all_gone,
    require_no_new_descriptors,
    require_only_server,
    sleepers,
    wait_until_up,
)
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Wire, clean_environment, text_of

NewStand = Callable[..., Stand]

SERVERS_AT_ONCE = 4
FEWER_ROUNDS = max(3, ROUNDS // 4)  # for variations of what has its full number of rounds elsewhere
LONGEST_LOT_SECS = 0.15

# A client of its own, to be killed: starts the server, sends what it is told and never reads.
CLIENT = """
import json, os, signal, subprocess, sys
order = json.load(sys.stdin)
server = subprocess.Popen(order["command"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
server.stdin.write(order["input"].encode())
server.stdin.flush()
print(server.pid, flush=True)
signal.pause()
"""


def batches(rounds: int = ROUNDS) -> Iterator[tuple[int, int]]:
    """The number of each batch and how many servers it has; all together as many as there are rounds."""
    for first in range(0, rounds, SERVERS_AT_ONCE):
        yield first // SERVERS_AT_ONCE, min(SERVERS_AT_ONCE, rounds - first)


def wait_for_the_moment(number: int, stands: list[Stand], count: int) -> None:
    """Even batches: all scripts are up. Odd ones: any time from now."""
    if number % 2 == 0:
        wait_until_up(stands, count)
    else:
        time.sleep(random.Random(number).uniform(0, LONGEST_LOT_SECS))


def staying_stands(new_stand: NewStand, count: int) -> list[Stand]:
    stands = [new_stand() for _ in range(count)]
    for stand in stands:
        stand.scripts(STAYING)
    return stands


def start_with_calls(stand: Stand) -> Wire:
    wire = stand.start()
    wire.send(*(call(name, name) for name in STAYING))
    return wire


def warmed_up(new_stand: NewStand, scripts: dict[str, str]) -> tuple[Stand, Wire, list[str]]:
    """A server that has met its first call, and what it holds open from then on."""
    stand = new_stand()
    stand.scripts(scripts)
    wire = stand.start()
    wire.send(call("warm-up", next(iter(scripts)), timeoutSecs=0.2))
    wire.response("warm-up")
    require_only_server(stand, wire.process.pid)
    stand.forget_ups()
    return stand, wire, stand.descriptors_of(wire.process.pid)


def answered(wire: Wire, names: Iterable[str]) -> list[str]:
    """The ids "NAME-..." that have been answered, for these names."""
    ids = [str(message.get("id")) for message in wire.seen]
    return [id for id in ids if any(id.startswith(f"{name}-") for name in names)]


def test_cancelled_calls_leave_nothing(new_stand: NewStand) -> None:
    stand, wire, before = warmed_up(new_stand, STAYING)

    for number in range(ROUNDS):
        ids = {name: f"{name}-{number}" for name in STAYING}
        wire.send(*(call(ids[name], name) for name in STAYING))
        wait_for_the_moment(number, [stand], len(STAYING))
        wire.send(*(cancel(id) for id in ids.values()))
        require_only_server(stand, wire.process.pid)
        stand.forget_ups()

    require_no_new_descriptors(wire.process.pid, before)
    wire.result("ping")
    assert answered(wire, STAYING) == []
    assert wire.stop() == 0
    require_all_gone([stand])


def test_calls_past_their_deadline_leave_nothing(new_stand: NewStand) -> None:
    stand, wire, before = warmed_up(new_stand, STAYING)

    for number in range(ROUNDS):
        secs = random.Random(number).uniform(0.02, 0.3)
        wire.send(*(call(f"{name}-{number}", name, timeoutSecs=secs) for name in STAYING))
        for name in STAYING:
            result = wire.response(f"{name}-{number}")["result"]
            assert result["structuredContent"]["error"]["type"] == "timeout"
        require_only_server(stand, wire.process.pid)

    require_no_new_descriptors(wire.process.pid, before)
    assert wire.stop() == 0
    require_all_gone([stand])


def end_by_input(wire: Wire, _: int) -> None:
    wire.close_stdin()


def end_by_signal(wire: Wire, _: int) -> None:
    wire.process.send_signal(signal.SIGTERM)


def end_by_force(wire: Wire, _: int) -> None:
    wire.process.kill()


def end_impatiently(wire: Wire, number: int) -> None:
    """Clients ask politely and lose their patience: TERM, then KILL in the middle of the cleaning up."""
    wire.process.send_signal(signal.SIGTERM)
    time.sleep(random.Random(number).uniform(0, 0.4))
    wire.process.kill()


# How a server ends, how often that is tried, and the statuses that it may end with. One that has not yet got as far as
# to catch signals has nothing to clean up.
ENDINGS: dict[str, tuple[Callable[[Wire, int], None], int, set[int]]] = {
    "input": (end_by_input, ROUNDS, {0}),
    "signal": (end_by_signal, ROUNDS, {0, 128 + signal.SIGTERM, -signal.SIGTERM}),
    "force": (end_by_force, ROUNDS, {-signal.SIGKILL}),
    "impatience": (end_impatiently, FEWER_ROUNDS, {0, 128 + signal.SIGTERM, -signal.SIGTERM, -signal.SIGKILL}),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_server_that_ends_during_calls_leaves_nothing(new_stand: NewStand, ending: str) -> None:
    end, rounds, statuses = ENDINGS[ending]
    for number, count in batches(rounds):
        stands = staying_stands(new_stand, count)
        wires = [start_with_calls(stand) for stand in stands]
        wait_for_the_moment(0 if ending == "impatience" else number, stands, len(STAYING))
        for wire in wires:
            end(wire, number)
        assert {wire.wait() for wire in wires} <= statuses
        require_all_gone(stands)
        for wire in wires:
            wire.kill()


def test_a_killed_client_leaves_nothing(new_stand: NewStand) -> None:
    for number, count in batches():
        stands = staying_stands(new_stand, count)
        clients = [start_client(stand) for stand in stands]
        wait_for_the_moment(number, stands, len(STAYING))
        for client in clients:
            client.kill()
            client.wait()
            assert client.stdout is not None
            client.stdout.close()
        require_all_gone(stands)


def start_client(stand: Stand) -> subprocess.Popen[str]:
    messages = [*greeting(), *(call(name, name) for name in STAYING)]
    order = {
        "command": [sys.executable, "-m", "mcpgreen", "serve", "--project-root", str(stand.project.root)],
        "input": "".join(json.dumps(message) + "\n" for message in messages),
    }
    client = subprocess.Popen(
        [sys.executable, "-SE", "-c", CLIENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(stand.env),
        text=True,
    )
    assert client.stdin is not None and client.stdout is not None
    client.stdin.write(json.dumps(order))
    client.stdin.close()
    assert int(client.stdout.readline()) > 0
    return client


def test_tools_that_end_by_themselves_leave_nothing(new_stand: NewStand) -> None:
    stand, wire, before = warmed_up(new_stand, LEAVING)

    for number in range(ROUNDS):
        wire.send(*(call(f"{name}-{number}", name) for name in LEAVING))
        for name in LEAVING:
            assert text_of(wire.response(f"{name}-{number}")["result"]) == "done\n"
        # Not eventually: who has the answer may rely on it.
        spared = {wire.process.pid, guardian_of(stand)}
        assert [found for found in processes_with(stand.mark) if found[0] not in spared] == []

    require_only_server(stand, wire.process.pid)
    require_no_new_descriptors(wire.process.pid, before)
    assert wire.stop() == 0
    require_all_gone([stand])


@pytest.mark.parametrize("end", [end_by_input, end_by_signal, end_by_force])
def test_hiding_processes_do_not_outlive_the_server(new_stand: NewStand, end: Callable[[Wire, int], None]) -> None:
    for number, count in batches(FEWER_ROUNDS):
        stands = [new_stand() for _ in range(count)]
        for stand in stands:
            stand.script("hiding", SCRUBBED_STAYING)
            stand.script("jobs", STAYING["jobs"])
        wires = [stand.start() for stand in stands]
        for wire in wires:
            wire.send(call(1, "hiding"), call(2, "jobs"), call(3, "hiding"))
        for stand in stands:
            eventually(lambda stand=stand: len(stand.ups()) == 3 and len(sleepers(stand)) == 4)  # type: ignore[misc]
        for wire in wires:
            end(wire, number)
        require_all_gone(stands)
        for wire in wires:
            wire.kill()


def test_a_call_cancelled_in_the_same_write_never_answers_and_leaves_nothing(new_stand: NewStand) -> None:
    stand, wire, before = warmed_up(new_stand, STAYING)

    for number in range(ROUNDS):
        for name in STAYING:
            wire.send(call(f"{name}-{number}", name), cancel(f"{name}-{number}"))
        wire.result("ping")
        require_only_server(stand, wire.process.pid)

    assert answered(wire, STAYING) == []
    require_no_new_descriptors(wire.process.pid, before)


def test_a_call_cancelled_while_its_output_is_drained_leaves_nothing(new_stand: NewStand) -> None:
    stand = new_stand(DRAIN_SECS=10)
    stand.script("holding", 'echo early\nsleep {mark} &\n: > "{up}/{name}.$$"\n')
    wire = stand.start()

    for number in range(ROUNDS):
        wire.send(call(f"call-{number}", "holding"))
        (up,) = eventually(lambda: stand.ups("holding"))
        eventually(lambda: not is_alive(up.rpartition(".")[2]))  # noqa: B023
        wire.send(cancel(f"call-{number}"))
        require_only_server(stand, wire.process.pid)
        wire.result("ping")
        stand.forget_ups()

    assert answered(wire, ["call"]) == []


def test_a_server_killed_as_soon_as_its_directory_appears_leaves_nothing(new_stand: NewStand) -> None:
    """Who is to remove the directory must be there before it."""
    for _ in range(ROUNDS):
        stand = new_stand()
        stand.script("jobs", STAYING["jobs"])
        wire = stand.start()
        wire.send(call(1, "jobs"))
        while not os.listdir(stand.tmp):
            assert wire.process.poll() is None
        wire.process.kill()
        require_all_gone([stand])
        wire.kill()


def test_the_server_ends_when_its_guardian_was_killed_before(new_stand: NewStand) -> None:
    stand = new_stand()
    stand.scripts(STAYING)
    wire = start_with_calls(stand)
    wait_until_up([stand], len(STAYING))
    os.kill(guardian_of(stand), signal.SIGKILL)

    wire.process.send_signal(signal.SIGTERM)

    assert wire.wait() in (0, 128 + signal.SIGTERM)
    require_all_gone([stand])
