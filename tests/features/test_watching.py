"""What counts as a change of a subscribed resource: it is told exactly once, and nothing else is."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.subscribing import ACKNOWLEDGED, ERAS, SID, WAYS, Ear, listen, replace
from tests.support.waiting import eventually
from tests.support.wire import Start, modern_meta

Listener = Callable[..., Ear]

FIRST = "first\n"


@pytest.fixture
def note(project: ProjectBuilder) -> Path:
    """A file that is served as a resource. It was written a while ago, as most are."""
    path = project.write("resources/note.txt", FIRST)
    eventually(lambda: time.time_ns() - path.stat().st_ctime_ns > 60_000_000)
    return path


@pytest.fixture(params=ERAS)
def ear(request: pytest.FixtureRequest, project: ProjectBuilder, start: Start) -> Listener:
    """Subscribes in one of the eras; the way in which changes are found, then addresses."""
    (project.root / "resources").mkdir(exist_ok=True)

    def subscribe(way: str, *uris: str, **settings: Any) -> Ear:
        return Ear(start(**{**WAYS[way], **settings}), project, request.param, *uris)

    return subscribe


def rewrite(path: Path) -> None:
    path.write_text("second\n", encoding="utf-8")


def rewrite_with_the_same_size(path: Path) -> None:
    path.write_text(FIRST.upper(), encoding="utf-8")


def replace_by_another(path: Path) -> None:
    replace(path, "another\n")


QUIET_SECS = 0.02  # after which the server takes a change for finished


def acting_was_held_up(act: Callable[[Path], None], path: Path) -> bool:
    """Do it. Who is held up between two steps, on a loaded machine, makes two changes."""
    began_at = time.monotonic()
    act(path)
    return time.monotonic() - began_at > QUIET_SECS


def write_in_a_burst(path: Path) -> None:
    for number in range(5):
        path.write_text(f"{number}\n", encoding="utf-8")


def append(path: Path) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("more\n")


def truncate_and_write(path: Path) -> None:
    with path.open("r+", encoding="utf-8") as file:
        file.truncate(0)
        file.flush()
        file.write("shorter")


def delete(path: Path) -> None:
    path.unlink()


def put_a_directory_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


CHANGES = [
    rewrite,
    rewrite_with_the_same_size,
    replace_by_another,
    write_in_a_burst,
    append,
    truncate_and_write,
    delete,
    put_a_directory_in_its_place,
]


@pytest.mark.requirement("G-resource-changes")
@pytest.mark.parametrize("way", ["events", "polling"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_told_once(ear: Listener, note: Path, way: str, change: Callable[[Path], None]) -> None:
    """It is made at once: also what happens before the first look counts."""
    listening = ear(way, note.as_uri())
    was_held_up = acting_was_held_up(change, note)
    listening.hear(note.as_uri())

    told = listening.all_told()
    assert set(told) == {note.as_uri()}
    assert len(told) == 1 or was_held_up


def touch(path: Path) -> None:
    os.utime(path)


def change_its_mode(path: Path) -> None:
    path.chmod(0o600)


def rewrite_without_a_difference(path: Path) -> None:
    path.write_text(FIRST, encoding="utf-8")


def replace_by_its_like(path: Path) -> None:
    replace(path, FIRST)


def write_a_neighbour(path: Path) -> None:
    path.with_name("neighbour.txt").write_text("new", encoding="utf-8")


NO_CHANGES = [touch, change_its_mode, rewrite_without_a_difference, replace_by_its_like, write_a_neighbour]


@pytest.mark.requirement("G-resource-changes")
@pytest.mark.parametrize("way", ["events", "polling"])
@pytest.mark.parametrize("act", NO_CHANGES, ids=lambda act: act.__name__)
def test_what_leaves_the_content_as_it_was_is_not_told(
    ear: Listener, note: Path, way: str, act: Callable[[Path], None]
) -> None:
    listening = ear(way, note.as_uri())
    listening.all_told()
    was_held_up = acting_was_held_up(act, note)

    assert listening.all_told() == [] or was_held_up


@pytest.mark.requirement("G-resource-changes")
@pytest.mark.parametrize("way", ["events", "polling"])
def test_deletion_and_creation_are_told_once_each(ear: Listener, note: Path, way: str) -> None:
    listening = ear(way, note.as_uri())
    for act in (delete, replace_by_another, delete, replace_by_another):
        act(note)
        listening.hear(note.as_uri())

    assert listening.all_told() == [note.as_uri()] * 4


@pytest.mark.requirement("G-resource-changes")
@pytest.mark.parametrize("way", ["events", "polling"])
def test_a_file_that_appears_by_a_link_is_told(ear: Listener, note: Path, project: ProjectBuilder, way: str) -> None:
    """Nobody closes it after writing, so its name alone has to do."""
    aside = project.write("aside.txt", "linked\n")
    listening = ear(way, note.as_uri())
    note.unlink()
    listening.hear(note.as_uri())
    os.link(aside, note)
    listening.hear(note.as_uri())

    assert listening.all_told() == [note.as_uri()] * 2


@pytest.mark.requirement("G-resource-changes")
@pytest.mark.parametrize("way", ["events", "polling"])
def test_a_young_file_that_is_written_again_at_once_is_told(
    ear: Listener, project: ProjectBuilder, note: Path, way: str
) -> None:
    """Both writes may leave the same size and the same time."""
    listening = ear(way, note.as_uri())
    for number in range(10):
        path = project.write(f"resources/young{number}.txt", "a")
        listening.subscribe(path.as_uri())
        path.write_text("b", encoding="utf-8")
        listening.hear(path.as_uri())


@pytest.mark.requirement("G-resource-changes")
def test_a_file_that_is_written_all_the_time_is_told_by_polling(ear: Listener, note: Path) -> None:
    """A log that somebody holds open: its stamp is never old enough to be trusted."""
    listening = ear("polling", note.as_uri())
    with note.open("a", encoding="utf-8", buffering=1) as file:

        def is_told_twice_while_it_grows() -> bool:
            file.write("another line\n")
            listening.wire.modern("server/discover")
            return len(listening.told()) >= 2

        eventually(is_told_twice_while_it_grows)


@pytest.mark.requirement("G-resource-changes")
@pytest.mark.parametrize("way", ["both", "polling"])
def test_a_directory_that_goes_and_comes_back_is_watched_again(
    ear: Listener, project: ProjectBuilder, way: str
) -> None:
    path = project.write("resources/deep/note.txt", FIRST)
    listening = ear(way, path.as_uri())
    listening.all_told()
    shutil.rmtree(path.parent)
    listening.hear(path.as_uri())
    path.parent.mkdir()
    replace(path, FIRST)
    listening.hear(path.as_uri())
    aside = project.write("aside.txt", "second\n")
    aside.replace(path)
    listening.hear(path.as_uri())

    assert listening.all_told() == [path.as_uri()] * 3


@pytest.mark.requirement("G-resource-changes")
def test_a_change_of_what_a_link_leads_to_is_told(ear: Listener, note: Path, project: ProjectBuilder) -> None:
    link = project.root / "resources" / "links" / "link.txt"
    link.parent.mkdir()
    link.symlink_to(note)
    listening = ear("both", link.as_uri())
    replace(note, "second\n")
    listening.hear(link.as_uri())
    other = project.write("resources/other.txt", "another\n")
    link.unlink()
    link.symlink_to(other)
    listening.hear(link.as_uri())

    # Between two steps there was no file, and that may have been seen.
    assert 2 <= len(listening.all_told()) <= 3


@pytest.mark.requirement("G-resource-changes")
def test_without_file_events_and_without_an_interval_nothing_is_told(
    project: ProjectBuilder, note: Path, start: Start
) -> None:
    wire = start(watch_files="poll", resources_poll_interval_secs=0).greeted()
    wire.result("resources/subscribe", {"uri": note.as_uri()})
    rewrite(note)

    assert wire.result("resources/read", {"uri": note.as_uri()})["contents"][0]["text"] == "second\n"
    assert {message.get("method") for message in wire.settle()} == {None}


PROVIDER = """#!/bin/sh
echo run >> "$MCPGREEN_PROJECT_ROOT/runs"
[ -e "$MCPGREEN_PROJECT_ROOT/broken" ] && exit 5
cat "$MCPGREEN_PROJECT_ROOT/source"
"""


@pytest.fixture
def source(project: ProjectBuilder) -> Path:
    """What `live:` addresses are read from, by a provider of the project."""
    project.write("providers/live.sh", PROVIDER).chmod(0o755)
    path = project.root / "source"
    path.write_text(FIRST, encoding="utf-8")
    return path


def runs(project: ProjectBuilder) -> int:
    path = project.root / "runs"
    return len(path.read_text(encoding="utf-8").split()) if path.exists() else 0


@pytest.mark.requirement("G-resource-changes")
def test_other_output_of_a_provider_is_told_once(ear: Listener, project: ProjectBuilder, source: Path) -> None:
    listening = ear("both", "live://here/x")
    eventually(lambda: runs(project))  # a stateless client hears of changes from the first look on
    listening.all_told()
    replace_text(source, "second\n")
    listening.hear("live://here/x")

    assert listening.all_told() == ["live://here/x"]


@pytest.mark.requirement("G-resource-changes")
def test_a_provider_that_fails_and_recovers_is_told_once_each(
    ear: Listener, project: ProjectBuilder, source: Path
) -> None:
    listening = ear("both", "live://here/x")
    eventually(lambda: runs(project))
    listening.all_told()
    project.write("broken", "")
    listening.hear("live://here/x")
    runs_before = runs(project)
    eventually(lambda: runs(project) >= runs_before + 3)
    project.remove("broken")
    listening.hear("live://here/x")

    assert listening.all_told() == ["live://here/x"] * 2


@pytest.mark.requirement("G-resource-changes")
def test_many_subscriptions_to_one_resource_share_the_runs_of_its_provider(
    project: ProjectBuilder, source: Path, start: Start
) -> None:
    wire = start(resources_poll_interval_secs=0.2)
    count = 200
    for number in range(count):
        listen(wire, ["live://here/x"], number)
    wire.modern("server/discover")
    runs_before = runs(project)
    eventually(lambda: runs(project) >= runs_before + 2)  # all have looked
    runs_before = runs(project)
    replace_text(source, "second\n")
    for _ in range(count):
        wire.notice("notifications/resources/updated")

    told = [notice["params"]["_meta"][SID] for notice in wire.notices("notifications/resources/updated")]
    assert sorted(told) == list(range(count))
    assert runs(project) - runs_before < count / 4


@pytest.mark.requirement("G-resource-changes")
@pytest.mark.parametrize("way", ["events", "polling"])
def test_a_resource_that_is_described_later_is_told_when_it_appears(
    project: ProjectBuilder, start: Start, way: str
) -> None:
    """Until then nobody knows where it would be."""
    wire = start(**WAYS[way], tools_ttl=0.05)
    listen(wire, ["note://late"])
    wire.modern("resources/list")
    project.write("aside/late.meta.json", '{"uri": "note://late", "provider": "file"}')
    project.write("aside/late", "here\n")
    (project.root / "resources").mkdir(exist_ok=True)
    (project.root / "aside").rename(project.root / "resources" / "late")

    assert wire.notice("notifications/resources/updated")["params"]["uri"] == "note://late"
    assert wire.modern("resources/read", {"uri": "note://late"})["result"]["contents"][0]["text"] == "here\n"


def replace_text(path: Path, text: str) -> None:
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


@pytest.mark.requirement("G-look-budget")
def test_a_slow_resource_does_not_keep_others_from_being_looked_at(project: ProjectBuilder, start: Start) -> None:
    """One that is not over before the other has been told of."""
    script = """#!/bin/sh
