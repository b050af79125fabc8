"""Roots that the operator or the project names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpgreen.errors import ProjectError
from mcpgreen.project.roots import configured_roots
from tests.catalog.trees import TreeBuilder


@pytest.fixture
def tree(tmp_path: Path) -> TreeBuilder:
    tree = TreeBuilder(tmp_path / "my-server")
    tree.write("data/x", "")
    (tree.root / "more").mkdir()
    return tree


def paths(tree: TreeBuilder, configured: str = "") -> list[str]:
    return configured_roots(str(tree.root), configured).paths


def config(tree: TreeBuilder, content: object) -> None:
    tree.write("config/roots.json", content if isinstance(content, str) else json.dumps(content))


@pytest.mark.requirement("G-roots-configured")
def test_without_any_configuration_the_project_is_the_root(tree: TreeBuilder) -> None:
    assert paths(tree) == [str(tree.root)]
    assert json.loads(configured_roots(str(tree.root), "").variables["MCP_ROOTS_JSON"])[0]["name"] == "my-server"


@pytest.mark.requirement("G-roots-configured")
def test_the_setting_wins_over_the_file_and_the_file_over_the_project(tree: TreeBuilder) -> None:
    config(tree, {"roots": [{"path": "./data"}]})

    assert paths(tree) == [str(tree.root / "data")]
    assert paths(tree, "more") == [str(tree.root / "more")]


@pytest.mark.requirement("G-roots-configured")
def test_relative_paths_are_meant_from_the_project(
    tree: TreeBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert paths(tree, f"./data:..:{tree.root}/more") == [
        str(tree.root / "data"),
        str(tmp_path),
        str(tree.root / "more"),
    ]


@pytest.mark.requirement("G-roots-configured")
def test_links_are_resolved_home_is_known_and_each_root_counts_once(
    tree: TreeBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tree.root / "more"))
    (tree.root / "link").symlink_to(tree.root / "data")

    assert paths(tree, f"link:data:/{tree.root}/data:~") == [str(tree.root / "data"), str(tree.root / "more")]


@pytest.mark.requirement("G-roots-configured")
@pytest.mark.parametrize("configured", ["nowhere", "data:nowhere", "/no/such/place:data", "two\nlines"])
def test_one_bad_path_in_the_setting_is_refused(tree: TreeBuilder, configured: str) -> None:
    (tree.root / "two\nlines").mkdir()
    with pytest.raises(ProjectError, match="MCPGREEN_ROOTS"):
        paths(tree, configured)


@pytest.mark.requirement("G-roots-configured")
@pytest.mark.parametrize("configured", ["", ":", "::"])
def test_a_setting_without_a_path_is_no_setting(tree: TreeBuilder, configured: str) -> None:
    assert paths(tree, configured) == [str(tree.root)]


@pytest.mark.requirement("G-roots-configured")
def test_bad_entries_of_the_file_are_skipped(tree: TreeBuilder) -> None:
    bad = [{"path": "nowhere"}, {"path": 5}, {"path": ""}, {"path": "a\0b"}, {}, "data", None]
    config(tree, {"roots": [*bad, {"path": "data", "name": "Data"}, {"path": "more", "name": 5}]})
    roots = configured_roots(str(tree.root), "")

    assert roots.paths == [str(tree.root / "data"), str(tree.root / "more")]
    assert [root["name"] for root in json.loads(roots.variables["MCP_ROOTS_JSON"])] == ["Data", "more"]


@pytest.mark.requirement("G-roots-configured")
@pytest.mark.parametrize(
    "content", ["", "{", "[]", "5", {}, {"roots": {}}, {"roots": []}, {"roots": [{"path": "nowhere"}]}], ids=str
)
def test_a_file_that_names_no_usable_root_leaves_the_project(tree: TreeBuilder, content: object) -> None:
    config(tree, content)

    assert paths(tree) == [str(tree.root)]
