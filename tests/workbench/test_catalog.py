"""What the page shows of a project, and what can be taken along from a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpgreen.catalog.descriptions.yaml_text import value_of
from mcpgreen.cli.testing.files import save_test
from mcpgreen.cli.workbench.door import app_policy
from mcpgreen.errors import UsageError
from tests.cli.test_commands import mcpgreen
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.workbench.dev_server import Dev

HTML = "<!doctype html><title>Board</title>"


def names(items: list[Any]) -> list[str]:
    return [each["definition"]["name"] for each in items]


def test_the_catalog_has_files_tokens_findings_and_what_is_left_out(project: ProjectBuilder) -> None:
    project.tool("broken", "if true; then echo", description="It ends early")
    project.tool("fine", "echo 1", description="Count lines")
    project.tool("lost", "echo 1")
    project.write("tools/lost.meta.json", "{]")
    project.resource("about.md", "About")
    project.prompt("ask.txt", "Ask {{it}}")
    project.skill("release")
    project.write("ui/board/index.html", HTML)
    project.write("ui/board/ui.meta.json", json.dumps({"meta": {"csp": {"connectDomains": ["https://a.example"]}}}))
    with Dev(project.root) as dev:
        dev.enter()
        catalog = eventually(lambda: (found := dev.get("/api/catalog"))["leftOut"] and found)
        assert names(catalog["tools"]) == ["broken", "fine"] and names(catalog["prompts"]) == ["ask"]
        assert {each["definition"]["uri"] for each in catalog["resources"]} >= {"ui://test-project/board"}
        assert catalog["skills"][0]["file"] == "skills/release/SKILL.md"
        broken, fine = catalog["tools"]
        assert (fine["file"], fine["tokens"] > 10) == ("tools/fine", True)
        (syntax,) = (each for each in broken["findings"] if each["level"] == "error")
        assert syntax["fix"] and syntax["file"] == "tools/broken" and "tools/broken" not in syntax["message"]
        (lost,) = (each for each in catalog["leftOut"] if "lost" in each["path"])
        assert lost["kind"] == "tools" and "JSON" in lost["reason"] and "JSON" in lost["remedy"]
        assert "lost" not in json.dumps([catalog["findings"], catalog["tools"]])

        app = dev.send("GET", "/api/app?uri=ui%3A%2F%2Ftest-project%2Fboard")
        assert app.content.decode("utf-8") == HTML
        policy = app.headers["Content-Security-Policy"]
        assert "sandbox allow-scripts" in policy and "connect-src https://a.example;" in policy
        assert dev.send("GET", "/api/app?uri=file%3A%2F%2F%2Fetc%2Fpasswd").status == 400


def test_a_change_on_disk_is_told_at_once_and_what_is_wrong_with_it_soon(project: ProjectBuilder) -> None:
    project.tool("first", "echo 1", description="The first tool")
    with Dev(project.root) as dev:
        told = dev.enter().events()

        def until(is_so: Callable[[list[Any]], object]) -> None:
            """Look at the tools now, and after each event of a change, but not in between."""
            while not is_so(dev.get("/api/catalog")["tools"]):
                next(event for name, event in told if name == "catalog")

        until(lambda tools: len(tools[0]["findings"]) == 1)  # it has no schema
        project.tool("second", "if", description="The second tool")
        until(lambda tools: names(tools) == ["first", "second"])
        until(lambda tools: len(tools[1]["findings"]) == 2)
        project.tool("second", "echo 2", description="The second tool")
        until(lambda tools: len(tools[1]["findings"]) == 1)


def result(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": False, **more}


def test_a_call_is_saved_as_a_test_that_passes_and_each_in_a_file_of_its_own(
    dev: Dev, shared_project: ProjectBuilder
) -> None:
    odd = "a: b\n- #\u2028\x7f\U0001f600\ttab"
    shared_project.tool("echo", 'printf "%s" "$MCP_TOOL_ARGS_JSON"', outputSchema={"type": "object"})
    answer = dev.play("echo", {"path": odd}).wait_for("answer")["frame"]["result"]
    for number in ("", "-2"):
        saved = dev.post("/api/test", tool="echo", arguments={"path": odd}, result=answer)
        assert saved == {"file": f"tests/echo{number}.test.yaml"}
    ran = mcpgreen("test", "--project-root", str(shared_project.root))
    assert ran.returncode == 0, ran.stdout + ran.stderr

    text = shared_project.read("tests/echo.test.yaml")
    assert "structuredContent" in text
    with_secret = dev.refusal("/api/test", tool="echo", arguments={"apiKey": "abc-123"}, result=result("x"))
    assert with_secret[0] == 400 and "secret" in with_secret[1]
    many = {"content": [], "structuredContent": list(range(6000))}
    assert dev.refusal("/api/test", tool="echo", arguments={}, result=many)[0] == 400
    assert text == shared_project.read("tests/echo.test.yaml")
    assert len(list((shared_project.root / "tests").iterdir())) == 2


def test_a_long_text_is_compared_by_its_beginning(project: ProjectBuilder) -> None:
    file = save_test(str(project.root), "../up", {}, result("x" * 2000, structuredContent={"n": 3}))
    assert file == "tests/___up.test.yaml"
    (test,) = value_of((project.root / file).read_bytes())["tests"]
    assert test["expect"]["text"] == {"contains": "x" * 1000}
    assert test["expect"]["json"] == {"structuredContent": {"n": 3}}


def test_a_test_is_not_written_through_a_link_out_of_the_project(project: ProjectBuilder) -> None:
    outside = project.root.parent / "outside"
    outside.mkdir()
    (project.root / "tests").symlink_to(outside)
    with pytest.raises(UsageError):
        save_test(str(project.root), "stats", {}, result("3"))
    assert not list(outside.iterdir())


def test_the_origins_of_an_app_cannot_end_their_directive() -> None:
    origins = ["https://a.example; script-src *", "https://b.example", "'unsafe-eval'", "a,b", "ü"]
    policy = app_policy({"connectDomains": origins})
    assert "connect-src https://b.example;" in policy and "script-src *" not in policy and "eval" not in policy
