"""Lists before there is an engine: what is kept for the next start, when it is used, and who could have written it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.item_kinds import SOURCES
from mcpgreen.catalog.lists import keeping
from mcpgreen.catalog.lists.early import EarlyLists, catalog_of
from mcpgreen.catalog.lists.keeping import PageKeeper
from mcpgreen.catalog.lists.page_store import DIRECTORY, MAX_FILES
from mcpgreen.project.project import open_project
from mcpgreen.protocol import revisions
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually

INFO = {"name": "test", "version": "1"}
LATEST = revisions.LATEST_HANDSHAKE
TOOLS = "tools/list"


def no_turn() -> None:
    """Nobody else has anything to do here."""


class Starts:
    """One server after the other, as far as their first lists are concerned."""

    def __init__(self, project: ProjectBuilder, home: Path) -> None:
        self.project = project
        self.home = home

    def early(self, info: dict[str, Any] = INFO, **settings: Any) -> EarlyLists:
        found, loaded, _ = open_project({"project_root": str(self.project.root)}, {})
        return EarlyLists(found, loaded.with_values(**settings), info, {"XDG_CACHE_HOME": str(self.home)})

    def keep(self, expected: Iterable[str] = SOURCES, **settings: Any) -> None:
        """What a server does once it runs. `expected`: the sources that can be kept."""
        early = self.early(**settings)
        store = early.store
        assert store is not None

        def is_kept() -> bool:
            catalog = catalog_of(early.project, early.settings)  # a static one looks once
            for source in SOURCES:
                catalog.refresh(source)
            is_done = PageKeeper(store, catalog, early.terms).keep(no_turn) is None
            return is_done and all(map(catalog.keepable, expected))

        eventually(is_kept)

    def files(self) -> list[Path]:
        return sorted(self.home.joinpath(DIRECTORY).glob("*"))

    def uses_kept(self, method: str = TOOLS, **settings: Any) -> bool:
        """Whether a start would answer by what was kept. It has to answer, and with what is on disk, in any case."""
        early = self.early(**settings)
        body = early.page(method, {}, LATEST, no_turn)
        assert body == self.early(list_cache=False, **settings).page(method, {}, LATEST, no_turn)
        return early.catalog is None


@pytest.fixture
def starts(project: ProjectBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Starts:
    """The clocks of this file system are fine enough, so nobody has to wait for two seconds."""
    monkeypatch.setattr(keeping, "MIN_AGE_SECS", 0.0)
    project.tool("a", "echo", description="first")
    project.resource("note.txt", "text")
    project.prompt("hello.txt", "Hello")
    return Starts(project, tmp_path / "cache")


def test_what_was_kept_is_used(starts: Starts) -> None:
    assert not starts.uses_kept()
    starts.keep()

    for method in (TOOLS, "resources/list", "resources/templates/list", "prompts/list"):
        assert starts.uses_kept(method)


@pytest.mark.parametrize("revision", revisions.BY_NAME.values(), ids=lambda each: each.name)
def test_every_revision_has_its_own_pages(starts: Starts, revision: revisions.Revision) -> None:
    starts.project.tool("b", "echo", title="B", annotations={"readOnlyHint": True}, outputSchema={"type": "array"})
    starts.keep()
    early = starts.early()

    assert early.page(TOOLS, {}, revision, no_turn) == starts.early(list_cache=False).page(TOOLS, {}, revision, no_turn)
    assert early.catalog is None


def test_later_pages_are_kept_as_well(starts: Starts) -> None:
    starts.project.tool("b", "echo")
    starts.keep(page_size=1)
    early = starts.early(page_size=1)

    first = json.loads(early.page(TOOLS, {}, LATEST, no_turn) or b"")
    second = json.loads(early.page(TOOLS, {"cursor": first["nextCursor"]}, LATEST, no_turn) or b"")

    assert [tool["name"] for tool in first["tools"] + second["tools"]] == ["a", "b"]
    assert early.catalog is None


def rewritten(path: Path, content: str) -> None:
    """As an editor that keeps times would do it: same name, same length, same time."""
    status = path.stat()
    assert len(content.encode()) == status.st_size
    path.write_text(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda project: project.tool("b", "echo"),
        lambda project: project.remove("tools/a"),
        lambda project: (project.root / "tools/a").chmod(0o644),
        lambda project: (project.root / "tools/a").rename(project.root / "tools/c"),
        lambda project: project.tool("a", "echo", description="FIRST"),
        lambda project: rewritten(project.root / "tools/a.meta.json", '{"description": "FIRST"}'),
    ],
    ids=["added", "removed", "mode", "renamed", "replaced", "same size and time"],
)
def test_after_any_change_the_disk_counts(starts: Starts, change: Callable[[ProjectBuilder], object]) -> None:
    starts.keep()
    assert starts.uses_kept()

    change(starts.project)

    assert not starts.uses_kept()


def test_a_page_beside_a_tool_counts(starts: Starts) -> None:
    starts.project.program("tools/shown/run", "echo")
    starts.keep()
    assert starts.uses_kept()

    starts.project.write("tools/shown/ui/index.html", "<html></html>")

    assert not starts.uses_kept()
    assert not starts.uses_kept("resources/list")


def test_a_link_that_leads_out_counts_as_well(starts: Starts, tmp_path: Path) -> None:
    starts.project.write("ui/board/ui.meta.json", '{"template": "form", "config": {"submitTool": "a", "fields": []}}')
    starts.keep()

    (starts.project.root / "ui/board/index.html").symlink_to(tmp_path / "nowhere")

    assert not starts.uses_kept("resources/list")


@pytest.mark.parametrize("settings", [{"page_size": 7}, {"max_response_bytes": 10_000}, {"registry_max_bytes": 9999}])
def test_other_settings_have_other_pages(starts: Starts, settings: dict[str, Any]) -> None:
    starts.keep()

    assert not starts.uses_kept(**settings)
    assert starts.uses_kept()


def test_a_server_of_another_name_has_other_pages(starts: Starts) -> None:
    """The stateless revisions have it in every result."""
    starts.keep()
    early = starts.early({"name": "other", "version": "1"})

    body = early.page(TOOLS, {}, revisions.BY_NAME[revisions.STATELESS_NAMES[0]], no_turn)

    assert body is not None
    assert b'"other"' in body


def test_what_is_registered_by_hand_is_not_kept(starts: Starts) -> None:
    starts.keep()
    starts.project.write("server.d/register.json", '{"version": 1, "tools": [{"name": "b", "path": "a"}]}')

    assert not starts.uses_kept()


def test_pictures_that_may_lie_anywhere_are_not_kept(starts: Starts) -> None:
    (starts.project.root / "pictures").mkdir()
    picture = starts.project.root / "pictures/a.png"
    picture.write_bytes(b"one")
    starts.project.tool("drawn", "echo", icons=[{"src": "../pictures/a.png"}])
    starts.keep()

    picture.write_bytes(b"two")

    assert not starts.uses_kept()


def test_nor_are_lists_that_lack_a_picture(starts: Starts) -> None:
    """It may appear where nobody looks for changes."""
    starts.project.tool("drawn", "echo", icons=[{"src": "../pictures/a.png"}])
    starts.keep(expected=("resources", "prompts"))

    (starts.project.root / "pictures").mkdir()
    (starts.project.root / "pictures/a.png").write_bytes(b"one")

    assert not starts.uses_kept()


def test_what_is_too_young_is_not_kept_yet(starts: Starts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writes within one tick of the file system's clock would look alike for ever."""
    monkeypatch.setattr(keeping, "MIN_AGE_SECS", 3600.0)
    early = starts.early()
    assert early.store is not None
    catalog = catalog_of(early.project, early.settings)

    def is_settled() -> bool:
        catalog.refresh("tools")
        return catalog.keepable("tools") is not None

    eventually(is_settled)

    keeper = PageKeeper(early.store, catalog, early.terms)
    assert 3000 < (keeper.keep(no_turn) or 0) < 3601
    assert [keeper.keep(no_turn) for _ in range(keeping.MOST_WAITS)][-1] is None, "it does not wait for ever"
    assert starts.files() == []


