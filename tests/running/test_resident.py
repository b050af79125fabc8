"""Resident tools: the lines that they read and write, the life of a process, and what its end costs."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from mcpgreen.running.resident.process import TRANSITIONS, State
from tests.abuse.hub_turns import environment
from tests.abuse.notes import Reader
from tests.support.client import ALL_REVISIONS, Client, Speak
from tests.support.http import Serve
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Wire, text_of

# A process without an SDK. A test adds what it does with each `call`; `answer` writes a line.
LOOP = """
import json, os, sys, time
calls = os.fdopen(int(os.environ["MCP_CALLS_FD"]), "r")
def answer(**message):
    os.write(int(os.environ["MCP_ANSWERS_FD"]), json.dumps(message).encode() + b"\\n")
count = 0
"""
EACH = """
answer(ready=True)
for line in calls:
    message = json.loads(line)
    if "call" not in message:
        continue
    count += 1
    call, arguments = message["call"], message["arguments"]
"""


def resident(
    project: ProjectBuilder, name: str, body: str, *, before: str = "", stays: Any = "server", **more: Any
) -> None:
    """A tool whose process does `body` for each call."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    project.python_tool(name, f"{LOOP}{before}\n{EACH}{lines}", stays=stays, **more)


COUNT = "answer(result=f'{count} {os.getpid()}', call=call)"


def test_state_is_kept_between_calls(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "count", COUNT)
    client = speak()
    first, second = text_of(client.call_tool("count")).split(), text_of(client.call_tool("count")).split()
    assert (first[0], second[0]) == ("1", "2")
    assert first[1] == second[1]


