"""What the operator reads: calls, failures and frames, on stderr and in a file."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.wire import Json, Start, Wire, text_of

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
    wire = start(**settings).greeted()
    for name, arguments in calls:
        wire.request("tools/call", {"name": name, "arguments": arguments})
    wire.stop()
    return wire.stderr.splitlines()


def numberless(lines: list[str]) -> list[str]:
    """Without times, and without the time that a call waited for its turn on a busy machine."""
    return [re.sub(r"\d+ ms", "N ms", re.sub(r", waited \d+ ms", "", line)) for line in lines]


def test_a_call_that_fails_leaves_a_line_with_the_end_of_its_stderr(start: Start) -> None:
    (line,) = numberless(served(start, ("stats", {}), ("bad", {})))

    assert line == r"mcpgreen: warning: tools/call bad failed N ms exit 3; stderr ends: first\nand last"


def test_a_tool_that_says_it_failed_leaves_a_line_with_that_reason(start: Start) -> None:
    (line,) = numberless(served(start, ("unhappy", {})))

    reason = "the tool set isError in its result; stderr ends: careful"
    assert line == f"mcpgreen: warning: tools/call unhappy failed N ms exit 0: {reason}"


def test_refused_calls_leave_a_line_without_their_arguments(start: Start) -> None:
    lines = served(start, ("strict", {"n": SECRET}), ("nobody", {}), ("stats", {}), tool_allowlist="strict")

    assert lines[:2] == [
        "mcpgreen: warning: tools/call strict refused: Invalid arguments for tool 'strict': n must be integer",
        "mcpgreen: warning: tools/call nobody refused: Tool 'nobody' not found",
    ]
    assert lines[2].startswith("mcpgreen: warning: tools/call stats refused: ")
    assert SECRET not in "".join(lines)


def test_a_flood_of_refused_calls_does_not_fill_the_log(start: Start) -> None:
    wire = start().greeted()
    for number in range(3000):
        wire.start_request("tools/call", {"name": "nobody"}, id=10_000 + number)
    wire.receive(lambda message: message.get("id") == 12_999)
    wire.stop()
    lines = wire.stderr.splitlines()
    notes = [line for line in lines if "not logged" in line]

    assert notes
    assert notes[0] == "mcpgreen: warning: further requests of this kind (refused) are not logged during this second"
    assert len(lines) <= 21 * (len(notes) + 1)


def test_at_info_every_request_has_a_line_with_its_outcome(start: Start) -> None:
    wire = start(stderr_level="info").greeted()
    wire.result("tools/list")
    wire.call_tool("stats")
    wire.call_tool("bad")
    wire.result("ping")
    wire.stop()

    first, *others = [line for line in numberless(wire.stderr.splitlines()) if " changed: " not in line]
    # On a busy machine, it comes too late to be answered before all else, and is timed as any other request.
    assert first.removesuffix(" N ms") == "mcpgreen: info: initialize ok"
    assert others == [
        "mcpgreen: info: tools/list ok N ms",
        "mcpgreen: info: tools/call stats ok N ms exit 0",
        r"mcpgreen: warning: tools/call bad failed N ms exit 3; stderr ends: first\nand last",
        "mcpgreen: info: ping ok N ms",
    ]


def frames_of(lines: list[str]) -> list[tuple[str, int, str, Json]]:
    """Direction, size, process and content of the frames in a log of text."""
    found = [re.fullmatch(r"mcpgreen: debug: (-->|<--) (\d+) bytes(?:, process (\d+))?: (.*)", line) for line in lines]
    return [(each[1], int(each[2]), each[3] or "", json.loads(each[4])) for each in found if each]


def test_at_debug_every_frame_is_shown_with_its_size_and_process(project: ProjectBuilder, start: Start) -> None:
    project.tool("pid", '. "$MCP_SDK/tool-sdk.sh"; mcp_progress 50 half; echo $$')
    wire = start(stderr_level="debug").greeted()
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
    wire = start(stderr_level="debug", log_format=log_format, log_file="log").greeted()
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


def test_what_a_client_sends_cannot_forge_a_line(start: Start) -> None:
    wire = start(stderr_level="debug").greeted()
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
    assert (failed["reason"], failed["stderr"]) == ("Tool failed: first\nand last", "first\nand last")
    assert isinstance(failed["ms"], int)
    came = [json.loads(event["frame"]) for event in events if event.get("direction") == "in"]
    assert came[0]["method"] == "initialize"


def test_a_log_file_that_cannot_be_one_does_not_keep_the_server_from_serving(
    project: ProjectBuilder, start: Start
) -> None:
    (project.root / "my.log").mkdir()
    wire = start(log_file="my.log").greeted()
    assert text_of(wire.call_tool("stats")) == "fine\n"
    wire.stop()

    (line,) = wire.stderr.splitlines()
    assert line.startswith(f"mcpgreen: warning: log_file: {project.root}/my.log cannot be written: ")


def test_a_full_disk_costs_lines_and_nothing_else(project: ProjectBuilder, tmp_path: Path) -> None:
    """A limit for files stands in for the disk: a write fails in the same way."""
    path = tmp_path / "my.log"
    env = {"MCPGREEN_LOG_FILE": str(path), "MCPGREEN_STDERR_LEVEL": "info"}
    limited = ["bash", "-c", 'ulimit -f 4; exec "$0" -m mcpgreen serve "$@"', sys.executable]
    with Wire(project.root, env=env, command=limited).greeted() as wire:
        for _ in range(300):
            wire.result("ping")
        assert text_of(wire.call_tool("stats")) == "fine\n"
        wire.stop()

        told = [line for line in wire.stderr.splitlines() if "log_file" in line]
    assert len(told) == 1
    assert path.stat().st_size <= 4096


def test_an_unread_stderr_does_not_hold_up_calls(project: ProjectBuilder) -> None:
    read_end, write_end = os.pipe()
    shell = ["bash", "-c", f'exec "$0" -m mcpgreen serve "$@" 2>/proc/{os.getpid()}/fd/{write_end}', sys.executable]
    try:
        with Wire(project.root, env={"MCPGREEN_STDERR_LEVEL": "debug"}, command=shell).greeted() as wire:
            for _ in range(500):
                wire.result("tools/list")
            assert text_of(wire.call_tool("stats")) == "fine\n"
    finally:
        os.close(read_end)
        os.close(write_end)
