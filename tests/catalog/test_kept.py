"""A static catalog serves what an earlier look left in `.registry/` if that can be trusted, and else looks itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.item_kinds import SOURCE_OF
from tests.catalog.trees import TreeBuilder
from tests.support.prerequisites import as_somebody_else

Json = dict[str, Any]

TOOL: Json = {
    "title": "Greet",
    "description": "Says hello",
    "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
    "_meta": {"a": 1},
    "icons": [{"src": "https://example.com/a.png"}],
    "timeoutSecs": 5,
    "timeoutHint": "less",
    "maxTimeoutSecs": 9.5,
    "progressExtendsTimeout": True,
    "maxConcurrent": 2,
    "stays": {"for": "server", "workers": 2},
    "needs": ["elicitation.form"],
    "interaction": "replay",
    "scopes": ["files:read"],
    "mine": [1],
}


@pytest.fixture
def full(tmp_path: Path) -> TreeBuilder:
    """A project with something of everything."""
    tree = TreeBuilder(tmp_path)
    tree.write("tools/greet/greet.sh", "#!/bin/sh\necho hello\n", mode=0o755)
    tree.write("tools/greet/greet.meta.json", json.dumps(TOOL))
    tree.write("tools/plain", "#!/bin/sh\n", mode=0o755)
    tree.write("tools/unset.sh", '# mcp: {"description": "no bit"}\n')
    tree.write("tools/greet/ui/index.html", "<html></html>")
    tree.write("ui/board/ui.meta.json", json.dumps({"template": "kanban", "description": "All"}))
    tree.write("resources/note.txt", "note")
    tree.write("resources/odd", b"\0\1")
    tree.write("resources/own.txt", "own")
    tree.write("resources/own.meta.json", json.dumps({"uri": "own://1", "title": "Own", "mine": 1}))
    tree.write("resources/site.meta.json", json.dumps({"uri": "https://example.com/", "description": "Site"}))
    schema = {"properties": {"id": {"enum": ["a"]}}}
    tree.write("resources/family.meta.json", json.dumps({"uriTemplate": "own://{id}/x", "inputSchema": schema}))
    tree.write("prompts/hello.txt", "Hello {{who}}")
    by_schema = {"properties": {"who": {"enum": ["a", "b"], "description": "Whom"}}, "required": ["who"]}
    tree.write("prompts/hello.meta.json", json.dumps({"arguments": by_schema, "role": "assistant"}))
    tree.write("prompts/program.sh", "#!/bin/sh\necho\n", mode=0o755)
    listed = [{"name": "x", "required": True, "schema": {"enum": ["1"]}}, {"name": "y", "title": "Y"}]
    tree.write("prompts/program.meta.json", json.dumps({"arguments": listed, "timeoutSecs": 3, "scopes": ["x"]}))
    tree.write("prompts/alone.meta.json", json.dumps({"messages": [{"content": "Hi"}], "description": "Alone"}))
    tree.write("prompts/plain.txt", "nothing")
    tree.write("skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidy up.\n---\n")
    tree.write("skills/tidy/more/list.md", "a list")
    return tree


def catalog(tree: TreeBuilder, *, is_static: bool = True) -> Catalog:
    return Catalog(tree.project, ttl_secs=0, max_bytes=1_000_000, is_static=is_static)


def no_description(*_: Any, **__: Any) -> Any:
    raise AssertionError("a description was read")


@pytest.mark.parametrize("kind", SOURCE_OF)
def test_items_that_were_kept_are_those_that_were_found(
    full: TreeBuilder, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = catalog(full, is_static=False).snapshot(kind)
    monkeypatch.setattr(metadata, "read_meta_file", no_description)
    monkeypatch.setattr(metadata, "read_inline", no_description)
    kept = catalog(full).snapshot(kind)

    assert found.total
    assert kept.hash == found.hash
    for before, after in zip(found.items, kept.items, strict=True):
        # What a file contains decides in any case; a template is at home where it was described.
        changes = {"template": None, "mime_type": None} if kind != "tools" and kind != "prompts" else {}
        same = {key: value for key, value in changes.items() if key in before._fields}
        assert after._replace(**same) == before._replace(**same)


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
def test_what_was_kept_is_served_whatever_is_on_disk_now(full: TreeBuilder, kind: str) -> None:
    before = catalog(full, is_static=False).snapshot(kind)
    full.write("tools/new", "#!/bin/sh\n", mode=0o755)
    full.write("resources/new.txt", "")
    full.write("prompts/new.txt", "")
    static = catalog(full)

    assert static.snapshot(kind).hash == before.hash
    assert static.refresh(SOURCE_OF[kind]) is False
    assert static.refresh(SOURCE_OF[kind], force=True) is True  # by a command: the disk itself


def broken(path: Path, how: str) -> None:
    content = json.loads(path.read_bytes())
    if how == "missing":
        path.unlink()
    elif how == "a link":
        path.rename(path.with_name("elsewhere.json"))
        path.symlink_to("elsewhere.json")
    elif how == "open file":
        path.chmod(0o666)
    elif how == "open directory":
        path.parent.chmod(0o777)
    elif how == "foreign":
        os.chown(path, 65534, 65534)
    elif how == "directory":
        path.unlink()
        path.mkdir()
    else:
        texts = {
            "older": {key: value for key, value in content.items() if key != "format_version"},
            "newer": {**content, "format_version": 2},
            "list": [],
            "items": {**content, "items": {}},
            "item": {**content, "items": [1]},
            "nameless": {**content, "items": [{"path": "a"}]},
        }
        path.write_text("{" if how == "torn" else json.dumps(texts[how]), encoding="utf-8")


REASONS = {
    "missing": "it does not exist",
    "a link": "not trusted: it is a symbolic link",
    "open file": "not trusted: it can be written to by others (run mcpgreen validate --fix)",
    "open directory": "can be written to by others (run mcpgreen validate --fix)",
    "directory": "not trusted: it is not a regular file",
    "torn": "not valid JSON",
    "older": "its format is not version 1",
    "newer": "its format is not version 1",
    "list": "its format is not version 1",
    "items": "its format is not version 1",
    "item": "objects with a name",
    "nameless": "objects with a name",
}


@pytest.mark.parametrize("how", REASONS)
def test_what_cannot_be_used_is_not_used_and_the_remedy_is_told(
    full: TreeBuilder, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    catalog(full, is_static=False).snapshot("tools")
    broken(full.root / ".registry/tools.json", how)
    full.write("tools/new", "#!/bin/sh\n", mode=0o755)

    assert "new" in catalog(full).snapshot("tools").by_name
    told = capfd.readouterr().err
    assert REASONS[how] in told
    assert "scanning the project instead; to write the file, run mcpgreen scan" in told


def test_the_file_of_another_user_is_not_used(full: TreeBuilder) -> None:
    as_somebody_else()  # which takes what it takes to give a file away
    catalog(full, is_static=False).snapshot("tools")
    broken(full.root / ".registry/tools.json", "foreign")
    full.write("tools/new", "#!/bin/sh\n", mode=0o755)

    assert "new" in catalog(full).snapshot("tools").by_name


def test_one_bad_item_costs_one_item(full: TreeBuilder) -> None:
    catalog(full, is_static=False).snapshot("tools")
    path = full.root / ".registry/tools.json"
    content = json.loads(path.read_bytes())
    bad: list[Json] = [
        {"name": "a"},
        {"name": "b", "path": "../../etc/passwd"},
        {"name": "c", "path": 5},
        {"name": "d", "path": "plain", "inputSchema": []},
        {"name": "", "path": "plain"},
    ]
    path.write_text(json.dumps({**content, "items": [*bad, *content["items"]]}), encoding="utf-8")

    assert set(catalog(full).snapshot("tools").by_name) == {"greet", "plain", "unset"}


def test_a_registry_that_is_used_is_not_written_again(full: TreeBuilder) -> None:
    catalog(full, is_static=False).snapshot("tools")
    path = full.root / ".registry/tools.json"
    before = path.stat()
    catalog(full).snapshot("tools")

    assert path.stat().st_ino == before.st_ino
