"""Many subscriptions: each is told once, and idle ones cost next to nothing."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.features.watching.subscriptions import FIRST_LOOK_SECS
from tests.stress.support import IS_FULL, ROUNDS, Peer, Stand, cancel, request, require_no_new_descriptors
from tests.support.descriptors import descriptors_of
from tests.support.subscribing import ACKNOWLEDGED, SID, UPDATED, replace
from tests.support.wire import Json, modern_meta

NewStand = Callable[..., Stand]
Record = Callable[[str, object], None]
Updates = Counter[tuple[str, Any]]

COUNT = 1000 if IS_FULL else 300
IDLE_SECS = 2.0


def listen_to(id: Any, uris: list[str]) -> Json:
    params = {"notifications": {"resourceSubscriptions": uris}, "_meta": modern_meta()}
    return request(id, "subscriptions/listen", params)


def sync(peer: Peer, id: str, *, listens: int = 0) -> None:
    """Until the server has answered to everything before this, and acknowledged so many listens."""
    peer.send(request(id, "ping"))
    peer.answer(id)

    def are_acknowledged(message: Json | None = None) -> bool:
        return sum(each.get("method") == ACKNOWLEDGED for each in peer.seen) >= listens

    if not are_acknowledged():
        peer.receive_until(are_acknowledged)


def key_of(params: Json) -> tuple[str, Any]:
    """Which resource is told of, and to which listen; None stands for the session."""
    return params["uri"], params.get("_meta", {}).get(SID)


def updates(peer: Peer) -> Updates:
    """How often each was told of each resource."""
    return Counter(key_of(message["params"]) for message in peer.seen if message.get("method") == UPDATED)


def subscribe(peer: Peer, listens: list[Json]) -> int:
    """Open these, and wait for their acknowledgements. How many first looks may be told: none, unless the machine is
    so loaded that an acknowledgement did not wait for them."""
    sent_at = time.monotonic()
    peer.send(*listens)
    sync(peer, "subscribed", listens=len(listens))
    return int(time.monotonic() - sent_at >= FIRST_LOOK_SECS)


def receive_all(peer: Peer, expected: Updates) -> None:
    missing = expected - updates(peer)

    def is_enough(message: Json) -> bool:
        if message.get("method") == UPDATED:
            missing.subtract([key_of(message["params"])])
        return not +missing

    if missing:
        peer.receive_until(is_enough)


def require_told(peer: Peer, expected: Updates, *, first_looks: int) -> None:
    """Nothing but this, and to a listen perhaps each of its first looks."""
    unexpected = updates(peer) - expected
    assert {key: count for key, count in unexpected.items() if key[1] is None or count > first_looks} == {}


def record_idle_cpu(pid: int, record_property: Record) -> None:
    """Of one core, while nothing happens: a figure for the report, which takes its time."""
    if not IS_FULL:
        return
    clock = (~pid << 3) | 2  # the CPU clock of that process, as clock_getcpuclockid numbers it
    before, started_at = time.clock_gettime(clock), time.monotonic()
    time.sleep(IDLE_SECS)  # time is the subject
    percent = (time.clock_gettime(clock) - before) / (time.monotonic() - started_at) * 100
    record_property("idle CPU, % of a core", percent)


def resources(stand: Stand, count: int) -> list[Path]:
    return [stand.project.write(f"resources/{number:04}.txt", "first\n") for number in range(count)]


@pytest.mark.requirement("G-resource-changes", "P-234")
def test_many_listens_to_one_file_are_told_once_each(new_stand: NewStand, record_property: Record) -> None:
    stand = new_stand()
    note, marker = resources(stand, 2)
    peer = stand.start_peer()
    listens = [*(listen_to(number, [note.as_uri()]) for number in range(COUNT)), listen_to("m", [marker.as_uri()])]
    first_looks = subscribe(peer, listens)
    record_idle_cpu(peer.pid, record_property)

    expected: Updates = Counter()
    for number in range(ROUNDS):
        replace(note, f"{number}\n")
        expected += Counter((note.as_uri(), listener) for listener in range(COUNT))
        receive_all(peer, expected)
    replace(marker, "second\n")
    expected[marker.as_uri(), "m"] = 1
    receive_all(peer, expected)

    require_told(peer, expected, first_looks=first_looks)


@pytest.mark.requirement("G-resource-changes")
def test_many_files_are_told_once_each(new_stand: NewStand, record_property: Record) -> None:
    stand = new_stand()
    paths = resources(stand, COUNT)
    peer = stand.start_peer()
    peer.send(*(request(path.name, "resources/subscribe", {"uri": path.as_uri()}) for path in paths))
    first_looks = subscribe(peer, [listen_to("all", [path.as_uri() for path in paths])])
    record_idle_cpu(peer.pid, record_property)
    middle = paths[COUNT // 2]
    replace(middle, "second\n")
    expected = Counter({(middle.as_uri(), None): 1, (middle.as_uri(), "all"): 1})
    receive_all(peer, expected)
    require_told(peer, expected, first_looks=first_looks)

    for path in paths:
        replace(path, "third\n")
    expected += Counter((path.as_uri(), listener) for path in paths for listener in (None, "all"))
    receive_all(peer, expected)
    sync(peer, "told")
    require_told(peer, expected, first_looks=first_looks)


@pytest.mark.requirement("G-subscriptions-leave-nothing")
def test_rounds_of_many_subscriptions_leave_the_server_as_it_was(new_stand: NewStand) -> None:
    stand = new_stand()
    paths = resources(stand, COUNT)
    peer = stand.start_peer()
    before: list[str] = []
    for number in range(ROUNDS):
        peer.send(*(request(f"s{number}{path.name}", "resources/subscribe", {"uri": path.as_uri()}) for path in paths))
        peer.send(*(listen_to(f"l{number}-{each}", [path.as_uri()]) for each, path in enumerate(paths)))
        peer.send(*(cancel(f"l{number}-{each}") for each in range(COUNT)))
        peer.send(
            *(request(f"u{number}{path.name}", "resources/unsubscribe", {"uri": path.as_uri()}) for path in paths)
        )
        sync(peer, f"round {number}")
        before = before or descriptors_of(peer.pid)

    require_no_new_descriptors(peer.pid, before)
    assert not [message for message in peer.seen if "error" in message]
    assert peer.process.stdin is not None
    peer.process.stdin.close()
    assert peer.process.wait(60) == 0
    assert os.listdir(stand.tmp) == []
