"""Templates as text: what they contain, what they never contain, and what is wrong with a configuration."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from mcpgreen.catalog.apps.templates import TEMPLATES, problems, render
from mcpgreen.errors import ProjectError

Json = dict[str, Any]

HOSTILE = "</script><!-- <b>&amp;\u2028\u2029 {{bridge}} {{title}} \ud800"
FIELDS = [{"name": "x"}]
MINIMAL: dict[str, Json] = {template: {} for template in TEMPLATES} | {"form": {"fields": FIELDS, "submitTool": "t"}}


class Reader(HTMLParser):
    """What a browser would see: elements with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.heading = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        tag = self.elements[-1][0] if self.elements else ""
        if tag == "script":
            self.scripts[-1] += data
        elif tag == "h1":
            self.heading += data


def test_there_are_six_templates() -> None:
    assert sorted(TEMPLATES) == ["data-table", "diff-viewer", "form", "kanban", "progress", "tree-view"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_page_is_complete_and_needs_nothing_from_elsewhere(template: str) -> None:
    text = render(template, MINIMAL[template], title="Mine")
    page = Reader(text)

    assert text.startswith("<!doctype html>\n<html lang=")
    assert page.heading.strip() == "Mine"
    assert "{{" not in text
    for tag, attributes in page.elements:
        assert not {"src", "href", "action", "srcdoc"} & set(attributes), (tag, attributes)
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        assert tag not in ("link", "base", "iframe", "object")
    code = "".join(page.scripts)
    for word in ("eval(", "Function(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "import"):
        assert not re.search(rf"(?<![\w|]){re.escape(word)}(?![\w|])", code), word
    assert "@import" not in text and "url(" not in text and "//cdn" not in text


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_configuration_is_inside_as_data_whatever_it_holds(template: str) -> None:
    config = {**MINIMAL[template], "title": HOSTILE, "data": {HOSTILE: [HOSTILE]}}

    text = render(template, config, title="Mine")
    page = Reader(text)

    (embedded,) = [
        script
        for script, (_, attributes) in zip(
            page.scripts, [each for each in page.elements if each[0] == "script"], strict=True
        )
        if attributes.get("id") == "config"
    ]
    assert not set("<>&\u2028\u2029") & set(embedded)
    spoken = HOSTILE.replace("\ud800", "\ufffd")
    assert json.loads(embedded)["data"] == {spoken: [spoken]}
    assert len(page.scripts) == 3
    text.encode("utf-8")


def test_the_title_of_the_configuration_comes_first() -> None:
    assert "<title>Yours</title>" in render("kanban", {"title": "Yours"}, title="Mine")
    assert "<title>Mine</title>" in render("kanban", {"title": ""}, title="Mine")


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_least_configuration_has_no_problems(template: str) -> None:
    assert list(problems(template, MINIMAL[template])) == []


@pytest.mark.parametrize(
    ("template", "config", "sentence"),
    [
        ("pie", {}, 'template must be one of form, data-table, progress, diff-viewer, tree-view, kanban, found "pie"'),
        ("form", {"submitTool": "t"}, "config.fields is missing"),
        ("form", {"fields": FIELDS}, "config.submitTool is missing"),
        (
            "form",
            {"fields": FIELDS, "submitTool": ""},
            'config.submitTool must be a non-empty string, found ""',
        ),
        ("form", {"fields": {}, "submitTool": "t"}, "config.fields must be an array, found an object"),
        ("form", {"fields": [], "submitTool": "t"}, "config.fields must not be empty"),
        ("form", {"fields": ["x"], "submitTool": "t"}, 'config.fields[0] must be an object, found "x"'),
        ("form", {"fields": [{}], "submitTool": "t"}, "config.fields[0].name is missing"),
        ("form", {"fields": FIELDS * 2, "submitTool": "t"}, 'config.fields[1].name appears twice: "x"'),
        (
            "form",
            {"fields": [{"name": "x", "type": "colour"}], "submitTool": "t"},
            "config.fields[0].type must be one of text, email, password, number, date, textarea, select, checkbox, "
            'found "colour"',
        ),
        (
            "form",
            {"fields": [{"name": "x", "type": "select"}], "submitTool": "t"},
            "config.fields[0].options is missing: a select needs an array of options",
        ),
        (
            "form",
            {"fields": [{"name": "x", "type": "select", "options": [{}]}], "submitTool": "t"},
            "config.fields[0].options[0] must be a string, a number or a boolean, or an object with value and label",
        ),
        (
            "form",
            {"fields": FIELDS, "submitTool": "t", "submitArgs": 1},
            "config.submitArgs must be an object, found 1",
        ),
        ("data-table", {"columns": [{"label": "x"}]}, "config.columns[0].key is missing"),
        ("progress", {"showPercentage": "yes"}, 'config.showPercentage must be true or false, found "yes"'),
        ("diff-viewer", {"viewMode": "both"}, 'config.viewMode must be split or unified, found "both"'),
        ("tree-view", {"expandLevel": -1}, "config.expandLevel must be a number, 0 or more, found -1"),
        ("kanban", {"columns": [{"title": "x"}]}, "config.columns[0].id is missing"),
        ("kanban", {"columns": ["a", "a"]}, 'config.columns[1].id appears twice: "a"'),
        ("kanban", {"title": 5}, "config.title must be a string, found 5"),
    ],
)
def test_a_problem_is_named_with_its_place(template: str, config: Json, sentence: str) -> None:
    assert list(problems(template, config)) == [sentence]
    with pytest.raises(ProjectError, match=re.escape(sentence)):
        render(template, config, title="Mine")


def test_numbers_that_json_cannot_say_are_a_problem() -> None:
    (problem,) = problems("kanban", {"data": float("inf")})

    assert problem.startswith("config is not JSON")


def test_a_column_may_be_named_by_a_string() -> None:
    assert list(problems("kanban", {"columns": ["todo", {"id": "done"}]})) == []
