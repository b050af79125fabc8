"""Resident Python functions: globals are the state, and a call is served as in a process of its own."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

HEAD = f"#!{sys.executable}\nimport asyncio, os, sys, threading, time\nimport mcp_tool\n"

# Each is a tool of one file, and of one process: its body, and what a call of it says.
FUNCTIONS: dict[str, tuple[str, dict[str, Any], str, bool]] = {
    "text": ("(a: str) -> str:\n    return a * 2", {"a": "x"}, "xx", False),
    "number": ("(a: int, b: int = 1) -> int:\n    return a + b", {"a": 1}, "2", False),
    "nothing": ("():\n    print('printed', 1)", {}, "printed 1\n", False),
    "noise": ("() -> str:\n    print('noise')\n    return 'result'", {}, "result", False),
    "emits": ("():\n    mcp_tool.emit_json({'a': 1})", {}, '{"a":1}\n', False),
    "success": ("():\n    mcp_tool.result_success('y')", {}, '{"success":true,"result":"y"}', False),
    "raises": ("():\n    raise ValueError('bad')", {}, "Tool failed: ValueError: bad", True),
    "tool_error": ("():\n    raise mcp_tool.ToolError('no row')", {}, "no row", True),
    "leaves": ("():\n    sys.exit('left')", {}, "left", True),
    "leaves_well": ("():\n    print('well')\n    sys.exit()", {}, "well\n", False),
    "nan": ("() -> float:\n    return float('nan')", {}, "Tool failed: ValueError: Out of range", True),
    "too_much": ("() -> str:\n    return 'x' * 200_000", {}, "Tool failed: ValueError: the answer has ", True),
    "arguments": ("(**more: int) -> str:\n    return mcp_tool.args_raw()", {"a": 1}, '{"a": 1}', False),
    "roots": ("() -> str:\n    return str(mcp_tool.roots_count())", {}, "1", False),
    "name": ("() -> str:\n    return mcp_tool._tool_name()", {}, "name", False),
    "can_ask": ("() -> str:\n    return str(mcp_tool.can_elicit())", {}, "False", False),
    "asks": (
        "() -> str:\n    return mcp_tool.ask({'a': mcp_tool.roots_request()})['a'].status",
        {},
        "unsupported",
        False,
    ),
    "children": (
        "() -> str:\n    return os.popen('echo ${MCP_CALLS_FD-none}; (: >&97) 2>/dev/null || echo shut').read()",
        {},
        "none\nshut\n",
        False,
    ),
    "waits": ("() -> str:\n    async def f(): return 'waited'\n    return f()", {}, "waited", False),
}
FILE = HEAD + "".join(f"\n@mcp_tool.tool(stays='server')\ndef {name}{body}\n" for name, (body, *_) in FUNCTIONS.items())
FILE += """
@mcp_tool.tool(stays="server")
def pid() -> int:
    return os.getpid()

@mcp_tool.tool(stays="server")
def fails():
    mcp_tool.fail(-32602, "no", [1])

@mcp_tool.tool
def other() -> int:
    return os.getpid()
"""


@pytest.fixture(scope="module", params=["plain", "loop"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same functions, one after the other in the main thread, or in threads beside an event loop."""
    from tests.conftest import servers_on

    project = ProjectBuilder(tmp_path_factory.mktemp("functions") / "project")
    stays = "'server'" if request.param == "plain" else "{'for': 'server', 'concurrency': 4}"
    project.tool(
        "functions.py", FILE.replace("stays='server'", f"stays={stays}").replace('stays="server"', f"stays={stays}")
    )
    with servers_on(project) as start:
        yield Client(start(max_tool_output_size=100_000), "2025-11-25")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_answers_as_in_a_process_of_its_own(served: Client, name: str) -> None:
    _, arguments, text, is_error = FUNCTIONS[name]
    for _ in range(2):
        result = served.call_tool(name, arguments)
        assert (text_of(result)[: len(text)], result["isError"]) == (text, is_error)


def test_functions_of_a_file_share_one_process(served: Client) -> None:
    pids = {text_of(served.call_tool("pid")) for _ in range(3)}
    assert len(pids) == 1
    assert served.error("tools/call", {"name": "fails", "arguments": {}}) == {
        "code": -32602,
        "message": "no",
        "data": [1],
    }
    assert {text_of(served.call_tool("pid"))} == pids
    assert text_of(served.call_tool("other")) not in pids
    assert served.call_tool("pid")["structuredContent"] == {"result": int(pids.pop())}


