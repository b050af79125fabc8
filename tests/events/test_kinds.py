"""What is told of each kind of call."""

from __future__ import annotations

import json
import sys

import pytest

from mcpgreen.events.kinds import KINDS
from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.questions import ALL, ASK, FORM, Talk, accept, form
from tests.support.viewer import Json, Viewer
from tests.support.waiting import eventually
from tests.support.wire import MODERN, modern_meta, text_of

NAME = form("Who are you?", name={"type": "string"})
WORKS = """import resource, time
x = b"x" * 150_000_000
end = time.process_time() + 0.5
while time.process_time() < end: pass
used = resource.getrusage(resource.RUSAGE_SELF)
print([(used.ru_utime + used.ru_stime) * 1000, used.ru_maxrss])
"""


def required_fields(kind: str) -> set[str]:
    return {name for name in KINDS[kind].fields if not name.endswith("?")}


def require_as_in_the_table(events: list[Json]) -> None:
    """Each event has the fields of its kind, and no others."""
    for event in events:
        own = event.keys() - {"n", "at", "kind", "call", "link"}
        known = {name.rstrip("?") for name in KINDS[event["kind"]].fields}
        assert own <= known, event
        assert required_fields(event["kind"]) <= own | {"message", "tail", "client"}, event


@pytest.fixture
def client(project: ProjectBuilder, speak: Speak) -> Client:
    project.tool("plain", 'echo "seven"; echo "to stderr" >&2')
    project.tool("fails", "echo oops >&2; exit 3")
    project.tool("late", "sleep 60", timeoutSecs=0.3)
    project.tool("stuck", "echo begun >&2; sleep 60")
    project.tool("waits", "sleep 0.3", maxConcurrent=1)
    project.forked_tool("forked", "print('forked')")
    project.python_tool("asker", f"{ASK}\nprint(json.dumps(ask({{'who': {NAME!r}}})), end='')")
    project.tool("works", f"#!{sys.executable} -S\n{WORKS}", warm=False)
    staying = (
        f"#!{sys.executable}\nimport mcp_tool\n\n@mcp_tool.tool(stays='server')\ndef stays() -> str:\n    return 's'\n"
    )
    project.tool("stays.py", f"#!{sys.executable}\n{staying}")
    project.tool("job", "echo done", task="required")
    return speak("2025-11-25", capabilities=FORM)


@pytest.fixture
def viewer(client: Client) -> Viewer:
    client.tools()
    return Viewer(client.wire.pid)


def test_what_is_told_of_calls_that_end_in_different_ways(client: Client, viewer: Viewer) -> None:
    client.call_tool("plain")
    client.call_tool("fails")
    client.call_tool("late")
    client.error("tools/call", {"name": "missing"})
    stuck = client.start_tool("stuck")
    viewer.get("output", stream="stderr", tail="begun\n")  # while it runs
    client.wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": stuck}})
    first, second = client.start_tool("waits"), client.start_tool("waits")
    for each in (first, second):
        client.wire.response(each)

    ended = viewer.get("ended", name="plain")
    call = ended["call"]
    assert viewer.kinds_of(call) == ["queued", "started", "exited", "output", "output", "ended", "frame"]
    assert viewer.get("started", call=call).items() >= {"way": "fresh", "cwd": str(client.wire.root)}.items()
    assert ["MCP_TOOL_NAME", "tool"] in viewer.get("started", call=call)["variables"]
    assert ["MCP_TOOL_ARGS_JSON", "call"] in viewer.get("started", call=call)["variables"]
    assert viewer.get("output", call=call, stream="stdout")["tail"] == "seven\n"
    assert viewer.get("ended", name="fails").items() >= {"outcome": "failed", "reason": "Tool failed: oops"}.items()
    assert viewer.get("exited", call=viewer.get("ended", name="fails")["call"])["exit"] == 3
    assert viewer.get("ended", name="late").items() >= {"outcome": "timed out", "limit": "0.3 s"}.items()
    assert viewer.get("ended", name="missing")["outcome"] == "refused"
    cancelled = viewer.get("ended", name="stuck")
    assert cancelled.items() >= {"outcome": "cancelled", "by": "client"}.items()
    assert viewer.get("exited", call=cancelled["call"])["signal"] == 15
    runs, waits = eventually(lambda: len(found := viewer.of("ended", name="waits")) == 2 and found)
    assert waits["queue_ms"] > runs["run_ms"] / 2
    require_as_in_the_table(viewer.events)


def test_the_time_of_a_call_is_that_of_its_wait_its_run_and_its_answer(
    project: ProjectBuilder, client: Client, viewer: Viewer
) -> None:
    client.start_tool("waits")
    waiting = client.start_tool("waits")
    eventually(lambda: len(viewer.of("queued", name="waits")) == 2)
    client.wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting}})
    cancelled = viewer.get("ended", name="waits", outcome="cancelled")
    project.write("server.d/policy.sh", "mcp_tools_policy_check() { sleep 0.3; return 1; }\n")
    client.error("tools/call", {"name": "plain"})
    refused = viewer.get("ended", name="plain", outcome="refused")

    assert cancelled["queue_ms"] > 0 == cancelled["run_ms"] == cancelled["write_ms"]
    assert refused["run_ms"] > 300 > refused["write_ms"]


