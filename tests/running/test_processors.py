"""Scripts may use every processor that the server may use."""

from __future__ import annotations

import os

import pytest

from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

ALLOWED = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

pytestmark = pytest.mark.skipif(len(ALLOWED) < 2, reason="needs Linux and two processors")


@pytest.mark.parametrize("usable", [ALLOWED, set(sorted(ALLOWED)[:1])], ids=["all", "one"])
def test_scripts_may_use_what_the_server_may_use(project: ProjectBuilder, speak: Speak, usable: set[int]) -> None:
    project.python_tool("usable", "import os; print(sorted(os.sched_getaffinity(0)))")
    client = speak()
    client.call_tool("usable")
    os.sched_setaffinity(client.wire.process.pid, usable)
    ids = [client.start_tool("usable") for _ in range(40)]

    assert {text_of(client.wire.response(id)["result"]) for id in ids} == {f"{sorted(usable)}\n"}
