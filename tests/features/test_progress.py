"""Progress reports of a running tool."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.support import ways
from tests.support.client import ALL_REVISIONS, Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import Json, text_of

way, project, shared_project = ways.way, ways.project, ways.shared_project


def report(progress: Any, **more: Any) -> str:
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": progress, **more}})
    return f"""echo '{line}' >> "$MCP_PROGRESS_STREAM"\n"""


def progress_of(client: Client) -> list[Json]:
    return [notice["params"] for notice in client.wire.notices("notifications/progress")]


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    shared_project.tool("once", report(1) + "echo done")
    shared_project.tool("token", report(1) + 'printf %s "${#MCP_PROGRESS_TOKEN}"')
    shared_project.python_tool(
        "forge",
        "import json, os\nline = json.loads(os.environ['MCP_TOOL_ARGS_JSON'])['line']\n"
        "with open(os.environ['MCP_PROGRESS_STREAM'], 'a') as stream:\n    print(line, file=stream)\n",
    )


def len_or_sign(token: Any) -> str:
    return str(len(token)) if isinstance(token, str) else ("negative" if token < 0 else "positive")


@pytest.mark.requirement("P-255", "P-026")
@ways.per_call("variables")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    ("token", "length"),
    [("a", 1), (0, 1), ("0", 1), ("", 0), ("a\0b", 3), ("x\ud800", 2), ("x" * 1024, 1000), (-(10**998), 1000)],
    ids=["text", "number", "digit", "empty", "nul", "half", "long", "large"],
)
def test_any_token_is_echoed_and_seen_by_the_script(
    shared_speak: Speak, revision: str, token: Any, length: int
) -> None:
    client = shared_speak(revision)
    client.wire.seen.clear()
    assert text_of(client.call_tool("token", meta={"progressToken": token})) == str(length)

    echoed = token.replace("\ud800", "\ufffd") if isinstance(token, str) else token
    assert [params["progressToken"] for params in progress_of(client)] == [echoed]


@pytest.mark.requirement("P-255")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_progress_is_told_while_the_tool_runs(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    script = report(1, total=2, message="half") + "until [ -e go ]; do sleep 0.01; done\n" + report(2, total=None)
    project.tool("work", script)
    client = speak(revision)
    id = client.start_tool("work", meta={"progressToken": "token"})

    first = client.wire.notice("notifications/progress")["params"]
    expected = {"progressToken": "token", "progress": 1, "total": 2, "message": "half"}
    if revision == "2024-11-05":
        del expected["message"]
    assert first == expected

    project.write("go", "")
    assert client.wire.response(id)["result"]["isError"] is False
    assert progress_of(client)[1:] == [{"progressToken": "token", "progress": 2}]


@pytest.mark.requirement("G-repeated-bounds")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("token", ["x" * 1025, "x" * 1_000_000, 10**1000, -(10**3000)], ids=len_or_sign)
def test_a_token_that_is_too_long_to_be_repeated_is_refused(shared_speak: Speak, revision: str, token: Any) -> None:
    """Each report of progress repeats it: 12 MiB of it held the server for 16 s."""
    client = shared_speak(revision)
    client.wire.seen.clear()
    error = client.error("tools/call", {"name": "once", "arguments": {}}, meta={"progressToken": token})

    assert error == {
        "code": -32602,
        "message": "_meta progressToken may have at most 1024 characters or 1000 digits.",
    }
    assert progress_of(client) == []


@pytest.mark.requirement("P-255")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_without_a_token_there_is_no_progress(shared_speak: Speak, revision: str) -> None:
    client = shared_speak(revision)
    told_before = len(progress_of(client))
    client.call_tool("once")
    client.tools()

    assert len(progress_of(client)) == told_before


@pytest.mark.requirement("P-255", "G-throttle")
@pytest.mark.parametrize(
    ("reports", "told"),
    [([1, 1, 0.5, 1.5, -3, "x", None, 2, 2.0, 100], [1, 1.5, 2, 100]), (range(1, 30), [1, 2, 3, 4, 5])],
)
def test_progress_only_increases_and_is_throttled(
    project: ProjectBuilder, speak: Speak, reports: Iterable[Any], told: list[float]
) -> None:
    project.tool("work", "".join(map(report, reports)))
    client = speak(max_progress_per_min=5)
    client.call_tool("work", meta={"progressToken": 1})

    assert [params["progress"] for params in progress_of(client)] == told


@pytest.mark.requirement("P-255")
def test_all_progress_comes_before_the_response_and_none_after(project: ProjectBuilder, speak: Speak) -> None:
    # The background job writes on after the tool itself has ended.
    late = f"(while :; do {report(99)} done) >/dev/null 2>&1 &\n"
    project.tool("work", report(1) + late + "echo done")
    client = speak()
    id = client.start_tool("work", meta={"progressToken": 1})
    client.wire.response(id)
    response_at = len(client.wire.seen)
    client.wire.settle()

    assert progress_of(client)[0]["progress"] == 1
    assert not [message for message in client.wire.seen[response_at:] if message.get("method")]


@pytest.mark.requirement("P-021")
@pytest.mark.parametrize(
    "line",
    ["garbage", "[]", "5", '{"method":"notifications/cancelled","params":{"requestId":1}}', '{"id":1,"result":{}}'],
)
def test_a_script_cannot_put_a_message_of_its_own_onto_the_wire(shared_speak: Speak, line: str) -> None:
    client = shared_speak()
    seen_before = len(client.wire.seen)
    client.call_tool("forge", {"line": line}, meta={"progressToken": 1})

    assert len(client.wire.seen) == seen_before + 1


def test_a_message_in_another_encoding_is_told_as_far_as_it_can_be_read(project: ProjectBuilder, speak: Speak) -> None:
    """A program with Latin-1 in its lines had no progress at all, and ran out of its time."""
    script = """source "$MCP_SDK/tool-sdk.sh"
      mcp_run_with_progress --pattern '([0-9]+)%' --extract match1 -- bash -c 'printf "5%% caf\\351\\n" >&2'"""
    project.tool("work", script)
    client = speak()
    client.call_tool("work", meta={"progressToken": 1})

    assert [(params["progress"], params["message"]) for params in progress_of(client)] == [(5, "5% caf\ufffd")]
