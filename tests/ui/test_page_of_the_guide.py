"""docs/ui.md tells the truth: its project is built, its commands are run, its pages are opened with its data.

Beside what tests/docs/reader.py takes, a `json data NAME` block is a result for the page of that name.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpgreen.catalog.apps.resources import App, app_html, discover_apps
from mcpgreen.project.project import Project
from tests.docs.reader import DOCS, Reader, blocks_of
from tests.support.browser import Browser, View
from tests.support.waiting import eventually

PAGE = DOCS / "ui.md"
DATA = {block.info.removeprefix("data "): block.text for block in blocks_of(PAGE) if block.info.startswith("data ")}
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
    reader = Reader(tmp_path_factory.mktemp("reader"))
    reader.read(PAGE)
    return reader.place


@pytest.fixture(scope="module")
def pages(guide: Path) -> dict[str, App]:
    found, warnings = discover_apps(Project(str(guide), {}), "my-board")
    assert warnings == []
    return {page.name: page for page in found}


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
