"""What tests of tasks share: clients of both wires, over a pipe and over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.support.questions import FORM
from tests.support.task_shapes import EXTENSION
from tests.support.wire import LATEST_HANDSHAKE, MODERN, Json

WITH_TASKS: Json = {"extensions": {EXTENSION: {}}}
ASKABLE: Json = {**WITH_TASKS, **FORM}
ENDED = ("completed", "failed", "cancelled")
# A script goes on when the test says so.
GO = 'until [ -e "$MCPGREEN_PROJECT_ROOT/go" ]; do sleep 0.02; done'

__all__ = ["ASKABLE", "ENDED", "GO", "LATEST_HANDSHAKE", "MODERN", "WITH_TASKS"]
__all__ += ["begin", "ended", "get", "look_until", "status_message"]


def begin(client: Any, tool: str, arguments: Json | None = None, **params: Any) -> Json:
    """Call a tool, and return the task that the client gets, in the words of its wire."""
    if client.revision != MODERN:
        params.setdefault("task", {})
    result = client.result("tools/call", {"name": tool, "arguments": arguments or {}, **params})
    task: Json = result["task"] if client.revision != MODERN else result
    assert "taskId" in task, result
    return task


def get(client: Any, task: Json) -> Json:
    found: Json = client.result("tasks/get", {"taskId": task["taskId"]})
    return found


def look_until(client: Any, task: Json, is_so: Callable[[Json], object], within_secs: float = 20) -> Json:
    """Look at a task until this is true of it."""
    give_up_at = time.monotonic() + within_secs
    while not is_so(found := get(client, task)):
        assert time.monotonic() < give_up_at, found
        time.sleep(0.05)  # not more often: the server counts
    return found


def ended(client: Any, task: Json) -> Json:
    return look_until(client, task, lambda found: found["status"] in ENDED)


def status_message(client: Any, task: Json, wanted: str) -> Json:
    return look_until(client, task, lambda found: found.get("statusMessage") == wanted)