HOOKS = {
    "functions": """
@mcp_tool.startup
def opens(): state.append("opened")

@mcp_tool.shutdown
def closes(): open("closed", "w").write(" ".join(state))
""",
    "async functions": """
@mcp_tool.startup
async def opens():
    await asyncio.sleep(0)
    state.append("opened")

@mcp_tool.shutdown
async def closes():
    await asyncio.sleep(0)
    open("closed", "w").write(" ".join(state))
""",
    "generator": """
@mcp_tool.lifespan
def lives():
    state.append("opened")
    yield
    open("closed", "w").write(" ".join(state))
""",
    "async generator": """
@mcp_tool.lifespan
async def lives():
    await asyncio.sleep(0)
    state.append("opened")
    yield
    open("closed", "w").write(" ".join(state))
""",
}


ADD = "\n@mcp_tool.tool{}\ndef add(word: str) -> str:\n    state.append(word)\n    return ' '.join(state)\n"


@pytest.mark.parametrize("hooks", HOOKS)
def test_hooks_open_and_close_what_calls_share(project: ProjectBuilder, speak: Speak, hooks: str) -> None:
    project.tool("add.py", f"{HEAD}state = []\n{HOOKS[hooks]}" + ADD.format("(stays='session')"))
    client = speak(KILL_GRACE_SECS=30)
    assert text_of(client.call_tool("add", {"word": "a"})) == "opened a"
    assert text_of(client.call_tool("add", {"word": "b"})) == "opened a b"
    client.wire.close_stdin()
    assert eventually(lambda: (project.root / "closed").exists() and project.read("closed")) == "opened a b"


