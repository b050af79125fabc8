"""What a call can do, in each way to serve it: the same functions, called by clients of all eras."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import pytest

from tests.conftest import servers_on
from tests.support import ways
from tests.support.client import Client
from tests.support.project import ProjectBuilder
from tests.support.questions import ALL
from tests.support.waiting import eventually
from tests.support.wire import Json, text_of

way, shared_project = ways.way, ways.shared_project
ERAS = ["2025-06-18", "2025-11-25", "2026-07-28"]
FUNCTIONS = f"""#!{sys.executable}
import os, sys, time
import mcp_tool

@mcp_tool.tool
def report(steps: int) -> str:
    for step in range(steps):
        mcp_tool.progress(step + 1, "step", total=steps)
    mcp_tool.log("warning", "tests", {{"steps": steps}})
    return "reported"

@mcp_tool.tool
def greet() -> str:
    return "Hello " + mcp_tool.ask_string("Who?")

@mcp_tool.tool
def rhyme() -> str:
    return mcp_tool.sample("A rhyme", 10).text

@mcp_tool.tool
def both() -> list[str]:
    schema = {{"properties": {{"v": {{"type": "string"}}}}}}
    replies = mcp_tool.ask({{key: mcp_tool.form_request(key, schema) for key in "ab"}})
    return [replies[key].result["content"]["v"] for key in "ab"]

@mcp_tool.tool
def surroundings() -> dict[str, str]:
    own = os.environ.get("FROM_SERVER", ""), os.environ.get("NOT_DECLARED", "")
    return {{"roots": str(mcp_tool.roots()), "meta": mcp_tool.meta_get("x/y"), "env": str(own), "cwd": os.getcwd()}}

@mcp_tool.tool
def refuse(code: int) -> str:
    mcp_tool.fail(code, "refused", {{"why": "test"}})

@mcp_tool.tool
def repeat(text: str, times: int) -> str:
    return text * times

@mcp_tool.tool
def promise() -> dict[str, int]:
    return {{"n": "no number"}}

@mcp_tool.tool
def wait(path: str) -> str:
    open(path, "w").close()
    while not mcp_tool.is_cancelled():
        time.sleep(0.01)
    open(path + ".noticed", "w").close()
    return "late"

@mcp_tool.tool
def picture() -> list:
    return ["Look:", mcp_tool.image_block(b"\\x89PNG\\r\\n\\x1a\\n", "image/png")]

@mcp_tool.tool
def linger(steps: int) -> str:
    for step in range(steps):
        mcp_tool.progress(step, "still working")
        time.sleep(0.2)
    return "done"

@mcp_tool.tool
def fail(how: str):
    print("some output", file=sys.stderr)
    if how == "raise":
        raise ValueError("bad value")
    if how == "tool error":
        raise mcp_tool.ToolError("no such row")
    mcp_tool.error("missing", "not here", hint="look elsewhere") if how == "report" else sys.exit(how)

@mcp_tool.tool
def show(how: str):
    print("noise", file=sys.stderr)
    if how == "print":
        print("printed")
    elif how == "json":
        mcp_tool.emit_json({{"a": [1, 2]}})
    elif how == "link":
        mcp_tool.result_resource_link("file:///x.txt", "x")
    elif how == "success":
        mcp_tool.result_success({{"rows": 2}})

@mcp_tool.tool
def embed() -> None:
    mcp_tool.result_text_with_resource("with a file", "note.txt")

@mcp_tool.tool
def crash() -> str:
    print("out of memory", file=sys.stderr, flush=True)
    os._exit(37)

@mcp_tool.tool
def parts() -> list[dict[str, int]]:
    return [{{"n": n}} for n in range(2)]

@mcp_tool.tool(scopes=["rows:write"])
def guarded() -> str:
    return str(mcp_tool.auth_get("sub", "nobody"))

@mcp_tool.tool
async def asynchronous(name: str = "Ada") -> str:
    import asyncio
    await asyncio.sleep(0)
    return f"Hello {{name}}"