cd "$MCPGREEN_PROJECT_ROOT"
case $MCP_RESOURCE_URI in *slow*)
  if [ -e gate ]; then : > begun; fi
  while [ -e gate ]; do sleep 0.02; done;;
esac
cat source
"""
    project.program("providers/live.sh", script)
    source = project.write("source", FIRST)
    wire = start(resources_poll_interval_secs=0.05)
    listen(wire, ["live://here/slow", "live://here/quick"])
    project.write("gate", "")
    eventually((project.root / "begun").exists)
    replace_text(source, "second\n")

    assert wire.notice("notifications/resources/updated")["params"]["uri"] == "live://here/quick"
    project.remove("gate")
    assert wire.notice("notifications/resources/updated")["params"]["uri"] == "live://here/slow"


@pytest.mark.requirement("G-look-budget")
def test_large_files_are_looked_at_in_turns(project: ProjectBuilder, start: Start) -> None:
    """The look at many large files held the hub; a request that comes after is answered before they all are read."""
    paths = [project.resource(f"{number}.bin", b"\0" * 2_000_000) for number in range(20)]
    wire = start()
    wanted = {"resourceSubscriptions": [path.as_uri() for path in paths]}
    wire.modern("resources/list")
    wire.start_request("subscriptions/listen", {"notifications": wanted, "_meta": modern_meta()}, id="all")
    wire.modern("server/discover", id="first")
    wire.modern("server/discover", id="second")
    assert not wire.notices(ACKNOWLEDGED)

    wire.notice(ACKNOWLEDGED)
