"""One run of a script: the number that joins request, process and files; how its end is noticed; what it has used."""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import gevent
import pytest

from mcpgreen.running.processes import spawning
from mcpgreen.running.processes.spawning import spawn_helper
from tests.support.fake_link import FakeLink, serving
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Start, Wire, text_of

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked for in /proc")

# Two runs at the same time and one with a narrow limit: how they ended, and what they used.
THREE_RUNS = """
import json, gevent
from mcpgreen.running.processes.run import Deadline, Limits, Script, ScriptRun, unheard
from mcpgreen.running.runner import Runner, run_script

runner = Runner(directory=".")

def run(serial, text, stdout_bytes=1000):
    script = Script(f"Script {serial}", "/bin/sh", ["/bin/sh", "-c", text])
    limits = Limits(stdout_bytes, 1000)
    return run_script(runner, ScriptRun(script, {}, Deadline(60), limits, serial, unheard))

def told(outcome):
    child = outcome.child
    used_secs = child.usage.ru_utime + child.usage.ru_stime
    took_secs = child.ended_at - child.began_at
    return [outcome.ended_by, b"".join(outcome.stdout).decode(), child.pid, child.tag, used_secs, took_secs]

busy = gevent.spawn(run, 1, "echo $$; i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done")
idle = gevent.spawn(run, 2, "echo $$; sleep 0.05")
print(json.dumps([told(busy.get()), told(idle.get()), told(run(3, "printf %0300d 1", 299))]))
runner.stop_all(grace_secs=0)
runner.close(is_clean=True)
"""


@needs_proc
def test_one_number_joins_request_process_and_files(project: ProjectBuilder, start: Start) -> None:
    project.write("server.d/policy.sh", 'echo "$MCPGREEN_CALL" > asked; mcp_tools_policy_check() { return 0; }')
    project.tool("tell", 'echo "$MCPGREEN_CALL $MCP_TOOL_ERROR_FILE"; grep "realtime timeout" /proc/self/limits')
    wire = start(stderr_level="debug").greeted()
    told = text_of(wire.call_tool("tell"))

    tag, file, limit = re.findall(r"^(\d+) (\S+)\nMax realtime timeout +(\d+) ", told)[0]
    serial = int(tag[-8:])
    assert limit == tag == project.read("asked").strip()
    assert os.path.basename(file) == f"call.{serial}.error.json"
    eventually(lambda: re.search(rf"request \d+ to tools/call is call {serial}\n", wire.stderr))
    eventually(lambda: re.search(rf"call {serial}: Tool 'tell' ran as process \d+, \d+ ms\n", wire.stderr))


def test_calls_have_different_numbers(project: ProjectBuilder, client: Wire) -> None:
    project.tool("tell", 'echo "$MCPGREEN_CALL"')

    assert len({text_of(client.call_tool("tell")) for _ in range(3)}) == 3


def test_an_outcome_says_which_process_it_was_what_that_used_and_which_limit_it_met(tmp_path: Path) -> None:
    done = completed([sys.executable, "-c", THREE_RUNS], cwd=tmp_path, check=True)
    busy, idle, wordy = json.loads(done.stdout)

    assert [run[0] for run in (busy, idle, wordy)] == ["exit", "exit", "stdout limit"]
    assert [run[1] for run in (busy, idle)] == [f"{run[2]}\n" for run in (busy, idle)]
    assert [run[3] % 10**8 for run in (busy, idle, wordy)] == [1, 2, 3]
    assert busy[4] > idle[4]
    assert idle[5] > 0.01  # we may see late that it has begun


def test_a_script_that_is_stopped_and_goes_on_has_not_ended(project: ProjectBuilder, client: Wire) -> None:
    project.tool("dozing", "(sleep 0.1; kill -CONT $$) & kill -STOP $$; echo awake")

    assert text_of(client.call_tool("dozing")) == "awake\n"


