"""Scripts start out of each other's way, and may use every processor that the server may use."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpgreen.running.system.cpu_placement import Processors
from tests.support.client import Client
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

ALLOWED = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

pytestmark = pytest.mark.skipif(len(ALLOWED) < 2, reason="needs Linux and two processors")


def processor_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[36])


@pytest.fixture
def ours() -> Iterator[int]:
    """A processor that this test alone stays on."""
    processor = min(ALLOWED)
    os.sched_setaffinity(0, {processor})
    yield processor
    os.sched_setaffinity(0, ALLOWED)


@pytest.fixture
def child(ours: int) -> Iterator[int]:
    """A busy child on the same processor, which it may leave."""
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as process:
        os.sched_setaffinity(process.pid, ALLOWED)
        yield process.pid
        process.kill()


def test_a_child_is_moved_off_our_processor_and_may_come_back(
    ours: int, child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is gets looked at after each step: once it may come back, the kernel may take it back at once."""
    processors = Processors.found()
    assert processors is not None
    os.sched_setaffinity(child, {ours})
    os.sched_setaffinity(child, ALLOWED)
    seen: list[int] = []
    move = os.sched_setaffinity

    def watched(pid: int, mask: set[int]) -> None:
        move(pid, mask)
        seen.append(processor_of(pid))

    monkeypatch.setattr(os, "sched_setaffinity", watched)
    processors.make_way(child, scripts=len(ALLOWED) + 1)
    monkeypatch.undo()

    assert seen[0] != ours
    assert os.sched_getaffinity(child) == ALLOWED


def test_a_child_that_has_chosen_its_processor_keeps_it(ours: int, child: int) -> None:
    processors = Processors.found()
    assert processors is not None
    os.sched_setaffinity(child, {ours})

    processors.make_way(child, scripts=len(ALLOWED) + 1)

    assert os.sched_getaffinity(child) == {ours}


def test_a_child_that_is_gone_needs_no_moving() -> None:
    processors = Processors.found()
    assert processors is not None
    with subprocess.Popen(["true"]) as process:
        process.wait()

    processors.make_way(process.pid, scripts=len(ALLOWED) + 1)


def test_where_nobody_may_ask_for_processors_nothing_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int) -> set[int]:
        raise PermissionError(pid)

    monkeypatch.setattr(os, "sched_getaffinity", refuse)
    assert Processors.found() is None


@pytest.mark.parametrize("usable", [ALLOWED, set(sorted(ALLOWED)[:1])], ids=["all", "one"])
def test_scripts_may_use_what_the_server_may_use(
    project: ProjectBuilder, speak: Callable[..., Client], usable: set[int]
) -> None:
    project.python_tool("usable", "import os; print(sorted(os.sched_getaffinity(0)))")
    client = speak()
    client.call_tool("usable")
    os.sched_setaffinity(client.wire.process.pid, usable)
    ids = [client.start_tool("usable") for _ in range(40)]

    assert {text_of(client.wire.response(id)["result"]) for id in ids} == {f"{sorted(usable)}\n"}
