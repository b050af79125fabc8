"""Many calls through resident processes, while some are cancelled, crash, stall, are killed or edited: each result
proves that it belongs to its call, and nothing grows."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Json

CALLS = 25 * int(os.environ.get("MCPGREEN_STRESS_ROUNDS", "30"))
RARE = min(0.003, 10 / CALLS)  # so that a process serves thousands of calls in a long run
IN_FLIGHT = 12
# The `stays` of a tool, and how its function waits: one process with one call at a time or several, or two processes.
KINDS = {
    "calm": ("'server'", "def", "time.sleep"),  # all calls through one process, which nothing disturbs
    "one": ("'server'", "def", "time.sleep"),
    "side-by-side": ("{'for': 'server', 'concurrency': 4}", "async def", "await asyncio.sleep"),
    "workers": ("{'for': 'server', 'workers': 2, 'concurrency': 4, 'maxCalls': 2000}", "def", "time.sleep"),
}
SOURCE = f"""#!{sys.executable}
import asyncio, os, time
import mcp_tool

@mcp_tool.tool(stays=STAYS)
DEF prove(proof: str, do: str = "", more: str = "") -> dict:
    mcp_tool.progress(1, proof)
    if do == "crash":
        os._exit(7)
    if do == "wait":
        WAIT(0.02)
    if do == "stall":
        time.sleep(0.05)  # meanwhile, a process with one thread reads no calls
    if do == "large":
        return {{"proof": proof, "more": "x" * 300_000}}
    return {{"proof": proof, "pid": os.getpid(), "more": more}}
"""


def memory_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4


class Load:
    """The calls of one run. Each answer has to prove that it belongs to its call."""

    def __init__(self, client: Client, *, is_ordered: bool) -> None:
        self.client = client
        self.told: Counter[str] = Counter()
        self.seen: set[int] = set()  # processes
        self.memory: dict[int, list[int]] = {}  # of the server and of the processes, in the course of the run
        self.open: dict[int, int] = {}
        self.cancelled: set[int] = set()
        self._is_ordered = is_ordered
        self._last = -1

    def call(self, number: int, do: str, more: str) -> int:
        proof = f"proof {number}"
        arguments = {"proof": proof, "do": do, "more": proof * 20_000 if more else ""}
        id: int = self.client.start_tool("prove", arguments, meta={"progressToken": proof})
        self.open[id] = number
        return id

    def cancel(self, id: int) -> None:
        self.client.wire.notify("notifications/cancelled", {"requestId": id})
        self.cancelled.add(id)

    def take_one(self) -> None:
        """Take the next message. Of a cancelled call, none need come."""
        for id in [each for each in self.open if each in self.cancelled][:1]:
            del self.open[id]
            return
        message = self.client.wire.receive(lambda each: True)
        self.client.wire.seen.clear()
        self.client.wire.raw_lines.clear()
        if message.get("method") == "notifications/progress":
            assert message["params"]["progressToken"] == message["params"]["message"]
        if message.get("id") in self.open:
            self._check(self.open.pop(message["id"]), message["result"])

    def _check(self, number: int, result: Json) -> None:
        if result["isError"]:
            assert result["content"][0]["text"].startswith("The process "), result
            self.told["error"] += 1
            return
        content, proof = result["structuredContent"], f"proof {number}"
        assert content["proof"] == proof
        assert content["more"].replace(proof, "").strip("x") == ""
        assert not self._is_ordered or number > self._last
        self._last = number
        self.seen |= {content["pid"]} if "pid" in content else set()
        self.told["result"] += 1

    def weigh(self) -> None:
        for pid in (self.client.wire.process.pid, *self.seen):
            with suppress(FileNotFoundError, IndexError):
                held_kib = memory_kib(pid)
                self.memory.setdefault(pid, []).append(held_kib)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
@pytest.mark.parametrize("kind", KINDS)
def test_each_of_many_calls_gets_its_own_answer(project: ProjectBuilder, speak: Speak, kind: str) -> None:
    dice = random.Random(os.environ.get("MCPGREEN_STRESS_SEED", "seven"))
    stays, definition, wait = KINDS[kind]
    source = SOURCE.replace("STAYS", stays).replace("DEF", definition).replace("WAIT", wait)
    path = project.tool("prove.py", source)
    client = speak()
    load = Load(client, is_ordered=kind in ("calm", "one"))
    rare = 0 if kind == "calm" else RARE
    for number in range(CALLS):
        do = dice.choices(["", "wait", "large", "stall", "crash"], [0.9, 0.08, 0.01, 0.003, rare])[0]
        id = load.call(number, do, "more than a pipe takes" if dice.random() < 0.02 else "")
        event = dice.random()
        if event < 0.03:
            load.cancel(id)
        elif event < 0.03 + rare and load.seen:
            kill(dice.choice(sorted(load.seen)))
        elif event < 0.03 + 2 * rare:
            path.write_text(f"{source}# edit {number}\n")
        elif event < 0.03 + 3 * RARE:  # for a while, the client reads nothing
            client.wire.may_read.clear()
            threading.Timer(0.1, client.wire.may_read.set).start()
        while len(load.open) > IN_FLIGHT:
            load.take_one()
        if number % max(1, CALLS // 50) == 0:
            load.weigh()
    client.tools()  # all cancelled calls have been heard of
    for id in load.cancelled & load.open.keys():
        del load.open[id]
    while load.open:
        load.take_one()
    client.wire.close_stdin()
    assert load.told["result"] > 0.8 * CALLS, load.told
    assert kind != "calm" or len(load.seen) == 1
    for pid, grown in load.memory.items():
        assert grown[-1] < 1.3 * grown[len(grown) // 10] + 8_000, (pid, grown)
    eventually(lambda: not any(map(is_alive, load.seen)))


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
