"""`scaffold`: what it writes is valid, and runs as it is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli.making.scaffold import LANGUAGES, sample_of
from tests.cli.making.test_projects import files_in, says_nothing_bad
from tests.cli.test_commands import mcpgreen
from tests.support.prerequisites import require_program
from tests.support.wire import Wire


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "demo"
    done = mcpgreen("new", "demo", "--no-hello", cwd=tmp_path)
    assert done.returncode == 0
    return root


def scaffold(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = mcpgreen("scaffold", *arguments, cwd=root)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done


def require_language(language: str) -> None:
    require_program(LANGUAGES[language].program)


def answer(root: Path, method: str, params: dict[str, Any]) -> dict[str, Any]:
    server = Wire(root)
    try:
        server.handshake()
        return server.result(method, params)
    finally:
        server.end()


def completed(root: Path, name: str, typed: str, argument: str = "topic") -> list[str]:
    params = {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": argument, "value": typed}}
    values: list[str] = answer(root, "completion/complete", params)["completion"]["values"]
    return values


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_tool_of_every_language_is_valid_and_runs(root: Path, language: str) -> None:
    require_language(language)
    done = scaffold(root, "tool", "greet-all", "--lang", language)

    script = f"tools/greet-all.{LANGUAGES[language].suffix}"
    assert done.stdout.startswith(f"Scaffolded tool greet-all at {script}\n")
    assert {name for name in files_in(root) if name.startswith("tools/")} == {script}
    assert says_nothing_bad(root)

    def said(*arguments: str) -> str:
        ran = mcpgreen("run-tool", "greet-all", "--plain", *arguments, cwd=root)
        return ran.stdout.strip()

    assert said("--args", '{"name": "Äda"}') == "Hello, Äda!"
    assert said() == "Hello, World!"
    # Long arguments come in a file.
    (root / "long.json").write_text(json.dumps({"name": "x" * 200_000}), encoding="utf-8")
    assert said("--args", "@long.json") == f"Hello, {'x' * 200_000}!"


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "sh"])
def test_a_tool_that_stays_of_every_language_keeps_its_state(root: Path, language: str) -> None:
    require_language(language)
    done = scaffold(root, "tool", "greet-all", "--lang", language, "--stays", "session")
    assert done.stdout.endswith("run-tool greet-all --repeat 3\n")
    assert says_nothing_bad(root)
    ran = mcpgreen("run-tool", "greet-all", "name=Äda", "--repeat", "2", "--plain", cwd=root)
    assert ran.stdout.splitlines() == ["Hello, Äda! Greeting 1.", "Hello, Äda! Greeting 2."]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--stays", "ever"), "--stays ever: choose one of server, session"),
        (("--stays", "server", "--lang", "sh"), "--lang sh: a resident tool needs the SDK for bash; use --lang bash"),
    ],
)
def test_a_tool_cannot_stay_in_any_way(root: Path, options: tuple[str, ...], said: str) -> None:
    done = mcpgreen("scaffold", "tool", "greet-all", *options, cwd=root)
    assert (done.returncode, said in done.stderr) == (1, True)


@pytest.mark.parametrize(("name", "function"), [("word-count", "word_count"), ("pass", "pass_"), ("yes", "yes")])
def test_a_python_function_is_named_like_the_tool(root: Path, name: str, function: str) -> None:
    scaffold(root, "tool", name, "--lang", "python")

    assert f"def {function}(name: str" in (root / f"tools/{name}.py").read_text(encoding="utf-8")
    assert says_nothing_bad(root)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_template_and_its_provider_of_every_language_can_be_read(root: Path, language: str) -> None:
    require_language(language)
    scaffold(root, "template", "Log_Book", "--lang", language)
    done = scaffold(root, "provider", "note", "--lang", language)

    suffix = LANGUAGES[language].suffix
    assert done.stdout == f"Scaffolded provider note at providers/note.{suffix}\n  providers/note.{suffix}\n"
    assert says_nothing_bad(root)
    server = Wire(root)
    try:
        server.handshake()
        (template,) = server.result("resources/templates/list")["resourceTemplates"]
        assert (template["name"], template["uriTemplate"]) == ("Log_Book", "log-book://{name}")
        for uri in ("log-book://ada", "note://ada"):
            assert server.result("resources/read", {"uri": uri})["contents"][0]["text"] == "This is ada.\n"
        assert server.error("resources/read", {"uri": "note://"})["code"] == -32602
    finally:
        server.end()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_completion_of_every_language_lies_beside_its_prompt(root: Path, language: str) -> None:
    require_language(language)
    scaffold(root, "prompt", "letters")
    done = scaffold(root, "completion", "letters", "--lang", language)

    script = f"prompts/letters.completion.{LANGUAGES[language].suffix}"
    assert done.stdout == f"Scaffolded completion letters at {script}\n  {script}\n"
    assert says_nothing_bad(root)
    assert [prompt["name"] for prompt in answer(root, "prompts/list", {})["prompts"]] == ["letters"]
    assert completed(root, "letters", "") == ["alpha", "beta", "gamma"]
    assert completed(root, "letters", "be") == ["beta"]


def test_lint_likes_everything_that_is_written(root: Path) -> None:
    """`scaffold prompt review` made the prompt prompt.review, and `lint` said that clients do not take the dot."""
    for kind in ("tool", "prompt", "resource", "template", "completion", "ui"):
        scaffold(root, kind, "review" if kind != "template" else "rows")
    done = mcpgreen("lint", "--strict", cwd=root)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["9lives", "_", "a.b", "a" * 65])
def test_a_tool_gets_no_name_that_lint_refuses(root: Path, name: str) -> None:
    done = mcpgreen("scaffold", "tool", name, cwd=root)
    if done.returncode == 0:
        assert mcpgreen("lint", "--strict", cwd=root).returncode == 0


def test_a_completion_of_a_template_lies_beside_its_description(root: Path) -> None:
    scaffold(root, "template", "rows")

    assert "resources/rows.completion.sh" in scaffold(root, "completion", "rows").stdout
    params = {"ref": {"type": "ref/resource", "uri": "rows://{name}"}, "argument": {"name": "name", "value": "b"}}
    assert answer(root, "completion/complete", params)["completion"]["values"] == ["beta"]


def test_a_prompt_and_a_resource_are_texts_with_descriptions(root: Path) -> None:
    scaffold(root, "prompt", "explain")
    scaffold(root, "resource", "notes")

    assert says_nothing_bad(root)
    assert {name for name in files_in(root) if name.startswith(("prompts/", "resources/"))} == {
        "prompts/explain.md",
        "prompts/explain.meta.json",
        "resources/notes.txt",
        "resources/notes.meta.json",
    }
    server = Wire(root)
    try:
        server.handshake()
        prompt = server.result("prompts/get", {"name": "explain", "arguments": {"topic": "gravity"}})
        assert prompt["messages"][0]["content"]["text"].startswith("Explain gravity to somebody")
        (resource,) = server.result("resources/list")["resources"]
        assert resource["name"] == "notes"
        text = server.result("resources/read", {"uri": resource["uri"]})["contents"][0]["text"]
        assert text == "Replace this with the text that clients should read.\n"
    finally:
        server.end()


def test_pages_stand_alone_or_beside_a_tool(root: Path) -> None:
    scaffold(root, "tool", "board", "--ui", "--lang", "sh")
    scaffold(root, "tool", "plain", "--lang", "sh")
    refused = mcpgreen("scaffold", "ui", "--tool", "plain", cwd=root)
    remedy = refused.stderr.strip().partition("make one first: ")[2]
    assert remedy == "mkdir tools/plain && mv tools/plain.sh tools/plain/"
    subprocess.run(remedy, shell=True, cwd=root, check=True)
    scaffold(root, "ui", "--tool", "plain")
    scaffold(root, "ui", "map")

    pages = {"tools/board/ui", "tools/plain/ui", "ui/map"}
    assert pages <= {str(Path(name).parent) for name in files_in(root)}
    assert says_nothing_bad(root)
    server = Wire(root)
    try:
        server.handshake()
        tools = {tool["name"]: tool for tool in server.result("tools/list")["tools"]}
        assert tools["plain"]["_meta"]["ui"]["resourceUri"] == "ui://demo/plain"
        for page in ("board", "plain", "map"):
            text = server.result("resources/read", {"uri": f"ui://demo/{page}"})["contents"][0]["text"]
            assert f"<title>{page.capitalize()}</title>" in text
    finally:
        server.end()


def test_the_test_of_a_tool_calls_it_with_arguments_that_fit(root: Path) -> None:
    tool = root / "tools/count.sh"
    description = '{"inputSchema": {"properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}}'
    tool.write_text(f"#!/bin/sh\n# mcp: {description}\necho counted\n", encoding="utf-8")
    tool.chmod(0o755)

    done = scaffold(root, "test", "count")

    assert done.stdout.startswith("Scaffolded test count at tests/count.test.yaml\n")
    assert 'arguments: {"n": 3}' in (root / "tests/count.test.yaml").read_text(encoding="utf-8")
    ran = mcpgreen("test", "-k", "count", cwd=root)
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.startswith("passed tests/count.test.yaml: it answers (")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["tool", "bad name"], "A-Z a-z 0-9 _ -"),
        (["tool"], "the name is missing"),
        (["tool", "../up"], "A-Z a-z 0-9 _ -"),
        (["tool", "x", "--lang", "cobol"], "choose one of bash"),
        (["tool", "json", "--lang", "python"], "it would hide the module json"),
        (["completion", "nothing"], "create one with mcpgreen scaffold prompt nothing"),
        (["provider", "file"], "choose another name"),
        (["provider", "No_scheme"], "begin with a letter"),
        (["ui"], "the name is missing"),
        (["ui", "--tool", "nobody"], "create it with mcpgreen scaffold tool nobody"),
        (["test", "nobody"], "this project has no such tool"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_told_and_leaves_nothing(root: Path, arguments: list[str], reason: str) -> None:
    before = files_in(root)

    done = mcpgreen("scaffold", *arguments, cwd=root)

    assert (done.returncode, done.stdout) == (1, "")
    assert reason in done.stderr
    assert files_in(root) == before


@pytest.mark.parametrize("kind", ["tool", "resource", "template", "prompt", "completion", "provider", "ui"])
def test_a_second_of_the_same_name_is_refused(root: Path, kind: str) -> None:
    if kind == "completion":
        scaffold(root, "prompt", "one")
    scaffold(root, kind, "one")
    before = {name: (root / name).read_bytes() for name in files_in(root)}

    done = mcpgreen("scaffold", kind, "one", cwd=root)

    assert (done.returncode, done.stdout) == (1, "")
    assert "already exists" in done.stderr
    assert {name: (root / name).read_bytes() for name in files_in(root)} == before


@pytest.mark.parametrize(
    ("schema", "sample"),
    [
        ({}, "text"),
        (True, {}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        ({"properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}, {"a": "x"}),
        ({"type": "string", "minLength": 6}, "textxx"),
        ({"type": ["integer", "null"]}, 1),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
        ({"type": "number", "default": 7}, 7),
        ({"type": "null"}, None),
        ({"examples": ["e"]}, "e"),
    ],
)
def test_a_sample_is_what_the_schema_admits(schema: Any, sample: Any) -> None:
    assert sample_of(schema) == sample
