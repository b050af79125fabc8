"""Many tasks on two servers, while some are cancelled and scripts, servers, keepers and clients are killed: each task
whose handle was sent ends once, in one way, and nothing of it is left after its time.

Workers begin tasks, over HTTP and over stdio, and follow them on whatever server answers. Another thread does the
damage, and reads the whole store by `mcpgreen tasks`. All that anybody sees goes into a ledger, which compares it.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.project import task_place as place
from tests.stress.support import Stand, processes_with, require_all_gone, settle
from tests.support.client import Client
from tests.support.http import HttpClient, HttpServer
from tests.support.questions import ASK, accept
from tests.support.wire import Json, Wire, clean_environment, command_of_tests, text_of
from tests.tasks.clients import ASKABLE, ENDED, LATEST_HANDSHAKE, MODERN

ROUNDS = int(os.environ.get("MCPGREEN_STRESS_ROUNDS", "1"))
IS_FULL = ROUNDS >= 20
TASKS = 100 * ROUNDS if ROUNDS > 1 else 40
WORKERS = 6
AT_ONCE = 6 if IS_FULL else 4  # tasks of a worker
TASKS_PER_ACT = 10  # at most; so a slow machine damages no more than a quick one
KEEP_SECS = 120 if IS_FULL else 600  # too long to wait for in a short run, which clears the store
BRIEF_SECS = 1  # of tasks that need not be seen; also how often the servers look for what has expired
FOLLOW_SECS = 120.0
SLACK_SECS = 0.01  # times on the wire are whole milliseconds
MAX_STORE_BYTES = 10_000_000
KEEPER_KILLED = {"code": -32603, "message": "The process that ran the tool has ended."}
LOST = (OSError, http.client.HTTPException)  # the server was killed

SHELL = """source "${MCP_SDK:?}/tool-sdk.sh"
n=$(mcp_args_get .n)
echo "$MCP_TOOL_NAME $n ${MCP_TASK_ATTEMPT:-1} $$" >> {up}/starts
"""
PYTHON = """import os, time
import mcp_tool

@mcp_tool.tool
def NAME(n: int) -> str:
    "Prove that it was called."
    with open("{up}/starts", "a") as file:
        file.write(f"NAME {n} {os.environ.get('MCP_TASK_ATTEMPT', 1)} {os.getpid()}\\n")
    mcp_tool.progress(50, str(n))
    time.sleep(0.1)
    return f"proof {n}."
"""
QUESTIONS = (
    ASK
    + """
n = json.loads(os.environ["MCP_TOOL_ARGS_JSON"])["n"]
with open("{up}/starts", "a") as file:
    file.write(f"{os.environ['MCP_TOOL_NAME']} {n} {os.environ.get('MCP_TASK_ATTEMPT', 1)} {os.getpid()}\\n")