def test_hooks_need_a_tool_that_stays(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("add.py", f"{HEAD}state = []\n{HOOKS['functions']}{ADD.format('')}")
    assert "are for resident tools: add stays=" in text_of(speak().call_tool("add", {"word": "a"}))


def test_a_start_that_fails_says_why(project: ProjectBuilder, speak: Speak) -> None:
    body = (
        "@mcp_tool.startup\ndef opens(): raise OSError('no database')\n@mcp_tool.tool(stays='server')\ndef f(): pass\n"
    )
    project.tool("f.py", HEAD + body)
    assert text_of(speak().call_tool("f")) == "The process ended with exit code 1: OSError: no database"


SIDE_BY_SIDE = """
together = set()
async def meet(name):
    together.add(name)
    while len(together) < 3:
        await asyncio.sleep(0.01)

@mcp_tool.tool(stays={"for": "server", "concurrency": 3})
async def waits(name: str) -> str:
    mcp_tool.progress(1, name)
    await meet(name)
    mcp_tool.progress(2, name)
    return name

@mcp_tool.tool(stays={"for": "server", "concurrency": 3})
def works(name: str) -> str:
    mcp_tool.progress(1, name)
    together.add(name)
    while len(together) < 3:
        time.sleep(0.01)
    mcp_tool.progress(2, name)
    return f"{name} {threading.current_thread() is threading.main_thread()}"
"""


def test_calls_run_side_by_side_and_know_which_one_they_are(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("both.py", HEAD + SIDE_BY_SIDE)
    client = speak()
    tools = {"a": "waits", "b": "works", "c": "works"}
    ids = {name: client.start_tool(tool, {"name": name}, meta={"progressToken": name}) for name, tool in tools.items()}
    texts = {name: text_of(client.wire.response(id)["result"]) for name, id in ids.items()}
    assert texts == {"a": "a", "b": "b False", "c": "c False"}
    reports = [notice["params"] for notice in client.wire.notices("notifications/progress")]
    assert len(reports) == 6
    assert all(report["progressToken"] == report["message"] for report in reports)


SAME_META = """
begun = []
@mcp_tool.tool(stays={"for": "server", "concurrency": 2})
async def marks() -> int:
    begun.append(1)
    while len(begun) < 2:
        await asyncio.sleep(0.01)
    mcp_tool.meta()["marks"] = mcp_tool.meta().get("marks", 0) + 1
    return mcp_tool.meta()["marks"]
"""


def test_a_function_may_change_its_meta_without_others_noticing(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("marks.py", HEAD + SAME_META)
    client = speak()
    ids = [client.start_tool("marks", {}, meta={"from": "us"}) for _ in "12"]
    assert [text_of(client.wire.response(id)["result"]) for id in ids] == ["1", "1"]


CANCELLED = """
@mcp_tool.tool(stays="server")
async def waits():
    mcp_tool.info("begun")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        open("noticed", "w").write("coroutine")
        raise

@mcp_tool.tool(stays="session")
def looks():
    mcp_tool.info("begun")
    while not mcp_tool.is_cancelled():
        time.sleep(0.01)
    open("noticed", "w").write("function")

@mcp_tool.tool(stays="server")
def pid() -> int:
    return os.getpid()

@mcp_tool.tool(stays="session")
def own_pid() -> int:
    return os.getpid()
"""


@pytest.mark.parametrize(("tool", "pid", "noticed"), [("waits", "pid", "coroutine"), ("looks", "own_pid", "function")])
def test_a_function_learns_that_it_is_cancelled(
    project: ProjectBuilder, speak: Speak, tool: str, pid: str, noticed: str
) -> None:
    # Each file has functions of one kind: coroutines need an event loop.
    source = CANCELLED if noticed == "coroutine" else CANCELLED[CANCELLED.index('@mcp_tool.tool(stays="session")') :]
    project.tool("both.py", HEAD + source)
    client = speak()
    before = text_of(client.call_tool(pid))
    id = client.start_tool(tool)
    client.wire.notice("notifications/message")
    client.wire.notify("notifications/cancelled", {"requestId": id})
    eventually(lambda: (project.root / "noticed").exists() and project.read("noticed") == noticed)
    assert text_of(client.call_tool(pid)) == before


ASKS = """
@mcp_tool.tool(stays={stays})
{kind}def ask() -> str:
    return {call}
"""


@pytest.mark.parametrize(
    ("kind", "call", "stays"),
    [
        ("", "mcp_tool.ask_string('Who?')", "'server'"),
        ("", "mcp_tool.ask_string('Who?')", {"for": "server", "concurrency": 2}),
        ("async ", "mcp_tool.ask_string('Who?')", "'server'"),
        ("async ", "await asyncio.to_thread(mcp_tool.ask_string, 'Who?')", "'server'"),
    ],
    ids=["plain", "in a thread", "coroutine", "beside a coroutine"],
)
def test_a_function_asks_and_goes_on(project: ProjectBuilder, speak: Speak, kind: str, call: str, stays: Any) -> None:
    project.tool("ask.py", HEAD + ASKS.format(kind=kind, call=call, stays=stays))
    client = speak(capabilities={"elicitation": {}})
    for name in ("Ada", "Bob"):
        id = client.start_tool("ask")
        client.answer(client.asked("elicitation/create"), {"action": "accept", "content": {"value": name}})
        assert text_of(client.wire.response(id)["result"]) == name


def test_state_is_shared_or_not_as_declared(project: ProjectBuilder, speak: Speak) -> None:
    """A notebook: variables live in its session."""
    body = "names = {}\n@mcp_tool.tool(stays='session')\ndef run(code: str) -> str:\n    exec(code, names)\n"
    project.tool("run.py", HEAD + body + "    return str(names.get('x'))\n")
    first, second = speak(), speak()
    assert text_of(first.call_tool("run", {"code": "x = 41"})) == "41"
    assert text_of(first.call_tool("run", {"code": "x += 1"})) == "42"
    assert text_of(second.call_tool("run", {"code": "pass"})) == "None"


def test_a_crash_in_a_function_costs_its_call_only(project: ProjectBuilder, speak: Speak) -> None:
    body = "def f(code: int) -> int:\n    if code: os._exit(code)\n    return os.getpid()\n"
    project.tool("f.py", f"{HEAD}@mcp_tool.tool(stays='server')\n{body}")
    client = speak()
    before = text_of(client.call_tool("f", {"code": 0}))
    assert text_of(client.call_tool("f", {"code": 37})) == "The process ended with exit code 37."
    after = text_of(client.call_tool("f", {"code": 0}))
    assert before != after
    assert not is_alive(before)


def test_what_was_printed_is_in_the_log_of_the_call(project: ProjectBuilder, speak: Speak) -> None:
    body = (
        "@mcp_tool.tool(stays='server')\ndef f(n: int) -> int:\n    print('number', n, file=sys.stderr)\n    return n\n"
    )
    project.tool("f.py", HEAD + body)
    client = speak(result_meta="always")
    assert [client.call_tool("f", {"n": n})["_meta"]["stderr"] for n in (1, 2)] == ["number 1\n", "number 2\n"]


def test_options_of_the_mark_are_the_description(project: ProjectBuilder, speak: Speak) -> None:
    body = "@mcp_tool.tool(stays={'for': 'server', 'workers': 0})\ndef f(): pass\n"
    project.tool("f.py", HEAD + body)
    client = speak()
    assert client.tools() == {}
    eventually(lambda: "stays.workers must be an integer from 1 to 64" in client.wire.stderr)


def test_a_function_without_hooks_needs_no_event_loop(project: ProjectBuilder, speak: Speak) -> None:
    """`from mcp_tool import *` loads everything; to import asyncio takes longer than most tools run."""
    body = "import sys\nfrom mcp_tool import *\n@tool\ndef f() -> bool:\n    return 'asyncio' in sys.modules\n"
    project.tool("f.py", f"#!{sys.executable}\n{body}")
    assert speak(warm_python=False).call_tool("f")["structuredContent"] == {"result": False}
