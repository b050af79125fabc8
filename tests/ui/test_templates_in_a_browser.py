"""Every template in a real browser, under the policy of a strict host.

The `show` fixture also sees to it that no test leaves an error in the console or loads anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpgreen.catalog.apps import templates
from tests.support.browser import Browser, View
from tests.support.waiting import eventually

Show = Callable[..., View]
Json = dict[str, Any]

MARKUP = '<img src=x onerror="document.title=1"></script><b>bold</b>'

FORM: Json = {
    "title": "New user",
    "description": "Who is it?",
    "fields": [
        {"name": "name", "label": "Full name", "required": True},
        {"name": "age", "type": "number"},
        {"name": "role", "type": "select", "options": ["admin", {"value": 7, "label": "Guest"}], "default": "admin"},
        {"name": "isActive", "type": "checkbox", "label": "Active", "default": "true"},
        {"name": "note", "type": "textarea", "placeholder": "If any"},
    ],
    "submitTool": "create-user",
    "submitArgs": {"source": "page"},
    "cancelable": True,
}
MINIMAL: dict[str, Json] = {
    "form": {"fields": [{"name": "name"}], "submitTool": "create"},
    "data-table": {},
    "progress": {},
    "diff-viewer": {},
    "tree-view": {},
    "kanban": {},
}
# Data for each template in which every text is markup, and where it has to show as text.
HOSTILE: dict[str, tuple[Json, Any, str]] = {
    "form": (
        {"fields": [{"name": "f", "label": MARKUP, "default": MARKUP}], "submitTool": "t", "description": MARKUP},
        {"values": {"f": MARKUP}},
        "label",
    ),
    "data-table": ({"columns": [{"key": "k", "label": MARKUP}]}, {"rows": [{"k": MARKUP}]}, "td"),
    "progress": ({}, {"percent": 10, "step": MARKUP}, "#step"),
    "diff-viewer": ({"leftTitle": MARKUP}, {"left": "", "right": MARKUP, "rightTitle": MARKUP}, "td.added.text"),
    "tree-view": ({}, [{"id": 1, "label": MARKUP, "meta": MARKUP, "iconChar": MARKUP}], ".node"),
    "kanban": ({"columns": [{"id": MARKUP}]}, [{"id": 1, "title": MARKUP, "column": MARKUP, "tags": [MARKUP]}], "li"),
}


def set_value(view: View, selector: str, value: str) -> None:
    view.in_page(f"document.querySelector({selector!r}).value = {value!r}")


def call_of(view: View) -> Json:
    """The one tool call that the page has made."""
    (call,) = eventually(lambda: view.seen("tools/call"))
    return call


def test_the_browser_tells_of_what_a_page_must_not_do(browser: Browser) -> None:
    page = templates.render("progress", {}, title="A page")
    spoilt = page.replace("</main>", '<img src="https://example.com/x.png" onerror="1"></main>')
    view = View(browser, spoilt)

    complaints = view.complaints()

    view.close()
    assert any("example.com" in str(complaint) for complaint in complaints)
    assert any("inline event handler" in str(complaint) or "img-src" in str(complaint) for complaint in complaints)


@pytest.mark.parametrize("template", templates.TEMPLATES)
def test_a_page_introduces_itself_and_tells_its_size(show: Show, template: str) -> None:
    view = show(template, {**MINIMAL[template], "title": "Mine"})

    (introduction,) = view.seen("ui/initialize")
    assert introduction["appInfo"]["name"] == "Mine"
    assert introduction["protocolVersion"] and introduction["appCapabilities"]
    assert view.text("h1") == "Mine"
    assert eventually(lambda: view.seen("ui/notifications/size-changed"))[-1]["height"] > 0


@pytest.mark.parametrize("template", templates.TEMPLATES)
def test_data_is_shown_as_text_and_never_as_markup(show: Show, template: str) -> None:
    config, data, selector = HOSTILE[template]
    view = show(template, {**config, "title": MARKUP})

    view.tool_result(data if isinstance(data, dict) else {"data": data})

    eventually(lambda: MARKUP in view.text(selector))
    assert view.text("h1") == MARKUP
    assert view.in_page("document.querySelectorAll('img, b').length") == 0
    assert view.in_page("document.title") == MARKUP


@pytest.mark.parametrize("template", templates.TEMPLATES)
def test_a_page_answers_its_host_and_takes_its_colours(show: Show, template: str) -> None:
    colours = {"--color-text-primary": "rgb(1, 2, 3)"}
    view = show(template, MINIMAL[template], context={"theme": "dark", "styles": {"variables": colours}})
    assert view.in_page("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
    assert view.in_page("getComputedStyle(document.documentElement).colorScheme") == "dark"

    view.tell({"method": "ui/notifications/host-context-changed", "params": {"theme": "light"}})
    view.tell({"id": "bye", "method": "ui/resource-teardown", "params": {}})
    view.tell({"id": "what", "method": "novelty", "params": {}})

    replies = eventually(lambda: view.in_host("seen.filter((each) => typeof each.id === 'string')") or None)
    eventually(lambda: view.in_host("seen.filter((each) => each.id === 'what').length"))
    assert replies[0] == {"jsonrpc": "2.0", "id": "bye", "result": {}}
    assert view.in_page("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_only_the_host_is_listened_to(show: Show) -> None:
    view = show("data-table", {"columns": [{"key": "n"}]})
    forged = {"jsonrpc": "2.0", "method": "ui/notifications/tool-result", "params": {"structuredContent": {"rows": []}}}
    view.tool_result({"rows": [{"n": 1}]})
    eventually(lambda: view.text("caption") == "1 row")

    # Messages arrive in order: when our own listener has heard it, the page has had its turn.
    view.in_page("addEventListener('message', (event) => { if (event.source === window) window.heard = true; })")
    view.in_page(f"postMessage({json.dumps(forged)}, '*')")

    eventually(lambda: view.in_page("window.heard"))
    assert view.text("caption") == "1 row"


@pytest.mark.parametrize("template", templates.TEMPLATES)
def test_a_failed_tool_is_told(show: Show, template: str) -> None:
    view = show(template, MINIMAL[template])

    view.tool_result(text="no such user", is_error=True)

    eventually(lambda: view.text("#status") == "no such user")


@pytest.mark.parametrize("template", templates.TEMPLATES)
def test_every_control_has_a_name(show: Show, template: str) -> None:
    config, data, _ = HOSTILE[template]
    view = show(template, {**config, "data": data, "onMoveTool": "m", "onCardClickTool": "c", "cancelTool": "x"})

    nameless = view.in_page(
        """[...document.querySelectorAll('button, input, select, textarea, progress, [role=tree], [role=region]')]
        .filter((each) => !(each.labels?.length || each.innerText || each.getAttribute('aria-label')
            || each.getAttribute('aria-labelledby') || each.closest('[hidden]') || each.hidden))
        .map((each) => each.outerHTML)"""
    )
    assert nameless == []


def test_a_form_calls_its_tool_with_typed_values(show: Show) -> None:
    view = show("form", FORM)
    view.answer_next_call({"result": {"content": [{"type": "text", "text": "Created."}]}})
    set_value(view, "[name=name]", "Ada")
    set_value(view, "[name=age]", "36")
    set_value(view, "[name=role]", "7")

    view.click("#submit")

    arguments = {"source": "page", "name": "Ada", "age": 36, "role": 7, "isActive": True}
    assert call_of(view) == {"name": "create-user", "arguments": arguments}
    eventually(lambda: view.text("#status") == "Created.")
    assert view.text("#description") == "Who is it?"


def test_a_form_lacking_a_required_value_is_not_sent(show: Show) -> None:
    view = show("form", FORM)

    view.click("#submit")

    assert view.in_page("document.querySelector('[name=name]').validity.valueMissing") is True
    assert view.seen("tools/call") == []


def test_a_form_is_filled_by_arguments_and_results_and_sent_with_enter(show: Show) -> None:
    view = show("form", FORM)
    view.tell({"method": "ui/notifications/tool-input", "params": {"arguments": {"name": "Ada", "other": 1}}})
    view.tool_result({"values": {"age": 36, "isActive": False}})
    eventually(lambda: view.in_page("document.querySelector('[name=age]').value") == "36")

    view.focus("[name=name]")
    view.press("Enter")

    assert call_of(view)["arguments"] == {
        "source": "page",
        "name": "Ada",
        "age": 36,
        "role": "admin",
        "isActive": False,
    }


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32602, "message": "name is taken"}},
        {"result": {"isError": True, "content": [{"type": "text", "text": "name is taken"}]}},
    ],
    ids=["error", "failed result"],
)
def test_a_refused_form_can_be_sent_again(show: Show, answer: Json) -> None:
    view = show("form", FORM)
    view.answer_next_call(answer)
    set_value(view, "[name=name]", "Ada")

    view.click("#submit")

    eventually(lambda: view.text("#status") == "name is taken")
    eventually(lambda: view.in_page("document.querySelector('#submit').disabled") is False)


def test_a_cancelled_form_is_as_it_was_and_asks_to_be_closed(show: Show) -> None:
    view = show("form", FORM)
    set_value(view, "[name=name]", "Ada")

    view.click("#cancel")

    assert eventually(lambda: view.seen("ui/notifications/request-teardown")) == [{}]
    assert view.in_page("document.querySelector('[name=name]').value") == ""
    assert view.in_page("document.querySelector('[name=role]').value") == "admin"


ROWS = [{"name": "b", "n": 10}, {"name": "a", "n": 9}, {"name": "c", "n": None}]


@pytest.mark.parametrize("data", [{"rows": ROWS}, {"data": ROWS}, {"items": ROWS}, {"success": True, "result": ROWS}])
def test_a_table_shows_rows_and_sorts_them(show: Show, data: Any) -> None:
    view = show("data-table", {"columns": [{"key": "name", "label": "Name"}, {"key": "n", "sortable": True}]})
    view.tool_result(data)
    eventually(lambda: view.texts("td:first-child") == ["b", "a", "c"])
    assert view.texts("th") == ["Name", "n"]
    assert view.text("caption") == "3 rows"

    view.focus("th button")
    view.press("Enter")
    assert view.texts("td:first-child") == ["a", "b", "c"]
    assert view.in_page("document.querySelectorAll('th')[1].getAttribute('aria-sort')") == "ascending"

    view.press("Enter")
    assert view.texts("td:first-child") == ["b", "a", "c"]


def test_a_table_reads_rows_from_text_and_finds_its_columns(show: Show) -> None:
    view = show("data-table", {})

    view.tool_result(text='[{"a": 1, "b": {"c": true}}, {"d": "x"}]')

    eventually(lambda: view.texts("th") == ["a", "b", "d"])
    assert view.texts("td") == ["1", '{"c":true}', "", "", "", "x"]


def test_an_address_in_a_table_is_opened_by_the_host(show: Show) -> None:
    view = show("data-table", {"data": [{"at": "https://example.com/x"}, {"at": "javascript:alert(1)"}]})

    view.click("td a")

    assert eventually(lambda: view.seen("ui/open-link")) == [{"url": "https://example.com/x"}]
    assert view.texts("td a") == ["https://example.com/x"]


def test_progress_runs_and_completes(show: Show) -> None:
    view = show("progress", {})
    assert view.text("#step") == "Running …"
    view.tell({"method": "notifications/progress", "params": {"progress": 3, "total": 4, "message": "third"}})
    eventually(lambda: view.text("#percentage") == "75 %")
    assert view.text("#step") == "third"

    view.tool_result({"anything": 1})

    eventually(lambda: view.text("#percentage") == "100 %")
    assert view.text("#step") == "Completed"


def test_work_is_cancelled_after_a_question(show: Show) -> None:
    view = show("progress", {"cancelTool": "stop", "cancelArgs": {"job": 7}, "cancelConfirm": "Really?"})
    view.answer_next_call({"result": {"content": []}})
    view.click("#cancel")
    assert view.text("#question") == "Really?"
    assert view.seen("tools/call") == []

    view.click("#yes")

    assert call_of(view) == {"name": "stop", "arguments": {"job": 7}}
    eventually(lambda: view.text("#step") == "Cancelled")
    assert view.in_page("document.querySelector('#buttons').hidden") is True


BEFORE, AFTER = "one\ntwo\nthree\nfour\n", "one\n2\nthree\nfour\nfive\n"


@pytest.mark.parametrize("names", [("left", "right"), ("original", "modified")])
def test_two_texts_are_compared_side_by_side(show: Show, names: tuple[str, str]) -> None:
    view = show("diff-viewer", {"leftTitle": "Old"})

    view.tool_result({names[0]: BEFORE, names[1]: AFTER})

    eventually(lambda: view.text("caption") == "Lines added: 2, removed: 1")
    assert view.texts("th") == ["Old", "Modified"]
    assert [text.split()[-1] for text in view.texts("td.text.removed")] == ["two"]
    assert [text.split()[-1] for text in view.texts("td.text.added")] == ["2", "five"]
    assert view.in_page("document.querySelectorAll('tbody tr').length") == 5
    assert view.texts("td.number.added") == ["2", "5"]


NODES = [
    {"id": "src", "label": "src", "children": [{"id": "src/a", "label": "a.py", "meta": "2 KB"}]},
    {"id": "docs", "label": "docs", "children": [{"id": "docs/b", "label": "b.md"}]},
]


def focused(view: View) -> str:
    return view.in_page("document.activeElement.getAttribute('aria-label')")


@pytest.mark.parametrize("data", [{"nodes": NODES}, {"tree": NODES}, {"data": NODES}])
def test_a_tree_is_walked_and_selected_from_by_keyboard(show: Show, data: Any) -> None:
    view = show("tree-view", {"selectable": True, "onSelectTool": "open", "expandLevel": 0})
    view.answer_next_call({"result": {"content": [{"type": "text", "text": "opened"}]}})
    view.tool_result(data)
    eventually(lambda: view.texts("li[aria-level='1'] > .node"))
    view.focus("li[tabindex='0']")

    for key in ("ArrowRight", "ArrowRight"):
        view.press(key)
    assert focused(view) == "a.py"
    view.press("Enter")

    assert call_of(view) == {"name": "open", "arguments": {"nodeId": "src/a"}}
    assert view.in_page("document.querySelector('[aria-selected=true]').getAttribute('aria-label')") == "a.py"
    eventually(lambda: view.text("#status") == "opened")
    view.press("ArrowDown")
    assert focused(view) == "docs"


def test_a_click_on_a_node_selects_it_and_one_on_its_mark_folds_it(show: Show) -> None:
    view = show("tree-view", {"selectable": True, "onSelectTool": "open", "data": NODES})
    view.click("li .toggle")
    assert view.in_page("document.querySelector('li').getAttribute('aria-expanded')") == "false"
    assert view.seen("tools/call") == []

    view.click("li .node span:last-child")

    assert call_of(view)["arguments"] == {"nodeId": "src"}


BOARD: Json = {
    "columns": [{"id": "todo", "title": "To do"}, {"id": "done", "title": "Done"}],
    "onMoveTool": "move-task",
    "onCardClickTool": "open-task",
}
CARDS = [
    {"id": "t1", "title": "Write", "column": "todo", "priority": "high", "tags": ["x"], "assignee": "Ada"},
    {"id": "t2", "title": "Read", "status": "elsewhere"},
]


def board_of(view: View) -> dict[str, list[str]]:
    return view.in_page(
        """Object.fromEntries([...document.querySelectorAll('section')].map((part) =>
        [part.querySelector('h2 span').textContent, [...part.querySelectorAll('.title')].map((t) => t.textContent)]))"""
    )


def test_a_board_shows_every_card_also_in_columns_that_nobody_named(show: Show) -> None:
    view = show("kanban", BOARD)

    view.tool_result({"cards": CARDS})

    eventually(lambda: board_of(view) == {"To do": ["Write"], "Done": [], "elsewhere": ["Read"]})
    assert view.texts("li:first-child .tags span") == ["high", "x", "Ada"]


def test_a_card_is_moved_by_keyboard(show: Show) -> None:
    view = show("kanban", {**BOARD, "data": CARDS})
    view.answer_next_call({"result": {"content": []}})

    view.focus("[aria-label='Move Write to Done']")
    view.press("Enter")

    moved = {"cardId": "t1", "fromColumn": "todo", "toColumn": "done"}
    assert call_of(view) == {"name": "move-task", "arguments": moved}
    eventually(lambda: "Moved" in view.text("#status"))
    assert board_of(view)["Done"] == ["Write"]
    assert view.in_page("document.activeElement.tagName") == "BUTTON"


def test_a_card_is_moved_by_dragging(show: Show) -> None:
    view = show("kanban", {**BOARD, "data": CARDS})

    view.in_page(
        """{
        const data = new DataTransfer();
        const fire = (target, type) => target.dispatchEvent(
            new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
        fire(document.querySelector('li'), 'dragstart');
        fire(document.querySelectorAll('section')[1], 'dragover');
        fire(document.querySelectorAll('section')[1], 'drop');
        }"""
    )

    assert call_of(view)["arguments"] == {"cardId": "t1", "fromColumn": "todo", "toColumn": "done"}
    assert board_of(view)["Done"] == ["Write"]


def test_a_card_whose_move_is_refused_goes_back(show: Show) -> None:
    view = show("kanban", {**BOARD, "data": CARDS})
    view.answer_next_call({"error": {"code": -32000, "message": "locked"}})

    view.click("[aria-label='Move Write to Done']")

    eventually(lambda: "locked" in view.text("#status"))
    assert board_of(view)["To do"] == ["Write"]