places = [post({key: form(key, name=TEXT)}) for key in 'ab']
answers = [each["result"]["content"]["name"] for place in places for each in read(place).values()]
print("proof", *set(answers), end=".")
"""
)
PROOF = 'printf "proof %s." "$n"'
ALWAYS: Json = {"task": "always", "taskKeepSecs": KEEP_SECS}
# How often each tool is called, its script, and its description.
TOOLS: dict[str, tuple[float, str, Json]] = {
    "quick": (4, f"{SHELL}{PROOF}", ALWAYS),
    "slow": (3, f"{SHELL}sleep {{mark}} & mcp_progress 50 half; sleep 0.$((RANDOM % 9)); kill $!; {PROOF}", ALWAYS),
    "again": (3, f"{SHELL}sleep 0.$((RANDOM % 9)); {PROOF}", {**ALWAYS, "idempotent": True}),
    "promoted": (1, f"{SHELL}sleep 0.3; {PROOF}", {**ALWAYS, "task": "auto", "taskAfterSecs": 0.05}),
    "surviving": (2, f"{SHELL}sleep 0.$((RANDOM % 9)); {PROOF}", {**ALWAYS, "taskSurvivesClient": True}),
    "keeping": (1, f"{SHELL}sleep 0.3; {PROOF}", {**ALWAYS, "taskSurvivesClient": True, "idempotent": True}),
    "large": (1, f"{SHELL}{PROOF}; head -c 100000 /dev/zero | tr '\\0' x", ALWAYS),
    "failing": (1, f"{SHELL}{PROOF} >&2; exit 3", ALWAYS),
    "refusing": (1, f'{SHELL}mcp_fail -32050 "proof $n."', ALWAYS),
    "endless": (1, f"{SHELL}sleep {{mark}} & wait", ALWAYS),
    "brief": (1, f"{SHELL}{PROOF}", {"task": "always"}),
    "asking": (2, f"#!{sys.executable} -S\n{QUESTIONS}", ALWAYS),
    "reasking": (1, f"#!{sys.executable} -S\n{QUESTIONS}", {**ALWAYS, "idempotent": True}),
    "forked": (3, f"#!{sys.executable}\n{PYTHON.replace('NAME', 'forked')}", ALWAYS),
    "resident": (3, f"#!{sys.executable}\n{PYTHON.replace('NAME', 'resident')}", {**ALWAYS, "stays": "server"}),
}


class Ledger:
    """What is known of each task whose handle was received, by all who have seen it."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()
        self.tools: dict[str, tuple[str, int]] = {}  # and the number, by id
        self.may_be_cancelled: set[str] = set()
        self.ends: dict[str, Json] = {}
        self._seen_at: dict[str, float] = {}  # when these were seen for the first time
        self._lock = threading.Lock()

    def tell(self, what: str) -> None:
        with self._lock:
            self.told[what] += 1

    def begin(self, task_id: str, tool: str, number: int) -> None:
        with self._lock:
            assert task_id not in self.tools
            self.tools[task_id] = tool, number

    def look(self, look: Callable[[], list[Json]]) -> list[Json]:
        """Let somebody look at tasks. One that had ended before must be as it was."""
        began_at = time.monotonic()
        found = look()
        for task in found:
            task_id = task["taskId"]
            if task["status"] not in ENDED:
                assert self._seen_at.get(task_id, began_at) >= began_at, (self.ends[task_id], task)
            elif task_id in self.tools:
                with self._lock:
                    known = self.ends.get(task_id, {})
                    self.ends[task_id] = {**known, **task}  # a list does not say all
                    self._seen_at.setdefault(task_id, time.monotonic())
                assert all(known[key] == task[key] for key in known.keys() & task.keys()), (known, task)
        return found

    def open_ids(self) -> list[str]:
        with self._lock:
            return [task_id for task_id in self.tools if task_id not in self.ends]

    def require_plausible(self) -> None:
        """Each end has a reason."""
        for task_id, (tool, number) in self.tools.items():
            end = self.ends.get(task_id)
            if end is None:
                assert tool == "brief", (tool, task_id)
                continue
            self.told[end["status"]] += 1
            if end["status"] == "cancelled":
                assert task_id in self.may_be_cancelled, (tool, end)
            elif end["status"] == "completed" and "result" in end and not end["result"]["isError"]:
                assert text_of(end["result"]).rstrip("x") == f"proof {number}.", end
            elif end["status"] == "failed" and "error" in end:
                assert end["error"]["message"].startswith(("The server was restarted", f"proof {number}.")), end


