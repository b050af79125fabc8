"""Scripts may use every processor that the server may use; a new one may have fewer for a moment, while it is moved."""

from __future__ import annotations

import os

import pytest

from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

ALLOWED = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

pytestmark = pytest.mark.skipif(len(ALLOWED) < 2, reason="needs Linux and two processors")

WAITING = """
import json, os, time
wanted, give_up_at = int(json.loads(os.environ["MCP_TOOL_ARGS_JSON"])["number"]), time.monotonic() + 30
while len(os.sched_getaffinity(0)) != wanted and time.monotonic() < give_up_at:
    time.sleep(0.001)
print(sorted(os.sched_getaffinity(0)))
"""


@pytest.mark.parametrize("usable", [ALLOWED, set(sorted(ALLOWED)[:1])], ids=["all", "one"])
def test_scripts_may_use_what_the_server_may_use(project: ProjectBuilder, speak: Speak, usable: set[int]) -> None:
    project.python_tool("usable", WAITING)
    client = speak()
    client.call_tool("usable", {"number": len(ALLOWED)})
    os.sched_setaffinity(client.wire.process.pid, usable)
    ids = [client.start_tool("usable", {"number": len(usable)}) for _ in range(40)]

    assert {text_of(client.wire.response(id)["result"]) for id in ids} == {f"{sorted(usable)}\n"}
