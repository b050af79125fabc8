"""What pages show happens, and what they name exists. `TAKEN_BY` is the one table of who takes the blocks of a page:
the reader of tests/docs/reader.py, from the top to the bottom, or tests of their own.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from mcpgreen.cli.clients.table import CLIENTS
from mcpgreen.protocol.revisions import CLIENT_NEEDS
from mcpgreen.running.hooks import PRELUDE
from mcpgreen.settings.settings import OTHER_VARIABLES, ROWS
from tests.docs.reader import CHECKOUT, DOCS, FENCED, PAGES, Reader, blocks_of, values_in
from tests.support.prerequisites import require_program

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
LINK_TO_HEADING = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")


class Read(NamedTuple):
    """The reader takes this page, with these programs."""

    needs: tuple[str, ...] = ()
    has_terminal: bool = False
    makes_executable: bool = False  # the page is about something else
    needs_our_packages: bool = False  # pydantic, which the Python of the tests has


TAKEN_BY: dict[str, Read | str] = {
    "CONTRIBUTING.md": "test_commands.py",
    "README.md": "test_commands.py",
    "ARCHITECTURE.md": "test_pages.py",
    "REMOTE.md": "test_serving.py",
    "WINDOWS.md": "test_commands.py",
    "asking-protocol.md": Read(needs=("jq",), makes_executable=True),
    "asking.md": Read(needs=("jq",)),
    "benchmark.md": "test_commands.py",
    "checking.md": Read(needs=("jq",)),
    "cli.md": "test_generated.py",
    "clients.md": "test_commands.py",
    "completion.md": Read(),
    "conformance.md": "test_commands.py",
    "debugging.md": Read(),
    "dependencies.md": "test_serving.py",
    "frameworks.md": "../frameworks/test_frameworks.py",
    "from-fastmcp.md": Read(needs_our_packages=True),
    "from-mcp-bash.md": Read(),
    "from-mcpshell-and-just.md": Read(),
    "install.md": "test_commands.py",
    "limits.md": "test_commands.py",
    "oauth.md": "test_serving.py",
    "projects.md": Read(),
    "prompts.md": Read(needs=("jq",)),
    "python-tools.md": Read(),
    "registration.md": Read(needs=("jq",)),
    "resident-tools.md": Read(needs=("node", "perl")),
    "resources.md": Read(),
    "roots.md": "../features/test_roots.py",
    "sdk-python.md": "test_sdk_pages.py",
    "sdk-shell.md": "test_sdk_pages.py",
    "security.md": "test_commands.py",
    "settings.md": "test_commands.py",
    "skills.md": Read(needs=("jq",)),
    "sharing.md": Read(),
    "fleet.md": "test_pages.py",  # its commands need a Redis; tests/fleet has them
    "tasks.md": Read(),
    "tool-protocol.md": "test_tool_protocol.py",
    "tools.md": Read(needs=("jq",)),
    "tutorial.md": Read(has_terminal=True),
    "ui.md": "../ui/test_page_of_the_guide.py",
    "warm-python.md": "test_serving.py",
    "what-clients-get.md": "test_commands.py",
    "wrap.md": Read(needs=("make",)),
}


@pytest.mark.parametrize("name", [name for name, taken_by in TAKEN_BY.items() if isinstance(taken_by, Read)])
def test_what_a_page_shows_happens(name: str, tmp_path: Path) -> None:
    how = TAKEN_BY[name]
    assert isinstance(how, Read)
    for program in how.needs:
        require_program(program)

    reader = Reader(tmp_path, has_terminal=how.has_terminal, makes_executable=how.makes_executable)
    if how.needs_our_packages:
        reader.use_our_packages()
    reader.read(DOCS / name)


def test_every_page_with_blocks_is_in_the_table() -> None:
    assert {page.name for page in PAGES if blocks_of(page)} - set(TAKEN_BY) == set()
    tests = [taken_by for taken_by in TAKEN_BY.values() if isinstance(taken_by, str)]
    assert [test for test in tests if not (Path(__file__).parent / test).exists()] == []


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@each_page
def test_what_a_page_links_to_exists(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    files = [target for target in LINK.findall(text) if "://" not in target]
    headings = [
        (page.parent / name if name else page, anchor)
        for name, anchor in LINK_TO_HEADING.findall(text)
        if "://" not in name
    ]

    assert [target for target in files if not (page.parent / target).exists()] == []
    assert [f"{target.name}#{anchor}" for target, anchor in headings if anchor not in anchors_of(target)] == []


def anchors_of(page: Path) -> set[str]:
    """The headings as GitHub names them: small letters, dashes for spaces, and of the rest only words."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_on_the_map_and_the_first_page_leads_to_it() -> None:
    linked = set(LINK.findall((DOCS / "README.md").read_text(encoding="utf-8")))

    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} - linked == set()
    assert "docs/README.md" in LINK.findall((CHECKOUT / "README.md").read_text(encoding="utf-8"))


