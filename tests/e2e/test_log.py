"""What the operator reads: calls, failures and frames, on stderr and in a file."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Wire, text_of

Json = dict[str, Any]
Start = Callable[..., Wire]
SECRET = "hunter2-and-more"


@pytest.fixture(autouse=True)
def _tools(project: ProjectBuilder) -> None:
    project.tool("stats", "echo fine")
    project.tool("bad", "echo first >&2; echo 'and last' >&2; exit 3")
    project.tool("unhappy", """echo careful >&2; echo '{"content":[{"type":"text","text":"no"}],"isError":true}'""")
    project.tool("slow", "echo so far >&2; sleep 60", timeoutSecs=1)
    project.tool("strict", "true", inputSchema={"type": "object", "properties": {"n": {"type": "integer"}}})
    project.tool("echo", 'printf %s "$MCP_TOOL_ARGS_JSON"')


def served(start: Start, *calls: tuple[str, Json], **settings: Any) -> list[str]:
    """What stderr has after these calls, without the numbers that differ from time to time."""
    wire = start(**settings)
    wire.handshake()
    for name, arguments in calls:
        wire.request("tools/call", {"name": name, "arguments": arguments})
    wire.stop()
    return wire.stderr.splitlines()


def numberless(lines: list[str]) -> list[str]:
    return [re.sub(r", waited \d+ ms", "", re.sub(r"\d+ ms", "N ms", line)) for line in lines]


def test_a_call_that_fails_leaves_a_line_with_the_end_of_its_stderr(start: Start) -> None:
    (line,) = numberless(served(start, ("stats", {}), ("bad", {})))

    assert line == r"mcpgreen: warning: tools/call bad failed N ms exit 3; stderr ends: first\nand last"


def test_of_much_stderr_the_end_is_shown(project: ProjectBuilder, start: Start) -> None:
    project.tool("loud", "seq 10000 >&2; exit 1")
    (line,) = served(start, ("loud", {}))

    assert line.endswith(r"\n9999\n10000")
    assert len(line) < 2500


def test_a_tool_that_calls_its_result_an_error_leaves_a_line(start: Start) -> None:
    (line,) = numberless(served(start, ("unhappy", {})))

    expected = "tools/call unhappy failed N ms exit 0: The tool says so itself.; stderr ends: careful"
    assert line == f"mcpgreen: warning: {expected}"


def test_a_call_that_times_out_leaves_a_line(start: Start) -> None:
    (line,) = numberless(served(start, ("slow", {})))

    expected = "tools/call slow timed out N ms exit 143: Tool timed out after 1s; stderr ends: so far"
    assert line == f"mcpgreen: warning: {expected}"


def test_refused_calls_leave_a_line_without_their_arguments(start: Start) -> None:
    lines = served(start, ("strict", {"n": SECRET}), ("nobody", {}), ("stats", {}), tool_allowlist="strict")

    assert lines[:2] == [
        "mcpgreen: warning: tools/call strict refused: Invalid arguments for tool 'strict': n must be integer",
        "mcpgreen: warning: tools/call nobody refused: Tool 'nobody' not found",
    ]
    assert lines[2].startswith("mcpgreen: warning: tools/call stats refused: ")
    assert SECRET not in "".join(lines)


def test_output_against_its_schema_leaves_a_line_without_the_output(project: ProjectBuilder, start: Start) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    project.tool("odd", f"""echo '{{"n": "{SECRET}"}}'""", outputSchema=schema)
    (line,) = numberless(served(start, ("odd", {})))

    expected = "tools/call odd failed N ms exit 0: Tool output does not satisfy outputSchema: n must be integer"
    assert line == f"mcpgreen: warning: {expected}"


def test_requests_that_make_no_sense_leave_a_line(start: Start) -> None:
    wire = start()
    wire.error("tools/list")
    wire.handshake()
    wire.error("no/such\nmethod")
    wire.send({"jsonrpc": "2.0", "id": 77, "method": "ping", "params": 5})
    wire.receive(lambda message: message.get("id") == 77)
    wire.stop()

    assert wire.stderr.splitlines() == [
        "mcpgreen: warning: tools/list refused: Server not initialized",
        r"mcpgreen: warning: no/such\nmethod refused: Unknown method: no/such\nmethod",
        "mcpgreen: warning: a request refused: params must be an object.",
    ]


def test_a_flood_of_refused_calls_does_not_fill_the_log(start: Start) -> None:
    wire = start()
    wire.handshake()
    for number in range(3000):
        wire.start_request("tools/call", {"name": "nobody"}, id=10_000 + number)
    wire.receive(lambda message: message.get("id") == 12_999)
    wire.stop()
    lines = wire.stderr.splitlines()
    notes = [line for line in lines if "not mentioned" in line]

    assert notes
    assert notes[0] == "mcpgreen: warning: more calls of this kind (refused) are not mentioned within this second"
    assert len(lines) <= 21 * (len(notes) + 1)


def test_at_info_every_request_has_a_line_with_its_outcome(start: Start) -> None:
    wire = start(stderr_level="info")
    wire.handshake()
    wire.result("tools/list")
    wire.call_tool("stats")
    wire.call_tool("bad")
    wire.result("ping")
    wire.stop()

    assert [line for line in numberless(wire.stderr.splitlines()) if " changed: " not in line] == [
        "mcpgreen: info: initialize ok",
        "mcpgreen: info: tools/list ok N ms",
        "mcpgreen: info: tools/call stats ok N ms exit 0",
        r"mcpgreen: warning: tools/call bad failed N ms exit 3; stderr ends: first\nand last",
        "mcpgreen: info: ping ok",
    ]


def test_resources_prompts_and_completions_are_named(project: ProjectBuilder, start: Start) -> None:
    project.resource("a.txt", "text")
    project.prompt("hail.md", "Hail {{who}}", arguments=[{"name": "who"}])
    wire = start(stderr_level="info")
    wire.handshake()
    (uri,) = [each["uri"] for each in wire.result("resources/list")["resources"]]
    wire.result("resources/read", {"uri": uri})
    wire.result("prompts/get", {"name": "hail", "arguments": {"who": "you"}})
    wire.request(
        "completion/complete", {"ref": {"type": "ref/prompt", "name": "hail"}, "argument": {"name": "who", "value": ""}}
    )
    wire.stop()
    lines = numberless(wire.stderr.splitlines())

    assert f"mcpgreen: info: resources/read {uri} ok N ms" in lines
    assert "mcpgreen: info: prompts/get hail ok N ms" in lines
    assert "mcpgreen: info: completion/complete hail ok N ms" in lines


def test_a_cancelled_call_has_a_line_at_info(project: ProjectBuilder, start: Start) -> None:
    project.tool("hang", "touch begun; sleep 60")
    wire = start(stderr_level="info")
    wire.handshake()
    id = wire.start_request("tools/call", {"name": "hang"})
    eventually(lambda: (project.root / "begun").exists())
    wire.notify("notifications/cancelled", {"requestId": id})
    eventually(lambda: "tools/call hang cancelled" in wire.stderr)


def test_waiting_for_a_place_is_told_apart_from_running(project: ProjectBuilder, start: Start) -> None:
    project.tool("nap", "sleep 0.3")
    wire = start(stderr_level="info", max_concurrent_requests=1)
    wire.handshake()
    ids = [wire.start_request("tools/call", {"name": "nap"}) for _ in range(2)]
    for id in ids:
        wire.receive(lambda message, id=id: message.get("id") == id)
    wire.stop()
    last = [line for line in wire.stderr.splitlines() if " nap ok " in line][-1]

    assert re.fullmatch(r"mcpgreen: info: tools/call nap ok \d+ ms exit 0, waited \d{3,} ms", last)


def frames_of(lines: list[str]) -> list[tuple[str, int, str, Json]]:
    """Direction, size, process and content of the frames in a log of text."""
    found = [re.fullmatch(r"mcpgreen: debug: (-->|<--) (\d+) bytes(?:, process (\d+))?: (.*)", line) for line in lines]
    return [(each[1], int(each[2]), each[3] or "", json.loads(each[4])) for each in found if each]


def test_at_debug_every_frame_is_shown_with_its_size_and_process(project: ProjectBuilder, start: Start) -> None:
    project.tool("pid", '. "$MCP_SDK/tool-sdk.sh"; mcp_progress 50 half; echo $$')
    wire = start(stderr_level="debug")
    wire.handshake()
    wire.result("tools/list")
    pid = text_of(wire.result("tools/call", {"name": "pid", "_meta": {"progressToken": "p"}})).strip()
    wire.stop()
    frames = frames_of(wire.stderr.splitlines())
    came = [(size, frame["method"]) for way, size, _, frame in frames if way == "-->"]
    gone = [
        (size, process, frame.get("method", frame.get("id"))) for way, size, process, frame in frames if way == "<--"
    ]

    assert [method for _, method in came] == ["initialize", "notifications/initialized", "tools/list", "tools/call"]
    assert [size for size, *_ in gone] == [len(line) - 1 for line in wire.raw_lines]
    assert [who for _, *who in gone] == [["", 1], ["", 2], [pid, "notifications/progress"], [pid, 3]]
    assert [frame for way, *_, frame in frames if way == "<--"] == [json.loads(line) for line in wire.raw_lines]


def test_arguments_of_a_call_that_comes_before_the_tools_are_known_are_shown_later(start: Start) -> None:
    lines = served(start, ("echo", {"who": "you", "token": SECRET}), stderr_level="debug")

    assert SECRET not in "\n".join(lines)
    assert any('"who":"you"' in line and "had" in line for line in lines)


PLANTED: list[tuple[Json, Json]] = [
    ({"apiKey": SECRET}, {}),
    ({"deep": [{"list": [{"client_secret": SECRET}]}]}, {}),
    ({"note": SECRET}, {"properties": {"note": {"type": "string", "format": "password"}}}),
    ({"note": SECRET}, {"properties": {"note": {"type": "string", "writeOnly": True}}}),
    ({"many": [{"note": SECRET}]}, {"properties": {"many": {"items": {"properties": {"note": {"writeOnly": True}}}}}}),
    ({"notes": [SECRET, SECRET + "x"]}, {"properties": {"notes": {"items": {"format": "password"}}}}),
    ({"headers": [f"Authorization: Bearer {SECRET}"]}, {}),
    ({"headers": [{"name": "X-Api-Key", "value": SECRET}]}, {}),
]


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize(("arguments", "schema"), PLANTED, ids=lambda value: "-".join(value))
def test_secrets_are_shown_neither_as_arguments_nor_as_results(
    project: ProjectBuilder, start: Start, arguments: Json, schema: Json, log_format: str
) -> None:
    project.tool("echo", 'printf %s "$MCP_TOOL_ARGS_JSON"', inputSchema={"type": "object", **schema})
    project.tool("drop", 'printf %s "$MCP_TOOL_ARGS_JSON" >&2; exit 1', inputSchema={"type": "object", **schema})
    wire = start(stderr_level="debug", log_format=log_format, log_file="log")
    wire.handshake()
    wire.result("tools/list")
    assert SECRET in text_of(wire.call_tool("echo", arguments))
    wire.call_tool("drop", arguments)
    wire.stop()

    assert SECRET not in wire.stderr
    assert SECRET not in project.read("log")
    assert "redacted" in project.read("log")


def test_secrets_of_a_result_are_hidden_by_its_schema(project: ProjectBuilder, start: Start) -> None:
    schema = {"type": "object", "properties": {"note": {"type": "string", "writeOnly": True}, "n": {"type": "integer"}}}
    project.tool("tell", f"""echo '{{"note": "{SECRET}", "n": 12345}}'""", outputSchema=schema)
    lines = served(start, ("tell", {}), stderr_level="debug")

    assert SECRET not in "\n".join(lines)
    assert "12345" in "\n".join(lines)


def test_arguments_and_results_are_not_shown_above_debug(project: ProjectBuilder, start: Start) -> None:
    project.tool("talk", "echo spoken-word; echo heard-word >&2")
    lines = served(start, ("talk", {"said": "given-word"}), stderr_level="info")

    assert not any("-word" in line for line in lines)


def test_long_frames_are_cut_with_their_size(project: ProjectBuilder, start: Start) -> None:
    project.tool("large", "head -c 600000 /dev/zero | tr '\\0' x")
    lines = served(start, ("large", {"text": "y" * 50_000}), stderr_level="debug")

    assert max(map(len, lines)) < 6000
    assert any("(50000 bytes)" in line for line in lines)
    assert any(re.search(r"<-- 600\d+ bytes, process \d+: \.\.\. \(600\d+ bytes\)", line) for line in lines)


def test_what_a_client_sends_cannot_forge_a_line(start: Start) -> None:
    wire = start(stderr_level="debug")
    wire.handshake()
    wire.error("tools/call", {"name": "x\nmcpgreen: error: forged\x1b[2J" + "y" * 5000})
    wire.stop()

    assert not any(line.startswith("mcpgreen: error") for line in wire.stderr.splitlines())
    assert "\x1b" not in wire.stderr
    assert "(cut)" in wire.stderr


def test_lines_of_json_have_the_parts_of_a_call_apart(start: Start) -> None:
    lines = served(start, ("stats", {}), ("bad", {}), stderr_level="debug", log_format="json")
    events = [json.loads(line) for line in lines]
    ok, failed = (event for event in events if event.get("method") == "tools/call")

    assert all({"time", "level", "pid", "message"} <= event.keys() for event in events)
    assert (ok["level"], ok["name"], ok["outcome"], ok["exit"]) == ("info", "stats", "ok", 0)
    assert (failed["level"], failed["name"], failed["outcome"], failed["exit"]) == ("warning", "bad", "failed", 3)
    assert (failed["reason"], failed["stderr"]) == ("Tool failed: first", "first\nand last")
    assert isinstance(failed["ms"], int)
    came = [json.loads(event["frame"]) for event in events if event.get("direction") == "in"]
    assert came[0]["method"] == "initialize"


def test_an_id_of_many_digits_is_no_trouble_for_lines_of_json(start: Start) -> None:
    wire = start(stderr_level="info", log_format="json")
    wire.handshake()
    wire.start_request("tools/call", {"name": "stats"}, id=10**40)
    wire.receive(lambda message: message.get("id") == 10**40)
    wire.stop()

    assert any(json.loads(line).get("id") == 10**40 for line in wire.stderr.splitlines())


def test_a_log_file_has_the_same_lines_with_times(project: ProjectBuilder, start: Start) -> None:
    lines = served(start, ("stats", {}), ("bad", {}), stderr_level="info", log_file="my.log")
    path = project.root / "my.log"
    dated = [
        re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z mcpgreen\[\d+\]:", "mcpgreen:", line)
        for line in path.read_text().splitlines()
    ]

    assert dated == lines
    assert any("stats ok" in line for line in lines)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_file_can_be_watched_while_the_server_runs(project: ProjectBuilder, start: Start) -> None:
    wire = start(stderr_level="info", log_file="my.log")
    wire.handshake()
    wire.call_tool("stats")

    eventually(lambda: "tools/call stats ok" in project.read("my.log"))


def test_a_log_file_stays_within_its_bounds(project: ProjectBuilder, start: Start) -> None:
    (project.root / "logs").mkdir()
    wire = start(stderr_level="debug", log_file="logs/my.log", log_file_max_bytes=4096, log_file_keep=2)
    wire.handshake()
    for _ in range(100):
        wire.result("tools/list")
    wire.stop()
    files = sorted((project.root / "logs").iterdir())

    assert [path.name for path in files] == ["my.log", "my.log.1", "my.log.2"]
    assert all(path.stat().st_size <= 4096 + 6000 for path in files)


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_a_place_that_is_no_file_keeps_nobody_from_serving(project: ProjectBuilder, start: Start, kind: str) -> None:
    path, other = project.root / "my.log", project.root / "other"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(other)
    else:
        path.mkdir()
    wire = start(log_file="my.log")
    wire.handshake()
    assert text_of(wire.call_tool("stats")) == "fine\n"
    wire.stop()

    (line,) = wire.stderr.splitlines()
    assert line.startswith(f"mcpgreen: warning: log_file: {path} cannot be written: ")
    assert not other.exists()


def test_a_full_disk_costs_lines_and_nothing_else(project: ProjectBuilder, tmp_path: Path) -> None:
    """A limit for files stands in for the disk: a write fails in the same way."""
    path = tmp_path / "my.log"
    env = {"MCPGREEN_LOG_FILE": str(path), "MCPGREEN_STDERR_LEVEL": "info"}
    limited = ["bash", "-c", 'ulimit -f 4; exec "$0" -m mcpgreen serve "$@"', sys.executable]
    with Wire(project.root, env=env, command=limited) as wire:
        wire.handshake()
        for _ in range(300):
            wire.result("ping")
        assert text_of(wire.call_tool("stats")) == "fine\n"
        wire.stop()

        told = [line for line in wire.stderr.splitlines() if "log_file" in line]
    assert len(told) == 1
    assert path.stat().st_size <= 4096


def test_concurrent_calls_have_a_line_each(project: ProjectBuilder, start: Start) -> None:
    project.tool("each", 'echo "$MCP_TOOL_ARGS_JSON" >&2; exit 1')
    wire = start(stderr_level="info", log_file="my.log", log_format="json")
    wire.handshake()
    ids = [wire.start_request("tools/call", {"name": "each", "arguments": {"n": n}}) for n in range(40)]
    for id in ids:
        wire.receive(lambda message, id=id: message.get("id") == id)
    wire.stop()
    events = [json.loads(line) for line in project.read("my.log").splitlines()]
    failed = [event for event in events if event.get("outcome") == "failed"]

    assert sorted(event["id"] for event in failed) == sorted(ids)
    assert len({event["process"] for event in failed}) == 40
    assert sorted(json.loads(event["stderr"])["n"] for event in failed) == list(range(40))


def test_a_stderr_that_nobody_reads_holds_up_nobody(project: ProjectBuilder) -> None:
    read_end, write_end = os.pipe()
    shell = ["bash", "-c", f'exec "$0" -m mcpgreen serve "$@" 2>/proc/{os.getpid()}/fd/{write_end}', sys.executable]
    try:
        with Wire(project.root, env={"MCPGREEN_STDERR_LEVEL": "debug"}, command=shell) as wire:
            wire.handshake()
            for _ in range(500):
                wire.result("tools/list")
            assert text_of(wire.call_tool("stats")) == "fine\n"
    finally:
        os.close(read_end)
        os.close(write_end)
