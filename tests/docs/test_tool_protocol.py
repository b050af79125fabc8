"""docs/tool-protocol.md: its tools in Node and Perl are run by the server, and asked by a stand-in for it.

The stand-in (`tests.support.asking`) has the control pipe, FIFO and file of the page, and answers as the test says.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.reader import DOCS, Reader, blocks_of, values_in
from tests.support.asking import Say, Talk, answered, talk, unanswered
from tests.support.client import Speak
from tests.support.prerequisites import require_perl_modules, require_program
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.questions import ALL
from tests.support.wire import Start, Wire, text_of

PAGE = DOCS / "tool-protocol.md"
BLOCKS = blocks_of(PAGE)
TOOLS = {"count-words": "tools/count-words.cjs", "tally-words": "tools/tally-words.pl"}

# Set for scripts that may ask.
OF_ASKING = ("MCP_ASK_", "MCP_ELICIT_", "MCP_SAMPLING_", "MCP_INPUT_", "MCP_REQUEST_")

each_tool = pytest.mark.parametrize("tool", TOOLS)


def require_language_of(tool: str) -> None:
    if TOOLS[tool].endswith(".pl"):
        require_perl_modules("JSON::PP", "POSIX")
    else:
        require_program("node")


@pytest.fixture(scope="module")
def project_of_the_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools of the page. What it shows has taken place."""
    for tool in TOOLS:
        require_language_of(tool)
    reader = Reader(tmp_path_factory.mktemp("reader"))
    reader.read(PAGE)
    return reader.place


def test_what_the_page_shows_happens(project_of_the_page: Path) -> None:
    assert project_of_the_page.is_dir()


def test_the_tool_that_stays_remembers(project_of_the_page: Path) -> None:
    (project_of_the_page / "tools/remember.cjs").chmod(0o755)
    with Wire(project_of_the_page) as server:
        server.handshake()
        assert server.call_tool("remember", {"key": "a"})["isError"] is True
        assert text_of(server.call_tool("remember", {"key": "a", "value": "one"})) == "one"
        assert text_of(server.call_tool("remember", {"key": "a"})) == "one"


@pytest.fixture
def run(project_of_the_page: Path, tmp_path: Path) -> Any:
    """Run a tool of the page beside the stand-in."""

    def run_tool(tool: str, say: Say, arguments: str = "{}", **env: str) -> Talk:
        variables = {"MCP_TOOL_ARGS_JSON": arguments, "MCP_TOOL_ERROR_FILE": str(tmp_path / "error.json"), **env}
        return talk([str(project_of_the_page / TOOLS[tool])], say, env=variables, cwd=tmp_path)

    return run_tool


def messages_with(key: str) -> list[Any]:
    """The values that the page shows in blocks of their own, if they have this member."""
    shown = [block for block in BLOCKS if (block.language, block.info) == ("json", "")]
    return [value for block in shown for value in values_in(block.text) if key in value]


def test_lines_of_the_control_pipe_reach_the_client(project: ProjectBuilder, speak: Speak) -> None:
    progress, message = messages_with("method")
    lines = f"{json.dumps(progress)}\n{json.dumps(message)}\n"
    project.tool("say", f"cat >\"$MCP_PROGRESS_STREAM\" <<'EOF'\n{lines}EOF\n")
    client = speak()
    client.call_tool("say", meta={"progressToken": "p"})

    assert [notice["params"] for notice in client.wire.notices("notifications/progress")] == [
        {"progressToken": "p", **progress["params"]}
    ]
    assert [notice["params"] for notice in client.wire.notices("notifications/message")] == [message["params"]]


def test_a_result_that_a_tool_prints_goes_out_as_it_is(project: ProjectBuilder, speak: Speak) -> None:
    results = [result for result in messages_with("content") if "_meta" not in result]
    for number, result in enumerate(results):
        project.tool(f"print-{number}", f"cat <<'EOF'\n{json.dumps(result)}\nEOF\n")
    client = speak()
    given = [client.call_tool(f"print-{number}") for number in range(len(results))]

    assert results
    assert [(each["content"], each["isError"]) for each in given] == [
        (each["content"], each.get("isError", False)) for each in results
    ]


def test_a_question_of_the_page_is_answered_as_the_page_says(project: ProjectBuilder, speak: Speak) -> None:
    (ask,), (reply,) = messages_with("ask"), messages_with("who")
    line = json.dumps(ask).replace(ask["reply"], "'\"$path\"'")
    script = (
        f"""path=$MCP_ASK_REPLY.$$.1; mkfifo -m 600 "$path"; echo '{line}' >"$MCP_PROGRESS_STREAM"; cat "$path"\n"""
    )
    project.tool("ask", script)
    client = speak(capabilities=ALL)
    call = client.start_tool("ask")
    question = client.asked("elicitation/create")
    client.answer(question, reply["who"]["result"])

    assert question["params"] == ask["ask"]["who"]["params"]
    assert client.wire.response(call)["result"]["structuredContent"] == reply


