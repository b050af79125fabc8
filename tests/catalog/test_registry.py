from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcpgreen.catalog import tree_scan
from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.tree_scan import STRETCH_SECS, Pace
from mcpgreen.errors import InternalError
from mcpgreen.project.project import Project
from mcpgreen.text import jsontext
from tests.catalog.test_registration import Clock
from tests.catalog.trees import TreeBuilder


class Bench:
    """A catalog over a tree, with its clock and what it reported."""

    def __init__(self, root: Path) -> None:
        self.tree = TreeBuilder(root)
        self.clock = Clock()
        self.changes: list[tuple[str, int]] = []
        self.warnings: list[str] = []
        self.catalog = self.another()

    def another(self, **options: Any) -> Catalog:
        return Catalog(
            self.tree.project,
            ttl_secs=5,
            on_change=lambda source, total, earlier: self.changes.append((source, total)),
            on_warning=self.warnings.append,
            clock=self.clock,
            **{"max_bytes": 10_000_000, **options},
        )

    def names(self) -> list[str]:
        if not self.catalog.is_current("tools"):
            self.catalog.refresh("tools")
        return [item.name for item in self.catalog.snapshot("tools").items]

    @property
    def registry_file(self) -> Path:
        return self.tree.root / ".registry" / "tools.json"

    def break_tools(self) -> None:
        """Make tools/ a link to itself, which no walk can enter."""
        (self.tree.root / "tools").rename(self.tree.root / "tools.away")
        (self.tree.root / "tools").symlink_to("tools")

    def mend_tools(self) -> None:
        (self.tree.root / "tools").unlink()
        (self.tree.root / "tools.away").rename(self.tree.root / "tools")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "project")


def test_a_snapshot_holds_the_items_sorted_and_by_name(bench: Bench) -> None:
    bench.tree.tool("b")
    bench.tree.tool("a")

    snapshot = bench.catalog.snapshot("tools")

    assert [item.name for item in snapshot.items] == ["a", "b"]
    assert snapshot.by_name["b"] is snapshot.items[1]
    assert (snapshot.kind, snapshot.total, snapshot.cache) == ("tools", 2, {})
    assert snapshot.hash == jsontext.digest([item.registry_entry for item in snapshot.items])
    assert repr(snapshot) == f"<Snapshot tools: 2 items, {snapshot.hash[:12]}>"


def test_within_its_time_to_live_a_snapshot_is_not_checked(bench: Bench) -> None:
    first = bench.catalog.snapshot("tools")
    shutil.rmtree(bench.tree.root)
    bench.clock.now += 4.9
    assert bench.catalog.snapshot("tools") is first


def test_after_its_time_to_live_changes_are_noticed(bench: Bench) -> None:
    bench.tree.tool("a")
    assert bench.names() == ["a"]
    bench.tree.tool("b")
    assert bench.names() == ["a"]
    bench.clock.now += 5
    assert bench.names() == ["a", "b"]


def test_a_stale_mark_makes_the_next_look_immediate(bench: Bench) -> None:
    assert bench.names() == []
    bench.tree.tool("a")
    bench.catalog.mark_stale()
    assert bench.names() == ["a"]


def test_under_a_watcher_only_a_stale_mark_counts(bench: Bench) -> None:
    assert bench.names() == []
    bench.catalog.is_watched = True
    bench.tree.tool("a")
    bench.clock.now += 1_000_000
    assert bench.names() == []
    bench.catalog.mark_stale()
    assert bench.names() == ["a"]

    bench.tree.tool("b")
    bench.catalog.is_watched = False
    bench.clock.now += 5
    assert bench.names() == ["a", "b"]


