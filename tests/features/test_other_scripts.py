"""Scripts that are no tools: programs of prompts, completions and providers are bounded and stopped as tools are."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import MODERN, Json


class Kind(NamedTuple):
    """The file of such a script, the request that runs it, and how messages begin that are about it."""

    file: str
    method: str
    params: Json
    name: str


COMPLETED: Json = {"ref": {"type": "ref/prompt", "name": "it"}, "argument": {"name": "colour", "value": ""}}
KINDS = {
    "prompt": Kind("prompts/it.sh", "prompts/get", {"name": "it"}, "Prompt 'it'"),
    "completion": Kind("prompts/it.completion", "completion/complete", COMPLETED, "Completion 'it'"),
    "provider": Kind("providers/it.sh", "resources/read", {"uri": "it://x"}, "Resource provider 'it'"),
}


def made(project: ProjectBuilder, kind: str, script: str, **fields: Any) -> Kind:
    if kind == "completion":
        project.prompt("it.txt", "{{colour}}")
    project.program(KINDS[kind].file, script)
    if fields:
        project.write("prompts/it.meta.json", json.dumps(fields))
    return KINDS[kind]


@pytest.mark.requirement("G-providers", "P-142")
@pytest.mark.parametrize(
    ("kind", "settings", "fields", "more", "secs"),
    [
        ("prompt", {"default_tool_timeout": 1}, {}, {}, "1"),
        ("prompt", {}, {"timeoutSecs": 0.3}, {}, "0.3"),
        ("prompt", {}, {}, {"timeoutSecs": 0.3}, "0.3"),
        ("completion", {"resource_timeout_secs": 1}, {}, {}, "1"),
        ("completion", {}, {}, {"timeoutSecs": 0.3}, "0.3"),
        ("provider", {"resource_timeout_secs": 0.3}, {}, {}, "0.3"),
    ],
    ids=["prompt by setting", "by description", "by request", "completion by setting", "by request", "provider"],
)
def test_one_past_its_time_is_stopped_with_its_children(
    project: ProjectBuilder, speak: Speak, kind: str, settings: Json, fields: Json, more: Json, secs: str
) -> None:
    it = made(project, kind, "sleep 600 & echo $! $$ > pids; wait", **fields)
    error = speak(**settings).error(it.method, {**it.params, **more})

    assert error == {"code": -32603, "message": f"{it.name} timed out after {secs}s"}
    eventually(lambda: not any(map(is_alive, project.read("pids").split())))


@pytest.mark.requirement("G-providers", "G-cancel-tree", "P-261")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_one_is_gone_and_gets_no_answer(
    project: ProjectBuilder, speak: Speak, kind: str, revision: str
) -> None:
    it = made(project, kind, "sleep 600 & echo $! $$ > pids.new; mv pids.new pids; wait")
    client = speak(revision)
    id = client.start(it.method, it.params)
    pids = eventually(lambda: (project.root / "pids").exists() and project.read("pids").split())
    client.wire.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: not any(map(is_alive, pids)))
    client.result("prompts/list")
    assert not [message for message in client.wire.seen if message.get("id") == id]


@pytest.mark.requirement("P-142")
@pytest.mark.parametrize("kind", ["prompt", "completion"])
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo half; echo 'no network' >&2; exit 3", "failed: no network"),
        ("exit 3", "failed: exit code 3"),
        ("kill -9 $$", "failed: killed by SIGKILL"),
    ],
)
def test_one_that_fails_is_an_error_with_the_reason(
    project: ProjectBuilder, speak: Speak, kind: str, script: str, reason: str
) -> None:
    it = made(project, kind, script)
    error = speak().error(it.method, it.params)

    assert (error["code"], error["message"].startswith(f"{it.name} {reason}")) == (-32603, True)


@pytest.mark.requirement("P-142")
@pytest.mark.parametrize("kind", ["prompt", "completion"])
def test_one_sees_no_foreign_variables(project: ProjectBuilder, speak: Speak, kind: str) -> None:
    it = made(project, kind, "env > env; echo '[]'")
    speak(env={"API_SECRET": "hush", "MCPGREEN_STATE_KEY": "hush-hush", "MCP_SEEN": "yes"}).result(it.method, it.params)

    assert "hush" not in project.read("env")
    assert "MCP_SEEN=yes" in project.read("env")
