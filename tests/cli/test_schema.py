"""`mcpgreen schema`: what editors are told about our files is what the readers accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcpgreen.catalog import prompts, resources, tools
from mcpgreen.catalog.apps import resources as pages
from mcpgreen.catalog.descriptions.metadata import ANNOTATION_RULES, Rule
from mcpgreen.catalog.manual.registration import KINDS
from mcpgreen.cli.schema import FILES
from mcpgreen.project.project import TEXT_FIELDS
from scripts.file_schemas import schema_of
from tests.cli.checking.correct_project import GREET, correct_project, described, faults_in, linted, validated
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import CHECKOUT

TEMPLATES = CHECKOUT / "mcpgreen" / "templates" / "items"
OUR_FILES = [
    (CHECKOUT / "project/server.d/server.meta.json", "server"),
    *((path, "tool") for path in (CHECKOUT / "project/tools").rglob("*.meta.json")),
    *((path, "resource") for path in (CHECKOUT / "project/resources").rglob("*.meta.json")),
    *((path, "prompt") for path in (CHECKOUT / "project/prompts").rglob("*.meta.json")),
    (TEMPLATES / "prompt.meta.json", "prompt"),
    (TEMPLATES / "resource.meta.json", "resource"),
    (TEMPLATES / "template.meta.json", "resource"),
    (TEMPLATES / "ui.meta.json", "app"),
]
KNOWN = {
    "tool": tools.KNOWN_FIELDS,
    "prompt": prompts.KNOWN_FIELDS,
    "resource": resources.KNOWN_FIELDS,
    "app": frozenset(pages.FIELD_RULES),
    "register": frozenset({*KINDS, "version", "_meta"}),
    "server": frozenset({*TEXT_FIELDS, "icons"}),
    "test": frozenset({"tool", "environment", "client", "tests"}),
}
VALUES: list[Any] = [
    *("", "text", "two words", "auto", "park", "all", "user", "2025-01-12T15:00:58Z"),
    *(0, 1, -1, 2.5, 10**12, True, False),
    *([], ["user"], ["roots"], ["x"], [1], [{"name": "x", "content": "y"}], {}, {"a": 1}),
]
RULES: dict[str, Rule] = {
    **{f"tool.{name}": rule for name, rule in tools.FIELD_RULES.items()},
    **{f"resource.{name}": rule for name, rule in resources.FIELD_RULES.items()},
    **{f"page.{name}": rule for name, rule in pages.FIELD_RULES.items()},
    **{f"annotations.{name}": rule for name, rule in ANNOTATION_RULES.items()},
}
# What JSON Schema cannot say, or editors do not check, is told by `validate`.
LOOSER = {"resource.provider", "annotations.lastModified"}


def problems_of(kind: str, value: Any) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(schema_of(kind)).iter_errors(value)]


@pytest.mark.parametrize(("path", "kind"), OUR_FILES, ids=lambda value: value if isinstance(value, str) else value.stem)
def test_our_own_files_satisfy_their_schemas(path: Path, kind: str) -> None:
    text = path.read_text(encoding="utf-8").replace("@NAME@", "name")
    assert problems_of(kind, json.loads(text)) == []


@pytest.mark.parametrize("kind", FILES)
def test_a_schema_knows_the_fields_that_the_reader_knows(kind: str) -> None:
    jsonschema.Draft7Validator.check_schema(schema_of(kind))
    assert schema_of(kind)["properties"].keys() == KNOWN[kind] | {"$schema"}


@pytest.mark.parametrize("name", RULES)
def test_a_schema_accepts_what_the_reader_accepts(name: str) -> None:
    rule = RULES[name]
    validator = jsonschema.Draft7Validator(dict(rule.schema))
    for value in VALUES:
        if name not in LOOSER or rule.accepts(value):
            assert validator.is_valid(value) == rule.accepts(value), value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("tool", {"name": "two words"}),
        ("tool", {"timeoutSecs": "soon"}),
        ("tool", {"inputSchema": {"type": "strin"}}),
        ("tool", {"annotations": {"readOnlyHint": "yes"}}),
        ("prompt", {"messages": []}),
        ("resource", {"size": -1}),
        ("app", {"meta": {"prefersBorder": 1}}),
        ("register", {"tools": []}),
        ("register", {"version": 1, "tool": []}),
        ("register", {"version": 1, "tools": [{"name": "x"}]}),
        ("server", {}),
        ("server", {"name": 5}),
    ],
)
def test_what_the_reader_refuses_is_marked(kind: str, value: Any) -> None:
    assert problems_of(kind, value)


def test_a_description_may_name_its_schema(tmp_path: Path) -> None:
    project = correct_project(tmp_path / "project")
    described(project, "tools/greet", {"$schema": "../x.schema.json", **GREET})
    project.write("server.d/register.json", '{"$schema": "x", "version": 1, "completions": []}').chmod(0o644)

    assert faults_in(validated(project)) == []
    assert faults_in(linted(project)) == []


def test_no_client_and_no_script_sees_the_schema(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("show", 'printf %s "$MCP_TOOL_METADATA_JSON"', meta={"$schema": "x", "description": "Shows"})
    client = speak()

    assert "$schema" not in client.tools()["show"]
    assert "$schema" not in client.call_tool("show")["structuredContent"]
