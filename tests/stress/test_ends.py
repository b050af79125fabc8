"""However a script ends, what it has printed is answered byte by byte, and nothing is left of it.

Each way to start a script, alone and twelve at once, with nothing, a full pipe and more than that to print, and each
way to end. `make test` mixes a sample; with 20 rounds or more (MCPGREEN_STRESS_ROUNDS), every cell is run 20 times.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.stress.support import ROUNDS
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Json, Wire, text_of

TABLE_ROUNDS = 20
WAYS = ("fresh", "forked")
AT_ONCE = (1, 12)
SIZES = (0, 64_000, 1_500_000, 9_000_000)
ENDS = ("ok", "fails", "cancelled", "overdue", "asks")
LINE_BYTES = 10
ANSWER = {"action": "accept", "content": {"name": "Ada"}}

SCRIPT = f"""{ASK}
call = json.loads(os.environ["MCP_TOOL_ARGS_JSON"])
note(f"pid.{{call['number']}}.{{os.getpid()}}")
printed = b"".join(b"%09d\\n" % line for line in range(call["size"] // {LINE_BYTES}))
sys.stdout.buffer.write(printed[:len(printed) // 2])
if call["end"] == "asks":
    answer = ask({{"who": form(call["number"], name=TEXT)}})
    assert '"name": "Ada"' in json.dumps(answer), answer
sys.stdout.buffer.write(printed[len(printed) // 2:])
sys.stdout.flush()
if call["end"] in ("cancelled", "overdue"):
    time.sleep(600)
sys.exit(3 if call["end"] == "fails" else 0)
"""


class Cell(NamedTuple):
    way: str
    size: int
    end: str

    @property
    def tool(self) -> str:
        return f"{self.way}_{self.end}" if self.end == "overdue" else self.way

    def is_whole_in(self, result: Json) -> bool:
        printed = printed_by(self.size)
        if self.end in ("ok", "asks"):
            return text_of(result) == printed and not result["isError"]
        if self.end == "fails":
            texts = [block["text"] for block in result["content"]]
            return result["isError"] and (printed in texts or not printed)
        return result["isError"] and "timed out" in text_of(result)


@cache
def printed_by(size: int) -> str:
    return "".join(f"{line:09d}\n" for line in range(size // LINE_BYTES))


@pytest.fixture
def server(project: ProjectBuilder, start: Callable[..., Wire], monkeypatch: pytest.MonkeyPatch) -> Wire:
    monkeypatch.delenv("MCPGREEN_WARM_PYTHON", raising=False)
    for way in WAYS:
        project.forked_tool(way, SCRIPT, warm=way == "forked")
        project.forked_tool(f"{way}_overdue", SCRIPT, warm=way == "forked", timeoutSecs=1)
    server = start(stderr_level="info", kill_grace_secs=0.2, default_tool_timeout=120)  # machines may be busy
    server.handshake(capabilities=FORM)
    eventually(lambda: not broken_calls(server, project.root, [Cell("forked", 0, "ok")]) and ", warm" in server.stderr)
    return server


def broken_calls(server: Wire, root: Path, cells: Sequence[Cell]) -> list[str]:
    """Run all of these at once; say which have not ended as they should."""
    ids = {}
    for number, cell in enumerate(cells):
        arguments = {"size": cell.size, "end": cell.end, "number": str(number)}
        ids[number] = server.start_request("tools/call", {"name": cell.tool, "arguments": arguments})
    for number, cell in enumerate(cells):
        if cell.end == "cancelled":
            eventually(lambda number=number: any(root.glob(f"pid.{number}.*")))  # type: ignore[misc]
            server.notify("notifications/cancelled", {"requestId": ids.pop(number)})
    for _ in [cell for cell in cells if cell.end == "asks"]:
        question = server.receive(lambda message: message.get("method") == "elicitation/create")
        server.send(
            {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}}
        )
    broken = []
    for number, id in ids.items():
        result = server.response(id).get("result")
        if result is None or not cells[number].is_whole_in(result):
            broken.append(f"{cells[number]}, {len(cells)} at once: {str(result)[:200]}")
    assert "result" in server.request("ping")
    for path in root.glob("pid.*"):
        eventually(lambda pid=path.suffix[1:]: not is_alive(pid))  # type: ignore[misc]
        path.unlink()
    server.seen.clear()  # else all of it would stay in memory
    server.raw_lines.clear()
    return broken


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scripts are forked on Linux only")
def test_output_is_whole_however_a_script_ends(project: ProjectBuilder, server: Wire) -> None:
    table = [Cell(*cell) for cell in itertools.product(WAYS, SIZES, ENDS)]
    if ROUNDS < TABLE_ROUNDS:
        sample = [cell for cell in table if cell[:2] in (("fresh", 64_000), ("forked", 1_500_000))]
        assert not broken_calls(server, project.root, sample)
        return
    broken: list[str] = []
    for _ in range(TABLE_ROUNDS):
        for cell, at_once in itertools.product(table, AT_ONCE):
            broken += broken_calls(server, project.root, [cell] * at_once)
    assert not broken
