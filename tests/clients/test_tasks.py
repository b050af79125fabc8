"""Tasks as real clients use them: the TypeScript SDK 1.x and the Inspector on the older wire, FastMCP on the extension.
Each creates tasks, looks at them, gets a result, answers a question and cancels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients import scenario
from tests.clients.test_inspector import printed
from tests.support.http import Serve
from tests.support.prerequisites import require_fastmcp, require_inspector
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK
from tests.support.wire import text_of
from tests.tasks.clients import WITH_TASKS, begin

FASTMCP = Path(__file__).parent / "fastmcp_tasks_driver.py"
ASKS = f"{ASK}\nprint('Hello', ask({{'who': form('Who?', name=TEXT)}})['who']['result']['content']['name'], end='')"


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    project = ProjectBuilder(tmp_path / "project")
    project.tool("slow", "sleep 0.5; printf done", task="always")
    project.python_tool("asker", ASKS, task="always")
    project.tool("endless", "sleep 1000", task="always")
    project.tool("silent", "printf plain")
    return project


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_typescript_client_of_the_older_wire(
    project: ProjectBuilder, drivers: Path, serve: Serve, way: str
) -> None:
    report = scenario.driven(drivers / "tasks1.mjs", "default", project, url=serve().url if way == "http" else None)

    optional = dict.fromkeys(("slow", "asker", "endless"), "optional")
    assert report["support"] == {**optional, "silent": None}
    assert report["slow"][0] == "working" and text_of(report["slow"][-1]) == "done"
    assert "input_required" in report["asker"] and text_of(report["asker"][-1]) == "Hello Zoe"
    assert (report["polled"], report["cancelled"], report["listed"]) == ("working", "cancelled", 3)


def test_the_fastmcp_client_of_the_extension(project: ProjectBuilder) -> None:
    python = require_fastmcp()
    command = [python, str(FASTMCP), *scenario.server_command(project)]
    run = completed(command, env=scenario.server_environment(), timeout=60)
    report: Any = json.loads(run.stdout)

    seen = {"slow": "done", "asker": "Hello Zoe", "silent": "plain", "polled": "working", "cancelled": "cancelled"}
    assert report == seen, run.stderr


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_on_both_wires(project: ProjectBuilder, serve: Serve, tmp_path: Path, era: str) -> None:
    _, launcher = require_inspector()
    program = launcher.parents[2] / "mcpdo" / "build" / "mcp-bin.js"
    server = serve()

    def do(*words: str, status: int = 0) -> Any:
        return printed(program, tmp_path, "--format", "json", "--connection", "here", *words, status=status)

    try:
        do("connect", "--era", era, "--elicit", "both", server.url)
        slow = do("tools/call", "slow", "--task")
        asked = do("tools/call", "asker", "--task")["elicitationPending"]["elicitationId"]
        answered = do("elicitation/respond", asked, "name:=Zoe")
        if era == "modern":  # a session would have tasks of its own, and the Inspector waits for its calls
            task = begin(server.stateless(capabilities=WITH_TASKS), "endless")["taskId"]
            seen = [do("tasks/get", task), do("tasks/cancel", task), do("tasks/get", task)]
            assert ["working" in json.dumps(seen[0]), "cancelled" in json.dumps(seen[2])] == [True, True]
        else:
            assert [task["status"] for task in do("tasks/list")["tasks"]] == ["completed"] * 2
    finally:
        printed(program, tmp_path, "--format", "json", "daemon", "stop")

    assert (text_of(slow), text_of(answered)) == ("done", "Hello Zoe")
