"""Calls from the page: the form of every kind, a client of every revision, questions, tasks, and strange results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.workbench.page.window import CONTROL, Window

Run = Callable[..., str]


@pytest.fixture
def run(window: Window) -> Run:
    """Call a tool, and return what its answer shows."""

    def run_tool(tool: str, status: str = "ok") -> str:
        if not window.js("location.hash").endswith(f"/{tool}"):
            window.go(f"try/tool/{tool}")
        window.await_text("desk", tool)
        before = window.js("(await import('/state.js')).state.calls.lastEvent")
        window.click("run")
        eventually(lambda: window.text("status") == status and window.js(f"!{window.element('run')}.disabled"))
        eventually(lambda: window.js("(await import('/state.js')).state.calls.lastEvent") > before)
        return window.text("result")

    return run_tool


def sent(window: Window) -> Any:
    return json.loads(window.js("JSON.stringify(document.querySelector('try-panel').current.form.value)"))


def test_every_kind_of_field_is_sent_as_what_it_is(window: Window, run: Run) -> None:
    window.go("try/tool/echo")
    window.fill("input-title", "two\nlines <b>")
    window.click("input-loud-false")
    window.choose("input-level", "1")
    since = window.element("input-since")
    window.js(f"({since}.value = '2026-01-02', {since}.dispatchEvent(new Event('input')))")
    window.click("null-owner")
    for item in ("0", "1"):
        window.click("add-tags")
        window.fill(f"input-tags.{item}", f"tag {item}")
    window.click("up-tags-1")
    window.click("input-colours-1")
    window.click("add-address")
    window.fill("input-address.city", "Bern")
    window.fill("input-shape.radius", "1")
    window.click("variant-shape-1")
    window.fill("input-shape.width", "12345678901234567890")
    window.fill("input-anything", '{"deep": [1]}')
    arguments = {
        "title": "two\nlines <b>",
        "count": 3,
        "loud": False,
        "level": "high",
        "since": "2026-01-02",
        "owner": None,
        "tags": ["tag 1", "tag 0"],
        "colours": ["blue"],
        "address": {"city": "Bern"},
        "shape": {"width": 12345678901234567890},
        "anything": {"deep": [1]},
    }
    assert sent(window) == arguments
    run("echo")
    assert '"width":12345678901234567890' in window.js(f"{window.element('text')}.textContent")
    window.click("variant-shape-0")
    assert sent(window)["shape"] == {"radius": 1}


def test_json_and_the_form_lose_nothing_of_each_other(window: Window) -> None:
    window.go("try/tool/echo")
    window.click("mode-json")
    window.fill("json-text", '{"title": 5, "unknown": {"kept": true}, "shape": {"width": 1}')
    window.click("mode-form")
    assert "not JSON yet" in window.text("json-problem") and window.js(f"Boolean({window.element('json-text')})")
    window.fill("json-text", '{"title": 5, "unknown": {"kept": true}, "shape": {"width": 1}}')
    window.click("mode-form")
    assert window.js(f"{window.element('input-title')}.value") == "5"  # a number, where the schema has a text
    window.fill("input-count", "many")
    assert sent(window) == {"title": 5, "unknown": {"kept": True}, "shape": {"width": 1}, "count": "many"}


@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_call_is_that_of_a_client_of_the_revision(window: Window, run: Run, revision: str) -> None:
    window.choose("revision", revision)
    assert "Ada" in run("people")
    assert window.text("outcome").count(revision) == 1
    window.choose("revision", ALL_REVISIONS[-1])


def test_a_table_a_tree_pictures_and_sound(window: Window, run: Run) -> None:
    assert "1906" in run("people")
    window.click("sort-born")
    window.click("sort-born")
    assert window.js(f"{window.element('table')}.tBodies[0].rows[0].innerText").startswith("Grace")
    window.click("result-tab-tree")
    assert "people" in window.await_text("json-tree", "people")
    run("media")
    assert window.await_js(f"{window.element('picture')}.naturalWidth") == 1
    assert window.js(f"{window.element('sound')}.src").startswith("data:audio/wav")
    assert "file:///a.txt" in window.text("block-resource_link")


def test_an_app_talks_with_the_page_from_a_sandbox(window: Window, run: Run) -> None:
    run("board")
    frame = window.element("app-frame")
    assert window.await_js(f"{frame}?.style.height") == "101px"
    assert window.js(f"{frame}.getAttribute('sandbox')") == "allow-scripts" and "people" in window.text("result")
    window.take_complaints()  # the policy of the app forbids what it tries


def test_nothing_is_told_from_not_yet(window: Window, run: Run) -> None:
    window.go("try/tool/silent")
    window.await_text("try-outcome", "Not run yet")
    run("silent")
    assert window.text("result").count("nothing") + window.text("result").count("empty") >= 1


def test_markup_and_control_codes_of_a_script_stay_text(window: Window, run: Run) -> None:
    shown = run("fails", "the tool failed")
    assert "<script>alert(1)</script>" in shown and "\x1b" not in shown
    assert window.js("document.querySelectorAll('main script').length") == 0


def test_a_huge_output_is_cut(window: Window, run: Run) -> None:
    shown = run("flood")
    assert "␛[1m<b>line</b> 1\n" in shown and "more" in shown
    assert len(shown) < 40_000


def test_progress_and_logs_are_shown_and_a_call_is_cancelled(window: Window, page_project: ProjectBuilder) -> None:
    window.go("try/tool/slow")
    window.press("Enter", CONTROL)
    window.await_text("progress", "25 %")
    window.await_text("logs", "<i>begun</i>")
    window.click("cancel")
    window.await_text("status", "cancelled")
    assert "cancelled" in window.text("failure")
    page_project.write("go", "")
    window.js("document.activeElement.blur()")
    window.press("r")  # again, with the same arguments
    window.await_text("result", "done")


def test_a_question_is_answered_where_it_is_asked(window: Window) -> None:
    window.go("try/tool/asks")
    window.click("run")
    assert "Who <b>?" in window.await_text("question", "Who")
    window.fill("input-name", "Ada")
    window.click("accept")
    assert "Ada" in window.await_text("result", "accept")
    assert "accept" in window.text("answered")


def test_the_person_answers_for_the_model(window: Window) -> None:
    window.go("try/tool/samples")
    window.click("run")
    assert "Say <b>hi</b>" in window.await_text("question", "model")
    window.fill("sampling-text", "Salut")
    window.click("accept")
    assert "Salut" in window.await_text("result", "Salut")
    window.click("run")
    window.await_js(f"Boolean({window.element('sampling-text')})")
    window.click("decline")
    window.await_text("status", lambda text: text in ("error", "the tool failed"))


def test_a_url_is_shown_and_is_opened_only_by_a_click(window: Window) -> None:
    window.go("try/tool/visits")
    window.click("run")
    assert "https://login.example/?x=1" in window.await_text("question-url", "login")
    link = window.element("open-url")
    assert window.js(f"{link}.href") == "https://login.example/?x=1"
    assert "noreferrer" in window.js(f"{link}.rel") and window.js(f"{link}.target") == "_blank"
    window.click("accept")
    assert "accept" in window.await_text("result", "accept")


def test_a_task_shows_its_life(window: Window, run: Run) -> None:
    window.go("try/tool/later")
    window.click("as-task")
    assert "washed" in run("later")
    assert "completed" in window.text("task-status")
    window.click("as-task")


def test_a_prompt_and_a_resource_are_tried_too(window: Window) -> None:
    window.go("try/prompt/greet")
    window.fill("input-name", "Ada")
    window.click("run")
    window.await_text("result", "Hello Ada")
    uri = window.js("(await import('/state.js')).state.catalog.resources[0].definition.uri")
    window.go(f"try/resource/{window.js(f'encodeURIComponent({json.dumps(uri)})')}")
    window.click("run")
    window.await_text("result", "inside")


def test_the_revisions_are_compared(window: Window) -> None:
    window.go("try/tool/people")
    window.click("compare")
    for revision in ALL_REVISIONS:
        window.await_text(f"compare-{revision}", "Ada")
    assert "structuredContent" not in window.text(f"compare-{ALL_REVISIONS[0]}")
    window.press("Escape")


def test_last_calls_are_kept_and_a_call_becomes_a_test(window: Window, run: Run, page_project: ProjectBuilder) -> None:
    run("people")
    assert "no arguments" in window.text("kept-0")
    window.click("save-test")
    window.await_text("toast", "Written")
    assert list(Path(page_project.root).rglob("*.test.yaml"))
