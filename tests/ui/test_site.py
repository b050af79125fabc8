"""The site that `make docs` builds of all pages: complete, no dead links, a search, and nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.docs.reader import Reader
from tests.support.browser import Browser
from tests.support.prerequisites import require_module
from tests.support.programs import completed
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
        (
            '<picture>\n  <source media="(x)" srcset="d.svg">\n  <img src="l.svg" alt="A chat">\n</picture>\n',
            '<img src="l.svg#only-light" alt="A chat"><img src="d.svg#only-dark" alt="A chat">\n',
        ),
    ],
)
def test_what_mkdocs_reads_in_another_way_is_rewritten(written: str, read: str) -> None:
    assert build_site.rewritten(written) == read


@pytest.mark.parametrize(
    ("path", "written", "read"),
    [
        ("docs/README.md", "[a](../README.md)", "[a](../overview.md)"),
        ("CHANGELOG.md", "[a](README.md#speed)", "[a](overview.md#speed)"),
        ("examples/01/README.md", "[a](../README.md)", "[a](../README.md)"),
        ("docs/tutorial.md", "[a](README.md)", "[a](README.md)"),
    ],
)
def test_links_to_the_readme_lead_to_its_place_on_the_site(path: str, written: str, read: str) -> None:
    assert build_site.relinked(written, path) == read


def test_the_commands_of_the_first_page_do_what_it_says(tmp_path: Path) -> None:
    Reader(tmp_path).read(CHECKOUT / build_site.LANDING)

    (entry,) = json.loads((tmp_path / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"].values()
    assert str(tmp_path / "my-server") in entry["args"]


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
    done = completed([sys.executable, str(SCRIPT), str(directory)], timeout=BUILD_SECS)
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
            has_anchor = target.fragment in ("", "only-light", "only-dark") or unquote(target.fragment) in anchors
            is_alive = (site / path[1:]).is_file() and has_anchor
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


class Visit:
    """A page of the site in a browser, as somebody sees it who has never been there."""

    def __init__(self, browser: Browser, url: str, *, scheme: str = "light", width: int = 1280) -> None:
        self._browser = browser
        self.session = browser.take_page()
        origin = "/".join(url.split("/")[:3])
        self.command("Storage.clearDataForOrigin", origin=origin, storageTypes="local_storage")
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 600
        )
        self.command("Page.navigate", url=url)
        eventually(lambda: self.value("document.readyState") == "complete")

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.command(method, params, session=self.session)

    def value(self, expression: str) -> Any:
        asked = f"JSON.stringify(({expression}) ?? null)"
        answer = self.command("Runtime.evaluate", expression=asked, returnByValue=True)["result"]
        return json.loads(answer.get("value", "null"))

    def seen(self) -> list[str]:
        """The pictures that are shown, by name."""
        shown = (
            "[...document.querySelectorAll('.md-content img')].filter((i) => i.offsetWidth > 0 && i.naturalWidth > 0)"
        )
        return [Path(urlsplit(url).path).name for url in self.value(f"{shown}.map((i) => i.src)")]

    def colours(self) -> set[str]:
        """Whether the pictures that are shown are light or dark, by their names."""
        return {Path(name).stem.rpartition("-")[2] for name in self.seen()}

    def close(self) -> None:
        self.command("Emulation.clearDeviceMetricsOverride")
        self.command("Emulation.setEmulatedMedia", features=[])
        self._browser.give_back(self.session)


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Callable[..., Visit]]:
    visits: list[Visit] = []

    def open_page(path: str, **options: Any) -> Visit:
        visits.append(Visit(browser, f"{address}/{path}", **options))
        return visits[-1]

    yield open_page
    for each in visits:
        each.close()


def test_a_browser_finds_a_page_and_asks_nobody_else(
    browser: Browser, address: str, visit: Callable[..., Visit]
) -> None:
    page = visit("docs/tutorial.html?q=elicitation")

    found = eventually(
        lambda: page.value("[...document.querySelectorAll('.md-search-result__link')].map((a) => a.href)")
    )
    tabs = page.value("[...document.querySelectorAll('.md-tabs__link')].map((a) => a.textContent.trim())")
    heading = page.value("document.querySelector('.md-content h1').firstChild.textContent")
    eventually(
        lambda: page.value("document.images.length > 0 && [...document.images].every((i) => i.naturalWidth > 0)")
    )

    own = [event for event in browser.events if event.get("sessionId") == page.session]
    asked = {event["params"]["request"]["url"] for event in own if event["method"] == "Network.requestWillBeSent"}
    assert any(link.startswith(f"{address}/docs/asking") for link in found)
    assert tabs == ["Start", "How-to", "Reference", "Explanation"]
    assert heading.startswith("Tutorial")
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert [event for event in own if event["method"] == "Runtime.exceptionThrown"] == []


@pytest.mark.parametrize("path", ["index.html", "overview.html"])
@pytest.mark.parametrize(("system", "other"), [("light", "dark"), ("dark", "light")])
def test_a_page_is_as_light_as_the_system_until_somebody_switches(
    visit: Callable[..., Visit], path: str, system: str, other: str
) -> None:
    page = visit(path, scheme=system, width=390)
    switch = f"document.querySelector('label[title=\"Switch to {other} colours\"]')"

    eventually(lambda: page.colours() == {system})
    assert eventually(lambda: page.value(f"{switch}.offsetWidth")) > 0
    page.value(f"{switch}.click()")
    eventually(lambda: page.colours() == {other})


@pytest.mark.parametrize("path", ["index.html", "overview.html", "docs/index.html", "docs/REMOTE.html"])
def test_a_page_fits_on_a_phone(visit: Callable[..., Visit], path: str) -> None:
    page = visit(path, width=390)

    assert page.value("document.documentElement.scrollWidth") == 390


def test_every_page_has_our_logo_and_the_first_one_leads_on(site: Path) -> None:
    for name in ("index.html", "docs/tools.html"):
        text = (site / name).read_text(encoding="utf-8")
        assert [link.rsplit("/", 1)[-1] for link in re.findall(r'<link rel="icon" href="([^"]+)"', text)] == [
            "logo.svg"
        ]
        assert re.search(r'<img src="[^"]*pictures/logo.svg" alt="logo">', text)
    first = Page((site / "index.html").read_text(encoding="utf-8"))
    assert {"docs/tutorial.html", "docs/install.html", "docs/tools.html", "docs/index.html"} <= set(first.links)