class Scene:
    """The servers on one store, and those who use and damage them."""

    def __init__(self, stand: Stand, seed: str) -> None:
        self.stand, self.seed, self.ledger = stand, seed, Ledger()
        self.root = stand.project.root
        self.directory = Path(place.directory_of(str(self.root), os.environ))
        self.numbers = count()
        self.replicas = [HttpServer(self.root, env=stand.env) for _ in "12"]
        self.urls = [server.url for server in self.replicas]
        self.is_over = threading.Event()

    def kill_replica(self, number: int) -> None:
        """Kill a server, and start another one."""
        with self.replicas[number] as server:
            server.process.kill()
            server.wait()
        server = self.replicas[number] = HttpServer(self.root, env=self.stand.env)
        self.urls[number] = server.url

    def run_command(self, *words: str) -> str:
        argv = [command_of_tests(), "tasks", *words, "--json", "--project-root", self.root]
        done = subprocess.run(argv, env=clean_environment(self.stand.env), capture_output=True, check=False, text=True)
        assert done.returncode in (0, 1), (words, done)
        return done.stdout

    def list_all(self) -> list[Json]:
        """Look at the whole store. What is known must be there until its time is over."""
        ledger, began_at = self.ledger, time.time()
        expected = list(ledger.tools)
        listed = ledger.look(lambda: json.loads(self.run_command("list")))
        ids, ended_at = {task["taskId"] for task in listed}, time.time()
        assert len(ids) == len(listed)
        for task_id in expected:
            if ledger.tools[task_id][0] != "brief":
                expires_at = self._expires_at(task_id)
                assert task_id in ids or expires_at < ended_at + SLACK_SECS, (task_id, ledger.ends.get(task_id))
                assert task_id not in ids or expires_at > began_at - SLACK_SECS, (task_id, ledger.ends.get(task_id))
        return listed

    def _expires_at(self, task_id: str) -> float:
        end = self.ledger.ends.get(task_id)
        return float("inf") if end is None else _seconds(end["lastUpdatedAt"]) + KEEP_SECS

    def stored(self) -> int:
        with closing(sqlite3.connect(self.directory / place.DATABASE)) as connection:
            return int(connection.execute("SELECT count(*) FROM tasks").fetchone()[0])


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Worker:
    """Begins tasks, some at a time, and follows them to their ends."""

    def __init__(self, scene: Scene, number: int) -> None:
        self._scene, self._ledger = scene, scene.ledger
        self._dice = random.Random(f"{scene.seed} {number}")
        self._source = f"127.0.0.{10 + number}"

    def run(self) -> None:
        while not self._scene.is_over.is_set() and len(self._ledger.tools) < TASKS:
            numbers = [next(self._scene.numbers) for _ in range(AT_ONCE)]
            if self._dice.random() < 0.2:
                self._follow(self._begin_over_stdio(numbers))
            else:
                self._follow([task_id for number in numbers for task_id in self._begin(self._http_request, number)])

    def _begin(self, request: Callable[[str, Json], Json], number: int) -> list[str]:
        """Call a tool, and return the id of its task if there is one."""
        names = list(TOOLS)
        tool = self._dice.choices(names, [weight for weight, _, _ in TOOLS.values()])[0]
        try:
            answer = request("tools/call", {"name": tool, "arguments": {"n": number}})
        except LOST:
            answer = {"error": KEEPER_KILLED}
        if "error" in answer:
            assert answer["error"] == KEEPER_KILLED, (tool, answer)
            self._ledger.tell("no handle")
            return []
        result = answer["result"]
        task = result.get("task", result)
        if "taskId" not in task:
            assert tool == "promoted", (tool, result)
            self._ledger.tell("plain")
            return []
        self._ledger.begin(task["taskId"], tool, number)
        return [task["taskId"]]

    def _http_request(self, method: str, params: Json) -> Json:
        """Ask any of the servers."""
        client = HttpClient(
            self._dice.choice(self._scene.urls), revision=MODERN, capabilities=ASKABLE, source=self._source
        )
        while True:
            try:
                answer = client.request(method, params)
            finally:
                client.close()
            if answer.get("error", {}).get("code") != -32000:
                return answer
            self._ledger.tell("too many polls")
            time.sleep(0.2)

    def _begin_over_stdio(self, numbers: list[int]) -> list[str]:
        """Begin tasks of a client that leaves, in some way, before they have ended."""
        revision = self._dice.choice([MODERN, LATEST_HANDSHAKE])
        found: list[str] = []
        with Wire(self._scene.root, env=self._scene.stand.env) as wire:
            client = Client(wire, revision, capabilities=ASKABLE)

            def request(method: str, params: Json) -> Json:
                return client.request(method, {**params, **({"task": {}} if revision != MODERN else {})})

            for number in numbers:
                found += self._begin(request, number)
            time.sleep(self._dice.choice([0, 0.2, 0.5]))
            way = self._dice.choice(["eof", "kill", "term"])
            self._ledger.tell(f"stdio server: {way}")
            if way == "eof":
                self._ledger.may_be_cancelled.update(each for each in found if not self._survives(each))
                wire.close_stdin()
            else:
                wire.process.send_signal(signal.SIGKILL if way == "kill" else signal.SIGTERM)
            wire.wait()
        return found

    def _survives(self, task_id: str) -> bool:
        return "taskSurvivesClient" in TOOLS[self._ledger.tools[task_id][0]][2]

    def _follow(self, task_ids: list[str]) -> None:
        give_up_at = time.monotonic() + FOLLOW_SECS
        left = list(task_ids)
        while left:
            assert time.monotonic() < give_up_at, [(self._ledger.tools[each], self._look(each)) for each in left]
            left = [task_id for task_id in left if not self._step(task_id)]
            time.sleep(0.05)

    def _step(self, task_id: str) -> bool:
        """Look at a task, and do something with it. Return True if it is over, or gone."""
        tool, number = self._ledger.tools[task_id]
        try:
            found = self._look(task_id)
            if not found:
                assert tool == "brief", (tool, task_id)
                self._ledger.tell("brief, unseen")
            elif found["status"] in ENDED:
                self._prove_that_it_stays(task_id)
            elif self._dice.random() < (0.3 if tool == "endless" else 0.02):
                self._ledger.may_be_cancelled.add(task_id)
                self._ledger.tell("cancel on the wire")
                self._http_request("tasks/cancel", {"taskId": task_id})
            elif questions := list(found.get("inputRequests", ())):
                answer = {self._dice.choice(questions): accept(name=str(number))}
                self._http_request("tasks/update", {"taskId": task_id, "inputResponses": answer})
                self._ledger.tell("answer")
        except LOST:
            return False
        return not found or found["status"] in ENDED

    def _prove_that_it_stays(self, task_id: str) -> None:
        """It has ended: whoever looks now, and whatever anybody wants, it does not change."""
        if self._dice.random() < 0.1:
            self._http_request("tasks/cancel", {"taskId": task_id})
        self._look(task_id)

    def _look(self, task_id: str) -> Json:
        """Look at a task on any server; empty if it is unknown there."""

        def look() -> list[Json]:
            answer = self._http_request("tasks/get", {"taskId": task_id})
            if "error" in answer:
                assert answer["error"]["code"] == -32602, answer
                return []
            return [answer["result"]]

        return next(iter(self._ledger.look(look)), {})


