"""Pages of a list and the cursors between them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Json, Speak
from tests.support.project import ProjectBuilder

NAMES = ["a", "b", "c", "d", "e"]


def names_of(page: Json) -> list[str]:
    return [tool["name"] for tool in page["tools"]]


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    for name in NAMES:
        shared_project.tool(name, "echo")


@pytest.mark.requirement("P-145", "P-266")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_cursors_lead_through_the_whole_list_once(shared_speak: Speak, revision: str) -> None:
    client = shared_speak(revision, page_size=2)
    pages = [client.result("tools/list")]
    while "nextCursor" in pages[-1]:
        pages.append(client.result("tools/list", {"cursor": pages[-1]["nextCursor"]}))

    assert [names_of(page) for page in pages] == [["a", "b"], ["c", "d"], ["e"]]
    assert {page["_meta"]["mcpbash/total"] for page in pages} == {5}
    assert len({page.get("cacheScope") for page in pages}) == 1


@pytest.mark.requirement("P-145")
def test_one_page_has_no_cursor(shared_speak: Speak) -> None:
    assert "nextCursor" not in shared_speak().result("tools/list")


@pytest.mark.requirement("P-145")
@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
def test_an_empty_cursor_asks_for_the_first_page(shared_speak: Speak, method: str) -> None:
    client = shared_speak(page_size=2)
    assert client.result(method, {"cursor": ""}) == client.result(method)


@pytest.mark.requirement("P-145")
@pytest.mark.parametrize(
    "cursor",
    ["garbage", "\u20ac", "AAAA", 5, 0, True, {}, [], "x" * 100_000],
    ids=lambda cursor: str(cursor)[:20],
)
def test_a_cursor_that_is_none_is_refused(shared_speak: Speak, cursor: Any) -> None:
    assert shared_speak(page_size=2).error("tools/list", {"cursor": cursor})["code"] == -32602


@pytest.mark.requirement("P-145")
def test_a_cursor_is_stale_after_a_change(project: ProjectBuilder, speak: Speak) -> None:
    for name in NAMES:
        project.tool(name, "echo")
    client = speak(page_size=2)
    cursor = client.result("tools/list")["nextCursor"]
    project.tool("f", "echo")

    assert client.error("tools/list", {"cursor": cursor})["code"] == -32602
    assert names_of(client.result("tools/list")) == ["a", "b"]


@pytest.mark.requirement("P-067")
def test_a_cursor_holds_all_that_the_next_page_needs(shared_speak: Speak) -> None:
    client = shared_speak("2026-07-28", page_size=2)
    cursor = client.result("tools/list")["nextCursor"]

    assert names_of(client.result("tools/list", {"cursor": cursor})) == ["c", "d"]
    assert names_of(client.result("tools/list")) == ["a", "b"]
    assert names_of(client.result("tools/list", {"cursor": cursor})) == ["c", "d"]


@pytest.mark.requirement("G-page-limit")
@pytest.mark.parametrize(("limit", "count"), [(1, 1), (2, 2), (99, 3), (0, 3), (-1, 3), ("x", 3), (None, 3)])
def test_a_client_may_ask_for_smaller_pages_only(shared_speak: Speak, limit: Any, count: int) -> None:
    assert len(shared_speak(page_size=3).result("tools/list", {"limit": limit})["tools"]) == count
