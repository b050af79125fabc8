"""On a full disk no call is begun, everything else goes on, and room that is made is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Wire, text_of

BLOCK = bytes(4096)


class SmallDisk:
    """A real file system of a few pages."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._ballast = place / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(BLOCK)
            except OSError:
                return

    def make_room(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system of our own cannot be mounted here")
    yield SmallDisk(place)
    subprocess.run(["umount", "-l", str(place)], check=True)


def is_served(wire: Wire, name: str) -> bool:
    answer = wire.request("tools/call", {"name": name})
    assert "result" in answer or "disk is full" in answer["error"]["message"], answer
    return "result" in answer


def critical_messages(wire: Wire) -> list[Any]:
    notices = wire.notices("notifications/message")
    return [notice["params"] for notice in notices if notice["params"]["level"] == "critical"]


@pytest.mark.requirement("G-disk-full")
def test_without_room_for_temporary_files_calls_are_refused_until_there_is_room(
    project: ProjectBuilder, small_disk: SmallDisk
) -> None:
    project.tool("hold", "touch running; until [ -e go ]; do sleep 0.02; done; echo held")
    project.tool("size", 'wc -c < "$MCP_TOOL_ARGS_FILE"')
    env = {"MCPGREEN_TMP_ROOT": str(small_disk.place), "MCPGREEN_ENV_PAYLOAD_THRESHOLD": "0"}
    with Wire(project.root, env=env).greeted() as wire:
        held = wire.start_request("tools/call", {"name": "hold"})
        eventually(lambda: (project.root / "running").exists())
        small_disk.fill()
        errors = [wire.error("tools/call", {"name": "size"}) for _ in range(3)]

        assert {error["code"] for error in errors} == {-32603}
        assert all(error["message"].startswith("The disk is full: a temporary file") for error in errors)
        assert not any(str(small_disk.place) in error["message"] for error in errors)
        assert len(critical_messages(wire)) == 1
        assert len(wire.result("tools/list")["tools"]) == 2
        project.write("go", "")
        assert text_of(wire.response(held)["result"]) == "held\n"

        small_disk.make_room()
        eventually(lambda: is_served(wire, "size"))
        assert wire.stop() == 0
    assert "critical: The disk is full" in wire.stderr
    assert list(small_disk.place.iterdir()) == []


@pytest.mark.requirement("G-disk-full")
def test_without_room_for_the_registry_lists_are_served_and_calls_are_not(small_disk: SmallDisk) -> None:
    project = ProjectBuilder(small_disk.place / "project")
    project.tool("hello", "echo hello")
    small_disk.fill()
    with Wire(project.root, env={"MCPGREEN_TOOLS_TTL": "0.05"}).greeted() as wire:
        assert [tool["name"] for tool in wire.result("tools/list")["tools"]] == ["hello"]
        eventually(lambda: not is_served(wire, "hello"))
        error = wire.error("tools/call", {"name": "hello"})
        assert (error["code"], error["message"][:30]) == (-32603, "The disk is full: the registry")

        small_disk.make_room()
        eventually(lambda: is_served(wire, "hello"))
        eventually(lambda: (project.root / ".registry" / "tools.json").exists())
        assert wire.stop() == 0


@pytest.mark.requirement("G-disk-full")
def test_a_file_that_may_not_grow_so_large_counts_as_a_full_disk(project: ProjectBuilder) -> None:
    project.tool("hello", "echo hello")
    limited = ["/bin/bash", "-c", f'ulimit -f 16; exec "{sys.executable}" -m mcpgreen serve "$@"', "server"]
    env = {"PYTHONDONTWRITEBYTECODE": "1", "MCPGREEN_ENV_PAYLOAD_THRESHOLD": "4096"}
    with Wire(project.root, command=limited, env=env).greeted() as wire:
        large = {"name": "hello", "arguments": {"text": "x" * 20_000}}
        refused = [wire.error("tools/call", large), wire.error("tools/call", {"name": "hello"})]

        assert [error["code"] for error in refused] == [-32603, -32603]
        assert all("The disk is full" in error["message"] for error in refused)
        eventually(lambda: is_served(wire, "hello"))
        assert wire.stop() == 0
