"""The command line of the Inspector, over HTTP, in each era that it can be told to speak; and its sibling that keeps a
connection, and so can be asked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import asking, scenario
from tests.support.http import HttpServer
from tests.support.prerequisites import require_inspector
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

PATIENCE_SECS = 60.0
ERAS = ("legacy", "auto", "modern")
TOOL_FAILED = 5  # its exit status
TOKEN = "a-token-that-is-long-enough-to-be-one"

Inspect = Callable[..., Any]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectBuilder:
    return scenario.build(tmp_path_factory.mktemp("inspector") / "project")


@pytest.fixture(scope="module")
def server(project: ProjectBuilder) -> Iterator[HttpServer]:
    with HttpServer(project.root) as server:
        yield server


@pytest.fixture
def inspect(server: HttpServer, tmp_path: Path) -> Inspect:
    """In the stateless era, unless told otherwise; if told nothing, the Inspector itself shakes hands."""
    return lambda *words, era="modern", status=0: inspected(
        server.url, tmp_path, "--protocol-era", era, *words, status=status
    )["result"]


def inspected(url: str, home: Path, *words: str, status: int = 0) -> Any:
    """What it prints."""
    _, program = require_inspector()
    options = ("--cli", url, "--transport", "http", "--format", "json")
    return printed(program, home, *options, *words, status=status)


def printed(program: Path, home: Path, *words: str, status: int = 0) -> Any:
    """By one of its programs, as JSON."""
    node, _ = require_inspector()
    run = completed(
        [node, str(program), *words],
        env={
            "HOME": str(home),
            "PATH": f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}",
            "MCP_INSPECTOR_SECRET_STORE": "file",
        },
        timeout=PATIENCE_SECS,
    )
    assert run.returncode == status and run.stdout, (run.returncode, run.stderr)
    return json.loads(run.stdout)


def test_tools_are_listed(inspect: Inspect) -> None:
    assert [tool["name"] for tool in inspect("--method", "tools/list")["tools"]] == scenario.TOOLS


@pytest.mark.requirement("G-http-clients")
@pytest.mark.parametrize("era", ERAS)
def test_a_tool_is_called(inspect: Inspect, era: str) -> None:
    """What differs between eras is there in one call; each start of the Inspector takes half a second."""
    result = inspect("--method", "tools/call", "--tool-name", "greet", "--tool-arg", "name=Zoë", era=era)

    assert text_of(result) == "Hello Zoë"


def test_a_tool_that_fails_is_an_error_result(inspect: Inspect) -> None:
    result = inspect("--method", "tools/call", "--tool-name", "broken", status=TOOL_FAILED)

    assert result["isError"]
    assert "the disk is on fire" in text_of(result)


def test_skills_are_what_their_entries_say(tmp_path: Path) -> None:
    project = ProjectBuilder(tmp_path / "project")
    project.skill("refunds", license="MIT", metadata={"since": "2026-01-02"})
    with HttpServer(project.root) as server:
        report = inspected(server.url, tmp_path, "--protocol-era", "modern", "--method", "skills/list", "--verify")

    assert (report["ok"], report["frontmatter"], report["conformance"]) == (True, [], [])
    assert [each["actualDigest"] == each["expectedDigest"] for each in report["files"]] == [True]


def test_a_token_lets_it_in(project: ProjectBuilder, tmp_path: Path) -> None:
    with HttpServer(project.root, http_token=TOKEN) as server:
        result = inspected(
            server.url, tmp_path, "--method", "tools/list", "--header", f"Authorization: Bearer {TOKEN}"
        )["result"]

    assert [tool["name"] for tool in result["tools"]] == scenario.TOOLS


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_connection_that_is_kept_can_be_asked(tmp_path: Path, era: str) -> None:
    """One process calls, another answers, a third keeps the connection."""
    project = asking.build(tmp_path / "project")
    _, launcher = require_inspector()
    program = launcher.parents[2] / "mcpdo" / "build" / "mcp-bin.js"
    options = ("--format", "json", "--connection", "here")

    with HttpServer(project.root) as server:
        try:
            connected = printed(program, tmp_path, *options, "connect", "--era", era, "--elicit", "both", server.url)
            asked = printed(program, tmp_path, *options, "tools/call", "order")["elicitationPending"]
            reply = ("elicitation/respond", asked["elicitationId"], "confirmed:=true")
            result = printed(program, tmp_path, *options, *reply)
        finally:
            printed(program, tmp_path, "--format", "json", "daemon", "stop")

    assert (connected["protocolEra"], asked["message"]) == (era, "Keep the order?")
    assert "kept" in json.dumps(result)
    assert project.read("orders") == "ordered\n"
