"""Tools that are described wrongly: they cost themselves, never the list."""

from __future__ import annotations

import json

import pytest

from tests.support.client import ALL_REVISIONS, Client, Json, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually

BAD_METADATA = {
    "no-json": ("{", "not valid JSON"),
    "no-object": ("[]", "must be an object"),
    "bad-name": (json.dumps({"name": "no spaces allowed"}), "name"),
    "bad-description": (json.dumps({"description": 5}), "description"),
    "bad-schema": (json.dumps({"inputSchema": []}), "inputSchema"),
    "bad-root": (json.dumps({"inputSchema": {"type": "array"}}), "object"),
    "bad-required": (json.dumps({"inputSchema": {"type": "object", "required": "x"}}), "required"),
    "bad-need": (json.dumps({"needs": [{"elicitation": "form"}]}), "needs must be an array of"),
    "bad-ceiling": (json.dumps({"maxConcurrent": True}), "maxConcurrent must be a positive integer"),
    "endless": (json.dumps({"timeoutSecs": 10**400}), "timeoutSecs"),
    "bad-timeout": (json.dumps({"timeoutSecs": "soon"}), "timeoutSecs"),
}
BAD_SCHEMAS: dict[str, Json] = {
    "unknown-type": {"type": "object", "properties": {"a": {"type": "strnig"}}},
    "bad-pattern": {"type": "object", "properties": {"a": {"pattern": "("}}},
    "unknown-dialect": {"type": "object", "$schema": "https://example.com/no-such-dialect"},
    "network-reference": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    "dangling-reference": {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}},
}
GOOD = {"good", "any-output", "no-output"}


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    shared_project.tool("good", "echo")
    shared_project.tool("any-output", "echo 1", outputSchema=True)
    shared_project.tool("no-output", "echo 1", outputSchema=False)
    for name, (meta, _) in BAD_METADATA.items():
        shared_project.tool(name, "touch ran")
        shared_project.write(f"tools/{name}.meta.json", meta)
    for name, schema in BAD_SCHEMAS.items():
        shared_project.tool(f"in-{name}", "touch ran", inputSchema=schema)
        shared_project.tool(f"out-{name}", "touch ran", outputSchema=schema)


def warnings_about(client: Client, name: str) -> list[str]:
    client.tools()
    return eventually(lambda: [line for line in client.wire.stderr.splitlines() if f"{name}.meta.json" in line])


@pytest.mark.requirement("P-002", "P-102", "G-bad-metadata")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_only_sound_tools_are_listed(shared_speak: Speak, revision: str) -> None:
    """Nor does a boolean outputSchema ever stand on the wire: official clients reject the whole list for it."""
    assert set(shared_speak(revision).tools()) == GOOD


@pytest.mark.requirement("G-bad-metadata")
@pytest.mark.parametrize("name", BAD_METADATA)
def test_a_warning_names_the_file_and_the_reason(shared_speak: Speak, name: str) -> None:
    (warning,) = warnings_about(shared_speak(), name)

    assert BAD_METADATA[name][1] in warning


@pytest.mark.requirement("P-101", "P-102", "P-103")
@pytest.mark.parametrize("member", ["in", "out"])
@pytest.mark.parametrize("name", BAD_SCHEMAS)
def test_a_warning_names_the_tool_with_an_unusable_schema(shared_speak: Speak, member: str, name: str) -> None:
    (warning,) = warnings_about(shared_speak(), f"{member}-{name}")

    assert f"{member}putSchema" in warning


@pytest.mark.requirement("P-103", "P-114")
@pytest.mark.parametrize("name", ["no-json", "in-network-reference", "out-unknown-type"])
def test_a_faulty_tool_does_not_run(shared_project: ProjectBuilder, shared_speak: Speak, name: str) -> None:
    assert shared_speak().error("tools/call", {"name": name})["code"] == -32602
    assert not (shared_project.root / "ran").exists()
