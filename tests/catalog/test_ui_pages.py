"""Pages: which directories are one, what is said of them, and what is never served."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.apps.resources import (
    MIME_TYPE,
    App,
    app_for,
    app_html,
    directory_beside,
    discover_apps,
    look_at_apps,
    with_ui,
)
from mcpgreen.catalog.tree_scan import Pace
from mcpgreen.errors import InvalidParams, OutputTooLarge, ProjectError
from tests.catalog.test_tools import unprivileged
from tests.catalog.trees import TreeBuilder

LIMIT_BYTES = 1_048_576
HTML = "<!doctype html><title>x</title>"


def describe(tree: TreeBuilder, directory: str = "ui/board", **fields: Any) -> None:
    tree.write(f"{directory}/ui.meta.json", json.dumps(fields))


def pages_of(tree: TreeBuilder) -> list[App]:
    pages, warnings = discover_apps(tree.project, "server")
    assert warnings == []
    return pages


def only_page(tree: TreeBuilder) -> App:
    (page,) = pages_of(tree)
    return page


def only_warning(tree: TreeBuilder) -> str:
    pages, warnings = discover_apps(tree.project, "server")
    assert pages == []
    (warning,) = warnings
    return warning


def test_pages_are_found_beside_tools_and_below_ui(tree: TreeBuilder) -> None:
    tree.write("tools/weather/ui/index.html", HTML)
    describe(tree, "tools/alerts/ui", template="kanban")
    tree.write("ui/home/index.html", HTML)
    tree.write("ui/README.md", "no page")
    tree.write("ui/notes/readme.txt", "no page either")
    tree.write("ui/.draft/index.html", HTML)
    tree.tool("plain")

    pages = pages_of(tree)

    assert [page.uri for page in pages] == ["ui://server/alerts", "ui://server/weather", "ui://server/home"]
    assert pages[1].directory == str(tree.root / "tools/weather/ui")
    assert (pages[1].entry, pages[1].template) == (str(tree.root / "tools/weather/ui/index.html"), None)


def test_a_project_without_pages_has_none(tree: TreeBuilder) -> None:
    assert pages_of(tree) == []
    assert look_at_apps(tree.project).fingerprint == ()


def test_the_page_of_a_tool_comes_before_one_of_the_same_name(tree: TreeBuilder) -> None:
    tree.write("tools/home/ui/index.html", HTML)
    tree.write("ui/home/index.html", HTML)

    pages, warnings = discover_apps(tree.project, "server")

    assert [page.directory for page in pages] == [str(tree.root / "tools/home/ui")]
    assert warnings == ["ui/home: skipped because tools/home/ui already provides the app home"]


def test_a_page_says_what_its_description_says(tree: TreeBuilder) -> None:
    csp = {"connectDomains": ["https://api.example.com"], "resourceDomains": ["https://*.example.com"]}
    describe(
        tree,
        title="Board",
        description="All tasks",
        template="kanban",
        config={"title": "Tasks"},
        meta={
            "csp": csp,
            "permissions": {"camera": {}, "clipboardWrite": True, "microphone": False},
            "prefersBorder": False,
            "sandboxDomain": "x.example.com",
        },
    )

    page = only_page(tree)

    ui = {
        "csp": csp,
        "permissions": {"camera": {}, "clipboardWrite": {}},
        "domain": "x.example.com",
        "prefersBorder": False,
    }
    assert page.definition == {
        "name": "board",
        "uri": "ui://server/board",
        "title": "Board",
        "description": "All tasks",
        "mimeType": MIME_TYPE,
        "_meta": {"ui": ui},
    }
    assert (page.template, page.config, page.entry) == ("kanban", {"title": "Tasks"}, None)


@pytest.mark.parametrize(
    ("place", "description"), [("ui/home", "MCP App home"), ("tools/home/ui", "MCP App for the tool home")]
)
def test_a_page_that_says_nothing_has_the_defaults(tree: TreeBuilder, place: str, description: str) -> None:
    tree.write(f"{place}/index.html", HTML)

    page = only_page(tree)

    assert page.definition == {
        "name": "home",
        "uri": "ui://server/home",
        "description": description,
        "mimeType": MIME_TYPE,
        "_meta": {"ui": {"csp": {}, "permissions": {}, "prefersBorder": True}},
    }


def test_names_are_encoded_in_addresses_and_found_by_them(tree: TreeBuilder) -> None:
    tree.write("ui/grüße an alle/index.html", HTML)

    pages, _ = discover_apps(tree.project, "my server/2")

    assert pages[0].uri == "ui://my%20server%2F2/gr%C3%BC%C3%9Fe%20an%20alle"
    assert app_for(pages[0].uri, tree.project, "my server/2") == pages[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be an object"),
        ('{"template": 5}', "template must be a string"),
        ('{"template": "pie"}', "template must be one of form, data-table"),
        ('{"template": "form", "config": {"fields": []}}', "config.submitTool is missing"),
        ('{"template": "kanban", "config": []}', "config must be an object"),
        ('{"template": "kanban", "description": 1}', "description must be a string"),
        ('{"template": "kanban", "meta": {"csp": {"connectDomains": "https://x"}}}', "meta.csp.connectDomains must be"),
        ('{"template": "kanban", "meta": {"csp": {"frameDomains": ["https://x; script-src *"]}}}', "meta.csp.frame"),
        ('{"template": "kanban", "meta": {"permissions": {"camera": "yes"}}}', "meta.permissions.camera must be"),
        ('{"template": "kanban", "meta": {"prefersBorder": "no"}}', "meta.prefersBorder must be true or false"),
        ("{}", "there is no index.html, and template is not set"),
        ('{"entrypoint": "app.html"}', "there is no app.html, and template is not set"),
        ('{"entrypoint": "../other/index.html"}', "entrypoint must be a file in the app's directory"),
        ('{"entrypoint": "/etc/hostname"}', "entrypoint must be a file in the app's directory"),
        ('{"entrypoint": "a\\u0000b"}', "entrypoint must be a file in the app's directory"),
        ('{"entrypoint": "sub"}', "sub is not a file"),
    ],
)
def test_a_bad_description_costs_the_page_and_is_named(tree: TreeBuilder, text: str, reason: str) -> None:
    tree.write("ui/board/ui.meta.json", text)
    tree.write("ui/board/sub/x", "")

    warning = only_warning(tree)

    assert warning.startswith("ui/board/ui.meta.json: ")
    assert reason in warning
    assert str(tree.root) not in warning


def test_what_nobody_knows_is_left_out_with_a_warning(tree: TreeBuilder) -> None:
    describe(tree, template="kanban", meta={"csp": {"scriptDomains": ["https://x"]}, "permissions": {"usb": {}}})

    pages, warnings = discover_apps(tree.project, "server")

    assert pages[0].definition["_meta"] == {"ui": {"csp": {}, "permissions": {}, "prefersBorder": True}}
    assert [warning.split(" is unknown")[0] for warning in warnings] == [
        "ui/board/ui.meta.json: meta.csp.scriptDomains",
        "ui/board/ui.meta.json: meta.permissions.usb",
    ]


def test_a_file_in_a_subdirectory_can_be_the_page(tree: TreeBuilder) -> None:
    describe(tree, entrypoint="dist/app.html")
    tree.write("ui/board/dist/app.html", HTML)

    assert app_html(only_page(tree), limit_bytes=LIMIT_BYTES) == HTML.encode()


def test_no_link_is_followed(tree: TreeBuilder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "index.html").write_text("secret", encoding="utf-8")
    (outside / "ui.meta.json").write_text("{}", encoding="utf-8")
    for name in ("directory", "file", "description", "deep"):
        (tree.root / "ui" / name).mkdir(parents=True)
    (tree.root / "ui/linked").symlink_to(outside)
    (tree.root / "tools/x").mkdir()
    (tree.root / "tools/x/ui").symlink_to(outside)
    (tree.root / "ui/file/index.html").symlink_to(outside / "index.html")
    (tree.root / "ui/description/ui.meta.json").symlink_to(outside / "ui.meta.json")
    (tree.root / "ui/deep/sub").symlink_to(outside)
    describe(tree, "ui/deep", entrypoint="sub/index.html")

    pages, warnings = discover_apps(tree.project, "server")

    assert pages == []
    assert sorted(warning.split(":")[0] for warning in warnings) == [
        "tools/x/ui",
        "ui/deep/ui.meta.json",
        "ui/description/ui.meta.json",
        "ui/file/ui.meta.json",
        "ui/linked",
    ]
    assert all("symbolic link" in warning for warning in warnings)
    assert not any(str(tmp_path) in warning for warning in warnings)


@pytest.mark.parametrize("planted", ["a link", "a linked directory", "a fifo", "nothing", "a directory"])
def test_what_replaces_the_file_of_a_page_later_is_not_read(tree: TreeBuilder, tmp_path: Path, planted: str) -> None:
    describe(tree, entrypoint="dist/app.html")
    path = tree.write("ui/board/dist/app.html", HTML)
    page = only_page(tree)
    secret = tmp_path / "app.html"
    secret.write_text("secret", encoding="utf-8")
    path.unlink()
    if planted == "a link":
        path.symlink_to(secret)
    elif planted == "a linked directory":
        path.parent.rmdir()
        path.parent.symlink_to(tmp_path)
    elif planted == "a fifo":
        os.mkfifo(path)
    elif planted == "a directory":
        path.mkdir()

    with pytest.raises(ProjectError) as caught:
        app_html(page, limit_bytes=LIMIT_BYTES)

    assert str(caught.value).startswith("ui://server/board: dist/app.html ")
    assert str(tree.root) not in str(caught.value)


def test_a_file_wins_over_a_template(tree: TreeBuilder) -> None:
    describe(tree, template="kanban")
    assert b"<script" in app_html(only_page(tree), limit_bytes=LIMIT_BYTES)

    tree.write("ui/board/index.html", HTML)

    assert app_html(only_page(tree), limit_bytes=LIMIT_BYTES) == HTML.encode()


def test_a_template_has_the_title_of_its_page(tree: TreeBuilder) -> None:
    describe(tree, template="kanban", title="All tasks")

    assert b"<h1>All tasks</h1>" in app_html(only_page(tree), limit_bytes=LIMIT_BYTES)


@pytest.mark.parametrize("fields", [{}, {"template": "kanban"}], ids=["file", "template"])
def test_a_page_that_is_too_large_is_refused(tree: TreeBuilder, fields: dict[str, Any]) -> None:
    describe(tree, **fields)
    if not fields:
        tree.write("ui/board/index.html", HTML)
    page = only_page(tree)
    size = len(app_html(page, limit_bytes=LIMIT_BYTES))

    assert len(app_html(page, limit_bytes=size)) == size
    with pytest.raises(OutputTooLarge, match=f"board is larger than {size - 1} bytes"):
        app_html(page, limit_bytes=size - 1)


def test_a_page_that_is_not_utf8_is_refused(tree: TreeBuilder) -> None:
    tree.write("ui/board/index.html", b"\xff\xfe")

    with pytest.raises(ProjectError, match="not UTF-8"):
        app_html(only_page(tree), limit_bytes=LIMIT_BYTES)


@pytest.mark.parametrize("uri", ["ui://server/board", "ui://board", "ui://other/board", "UI://server/b%6Fard"])
def test_a_page_is_found_by_its_address(tree: TreeBuilder, uri: str) -> None:
    describe(tree, template="kanban")
    pages = pages_of(tree)

    assert app_for(uri, tree.project, "server") == pages[0]


def test_a_page_is_found_without_a_look_at_others(tree: TreeBuilder) -> None:
    """Each read of a page read the descriptions of all others, and nobody was served meanwhile."""
    describe(tree, template="kanban")
    describe(tree, "tools/tasks/ui", template="kanban")
    describe(tree, "ui/tasks", template="kanban")
    pages, warnings = discover_apps(tree.project, "server")
    for name in ("tools", "ui"):
        (tree.root / name).chmod(0o311)  # nobody can list it

    with unprivileged(tree.root):
        found = [app_for(f"ui://server/{name}", tree.project, "server") for name in ("board", "tasks", "other")]

    assert found == [*sorted(pages, key=lambda page: page.name), None]
    assert len(warnings) == 1


def test_others_have_a_turn_while_pages_are_looked_for(tree: TreeBuilder) -> None:
    """Ten thousands of files in tools/, which a script can make, were looked at in one go."""
    for number in range(300):
        tree.write(f"tools/file{number}", "")
    describe(tree, template="kanban")
    steps: list[None] = []

    class Steps(Pace):
        def step(self) -> None:
            steps.append(None)

    pages, _ = discover_apps(tree.project, "server", Steps())

    assert len(pages) == 1
    assert len(steps) >= 300


@pytest.mark.parametrize("uri", ["ui://server/other", "ui://server/board.html", "ui://server/board?x", "ui://a%zz"])
def test_other_addresses_name_no_page(tree: TreeBuilder, uri: str) -> None:
    describe(tree, template="kanban")

    assert app_for(uri, tree.project, "server") is None


@pytest.mark.parametrize(
    "uri",
    [
        "ui://",
        "ui:///",
        "ui://server/",
        "ui://server/a/board",
        "ui://server/..",
        "ui://server/%2e%2E",
        "ui://server/..%2Fboard",
        "ui://server%2Fboard",
        "ui://server/a%5Cb",
        "ui://server/a%00",
        "file:///board",
        "board",
    ],
)
def test_an_address_that_tries_to_be_a_path_is_refused(tree: TreeBuilder, uri: str) -> None:
    describe(tree, template="kanban")

    with pytest.raises(InvalidParams):
        app_for(uri, tree.project, "server")


def test_the_fingerprint_changes_with_the_files_of_pages_and_only_then(tree: TreeBuilder) -> None:
    describe(tree, entrypoint="dist/app.html")
    tree.write("ui/board/dist/app.html", HTML)
    tree.tool("x")
    seen = [look_at_apps(tree.project).fingerprint]

    tree.write("tools/x/notes.txt", "no page")
    tree.write("ui/board/node_modules/big.js", "no page")
    assert look_at_apps(tree.project).fingerprint == seen[0]

    for change in ("ui/board/dist/app.html", "ui/board/ui.meta.json", "ui/new/index.html", "tools/x/ui/index.html"):
        tree.write(change, f"{change} with another size")
        seen.append(look_at_apps(tree.project).fingerprint)
    assert len(set(seen)) == len(seen)


def test_the_page_of_a_script_lies_beside_it(tree: TreeBuilder) -> None:
    tree.write("tools/weather/ui/index.html", HTML)
    script = tree.tool("weather")
    other = tree.tool("other")
    pages = pages_of(tree)

    assert directory_beside(str(script)) == pages[0].directory
    assert directory_beside(str(other)) != pages[0].directory


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {"ui": {"resourceUri": "ui://s/p", "visibility": ["model", "app"]}}),
        ({"x": 1}, {"x": 1, "ui": {"resourceUri": "ui://s/p", "visibility": ["model", "app"]}}),
        (
            {"ui": {"visibility": ["app"], "more": 1}},
            {"ui": {"resourceUri": "ui://s/p", "visibility": ["app"], "more": 1}},
        ),
        ({"ui": {"resourceUri": "ui://s/own"}}, {"ui": {"resourceUri": "ui://s/own", "visibility": ["model", "app"]}}),
        ({"ui/resourceUri": "ui://s/old"}, {"ui": {"resourceUri": "ui://s/old", "visibility": ["model", "app"]}}),
        (
            {"ui/resourceUri": "ui://s/old", "ui": {"resourceUri": "ui://s/new"}},
            {"ui": {"resourceUri": "ui://s/new", "visibility": ["model", "app"]}},
        ),
        ({"ui": "nonsense"}, {"ui": {"resourceUri": "ui://s/p", "visibility": ["model", "app"]}}),
    ],
)
def test_a_tool_with_a_page_points_to_it(given: dict[str, Any] | None, expected: dict[str, Any]) -> None:
    before = json.dumps(given)

    assert with_ui(given, app_uri="ui://s/p") == expected
    assert json.dumps(given) == before