def test_what_is_known_is_not_current_until_a_look_has_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that came during the look was answered from the items of before."""
    monkeypatch.setattr(tree_scan, "STRETCH_SECS", 0)
    bench.tree.tool("a")
    bench.names()
    bench.tree.tool("b")
    bench.catalog.mark_stale()
    seen: list[bool] = []

    bench.catalog.refresh("tools", turn=lambda: seen.append(bench.catalog.is_current("tools")))

    assert seen and not any(seen)
    assert bench.catalog.is_current("tools")


def test_the_first_scan_is_no_change_and_a_later_difference_is_one(bench: Bench) -> None:
    bench.tree.tool("a")
    assert bench.catalog.refresh("tools") is False
    assert bench.changes == []

    bench.tree.tool("a", description="new words")
    assert bench.catalog.refresh("tools") is True
    assert bench.changes == [("tools", 1)]

    assert bench.catalog.refresh("tools") is False
    assert len(bench.changes) == 1


def test_two_edits_of_equal_size_in_a_row_are_both_noticed(bench: Bench) -> None:
    for words in ("one", "two", "six", "ten"):
        bench.tree.tool("a", description=words)
        bench.catalog.refresh("tools")
        assert bench.catalog.snapshot("tools").items[0].definition["description"] == words


def test_a_difference_that_python_would_overlook_is_a_change(bench: Bench) -> None:
    bench.tree.tool("a", _meta={"default": 1})
    bench.catalog.refresh("tools")
    bench.tree.tool("a", _meta={"default": True})
    assert bench.catalog.refresh("tools") is True


def test_touching_files_keeps_the_snapshot_and_its_cache(bench: Bench) -> None:
    script = bench.tree.tool("a")
    before = bench.catalog.snapshot("tools")
    before.cache["page"] = b"encoded"
    os.utime(script, ns=(1, 1))
    assert bench.catalog.refresh("tools") is False
    assert bench.catalog.snapshot("tools") is before


@pytest.mark.parametrize("changed", [{"timeoutSecs": 7}, {"interaction": "replay"}])
def test_a_new_unlisted_field_is_served_without_announcing_a_new_list(bench: Bench, changed: dict[str, Any]) -> None:
    bench.tree.tool("a", timeoutSecs=5)
    before = bench.catalog.snapshot("tools")
    bench.tree.tool("a", **{"timeoutSecs": 5, **changed})
    assert bench.catalog.refresh("tools") is False
    after = bench.catalog.snapshot("tools")
    assert after.items[0].description.unlisted == {"timeoutSecs": 5, **changed}
    assert after.hash != before.hash
    assert bench.changes == []


def test_a_lost_executable_bit_changes_how_the_tool_is_started(bench: Bench) -> None:
    script = bench.tree.tool("a", description="x")
    assert bench.catalog.snapshot("tools").items[0].command == [str(script)]
    script.chmod(0o644)
    assert bench.catalog.refresh("tools") is False
    assert bench.catalog.snapshot("tools").items[0].command == ["bash", str(script)]


def test_the_registry_file_has_the_documented_envelope(bench: Bench) -> None:
    bench.tree.tool("a")
    bench.tree.write("tools/a/a.meta.json", '{"description": "gr\u00fc\u00df, and half a pair: \\ud800"}')
    snapshot = bench.catalog.snapshot("tools")

    envelope = jsontext.loads(bench.registry_file.read_bytes())

    assert envelope == {
        "format_version": 1,
        "version": 1,
        "generatedAt": snapshot.generated_at,
        "items": [snapshot.items[0].registry_entry],
        "hash": snapshot.hash,
        "total": 1,
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", snapshot.generated_at)
    assert os.listdir(bench.registry_file.parent) == ["tools.json"]


def test_the_registry_file_is_written_when_the_items_change_or_it_is_gone(bench: Bench) -> None:
    bench.tree.tool("a")
    bench.catalog.refresh("tools")
    bench.registry_file.write_text("planted", encoding="utf-8")
    bench.catalog.refresh("tools", force=True)
    assert bench.registry_file.read_text(encoding="utf-8") == "planted"
    assert bench.names() == ["a"]

    bench.tree.tool("b")
    bench.catalog.refresh("tools")
    assert jsontext.loads(bench.registry_file.read_bytes())["total"] == 2

    bench.registry_file.unlink()
    bench.catalog.refresh("tools")
    assert jsontext.loads(bench.registry_file.read_bytes())["total"] == 2


def test_a_registry_that_cannot_be_written_is_one_warning(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    bench.tree.write(".registry", "a file where the directory should be")
    for name in ("a", "b"):
        bench.tree.tool(name)
        bench.catalog.refresh("tools")
    assert bench.names() == ["a", "b"]
    assert capfd.readouterr().err.count("cannot be written") == 1


def test_a_warning_is_reported_when_it_is_new_and_when_it_comes_back(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.tree.tool("bad", name="two words")
    bench.catalog.refresh("tools")
    bench.tree.tool("good")
    bench.catalog.refresh("tools", force=True)
    assert len(bench.warnings) == 1
    assert capfd.readouterr().err.count("bad.meta.json") == 1

    bench.tree.tool("bad", name="mended")
    bench.catalog.refresh("tools")
    bench.tree.tool("bad", name="two words")
    bench.catalog.refresh("tools")
    assert len(bench.warnings) == 2


def test_a_crowd_of_tools_is_remarked_on_once(bench: Bench) -> None:
    for number in range(501):
        bench.tree.write(f"tools/t{number}", "#!/bin/sh\n", mode=0o755)
    bench.catalog.refresh("tools")
    bench.tree.tool("one-more")
    bench.catalog.refresh("tools")
    assert bench.warnings == ["Tools registry contains 501 entries; consider manual registration"]


def test_without_an_earlier_snapshot_an_oversize_registry_is_an_error(bench: Bench) -> None:
    bench.tree.tool("a")
    catalog = bench.another(max_bytes=100)
    with pytest.raises(InternalError, match="larger than 100 bytes"):
        catalog.snapshot("tools")
    assert catalog.status("tools")["status"] == "failed"


def test_with_an_earlier_snapshot_an_oversize_registry_changes_nothing(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.tree.tool("a")
    bench.catalog = bench.another(max_bytes=2000)
    assert bench.names() == ["a"]
    bench.tree.tool("b", description="x" * 2000)
    assert bench.catalog.refresh("tools") is False
    assert bench.names() == ["a"]
    assert "error" in capfd.readouterr().err
    assert jsontext.loads(bench.registry_file.read_bytes())["total"] == 1


def test_a_failing_scan_is_an_error_until_the_first_success(bench: Bench) -> None:
    bench.break_tools()
    with pytest.raises(InternalError, match="Unable to list tools") as caught:
        bench.catalog.snapshot("tools")
    assert str(bench.tree.root) not in caught.value.message

    bench.mend_tools()
    bench.clock.now += 0.9
    with pytest.raises(InternalError):
        bench.catalog.snapshot("tools")
    bench.clock.now += 0.1
    assert bench.names() == []
    assert bench.catalog.retry_at() is None


def test_a_failing_scan_leaves_the_last_snapshot_and_is_retried_ever_less_often(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.tree.tool("a")
    bench.names()
    bench.catalog.is_watched = True
    bench.break_tools()
    bench.catalog.mark_stale()

    pauses = []
    for _ in range(9):
        assert bench.names() == ["a"]
        retry_at = bench.catalog.retry_at()
        assert retry_at is not None
        pauses.append(retry_at - bench.clock.now)
        bench.clock.now = retry_at

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert bench.changes == []
    assert capfd.readouterr().err.count("error") == 1

    bench.mend_tools()
    bench.tree.tool("b")
    assert bench.names() == ["a", "b"]


def test_a_forced_refresh_does_not_wait_for_the_back_off(bench: Bench) -> None:
    bench.tree.tool("a")
    bench.break_tools()
    with pytest.raises(InternalError):
        bench.catalog.refresh("tools")
    bench.mend_tools()
    bench.catalog.refresh("tools", force=True)
    assert bench.names() == ["a"]


def test_the_status_tells_how_the_last_scan_went(bench: Bench) -> None:
    assert bench.catalog.status("tools") == {"status": "skipped", "count": 0, "error": None}
    bench.tree.tool("a")
    bench.catalog.refresh("tools")
    assert bench.catalog.status("tools") == {"status": "ok", "count": 1, "error": None}
    bench.break_tools()
    bench.catalog.refresh("tools")
    status = bench.catalog.status("tools")
    assert (status["status"], status["count"]) == ("failed", 1)
    assert status["error"].startswith("Unable to list tools")


def test_every_directory_that_was_walked_is_to_be_watched(bench: Bench) -> None:
    bench.tree.tool("a")
    (bench.tree.root / "tools" / "empty").mkdir()
    (bench.tree.root / "tools" / ".hidden").mkdir()
    bench.catalog.refresh("tools")
    tools = f"{bench.tree.root}/tools"
    # There are neither resources nor prompts; the first of either would appear in the project itself.
    watched = set(bench.catalog.watched_directories())
    assert watched == {str(bench.tree.root), tools, f"{tools}/a", f"{tools}/empty"}


def test_before_there_are_tools_the_place_where_they_would_appear_is_to_be_watched(tmp_path: Path) -> None:
    catalog = Catalog(Project(str(tmp_path), {}), ttl_secs=5, max_bytes=1000)
    assert catalog.snapshot("tools").items == ()
    assert set(catalog.watched_directories()) == {str(tmp_path)}


def test_others_have_a_turn_after_each_stretch_and_their_time_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(tree_scan, "time", SimpleNamespace(monotonic=lambda: clock.now))
    done_at_turns: list[int] = []

    def turn() -> None:
        done_at_turns.append(len(done))
        clock.now += 10.0

    done: list[int] = []
    paced = Pace(turn)
    for thing in paced.over(range(5)):
        done.append(thing)
        clock.now += 0.6 * STRETCH_SECS

    assert done == [0, 1, 2, 3, 4]
    assert done_at_turns == [2, 4]
