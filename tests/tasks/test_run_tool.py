"""`run-tool --task`: the same result as without it, and Ctrl-C leaves the task running."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_commands import run_tool
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, form
from tests.support.wire import MODERN, clean_environment, text_of
from tests.tasks.clients import GO, WITH_TASKS, ended, get


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


CASES = {
    "says": "printf hello",
    "fails": "echo broken >&2; exit 3",
    "quotes": """echo '{"value": 1}'""",
    "refuses": 'source "$MCP_SDK/tool-sdk.sh"; mcp_fail -32602 "not today"',
}


@pytest.mark.parametrize("tool", CASES)
def test_the_result_is_the_same_as_without_it(tool: str, project: ProjectBuilder) -> None:
    project.tool(tool, CASES[tool])
    plain, task = (run_tool(project, tool, "--json", *flags) for flags in ([], ["--task"]))
    assert (task.returncode, task.stdout) == (plain.returncode, plain.stdout), task.stderr


def test_progress_is_shown_and_questions_are_answered(project: ProjectBuilder) -> None:
    question = form("Who?", name={"type": "string"})
    body = f"{ASK}\nimport time\ncontrol({{'progress': {{'progress': 1, 'total': 4, 'message': 'asking'}}}})\n"
    body += f"time.sleep(1.5)\nprint(ask({{'who': {question!r}}})['who']['result']['content']['name'])"
    project.python_tool("asks", body, task="always")
    done = run_tool(project, "asks", "--task", "--plain", "--answer", "name=Ada")
    assert (done.returncode, done.stdout) == (0, "Ada\n")
    assert "25/100 asking" in done.stderr


def test_options_of_the_command_count_for_the_task_too(project: ProjectBuilder) -> None:
    project.tool("where", 'printf "%s" "$MCP_ROOTS_PATHS"; exit 4')
    project.write("server.d/env", "MCPGREEN_TOOL_ALLOW_DEFAULT=deny\n")
    done = run_tool(project, "where", "--task", "--json", "--allow-self", "--roots", "/usr,/opt")
    result = json.loads(done.stdout)
    assert (done.returncode, result["_meta"]["exitCode"]) == (1, 4)
    assert "/usr" in str(result) and "/opt" in str(result)


def test_ctrl_c_leaves_the_task_running_and_says_how_to_come_back(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("slow", f'source "$MCP_SDK/tool-sdk.sh"; sleep 1; mcp_progress 25 waiting; {GO}; printf done')
    words = ["run-tool", "slow", "--task", "--plain", "--project-root", str(project.root)]
    command = [sys.executable, "-m", "mcpgreen", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=clean_environment(), stdout=pipe, stderr=pipe, start_new_session=True) as child:
        try:
            assert child.stderr is not None and child.stderr.readline() == b"25/100 waiting\n"
            child.send_signal(signal.SIGINT)
            said = child.communicate(timeout=10)[1].decode()
            assert child.returncode == 130
            (task_id,) = re.findall("mcpgreen tasks show ([0-9a-f]{32})", said)
            task, client = {"taskId": task_id}, speak(MODERN, capabilities=WITH_TASKS)
            assert get(client, task)["status"] == "working"
        finally:
            project.write("go", "")
            child.kill()
    assert text_of(ended(client, task)["result"]) == "done"
