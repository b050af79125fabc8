"""Who hears of a changed list: handshake clients unasked, stateless ones through `subscriptions/listen`."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mcpgreen.engine.server import Server
from mcpgreen.running import disk_watcher
from tests.support.client import HANDSHAKE_REVISIONS, Speak
from tests.support.fake_link import FakeLink, serving
from tests.support.project import ProjectBuilder
from tests.support.wire import META_PREFIX, MODERN, Json, Start, Wire, modern_meta

CHANGED = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SID = META_PREFIX + "subscriptionId"

needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify exists on Linux only")


def listen(wire: Wire, id: Any = "listen-1", *, filter: Any = None) -> Json:
    """Open a listen and give its acknowledgement."""
    wanted = {"toolsListChanged": True} if filter is None else filter
    wire.start_request("subscriptions/listen", {"notifications": wanted, "_meta": modern_meta()}, id=id)
    acknowledged = wire.notice(ACKNOWLEDGED)["params"]
    wire.modern("tools/list")  # a change is a difference to what was listed
    return acknowledged


def sids(wire: Wire) -> list[Any]:
    """Whom the changes so far were told to; None stands for the handshake client."""
    return [notice.get("params", {}).get("_meta", {}).get(SID) for notice in wire.notices(CHANGED)]


def after_the_next_change(project: ProjectBuilder, wire: Wire) -> None:
    """Make one more change that everybody hears of, and wait for it: what was told before has come by then."""
    told = len(sids(wire))
    project.tool("marker", "echo")
    wire.receive(lambda message: message.get("method") == CHANGED)
    assert len(sids(wire)) > told


@pytest.fixture
def listed(project: ProjectBuilder, start: Start) -> Wire:
    """A server with one tool that a client has listed."""
    project.tool("one", "echo", description="first")
    wire = start().greeted()
    wire.result("tools/list")
    return wire


@pytest.mark.requirement("P-240", "G-list-changed")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_handshake_client_is_told_of_a_new_tool_once(project: ProjectBuilder, start: Start, revision: str) -> None:
    wire = start()
    wire.handshake(revision)
    wire.result("tools/list")
    project.tool("new", "echo", description="new")
    wire.notice(CHANGED)

    assert [tool["name"] for tool in wire.result("tools/list")["tools"]] == ["new"]
    project.remove("tools/new")
    wire.notice(CHANGED)
    assert sids(wire) == [None, None]


@pytest.mark.requirement("G-list-changed")
@pytest.mark.parametrize("change", ["added", "removed", "described", "nested", "hidden by its mode"])
def test_each_change_of_what_is_listed_is_told_once(project: ProjectBuilder, listed: Wire, change: str) -> None:
    if change == "added":
        project.tool("two", "echo", description="second")
    elif change == "removed":
        project.remove("tools/one")
    elif change == "described":
        project.tool("one", "echo", description="better")
    elif change == "nested":
        project.write("tools/deep/down/three.sh", "#!/bin/sh\n").chmod(0o755)
    else:
        (project.root / "tools" / "one.meta.json").unlink()
        (project.root / "tools" / "one").chmod(0o644)
    listed.notice(CHANGED)
    after_the_next_change(project, listed)

    assert sids(listed) == [None, None]


@pytest.mark.requirement("G-list-changed")
@pytest.mark.parametrize("change", ["script", "touched", "timeout", "helper", "hidden", "same"])
def test_what_is_not_listed_is_not_told(project: ProjectBuilder, listed: Wire, change: str) -> None:
    if change == "script":
        project.tool("one", "echo something else", description="first")
    elif change == "touched":
        os.utime(project.root / "tools" / "one")
    elif change == "timeout":
        project.tool("one", "echo", description="first", timeoutSecs=9)
    elif change == "helper":
        project.write("tools/helper.txt", "no tool")
    elif change == "hidden":
        project.write("tools/.hidden", "#!/bin/sh\n").chmod(0o755)
    else:
        project.tool("one", "echo", description="first")
    listed.result("tools/list")  # the server has looked at the disk
    after_the_next_change(project, listed)

    assert sids(listed) == [None]


@pytest.mark.requirement("G-list-changed")
def test_a_change_is_told_once_where_there_are_no_file_events(project: ProjectBuilder, start: Start) -> None:
    wire = start(watch_files="poll", tools_ttl=0.05).greeted()
    wire.result("tools/list")
    project.tool("new", "echo")
    wire.notice(CHANGED)
    after_the_next_change(project, wire)

    assert sids(wire) == [None, None]


@pytest.mark.requirement("P-240", "P-044")
def test_no_change_is_told_before_initialized(project: ProjectBuilder, wire: Wire) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    wire.result("initialize", hello)
    wire.modern("tools/list")
    project.tool("new", "echo")
    assert wire.modern("tools/list")["result"]["tools"]
    wire.notify("notifications/initialized")
    wire.settle()

    assert sids(wire) == []


@pytest.mark.requirement("P-240")
def test_a_stateless_client_that_does_not_listen_is_not_told(project: ProjectBuilder, wire: Wire) -> None:
    wire.modern("tools/list")
    project.tool("new", "echo")
    assert wire.modern("tools/list")["result"]["tools"]
    listen(wire)
    after_the_next_change(project, wire)

    assert sids(wire) == ["listen-1"]


@pytest.mark.requirement("P-230", "P-231", "P-232")
@pytest.mark.parametrize("id", ["listen:0", 0, ""], ids=ascii)
def test_a_listen_is_acknowledged_first_and_told_under_its_id(project: ProjectBuilder, wire: Wire, id: Any) -> None:
    acknowledged = listen(wire, id)
    assert acknowledged == {"notifications": {"toolsListChanged": True}, "_meta": {SID: id}}
    project.tool("new", "echo")
    wire.notice(CHANGED)

    assert sids(wire) == [id]
    assert type(sids(wire)[0]) is type(id)
    assert wire.seen[0]["method"] == ACKNOWLEDGED


@pytest.mark.requirement("P-231")
@pytest.mark.parametrize(
    ("filter", "honoured"),
    [
        ({}, {}),
        ({"toolsListChanged": False}, {}),
        (
            {"toolsListChanged": True, "promptsListChanged": False, "resourcesListChanged": True},
            {"toolsListChanged": True, "resourcesListChanged": True},
        ),
        ({"promptsListChanged": True}, {"promptsListChanged": True}),
        ({"novelty": 5}, {}),
    ],
    ids=str,
)
def test_the_acknowledgement_names_what_is_honoured(shared_speak: Speak, filter: Json, honoured: Json) -> None:
    assert listen(shared_speak(MODERN).wire, str(filter), filter=filter)["notifications"] == honoured


@pytest.mark.requirement("P-233")
def test_a_listen_is_told_only_what_it_asked_for(project: ProjectBuilder, wire: Wire) -> None:
    listen(wire, "nothing", filter={})
    listen(wire, "prompts", filter={"promptsListChanged": True})
    listen(wire, "tools")
    project.tool("new", "echo")
    wire.notice(CHANGED)
    after_the_next_change(project, wire)

    assert sids(wire) == ["tools", "tools"]


@pytest.mark.requirement("P-235")
def test_no_progress_and_no_logs_on_a_listen(project: ProjectBuilder, wire: Wire) -> None:
    meta = modern_meta(log_level="debug", progressToken="t")
    filter = {"toolsListChanged": True}
    wire.start_request("subscriptions/listen", {"notifications": filter, "_meta": meta}, id="l")
    wire.notice(ACKNOWLEDGED)
    wire.modern("tools/list")
    project.tool("new", "echo")
    project.tool("bad", "echo")
    project.write("tools/bad.meta.json", "{")
    wire.notice(CHANGED)
    wire.modern("tools/list")

    assert {message.get("method") for message in wire.seen} == {ACKNOWLEDGED, CHANGED, None}


@pytest.mark.requirement("P-236")
def test_a_cancelled_listen_ends_silently(project: ProjectBuilder, wire: Wire) -> None:
    listen(wire, "gone")
    listen(wire, "stays")
    wire.notify("notifications/cancelled", {"requestId": "gone"})
    project.tool("new", "echo")
    wire.notice(CHANGED)
    wire.modern("server/discover")

    assert sids(wire) == ["stays"]
    assert not [message for message in wire.seen if message.get("id") == "gone"]


@pytest.mark.requirement("P-236")
def test_an_open_listen_is_not_answered_and_takes_no_slot(project: ProjectBuilder, start: Start) -> None:
    project.tool("hello", "echo hello")
    wire = start(max_concurrent_requests=1)
    for number in range(20):
        listen(wire, f"l{number}")

    assert wire.modern("tools/call", {"name": "hello"})["result"]["isError"] is False
    assert not [message for message in wire.seen if str(message.get("id")).startswith("l")]


@pytest.mark.requirement("P-237")
def test_the_end_of_the_server_ends_each_listen_with_its_result(wire: Wire) -> None:
    for id in ("a", 1):
        listen(wire, id)
    wire.close_stdin()

    for id in ("a", 1):
        assert wire.response(id)["result"]["_meta"][SID] == id
    assert wire.wait() == 0


@pytest.mark.requirement("P-238")
def test_the_server_never_cancels_anything_of_a_stateless_client(project: ProjectBuilder, wire: Wire) -> None:
    project.tool("stuck", "sleep 600", timeoutSecs=0.1)
    listen(wire)
    wire.modern("tools/call", {"name": "stuck"})
    wire.close_stdin()
    wire.response("listen-1")
    wire.wait()

    assert wire.notices("notifications/cancelled") == []


@pytest.mark.requirement("P-239")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": "all"},
        {"notifications": {"toolsListChanged": 1}},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"resourceSubscriptions": "a:b"}},
        {"notifications": {"resourceSubscriptions": [5]}},
    ],
    ids=str,
)
def test_a_filter_that_makes_no_sense_is_refused(shared_speak: Speak, params: Json) -> None:
    wire = shared_speak(MODERN).wire
    acknowledged_before = len(wire.notices(ACKNOWLEDGED))

    assert wire.modern("subscriptions/listen", params)["error"]["code"] == -32602
    assert len(wire.notices(ACKNOWLEDGED)) == acknowledged_before


class Watching(FakeLink):
    """A client that has listed everything, of a server in this process that watches its project."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.server, self.catalog = server, server.services.catalog
        self.initialize()
        for kind in ("tools", "resources", "prompts"):
            self.ask(f"{kind}/list", id=kind)  # a change is a difference to what was listed

    def hear(self, text: str) -> None:
        """Wait until this has been told, and forget what was told."""
        self.wait_for(lambda: any(text in each["method"] for each in self.sink.notifications))
        self.sink.frames.clear()


