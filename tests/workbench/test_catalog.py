"""What the page shows of a project, and what can be taken along from a call."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mcpgreen.catalog.descriptions.yaml_text import value_of
from mcpgreen.cli.workbench.apps import policy_of
from mcpgreen.cli.workbench.door import Rejected
from mcpgreen.cli.workbench.saving import save_test
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import CHECKOUT
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
        assert syntax["fix"] and syntax["file"] == "tools/broken" and "tools/broken" not in syntax["sentence"]
        (lost,) = (each for each in catalog["leftOut"] if "lost" in each["item"])
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


def test_the_command_line_of_a_call_can_be_pasted(dev: Dev, shared_project: ProjectBuilder) -> None:
    shared_project.tool("echo", 'printf %s "$MCP_TOOL_ARGS_JSON"')
    arguments = {"text": 'it\'s $HOME; `ls`\n"ü"', "n": [1, None]}
    line = dev.post("/api/line", name="echo", arguments=arguments)
    words = shlex.split(line["run_tool"])
    assert words[:2] == ["mcpgreen", "run-tool"] and line["json_rpc"]["params"]["arguments"] == arguments
    printed = completed([sys.executable, "-m", *words, "--json"], cwd=CHECKOUT).stdout
    assert json.loads(json.loads(printed)["content"][0]["text"]) == arguments


def result(text: str, **more: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": text}], "isError": False, **more},
    }


def test_a_call_is_saved_as_a_test_below_the_earlier_ones(dev: Dev, shared_project: ProjectBuilder) -> None:
    odd = "a: b\n- #\u2028\x7f\U0001f600\ttab"
    answer = result(odd, structuredContent={"n": 3})
    saved = dev.post("/api/test", name="stats", arguments={"path": odd}, answer=answer)
    assert saved == {"file": "tests/stats.test.yaml"}
    own = "# mine\n" + shared_project.read(saved["file"]) + "# end\n"
    shared_project.write(saved["file"], own)
    dev.post("/api/test", name="stats", arguments={}, answer=result("x" * 2000))

    text = shared_project.read(saved["file"])
    assert text.startswith(own)
    found = value_of(text.encode("utf-8"))
    first, second = found["tests"]
    assert (found["tool"], first["name"], first["arguments"]) == ("stats", "stats 1", {"path": odd})
    assert first["expect"] == {"isError": False, "text": odd, "json": {"structuredContent.n": 3}}
    assert second["expect"]["text"] == {"contains": "x" * 1000}
    assert dev.refusal("/api/test", name="x", answer={"error": {"code": 1}})[0] == 400
    with_secret = dev.refusal("/api/test", name="stats", arguments={"apiKey": "abc-123"}, answer=result("x"))
    assert "secret" in with_secret[1] and "abc-123" not in shared_project.read(saved["file"])
    for place in ("../x.test.yaml", "tests/../../x.test.yaml", "/tmp/x.test.yaml", "tools/x", "tests/.x.test.yaml"):
        assert dev.refusal("/api/test", name="x", answer=result("x"), file=place)[0] == 400, place


@pytest.mark.parametrize(
    "own",
    [
        "tool: other\ntests:\n# none yet\n",
        "tests:\n    # deeper\n    - {name: a, tool: b}\n",
        "tests:\n- name: edge\n  expect:\n    text: |-\n      tests:\n        - name: x\n",
    ],
)
def test_a_test_fits_into_a_file_that_a_person_has_written(project: ProjectBuilder, own: str) -> None:
    path = project.write("tests/own.test.yaml", own)
    save_test(str(project.root), "stats", {"a": 1}, result("3"), "tests/own.test.yaml")
    before, after = value_of(own.encode()), value_of(path.read_bytes())
    assert after["tests"][:-1] == (before["tests"] or []) and after["tests"][-1]["tool"] == "stats"


@pytest.mark.parametrize("own", ["tests: [{name: a}]\n", "tests:\n- name: a\nafter: 1\n", "- a\n", "{", "tests: 3\n"])
def test_a_file_that_a_test_does_not_fit_into_stays_as_it_is(project: ProjectBuilder, own: str) -> None:
    path = project.write("tests/own.test.yaml", own)
    with pytest.raises(Rejected):
        save_test(str(project.root), "stats", {}, result("3"), "tests/own.test.yaml")
    assert path.read_text(encoding="utf-8") == own


def test_a_test_is_not_written_through_a_link_out_of_the_project(project: ProjectBuilder) -> None:
    outside = project.root.parent / "outside"
    outside.mkdir()
    (project.root / "tests").symlink_to(outside)
    with pytest.raises(Rejected):
        save_test(str(project.root), "stats", {}, result("3"))
    assert not list(outside.iterdir())


def test_the_origins_of_an_app_cannot_end_their_directive() -> None:
    origins = ["https://a.example; script-src *", "https://b.example", "'unsafe-eval'", "a,b", "ü"]
    policy = policy_of({"connectDomains": origins})
    assert "connect-src https://b.example;" in policy and "script-src *" not in policy and "eval" not in policy