def test_what_is_told_of_forked_resident_and_asking_calls(client: Client, viewer: Viewer) -> None:

    def is_forked() -> bool:  # as soon as there is a process to fork from
        client.call_tool("forked")
        return "forked" in [each["way"] for each in viewer.of("started")]

    client.call_tool("stays")
    id = client.start_tool("asker")
    client.answer(client.asked("elicitation/create"), accept(name="Zoë"))
    client.wire.response(id)

    assert eventually(is_forked)
    stays = viewer.get("ended", name="stays")["call"]
    assert viewer.get("started", call=stays)["way"] == "resident"
    assert "exit" not in viewer.get("exited", call=stays)
    asker = viewer.get("ended", name="asker")["call"]
    assert viewer.get("asked", call=asker).items() >= {"key": "who", "message": "Who are you?"}.items()
    assert viewer.get("answered", call=asker)["action"] == "accept"
    require_as_in_the_table(viewer.events)


def test_a_parked_call_its_retry_and_a_task_are_joined(project: ProjectBuilder, client: Client, viewer: Viewer) -> None:
    stateless = Client(client.wire, MODERN, capabilities=ALL)
    talk = Talk(stateless, name="asker")
    talk.begin()
    talk.answer(accept(name="Zoë"))
    with_tasks = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    params = {"name": "job", "arguments": {}, "_meta": modern_meta(capabilities=with_tasks)}
    handle = client.wire.result("tools/call", params)

    asks, later = viewer.get("ended", name="asker", outcome="asks"), viewer.get("ended", name="asker", outcome="ok")
    assert later["interaction"] == asks["call"] != later["call"]
    assert viewer.get("queued", call=later["call"])["interaction"] == asks["call"]
    assert viewer.get("exited", call=later["call"])
    for outcome in ("task", "ok"):
        assert viewer.get("ended", name="job", outcome=outcome)["task"] == handle["taskId"]
    assert viewer.get("task", task=handle["taskId"], status="completed")["tool"] == "job"
    require_as_in_the_table(viewer.events)


def test_figures_agree_with_what_the_system_says(client: Client, viewer: Viewer) -> None:
    cpu_ms, peak_kb = json.loads(text_of(client.call_tool("works")))

    exited = viewer.get("exited", call=viewer.get("ended", name="works")["call"])
    assert exited["user_ms"] + exited["system_ms"] == pytest.approx(cpu_ms, rel=0.1)
    assert exited["peak_kb"] == pytest.approx(peak_kb, rel=0.1)


def test_changes_of_the_project_are_told_with_names_and_reasons(
    project: ProjectBuilder, client: Client, viewer: Viewer
) -> None:
    project.tool("another", "echo")
    client.tools()
    project.tool("broken", "echo").with_name("broken.meta.json").write_text("{")
    client.tools()

    assert viewer.get("changed", source="tools")["added"] == ["another"]
    assert "not valid JSON" in viewer.get("left out", item="tools/broken.meta.json")["reason"]


SECRET = "hunter2-very-secret"


def test_no_secret_reaches_a_viewer(project: ProjectBuilder, speak: Speak) -> None:
    schema = {"type": "object", "properties": {"phrase": {"type": "string", "format": "password"}}}
    told = {"type": "object", "properties": {"key": {"type": "string"}}}
    project.tool(
        "tells",
        f'echo "token={SECRET}-1" >&2; echo "$MY_API_KEY" >&2; echo "$MCP_TOOL_ARGS_JSON" >&2; printf "%5000s" >&2;'
        f'echo "$MCP_TOOL_ARGS_JSON"; exit 1',
        inputSchema=schema,
        outputSchema=told,
        env=["MY_API_KEY"],
    )
    client = speak("2025-11-25", env={"MY_API_KEY": f"{SECRET}-2"})
    client.tools()
    viewer = Viewer(client.wire.pid)
    arguments = {"phrase": f"{SECRET}-3", "password": f"{SECRET}-4", "headers": {"Authorization": f"Bearer {SECRET}-5"}}
    client.call_tool("tells", arguments)
    client.wire.request("tools/call", {"name": "tells", "arguments": arguments, "_meta": {"token": f"{SECRET}-6"}})
    client.error("tools/call", {"name": f"password={SECRET}-7"})

    viewer.get("ended", outcome="refused")
    later = Viewer(client.wire.pid)  # gets what is remembered
    later.get("ended", outcome="refused")
    for each in (viewer, later):
        assert "hunter2" not in json.dumps(each.events)
        assert each.get("ended", name="tells")
    assert text_of(client.call_tool("tells", arguments))