def test_static_pages_depend_on_the_registry_and_the_tools(starts: Starts) -> None:
    starts.keep()  # writes .registry/
    starts.keep(static_registry=True)
    assert starts.uses_kept(static_registry=True)

    (starts.project.root / "tools/a").chmod(0o644)
    assert not starts.uses_kept(static_registry=True)


def test_a_registry_that_others_may_write_is_no_reason_to_use_pages(starts: Starts) -> None:
    starts.keep()
    starts.keep(static_registry=True)

    (starts.project.root / ".registry").chmod(0o777)

    assert not starts.uses_kept(static_registry=True)


def planted_by_mode(starts: Starts) -> None:
    for path in starts.files():
        path.chmod(0o666)


def planted_in_an_open_directory(starts: Starts) -> None:
    starts.home.joinpath(DIRECTORY).chmod(0o777)


def planted_in_an_open_cache(starts: Starts) -> None:
    starts.home.chmod(0o777)


def planted_by_a_link(starts: Starts) -> None:
    for path in starts.files():
        aside = starts.home / path.name
        path.rename(aside)
        path.symlink_to(aside)


def planted_as_a_fifo(starts: Starts) -> None:
    for path in starts.files():
        path.unlink()
        os.mkfifo(path)


def cut_short(starts: Starts) -> None:
    for path in starts.files():
        path.write_bytes(path.read_bytes()[:-10])