@each_page
def test_the_code_on_a_page_is_well_formed(page: Path) -> None:
    is_good: dict[str, Callable[[str], Any]] = {"json": values_in, "python": ast.parse, "yaml": yaml.safe_load}
    for block in blocks_of(page):
        print(f"line {block.line}")
        assert is_good.get(block.language, str)(block.text)


@each_page
def test_the_settings_that_a_page_names_exist_with_the_defaults_that_it_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Read by the launcher, by the tests and by nobody else.
    known = {"MCPGREEN_PYTHON", "MCPGREEN_NO_SKIPS", "MCPGREEN_FRESH_SERVERS", *OTHER_VARIABLES}
    known |= {variable for row in ROWS for variable in row.all_variables}
    defaults = {row.name: row.default for row in ROWS}
    unit = {"s": 1, "min": 60, "MiB": 1024 * 1024}
    shown = re.findall(r"^\| `(\w+)` \| ([\d.]+) (s|min|MiB) \|", text, re.MULTILINE)

    assert set(re.findall(r"\bMCPGREEN_[A-Z][A-Z_]*[A-Z]\b", text)) - known == set()
    assert [name for name, number, of in shown if float(number) * unit[of] != defaults.get(name)] == []


@each_page
def test_the_targets_and_programs_of_the_checkout_that_a_page_names_exist(page: Path) -> None:
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    commands = "\n".join(block.text for block in blocks_of(page) if block.language in ("sh", "bash", "text"))
    targets = re.findall(r"^make ((?:[a-z]+ ?)+)", commands, re.MULTILINE)

    assert [name for names in targets for name in names.split() if f"\n{name}:" not in makefile] == []
    for name, options in re.findall(r"^python (scripts/\w+(?:\.py)?)(.*)", commands, re.MULTILINE):
        command = [sys.executable, name, "--help"]
        known = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=True).stdout
        assert [option for option in re.findall(r"--[a-z-]+", options.partition("#")[0]) if option not in known] == []


def test_the_map_of_the_architecture_names_exactly_the_packages_that_exist() -> None:
    text = (DOCS / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(mcpgreen/[\w/]*)` \|", text, re.MULTILINE)
    packages = {path.parent.relative_to(CHECKOUT) for path in (CHECKOUT / "mcpgreen").rglob("*.py")}

    assert sorted(named) == sorted(f"{each.as_posix()}/" for each in packages if each.name != "default_project")


def codes_of_lint() -> set[str]:
    source = (CHECKOUT / "mcpgreen/cli/linting.py").read_text(encoding="utf-8")
    return set(re.findall(r'(?:source\.warning\(\s*|Finding\("warning", \w+, sentence, )"([a-z-]+)"', source))


def variables_of_scripts() -> set[str]:
    files = (CHECKOUT / "mcpgreen" / "sdk" / "python").glob("mcp_tool*.py")
    return set(re.findall(r'"(MCP_[A-Z_]+)"', "".join(file.read_text(encoding="utf-8") for file in files)))


def functions_of_hooks() -> set[str]:
    """Without those that differ from a named one in their middle only, and older names."""
    command = f"set -- functions 2 /dev/null; source {PRELUDE}; compgen -A function mcp_"
    listed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.split()
    older = {"mcp_json_normalize_line", "mcp_json_quote_text"}
    return {name for name in listed if "_manual_" not in name and not name.startswith("mcp_logging_")} - older


NAMES: dict[str, Callable[[], set[str]]] = {
    "what a script may need of a client": lambda: set(CLIENT_NEEDS),
    "codes of lint": codes_of_lint,
    "variables that the SDK reads": variables_of_scripts,
    "functions that hooks find": functions_of_hooks,
    "clients": lambda: {client.word for client in CLIENTS},
}


@pytest.mark.parametrize("kind", NAMES)
def test_every_name_that_users_need_is_on_a_page(kind: str) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    names = NAMES[kind]()

    assert names
    assert [name for name in sorted(names) if name not in text] == []


def rows_of_changes() -> list[str]:
    text = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## Where do I change ...?")[2].partition("## Tests")[0]
    return [row for row in table.splitlines() if row.startswith("| ")][1:]


@pytest.mark.parametrize("row", rows_of_changes(), ids=lambda row: row.split(" | ")[0].strip("| "))
def test_the_files_and_tables_of_a_change_exist(row: str) -> None:
    """A bare name is a file beside one that the row names in full."""
    named = re.findall(r"`([^` ]+)`", row.partition(" | ")[2])
    paths = [name for name in named if "/" in name or name.endswith((".py", ".sh", ".txt"))]
    places = [CHECKOUT, CHECKOUT / "mcpgreen"]
    places += [(place / path).parent for place in places for path in paths]
    places += [place / path for place in places[:2] for path in paths if path.endswith("/")]
    found = {path: [place / path for place in places if (place / path).exists()] for path in paths}
    text = "".join(file.read_text(encoding="utf-8") for files in found.values() for file in files if file.is_file())

    assert [path for path, files in found.items() if not files] == []
    assert [name for name in named if name.isupper() and name != "NAME" and name not in text] == []