def test_a_tool_in_the_stateless_style_is_run_again_with_the_answers(project: ProjectBuilder, speak: Speak) -> None:
    (later,) = messages_with("resultType")
    result = {"action": "accept", "content": {"name": "Ada"}}
    script = f"""if [ -z "$MCP_INPUT_RESPONSES_JSON" ]; then echo '{json.dumps(later)}'; exit; fi
printf '{{"responses": %s, "state": "%s"}}' "$MCP_INPUT_RESPONSES_JSON" "$MCP_REQUEST_STATE"\n"""
    project.tool("later", script)
    client = speak(capabilities=ALL)
    call = client.start_tool("later")
    question = client.asked("elicitation/create")
    client.answer(question, result)

    assert question["params"] == later["inputRequests"]["who"]["params"]
    assert client.wire.response(call)["result"]["structuredContent"] == {
        "responses": {"who": result},
        "state": later["requestState"],
    }


@each_tool
def test_a_tool_that_may_not_ask_tells_the_model(project_of_the_page: Path, tool: str) -> None:
    with Wire(project_of_the_page).greeted() as server:
        result = server.call_tool(tool)

    assert result["isError"]
    assert result["content"][0]["text"] == "There is no text, and asking for one failed: unsupported."


@each_tool
def test_an_error_that_the_tool_chooses_reaches_the_client(project_of_the_page: Path, tool: str) -> None:
    with Wire(project_of_the_page).greeted() as server:
        error = server.error("tools/call", {"name": tool, "arguments": {"text": "\n" * 1000}})

    assert (error["code"], error["message"]) == (-32602, "text has more than 1000 lines")


@each_tool
def test_arguments_that_were_spilled_are_read(project_of_the_page: Path, tool: str) -> None:
    with Wire(project_of_the_page, env={"MCPGREEN_ENV_PAYLOAD_THRESHOLD": "0"}).greeted() as server:
        result = server.call_tool(tool, {"text": "ü é ö"})

    assert result["structuredContent"] == {"lines": 1, "words": 3}


@each_tool
def test_a_tool_asks_for_what_it_lacks(run: Any, tool: str) -> None:
    ended = run(tool, answered(question={"action": "accept", "content": {"text": "drei Wörter hier"}}))

    assert json.loads(ended.stdout) == {"lines": 1, "words": 3}
    [line] = ended.questions
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    assert line["ask"]["question"] == {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Which text?", "requestedSchema": schema},
    }
    assert ended.params == [{"progress": 100, "total": 100, "message": "line 1"}]


@each_tool
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_tool_takes_no_for_an_answer(run: Any, tool: str, action: str) -> None:
    ended = run(tool, answered(question={"action": action}))

    result = json.loads(ended.stdout)
    assert result["content"] == [{"type": "text", "text": "There is no text, and the user did not give one."}]
    assert (result["isError"], ended.exit_code) == (True, 0)


@each_tool
@pytest.mark.parametrize("status", ["unsupported", "timeout", "error", "cancelled"])
def test_a_tool_says_that_asking_failed(run: Any, tool: str, status: str) -> None:
    result = json.loads(run(tool, unanswered(status)).stdout)

    assert (result["content"][0]["text"], result["isError"]) == (
        f"There is no text, and asking for one failed: {status}.",
        True,
    )


@each_tool
def test_a_tool_runs_at_the_desk(project_of_the_page: Path, tool: str) -> None:
    done = completed(
        [str(project_of_the_page / TOOLS[tool])],
        env={"PATH": os.environ["PATH"], "MCP_TOOL_ARGS_JSON": '{"text": "a\\n\\nb"}'},
        check=True,
    )

    assert (json.loads(done.stdout), done.stderr) == ({"lines": 3, "words": 2}, "")


def test_the_server_sets_the_variables_of_the_page(project: ProjectBuilder, start: Start) -> None:
    """Long payloads are in files instead; answers exist in a second run only, callers not on stdio, no task."""
    project.tool("env", "env")
    server = start().greeted()
    given = set(re.findall(r"^(MCP_\w+)=", text_of(server.call_tool("env")), re.MULTILINE))
    table = PAGE.read_text(encoding="utf-8").split("## In: the environment")[1].split("##")[0]
    named = set(re.findall(r"`(MCP_[A-Z_]+)`", table))
    elsewhere = {"MCP_TOOL_ARGS_FILE", "MCP_TOOL_META_FILE", "MCP_TOOL_METADATA_FILE", "MCP_AUTH_JSON"}
    elsewhere.add("MCP_TASK_ATTEMPT")

    assert {name for name in named - given - elsewhere if not name.startswith(OF_ASKING)} == set()
    assert given - named - {"MCP_SDK"} == set()
