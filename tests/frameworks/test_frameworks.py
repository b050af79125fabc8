"""Every program of docs/frameworks.md, run by its framework against the real server. A stand-in for the model asks for
the calls; what counts is what the model is told.

The page is the fixture. A block is named after its framework. The one that ends in `http` takes the place of a
statement of the program before it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.docs.reader import CHECKOUT, blocks_of
from tests.frameworks.stub_model import LAST_WORDS, StubModel
from tests.support.http import HttpServer
from tests.support.once import once
from tests.support.prerequisites import require_frameworks, require_frameworks_of_node
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import Json, Wire, clean_environment, command_of_tests

HERE = Path(__file__).parent
PAGE = CHECKOUT / "docs" / "frameworks.md"
PROGRAMS = {block.info: block for block in blocks_of(PAGE) if block.info}
FRAMEWORKS = [name for name in PROGRAMS if not name.endswith(" http")]

TOKEN = "a-token-that-is-long-enough-to-be-one"
SECRET = "hunter2-hunter2"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
PATIENCE_SECS = 90.0

CALLS = {
    "greet": {"name": "Zoë"},
    "weigh": {},
    "remind": {"text": "milk", "when": None},
    "locate": {"place": "Bern"},
    "picture": {},
    "crash": {},
    "refuse": {},
}
# What each tool says, as the model has to find it.
SAID = {
    "greet": "Hello Zoë",
    "weigh": "1200",
    "remind": "milk, some time",
    "locate": "Bern is here",
    "picture": "one pixel",
    "crash": "the accounts are broken",
    "refuse": "the disk is full",
}
FAILING = ("crash", "refuse")
REWRITE_OPTIONAL = ("llama-index", "mastra")  # whatever the server says, the model may give null
PROGRAMS_OF_NODE = ("node", "opencode-ai", "@qwen-code/qwen-code")


def build(root: Path) -> ProjectBuilder:
    project = ProjectBuilder(root)
    name = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    project.tool("greet", """echo "a detail" >&2; printf 'Hello Zoë'""", description="Greets", inputSchema=name)
    weight = {"type": "object", "properties": {"grams": {"type": "integer"}}, "required": ["grams"]}
    project.tool("weigh", """echo '{"grams": 1200}'""", description="Weighs", outputSchema=weight)
    project.write(
        "tools/remind.py",
        '''import mcp_tool


@mcp_tool.tool
def remind(text: str, when: str | None = None) -> str:
    """Reminds you."""
    return f"{text}, {when or 'some time'}"
''',
    )
    place = {"type": "string", "description": "A city"}  # an object would be too much for LlamaIndex with Gemini
    referring = {"properties": {"place": {"$ref": "#/$defs/place"}}, "required": ["place"], "$defs": {"place": place}}
    project.tool("locate", "echo 'Bern is here'", description="Locates", inputSchema={"type": "object", **referring})
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    content = {"content": [{"type": "text", "text": "one pixel"}, image]}
    project.tool("picture", f"echo '{json.dumps(content)}'", description="Draws")
    project.python_tool(
        "crash",
        f"""import json, os, sys