@pytest.fixture
def watching(project: ProjectBuilder) -> Iterator[Callable[..., Watching]]:
    with ExitStack() as begun:
        yield lambda **settings: Watching(begun.enter_context(serving(project.root, **settings)))


@pytest.mark.requirement("G-list-changed")
def test_an_unforeseen_error_does_not_end_the_watch(
    project: ProjectBuilder, watching: Callable[..., Watching], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended for good: after one such error no client was told of any change until the server was started anew."""
    told = watching(tools_ttl=0.05)
    refresh, broken = told.catalog.refresh, {"tools"}

    def fail(source: str, **options: Any) -> bool:
        if source in broken:
            raise RuntimeError("nobody thought of this")
        return refresh(source, **options)

    monkeypatch.setattr(told.catalog, "refresh", fail)
    told.server.watch()
    project.write("prompts/new.txt", "Hello")
    told.hear("prompts/list_changed")  # also while the fault lasts
    project.tool("new", "echo")
    broken.clear()
    told.hear("tools/list_changed")


@pytest.mark.requirement("G-list-changed")
@pytest.mark.parametrize("limit", ["none at all", "in the first look", "later"])
@needs_linux
def test_a_change_is_told_where_the_system_lets_nothing_more_be_watched(
    project: ProjectBuilder, watching: Callable[..., Watching], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    watch = disk_watcher.Inotify.watch

    def refuse(self: disk_watcher.Inotify, directory: str) -> None:
        if limit == "none at all" or directory.endswith("deep"):
            raise OSError(errno.ENOSPC, "No space left on device", directory)
        watch(self, directory)

    monkeypatch.setattr(disk_watcher.Inotify, "watch", refuse)
    project.tool("one", "echo")
    if limit != "later":
        project.write("tools/deep/two.sh", "#!/bin/sh\n").chmod(0o755)
    told = watching(tools_ttl=0.05)
    told.server.watch()
    project.tool("new", "echo", description="new")
    told.hear("tools/list_changed")
    project.write("tools/deep/three.sh", "#!/bin/sh\n").chmod(0o755)
    told.hear("tools/list_changed")
    project.write("tools/deep/four.sh", "#!/bin/sh\n").chmod(0o755)
    told.hear("tools/list_changed")


@needs_linux
def test_a_file_in_a_directory_that_came_while_its_watch_was_being_set_is_noticed(
    project: ProjectBuilder, watching: Callable[..., Watching], monkeypatch: pytest.MonkeyPatch
) -> None:
    """resources/ was made before the project's directory was watched, and filled after the look but before the watch
    on resources/ itself: neither the one nor the other saw it."""
    told = watching(tools_ttl=600)
    find_directories, refresh = told.catalog.watched_directories, told.catalog.refresh
    directory = project.root / "resources"

    def find_directories_before_one_more() -> list[str]:
        found = find_directories()
        directory.mkdir(exist_ok=True)
        return found

    def look_before_one_more(source: str, **options: Any) -> bool:
        is_changed = refresh(source, **options)
        if source == "resources":
            (directory / "report.txt").touch()
        return is_changed

    monkeypatch.setattr(told.catalog, "watched_directories", find_directories_before_one_more)
    monkeypatch.setattr(told.catalog, "refresh", look_before_one_more)
    told.server.watch()
    told.hear("resources/list_changed")
