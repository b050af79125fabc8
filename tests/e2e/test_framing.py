"""Lines in, lines out: what a client may put on the pipe and what comes back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import Start, Wire

PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":'
    b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
)
BOM = b"\xef\xbb\xbf"


def is_rubbish_notice(message: dict[str, Any]) -> bool:
    return "id" not in message and message.get("error", {}).get("code") == -32700


@pytest.mark.requirement("G-tolerant-input")
@pytest.mark.parametrize(
    "line",
    [
        PING + b"\r\n",
        b"\n\r\n  \n" + PING + b"\n",
        b" \t" + PING + b" \t\n",
        BOM + PING + b"\n",
        b"\n" + BOM + PING + b"\n",
    ],
    ids=["CRLF", "blank lines", "spaces around", "BOM", "BOM on a later line"],
)
def test_what_surrounds_a_message_does_not_matter(wire: Wire, line: bytes) -> None:
    wire.methods[7] = "ping"
    wire.send_bytes(line)

    assert wire.response(7)["result"] == {}
    assert len(wire.seen) == 1


@pytest.mark.requirement("G-tolerant-input")
@pytest.mark.parametrize("prefix", [BOM, b"\r\n", b" "], ids=["BOM", "blank line", "space"])
def test_a_greeting_may_be_surrounded_too(wire: Wire, prefix: bytes) -> None:
    wire.methods[0] = "initialize"
    wire.send_bytes(prefix + INITIALIZE + b"\r\n")

    assert wire.response(0)["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.requirement("G-parse-error")
@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}',
        b'{"jsonrpc":"2.0","id":"\xff\xfe","method":"ping"}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b"[" * 100_000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b"\x00\x01\x02",
    ],
    ids=["words", "cut off", "two documents", "bad UTF-8", "NaN", "open brackets", "deep objects", "control bytes"],
)
def test_a_line_that_is_not_json_is_refused_without_an_id_and_the_next_one_is_served(
    shared_speak: Speak, line: bytes
) -> None:
    wire = shared_speak().wire
    wire.send_bytes(line + b"\n")
    refusal = wire.receive(lambda message: "error" in message)

    assert refusal["error"]["code"] in (-32700, -32600)
    assert "id" not in refusal
    assert wire.request("ping")["result"] == {}


@pytest.mark.requirement("G-parse-error")
@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b'"\xff"', b"9" * 5000])
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"f","arguments":{"x":VALUE}}}',
        b'{"method":"tools/call","params":{"name":"f","_meta":{"x":VALUE}},"jsonrpc":"2.0","id":ID}',
        b'{"jsonrpc":"2.0","id":ID,"method":"ping","params":{"padding":"' + b"x" * 200_000 + b'","x":VALUE}}',
    ],
    ids=["id first", "id last", "several reads"],
)
def test_a_request_with_what_is_no_json_in_it_is_answered_with_its_id(
    shared_speak: Speak, line: bytes, number: bytes
) -> None:
    """The answer had no id, so the client waited until its own patience was at its end."""
    wire = shared_speak().wire
    request_id = f"{number.hex()[:20]}-{len(line)}-{line.index(b'ID')}"
    wire.send_bytes(line.replace(b"ID", json.dumps(request_id).encode()).replace(b"VALUE", number) + b"\n")

    error = wire.response(request_id)["error"]
    assert error["code"] == -32700
    assert "sys." not in error["data"]
    assert wire.request("ping")["result"] == {}


@pytest.mark.requirement("G-parse-error")
def test_each_request_of_a_batch_with_what_is_no_json_in_it_is_answered(speak: Speak) -> None:
    wire = speak("2025-03-26").wire
    wire.send_bytes(
        b'[{"jsonrpc":"2.0","id":71,"method":"ping"},{"jsonrpc":"2.0","id":72,"method":"ping","params":NaN}]\n'
    )

    assert [wire.response(request_id)["error"]["code"] for request_id in (71, 72)] == [-32700, -32700]


@pytest.mark.requirement("G-parse-error")
def test_a_running_request_is_not_answered_for_a_faulty_line_with_its_id(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("waits", "until [ -e go ]; do sleep 0.01; done; echo done")
    wire = speak().wire
    request_id = wire.start_request("tools/call", {"name": "waits"})
    wire.send_bytes(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":NaN}\n' % request_id)
    wire.receive(is_rubbish_notice)
    (project.root / "go").touch()

    assert "result" in wire.response(request_id)


@pytest.mark.requirement("G-parse-error")
def test_a_message_of_several_reads_is_served_after_a_line_over_the_limit(start: Start) -> None:
    wire = start(max_line_bytes=200_000).greeted()
    wire.send_bytes(b"x" * 300_000 + b"\n")
    wire.receive(is_rubbish_notice)

    assert wire.request("ping", {"padding": "x" * 150_000})["result"] == {}


@pytest.mark.requirement("G-parse-error")
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + b"x" * 70_000 + b'"}}\n',
        b'{"method":"ping","params":{"x":"' + b"x" * 70_000 + b'"},"jsonrpc":"2.0","id":9}\n',
        b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + b"x" * 3_000 + b'"}}\n',
        b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":' + b"[" * 200 + b"]" * 200 + b"}}\n",
    ],
    ids=["id first", "id last", "in one read", "deep"],
)
def test_who_sends_a_request_that_is_too_large_is_told(start: Start, line: bytes) -> None:
    """Its client waited for ever: a parse error says nothing about the request to which it belongs."""
    wire = start(max_line_bytes=2048).greeted()
    wire.methods[9] = "ping"
    wire.send_bytes(line)

    assert wire.receive(is_rubbish_notice)
    refusal = wire.response(9)["error"]
    assert refusal["code"] == -32600
    assert refusal["message"].startswith("The request is too large: ")


@pytest.mark.requirement("G-parse-error")
def test_the_length_of_a_line_counts_without_its_end(start: Start) -> None:
    wire = start(max_line_bytes=2048).greeted()
    long = b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"x":"' + b"x" * 1900 + b'"}}\n'
    longer = b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + b"x" * 70_000 + b'"}}\n'
    wire.send_bytes(long + longer + long)

    assert wire.response(8)["result"] == {}
    assert wire.receive(is_rubbish_notice)
    assert wire.response(8)["result"] == {}


@pytest.mark.requirement("G-tolerant-input")
def test_a_message_may_arrive_byte_by_byte(wire: Wire) -> None:
    wire.methods[7] = "ping"
    for byte in PING + b"\n":
        wire.send_bytes(bytes([byte]))

    assert wire.response(7)["result"] == {}


@pytest.mark.requirement("G-last-line")
@pytest.mark.parametrize("lines", [PING, INITIALIZE, INITIALIZE + b"\n" + PING], ids=["ping", "greeting", "both"])
def test_a_last_line_without_a_newline_counts(wire: Wire, lines: bytes) -> None:
    wire.send_bytes(lines)
    wire.close_stdin()

    assert "result" in wire.response(json.loads(lines.split(b"\n")[-1])["id"])
    assert wire.wait() == 0


@pytest.mark.requirement("P-027")
@pytest.mark.parametrize(
    "value",
    [5, "text", True, None, {}, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "params": {}}],
    ids=str,
)
def test_json_that_is_no_message_is_refused_without_an_id(shared_speak: Speak, value: Any) -> None:
    client = shared_speak().wire
    client.send(value)
    refusal = client.receive(lambda message: "error" in message)

    assert refusal["error"]["code"] == -32600
    assert "id" not in refusal


@pytest.mark.requirement("P-013")
@pytest.mark.parametrize(
    "value",
    [
        {"jsonrpc": "2.0", "id": 5},
        {"id": 5, "method": "ping"},
        {"jsonrpc": "1.0", "id": 5, "method": "ping"},
        {"jsonrpc": 2, "id": 5, "method": "ping"},
        {"jsonrpc": "2.0", "id": 5, "method": 7},
        {"jsonrpc": "2.0", "id": 5, "method": None},
    ],
    ids=str,
)
def test_a_malformed_request_is_refused_under_its_id(shared_speak: Speak, value: Any) -> None:
    client = shared_speak().wire
    client.send(value)

    assert client.response(5)["error"]["code"] == -32600


@pytest.mark.requirement("P-024")
@pytest.mark.parametrize("params", [5, "text", [], True])
def test_params_that_are_no_object_are_refused(shared_speak: Speak, params: Any) -> None:
    assert shared_speak().wire.error("ping", params)["code"] == -32602


@pytest.mark.requirement("P-024")
def test_null_params_count_as_absent(shared_speak: Speak) -> None:
    client = shared_speak().wire
    client.send({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": None})

    assert client.response(5)["result"] == {}


@pytest.mark.requirement("P-020", "P-021")
def test_only_complete_messages_stand_on_stdout_whatever_a_tool_prints(project: ProjectBuilder, start: Start) -> None:
    project.tool("noisy", r"printf 'one\ntwo\r\n\xe2\x80\xa8three\n\033[1m'; echo 'oops' >&2; echo raw >/dev/stderr")
    project.write("tools/broken.sh.meta.json", "{")
    project.write("tools/broken.sh", "")
    wire = start().greeted()
    wire.call_tool("noisy")
    wire.send_bytes(b"garbage\n")
    wire.settle()

    for line in wire.raw_lines:
        assert line.endswith(b"\n")
        assert b"\r" not in line
        assert len(line.decode("utf-8").splitlines()) == 1
        assert isinstance(json.loads(line), dict)


@pytest.mark.requirement("P-021")
def test_a_project_that_does_not_exist_is_reported_on_stderr_only(tmp_path: Path) -> None:
    with Wire(tmp_path / "nowhere") as wire:
        assert wire.wait() != 0
        wire.kill()

        assert "nowhere" in wire.stderr
        with pytest.raises(AssertionError, match="closed its output"):
            wire.receive(lambda message: True)


def test_what_is_said_on_a_stderr_that_is_a_file_stays_there(tmp_path: Path) -> None:
    """Others write to the same file, and where they go on is where we ended."""
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        for words in ("before", "after"):
            subprocess.run(["sh", "-c", f"echo {words} >&2"], stderr=stderr, check=True)
            command = [sys.executable, "-m", "mcpgreen", "serve", "--project-root", str(tmp_path / "nowhere")]
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, check=False)

    said = log.read_text(encoding="utf-8").splitlines()
    assert [line.partition(" ")[0] for line in said] == ["before", "mcpgreen:", "after", "mcpgreen:"]