def load(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise RuntimeError("the accounts are broken: " + os.path.expanduser("~/accounts.json")) from error

print("password={SECRET}", __file__, file=sys.stderr)
load("no JSON")
""",
        description="Crashes",
    )
    project.tool(
        "refuse",
        f'echo "token={SECRET} $0 $HOME/notes {sys.prefix}: the disk is full" >&2; exit 3',
        description="Refuses",
    )
    return project


def program_over(framework: str, instead: str) -> str:
    """A program of the page, with these statements instead of those that they replace."""
    text = PROGRAMS[framework].text
    if PROGRAMS[framework].language == "python":
        return text.replace("\n\nasync def main", f"\n\n{instead}\n\nasync def main")
    whole, count = re.subn(r"(?ms)^const (?:server|transport) = .*?;\n", lambda _: instead, text)
    assert count == 1
    return whole


def interpreter_of(framework: str) -> str:
    is_python = PROGRAMS[framework].language == "python"
    return require_frameworks() if is_python else require_frameworks_of_node()[0]


def run_both(framework: str, texts: list[str], home: Path, env: Mapping[str, str]) -> None:
    """One program after the other, in one process: to import a framework takes longer than all the rest."""
    if PROGRAMS[framework].language == "python":
        suffix, option, start = "py", "-c", "import runpy\nfor name in {}: runpy.run_path(name)"
    else:
        suffix, option, start = "mjs", "-e", "(async () => {{ for (const name of {}) await import(name); }})()"
        (home / "node_modules").symlink_to(require_frameworks_of_node()[1])  # next to the program is where node looks
    paths = [home / f"{place}.{suffix}" for place in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    done = completed(
        [interpreter_of(framework), option, start.format(json.dumps(list(map(str, paths))))],
        cwd=home,
        env=clean_environment({"HOME": str(home), "PYTHONPATH": "", **env}),
        timeout=PATIENCE_SECS,
    )
    assert (done.returncode, done.stdout.count(LAST_WORDS)) == (0, len(texts)), done.stdout + done.stderr


@pytest.fixture(scope="module", params=FRAMEWORKS)
def visits(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Json:
    """What the model was told over stdio and over HTTP, and where the project and the home directory are."""
    framework: str = request.param
    interpreter_of(framework)  # skips if it is not installed

    def visit_project(place: Path) -> Json:
        project = build(place / "project")
        home, programs = place / "home of Ada", place / "bin"
        home.mkdir()
        programs.mkdir()
        (programs / "mcpgreen").symlink_to(command_of_tests())
        with (
            StubModel(CALLS) as model,
            HttpServer(project.root, http_token=TOKEN, env={"HOME": str(home)}) as server,
        ):
            by_pipe = PROGRAMS[framework].text.replace("/path/to/my-server", str(project.root))
            by_http = program_over(framework, PROGRAMS[f"{framework} http"].text)
            by_http = by_http.replace("http://127.0.0.1:8808/mcp", server.url).replace("TOKEN", TOKEN)
            path = f"{programs}{os.pathsep}{os.environ['PATH']}"
            run_both(framework, [by_pipe, by_http], home, {**model.environment, "PATH": path})
        told = [conversation._asdict() for conversation in model.conversations]
        return {"framework": framework, "told": told, "home": str(home), "project": str(project.root)}

    visited: Json = once(tmp_path_factory, f"framework-{framework}", visit_project)
    return visited


@pytest.fixture(params=["stdio", "http"])
def visit(request: pytest.FixtureRequest, visits: Json) -> Json:
    assert len(visits["told"]) == 2
    told: Json = visits["told"][request.param == "http"]
    return {**visits, **told}


def read_by_model(value: Any) -> str:
    """As one text, whatever it is wrapped into, without what the protocol itself asks for in every result."""
    text = json.dumps(value, ensure_ascii=False).replace("\\", "")
    return re.sub(r'"_meta":{"io.modelcontextprotocol/serverInfo":{[^{}]*}},?', "", text)


def test_each_result_reaches_the_model(visit: Json) -> None:
    told = {name: read_by_model(result) for name, result in visit["results"].items()}

    assert sorted(told) == sorted(CALLS)
    assert {name: text for name, text in told.items() if SAID[name] not in text} == {}


def test_a_success_carries_nothing_of_ours(visit: Json) -> None:
    told = {name: read_by_model(visit["results"][name]) for name in CALLS if name not in FAILING}
    ours = re.compile("exit_?code|stderr|_meta|mcpgreen|a detail", re.IGNORECASE)

    assert {name: text for name, text in told.items() if ours.search(text)} == {}


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_carries_no_path_and_no_secret(visit: Json, name: str) -> None:
    told = read_by_model(visit["results"][name])
    private = [visit["project"], visit["home"], sys.prefix, sysconfig.get_paths()["stdlib"], SECRET]

    assert [each for each in private if each in told] == [], told


def test_the_model_gets_schemas_without_references(visit: Json) -> None:
    assert re.search(r"\$ref|\$defs", json.dumps(visit["tools"])) is None


def test_an_optional_argument_has_a_plain_type(visit: Json) -> None:
    tool = visit["tools"]["remind"]
    schema = tool.get("parameters") or tool["parameters_json_schema"]

    if visit["framework"] not in REWRITE_OPTIONAL:
        assert schema["required"] == ["text"]
        assert schema["properties"]["when"]["type"] == "string"


def test_the_command_for_lists_of_commands_starts_the_server(tmp_path: Path) -> None:
    (block,) = (block for block in blocks_of(PAGE) if block.language == "json")
    entry = json.loads(block.text.replace("/path/to/my-server", str(build(tmp_path).root)))
    assert entry["command"] == "python3"

    with Wire(None, command=[sys.executable, *entry["args"]]) as server:
        assert "result" in server.request("ping")


def test_the_page_installs_what_is_tested() -> None:
    commands = " ".join(block.text for block in blocks_of(PAGE) if block.language == "sh")
    installed = {word for word in shlex.split(commands) if re.search(r".[=@]\d", word)}
    pinned = (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines()[1:]
    packages = json.loads((HERE / "node" / "package.json").read_text(encoding="utf-8"))["dependencies"]

    assert installed == {*pinned, *(f"{name}@{packages[name]}" for name in packages if name not in PROGRAMS_OF_NODE)}
