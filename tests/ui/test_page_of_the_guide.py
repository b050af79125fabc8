"""docs/ui.md tells the truth: its project is built, its commands are run, its pages are opened with its data.

Its fenced blocks are taken as on docs/tools.md: with a file name a block is that file, a bash block without one is run,
and the json block after it is what it prints. A `json data NAME` block is a result for the page of that name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpgreen.catalog.apps.resources import App, app_html, discover_apps
from mcpgreen.catalog.apps.templates import TEMPLATES
from mcpgreen.project.project import Project
from tests.support.browser import Browser, View
from tests.support.waiting import eventually
from tests.support.wire import clean_environment
from tests.test_docs_examples import CHECKOUT, COMMAND_SECS, blocks_of, values_in

BLOCKS = blocks_of(CHECKOUT / "docs" / "ui.md")
DATA = {block.info.removeprefix("data "): block.text for block in BLOCKS if block.info.startswith("data ")}
# What has to be seen of the data that the guide shows.
SEEN = {
    "report": ("td", "Ada"),
    "import": ("#percentage", "25 %"),
    "changes": ("caption", "Lines added: 1, removed: 1"),
    "files": ("[aria-level='2'] .node", "main.py"),
    "sprint": ("li .title", "Write"),
}


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the guide. Its commands have been run, and have printed what it says."""
    place = tmp_path_factory.mktemp("reader")
    tell_place = place / "place"
    (place / "bin").mkdir()
    (place / "bin" / "mcpgreen").symlink_to(CHECKOUT / "scripts" / "mcpgreen")
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = clean_environment({"PATH": path, "MCPGREEN_PYTHON": sys.executable, "TELL_PLACE": str(tell_place)})
    for block, following in zip(BLOCKS, [*BLOCKS[1:], None], strict=True):
        if "/" in block.info:
            target = place / block.info
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
            target.chmod(0o644)
        elif block.language == "bash":
            script = f'set -euo pipefail\numask 022\n{block.text}\npwd > "$TELL_PLACE"\n'
            command = ["bash", "-c", script]
            done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=COMMAND_SECS)
            assert (done.returncode, done.stderr) == (0, ""), f"line {block.line}"
            is_output = following is not None and (following.language, following.info) == ("json", "")
            assert values_in(done.stdout) == (values_in(following.text) if following and is_output else [])
            place = Path(tell_place.read_text(encoding="utf-8").strip())
    return place


@pytest.fixture(scope="module")
def pages(guide: Path) -> dict[str, App]:
    found, warnings = discover_apps(Project(str(guide), {}), "my-board")
    assert warnings == []
    return {page.name: page for page in found}


def test_the_guide_has_a_page_for_every_template_and_data_for_each(pages: dict[str, App]) -> None:
    assert {page.template for page in pages.values()} == {None, *TEMPLATES}
    assert set(DATA) == {name for name in pages if name not in ("tasks", "map")}
    assert pages["tasks"].uri == "ui://my-board/tasks"
    assert pages["map"].entry is not None
    assert "geolocation" in pages["map"].definition["_meta"]["ui"]["permissions"]


@pytest.mark.parametrize("name", SEEN)
def test_the_data_of_the_guide_is_seen(browser: Browser, pages: dict[str, App], name: str) -> None:
    view = View(browser, app_html(pages[name], limit_bytes=1 << 20).decode("utf-8"))
    selector, text = SEEN[name]

    view.tool_result(json.loads(DATA[name]))

    eventually(lambda: text in view.text(selector))
    complaints = view.complaints()
    view.close()
    assert complaints == []


def test_the_form_of_the_guide_is_filled(browser: Browser, pages: dict[str, App]) -> None:
    view = View(browser, app_html(pages["new-task"], limit_bytes=1 << 20).decode("utf-8"))

    view.tool_result(json.loads(DATA["new-task"]))

    eventually(lambda: view.in_page("document.querySelector('[name=hours]').value") == "2")
    view.close()
