"""Pages with a few blocks: what they show is run. What installs something or takes minutes is only read.

Paths that begin with /path/to/mcpgreen are those of a checkout.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcpgreen import __version__
from mcpgreen.cli.clients.table import CLIENTS
from mcpgreen.settings.settings import ROWS, load
from tests.catalog.test_tools import only_tool
from tests.catalog.trees import TreeBuilder
from tests.docs.reader import CHECKOUT, DOCS, Block, Reader, blocks_of
from tests.support.http import HttpServer
from tests.support.prerequisites import require_node_modules
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import Wire, clean_environment, command_of_tests

COMMAND_SECS = 60


def test_the_options_of_the_conformance_suite_exist() -> None:
    text = "".join(block.text for block in blocks_of(DOCS / "conformance.md"))
    known = printed([sys.executable, "scripts/conformance.py", "--help"])

    assert [option for option in re.findall(r"--[a-z-]+", text) if option not in known] == []


@pytest.mark.parametrize("page", ["limits.md", "settings.md"])
def test_the_setting_that_a_page_shows_is_one(page: str) -> None:
    name, _, value = only(page, "text", containing="MCPGREEN_").text.strip().partition("=")
    settings = load({}, {}, {name: value})

    (row,) = (row for row in ROWS if name in row.variables)
    assert getattr(settings, row.name) == float(value)


def test_the_description_that_gives_a_tool_more_time_does(tmp_path: Path) -> None:
    comment = only("limits.md", "text", containing="mcp:").text
    tree = TreeBuilder(tmp_path)
    tree.write("tools/import.sh", f"#!/bin/sh\n{comment}", mode=0o755)

    assert only_tool(tree).description.timeout_secs == 300


def test_a_wheel_is_named_as_it_is_built() -> None:
    text = "".join(block.text for block in blocks_of(DOCS / "install.md"))

    assert set(re.findall(r"mcpgreen-([\d.]+)-py3", text)) == {__version__}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a page needs of a checkout; a server writes into its project."""
    place = tmp_path_factory.mktemp("checkout")
    launcher = place / "scripts" / "mcpgreen"
    launcher.parent.mkdir()
    # Clients pass few variables on, and the environment of this run need not be that of the checkout.
    start = f"MCPGREEN_PYTHON={shlex.quote(sys.executable)} exec {shlex.quote(str(CHECKOUT / 'scripts' / 'mcpgreen'))}"
    launcher.write_text(f'#!/bin/sh\n{start} "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    shutil.copytree(CHECKOUT / "project", place / "project", ignore=shutil.ignore_patterns(".registry"))
    for path in place.rglob("project/**/*"):
        path.chmod(path.stat().st_mode & ~0o022)  # whatever the umask of the clone
    return place


def printed(command: list[str], *, cwd: Path = CHECKOUT) -> str:
    done = completed(command, cwd=cwd, env=clean_environment({"MCPGREEN_PYTHON": sys.executable}), timeout=COMMAND_SECS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def only(page: str, language: str, *, containing: str = "") -> Block:
    (block,) = (each for each in blocks_of(DOCS / page) if each.language == language and containing in each.text)
    return block


def test_both_eras_can_be_tried_by_hand(checkout: Path) -> None:
    handshake, stateless = (
        [json.loads(line) for line in printed(["bash", "-c", block.text], cwd=checkout).splitlines()]
        for block in blocks_of(DOCS / "what-clients-get.md")
        if block.language == "bash"
    )

    assert {message["id"] for message in handshake if "id" in message} == {1, 2}
    assert any(tool["name"] == "hello" for tool in handshake[-1]["result"]["tools"])
    assert [message["id"] for message in stateless] == [1]
    assert stateless[0]["result"]["isError"] is False


def test_the_three_keys_of_a_stateless_request_will_do(checkout: Path) -> None:
    meta = json.loads(only("what-clients-get.md", "json").text)

    with Wire(checkout / "project") as server:
        answer = server.request("tools/list", {"_meta": meta})
        assert answer["result"]["resultType"] == "complete"


def what_the_python_client_prints() -> str:
    shown = re.search(r"this prints `([^`]+)`", (DOCS / "clients.md").read_text(encoding="utf-8"))
    assert shown is not None
    return shown[1]


def test_the_python_client_calls_a_tool(checkout: Path) -> None:
    block = only("clients.md", "python", containing="StdioServerParameters")
    source = block.text.replace("/path/to/mcpgreen", str(checkout))

    assert printed([sys.executable, "-c", source]).strip() == what_the_python_client_prints()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_python_client_calls_a_tool_over_http(checkout: Path, mode: str) -> None:
    source = only("clients.md", "python", containing="streamable_http_client").text
    source = source.replace("mcp.Client(server)", f"mcp.Client(server, mode={mode!r})")
    revision, result = what_the_python_client_prints().split(" ", 1)
    token = "t" * 40

    with HttpServer(checkout / "project", http_token=token) as server:
        source = source.replace("os.environ['MCPGREEN_HTTP_TOKEN']", repr(token))
        source = source.replace("http://127.0.0.1:8808/mcp", server.url)
        answer = printed([sys.executable, "-c", source]).strip()

    assert answer == f"{revision if mode == 'auto' else '2025-11-25'} {result}"


def test_the_typescript_client_calls_a_tool(checkout: Path) -> None:
    modules = require_node_modules("@modelcontextprotocol/client")
    source = only("clients.md", "js").text.replace("/path/to/mcpgreen", str(checkout))
    (checkout / "node_modules").symlink_to(modules)
    (checkout / "client.mjs").write_text(source, encoding="utf-8")

    assert printed(["node", "client.mjs"], cwd=checkout).split() == ["{", "sum:", "3,", "count:", "2", "}"]


def commands_in(entry: Any) -> list[list[str]]:
    """Every command line that stands somewhere in a client's file."""
    if not isinstance(entry, dict):
        return []
    if "command" in entry:
        command = entry["command"]
        return [command if isinstance(command, list) else [command, *entry["args"]]]
    return [command for inner in entry.values() for command in commands_in(inner)]


def commands_on(page: str) -> list[list[str]]:
    """The lines that start the server, in files of clients and units and as they are typed."""
    found: list[list[str]] = []
    for block in blocks_of(DOCS / page):
        if block.language == "json":
            found += commands_in(json.loads(block.text))
        elif block.language == "ini":
            parsed = configparser.ConfigParser(interpolation=None)
            parsed.read_string(block.text)
            found += [shlex.split(parsed["Service"]["ExecStart"])] if "Service" in parsed else []
        elif block.language in ("sh", "text"):
            found += map(shlex.split, re.findall(r"\S*/mcpgreen serve .*?(?= \\$|$)", block.text, re.MULTILINE))
    return found


@pytest.mark.parametrize("page", ["clients.md", "security.md", "WINDOWS.md"])
def test_every_line_that_starts_the_server_does(page: str, checkout: Path) -> None:
    commands = commands_on(page)

    assert commands
    for command in {tuple(command[command.index("serve") :]) for command in commands}:
        known = [str(checkout / "project") if "/" in word else word for word in command]
        with Wire(None, arguments=known) as server:
            assert "result" in server.request("ping")


def test_the_remote_token_stands_where_the_page_says(project: ProjectBuilder) -> None:
    ping = json.loads(only("security.md", "json").text.replace("the secret", "s" * 32))

    with Wire(project.root, env={"MCPGREEN_REMOTE_TOKEN": "s" * 32}) as server:
        server.send(ping)
        assert "result" in server.receive(lambda message: message.get("id") == ping["id"])
        assert "error" in server.request("ping")


def test_what_a_bundle_asks_the_user_for_is_what_clients_take() -> None:
    manifest = json.loads((CHECKOUT / "mcpgreen/templates/sharing/mcpb-manifest.schema.json").read_text("utf-8"))
    asked = json.loads(only("sharing.md", "json").text)

    jsonschema.validate(asked, {**manifest["properties"]["user_config"], "$defs": manifest["$defs"]})


def test_the_variables_of_entries_for_clients_are_known() -> None:
    known = {variable for row in ROWS for variable in row.all_variables}
    blocks = [block for name in ("debugging.md", "clients.md") for block in blocks_of(DOCS / name)]
    entries = "".join(block.text for block in blocks if (block.language, block.info) == ("json", ""))

    named = set(re.findall(r'"(MCPGREEN_\w+)"', entries))
    assert named
    assert named <= known


@pytest.fixture
def beside_a_checkout(tmp_path: Path) -> Reader:
    reader = Reader(tmp_path)
    reader.place = tmp_path / "mcpgreen"
    reader.place.mkdir()
    (reader.place / "scripts").symlink_to(CHECKOUT / "scripts")
    return reader


def test_the_commands_of_the_first_page_do_what_it_says(beside_a_checkout: Reader) -> None:
    beside_a_checkout.read(CHECKOUT / "README.md")

    (entry,) = json.loads((beside_a_checkout.home / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"].values()
    assert str(beside_a_checkout.home / "my-server") in entry["args"]


def test_the_result_on_the_first_page_is_what_goes_over_the_wire(beside_a_checkout: Reader) -> None:
    blocks = blocks_of(CHECKOUT / "README.md")
    first_tool = next(block for block in blocks if block.language == "bash")
    beside_a_checkout.take(first_tool._replace(text=first_tool.text.replace("--plain", "--json")))

    assert beside_a_checkout.printed == next(block.text for block in blocks if block.language == "json")


def test_the_first_page_knows_how_many_clients_there_are() -> None:
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")

    assert set(re.findall(r"(?:any of|lists all) (\d+)", text)) == {str(len(CLIENTS))}


def test_an_entry_for_mcp_bash_starts_the_server(project: ProjectBuilder) -> None:
    (entry,) = json.loads(blocks_of(DOCS / "from-mcp-bash.md")[0].text)["mcpServers"].values()
    assert "args" not in entry
    variables = {**entry.get("env", {}), "MCPBASH_PROJECT_ROOT": str(project.root), "MCPGREEN_PYTHON": sys.executable}
    with Wire(None, command=[str(command_of_tests())], env=variables) as server:
        server.handshake("2025-06-18")
        assert server.result("tools/list")["tools"] == []