"""


@pytest.fixture(scope="module")
def clients(shared_project: ProjectBuilder, way: str) -> Iterator[dict[str, Client]]:
    """A client of each era, with servers that serve calls in this way: their log says so."""
    shared_project.tool("functions.py", FUNCTIONS, env=["FROM_SERVER"], timeoutSecs=20)
    shared_project.tool("short.py", FUNCTIONS.replace("def wait", "def overdue"), timeoutSecs=0.5)
    extended = FUNCTIONS.replace("def linger", "def extended")
    shared_project.tool("slow.py", extended, timeoutSecs=0.5, progressExtendsTimeout=True)
    shared_project.write("note.txt", "embedded")
    log = {"fresh": " ok ", "forked": ", warm", "resident": ", resident "}[way]
    with servers_on(shared_project) as start:
        found = {}
        for era in ERAS:
            env = {"FROM_SERVER": "passed on", "NOT_DECLARED": "kept back"}
            server = start(stderr_level="info", warm_python=True, max_tool_output_size=3_000_000, env=env)
            client = found[era] = Client(server, era, capabilities=ALL)
            eventually(partial(is_served_so, client, log))
        yield found


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, clients: dict[str, Client]) -> Client:
    return clients[request.param]


def is_served_so(client: Client, log: str) -> bool:
    client.call_tool("repeat", {"text": "", "times": 0})
    return log in client.wire.stderr


def answered(client: Client, name: str, answers: list[Json]) -> Json:
    """Call a tool, and answer its questions, as clients of this era do."""
    if client.revision != ERAS[-1]:
        id = client.start_tool(name)
        for answer in answers:
            client.answer(client.asked("sampling/createMessage" if "role" in answer else "elicitation/create"), answer)
        result: Json = client.wire.response(id)["result"]
        return result
    first = client.call_tool(name)
    assert first["resultType"] == "input_required"
    responses = dict(zip(first["inputRequests"], answers, strict=True))
    more = {"requestState": first["requestState"], "inputResponses": responses}
    return client.result("tools/call", {"name": name, "arguments": {}, **more})


def test_reports_reach_the_client(client: Client) -> None:
    client.wire.seen.clear()
    meta = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "info"}
    assert text_of(client.call_tool("report", {"steps": 2}, meta=meta)) == "reported"
    reports = [each["params"] for each in client.wire.notices("notifications/progress")]
    assert [(each["progressToken"], each["progress"], each["total"]) for each in reports] == [("t", 1, 2), ("t", 2, 2)]
    (message,) = [each["params"] for each in client.wire.notices("notifications/message")]
    assert (message["level"], message["logger"], message["data"]) == ("warning", "tests", {"steps": 2})


QUESTIONS: list[tuple[str, list[Json], str]] = [
    ("greet", [{"action": "accept", "content": {"value": "Ada"}}], "Hello Ada"),
    ("rhyme", [{"role": "assistant", "content": {"type": "text", "text": "moon"}, "model": "m"}], "moon"),
    ("both", [{"action": "accept", "content": {"v": each}} for each in "xx"], '["x", "x"]'),
    ("greet", [{"action": "decline"}], "decline"),
]


@pytest.mark.parametrize(("name", "answers", "said"), QUESTIONS)
def test_questions_are_answered(client: Client, name: str, answers: list[Json], said: str) -> None:
    assert said in text_of(answered(client, name, answers))


def test_a_function_sees_what_belongs_to_its_call(client: Client, shared_project: ProjectBuilder) -> None:
    for value in ("1", "2"):
        seen = client.call_tool("surroundings", meta={"x/y": value})["structuredContent"]
        assert (seen["meta"], seen["env"], seen["cwd"]) == (value, "('passed on', '')", str(shared_project.root))
        assert str(shared_project.root) in seen["roots"]


def test_arguments_and_results_are_checked(client: Client) -> None:
    assert "Invalid arguments" in text_of(client.call_tool("repeat", {"text": "a", "times": "b"}))
    assert text_of(client.call_tool("repeat", {"text": "a", "times": 2})) == "aa"
    assert "outputSchema" in text_of(client.call_tool("promise"))
    assert client.error("tools/call", {"name": "repeat", "arguments": []})["code"] == -32602
    assert client.error("tools/call", {"name": "refuse", "arguments": {"code": -32602}}) == {
        "code": -32602,
        "message": "refused",
        "data": {"why": "test"},
    }
    assert [block["type"] for block in client.call_tool("picture")["content"]] == ["text", "image"]


def test_long_arguments_and_results_arrive_whole_up_to_the_limit(client: Client) -> None:
    text = "ä\n" * 100_000
    assert text_of(client.call_tool("repeat", {"text": text, "times": 1})) == text
    answer = client.request("tools/call", {"name": "repeat", "arguments": {"text": "x" * 1000, "times": 4000}})
    assert "error" in answer or answer["result"]["isError"]


def test_a_call_that_takes_too_long_is_ended(client: Client) -> None:
    path = f"overdue-{client.revision}"
    result = client.call_tool("overdue", {"path": path})
    assert (text_of(result), result["isError"]) == ("Tool timed out after 0.5s", True)


def test_a_cancelled_call_gets_no_answer(client: Client, shared_project: ProjectBuilder) -> None:
    path = f"wait-{client.revision}"
    id = client.start_tool("wait", {"path": path})
    eventually((shared_project.root / path).exists)
    client.wire.notify("notifications/cancelled", {"requestId": id})
    assert text_of(client.call_tool("repeat", {"text": "next", "times": 1})) == "next"
    assert id not in [message.get("id") for message in client.wire.seen if "result" in message]


FAILURES = {
    "raise": "ValueError: bad value",
    "tool error": "no such row",
    "my reason": "my reason",
    "report": "not here",
}


@pytest.mark.parametrize("how", FAILURES)
def test_a_function_that_fails_says_why(client: Client, how: str) -> None:
    result = client.call_tool("fail", {"how": how})
    assert (result["isError"], FAILURES[how] in text_of(result)) == (True, True)


SHOWN: dict[str, tuple[str, Json | None]] = {
    "print": ("printed\n", None),
    "json": ('{"a":[1,2]}\n', {"a": [1, 2]}),
    "success": ('{"success":true,"result":{"rows":2}}', {"success": True, "result": {"rows": 2}}),
    "nothing": ("", None),
}


@pytest.mark.parametrize("how", SHOWN)
def test_what_a_function_prints_is_its_result(client: Client, how: str) -> None:
    result = client.call_tool("show", {"how": how})
    assert (text_of(result), result.get("structuredContent"), result["isError"]) == (*SHOWN[how], False)


def test_other_results_are_the_same(client: Client) -> None:
    assert client.call_tool("show", {"how": "link"})["content"][0]["type"] in ("resource_link", "text")
    assert client.call_tool("parts")["structuredContent"] == {"result": [{"n": 0}, {"n": 1}]}
    assert text_of(client.call_tool("asynchronous")) == "Hello Ada"
    assert text_of(client.call_tool("guarded")) == "nobody"  # a caller without claims is not restricted
    assert text_of(client.call_tool("repeat", {"text": "ab", "times": "2"})) == "abab"  # a number was meant


def test_a_file_is_embedded_in_the_result_of_its_call(client: Client) -> None:
    blocks = client.call_tool("embed")["content"]
    assert [block["resource"]["text"] for block in blocks if block["type"] == "resource"] == ["embedded"]
    assert [block["type"] for block in client.call_tool("show", {"how": "print"})["content"]] == ["text"]


def test_a_crash_is_told_with_exit_code_and_stderr(client: Client) -> None:
    result = client.call_tool("crash")
    assert (result["isError"], text_of(result).endswith(": out of memory")) == (True, True)
    assert (result["_meta"]["exitCode"], result["_meta"]["stderr"].strip()) == (37, "out of memory")


def test_progress_extends_the_time_if_the_description_says_so(clients: dict[str, Client]) -> None:
    client = clients[ERAS[1]]
    assert text_of(client.call_tool("extended", {"steps": 4})) == "done"
    params = {"name": "linger", "arguments": {"steps": 30}, "timeoutSecs": 0.3}
    result = client.result("tools/call", params)
    assert (text_of(result), result["isError"]) == ("Tool timed out after 0.3s", True)


def test_calls_side_by_side_get_their_own_answers(client: Client) -> None:
    ids = {client.start_tool("repeat", {"text": f"{n} ", "times": n}): n for n in range(12)}
    assert all(text_of(client.wire.response(id)["result"]) == f"{n} " * n for id, n in ids.items())
