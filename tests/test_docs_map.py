"""docs/README.md is the map: every page is on it. And links between pages lead to headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_docs_examples import CHECKOUT, FENCED, LINK, PAGES

DOCS = CHECKOUT / "docs"
LINK_TO_HEADING = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")


def test_every_page_is_on_the_map() -> None:
    linked = set(LINK.findall((DOCS / "README.md").read_text(encoding="utf-8")))
    pages = {page.name for page in DOCS.glob("*.md")} - {"README.md"}

    assert pages - linked == set()


def test_the_first_page_leads_to_the_map() -> None:
    assert "docs/README.md" in LINK.findall((CHECKOUT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_heading_that_a_link_leads_to_exists(page: Path) -> None:
    links = LINK_TO_HEADING.findall(page.read_text(encoding="utf-8"))
    targets = [(page.parent / name if name else page, anchor) for name, anchor in links if "://" not in name]

    assert [f"{target.name}#{anchor}" for target, anchor in targets if anchor not in anchors_of(target)] == []


def anchors_of(page: Path) -> set[str]:
    """The headings as GitHub names them: small letters, dashes for spaces, and of the rest only words."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
