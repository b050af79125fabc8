"""`mcpgreen validate`, and `mcpgreen registry`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import mcpgreen
from tests.support.project import ProjectBuilder

SCHEMA = {"type": "object", "properties": {}}
SLOW_SCHEMA = {"type": "object", "properties": {"mail": {"type": "string", "pattern": "^([a-z]+[.]?)+@"}}}


def findings(project: ProjectBuilder, *flags: str, **options: Any) -> tuple[int, Any]:
    """Exit status and report."""
    done = mcpgreen("validate", "--json", "--project-root", str(project.root), *flags, **options)
    return done.returncode, json.loads(done.stdout)


def said(report: Any, level: str) -> list[str]:
    return [message["message"] for message in report["messages"] if message["level"] == level]


def good_tool(project: ProjectBuilder, name: str = "greet") -> Path:
    return project.tool(name, "echo hi", description="Greets", inputSchema=SCHEMA)


def test_a_good_project_has_nothing_to_mend(project: ProjectBuilder) -> None:
    good_tool(project)
    project.prompt("letter.txt", "Dear {{name}}", description="A letter", arguments=[{"name": "name"}])
    project.resource("note.txt", "note")
    status, report = findings(project, "--strict")

    assert status == 0
    messages = report.pop("messages")
    assert report == {
        "projectRoot": str(project.root),
        "errors": 0,
        "warnings": 0,
        "fixesApplied": 0,
        "strict": True,
        "defaults": {"name": "project", "title": "Project", "version": "0.0.0"},
    }
    assert [message.pop("code") for message in messages] == ["ok"] * 4
    assert messages == [
        {
            "level": "ok",
            "section": "server",
            "message": "server.d/server.meta.json",
            "file": "server.d/server.meta.json",
        },
        {"level": "ok", "section": "tools", "message": "tool greet", "file": "tools/greet.meta.json"},
        {"level": "ok", "section": "resources", "message": "resource note", "file": "resources/note.txt"},
        {"level": "ok", "section": "prompts", "message": "prompt letter", "file": "prompts/letter.meta.json"},
    ]


def test_nothing_is_written(project: ProjectBuilder) -> None:
    good_tool(project).chmod(0o644)
    findings(project)

    assert sorted(path.name for path in project.root.iterdir()) == ["server.d", "tools"]
    assert (project.root / "tools" / "greet").stat().st_mode & 0o111 == 0


@pytest.mark.parametrize(
    ("content", "level", "message"),
    [
        ("{", "error", "not valid JSON"),
        ("[]", "error", "must be an object"),
        ('{"title": "x"}', "error", "name is missing"),
        ('{"name": "x", "title": 5}', "warning", "title must be a string"),
        ('{"name": "x", "icons": 5}', "warning", "icons must be an array"),
        ('{"name": "x", "icons": [{"mimeType": "image/png"}]}', "warning", "icon"),
        (None, "warning", "missing, so defaults are used"),
    ],
)
def test_the_server_is_described(project: ProjectBuilder, content: str | None, level: str, message: str) -> None:
    if content is None:
        project.remove("server.d/server.meta.json")
    else:
        project.write("server.d/server.meta.json", content)
    status, report = findings(project)

    (sentence,) = said(report, level)
    assert sentence.startswith("server.d/server.meta.json: ")
    assert message in sentence
    assert status == (1 if level == "error" else 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "a.b", "description": "x", "inputSchema": SCHEMA}, "some clients only accept names"),
        ({"name": "a", "inputSchema": SCHEMA}, "no description"),
        ({"name": "a", "description": "x"}, "no inputSchema"),
        ({"name": "a", "description": "x", "inputSchema": SLOW_SCHEMA}, "a pattern with nested repeats"),
        ({"name": "a", "description": "x", "arguments": SCHEMA, "annotations": {"readOnlyHint": 5}}, "readOnlyHint"),
        ({"name": "a", "description": "x", "arguments": SCHEMA, "icons": [{"src": "no.png"}]}, "an icon is left out"),
        ({"name": "a", "descripton": "x", "description": "y", "arguments": SCHEMA}, "did you mean description?"),
    ],
)
def test_a_tool_could_be_better(project: ProjectBuilder, fields: Any, message: str) -> None:
    project.tool("a", "echo", meta=fields)
    status, report = findings(project)

    assert (status, said(report, "error")) == (0, [])
    (warning,) = said(report, "warning")
    assert message in warning
    assert findings(project, "--strict")[0] == 1


def bad_description(project: ProjectBuilder) -> None:
    project.tool("a", "echo", inputSchema=[])


def lonely_description(project: ProjectBuilder) -> None:
    project.write("tools/a.meta.json", "{}")


def same_name(project: ProjectBuilder) -> None:
    good_tool(project)
    project.tool("other", "echo", meta={"name": "greet", "description": "x", "inputSchema": SCHEMA})


def open_to_others(project: ProjectBuilder) -> None:
    good_tool(project).chmod(0o777)


def bad_prompt(project: ProjectBuilder) -> None:
    project.prompt("a.txt", "text", arguments=5)


def bad_resource(project: ProjectBuilder) -> None:
    project.resource("a.txt", "text", uri=5)


def both_addresses(project: ProjectBuilder) -> None:
    project.described("a", uri="echo://x", uriTemplate="echo://{x}")


def bad_page(project: ProjectBuilder) -> None:
    project.write("ui/a/ui.meta.json", '{"template": "no-such"}')


def bad_registered(project: ProjectBuilder) -> None:
    tools = [{"name": "a", "path": "absent.sh"}]
    project.write("server.d/register.json", json.dumps({"version": 1, "tools": tools})).chmod(0o644)


def bad_registration(project: ProjectBuilder) -> None:
    project.write("server.d/register.json", '{"version": 2}').chmod(0o644)


def open_policy(project: ProjectBuilder) -> None:
    project.write("server.d/policy.sh", "").chmod(0o666)


@pytest.mark.parametrize(
    "break_it",
    [
        bad_description,
        lonely_description,
        same_name,
        open_to_others,
        bad_prompt,
        bad_resource,
        both_addresses,
        bad_page,
        bad_registered,
        bad_registration,
        open_policy,
    ],
)
def test_what_will_not_be_served_is_an_error(project: ProjectBuilder, break_it: Any) -> None:
    break_it(project)
    status, report = findings(project)

    assert (status, report["errors"]) == (1, 1), report["messages"]


def test_described_scripts_are_made_executable(project: ProjectBuilder) -> None:
    good_tool(project).chmod(0o644)
    project.write("tools/library.sh", "# sourced by others\n").chmod(0o644)
    project.write("tools/greet.txt", "#\n").chmod(0o644)
    assert "greet is not executable" in str(said(findings(project)[1], "warning"))
    status, report = findings(project, "--fix")

    assert (status, report["fixesApplied"]) == (0, 1)
    assert (project.root / "tools" / "greet").stat().st_mode & 0o777 == 0o755
    for name in ("library.sh", "greet.txt"):
        assert (project.root / "tools" / name).stat().st_mode & 0o777 == 0o644
    assert "tools/greet: made executable" in said(report, "info")
    assert findings(project, "--fix")[1]["fixesApplied"] == 0


def registry(project: ProjectBuilder, *arguments: str) -> tuple[int, str]:
    done = mcpgreen("registry", *arguments, "--project-root", str(project.root))
    return done.returncode, done.stdout


def test_the_status_tells_what_the_files_hold(project: ProjectBuilder) -> None:
    good_tool(project)
    project.write("ui/page/index.html", "<!DOCTYPE html>")
    before = json.loads(registry(project, "status")[1])
    assert {before[kind]["status"] for kind in ("tools", "resources", "prompts", "ui")} == {"missing"}
    registry(project, "refresh", "--quiet")
    status, printed = registry(project, "status")
    report = json.loads(printed)

    assert (status, report["projectRoot"]) == (0, str(project.root))
    tools = json.loads(project.read(".registry/tools.json"))
    path = project.root / ".registry" / "tools.json"
    assert report["tools"] == {
        "status": "present",
        "path": str(path),
        "count": 1,
        "hash": tools["hash"],
        "mtime": int(path.stat().st_mtime),
    }
    assert report["ui"]["count"] == 1


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_file_that_is_no_registry_is_no_reason_to_fail(project: ProjectBuilder, content: str) -> None:
    project.write(".registry/tools.json", content)
    status, printed = registry(project, "status")

    assert (status, json.loads(printed)["tools"]["status"]) == (0, "unreadable")