def test_output_that_comes_through_a_filter_after_the_exit_arrives_whole(project: ProjectBuilder, client: Wire) -> None:
    slowly = "for n in 1 2 3 4 5 6; do sleep 0.1; echo $n; done"
    project.tool("filtered", f"exec 3>&1 >&2\n({slowly}; for n in $(seq 9000); do echo $n; done) >&3 3>&- 2>&- &\n")
    project.tool("on_stderr", f"({slowly}; echo done >&2) >&2 &\necho 'out'\n")

    lines = text_of(client.call_tool("filtered")).split()
    assert lines == [str(number) for number in (*range(1, 7), *range(1, 9001))]
    assert text_of(client.call_tool("on_stderr")) == "out\n"


def test_what_writes_without_end_after_the_exit_is_cut_off_with_a_word(project: ProjectBuilder, start: Start) -> None:
    project.tool("endless", "(while sleep 0.02; do echo more; done) &\necho first\n")
    project.tool("silent", "sleep 60 &\necho first\n")
    wire = start(DRAIN_SECS=0.1).greeted()
    began_at = time.monotonic()
    text = text_of(wire.call_tool("endless"))
    assert text.startswith("first\nmore\nmore\n")
    assert time.monotonic() - began_at < 30

    def is_told() -> bool:
        wire.call_tool("endless")  # again: on a busy machine, the child may have been silent for a moment
        return "Tool 'endless' has exited, but a child is still writing" in wire.stderr

    eventually(is_told)
    assert text_of(wire.call_tool("silent")) == "first\n"
    assert "Tool 'silent'" not in wire.stderr


@needs_proc
def test_hundreds_of_scripts_that_end_at_once_leave_no_zombie(project: ProjectBuilder, client: Wire) -> None:
    """More than are reaped in one turn, and none of them started by us."""
    project.tool("crowd", "for i in $(seq 300); do (read line < gate &) ; done; exec 9>gate; echo done")
    os.mkfifo(project.root / "gate")

    assert text_of(client.call_tool("crowd")) == "done\n"
    eventually(lambda: not zombies_of(client.process.pid))


def zombies_of(pid: int) -> list[Any]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in children if ") Z " in Path(f"/proc/{child}/stat").read_text()]


def test_a_script_starts_in_its_project_and_the_server_stays_where_it_is(
    project: ProjectBuilder, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directory and tag are those of the whole process for as long as it takes to start a script."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.chdir(home)
    limit = getattr(resource, "RLIMIT_RTTIME", resource.RLIMIT_CPU)
    before = resource.getrlimit(limit)
    project.tool("where", "pwd -P")
    with serving(project.root) as server:
        result = FakeLink(server).ask_stateless("tools/call", {"name": "where"}, id=1)["result"]

    assert result["content"][0]["text"].strip() == os.path.realpath(project.root)
    assert os.getcwd() == os.path.realpath(home)
    assert resource.getrlimit(limit) == before


def test_scripts_that_are_too_many_for_one_turn_are_reaped_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """One word from the system may stand for all of them, and there may be no other."""
    monkeypatch.setattr(spawning, "REAPED_AT_A_TIME", 2)
    ended: list[int] = []
    pids = []
    for _ in range(5):
        pids.append(os.posix_spawn("/bin/sh", ["sh", "-c", ":"], {}))
        spawning.reaper().watch(pids[-1], lambda status, usage: ended.append(status))
    for pid in pids:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with gevent.Timeout(60):
        while len(ended) < len(pids):
            gevent.sleep(0.01)

    assert ended == [0] * 5


@needs_proc
def test_a_helper_holds_nothing_but_its_socket() -> None:
    """Whoever waits for the end of what the server writes would wait for the helper too."""
    tell = 'held=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2); echo "$held" >&7'
    pid, fd = spawn_helper("/bin/sh", ["sh", "-c", tell], {"PATH": os.defpath}, as_fd=7)
    os.set_blocking(fd, True)
    with open(fd, encoding="utf-8") as told:
        assert told.read().split() == [os.devnull] * 3
    with suppress(ChildProcessError):  # the reaper may have been quicker
        os.waitpid(pid, 0)
