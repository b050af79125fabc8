"""Many calls through processes that stay, while some are cancelled, crash, stall, are killed or edited: each result
proves that it belongs to its call, and nothing grows."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive

CALLS = 25 * int(os.environ.get("MCPGREEN_STRESS_ROUNDS", "30"))
IN_FLIGHT = 12
SOURCE = f"""#!{sys.executable}
import asyncio, os, time
import mcp_tool

@mcp_tool.tool(stays={{"for": "server", "workers": 2, "concurrency": 4, "maxCalls": 2000}})
async def prove(proof: str, do: str = "", more: str = "") -> dict:
    mcp_tool.progress(1, proof)
    if do == "crash":
        os._exit(7)
    if do == "wait":
        await asyncio.sleep(0.02)
    if do == "stall":
        time.sleep(0.05)  # meanwhile, it reads no calls
    if do == "large":
        return {{"proof": proof, "more": "x" * 300_000}}
    return {{"proof": proof, "pid": os.getpid(), "more": more}}
"""


def memory_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_each_of_many_calls_gets_its_own_answer(project: ProjectBuilder, speak: Speak) -> None:
    dice = random.Random(os.environ.get("MCPGREEN_STRESS_SEED", "seven"))
    path = project.tool("prove.py", SOURCE)
    client = speak()
    seen: set[int] = set()
    told: Counter[str] = Counter()
    open_calls: dict[int, str] = {}
    cancelled: set[int] = set()
    memory: list[int] = []
    for number in range(CALLS):
        proof = f"proof {number}"
        do = dice.choices(["", "wait", "large", "stall", "crash"], [90, 8, 1, 0.3, 0.3])[0]
        more = proof * 20_000 if dice.random() < 0.02 else ""  # more than a pipe takes
        id = client.start_tool("prove", {"proof": proof, "do": do, "more": more}, meta={"progressToken": proof})
        open_calls[id] = proof
        event = dice.random()
        if event < 0.03:
            client.wire.notify("notifications/cancelled", {"requestId": id})
            cancelled.add(id)
        elif event < 0.032 and seen:
            kill(dice.choice(sorted(seen)))
        elif event < 0.034:
            path.write_text(f"{SOURCE}# edit {number}\n")
        while len(open_calls) > IN_FLIGHT:
            take_one(client, open_calls, cancelled, told, seen)
        if number % max(1, CALLS // 10) == 0:
            memory.append(memory_kib(client.wire.process.pid))
    client.tools()  # all cancelled calls have been heard of
    for id in cancelled & open_calls.keys():
        del open_calls[id]
    while open_calls:
        take_one(client, open_calls, cancelled, told, seen)
    client.wire.close_stdin()
    assert told["result"] > 0.8 * CALLS, told
    assert memory[-1] < 1.3 * memory[1] + 8_000, memory
    eventually(lambda: not any(map(is_alive, seen)))


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def take_one(
    client: Client, open_calls: dict[int, str], cancelled: set[int], told: Counter[str], seen: set[int]
) -> None:
    """Take the next answer, and check that it is the one that its call has to get."""
    for id in [each for each in open_calls if each in cancelled][:1]:
        del open_calls[id]
        return
    message = client.wire.receive(lambda each: True)
    client.wire.seen.clear()
    if message.get("method") == "notifications/progress":
        params = message["params"]
        assert params["progressToken"] == params["message"]
    if message.get("id") not in open_calls:
        return
    proof = open_calls.pop(message["id"])
    result = message["result"]
    if result["isError"]:
        assert result["content"][0]["text"].startswith("The process "), result
        told["error"] += 1
    else:
        assert result["structuredContent"]["proof"] == proof
        assert result["structuredContent"]["more"].replace(proof, "").strip("x") == ""
        seen.add(result["structuredContent"].get("pid", 0))
        seen.discard(0)
        told["result"] += 1
