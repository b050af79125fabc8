"""Tasks over pipes, in revision 2026-07-28: from a call to its handle, from the handle to the result, many at a time,
and the memory of tasks that wait.

A client learns of a result in the quickest way that the server has: mcpgreen tells a listen, FastMCP is asked again and
again. Where many tasks run, all are asked in the same way: the oldest first, and one that still runs again after
`LOOK_SECS`.
"""

from __future__ import annotations

import json
import time
from collections import deque
from statistics import median

from client import Session, memory_mb, result_of
from figures import OURS, SubjectError, Values, since_ms
from over_pipes import IN_FLIGHT, WARM_UP
from subjects import Stand

PREFIX = "io.modelcontextprotocol/"
META = {
    f"{PREFIX}protocolVersion": "2026-07-28",
    f"{PREFIX}clientInfo": {"name": "bench", "version": "1"},
    f"{PREFIX}clientCapabilities": {"extensions": {f"{PREFIX}tasks": {}}},
}
TEXTS = {"script": "ok", "forked": "Hello, Ada!", "resident": "Hello, Ada!"}
POLL_SECS = 0.001  # of one task
LOOK_SECS = 0.01  # at many tasks; our server refuses more than about a hundred looks a second at tasks that run
ASLEEP = 50
QUEUED = 500
MORE_PLACES = {"MCPGREEN_MAX_CONCURRENT_REQUESTS": str(ASLEEP)}


def encode(session: Session, method: str, **params: object) -> bytes:
    return session.encode(method, {**params, "_meta": META})


def ask(session: Session, method: str, **params: object) -> bytes:
    """Ask, and wait for the answer with this id: an ended listen may be answered in between."""
    request = encode(session, method, **params)
    wanted = b'"id":%d,' % json.loads(request)["id"]
    session.send(request)
    return session.next_line(lambda line: wanted in line[:100])


def create(session: Session, tool: str) -> str:
    """Call the tool, and return the id of its task."""
    arguments = {} if tool.endswith("script") else {"name": "Ada"}
    answer = ask(session, "tools/call", name=tool, arguments=arguments)
    task_id = result_of(answer).get("taskId")
    if not task_id:
        raise SubjectError(f"no task: {answer[:200]!r}")
    return str(task_id)


def has_ended(line: bytes) -> bool:
    return b'"status":"working"' not in line


def poll(session: Session, task_id: str) -> bytes:
    """Ask for the task until it has ended."""
    while not has_ended(answer := ask(session, "tasks/get", taskId=task_id)):
        time.sleep(POLL_SECS)
    return answer


def listen(session: Session, task_id: str) -> bytes:
    """Wait until the server says that the task has ended."""
    session.send(encode(session, "subscriptions/listen", notifications={"taskIds": [task_id]}))
    return session.next_line(lambda line: b'"notifications/tasks"' in line[:100] and has_ended(line))


def check(line: bytes, text: str) -> None:
    message = json.loads(line)
    result = message.get("result") or message.get("params") or {}
    content = result.get("result", {}).get("content")
    if result.get("status") != "completed" or not content or content[0]["text"].rstrip("\n") != text:
        raise SubjectError(f"wrong end of a task: {line[:300]!r}")


def one_by_one(stand: Stand, session: Session, tool: str) -> tuple[float, float]:
    """Return the medians of call to handle, and of handle to result, in milliseconds."""
    created, seen = [], []
    for number in range(WARM_UP + stand.times(100)):
        start = time.perf_counter()
        task_id = create(session, tool)
        handed = time.perf_counter()
        line = (listen if stand.name == OURS else poll)(session, task_id)
        if number >= WARM_UP:
            created.append((handed - start) * 1000)
            seen.append(since_ms(handed))
        check(line, TEXTS[tool])
        if stand.name == OURS:
            session.send(session.encode_cancel())
    return median(created), median(seen)


def many(session: Session, tool: str, count: int) -> float:
    """Return how many tasks are begun, run and seen in a second, with 16 of them unfinished."""
    waiting: deque[str] = deque()
    answers: list[bytes] = []
    start, begun = time.perf_counter(), 0
    while len(answers) < count:
        while len(waiting) < IN_FLIGHT and begun < count:
            waiting.append(create(session, tool))
            begun += 1
        answer = ask(session, "tasks/get", taskId=waiting[0])
        if has_ended(answer):
            waiting.popleft()
            answers.append(answer)
        else:
            time.sleep(LOOK_SECS)
    took_ms = since_ms(start)
    for answer in answers:
        check(answer, TEXTS[tool])
    return count / took_ms * 1000


def lives(stand: Stand) -> Values:
    values = {}
    with stand.start("tasks") as session:
        get_ready(session)
        for tool in TEXTS:
            values[f"task_{tool}_handle"], values[f"task_{tool}_seen"] = one_by_one(stand, session, tool)
            values[f"task_{tool}_16"] = many(session, tool, stand.times(400, slow=200))
    return values


def get_ready(session: Session) -> None:
    for method in ("server/discover", "tools/list"):
        result_of(ask(session, method))


def waiting(stand: Stand) -> Values:
    """Tasks that sleep: as scripts, and in an `async` function; and tasks that wait for a place."""
    values = {}
    count, queued = max(2, stand.times(ASLEEP)), max(2, stand.times(QUEUED))
    for kind, tool in (("script", "asleep-script"), ("function", "asleep")):
        with stand.start("tasks", MORE_PLACES) as session:
            get_ready(session)
            many(session, "script" if kind == "script" else "resident", 2 * WARM_UP)
            create(session, tool)
            before = rested_memory(session)
            for _ in range(count):
                create(session, tool)
            asleep = rested_memory(session)
            for key in asleep:
                values[f"task_{kind}_{key}"] = (asleep[key] - before[key]) / count
            if kind == "function":
                for _ in range(queued):
                    create(session, tool)
                values["task_queued"] = (rested_memory(session)["asleep"] - asleep["asleep"]) / queued
    return values


def rested_memory(session: Session) -> Values:
    """Memory in KiB: of the server with all its processes, and of the server alone. Pages of files are left out: how
    much of them counts depends on the other programs of the machine, and that is more than tasks need."""
    time.sleep(1)
    sizes = [memory_mb(session.pid, field="Pss_Anon:", has_helpers=each) for each in (True, False)]
    return dict(zip(("asleep", "alone"), (size * 1e6 / 1024 for size in sizes), strict=True))