class Damage:
    """Kills what it finds, at random moments, until all is over; the more tasks begin, the more often."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._tell = scene, scene.ledger.tell
        self._dice = random.Random(f"{scene.seed} damage")

    def run(self) -> None:
        acts = {self._kill_server: 1, self._kill_script: 3, self._kill_keeper: 1, self._cancel: 1, self._list: 1}
        tools, after = self._scene.ledger.tools, 0
        try:
            while not self._scene.is_over.wait(self._dice.uniform(0, 0.1)):
                if len(tools) >= after:
                    after = len(tools) + self._dice.randrange(TASKS_PER_ACT)
                    self._dice.choices(list(acts), list(acts.values()))[0]()
        finally:
            self._scene.is_over.set()

    def _kill_server(self) -> None:
        self._tell("kill -9 of a server")
        self._scene.kill_replica(self._dice.randrange(2))

    def _kill_script(self) -> None:
        self._kill("a script", lambda command: f"{self._scene.root}/tools/" in command)

    def _kill_keeper(self) -> None:
        self._kill("a keeper", lambda command: "import keep;" in command)

    def _kill(self, what: str, is_so: Callable[[str], bool]) -> None:
        found = [pid for pid, command in processes_with(self._scene.stand.mark) if is_so(command)]
        if found:
            with suppress(ProcessLookupError):
                os.kill(self._dice.choice(found), signal.SIGKILL)
                self._tell(f"kill -9 of {what}")

    def _cancel(self) -> None:
        if open_ids := self._scene.ledger.open_ids():
            task_id = self._dice.choice(open_ids)
            self._scene.ledger.may_be_cancelled.add(task_id)
            self._scene.run_command("cancel", task_id)
            self._tell("cancel by command")

    def _list(self) -> None:
        self._scene.list_all()
        self._tell("list by command")


@pytest.fixture
def stand(new_stand: Callable[..., Stand]) -> Stand:
    stand = new_stand(task_keep_secs=BRIEF_SECS)
    for name, (_, script, fields) in TOOLS.items():
        stand.script(name, script, **fields)
    return stand


@pytest.mark.requirement("T-durable", "T-recover", "T-replicas", "T-expire")
def test_each_of_many_tasks_ends_once_and_leaves_nothing(stand: Stand) -> None:
    seed, began_at = os.environ.get("MCPGREEN_STRESS_SEED", "seven"), time.monotonic()
    print(f"MCPGREEN_STRESS_SEED={seed}")
    scene = Scene(stand, seed)
    ledger = scene.ledger
    try:
        with ThreadPoolExecutor(WORKERS + 1) as threads:
            damage = threads.submit(Damage(scene).run)
            try:
                for each in [threads.submit(Worker(scene, number).run) for number in range(WORKERS)]:
                    each.result()
            finally:
                scene.is_over.set()
            damage.result()
        for task in scene.list_all():  # those whose handle was never received may wait for ever
            if task["status"] not in ENDED:
                assert task["taskId"] not in ledger.tools
                scene.run_command("cancel", task["taskId"])
        ledger.require_plausible()
        require_started_once(stand)
        largest = size_of(scene.directory)
        if not IS_FULL:
            scene.run_command("clear")
        settle(lambda: [None] * scene.stored(), "rows are left", within_secs=KEEP_SECS + 30)
        settle(lambda: os.listdir(scene.directory / place.RESULTS), "results are left")
    finally:
        for server in scene.replicas:
            server.end()
    require_all_gone([stand])
    assert os.listdir(scene.directory / place.RUNNERS) == []
    assert size_of(scene.directory) < MAX_STORE_BYTES
    print(
        f"{len(ledger.tools)} tasks, {time.monotonic() - began_at:.0f} s; {largest} bytes at the end of the load,",
        end=" ",
    )
    print(f"{size_of(scene.directory)} when all are gone; {dict(sorted(ledger.told.items()))}")


def require_started_once(stand: Stand) -> None:
    """No attempt of a task started its script twice, and only some may have several attempts."""
    starts = Counter(tuple(line.split()[:3]) for line in (stand.up / "starts").read_text().splitlines())
    assert set(starts.values()) == {1}, [each for each, times in starts.items() if times > 1]
    attempts = Counter((tool, number) for tool, number, _ in starts)
    for (tool, number), times in attempts.items():
        assert times == 1 or TOOLS[tool][2].get("idempotent"), (tool, number)


def size_of(directory: Path) -> int:
    sizes: list[Any] = [path.stat().st_size for path in directory.rglob("*") if path.is_file()]
    return sum(sizes)
