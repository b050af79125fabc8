"""Faults of our own output: they are counted, and what is not one line does not go out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mcpgreen.features.call import Call
from mcpgreen.links.session import Stream
from mcpgreen.protocol.admission import ClientView
from mcpgreen.protocol.revisions import LATEST_HANDSHAKE
from mcpgreen.settings.settings import load
from mcpgreen.transports.outbox import CorruptionGuard, Outbox, is_sound
from mcpgreen.transports.stdio import Endpoint
from tests.support.constants import variables_of
from tests.support.project import ProjectBuilder
from tests.support.waiting import PATIENCE_SECS, eventually
from tests.support.wire import clean_environment

GOOD = b'{"jsonrpc":"2.0","id":1,"result":{}}'
BROKEN_LINE = b'{"jsonrpc":"2.0","id":7,\n"result":{}}'
INSTEAD = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "The answer could not be sent."}}


class Pipe:
    """An outbox in front of a real pipe."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        self._endpoint = Endpoint(self._writing, os.O_WRONLY)
        self.faults: list[str] = []
        self.outbox = Outbox(self._endpoint, max_backlog_bytes=1 << 20)
        self.outbox.on_fault = self.faults.append

    def lines(self) -> list[bytes]:
        assert self.outbox.drained.wait(PATIENCE_SECS)
        os.set_blocking(self.reading, False)
        try:
            data = os.read(self.reading, 1 << 16)
        except BlockingIOError:
            return []
        assert data.endswith(b"\n")
        return data.split(b"\n")[:-1]

    def close(self) -> None:
        self.outbox.close()
        self._endpoint.close()
        os.close(self._writing)
        os.close(self.reading)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def call(id: Any, pipe: Pipe) -> Call:
    view = ClientView(LATEST_HANDSHAKE, {}, None)
    services: Any = SimpleNamespace(next_serial=lambda: 1)
    stream = Stream(pipe.outbox, transport="stdio")
    return Call(id, "tools/call", {}, view=view, session=None, stream=stream, sink=pipe.outbox, services=services)


@pytest.mark.requirement("G-stdout-guard")
def test_an_answer_that_is_not_one_line_becomes_an_error_for_its_request(pipe: Pipe) -> None:
    for line in (GOOD, BROKEN_LINE, GOOD):
        pipe.outbox.respond(line)
    first, second, third = pipe.lines()

    assert (first, third) == (GOOD, GOOD)
    assert json.loads(second) == INSTEAD
    assert len(pipe.faults) == 1


@pytest.mark.requirement("G-stdout-guard")
@pytest.mark.parametrize("line", [b'{"id":\n', b'{"id":7,"result":"\xff"}', [b'{"id":\n', b"..", b"}"]])
def test_what_cannot_even_be_read_becomes_an_error_when_its_call_is_known(pipe: Pipe, line: Any) -> None:
    pipe.outbox.respond(line, call(7, pipe))

    assert [json.loads(each) for each in pipe.lines()] == [INSTEAD]
    assert len(pipe.faults) == 1


@pytest.mark.requirement("G-stdout-guard")
def test_a_notification_that_is_not_one_line_is_dropped(pipe: Pipe) -> None:
    pipe.outbox.respond(b'{"jsonrpc":"2.0",\n"method":"notifications/x"}')

    assert pipe.lines() == []
    assert len(pipe.faults) == 1


def test_sound_lines_pass_unchanged_and_uncounted(pipe: Pipe) -> None:
    accented = '{"jsonrpc":"2.0","id":1,"result":{"text":"é"}}'.encode()
    pipe.outbox.respond(GOOD)
    pipe.outbox.respond(accented)
    pipe.outbox.respond([b'{"id":2,', b'"result":{}}'], call(2, pipe))

    assert pipe.lines() == [GOOD, accented, b'{"id":2,"result":{}}']
    assert pipe.faults == []
    assert is_sound(GOOD)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def tripped_after(times: list[float], **options: Any) -> list[int]:
    """After which of the faults, counted from 1, the limit was reported."""
    clock, counted, reported = Clock(), [], []
    settings = load({}, {}, {}).with_values(**options)
    guard = CorruptionGuard(settings, on_limit=lambda: reported.append(len(counted)), clock=clock)
    for clock.now in times:
        counted.append(clock.now)
        guard.count("a test")
    assert guard.is_tripped == bool(reported)
    return reported


@pytest.mark.requirement("G-stdout-guard")
@pytest.mark.parametrize(
    ("times", "options", "expected"),
    [
        ([0, 1], {}, []),
        ([0, 1, 2, 3], {}, [3]),
        ([0, 30, 60.1], {}, []),
        ([0, 30, 60.1, 90], {}, [4]),
        ([0, 1, 2, 3, 4], {"allow_corrupt_stdout": True}, []),
    ],
)
def test_so_many_faults_within_the_window_are_too_many(
    times: list[float], options: dict[str, Any], expected: list[int]
) -> None:
    assert tripped_after(times, **options) == expected


def server_into_a_full_device(project: ProjectBuilder, **settings: Any) -> subprocess.Popen[bytes]:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "wb") as full:
        return subprocess.Popen(
            [sys.executable, "-m", "mcpgreen", "serve", "--project-root", str(project.root)],
            stdin=subprocess.PIPE,
            stdout=full,
            stderr=subprocess.PIPE,
            env=clean_environment(variables_of(settings)),
        )


@pytest.mark.requirement("G-stdout-guard")
def test_a_server_that_cannot_write_its_answers_gives_up_with_status_2(project: ProjectBuilder) -> None:
    with server_into_a_full_device(project) as server:
        assert server.stdin and server.stderr
        server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        server.stdin.flush()

        assert server.wait(PATIENCE_SECS) == 2
        assert server.stderr.read().count(b"critical: invalid output: a write failed") == 3


@pytest.mark.requirement("G-stdout-guard")
def test_a_server_that_may_fail_to_write_goes_on_trying(project: ProjectBuilder) -> None:
    with server_into_a_full_device(project, allow_corrupt_stdout=True, EOF_GRACE_SECS=0) as server:
        assert server.stdin and server.stderr
        server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        server.stdin.flush()
        faults = iter(server.stderr.readline, b"")
        eventually(lambda: [next(faults) for _ in range(6)])
        server.stdin.close()

        assert server.wait(PATIENCE_SECS) == 0