def blank(starts: Starts) -> None:
    for path in starts.files():
        head, _, bodies = path.read_bytes().partition(b"\n")
        path.write_bytes(head + b"\n" + bytes(len(bodies)))


def rubbish(starts: Starts) -> None:
    for path, content in zip(starts.files(), (b"", b"[]\n", b'{"listings": {"tools": [1]}}\n'), strict=True):
        path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        planted_by_mode,
        planted_in_an_open_directory,
        planted_in_an_open_cache,
        planted_by_a_link,
        planted_as_a_fifo,
        cut_short,
        blank,
        rubbish,
    ],
)
def test_a_file_that_others_could_have_written_or_that_is_damaged_has_no_effect(
    starts: Starts, damage: Callable[[Starts], None]
) -> None:
    starts.keep()
    assert starts.uses_kept()

    damage(starts)

    assert not starts.uses_kept()


def test_a_project_cannot_bring_its_own(project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home or a cache inside the project, as of somebody who serves his home directory: the project wrote it."""
    monkeypatch.setattr(keeping, "MIN_AGE_SECS", 0.0)
    project.tool("a", "echo")

    assert Starts(project, project.root / ".cache").early().store is None
    found, settings, _ = open_project({"project_root": str(project.root)}, {})
    assert EarlyLists(found, settings, INFO, {"HOME": str(project.root)}).store is None
    assert EarlyLists(found, settings, INFO, {"HOME": "relative"}).store is None
    assert EarlyLists(found, settings, INFO, {}).store is None


def test_only_the_user_may_read_what_is_kept(starts: Starts) -> None:
    starts.keep()

    assert {stat.S_IMODE(path.stat().st_mode) for path in starts.files()} == {0o600}
    assert stat.S_IMODE(starts.home.joinpath(DIRECTORY).stat().st_mode) == 0o700


def test_the_oldest_go_when_there_are_many(starts: Starts) -> None:
    directory = starts.home.joinpath(DIRECTORY)
    directory.mkdir(parents=True)
    for place in (starts.home, directory):
        place.chmod(0o700)
    for number in range(MAX_FILES + 10):
        path = directory / f"{number}"
        path.touch()
        os.utime(path, (number, number))

    starts.keep()

    assert len(starts.files()) == MAX_FILES
    assert not (directory / "0").exists()
    assert starts.uses_kept()


def test_a_place_that_cannot_be_written_costs_nothing(starts: Starts) -> None:
    starts.home.write_text("no directory")

    starts.keep()

    assert not starts.uses_kept()


@pytest.mark.parametrize("is_open", ["base", "below"])
def test_nothing_is_written_where_others_may_write(starts: Starts, is_open: str) -> None:
    place = starts.home if is_open == "base" else starts.home / DIRECTORY
    place.mkdir(parents=True)
    place.chmod(0o777)

    starts.keep()

    assert starts.files() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_root_leaves_nothing_in_the_home_of_somebody_else(starts: Starts) -> None:
    starts.home.mkdir()
    os.chown(starts.home, 12345, 12345)

    starts.keep()

    assert list(starts.home.iterdir()) == []


def test_a_change_after_a_kept_answer_is_a_change(starts: Starts) -> None:
    """The engine has not seen what was answered, and all the same has to tell that it is different now."""
    starts.keep()
    early = starts.early()
    early.page(TOOLS, {}, LATEST, no_turn)
    starts.project.tool("b", "echo")
    changed: list[str] = []

    catalog = catalog_of(early.project, early.settings, answered=early.answered)
    catalog.on_change = lambda source, total: changed.append(source)
    catalog.refresh("tools")
    catalog.refresh("resources")

    assert changed == ["tools"]


def test_nothing_is_a_change_if_nothing_changes(starts: Starts) -> None:
    starts.keep()
    early = starts.early()
    early.page(TOOLS, {}, LATEST, no_turn)

    catalog = catalog_of(early.project, early.settings, answered=early.answered)

    assert not catalog.refresh("tools")


def test_what_was_read_early_is_not_read_again(starts: Starts) -> None:
    early = starts.early()

    def is_settled() -> bool:
        early.page(TOOLS, {}, LATEST, no_turn)
        return early.catalog is not None and early.catalog.keepable("tools") is not None

    eventually(is_settled)
    assert early.catalog is not None
    seen = early.catalog.snapshot("tools")

    early.catalog.refresh("tools")

    assert early.catalog.snapshot("tools") is seen
    assert (starts.project.root / ".registry/tools.json").exists(), "the first look leaves that to a later one"


def test_a_change_between_two_early_lists_is_told_later(starts: Starts) -> None:
    early = starts.early()
    early.page(TOOLS, {}, LATEST, no_turn)
    starts.project.tool("b", "echo")

    body = early.page(TOOLS, {}, LATEST, no_turn)

    assert body is not None
    assert b'"b"' in body
    assert early.changed == {"tools": 2}


def test_a_hook_is_left_to_the_engine(starts: Starts) -> None:
    starts.project.program("server.d/register.sh", "exit 0")

    assert starts.early(allow_project_hooks=True).page(TOOLS, {}, LATEST, no_turn) is None
    assert starts.early().page(TOOLS, {}, LATEST, no_turn) is not None


def test_a_bad_cursor_is_left_to_the_engine(starts: Starts) -> None:
    assert starts.early().page(TOOLS, {"cursor": "x"}, LATEST, no_turn) is None
    starts.keep()
    assert starts.early().page(TOOLS, {"cursor": "x"}, LATEST, no_turn) is None


@pytest.mark.parametrize("is_static", [False, True])
def test_early_lists_take_no_costly_imports(starts: Starts, is_static: bool) -> None:
    """Each of these takes milliseconds, and a plain project needs none of them."""
    starts.keep()  # writes .registry/
    program = f"""
import sys
from mcpgreen.catalog.lists.early import EarlyLists
from mcpgreen.project.project import open_project
from mcpgreen.protocol import revisions
project, settings, _ = open_project({{"project_root": sys.argv[1]}}, {{}})
early = EarlyLists(project, settings.with_values(static_registry={is_static}), {{"name": "x"}}, {{}})
for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
    assert early.page(method, {{}}, revisions.LATEST_HANDSHAKE, lambda: None)
print(sorted({{"typing", "re", "collections", "dataclasses", "enum", "yaml", "ast", "gevent"}} & set(sys.modules)))
"""
    # -S: what the site-packages of a test environment import at start is none of our doing; ujson is found by path.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-S", "-c", program, str(starts.project.root)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (run.stdout, run.stderr) == ("[]\n", "")
