"""A server that runs out of what the system gives it goes on with what it has."""

from __future__ import annotations

import sys

import pytest

from tests.support.descriptors import descriptors_of, needs_proc, new_descriptors
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Wire, text_of


@pytest.mark.requirement("G-scarcity")
@needs_proc
def test_without_descriptors_a_call_fails_and_the_server_lives(project: ProjectBuilder) -> None:
    project.tool("quick", "true")
    project.tool("hold", "while [ ! -e go ]; do sleep 0.02; done; echo held")
    limited = ["/bin/sh", "-c", f'ulimit -n 110; exec "{sys.executable}" -m mcpgreen serve "$@"', "server"]
    with Wire(project.root, command=limited, env={"MCPGREEN_MAX_CONCURRENT_REQUESTS": "64"}) as wire:
        wire.handshake()
        wire.call_tool("quick")
        open_before = descriptors_of(wire.process.pid)
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
def test_a_temporary_directory_that_is_cleaned_away_is_made_again(project: ProjectBuilder) -> None:
    """Some systems empty /tmp while a server runs for weeks."""
    scratch = project.root / "scratch"
    scratch.mkdir()
    project.tool("size", 'cat "$MCP_TOOL_ARGS_FILE" | wc -c')
    with Wire(project.root, env={"TMPDIR": str(scratch), "MCPGREEN_ENV_PAYLOAD_THRESHOLD": "0"}) as wire:
        wire.handshake()
        first = text_of(wire.call_tool("size", {"a": 1}))
        for directory in scratch.iterdir():
            directory.rmdir()
        assert text_of(wire.call_tool("size", {"a": 1})) == first
        assert wire.stop() == 0
    assert list(scratch.iterdir()) == []


@pytest.mark.requirement("G-scarcity")
def test_a_place_for_temporary_files_that_is_none_is_named_as_the_reason(project: ProjectBuilder) -> None:
    project.tool("hello", "echo hello")
    with Wire(project.root, env={"MCPGREEN_TMP_ROOT": str(project.write("file", "")) + "/below"}) as wire:
        wire.handshake()
        error = wire.error("tools/call", {"name": "hello"})

        assert error["code"] == -32603
        assert error["message"] == "A temporary file cannot be written: Not a directory."
        assert wire.stop() == 0
    assert "Traceback" not in wire.stderr
