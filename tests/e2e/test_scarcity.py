"""A server that runs out of what the system gives it goes on with what it has."""

from __future__ import annotations

import os
import resource

import pytest

from tests.support.descriptors import descriptors_of, needs_proc, new_descriptors
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Wire, text_of

# All servers here are fresh: what they import at the first use needs descriptors, too.
OBSERVABLE = {"MCPGREEN_CORE_DUMPS": "true"}  # else only root sees what it has open


def allow_descriptors(wire: Wire, count: int, *, spare: int | None = None) -> None:
    """Change the limit of a server that runs: to a number, or to as many as it has and some to spare."""
    if spare is not None:
        numbers = {int(entry) for entry in os.listdir(f"/proc/{wire.process.pid}/fd")}
        count = [number for number in range(1024) if number not in numbers][spare]
    hard = resource.prlimit(wire.process.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(wire.process.pid, resource.RLIMIT_NOFILE, (count, hard))


@pytest.mark.requirement("G-scarcity")
@needs_proc
def test_without_descriptors_a_call_fails_and_the_server_lives(project: ProjectBuilder) -> None:
    project.tool("quick", "true")
    project.tool("hold", "while [ ! -e go ]; do sleep 0.02; done; echo held")
    with Wire(
        project.root,
        is_fresh=True,
        env={"MCPGREEN_MAX_CONCURRENT_REQUESTS": "64", "MCPGREEN_OBSERVE": "off", **OBSERVABLE},
    ) as wire:
        wire.handshake()
        wire.call_tool("quick")
        open_before = descriptors_of(wire.process.pid)
        allow_descriptors(wire, 110)
        ids = [wire.start_request("tools/call", {"name": "hold"}) for _ in range(60)]
        refused = wire.receive(lambda message: "error" in message)
        assert refused["error"]["code"] == -32603
        assert "Too many open files" in refused["error"]["message"]
        project.write("go", "")
        answers = [wire.response(id) for id in ids if id != refused["id"]]

        held = [answer for answer in answers if "result" in answer]
        assert held, answers
        assert {text_of(answer["result"]) for answer in held} == {"held\n"}
        # One more if the file watch began meanwhile; a leak would be of several for each call that was refused.
        eventually(lambda: len(new_descriptors(wire.process.pid, open_before)) <= 1)
        assert text_of(wire.call_tool("hold")) == "held\n"
        assert wire.stop() == 0


@pytest.mark.requirement("G-scarcity")
@needs_proc
@pytest.mark.parametrize("spare", [0, 2, 7])
@pytest.mark.parametrize("is_warm", [True, False])
def test_whatever_is_asked_without_descriptors_costs_that_request_alone(
    project: ProjectBuilder, spare: int, is_warm: bool
) -> None:
    project.tool("hello", "echo hello")
    project.tool("fails", 'echo x >"$MCP_TOOL_ERROR_FILE"; exit 1')
    uri = project.resource("note.txt", "read me").as_uri()
    project.prompt("ask.sh", "#!/bin/sh\necho '[]'\n", name="ask")
    requests = [
        ("tools/call", {"name": "hello"}),
        ("tools/call", {"name": "hello", "arguments": {"x": "y" * 100_000}}),
        ("tools/call", {"name": "fails"}),
        ("resources/read", {"uri": uri}),
        ("resources/subscribe", {"uri": uri}),
        ("resources/unsubscribe", {"uri": uri}),
        ("prompts/get", {"name": "ask"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "ask"}, "argument": {"name": "a", "value": ""}}),
        ("tools/list", {}),
    ]
    with Wire(project.root, is_fresh=True, env=OBSERVABLE).greeted() as wire:
        wire.result("tools/list")
        wire.settle()  # a first list may come before the engine is there
        if is_warm:
            wire.call_tool("hello")
        allow_descriptors(wire, 0, spare=spare)
        project.tool("late", "echo late")  # a change that has to be looked at
        for method, params in requests:
            assert wire.request(method, params).keys() & {"error", "result"}
            assert wire.result("ping") == {}
        allow_descriptors(wire, 1024)

        assert text_of(wire.call_tool("hello")) == "hello\n"
        # What could not be listed is tried again a second later.
        read = eventually(lambda: wire.request("resources/read", {"uri": uri}).get("result"))
        assert read["contents"][0]["text"] == "read me"
        eventually(lambda: "late" in {tool["name"] for tool in wire.result("tools/list")["tools"]})
        assert wire.stop() == 0


@pytest.mark.requirement("G-scarcity")
def test_a_place_for_temporary_files_that_goes_away_is_named_as_the_reason(project: ProjectBuilder) -> None:
    project.tool("hello", "echo hello")
    place = project.root / "scratch"
    place.mkdir()
    with Wire(project.root, is_fresh=True, env={"MCPGREEN_TMP_ROOT": str(place)}).greeted() as wire:
        place.rmdir()
        error = wire.error("tools/call", {"name": "hello"})

        assert error["code"] == -32603
        assert error["message"] == "A temporary file cannot be written: No such file or directory."
        place.mkdir()
        assert text_of(wire.call_tool("hello")) == "hello\n"
        assert wire.stop() == 0
    assert str(place) in wire.stderr
    assert "Traceback" not in wire.stderr
