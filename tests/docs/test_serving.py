"""docs/REMOTE.md, oauth.md, dependencies.md and warm-python.md: their commands work, their tools are served,
and the messages on them are those of the server."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpgreen.engine.server import Server
from mcpgreen.links.principal import Principal
from mcpgreen.running.warm_python import interpreter_of
from mcpgreen.settings.settings import load
from mcpgreen.transports.http.door import Door
from mcpgreen.transports.http.serving import configured_resource_server
from mcpgreen.transports.http.wire.listening import Address
from tests.cli.test_commands import mcpgreen
from tests.cli.test_deps import installed
from tests.deployment.cluster import free_port
from tests.docs.reader import CHECKOUT, DOCS, Reader, blocks_of
from tests.support.client import Speak
from tests.support.fake_link import FakeLink, serving
from tests.support.http import HttpServer
from tests.support.prerequisites import require_program
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Wire, clean_environment, text_of

PAGE = DOCS / "REMOTE.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = {block.info or block.language: block.text for block in blocks_of(PAGE)}
TOKEN = "t" * 40
ADDRESS = "127.0.0.1:8808"
ROUND = """{serve} 2>said &
until grep -q '^mcpgreen: serving' said; do kill -0 $! || exit 1; sleep 0.02; done
grep '^mcpgreen: serving' said
{call}
kill $!
wait $!
"""


def test_a_server_is_started_and_asked_as_the_page_says(tmp_path: Path) -> None:
    require_program("curl")
    require_program("openssl")
    project = shutil.copytree(CHECKOUT / "project", tmp_path / "project", ignore=shutil.ignore_patterns(".registry"))
    for path in Path(project).rglob("*"):
        path.chmod(path.stat().st_mode & ~0o022)  # whatever the umask of the clone
    address = f"127.0.0.1:{free_port()}"
    serve = BLOCKS["serve"].rstrip().replace("scripts/mcpgreen", str(CHECKOUT / "scripts" / "mcpgreen"))
    calls = "\necho\n".join(BLOCKS[each].rstrip() for each in ("call", "call-tool", "session"))
    script = ROUND.format(serve=serve, call=calls).replace(ADDRESS, address)

    env = clean_environment({"MCPGREEN_PYTHON": sys.executable, "HOME": str(tmp_path)})
    done = completed(["bash", "-c", script], cwd=tmp_path, env=env)
    assert done.returncode == 0, done
    said, answer, *called = done.stdout.splitlines()
    assert said == BLOCKS["text"].strip().replace(ADDRESS, address)
    assert "hello" in {tool["name"] for tool in json.loads(answer)["result"]["tools"]}
    assert [json.loads(each)["result"]["structuredContent"]["sum"] for each in called] == [3, 3]


def test_every_metric_of_the_page_is_measured_and_no_other(project: ProjectBuilder) -> None:
    with HttpServer(project.root, http_token=TOKEN) as server:
        server.stateless(token=TOKEN).request("tools/list")
        with server.client(token=TOKEN).send("GET", path="/metrics") as reply:
            measured = set(re.findall(r"^(mcpgreen_\w+)", reply.body.decode(), re.MULTILINE))

    assert set(re.findall(r"^\| `(mcpgreen_\w+)` \|", TEXT, re.MULTILINE)) == measured - {
        "mcpgreen_http_requests_created"
    }


OAUTH = blocks_of(DOCS / "oauth.md")
TOOLS = {block.info: block.text for block in OAUTH if block.info.startswith("tools/")}
SCOPE = "files:write"


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    for path, text in TOOLS.items():
        project.write(path, text).chmod(0o755)
    with serving(project.root) as server:
        yield server


def test_the_tools_need_the_scope_and_know_the_caller(server: Server) -> None:
    ada = FakeLink(server, principal=Principal("i|ada", frozenset({SCOPE}), {"sub": "ada", "scope": SCOPE}))

    noted = ada.ask_stateless("tools/call", {"name": "note"}, id=1)["result"]
    assert noted["content"][0]["text"] == "noted for ada\n"
    forgot = ada.ask_stateless("tools/call", {"name": "forget", "arguments": {"note": "x"}}, id=2)["result"]
    assert forgot["content"][0]["text"] == "forgot x"


@pytest.mark.parametrize("tool", ["note", "forget"])
def test_a_caller_without_the_scope_gets_the_error_that_is_shown(server: Server, tool: str) -> None:
    (shown,) = (json.loads(block.text) for block in OAUTH if '"requiredScopes"' in block.text)
    bob = FakeLink(server, principal=Principal("i|bob", frozenset({"files:read"})))

    assert bob.ask_stateless("tools/call", {"name": tool, "arguments": {"note": "x"}}, id=1)["error"] == shown


def test_whoever_has_the_other_token_needs_no_scope(server: Server) -> None:
    holder = FakeLink(server, principal=Principal("token"))

    assert "result" in holder.ask_stateless("tools/call", {"name": "note"}, id=1)


def only(info: str) -> str:
    (text,) = (block.text for block in OAUTH if block.info == info)
    return text


def test_the_settings_that_are_shown_will_do() -> None:
    (shown,) = (block.text for block in OAUTH if block.language == "sh")
    settings = load({}, dict(line.removeprefix("export ").split("=", 1) for line in shown.splitlines()), {})
    server = configured_resource_server(settings, resource_url=settings.http_public_url)

    assert settings.notes == ()
    assert server is not None
    Door(settings, Address("127.0.0.1", 8808), server).require_good_names({"host": "mcp.example.com"})
    assert server.challenge() == only("challenge").strip()
    assert server.metadata() == json.loads(only("metadata"))


DEPENDENCIES = blocks_of(DOCS / "dependencies.md")
FILES = {block.info: block.text for block in DEPENDENCIES if "/" in block.info}
_, COMPLAINT = [block.text for block in DEPENDENCIES if block.language == "text"]


@pytest.fixture
def page(project: ProjectBuilder) -> Callable[[str], ProjectBuilder]:
    """Writes a file of the page."""

    def take(name: str) -> ProjectBuilder:
        is_program = FILES[name].startswith("#!")
        project.write(name, FILES[name]).chmod(0o755 if is_program else 0o644)
        return project

    return take


def test_a_tool_of_the_page_is_reported_until_its_packages_are_installed(
    page: Callable[[str], ProjectBuilder], speak: Speak
) -> None:
    project = page("tools/wave.py")
    done = mcpgreen("validate", "--project-root", str(project.root))
    assert " ".join(COMPLAINT.split()) in " ".join(done.stdout.split())

    text = "def wave(name): return f'o/ {name}'\n"
    installed(project, project.root / "tools/wave.py", module="greeting", text=text)
    assert mcpgreen("validate", "--project-root", str(project.root)).returncode == 0
    assert text_of(speak().call_tool("wave", {"name": "Ada"})) == "o/ Ada"


def test_node_finds_the_modules_of_the_project(page: Callable[[str], ProjectBuilder], speak: Speak) -> None:
    require_program("node")
    project = page("tools/bow.cjs")
    project.write("node_modules/greeting/index.js", "exports.bow = (name) => `bows to ${name}`;\n")

    assert text_of(speak().call_tool("bow", {"name": "Ada"})) == "bows to Ada\n"


def test_perl_finds_the_modules_of_the_project(page: Callable[[str], ProjectBuilder], speak: Speak) -> None:
    require_program("perl")
    project = page("tools/nod.pl")
    project.write("local/lib/perl5/Greeting.pm", "package Greeting;\nsub nod { return 'nods' }\n1;\n")

    assert text_of(speak().call_tool("nod")) == "nods\n"


WARM_PYTHON = DOCS / "warm-python.md"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scripts are forked on Linux only")
def test_the_tool_of_the_page_is_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPGREEN_WARM_PYTHON", raising=False)
    reader = Reader(tmp_path)
    (code,) = (block for block in blocks_of(WARM_PYTHON) if block.language.startswith("python"))
    (line,) = (block.text for block in blocks_of(WARM_PYTHON) if block.language == "text")
    reader.take(code)
    with Wire(tmp_path, env={"MCPGREEN_STDERR_LEVEL": "info"}).greeted() as server:

        def is_forked() -> bool:
            result = server.call_tool("prices", {"text": "[1, 2.5]"})
            assert result["structuredContent"] == {"result": 1.75}
            return re.search(re.sub(r"\d+ ms", r"\\d+ ms", line.strip()), server.stderr) is not None

        eventually(is_forked)


def test_the_table_says_which_first_lines_are_forked(tmp_path: Path) -> None:
    rows = re.findall(r"^\| (`#!.*) \| (.*) \|$", WARM_PYTHON.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows
    script = tmp_path / "script"
    for lines, said in rows:
        for line in re.findall(r"`(#!.*?)`", lines):
            script.unlink(missing_ok=True)
            script.write_text(f"{line}\n")
            is_forked = interpreter_of(str(script), [str(script)]) is not None
            assert is_forked == said.startswith("forked"), line