@pytest.fixture(scope="module")
def served(shared_project: ProjectBuilder, shared_speak: Speak) -> Client:
    """One server with a process for each kind of behaviour."""
    for name, (body, _) in ANSWERS.items():
        resident(shared_project, name, body)
    for name, (before, body, _) in FAULTS.items():
        resident(shared_project, name, body, before=before, timeoutSecs=5)
    resident(shared_project, "echo", "answer(result=message, call=call)")
    return shared_speak(max_tool_output_size=100_000)


ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("answer(result='hello', call=call)", {"content": "hello", "isError": False}),
    "nothing": ("answer(result=None, call=call)", {"content": "", "isError": False}),
    "object": (
        "answer(result={'n': 1}, call=call)",
        {"content": '{"n":1}', "isError": False, "structuredContent": {"n": 1}},
    ),
    "ready-made": (
        "answer(result={'content': [{'type': 'text', 'text': 'no'}], 'isError': True}, call=call)",
        {"content": "no", "isError": True},
    ),
    "failed": ("answer(error='no such row', call=call)", {"content": "no such row", "isError": True}),
    "twice": ("answer(result='one', call=call); answer(result='two', call=call)", {"content": "one", "isError": False}),
    "unknown": ("answer(result='x', call=999); answer(result='one', call=call)", {"content": "one", "isError": False}),
    "garbage": (
        "os.write(int(os.environ['MCP_ANSWERS_FD']), b'garbage\\n\\xff\\n[]\\n5\\n'); answer(result='one', call=call)",
        {"content": "one", "isError": False},
    ),
    "odd-id": (
        'os.write(97, b\'{"ask":{},"id":1e999,"call":%d}\\n\' % call); id = json.loads(next(calls))[\'id\']\n'
        "answer(result=f'{id}', call=call)",
        {"content": "None", "isError": False},
    ),
    "prints": ("print('noise', flush=True); answer(result='one', call=call)", {"content": "one", "isError": False}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_counts_as_if_a_script_had_printed_it(served: Client, name: str) -> None:
    for _ in range(2):  # nothing of this costs the process
        result = served.call_tool(name)
        expected = dict(ANSWERS[name][1])
        assert text_of(result) == expected.pop("content")
        assert expected.items() <= result.items()


@pytest.mark.parametrize(
    ("name", "warning"),
    [("twice", "answered twice"), ("unknown", "answered an unknown call"), ("garbage", "a line that is not JSON")],
)
def test_a_line_that_means_nothing_is_a_warning(served: Client, name: str, warning: str) -> None:
    served.call_tool(name)
    told = f"Tool '{name}' (resident "
    eventually(lambda: any(told in line and warning in line for line in served.wire.stderr.splitlines()))


FAULTS: dict[str, tuple[str, str, str]] = {
    "exits": ("", "print('my reason', file=sys.stderr, flush=True); os._exit(37)", "exit code 37: my reason"),
    "dies": ("", "os.kill(os.getpid(), 9)", "The process was killed by SIGKILL."),
    "long": ("", "answer(result='x' * 200_000, call=call)", "answered with a line longer than 100000 bytes."),
    "endless": (
        "",
        "while True: os.write(int(os.environ['MCP_ANSWERS_FD']), b'x' * 65536)",
        "answered with a line longer than 100000 bytes.",
    ),
    "deaf": ("calls.close(); answer(ready=True); time.sleep(600)", "", "closed its calls."),
    "closes": ("", "os.close(int(os.environ['MCP_ANSWERS_FD'])); time.sleep(600)", "closed its answers."),
    "huge": ("", 'os.write(97, b\'{"result":1e999,"call":%d}\\n\' % call)', "a number that is too large."),
    "crash-at-start": ("raise ValueError('bad model')", "", "exit code 1: ValueError: bad model"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_process_costs_the_call_and_says_what_it_was(served: Client, name: str) -> None:
    result = served.call_tool(name)
    assert result["isError"] is True
    assert text_of(result).startswith("The process ")
    assert text_of(result).endswith(FAULTS[name][2])


def test_a_process_that_has_ended_is_started_anew(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "count", "if arguments: os._exit(1)\n" + COUNT)
    client = speak()
    before = text_of(client.call_tool("count"))
    assert client.call_tool("count", {"die": True})["isError"] is True
    after = text_of(client.call_tool("count"))
    assert after.split()[0] == "1"
    assert after != before


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_call_brings_what_may_change(served: Client, shared_speak: Speak, revision: str) -> None:
    client = shared_speak(revision, max_tool_output_size=100_000)
    message = json.loads(text_of(client.call_tool("echo", {"a": "ä\n"}, meta={"x/y": 1})))
    assert message.keys() == {"call", "tool", "arguments", "meta"}
    assert (message["tool"], message["arguments"]) == ("echo", {"a": "ä\n"})
    assert message["meta"]["_meta"]["x/y"] == 1
    assert message["meta"]["auth"] is None
    assert message["meta"]["timeoutSecs"] == 30
    assert [root["path"] for root in message["meta"]["roots"]]


def test_an_error_with_a_code_is_an_error_of_the_protocol(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "fails", "answer(error={'code': -32602, 'message': 'no', 'data': [1]}, call=call)")
    error = speak().error("tools/call", {"name": "fails", "arguments": {}})
    assert error == {"code": -32602, "message": "no", "data": [1]}


def test_progress_and_log_belong_to_their_call(project: ProjectBuilder, speak: Speak) -> None:
    body = """
for step in (1, 2):
    answer(progress={"progress": step, "total": 2, "message": "m"}, call=call)
answer(log={"level": "warning", "logger": "l", "data": {"a": 1}}, call=call)
answer(progress={"progress": 99}, call=call + 100)
answer(result="done", call=call)
answer(progress={"progress": 100}, call=call)
"""
    resident(project, "works", body)
    client = speak()
    client.call_tool("works", meta={"progressToken": "t"})
    client.tools()
    reports = [notice["params"] for notice in client.wire.notices("notifications/progress")]
    assert reports == [{"progressToken": "t", "progress": step, "total": 2, "message": "m"} for step in (1, 2)]
    (message,) = [each["params"] for each in client.wire.notices("notifications/message")]
    assert message == {"level": "warning", "logger": "l", "data": {"a": 1}}


SLOW = """
if arguments.get("ignore"):
    time.sleep(600)
if arguments.get("wait"):
    answer(log={"level": "info", "data": str(os.getpid())}, call=call)
    told = json.loads(next(calls))
    open("told", "w").write(json.dumps(told))
    answer(error="stopped", call=call)
else:
    answer(result=f"{count} {os.getpid()}", call=call)
"""


def test_a_cancelled_call_is_told_and_the_process_stays(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "slow", SLOW)
    client = speak()
    id = client.start_tool("slow", {"wait": True})
    pid = client.wire.notice("notifications/message")["params"]["data"]
    client.wire.notify("notifications/cancelled", {"requestId": id})
    eventually(lambda: (project.root / "told").exists() and project.read("told"))

    assert json.loads(project.read("told")) == {"cancel": 1, "reason": "cancelled"}
    assert text_of(client.call_tool("slow")) == f"2 {pid}"


def test_a_call_past_its_time_is_told_and_the_process_stays(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "slow", SLOW, timeoutSecs=0.3)
    client = speak()
    result = client.call_tool("slow", {"wait": True})
    assert text_of(result) == "Tool timed out after 0.3s"
    eventually(lambda: (project.root / "told").exists() and project.read("told"))
    assert json.loads(project.read("told")) == {"cancel": 1, "reason": "timeout"}
    assert text_of(client.call_tool("slow")).startswith("2 ")


def test_a_process_that_does_not_end_a_call_is_killed_with_its_children(project: ProjectBuilder, speak: Speak) -> None:
    before = "import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True).pid"
    body = "open('pids', 'w').write(f'{os.getpid()} {child}')\n" + SLOW
    resident(project, "slow", body, before=before, timeoutSecs=0.1)
    client = speak(KILL_GRACE_SECS=0.2)
    assert "timed out" in text_of(client.call_tool("slow", {"ignore": True}))
    pids = project.read("pids").split()
    # The next call waits until the old process is gone.
    assert text_of(client.call_tool("slow")).split()[0] == "1"
    eventually(lambda: not any(map(is_alive, pids)))


def test_other_calls_of_a_process_that_is_replaced_go_on(project: ProjectBuilder, speak: Speak) -> None:
    """One call does not end; the process serves the other one to its end, and new calls go to another process."""
    body = """
if arguments.get("stuck"):
    stuck = call
elif arguments.get("late"):
    late = call
else:
    answer(result=f"{count} {os.getpid()}", call=call)
"""
    between = """
import threading
def finish():
    while not os.path.exists("go"):
        time.sleep(0.01)
    answer(result=f"late {os.getpid()}", call=late)
threading.Thread(target=finish, daemon=True).start()
"""
    resident(project, "many", body, before=between, stays={"for": "server", "concurrency": 3})
    client = speak(KILL_GRACE_SECS=0.2)
    pid = text_of(client.call_tool("many")).split()[1]
    late, stuck = client.start_tool("many", {"late": True}), client.start_tool("many", {"stuck": True})
    assert text_of(client.call_tool("many")).split() == ["4", pid]
    client.wire.notify("notifications/cancelled", {"requestId": stuck})
    eventually(lambda: text_of(client.call_tool("many")).split()[1] != pid)
    assert is_alive(pid)
    project.write("go", "")
    assert text_of(client.wire.response(late)["result"]) == f"late {pid}"
    eventually(lambda: not is_alive(pid))


def test_an_edit_brings_a_new_process_and_the_running_call_finishes(project: ProjectBuilder, speak: Speak) -> None:
    wait = "while arguments and not os.path.exists('go'):\n    open('begun', 'w').close()\n    time.sleep(0.01)\n"
    resident(project, "tool", wait + COUNT)
    client = speak()
    old = text_of(client.call_tool("tool")).split()[1]
    running = client.start_tool("tool", {"wait": True})
    eventually((project.root / "begun").exists)
    resident(project, "tool", wait + COUNT + "  # another")
    project.write("go", "")
    assert text_of(client.wire.response(running)["result"]) == f"2 {old}"
    count, new = text_of(client.call_tool("tool")).split()
    assert (count, new != old) == ("1", True)
    eventually(lambda: not is_alive(old))
    project.remove("tools/tool")
    eventually(lambda: "tool" not in client.tools())
    eventually(lambda: not is_alive(new))


def test_an_idle_process_ends_and_the_next_call_starts_one(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "count", COUNT, stays={"for": "server", "idleSecs": 0.2})
    client = speak()
    pid = text_of(client.call_tool("count")).split()[1]
    eventually(lambda: not is_alive(pid))
    assert text_of(client.call_tool("count")).split()[0] == "1"


@pytest.mark.parametrize(
    ("stays", "before"),
    [({"maxCalls": 3}, ""), ({"maxMemoryMb": 60}, "kept = [b'x' * 80_000_000]")],
    ids=["calls", "memory"],
)
def test_a_worn_process_serves_until_another_is_ready(
    project: ProjectBuilder, speak: Speak, stays: dict[str, int], before: str
) -> None:
    resident(project, "count", COUNT, before=before, stays={"for": "server", **stays})
    client = speak()
    first = text_of(client.call_tool("count")).split()[1]
    eventually(lambda: text_of(client.call_tool("count")).split()[1] != first)
    eventually(lambda: not is_alive(first))


def test_while_starts_fail_calls_fail_at_once_until_an_edit(project: ProjectBuilder, speak: Speak) -> None:
    failing = "open('starts', 'a').write('x'); sys.exit('no model')"
    resident(project, "count", COUNT, before=failing)
    client = speak()
    texts = {text_of(client.call_tool("count")) for _ in range(5)}
    assert texts == {"The process ended with exit code 1: no model"}
    assert project.read("starts") == "x"
    resident(project, "count", COUNT)
    assert text_of(client.call_tool("count")).split()[0] == "1"


def test_a_process_that_is_not_ready_in_time_is_given_up(project: ProjectBuilder, speak: Speak) -> None:
    before = "open('pid', 'w').write(str(os.getpid())); print('loading', file=sys.stderr, flush=True); time.sleep(600)"
    resident(project, "slow", COUNT, before=before, stays={"for": "server", "startSecs": 0.3})
    result = speak().call_tool("slow")
    assert text_of(result) == "The process was not ready after 0.3 s (startSecs): loading"
    eventually(lambda: not is_alive(project.read("pid")))


def test_waiting_for_a_start_does_not_count(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "slow", COUNT, before="time.sleep(0.5)", timeoutSecs=0.3)
    assert text_of(speak().call_tool("slow")).split()[0] == "1"


def test_calls_run_side_by_side_up_to_the_limits(project: ProjectBuilder, speak: Speak) -> None:
    """Each process holds its answers back until both have two calls."""
    body = """
held.append(call)
if len(held) == 2:
    with open("full", "a") as full:
        full.write("x")
    while len(open("full").read()) < 2:
        time.sleep(0.01)
    for each in held:
        answer(result=f"{each} {os.getpid()}", call=each)
"""
    resident(project, "pairs", body, before="held = []", stays={"for": "server", "workers": 2, "concurrency": 2})
    client = speak()
    ids = [client.start_tool("pairs") for _ in range(4)]
    served = [text_of(client.wire.response(id)["result"]).split() for id in ids]
    assert sorted(number for number, _ in served) == ["1", "1", "2", "2"]
    assert len({pid for _, pid in served}) == 2


def test_calls_of_one_process_are_served_in_order(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "echo", "answer(result=f'{count} {arguments[\"n\"]}', call=call)")
    client = speak()
    client.call_tool("echo", {"n": 1})
    ids = [client.start_tool("echo", {"n": n}) for n in range(2, 60)]
    assert [text_of(client.wire.response(id)["result"]) for id in ids] == [f"{n} {n}" for n in range(2, 60)]


ASKS = """
answer(ask={"who": {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?",
       "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}}, id="q1", call=call)
reply = json.loads(next(calls))
assert (reply["id"], reply["call"]) == ("q1", call), reply
answer(result=json.dumps(reply["reply"]["who"]) + f" {count}", call=call)
"""


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_a_process_asks_while_it_works(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    resident(project, "asks", ASKS)
    client = speak(revision, capabilities={"elicitation": {}})
    id = client.start_tool("asks")
    client.answer(client.asked("elicitation/create"), {"action": "accept", "content": {"name": "Ada"}})
    text = text_of(client.wire.response(id)["result"])
    assert text == '{"status": "answered", "result": {"action": "accept", "content": {"name": "Ada"}}} 1'


def test_large_arguments_and_results_arrive_whole(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "echo", "answer(result=arguments['text'] * arguments['times'], call=call)")
    client = speak()
    text = "äbc\n" * 250_000
    assert text_of(client.call_tool("echo", {"text": text, "times": 1})) == text
    assert text_of(client.call_tool("echo", {"text": "x", "times": 9_000_000})) == "x" * 9_000_000


def test_sessions_have_processes_of_their_own(project: ProjectBuilder, serve: Serve) -> None:
    resident(project, "count", COUNT, stays="session")
    ignores = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    resident(project, "stubborn", "answer(result=str(os.getpid()), call=call)", before=ignores, stays="session")
    project.program("tools/stubborn", project.read("tools/stubborn") + "time.sleep(600)\n")  # after its last call
    server = serve(http_token="xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
    first, second = (server.session(token="xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx") for _ in range(2))
    of_first = [text_of(first.call_tool("count")).split() for _ in range(2)]
    of_second = text_of(second.call_tool("count")).split()
    assert [count for count, _ in of_first] == ["1", "2"]
    assert of_second[0] == "1"
    pids = [of_first[0][1], text_of(first.call_tool("stubborn"))]
    first.delete()
    eventually(lambda: not any(map(is_alive, pids)), within_secs=1)
    assert text_of(second.call_tool("count")) == f"2 {of_second[1]}"


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
def test_a_pipe_is_a_session(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    resident(project, "count", COUNT, stays="session")
    client = speak(revision)
    assert [text_of(client.call_tool("count")).split()[0] for _ in range(3)] == ["1", "2", "3"]


@pytest.mark.parametrize("end", ["eof", "kill", "terminate"])
def test_nothing_is_left_when_the_server_ends(project: ProjectBuilder, speak: Speak, end: str) -> None:
    before = "import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True).pid"
    resident(project, "tool", "answer(result=f'{os.getpid()} {child}', call=call)", before=before)
    client = speak()
    pids = text_of(client.call_tool("tool")).split()
    if end == "eof":
        client.wire.close_stdin()
    else:
        os.kill(client.wire.process.pid, signal.SIGKILL if end == "kill" else signal.SIGTERM)
    eventually(lambda: not any(map(is_alive, pids)))


def test_a_process_learns_of_its_end_before_it_is_stopped(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "tool", COUNT)
    path = project.root / "tools" / "tool"
    path.write_text(path.read_text() + "\nopen('closed', 'w').write('orderly')\n")
    client = speak()
    client.call_tool("tool")
    client.wire.close_stdin()
    assert eventually(lambda: (project.root / "closed").exists() and project.read("closed")) == "orderly"


@pytest.mark.parametrize("bound", ["resident_max_per_principal", "MOST_RESIDENTS"])
def test_the_number_of_processes_is_bounded(project: ProjectBuilder, speak: Speak, bound: str) -> None:
    for name in "ab":
        resident(project, name, COUNT, stays="session")
    client = speak(**{bound: 1})
    assert client.call_tool("a")["isError"] is False
    refused = client.call_tool("b")
    assert refused["isError"] is True
    assert text_of(refused).startswith("Too many processes ")


def test_the_log_names_the_process(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "count", COUNT)
    client = speak(stderr_level="info")
    pid = text_of(client.call_tool("count")).split()[1]
    eventually(lambda: "tools/call count ok" in client.wire.stderr)
    line = next(line for line in client.wire.stderr.splitlines() if "tools/call count ok" in line)
    assert line.partition(", waited ")[0].endswith(f", resident {pid}")  # on a busy machine it says how long it waited


STATES = [value for name, value in vars(State).items() if name.isupper()]


def test_the_life_of_a_process_is_a_table() -> None:
    assert {state for row in TRANSITIONS.values() for state in (*row, *row.values())} == set(STATES)
    assert not any(State.GONE in row for row in TRANSITIONS.values())
    assert TRANSITIONS["exit"].keys() | {State.GONE} == set(STATES)
    assert {event for event, row in TRANSITIONS.items() if State.BUSY in row.values()} == {"call"}
    assert not any(row.get(State.STOPPING, State.GONE) != State.GONE for row in TRANSITIONS.values())


SHELL = """#!/bin/bash
source "${MCP_SDK:?}/tool-sdk.sh"
count=0
while mcp_next_call; do
  count=$((count + 1))
  case $(mcp_args_get '.do // "count"') in
    count) mcp_answer "$count $$ $(mcp_args_get '.text // ""')" ;;
    json) mcp_emit_json '{"n": 1}' | mcp_answer ;;
    error) mcp_answer --error "no such row" ;;
    nothing) ;;
    args) mcp_answer "$(mcp_args_raw)" ;;
    meta) mcp_answer "$(mcp_meta_get '."x/y"') $MCP_TOOL_NAME" ;;
    progress) mcp_progress 50 half; mcp_answer ok ;;
    ask) mcp_answer "$(mcp_elicit_string Who?)" ;;
    wait) until mcp_is_cancelled; do sleep 0.01; done; mcp_answer ended ;;
    invalid) mcp_fail_invalid_args "no" ;;
  esac
done
echo closed > closed
"""


@pytest.fixture
def shell(project: ProjectBuilder, speak: Speak) -> Client:
    project.tool("loop", SHELL, stays="session")
    return speak(capabilities={"elicitation": {}})


def test_a_shell_loop_serves_calls(project: ProjectBuilder, shell: Client) -> None:
    text = 'a "b" \\ \\n ü\t\n$(x) end'
    count, pid, said = text_of(shell.call_tool("loop", {"text": text})).split(" ", 2)
    assert (count, said) == ("1", text)
    expected: list[tuple[dict[str, Any], str, bool]] = [
        ({"do": "json"}, '{"n":1}\n', False),
        ({"do": "error"}, "no such row", True),
        ({"do": "nothing"}, "loop gave no answer.", True),
        ({"do": "args", "deep": {"a": [1, {"b": 'x","call":1'}]}}, "", False),
        ({"do": "args", "large": "x" * 10_000}, "", False),
        ({"do": "progress"}, "ok", False),
        ({}, f"8 {pid} ", False),
    ]
    ids = [shell.start_tool("loop", arguments, meta={"progressToken": "t"}) for arguments, _, _ in expected]
    for id, (arguments, text, is_error) in zip(ids, expected, strict=True):
        result = shell.wire.response(id)["result"]
        assert result["isError"] is is_error
        if arguments.get("do") == "args":
            assert json.loads(text_of(result)) == arguments
        else:
            assert text_of(result) == text
    assert text_of(shell.call_tool("loop", {"do": "meta"}, meta={"x/y": "from the client"})) == "from the client loop"
    assert [each["params"]["progress"] for each in shell.wire.notices("notifications/progress")] == [50]
    assert "answered twice" not in shell.wire.stderr
    shell.wire.close_stdin()
    assert eventually(lambda: (project.root / "closed").exists())


def test_a_shell_loop_asks_is_cancelled_and_fails(shell: Client) -> None:
    id = shell.start_tool("loop", {"do": "ask"})
    shell.answer(shell.asked("elicitation/create"), {"action": "accept", "content": {"value": "Ada"}})
    assert "Ada" in text_of(shell.wire.response(id)["result"])
    pid = text_of(shell.call_tool("loop")).split()[1]
    id = shell.start_tool("loop", {"do": "wait"})
    shell.wire.settle()
    shell.wire.notify("notifications/cancelled", {"requestId": id})
    assert text_of(shell.call_tool("loop")).split()[1] == pid
    error = shell.error("tools/call", {"name": "loop", "arguments": {"do": "invalid"}})
    assert (error["code"], error["message"]) == (-32602, "no")


def test_a_large_object_arrives_as_it_was_written(project: ProjectBuilder, speak: Speak) -> None:
    """It has too many parts to be parsed; from a script that prints it, it would be a text."""
    body = "answer(result={'rows': [[n] for n in range(arguments['n'])]}, call=call)"
    resident(project, "rows", body)
    client = speak()
    for n in (50_000, 200_000):
        result = client.call_tool("rows", {"n": n})
        assert json.loads(text_of(result)) == {"rows": [[each] for each in range(n)]}
        assert ("structuredContent" in result) is (n == 50_000)


def test_a_long_line_that_cannot_be_read_costs_the_process(project: ProjectBuilder, speak: Speak) -> None:
    resident(project, "bad", "os.write(97, b'{\"result\":' + b'[' * 200_000 + b'\\n')", timeoutSecs=20)
    assert "answered with a long line that cannot be read" in text_of(speak().call_tool("bad"))


def test_a_call_that_waits_is_served_although_its_tool_changes(project: ProjectBuilder, speak: Speak) -> None:
    """The process that starts is let go with its description; the call gets another one, which does not stay."""
    starts = "open('starts', 'a').write('x')\nwhile not os.path.exists('go'): time.sleep(0.01)"
    resident(project, "count", COUNT, before=starts)
    client = speak()
    id = client.start_tool("count")
    eventually(lambda: (project.root / "starts").exists() and project.read("starts"))
    resident(project, "count", COUNT, before=starts, stays="session", description="another")
    eventually(lambda: client.tools()["count"].get("description") == "another")
    project.write("go", "")
    count, pid = text_of(client.wire.response(id)["result"]).split()
    assert count == "1"
    eventually(lambda: not is_alive(pid))


def test_stateless_callers_who_cannot_be_told_apart_share_nothing(project: ProjectBuilder, serve: Serve) -> None:
    """All have the same token, or none: each call has a process of its own, which ends with it."""
    resident(project, "count", COUNT, stays="session")
    resident(project, "shared", COUNT)
    for settings, options in [({"http_token": "x" * 40}, {"token": "x" * 40}), ({}, {})]:
        server = serve(**settings)
        client, other = server.stateless(**options), server.stateless(**options)
        served = [text_of(each.call_tool("count")).split() for each in (client, client, other)]
        assert [count for count, _ in served] == ["1", "1", "1"]
        assert len({pid for _, pid in served}) == 3
        eventually(lambda served=served: not any(is_alive(pid) for _, pid in served))  # type: ignore[misc]
        assert [text_of(each.call_tool("shared")).split()[0] for each in (client, other)] == ["1", "2"]


def test_links_to_one_file_share_the_process_that_they_name(project: ProjectBuilder, speak: Speak) -> None:
    body = "answer(result=f'{count} {message[\"tool\"]}', call=call)"
    resident(project, "up", body, process="counter")
    resident(project, "alone", body, process="other")
    for link, process in (("down", "counter"), ("torn", "other")):
        (project.root / "tools" / link).symlink_to("up")
        project.write(f"tools/{link}.meta.json", json.dumps({"stays": "server", "process": process}))
    client = speak()
    assert client.tools().keys() == {"up", "down"}  # the other process has two files
    assert [text_of(client.call_tool(name)) for name in ("up", "down", "up")] == ["1 up", "2 down", "3 up"]
    assert "the tools of the process other must be links to one file" in client.wire.stderr


WRITE = "def write(data):\n    while data: data = data[os.write(int(os.environ['MCP_ANSWERS_FD']), data):]\n"
# What a process writes before its answer, and what the client gets.
FLOODS = {
    "one-line": ("for _ in range(1600): write(b'x' * 65536)", "longer than 10485760 bytes."),
    "garbage": ("for _ in range(4): write(b'garbage\\n' * 8192)", "done"),
    "unknown": ('for _ in range(3): write(b\'{"result":1,"call":0}\\n\' * 3000)', "done"),
    "reports": ('for _ in range(3): write(b\'{"progress":{"progress":1},"call":%d}\\n\' % call * 1500)', "done"),
    "members": ("write(b'{\"x\":[' + b'[1],' * 2_000_000 + b'1]}\\n')", "a long line that cannot be read"),
    "depth": ("write(b'[' * 9_000_000 + b'\\n')", "a long line that cannot be read"),
    "result": ("write(b'{\"result\":[' + b'[1],' * 2_000_000 + b'1],\"call\":%d}\\n' % call); continue", "[[1],[1]"),
    "printed": ("os.write(1, b'x' * 50_000_000)", "done"),
}


@pytest.mark.alone
def test_no_process_holds_the_hub(project: ProjectBuilder) -> None:
    """Each floods the server in another way: with 100 MB in one line, with garbage, with what takes long to parse."""
    for name, (body, _) in FLOODS.items():
        resident(project, name, f"{body}\nanswer(result='done', call=call)", before=WRITE, timeoutSecs=60)
    resident(project, "calm", "answer(result='done', call=call)")
    turns = Reader()
    longest_ms = {}
    with Wire(project.root, env=environment(turns), is_fresh=True, pass_fds=[turns.fd]) as wire:
        client = Client(wire, "2025-11-25")
        client.call_tool("calm")  # what the first call imports is no flood
        for name, (_, said) in FLOODS.items():
            list(turns.fresh())
            text = text_of(client.call_tool(name))
            assert text.startswith(said) or said in text, name
            longest_ms[name] = max([note.cpu_ns for note in turns.fresh()], default=0) / 1e6
    turns.close()
    assert {name: ms for name, ms in longest_ms.items() if ms > 50} == {}
