"""The command line of the Inspector, over HTTP, in each era that it can be told to speak."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import scenario
from tests.support.http import HttpServer
from tests.support.prerequisites import require_inspector
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

PATIENCE_SECS = 60.0
ERAS = ("legacy", "auto", "modern")
TOKEN = "a-token-that-is-long-enough-to-be-one"

Inspect = Callable[..., Any]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectBuilder:
    return scenario.build(tmp_path_factory.mktemp("inspector") / "project")


@pytest.fixture(scope="module")
def server(project: ProjectBuilder) -> Iterator[HttpServer]:
    with HttpServer(project.root) as server:
        yield server


@pytest.fixture(params=ERAS)
def inspect(request: pytest.FixtureRequest, server: HttpServer, tmp_path: Path) -> Inspect:
    return lambda *words: inspected(server.url, tmp_path, "--protocol-era", request.param, *words)["result"]


def inspected(url: str, home: Path, *words: str) -> Any:
    """What it prints."""
    node, program = require_inspector()
    run = subprocess.run(
        [node, str(program), "--cli", url, "--transport", "http", "--format", "json", *words],
        env={"HOME": str(home), "PATH": f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_SECS,
    )
    assert run.stdout, run.stderr
    return json.loads(run.stdout)


def test_tools_are_listed(inspect: Inspect) -> None:
    assert [tool["name"] for tool in inspect("--method", "tools/list")["tools"]] == scenario.TOOLS


@pytest.mark.requirement("G-http-clients")
def test_a_tool_is_called(inspect: Inspect) -> None:
    result = inspect("--method", "tools/call", "--tool-name", "greet", "--tool-arg", "name=Zoë")

    assert text_of(result) == "Hello Zoë"


def test_a_tool_that_fails_is_an_error_result(inspect: Inspect) -> None:
    result = inspect("--method", "tools/call", "--tool-name", "broken")

    assert result["isError"]
    assert "the disk is on fire" in text_of(result)


def test_a_resource_is_read(inspect: Inspect, project: ProjectBuilder) -> None:
    result = inspect("--method", "resources/read", "--uri", scenario.uri_of(project, "letter.txt"))

    assert result["contents"][0]["text"] == "Dear Zoë\n"


def test_a_prompt_is_got(inspect: Inspect) -> None:
    arguments = ("guest=Zoë", "tone=funny")

    result = inspect("--method", "prompts/get", "--prompt-name", "invite", "--prompt-args", *arguments)

    assert result["messages"][0]["content"]["text"] == "Write a funny invitation for Zoë."


def test_the_handshake_is_shown(server: HttpServer, tmp_path: Path) -> None:
    result = inspected(server.url, tmp_path, "--method", "initialize")["result"]

    assert result["protocolVersion"] == "2025-11-25"
    assert result["serverInfo"]["name"] == "test-project"


def test_a_level_of_the_log_is_set(server: HttpServer, tmp_path: Path) -> None:
    assert inspected(server.url, tmp_path, "--method", "logging/setLevel", "--log-level", "debug") == {"result": {}}


def test_a_token_lets_it_in(project: ProjectBuilder, tmp_path: Path) -> None:
    with HttpServer(project.root, http_token=TOKEN) as server:
        result = inspected(
            server.url, tmp_path, "--method", "tools/list", "--header", f"Authorization: Bearer {TOKEN}"
        )["result"]

    assert [tool["name"] for tool in result["tools"]] == scenario.TOOLS
