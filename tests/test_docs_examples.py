"""The pages tell the truth: what docs/tools.md shows is built and run, and what pages point at exists.

The page is the fixture. Its fenced blocks are taken in order:

* a block with a file name in its info string is written to that file of the project;
* a bash block without one is run, in one working directory after the other as a reader would;
* a json block without one is what the commands before it print;
* a `text wire` block is a conversation with the server: `-->` is sent, `<--` has to come.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.once import once
from tests.support.prerequisites import require_program
from tests.support.wire import Wire, clean_environment, command_of_tests

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = CHECKOUT / "docs" / "tools.md"
PAGES = [CHECKOUT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted((CHECKOUT / "docs").glob("*.md"))

FENCED = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
RUN_TOOL = re.compile(r"mcpgreen run-tool (\S+)")
COMMAND_SECS = 60


class Block(NamedTuple):
    language: str
    info: str
    text: str
    line: int


class Step(NamedTuple):
    """A block of commands on the page, and what the page says that they print."""

    commands: Block
    shown: Block | None


class Printed(NamedTuple):
    status: int
    stdout: str
    stderr: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2].strip(), found[3], text.count("\n", 0, found.start()) + 1)
        for found in FENCED.finditer(text)
    ]


def steps_of(blocks: list[Block]) -> list[Step]:
    return [
        Step(block, following if following and (following.language, following.info) == ("json", "") else None)
        for block, following in zip(blocks, [*blocks[1:], None], strict=True)
        if (block.language, block.info) == ("bash", "")
    ]


BLOCKS = blocks_of(PAGE)
FILES = {block.info: block.text for block in BLOCKS if "/" in block.info}
SCRIPTS = {Path(name).stem: text for name, text in FILES.items() if text.startswith("#!")}
STEPS = steps_of(BLOCKS)
CONVERSATIONS = [block for block in BLOCKS if block.info == "wire"]


def at_line(value: Any) -> str:
    block = value.commands if isinstance(value, Step) else value
    return f"line {block.line}"


def require_json_tool(*names: str) -> None:
    if any("mcp_args_" in SCRIPTS.get(name, "") for name in names) and not shutil.which("gojq"):
        require_program("jq")


def values_in(text: str) -> list[Any]:
    """The JSON values that stand one after the other in a text."""
    decoder = json.JSONDecoder()
    values = []
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:]
    return values


class Walk:
    """A reader who does what the page says, from the top to the bottom."""

    def __init__(self, directory: Path, blocks: list[Block]) -> None:
        self.place = directory
        self._blocks = blocks
        self.printed: dict[int, Printed] = {}
        self._programs = directory / "bin"
        self._programs.mkdir()
        (self._programs / "mcpgreen").symlink_to(command_of_tests())
        self._tell_place = directory / "place"

    def go(self) -> None:
        for block in self._blocks:
            self.take(block)

    def take(self, block: Block) -> None:
        """One block: a file to write, commands to run, or nothing to do."""
        if "/" in block.info:
            target = self.place / block.info
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
            target.chmod(0o644)  # whatever the umask: the page says who gets the executable bit
        elif (block.language, block.info) == ("bash", ""):
            self.printed[block.line] = self._run(block.text)

    def _run(self, commands: str) -> Printed:
        path = f"{self._programs}{os.pathsep}{os.environ['PATH']}"
        script = f'set -euo pipefail\numask 022\n{commands}\npwd > "$TELL_PLACE"\n'
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.place,
            env=clean_environment(
                {"PATH": path, "MCPGREEN_PYTHON": sys.executable, "TELL_PLACE": str(self._tell_place)}
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=COMMAND_SECS,
            check=False,
        )
        if done.returncode == 0:
            self.place = Path(self._tell_place.read_text(encoding="utf-8").strip())
        return Printed(done.returncode, done.stdout, done.stderr)


class Walked(NamedTuple):
    """What is left of a walk: where the reader is, and what each block of commands printed."""

    place: Path
    printed: dict[int, Printed]


def walked_once(factory: pytest.TempPathFactory, name: str, blocks: list[Block]) -> Walked:
    """A walk that takes long, and leaves what the tests leave as it is."""

    def walk_in(place: Path) -> dict[str, Any]:
        walk = Walk(place, blocks)
        walk.go()
        return {"place": str(walk.place), "printed": list(walk.printed.items())}

    told = once(factory, f"walk-{name}", walk_in)
    return Walked(Path(told["place"]), {line: Printed(*printed) for line, printed in told["printed"]})


def conversation_with(place: Path, conversation: Block) -> list[tuple[Any, Any]]:
    """What the page says that the server answers, and what it does answer."""
    answers = []
    server = Wire(place)
    try:
        server.handshake()
        for line in conversation.text.splitlines():
            arrow, message = line[:3], {"jsonrpc": "2.0", **json.loads(line[3:])}
            if arrow == "-->":
                server.send(message)
                continue
            assert arrow == "<--", line
            answers.append((message, server.receive(lambda _: True)))
    finally:
        server.end()
    return answers


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    reader = Walk(tmp_path_factory.mktemp("reader"), BLOCKS)
    reader.go()
    return reader


@pytest.mark.parametrize("step", STEPS, ids=at_line)
def test_a_command_on_the_page_does_what_the_page_says(walk: Walk, step: Step) -> None:
    require_json_tool(*RUN_TOOL.findall(step.commands.text))
    printed = walk.printed[step.commands.line]

    assert (printed.status, printed.stderr) == (0, "")
    assert values_in(printed.stdout) == (values_in(step.shown.text) if step.shown else [])


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=at_line)
def test_a_conversation_on_the_page_takes_place(walk: Walk, conversation: Block) -> None:
    for said, heard in conversation_with(walk.place, conversation):
        assert heard == said


def test_the_server_lists_the_tools_of_the_page_and_no_others(walk: Walk) -> None:
    server = Wire(walk.place)
    try:
        server.handshake()
        listed = [tool["name"] for tool in server.result("tools/list")["tools"]]
    finally:
        server.end()

    assert listed == sorted(SCRIPTS)


def test_every_tool_of_the_page_is_run() -> None:
    commands = "".join(step.commands.text for step in STEPS)
    run = set(RUN_TOOL.findall(commands))
    run |= {name for block in CONVERSATIONS for name in re.findall(r'"params": {"name": "([^"]+)"', block.text)}

    assert run == set(SCRIPTS)


def test_all_three_forms_of_a_description_are_shown() -> None:
    assert any(name.endswith(".meta.json") and name.startswith("tools/") for name in FILES)
    assert any(name.endswith(".meta.yaml") for name in FILES)
    assert any("# mcp: {" in text for text in SCRIPTS.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_exists(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_json_that_a_page_shows_is_json(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "json":
            assert values_in(block.text), f"{page.name}, line {block.line}"


def test_the_map_of_the_architecture_names_exactly_the_packages_that_exist() -> None:
    text = (CHECKOUT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(mcpgreen/[\w/]*)` \|", text, re.MULTILINE)
    packages = {path.parent.relative_to(CHECKOUT) for path in (CHECKOUT / "mcpgreen").rglob("*.py")}

    assert sorted(named) == sorted(f"{each.as_posix()}/" for each in packages if each.name != "default_project")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_setting_that_a_page_names_exists(page: Path, known_variables: set[str]) -> None:
    named = set(re.findall(r"\bMCPGREEN_[A-Z][A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8")))

    assert named - known_variables == set()


@pytest.fixture(scope="module")
def known_variables() -> set[str]:
    from mcpgreen.settings.table import OTHER_VARIABLES, ROWS

    # Read by the launcher, by the tests and by nobody else.
    others = {"MCPGREEN_PYTHON", "MCPGREEN_NO_SKIPS", "MCPGREEN_FRESH_SERVERS"}
    return {row.variables[0] for row in ROWS} | set(OTHER_VARIABLES) | others
