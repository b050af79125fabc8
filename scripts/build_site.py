"""Build a site of all pages, with navigation and search, for a browser.

    python scripts/build_site.py [DIRECTORY]

Writes to DIRECTORY (site/ by default). The map, docs/README.md, says what is on the site, and in which order: a page
that is not on the map is not on the site. The first page and the style sheet are in scripts/site/. Nothing is fetched
from elsewhere.

The pages are written for GitHub. What MkDocs reads in another way (names of files behind ```, \\| in code in a table,
pictures for dark pages) is rewritten on the way, in a copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
MAP = "docs/README.md"
EXAMPLES = "examples/README.md"
LANDING = "scripts/site/index.md"
STYLE = "scripts/site/site.css"
LOGO = "docs/pictures/logo.svg"
PLACES = {LANDING: "index.md", "README.md": "overview.md"}  # pages that are elsewhere on the site
SECTION = "## All pages by kind"  # of the map
KINDS = {"Tutorial": "Start"}  # those that are called otherwise on the site
OTHERS = ("docs/pictures/*", STYLE, "LICENSE", "Dockerfile", "examples/proxy/*/*")  # what pages show or link to

_KIND = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)
_GROUP = re.compile(r"^\* (\w[\w ]*):", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\(([^)#\s]+\.md)\)")
_FENCE = re.compile(r"^```(\w+) (\S*[/.]\S*)$", re.MULTILINE)
_OTHER_FENCE = re.compile(r"^```(\w+) .*$", re.MULTILINE)
_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_CODE = re.compile(r"`[^`]*`")
_PICTURE = re.compile(r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img src="([^"]+)" alt="([^"]*)">\s*</picture>')
_TARGET = re.compile(r"(?<=\]\()[^)#\s]+\.md")

Navigation = list[dict[str, Any]]


def navigation() -> Navigation:
    """The map as MkDocs wants it: kinds, their groups, and pages."""
    section = (REPOSITORY / MAP).read_text(encoding="utf-8").partition(SECTION)[2]
    found: Navigation = []
    _, *parts = _KIND.split(section)
    for kind, text in zip(parts[::2], parts[1::2], strict=True):
        alone, *groups = _GROUP.split(text)
        branches: list[Any] = [*_pages(alone)]
        branches += [{name: [*_pages(inner)]} for name, inner in zip(groups[::2], groups[1::2], strict=True)]
        found.append({KINDS.get(kind, kind): branches})
    start: list[Any] = next(iter(found[0].values()))
    start[:0] = [{"Home": LANDING}, {"Overview": "README.md"}, {"Find your page": MAP}]
    start.append({"Examples": [{"All examples": EXAMPLES}, *_examples()]})
    return found


def _pages(text: str) -> Iterator[dict[str, str]]:
    for title, link in _LINK.findall(text):
        yield {" ".join(title.split()): os.path.normpath(os.path.join(os.path.dirname(MAP), link))}


def _examples() -> Iterator[dict[str, str]]:
    for title, link in _LINK.findall((REPOSITORY / EXAMPLES).read_text(encoding="utf-8")):
        if "/" in link and not link.startswith("../"):
            yield {title: os.path.join(os.path.dirname(EXAMPLES), link)}


def paths_in(branches: list[Any]) -> Iterator[str]:
    for branch in branches:
        for inner in branch.values():
            yield from paths_in(inner) if isinstance(inner, list) else [inner]


def at_their_places(branches: list[Any]) -> list[Any]:
    """The same navigation, with the paths that pages have on the site."""
    return [
        {
            title: at_their_places(inner) if isinstance(inner, list) else PLACES.get(inner, inner)
            for title, inner in branch.items()
        }
        for branch in branches
    ]


def relinked(text: str, path: str) -> str:
    """The page at `path`, with links to pages that are elsewhere on the site."""
    folder = os.path.dirname(path)

    def target(link: re.Match[str]) -> str:
        place = PLACES.get(os.path.normpath(os.path.join(folder, link[0])))
        return os.path.relpath(place, folder or ".") if place else link[0]

    return _TARGET.sub(target, text)


def rewritten(text: str) -> str:
    """A page of GitHub's Markdown as MkDocs reads it."""
    # GitHub asks the system which one to show; on the site, people can choose.
    text = _PICTURE.sub(r'<img src="\2#only-light" alt="\3"><img src="\1#only-dark" alt="\3">', text)
    text = _FENCE.sub(r'```\1 title="\2"', text)
    text = _OTHER_FENCE.sub(lambda fence: fence[0] if "title=" in fence[0] else f"```{fence[1]}", text)
    return _ROW.sub(lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), text)


def _palette(name: str, scheme: str, header: str, *, icon: str, other: str) -> dict[str, Any]:
    """Used where the system is set to `name`, until somebody switches to the `other` one."""
    toggle = {"icon": icon, "name": f"Switch to {other} colours"}
    return {"media": f"(prefers-color-scheme: {name})", "scheme": scheme, "primary": header, "toggle": toggle}


def settings(navigation: Navigation, source: Path, target: Path) -> str:
    """The mkdocs.yml. JSON is YAML as well, but for the tag at its end."""
    plain = {
        "site_name": "mcpgreen",
        "docs_dir": str(source),
        "site_dir": str(target),
        "use_directory_urls": False,  # so that pages can be opened as files, too
        "nav": navigation,
        "plugins": ["search"],
        "theme": {
            "name": "material",
            "font": False,
            "logo": LOGO,
            "favicon": LOGO,
            "features": ["navigation.tabs", "navigation.top", "content.code.copy", "search.highlight", "toc.follow"],
            "palette": [
                _palette("light", "default", "white", icon="material/weather-night", other="dark"),
                _palette("dark", "slate", "black", icon="material/weather-sunny", other="light"),
            ],
        },
        "extra_css": [STYLE],
        "extra": {"generator": False, "homepage": "index.html"},
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn"},
            "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
        },
    }
    lines = [f"{key}: {json.dumps(value)}" for key, value in plain.items()]
    lines += ["markdown_extensions:", "- tables", "- sane_lists", "- attr_list", "- md_in_html"]
    lines += ["- pymdownx.highlight", "- pymdownx.superfences"]
    lines += ["- toc:", "    permalink: true"]
    # Anchors as GitHub makes them.
    lines += ["    slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}"]
    return "\n".join(lines) + "\n"


def build(target: Path) -> int:
    branches = navigation()
    with tempfile.TemporaryDirectory(prefix="mcpgreen-site-") as directory:
        source = Path(directory, "pages")
        for path in paths_in(branches):
            page = source / PLACES.get(path, path)
            page.parent.mkdir(parents=True, exist_ok=True)
            text = (REPOSITORY / path).read_text(encoding="utf-8")
            page.write_text(rewritten(relinked(text, path)), encoding="utf-8")
        for pattern in OTHERS:
            for file in REPOSITORY.glob(pattern):
                copy = source / file.relative_to(REPOSITORY)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
        config = Path(directory, "mkdocs.yml")
        config.write_text(settings(at_their_places(branches), source, target.resolve()), encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", str(config)]
        return subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode


def main(arguments: list[str]) -> int:
    target = Path(arguments[0]) if arguments else REPOSITORY / "site"
    status = build(target)
    if status == 0:
        print(f"wrote {target}; to search it, too: python3 -m http.server --directory {target}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
