"""What the server inherits from whoever starts it: signals, limits, a system without /proc. It serves all the same."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpgreen.running.system import fitting_descriptor, scripts_that_fit
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import CHECKOUT, Wire, text_of

SERVE = [sys.executable, "-m", "mcpgreen", "serve"]
SHOW_SIGNALS = "grep -E '^Sig(Blk|Ign):' /proc/self/status"
REPORT = f'. "{CHECKOUT}/mcpgreen/sdk/tool-sdk.sh"\nmcp_progress 50 half\necho done\n'
OF_THE_LIBRARY = 1 << 31 | 1 << 32  # signals 32 and 33, which the C library lets nobody touch


def started_with(blocked: set[int], ignored: set[int]) -> list[str]:
    """A command that starts the server with these signals blocked and ignored."""
    code = (
        "import os, signal, sys\n"
        f"signal.pthread_sigmask(signal.SIG_SETMASK, {sorted(map(int, blocked))})\n"
        f"[signal.signal(number, signal.SIG_IGN) for number in {sorted(map(int, ignored))}]\n"
        "os.execv(sys.argv[1], sys.argv[1:])\n"
    )
    return [sys.executable, "-c", code, *SERVE]


def limited_to(descriptors: int) -> list[str]:
    return ["/bin/sh", "-c", f'ulimit -n {descriptors}; exec {shlex.join(SERVE)} "$@"', "server"]


@pytest.mark.parametrize(
    ("blocked", "ignored"),
    [({signal.SIGCHLD}, set()), (set(range(1, 32)), set()), (set(), {signal.SIGCHLD}), (set(), {signal.SIGTERM})],
    ids=["SIGCHLD blocked", "all blocked", "SIGCHLD ignored", "SIGTERM ignored"],
)
def test_scripts_and_server_end_though_signals_were_ignored_by_their_parent(
    project: ProjectBuilder, blocked: set[int], ignored: set[int]
) -> None:
    """Calls timed out because no end of a child was noticed, and SIGTERM was not heard."""
    project.tool("hello", "echo hello")
    with Wire(project.root, command=started_with(blocked - {9, 19}, ignored)).greeted() as wire:
        assert text_of(wire.call_tool("hello", timeoutSecs=5)) == "hello\n"
        wire.process.send_signal(signal.SIGTERM)
        assert wire.wait() == 0


def test_a_hook_begins_with_clean_signals(project: ProjectBuilder) -> None:
    project.write("server.d/env.sh", f"export MCP_SEEN=$({SHOW_SIGNALS} | tr -s '\\t\\n' ' ')")
    project.tool("seen", 'echo "$MCP_SEEN"')
    with Wire(project.root, command=started_with({10, 17}, {12, 17, 23})).greeted() as wire:
        seen = text_of(wire.call_tool("seen")).split()
    assert [int(value, 16) & ~OF_THE_LIBRARY for value in seen[1::2]] == [0, 0]


def test_few_descriptors_are_enough_for_a_script_and_its_reports(project: ProjectBuilder) -> None:
    """With `ulimit -n 64` there is no descriptor 97, and no tool could be started."""
    project.tool("report", REPORT)
    with Wire(project.root, command=limited_to(64)).greeted() as wire:
        result = wire.call_tool("report", _meta={"progressToken": "t"})
        assert text_of(result) == "done\n"
        assert wire.notice("notifications/progress")["params"]["message"] == "half"
        assert wire.stop() == 0
    assert wire.stderr.count("ulimit -n") == 1


def test_no_more_scripts_run_at_a_time_than_there_are_descriptors_for(project: ProjectBuilder) -> None:
    project.tool("hold", "while [ ! -e go ]; do sleep 0.02; done; echo held")
    with Wire(project.root, command=limited_to(64)).greeted() as wire:
        ids = [wire.start_request("tools/call", {"name": "hold"}) for _ in range(30)]
        assert wire.result("ping") == {}
        project.write("go", "")
        assert {text_of(wire.response(id)["result"]) for id in ids} == {"held\n"}
        assert wire.stop() == 0


def test_a_hook_and_the_shell_sdk_need_no_high_descriptor(project: ProjectBuilder) -> None:
    script = "mcp_run_with_progress --pattern '^([0-9]+)%' -- echo out"
    project.tool("runs", f'. "{CHECKOUT}/mcpgreen/sdk/tool-sdk.sh"\n{script}\n')
    project.write("server.d/policy.sh", "mcp_tools_policy_check() { [[ $1 == runs ]]; }")
    with Wire(project.root, command=limited_to(64)).greeted() as wire:
        assert text_of(wire.call_tool("runs")) == "out\n"


@pytest.mark.parametrize("limit", [1024, 98, 97, 64, 40, 20])
def test_the_control_pipe_has_a_number_that_fits(limit: int) -> None:
    number = fitting_descriptor(limit)

    assert 9 < number < limit
    assert number == 97 or limit <= 97


@pytest.mark.parametrize(("limit", "wanted", "count"), [(1024, 16, 16), (64, 16, 9), (20, 16, 1), (10**9, 16, 16)])
def test_so_many_scripts_fit_into_a_limit(limit: int, wanted: int, count: int) -> None:
    assert scripts_that_fit(wanted, limit) == count


@contextmanager
def without_proc(project: ProjectBuilder, *, tmp_path: Path) -> Iterator[Wire]:
    """A server that finds an empty directory at /proc."""
    unshare = require_program("unshare")
    empty = tmp_path / "empty"
    empty.mkdir()
    hide = f'mount --bind {shlex.quote(str(empty))} /proc && exec {shlex.join(SERVE)} "$@"'
    apart = [unshare, "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
    if subprocess.run([*apart, "mount", "--bind", str(empty), "/proc"], capture_output=True).returncode:
        pytest.skip("/proc cannot be hidden from a process here")
    with Wire(project.root, command=[*apart, "/bin/sh", "-c", hide, "server"]).greeted() as wire:
        yield wire


def test_without_proc_scripts_run_and_report(project: ProjectBuilder, tmp_path: Path) -> None:
    project.tool("report", REPORT)
    project.tool("arguments", 'wc -c <"$MCP_TOOL_ARGS_FILE"')
    project.resource("note.txt", "read me")
    with without_proc(project, tmp_path=tmp_path) as wire:
        for _ in range(2):
            assert text_of(wire.call_tool("report", _meta={"progressToken": "t"})) == "done\n"
        assert wire.notice("notifications/progress")["params"]["message"] == "half"
        assert int(text_of(wire.call_tool("arguments", {"x": "y" * 100_000}))) > 100_000
        uri = wire.result("resources/list")["resources"][0]["uri"]
        assert wire.result("resources/read", {"uri": uri})["contents"][0]["text"] == "read me"
        assert wire.stop() == 0
    eventually(lambda: wire.stderr.count("mount /proc") == 1)
    assert "Traceback" not in wire.stderr


def test_without_proc_a_job_in_the_background_is_stopped_with_its_group(
    project: ProjectBuilder, tmp_path: Path
) -> None:
    project.tool("leaves", "trap '' TERM; sleep 600 & echo $!")
    with without_proc(project, tmp_path=tmp_path) as wire:
        pid = int(text_of(wire.call_tool("leaves")))
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
