"""The site that `make docs` builds of all pages: complete, no dead links, a search, and nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.support.browser import Browser
from tests.support.prerequisites import require_module
from tests.support.waiting import eventually
from tests.support.wire import CHECKOUT

SCRIPT = CHECKOUT / "scripts" / "build_site.py"
BUILD_SECS = 120

spec = importlib.util.spec_from_file_location("build_site", SCRIPT)
assert spec is not None and spec.loader is not None
build_site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build_site)


def test_the_navigation_is_the_map_by_kinds() -> None:
    branches = build_site.navigation()
    paths = list(build_site.paths_in(branches))
    pages = {f"docs/{page.name}" for page in (CHECKOUT / "docs").glob("*.md")}
    examples = {f"examples/{page.parent.name}/README.md" for page in (CHECKOUT / "examples").glob("*/README.md")}

    assert pages | examples | {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"} <= set(paths)
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("```python tools/a.py\n", '```python title="tools/a.py"\n'),
        ("```text wire\n", "```text\n"),
        ("```sh\n", "```sh\n"),
        ("| `A \\| B` | a \\| b |\n", "| `A | B` | a \\| b |\n"),
        ("no row: `A \\| B`\n", "no row: `A \\| B`\n"),
    ],
)
def test_what_mkdocs_reads_in_another_way_is_rewritten(written: str, read: str) -> None:
    assert build_site.rewritten(written) == read


class Page(HTMLParser):
    """What a page of the site links to, what it loads, and which anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "modulepreload"):
            self.loaded.append(given["href"])
        elif "src" in given:
            self.loaded.append(given["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_module("material")
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(directory)], capture_output=True, text=True, timeout=BUILD_SECS, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return directory


def test_every_link_on_the_site_leads_to_a_page_and_an_anchor_of_it(site: Path) -> None:
    pages = {f"/{path.relative_to(site)}": Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    dead, foreign = [], []
    for place, page in pages.items():
        if place == "/404.html":  # its links begin at the root of a server
            continue
        for link in [*page.links, *page.loaded]:
            target = urlsplit(urljoin(place, link))
            if target.scheme:
                foreign += [f"{place}: {link}"] if link in page.loaded else []
                continue
            path = unquote(target.path)
            anchors = pages[path].anchors if path in pages else set()
            is_alive = (site / path[1:]).is_file() and (not target.fragment or unquote(target.fragment) in anchors)
            dead += [] if is_alive else [f"{place}: {link}"]

    assert pages
    assert dead == []
    assert foreign == []


def test_code_and_tables_are_shown_as_such(site: Path) -> None:
    text = (site / "docs" / "python-tools.html").read_text(encoding="utf-8")

    assert '<span class="filename">tools/repeat.py</span>' in text
    assert "<code>T | None</code>" in text
    assert [path.name for path in site.rglob("*.html") if "```" in path.read_text(encoding="utf-8")] == []


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_browser_finds_a_page_and_asks_nobody_else(browser: Browser, address: str) -> None:
    session = browser.take_page()

    def value(expression: str) -> Any:
        asked = {"expression": f"JSON.stringify(({expression}) ?? null)", "returnByValue": True}
        answer = browser.command("Runtime.evaluate", asked, session=session)["result"]
        return json.loads(answer.get("value", "null"))

    try:
        browser.command("Page.navigate", {"url": f"{address}/docs/tutorial.html?q=elicitation"}, session=session)
        found = eventually(
            lambda: value("[...document.querySelectorAll('.md-search-result__link')].map((a) => a.href)")
        )
        tabs = value("[...document.querySelectorAll('.md-tabs__link')].map((a) => a.textContent.trim())")
        heading = value("document.querySelector('.md-content h1').firstChild.textContent")
        eventually(lambda: value("document.images.length > 0 && [...document.images].every((i) => i.naturalWidth > 0)"))
        own = [event for event in browser.events if event.get("sessionId") == session]
    finally:
        browser.give_back(session)

    asked = {event["params"]["request"]["url"] for event in own if event["method"] == "Network.requestWillBeSent"}
    assert any(link.startswith(f"{address}/docs/asking") for link in found)
    assert tabs == ["Start", "How-to", "Reference", "Explanation"]
    assert heading.startswith("Tutorial")
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert [event for event in own if event["method"] == "Runtime.exceptionThrown"] == []
