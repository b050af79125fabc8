"""Scripts that leave in the scratch directory what is no file: nobody waits for it, and others go on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM, form
from tests.support.waiting import eventually
from tests.support.wire import Start, Wire, text_of

NOBODY = 65534
NAME = form("Who are you?", name={"type": "string"})


@pytest.mark.parametrize("variable", ["MCP_TOOL_ERROR_FILE", "MCP_TOOL_RESOURCES_FILE"])
def test_a_fifo_in_the_place_of_a_report_is_no_report(project: ProjectBuilder, client: Wire, variable: str) -> None:
    project.tool("odd", f'mkfifo "${variable}"; echo done')

    assert text_of(client.call_tool("odd")) == "done\n"
    assert client.result("ping") == {}


def test_a_fifo_in_the_place_of_the_cancel_file_does_no_harm(project: ProjectBuilder, client: Wire) -> None:
    project.tool("odd", 'mkfifo "$MCP_CANCEL_FILE"; : > ready; sleep 60')
    id = client.start_request("tools/call", {"name": "odd"})
    eventually((project.root / "ready").exists)
    client.notify("notifications/cancelled", {"requestId": id})

    assert client.result("ping") == {}


def test_a_fifo_in_the_place_of_long_arguments_gives_way(project: ProjectBuilder, client: Wire) -> None:
    project.tool("odd", 'for n in 2 3 4; do mkfifo "${MCP_TOOL_ERROR_FILE%call.*}call.$n.mcp_tool_args.json"; done')
    project.tool("size", 'wc -c <"$MCP_TOOL_ARGS_FILE"')
    client.call_tool("odd")
    long = {"x": "y" * 200_000}
    sizes = [int(text_of(client.call_tool("size", long))) for _ in range(4)]

    assert min(sizes) > 200_000


@pytest.mark.parametrize("obstacle", ["os.mkdir(path)", "os.symlink('elsewhere', path); os.mkfifo('elsewhere')"])
def test_what_is_neither_fifo_nor_file_in_the_place_of_an_answer_costs_the_answer_at_most(
    project: ProjectBuilder, speak: Speak, obstacle: str
) -> None:
    path = "f\"{os.environ['MCP_ASK_REPLY']}.{os.getpid()}.1\""
    body = f"{ASK}\npath = {path}\n{obstacle}\ncontrol({{'ask': {{'who': {NAME!r}}}, 'reply': path}})\n"
    wait = "while not os.path.exists('go') and not os.path.isfile(path): time.sleep(0.01)\n"
    project.python_tool("asker", f"import time\n{body}{wait}print('done', end='')")
    client = speak(capabilities=FORM)
    id = client.start_tool("asker")
    client.answer(client.asked("elicitation/create"), {"action": "decline"})
    assert client.result("ping") == {}
    if "mkdir" in obstacle:
        eventually(lambda: "did not read its answer" in client.wire.stderr)
        project.write("go", "")

    assert text_of(client.wire.response(id)["result"]) == "done"


def test_a_file_in_the_place_of_the_directory_does_no_harm(
    project: ProjectBuilder, start: Start, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    client = start(tmp_root=scratch).greeted()
    project.tool("odd", 'rm -r "$MCPBASH_STATE_DIR"; : > "$MCPBASH_STATE_DIR"; echo done')
    project.tool("where", 'echo said > "$MCP_TOOL_ERROR_FILE"; echo "${MCP_TOOL_ERROR_FILE%/*}"')

    assert text_of(client.call_tool("odd")) == "done\n"
    error = client.error("tools/call", {"name": "where"})
    assert (error["code"], error["data"]) == (-32603, "said\n")


def test_a_call_that_is_cancelled_while_it_asks_between_two_runs_leaves_no_file(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    printed = '{"resultType":"input_required","inputRequests":{"who":' + json.dumps(NAME) + "}}"
    project.tool("printing", f"echo '{printed}'")
    client = speak(capabilities=FORM, env={"TMPDIR": str(scratch)})
    id = client.start_tool("printing")
    client.asked("elicitation/create")
    client.wire.notify("notifications/cancelled", {"requestId": id})
    client.result("tools/list")

    assert [name for directory in scratch.iterdir() for name in os.listdir(directory)] == []


def state_dir_of(project: ProjectBuilder, client: Wire) -> Path:
    project.tool("where", 'printf %s "$MCPBASH_STATE_DIR"')
    return Path(text_of(client.call_tool("where")))


def test_a_tree_deeper_than_our_stack_does_not_outlive_the_server(project: ProjectBuilder, client: Wire) -> None:
    """It was left behind, and the server ended with a traceback and status 1."""
    deep = "import os\nos.mkdir(os.environ['MCP_TOOL_ERROR_FILE'])\nos.chdir(os.environ['MCP_TOOL_ERROR_FILE'])\n"
    project.python_tool("deep", deep + "for _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n")
    client.request("tools/call", {"name": "deep"})
    place = state_dir_of(project, client)

    assert client.stop() == 0
    assert "Traceback" not in client.stderr
    eventually(lambda: not place.exists())


def test_a_crowded_directory_does_not_slow_down_other_calls(project: ProjectBuilder, client: Wire) -> None:
    project.tool("crowd", 'cd "$MCPBASH_STATE_DIR" && seq 6000 | xargs touch')
    project.tool("fails", """echo '{"code": -32050, "message": "chosen"}' > "$MCP_TOOL_ERROR_FILE"; exit 1""")
    client.call_tool("crowd")

    assert client.error("tools/call", {"name": "fails"})["message"] == "chosen"
    assert client.error("tools/call", {"name": "fails"})["message"] == "chosen"
    place = state_dir_of(project, client)
    assert not list(place.glob("call.*"))
    assert client.stop() == 0
    eventually(lambda: not place.exists())


def test_a_tree_is_removed_while_the_server_runs_even_if_it_is_shut(project: ProjectBuilder, client: Wire) -> None:
    leave = 'mkdir -p "$tree/shut/shut/shut" && touch "$tree/shut/shut/shut/file"'
    shut = 'chmod 0 "$tree/shut/shut/shut" "$tree/shut/shut" "$tree/shut"'
    project.tool("leave", f"tree=${{MCP_TOOL_ERROR_FILE%error.json}}tree; {leave}; {shut}")
    client.call_tool("leave")
    place = state_dir_of(project, client)

    eventually(lambda: os.listdir(place) == [])
    assert client.stop() == 0
    assert not place.exists()
