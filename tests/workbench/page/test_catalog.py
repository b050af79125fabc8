"""The catalog on the page: what there is, what it costs, what was left out, and what changes on disk."""

from __future__ import annotations

from tests.support.project import ProjectBuilder
from tests.workbench.page.window import Window


def test_everything_of_the_project_is_listed_and_what_was_left_out(window: Window) -> None:
    window.go("catalog")
    shown = window.await_text("catalog-items", "Greet")
    assert all(each in shown for each in ("echo", "Give it back", "A file", "welcome"))
    window.click("catalog-kind-left-out")
    window.click("item-left out-tools/broken.meta.json")

    assert "not valid JSON" in window.await_text("catalog-detail", "broken.meta.json")
    window.click("catalog-kind-all")


def test_an_item_shows_its_arguments_its_file_and_its_cost(window: Window) -> None:
    window.go("catalog/tool/echo")
    shown = window.await_text("catalog-detail", "Give it back")
    assert "tools/echo" in shown and "tokens" in shown and "integer ≥ 1" in shown and "required" in shown
    window.js("document.activeElement.blur()")
    window.press("t")
    assert "echo" in window.await_text("desk", "echo")


def test_an_edit_on_disk_appears(window: Window, page_project: ProjectBuilder) -> None:
    window.go("catalog")
    page_project.tool("fresh", "true", description="Just <b>written</b>")
    window.await_js(f"Boolean({window.element('item-tool-fresh')})")
    assert "Just <b>written</b>" in window.text("item-tool-fresh")

    window.go("try/tool/fresh")
    page_project.tool("fresh", "true", description="Changed", inputSchema={"properties": {"new": {"type": "string"}}})
    window.await_js(f"Boolean({window.element('input-new')})")
    page_project.remove("tools/fresh")
    page_project.remove("tools/fresh.meta.json")
    window.await_text("desk", "any more")


def test_a_thousand_tools_are_a_screenful_of_elements(window: Window) -> None:
    window.go("catalog")
    window.js("""await (async () => {
        const { state } = await import('/state.js');
        window.before = state.catalog;
        const about = { file: null, tokens: 9, findings: [] };
        const tool = (n) => ({ definition: { name: `tool-${n}`, description: 'One of many' }, ...about });
        state.catalog = { ...state.catalog, tools: Array.from({ length: 1000 }, (_, n) => tool(n)) };
        state.tell('catalog');
    })()""")
    window.fill("catalog-search", "tool-99")
    window.await_js(f"Boolean({window.element('item-tool-tool-999')})")
    window.fill("catalog-search", "")
    window.js(f"{window.element('catalog-items')}.focus()")
    window.press("End")
    elements = window.js(f"{window.element('catalog-items')}.querySelectorAll('[role=option]').length")
    assert elements < 60
    window.js("import('/state.js').then(({ state }) => { state.catalog = before; state.tell('catalog'); })")


def test_what_is_wrong_with_the_project_as_a_whole_is_shown(window: Window, page_project: ProjectBuilder) -> None:
    page_project.write("server.d/env", "not a variable\n")
    window.go("catalog")
    window.js("(await import('/state.js')).state.go({ item: null })")
    assert "server.d/env" in window.await_text("finding-env", "KEY=value")
    page_project.remove("server.d/env")
    window.await_js(f"!{window.element('finding-env')}")
