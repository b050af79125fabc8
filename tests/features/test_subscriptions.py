"""Who hears of changed resources, from when on, and until when."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import gevent
import pytest

from tests.support.client import HANDSHAKE_REVISIONS
from tests.support.descriptors import descriptors_of, needs_proc, new_descriptors
from tests.support.fake_link import FakeLink, serving
from tests.support.project import ProjectBuilder
from tests.support.subscribing import ACKNOWLEDGED, SID, UPDATED, WAYS, listen, replace
from tests.support.waiting import eventually
from tests.support.wire import Json, Start, Wire, modern_meta

SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"

PROVIDER = """#!/bin/sh
[ -e "$MCPGREEN_PROJECT_ROOT/go" ] || { : > "$MCPGREEN_PROJECT_ROOT/up"; sleep 600; }
cat "$MCPGREEN_PROJECT_ROOT/source"
"""


@pytest.fixture
def note(project: ProjectBuilder) -> Path:
    return project.write("resources/note.txt", "first\n")


@pytest.fixture
def other(project: ProjectBuilder) -> Path:
    return project.write("resources/other.txt", "first\n")


@pytest.fixture
def events(start: Start) -> Wire:
    """A server that finds changes by file events."""
    return start(**WAYS["events"], observe="off")  # no descriptors but those of the subscriptions


def hear(wire: Wire, uri: str, sid: Any = None) -> Json:
    """The next time that somebody is told of this: the handshake client, or the listen with this id."""

    def is_it(message: Json) -> bool:
        params = message.get("params", {})
        return message.get("method") == UPDATED and params["uri"] == uri and params.get("_meta", {}).get(SID) == sid

    return wire.receive(is_it)["params"]


def told(wire: Wire) -> list[tuple[str, Any]]:
    """Who was told of what."""
    notices = [notice["params"] for notice in wire.notices(UPDATED)]
    return [(params["uri"].rpartition("/")[2], params.get("_meta", {}).get(SID)) for params in notices]


def cancel(wire: Wire, id: Any) -> None:
    wire.notify("notifications/cancelled", {"requestId": id})


@pytest.mark.requirement("P-245", "P-240")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_handshake_client_is_told_without_an_id(note: Path, events: Wire, revision: str) -> None:
    capabilities = events.handshake(revision)["capabilities"]
    result = events.result(SUBSCRIBE, {"uri": note.as_uri()})
    replace(note, "second\n")

    assert capabilities["resources"]["subscribe"] is True
    assert set(result) == {"_meta"}
    assert hear(events, note.as_uri()) == {"uri": note.as_uri()}
    assert events.result(UNSUBSCRIBE, {"uri": note.as_uri()}) == {}


@pytest.mark.requirement("P-245")
def test_what_does_not_exist_cannot_be_subscribed_to(project: ProjectBuilder, note: Path, events: Wire) -> None:
    events.handshake()
    absent = (project.root / "resources" / "absent.txt").as_uri()

    error = events.error(SUBSCRIBE, {"uri": absent})

    assert error["code"] == -32002
    assert events.error(SUBSCRIBE, {"uri": "unheard-of://x"})["code"] == -32002
    assert events.error(SUBSCRIBE, {"name": "nobody"})["code"] == -32002
    replace(Path(absent.removeprefix("file://")), "now it is here\n")
    events.result(SUBSCRIBE, {"uri": note.as_uri()})
    replace(note, "second\n")
    hear(events, note.as_uri())
    assert told(events) == [("note.txt", None)]


@pytest.mark.requirement("P-245")
@pytest.mark.parametrize("method", [SUBSCRIBE, UNSUBSCRIBE])
@pytest.mark.parametrize("params", [{}, {"uri": 5}, {"uri": None}, {"name": 5}, {"subscriptionId": 5}], ids=str)
def test_a_subscription_to_nothing_is_refused(events: Wire, method: str, params: Json) -> None:
    events.handshake()

    assert events.error(method, params)["code"] == -32602


@pytest.mark.requirement("P-245")
def test_a_resource_can_be_subscribed_to_by_its_name(note: Path, events: Wire) -> None:
    events.handshake()
    (listed,) = events.result("resources/list")["resources"]
    events.result(SUBSCRIBE, {"name": listed["name"]})
    replace(note, "second\n")

    assert hear(events, listed["uri"]) == {"uri": listed["uri"]}


@pytest.mark.requirement("P-245")
def test_a_second_subscription_has_the_same_id_and_tells_nothing_twice(note: Path, other: Path, events: Wire) -> None:
    events.handshake()
    ids = {events.result(SUBSCRIBE, {"uri": note.as_uri()})["_meta"]["subscriptionId"] for _ in range(2)}
    events.result(SUBSCRIBE, {"uri": other.as_uri()})
    replace(note, "second\n")
    hear(events, note.as_uri())
    replace(other, "second\n")
    hear(events, other.as_uri())

    assert len(ids) == 1
    assert told(events) == [("note.txt", None), ("other.txt", None)]


@pytest.mark.requirement("P-245")
@pytest.mark.parametrize("by", ["uri", "subscriptionId"])
def test_nothing_is_told_after_unsubscribing(note: Path, other: Path, events: Wire, by: str) -> None:
    events.handshake()
    subscribed = events.result(SUBSCRIBE, {"uri": note.as_uri()})
    events.result(SUBSCRIBE, {"uri": other.as_uri()})
    named = {"uri": note.as_uri(), "subscriptionId": subscribed["_meta"]["subscriptionId"]}
    for _ in range(2):  # a second time is no error
        assert events.result(UNSUBSCRIBE, {by: named[by]}) == {}
    for number in range(3):
        replace(note, f"{number}\n")
        replace(other, f"{number}\n")
        hear(events, other.as_uri())

    assert told(events) == [("other.txt", None)] * 3


@pytest.mark.requirement("P-245")
def test_a_change_that_was_on_its_way_is_not_told_after_unsubscribing(note: Path, other: Path, events: Wire) -> None:
    """A watch that was about to look when it was ended went on for one more look, and kept its place for ever."""
    events.handshake()
    events.result(SUBSCRIBE, {"uri": other.as_uri()})
    for number in range(30):
        events.result(SUBSCRIBE, {"uri": note.as_uri()})
        replace(note, f"{number}\n")
        replace(other, f"{number}\n")
        hear(events, other.as_uri())  # the other watch is just through, this one is or is not
        events.result(UNSUBSCRIBE, {"uri": note.as_uri()})
        heard = len(told(events))
        events.result("ping")
        assert len(told(events)) == heard


@pytest.mark.requirement("P-245")
def test_a_stateless_client_cannot_subscribe_in_the_old_way(note: Path, events: Wire) -> None:
    assert events.modern(SUBSCRIBE, {"uri": note.as_uri()})["error"]["code"] == -32601
    assert events.modern(UNSUBSCRIBE, {"uri": note.as_uri()})["error"]["code"] == -32601


@pytest.mark.requirement("P-245")
def test_a_subscription_that_is_cancelled_while_it_is_read_does_not_come_about(
    project: ProjectBuilder, start: Start
) -> None:
    project.write("providers/slow.sh", PROVIDER).chmod(0o755)
    project.write("source", "first\n")
    wire = start(MAX_SUBSCRIPTIONS=1, resources_poll_interval_secs=0.05).greeted()
    id = wire.start_request(SUBSCRIBE, {"uri": "slow://x/1"})
    eventually((project.root / "up").exists)
    cancel(wire, id)
    project.write("go", "")

    wire.result(SUBSCRIBE, {"uri": "slow://x/2"})  # there is room
    project.write("source", "second\n")
    hear(wire, "slow://x/2")
    assert told(wire) == [("2", None)]
    assert not [message for message in wire.seen if message.get("id") == id]


@pytest.mark.requirement("G-subscription-limit")
def test_more_subscriptions_than_allowed_are_refused_until_one_is_given_up(
    note: Path, other: Path, start: Start
) -> None:
    wire = start(MAX_SUBSCRIPTIONS=1).greeted()
    wire.result(SUBSCRIBE, {"uri": note.as_uri()})
    wire.result(SUBSCRIBE, {"uri": note.as_uri()})  # the same one

    error = wire.error(SUBSCRIBE, {"uri": other.as_uri()})

    assert error["code"] == -32602
    assert "unsubscribe" in error["message"]
    wire.result(UNSUBSCRIBE, {"uri": note.as_uri()})
    wire.result(SUBSCRIBE, {"uri": other.as_uri()})


@pytest.mark.requirement("G-subscription-limit")
def test_subscriptions_that_are_read_at_the_same_time_do_not_exceed_the_limit(
    project: ProjectBuilder, start: Start
) -> None:
    project.write("providers/slow.sh", "#!/bin/sh\nsleep 0.2; echo here\n").chmod(0o755)
    wire = start(MAX_SUBSCRIPTIONS=2).greeted()
    ids = [wire.start_request(SUBSCRIBE, {"uri": f"slow://x/{number}"}) for number in range(5)]
    answers = [wire.response(id) for id in ids]

    assert len([answer for answer in answers if "result" in answer]) == 2
    assert {answer["error"]["code"] for answer in answers if "error" in answer} == {-32602}


@pytest.mark.requirement("G-subscription-limit", "P-231")
def test_a_listen_is_acknowledged_for_as_many_as_there_is_room_for(note: Path, other: Path, start: Start) -> None:
    wire = start(MAX_SUBSCRIPTIONS=1, **WAYS["events"])
    uris = [note.as_uri(), other.as_uri()]

    assert listen(wire, uris, "a")["notifications"] == {"resourceSubscriptions": uris[:1]}
    assert listen(wire, uris, "b")["notifications"] == {"resourceSubscriptions": []}
    cancel(wire, "a")
    assert listen(wire, uris[1:], "c")["notifications"] == {"resourceSubscriptions": uris[1:]}
    replace(note, "second\n")
    replace(other, "second\n")
    hear(wire, other.as_uri(), "c")
    assert told(wire) == [("other.txt", "c")]


@pytest.mark.requirement("P-230", "P-231", "P-232")
def test_a_listen_names_the_addresses_that_it_honours(note: Path, other: Path, events: Wire) -> None:
    uris = [note.as_uri(), "no address", other.as_uri(), note.as_uri(), ""]
    acknowledged = listen(events, uris, 7, toolsListChanged=True)
    replace(other, "second\n")
    replace(note, "second\n")
    hear(events, other.as_uri(), 7)
    hear(events, note.as_uri(), 7)

    honoured = {"resourceSubscriptions": [note.as_uri(), other.as_uri()], "toolsListChanged": True}
    assert acknowledged == {"notifications": honoured, "_meta": {SID: 7}}
    assert sorted(told(events)) == [("note.txt", 7), ("other.txt", 7)]
    assert events.seen[0]["method"] == ACKNOWLEDGED


@pytest.mark.requirement("P-230", "G-listen-first-look")
def test_the_acknowledgement_does_not_wait_long_for_what_is_watched(project: ProjectBuilder, start: Start) -> None:
    """The provider never comes back."""
    project.write("providers/slow.sh", PROVIDER).chmod(0o755)
    wire = start()
    begin_listen(wire, [f"slow://x/{number}" for number in range(50)])
    eventually((project.root / "up").exists)
    assert "result" in wire.modern("server/discover")

    assert len(wire.notice(ACKNOWLEDGED)["params"]["notifications"]["resourceSubscriptions"]) == 50


@pytest.mark.requirement("P-233")
def test_a_listen_hears_of_its_own_addresses_only(note: Path, other: Path, events: Wire) -> None:
    listen(events, [note.as_uri()], "note")
    listen(events, [], "nothing")
    listen(events, [other.as_uri()], "other")
    replace(note, "second\n")
    hear(events, note.as_uri(), "note")
    replace(other, "second\n")
    hear(events, other.as_uri(), "other")

    assert told(events) == [("note.txt", "note"), ("other.txt", "other")]


@pytest.mark.requirement("P-234", "P-232")
def test_each_of_several_listens_gets_its_own_copy(note: Path, other: Path, events: Wire) -> None:
    for id in ("a", 1, "1"):
        listen(events, [note.as_uri(), other.as_uri()], id)
    for path in (note, other):
        replace(path, "second\n")
        for id in ("a", 1, "1"):
            hear(events, path.as_uri(), id)

    assert sorted(map(repr, told(events))) == sorted(
        repr((name, id)) for name in ("note.txt", "other.txt") for id in ("a", 1, "1")
    )


@pytest.mark.requirement("P-240", "P-245")
def test_with_both_eras_on_one_pipe_each_gets_its_own_form(note: Path, other: Path, events: Wire) -> None:
    events.handshake()
    events.result(SUBSCRIBE, {"uri": note.as_uri()})
    listen(events, [note.as_uri()], "listen-1")
    replace(note, "second\n")
    assert hear(events, note.as_uri(), "listen-1") == {"uri": note.as_uri(), "_meta": {SID: "listen-1"}}
    assert hear(events, note.as_uri()) == {"uri": note.as_uri()}
    events.result(UNSUBSCRIBE, {"uri": note.as_uri()})
    replace(note, "third\n")
    hear(events, note.as_uri(), "listen-1")

    assert sorted(map(str, told(events))) == [
        "('note.txt', 'listen-1')",
        "('note.txt', 'listen-1')",
        "('note.txt', None)",
    ]


@pytest.mark.requirement("P-236")
def test_a_cancelled_listen_hears_nothing_more(note: Path, other: Path, events: Wire) -> None:
    listen(events, [note.as_uri()], "gone")
    listen(events, [other.as_uri()], "stays")
    cancel(events, "gone")
    for number in range(3):
        replace(note, f"{number}\n")
        replace(other, f"{number}\n")
        hear(events, other.as_uri(), "stays")

    assert told(events) == [("other.txt", "stays")] * 3
    assert not [message for message in events.seen if message.get("id") == "gone"]


@pytest.mark.requirement("P-236")
def test_a_cancelled_listen_stops_the_script_that_reads_for_it(project: ProjectBuilder, start: Start) -> None:
    project.write("providers/slow.sh", '#!/bin/sh\necho $$ > "$MCPGREEN_PROJECT_ROOT/pid"\nexec sleep 600\n')
    (project.root / "providers/slow.sh").chmod(0o755)
    wire = start(KILL_GRACE_SECS=0.2)
    begin_listen(wire, ["slow://x/1"], "l")
    pid = eventually(lambda: (project.root / "pid").exists() and project.read("pid").strip())
    cancel(wire, "l")

    eventually(lambda: not os.path.exists(f"/proc/{pid}") if os.path.isdir("/proc/self") else True)
    assert "result" in wire.modern("server/discover")


@pytest.mark.requirement("P-230")
def test_what_does_not_exist_yet_can_be_listened_to(project: ProjectBuilder, note: Path, events: Wire) -> None:
    absent = project.root / "resources" / "absent.txt"

    assert listen(events, [absent.as_uri()])["notifications"] == {"resourceSubscriptions": [absent.as_uri()]}
    replace(absent, "here\n")
    hear(events, absent.as_uri(), "listen-1")


@pytest.mark.requirement("P-237")
def test_listens_to_resources_end_with_their_result(note: Path, events: Wire) -> None:
    listen(events, [note.as_uri()], "l")
    events.close_stdin()

    assert events.response("l")["result"]["_meta"][SID] == "l"
    assert events.wait() == 0


@pytest.mark.requirement("G-subscriptions-leave-nothing")
@needs_proc
def test_a_hundred_rounds_of_subscribing_leave_no_descriptor(note: Path, events: Wire) -> None:
    events.handshake()
    pid = events.process.pid

    def round_of(number: int) -> None:
        events.result(SUBSCRIBE, {"uri": note.as_uri()})
        listen(events, [note.as_uri()], f"l{number}")
        cancel(events, f"l{number}")
        events.result(UNSUBSCRIBE, {"uri": note.as_uri()})

    round_of(0)
    eventually(lambda: "anon_inode:inotify" in descriptors_of(pid))  # the one for lists and resources
    before = descriptors_of(pid)
    for number in range(1, 101):
        round_of(number)

    eventually(lambda: not new_descriptors(pid, before))


def living_greenlets() -> int:
    gc.collect()
    return sum(isinstance(each, gevent.Greenlet) and not each.dead for each in gc.get_objects())


@pytest.mark.requirement("G-subscriptions-leave-nothing")
def test_a_hundred_rounds_of_subscribing_leave_no_greenlet(project: ProjectBuilder, note: Path) -> None:
    project.write("providers/echoing.sh", "#!/bin/sh\necho here\n").chmod(0o755)
    uris = [note.as_uri(), "echo://here", "echoing://x/1"]
    with serving(project.root) as server:
        link = FakeLink(server)
        link.initialize()
        before = living_greenlets()
        for number in range(100):
            for uri in uris[:2]:
                link.send(id=f"s{number}{uri}", method=SUBSCRIBE, params={"uri": uri})
            filter = {"notifications": {"resourceSubscriptions": uris}}
            link.send_stateless("subscriptions/listen", filter, id=f"l{number}")
            if number % 2:
                gevent.sleep(0.001)  # some have begun to look, and some have not
            link.send(method="notifications/cancelled", params={"requestId": f"l{number}"})
            for uri in uris[:2]:
                link.send(id=f"u{number}{uri}", method=UNSUBSCRIBE, params={"uri": uri})

        assert not [answer for answer in link.sink.responses if "error" in answer]
        assert not [frame for frame in link.sink.notifications if frame["method"] == UPDATED]
        link.wait_for(lambda: living_greenlets() <= before)


GATED = """#!/bin/sh
[ -e "$MCPGREEN_PROJECT_ROOT/go" ] || : > "$MCPGREEN_PROJECT_ROOT/up"
until [ -e "$MCPGREEN_PROJECT_ROOT/go" ]; do sleep 0.01; done
cat "$MCPGREEN_PROJECT_ROOT/source"
"""


@pytest.fixture
def gated(project: ProjectBuilder, start: Start) -> Wire:
    """A server with `slow:` addresses, whose content is `source` once there is `go`."""
    project.write("providers/slow.sh", GATED).chmod(0o755)
    project.write("source", "first\n")
    return start(resources_poll_interval_secs=0.05)


def begin_listen(wire: Wire, uris: list[str], id: Any = "listen-1", **filter: Any) -> None:
    wanted = {"resourceSubscriptions": uris, **filter}
    wire.start_request("subscriptions/listen", {"notifications": wanted, "_meta": modern_meta()}, id=id)


def of_listens(wire: Wire) -> list[str]:
    """The methods of all that was said to listens, in order; a result has none."""
    said = [message for message in wire.seen if SID in str(message)]
    return [message.get("method", "result") for message in said]


@pytest.mark.requirement("G-listen-first-look")
def test_a_listen_is_acknowledged_when_what_it_watches_has_been_seen(project: ProjectBuilder, gated: Wire) -> None:
    """A change between acknowledgement and first look was lost: the look took the new content for the old one."""
    begin_listen(gated, ["slow://x/1"])
    eventually((project.root / "up").exists)
    gated.modern("server/discover")
    assert of_listens(gated) == []

    project.write("go", "")
    gated.notice(ACKNOWLEDGED)
    project.write("source", "second\n")
    assert hear(gated, "slow://x/1", "listen-1")


@pytest.mark.requirement("G-listen-first-look", "P-230")
def test_what_changes_before_the_acknowledgement_is_told_after_it(
    project: ProjectBuilder, note: Path, gated: Wire
) -> None:
    gated.modern("tools/list")
    begin_listen(gated, [note.as_uri(), "slow://x/1"], toolsListChanged=True)
    listen(gated, [note.as_uri()], "other", toolsListChanged=True)
    eventually((project.root / "up").exists)
    project.tool("new", "echo new")
    replace(note, "second\n")
    hear(gated, note.as_uri(), "other")
    gated.receive(lambda message: message.get("method") == "notifications/tools/list_changed")
    assert [each for each in gated.seen if "listen-1" in str(each)] == []

    project.write("go", "")
    hear(gated, note.as_uri(), "listen-1")
    gated.receive(lambda each: "list_changed" in each.get("method", "") and "listen-1" in str(each))
    methods = [each["method"] for each in gated.seen if "listen-1" in str(each)]
    assert methods[0] == ACKNOWLEDGED
    assert sorted(methods[1:]) == [UPDATED, "notifications/tools/list_changed"]


@pytest.mark.requirement("G-listen-first-look")
def test_a_listen_that_is_cancelled_before_its_acknowledgement_hears_nothing(
    project: ProjectBuilder, gated: Wire
) -> None:
    begin_listen(gated, ["slow://x/1"])
    eventually((project.root / "up").exists)
    cancel(gated, "listen-1")
    project.write("go", "")
    listen(gated, ["slow://x/2"], "other")

    assert not [message for message in gated.seen if "listen-1" in str(message)]


@pytest.mark.requirement("G-listen-first-look", "P-230")
def test_a_listen_that_the_end_overtakes_is_acknowledged_before_its_result(
    project: ProjectBuilder, gated: Wire
) -> None:
    begin_listen(gated, ["slow://x/1"])
    eventually((project.root / "up").exists)
    gated.close_stdin()
    gated.response("listen-1")

    assert of_listens(gated) == [ACKNOWLEDGED, "result"]
    assert gated.wait() == 0


@pytest.mark.requirement("G-listen-limit")
def test_more_listens_than_allowed_are_refused_until_one_is_cancelled(note: Path, start: Start) -> None:
    wire = start(MAX_LISTENS=2)
    for id in ("a", "b"):
        listen(wire, [note.as_uri()], id)
    begin_listen(wire, [], "c", toolsListChanged=True)
    error = wire.response("c")["error"]
    assert error == {"code": -32602, "message": "There are 2 open subscriptions/listen streams already; cancel some."}

    cancel(wire, "a")
    assert listen(wire, [note.as_uri()], "d")["notifications"] == {"resourceSubscriptions": [note.as_uri()]}


@pytest.mark.requirement("G-repeated-bounds")
def test_a_listen_whose_id_is_too_long_to_be_repeated_is_refused(start: Start) -> None:
    """Each notification of a listen repeats its id."""
    wire = start()
    begin_listen(wire, [], "x" * 1025, toolsListChanged=True)
    error = wire.response("x" * 1025)["error"]

    assert error["code"] == -32602
    assert "1024" in error["message"]
    assert listen(wire, [], "x" * 1024, toolsListChanged=True)["notifications"] == {"toolsListChanged": True}


@pytest.mark.requirement("G-subscriptions-leave-nothing", "G-listen-limit")
def test_listens_that_are_cancelled_while_they_begin_give_their_room_back(start: Start) -> None:
    """Beginning goes in turns, and what was about to run went on after the end."""
    wire = start(MAX_SUBSCRIPTIONS=3000)
    uris = [f"echo://{number}" for number in range(3000)]
    for number in range(5):
        begin_listen(wire, uris, f"l{number}")
        for _ in range(number):
            wire.modern("server/discover")
        cancel(wire, f"l{number}")

    assert listen(wire, uris, "last")["notifications"]["resourceSubscriptions"] == uris
