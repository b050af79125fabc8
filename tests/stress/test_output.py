"""Whatever a script prints arrives whole: 20 kinds of output, one or many at once, and each way to start a script.

`make test` runs a sample of it; with 20 rounds or more (MCPGREEN_STRESS_ROUNDS), the whole table is run 20 times.
"""

from __future__ import annotations

import base64
import json
import random
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from tests.stress.support import ROUNDS
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Start, Wire, text_of

TABLE_ROUNDS = 20
AT_ONCE = (1, 8, 16)
KIB, MIB = 1 << 10, 1 << 20
chance = random.Random(23)

# Half of stdout, then stderr, then the rest of stdout.
PYTHON = """import json, os, sys
kind = json.loads(os.environ["MCP_TOOL_ARGS_JSON"])["kind"]
with open("kinds/" + kind, "rb") as file:
    printed = file.read()
if kind.startswith("lines"):
    for line in printed.decode().splitlines():
        print(line)
else:
    sys.stdout.buffer.write(printed[:len(printed) // 2])
    if os.path.exists("kinds/" + kind + ".err"):
        with open("kinds/" + kind + ".err") as file:
            sys.stderr.write(file.read())
    sys.stdout.buffer.write(printed[len(printed) // 2:])
"""
SHELL = """#!/bin/sh
kind=${MCP_TOOL_ARGS_JSON#*:\\"}
kind=kinds/${kind%%\\"*}
size=$(wc -c <"$kind")
head -c $((size / 2)) "$kind"
[ -e "$kind.err" ] && cat "$kind.err" >&2
tail -c +$((size / 2 + 1)) "$kind"
"""


class Kind(NamedTuple):
    printed: bytes
    stderr: str = ""

    def is_whole_in(self, result: dict[str, Any]) -> bool:
        try:
            value = json.loads(self.printed)
        except ValueError:
            value = None
        if isinstance(value, dict) and "content" in value:
            return bool(result["content"] == value["content"]) and not result["isError"]
        if isinstance(value, dict) and result.get("structuredContent") != value:
            return False
        return text_of(result) == self.printed.decode("utf-8", "replace") and not result["isError"]


def text(size: int) -> bytes:
    line = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz '\"\\", k=79)) + "\n"
    return (line * (size // 80 + 1)).encode()[-size:]


def image(size: int) -> bytes:
    data = base64.b64encode(chance.randbytes(size)).decode()
    caption = {"type": "text", "text": "a picture"}
    return json.dumps({"content": [{"type": "image", "data": data, "mimeType": "image/png"}, caption]}).encode()


def numbers(count: int) -> dict[str, Any]:
    return {f"number {each}": [each, each / 7, str(each), None, True] for each in range(count)}


KINDS = {
    "nothing": Kind(b""),
    "a character": Kind(b"x"),
    "a newline": Kind(b"\n"),
    "a word without newline": Kind(b"one word", stderr="a warning\n"),
    "a page": Kind(text(4000)),
    "a full pipe": Kind(text(64 * KIB)),
    "a full pipe and a byte": Kind(text(64 * KIB) + b"."),
    "a megabyte but one": Kind(text(MIB - 1)),
    "a megabyte and a byte": Kind(text(MIB) + b"."),
    "text of 1.6 MB": Kind(text(1_600_000)),
    "text of 9 MB": Kind(text(9_000_000)),
    "characters of 2 MB without newline": Kind("Größe 漢字 🙂\n".encode() * 80_000 + b"end", stderr="w" * 60_000),
    "lines, many": Kind(b"".join(b"line %d\n" % number for number in range(150_000)), stderr="told\n"),
    "an object": Kind(b'{"a":[1,2.5,"\\u00e4"],"b":null}\n'),
    "an object of 1.5 MB": Kind(json.dumps(numbers(28_000)).encode(), stderr="e" * 100_000),
    "an array": Kind(json.dumps(list(range(60_000))).encode()),
    "an image": Kind(image(3000)),
    "an image of 1.2 MB": Kind(image(1_200_000)),
    "bytes": Kind(chance.randbytes(50_000)),
    "bytes of 1.4 MB": Kind(b"\0\xff\xc3" + chance.randbytes(1_400_000) + b"\xe2\x82"),
}
SAMPLE = ("text of 1.6 MB",) * 16


@pytest.fixture
def server(project: ProjectBuilder, start: Start, monkeypatch: pytest.MonkeyPatch) -> Wire:
    monkeypatch.delenv("MCPGREEN_WARM_PYTHON", raising=False)
    (project.root / "kinds").mkdir()
    for name, kind in KINDS.items():
        (project.root / "kinds" / name).write_bytes(kind.printed)
        if kind.stderr:
            project.write(f"kinds/{name}.err", kind.stderr)
    project.forked_tool("forked", PYTHON)
    project.forked_tool("fresh", PYTHON, warm=False)
    project.tool("shell", SHELL)
    return start(stderr_level="info").greeted()


def broken_calls(server: Wire, way: str, kinds: Sequence[str]) -> list[str]:
    """Call a tool for all of these kinds at once; name those whose output is not whole."""
    ids = [server.start_request("tools/call", {"name": way, "arguments": {"kind": kind}}) for kind in kinds]
    broken = []
    for kind, id in zip(kinds, ids, strict=True):
        result = server.response(id).get("result")
        if result is None or not KINDS[kind].is_whole_in(result):
            broken.append(f"{kind} ({way}, {len(kinds)} at once): {len(str(result))} characters")
    server.seen.clear()  # else all of it would stay in memory
    server.raw_lines.clear()
    return broken


@pytest.mark.parametrize("way", ["fresh", "forked", "shell"])
def test_output_arrives_whole(server: Wire, way: str) -> None:
    """A forked script that printed more than a megabyte while others did so lost its end, without an error."""
    if way == "forked":
        eventually(lambda: not broken_calls(server, way, ["nothing"]) and ", warm" in server.stderr)
    assert not broken_calls(server, way, list(KINDS))
    if ROUNDS < TABLE_ROUNDS:
        assert not broken_calls(server, way, SAMPLE if way == "forked" else SAMPLE[:8])
        return
    broken: list[str] = []
    for _ in range(TABLE_ROUNDS):
        for at_once in AT_ONCE:
            for kind in KINDS:
                broken += broken_calls(server, way, [kind] * at_once)
    assert not broken


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pipes have packets on Linux only")
def test_output_in_packets_arrives_whole(project: ProjectBuilder, server: Wire) -> None:
    """Each read takes one packet, so a full pipe needs more reads than are made at a time."""
    packets = "import fcntl, os\nfcntl.fcntl(1, fcntl.F_SETFL, os.O_DIRECT)\nfcntl.fcntl(1, 1031, 1 << 20)\n"
    project.forked_tool("packets", packets + "for _ in range(500): os.write(1, b'x' * 4096)\n")
    eventually(lambda: not broken_calls(server, "forked", ["nothing"]) and ", warm" in server.stderr)
    ids = [server.start_request("tools/call", {"name": "packets"}) for _ in range(12)]

    assert {len(text_of(server.response(id)["result"])) for id in ids} == {500 * 4096}
