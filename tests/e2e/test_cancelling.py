"""Cancelled calls: no answer, and nothing left running."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import MODERN, text_of

# Each process notes its own id; the last line says that all have started.
FAMILY = r"""
note() { echo "$2" > "$1.new"; mv "$1.new" "$1.pid"; }
note leader $$
sleep 600 & note job $!
setsid bash -c 'echo $$ > daemon.new; mv daemon.new daemon.pid; while :; do sleep 0.1; done' >/dev/null 2>&1 &
(setsid bash -c '(echo $BASHPID > orphan.new; mv orphan.new orphan.pid; while :; do sleep 0.1; done) &' &)
until [ -e daemon.pid ] && [ -e orphan.pid ]; do sleep 0.01; done
touch family
wait; sleep 600
"""
MEMBERS = ("leader", "job", "daemon", "orphan")


def no_answer(client: Client, id: Any) -> bool:
    client.tools()
    return not [message for message in client.wire.seen if message.get("id") == id]


@pytest.mark.requirement("P-261")
@pytest.mark.parametrize(
    ("revision", "id"), [*((revision, 41) for revision in ALL_REVISIONS), *((MODERN, id) for id in (0, "forty", ""))]
)
def test_a_cancelled_call_is_never_answered_and_its_process_is_gone(
    project: ProjectBuilder, speak: Speak, revision: str, id: Any
) -> None:
    project.tool("stuck", "echo $$ > pid.new; mv pid.new pid; sleep 600; echo done")
    client = speak(revision)
    client.start_tool("stuck", id=id, meta={"progressToken": id})
    eventually(lambda: (project.root / "pid").exists())
    client.wire.notify("notifications/cancelled", {"requestId": id, "reason": "enough"})

    eventually(lambda: not is_alive(project.read("pid")))
    assert no_answer(client, id)


@pytest.mark.requirement("G-cancel-tree")
def test_cancelling_ends_background_jobs_and_daemons_too(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("family", FAMILY)
    client = speak()
    id = client.start_tool("family")
    eventually(lambda: (project.root / "family").exists())
    pids = {member: int(project.read(f"{member}.pid")) for member in MEMBERS}
    assert all(map(is_alive, pids.values())), pids
    client.wire.notify("notifications/cancelled", {"requestId": id})

    for pid in pids.values():
        eventually(lambda pid=pid: not is_alive(pid))


@pytest.mark.requirement("G-cancel-tree")
def test_a_cancelled_script_can_clean_up(project: ProjectBuilder, speak: Speak) -> None:
    """Its commands in a trap must be hit neither by a second signal nor by a pipe that nobody reads any more."""
    project.tool(
        "polite",
        "trap 'echo cleaning; [ -e \"$MCP_CANCEL_FILE\" ] && sleep 0.1 && touch noticed; exit 0' TERM\n"
        "touch running; while :; do sleep 0.02; done",
    )
    client = speak()
    id = client.start_tool("polite")
    eventually(lambda: (project.root / "running").exists())
    client.wire.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: (project.root / "noticed").exists())


@pytest.mark.requirement("G-cancel-tree")
def test_a_process_that_left_the_group_can_clean_up_too(project: ProjectBuilder, speak: Speak) -> None:
    project.program("apart", "trap 'touch noticed; exit 0' TERM\ntouch running; while :; do sleep 0.02; done")
    project.tool("starts", "setsid ./apart & wait")
    client = speak()
    id = client.start_tool("starts")
    eventually(lambda: (project.root / "running").exists())
    client.wire.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: (project.root / "noticed").exists())


@pytest.mark.requirement("P-261")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_nothing_of_a_call_is_told_after_its_cancellation(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    report = '{"method":"notifications/progress","params":{"progress":%d}}'
    project.tool("busy", f"""n=0; while :; do n=$((n+1)); printf '{report}\\n' $n >> "$MCP_PROGRESS_STREAM"; done""")
    client = speak(revision, max_progress_per_min=0)
    id = client.start_tool("busy", meta={"progressToken": "t"})
    client.wire.notice("notifications/progress")
    client.wire.notify("notifications/cancelled", {"requestId": id})
    client.tools()  # answered behind the cancellation
    seen_before = len(client.wire.seen)
    client.tools()
    client.tools()

    assert not [message for message in client.wire.seen[seen_before:] if "method" in message]


@pytest.mark.requirement("P-261")
def test_a_call_may_be_cancelled_while_it_waits_in_line(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("first", "touch running; until [ -e go ]; do sleep 0.01; done; echo first")
    project.tool("second", "touch second-ran")
    project.tool("third", "echo third")
    client = speak(max_concurrent_requests=1)
    first = client.start_tool("first")
    eventually(lambda: (project.root / "running").exists())
    second, third = client.start_tool("second"), client.start_tool("third")
    client.wire.notify("notifications/cancelled", {"requestId": second})
    client.result("ping")
    project.write("go", "")

    assert text_of(client.wire.response(first)["result"]) == "first\n"
    assert text_of(client.wire.response(third)["result"]) == "third\n"
    assert no_answer(client, second)
    assert not (project.root / "second-ran").exists()


@pytest.mark.requirement("P-260")
def test_only_the_very_id_cancels(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("wait", "touch running; until [ -e go ]; do sleep 0.01; done; echo done")
    client = speak()
    client.start_tool("wait", id=41)
    eventually(lambda: (project.root / "running").exists())
    for wrong_id in ("41", 41.5, None, 42, [41], True):
        client.wire.notify("notifications/cancelled", {"requestId": wrong_id})
    client.result("ping")
    project.write("go", "")

    assert text_of(client.wire.response(41)["result"]) == "done\n"


@pytest.mark.requirement("P-260")
def test_cancelling_what_is_finished_or_unknown_changes_nothing(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("hello", "echo hello")
    client = speak()
    id = client.start_tool("hello")
    client.wire.response(id)
    for request_id in (id, id, "never", 0):
        client.wire.notify("notifications/cancelled", {"requestId": request_id})

    assert text_of(client.call_tool("hello")) == "hello\n"


@pytest.mark.requirement("P-260")
def test_an_id_is_free_again_after_its_cancellation(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("stuck", "touch running; sleep 600")
    project.tool("hello", "echo hello")
    client = speak()
    client.start_tool("stuck", id="x")
    eventually(lambda: (project.root / "running").exists())
    client.wire.notify("notifications/cancelled", {"requestId": "x"})

    assert text_of(client.call_tool("hello", id="x")) == "hello\n"


@pytest.mark.requirement("P-260")
def test_a_storm_of_calls_and_cancellations_leaves_the_server_whole(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("brief", "sleep 0.0$((RANDOM % 5))")
    client = speak()
    for number in range(100):
        client.start_tool("brief", id=f"s{number}")
        client.wire.notify("notifications/cancelled", {"requestId": f"s{number - number % 7}"})

    assert client.call_tool("brief")["isError"] is False
    assert client.result("ping") == {}


RUN_IN_SHELL = """source "$MCP_SDK/tool-sdk.sh"
work() { echo 5% >&2; touch running; sleep 600; }
status=0
mcp_run_with_progress --pattern '([0-9]+)%' --extract match1 -- work || status=$?
echo "$status" > status.new; mv status.new status
"""
RUN_IN_PYTHON = """import os, signal, sys
sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool
signal.signal(signal.SIGTERM, HANDLER)
result = mcp_tool.run_with_progress(["sh", "-c", "echo 5% >&2; touch running; sleep 600"], "([0-9]+)%")
with open("status.new", "w") as file:
    print(result.returncode, file=file)
os.rename("status.new", "status")
"""


@pytest.mark.requirement("G-cancel-tree")
@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("shell-handles", f"trap : TERM\n{RUN_IN_SHELL}"),
        ("shell-ignores", f"trap '' TERM\n{RUN_IN_SHELL}"),
        ("python-handles", RUN_IN_PYTHON.replace("HANDLER", "lambda *_: None")),
        ("python-ignores", RUN_IN_PYTHON.replace("HANDLER", "signal.SIG_IGN")),
    ],
)
def test_a_script_that_outlives_the_cancelled_program_it_runs_learns_why_it_ended(
    project: ProjectBuilder, speak: Speak, name: str, script: str
) -> None:
    """With a handler the shell function said 143. A script that ignored the signal passed that on to the program, which
    was therefore killed together with the script."""
    if name.startswith("python"):
        project.python_tool(name, script)
    else:
        project.tool(name, script)
    client = speak()
    id = client.start_tool(name)
    eventually(lambda: (project.root / "running").exists())
    client.wire.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: (project.root / "status").exists())
    assert project.read("status") == "130\n"
