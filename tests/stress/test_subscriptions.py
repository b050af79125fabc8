"""Many subscriptions: each is told once, and idle ones cost next to nothing."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stress.support import IS_FULL, ROUNDS, Peer, Stand, cancel, request, require_no_new_descriptors
from tests.support.descriptors import descriptors_of
from tests.support.subscribing import ACKNOWLEDGED, SID, UPDATED, replace
from tests.support.wire import Json, modern_meta

NewStand = Callable[..., Stand]
Record = Callable[[str, object], None]

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


def updates(peer: Peer) -> Counter[tuple[str, Any]]:
    """How often each was told of each resource."""
    notices = [message["params"] for message in peer.seen if message.get("method") == UPDATED]
    return Counter((params["uri"], params.get("_meta", {}).get(SID)) for params in notices)


def receive_updates(peer: Peer, count: int) -> None:
    missing = count - sum(updates(peer).values())

    def is_enough(message: Json) -> bool:
        nonlocal missing
        missing -= message.get("method") == UPDATED
        return missing <= 0

    peer.receive_until(is_enough)


def idle_cpu_percent(pid: int) -> float:
    """Of one core, while nothing happens."""
    clock = (~pid << 3) | 2  # the CPU clock of that process, as clock_getcpuclockid numbers it
    before, started_at = time.clock_gettime(clock), time.monotonic()
    time.sleep(IDLE_SECS)  # time is the subject
    return (time.clock_gettime(clock) - before) / (time.monotonic() - started_at) * 100


def resources(stand: Stand, count: int) -> list[Path]:
    return [stand.project.write(f"resources/{number:04}.txt", "first\n") for number in range(count)]


@pytest.mark.requirement("G-resource-changes", "P-234")
def test_many_listens_to_one_file_are_told_once_each(new_stand: NewStand, record_property: Record) -> None:
    stand = new_stand()
    note, marker = resources(stand, 2)
    peer = stand.start_peer()
    peer.send(*(listen_to(number, [note.as_uri()]) for number in range(COUNT)), listen_to("m", [marker.as_uri()]))
    sync(peer, "subscribed", listens=COUNT + 1)
    record_property("idle CPU, % of a core", idle_cpu_percent(peer.pid))

    for number in range(ROUNDS):
        replace(note, f"{number}\n")
        receive_updates(peer, COUNT * (number + 1))
    replace(marker, "second\n")
    receive_updates(peer, COUNT * ROUNDS + 1)

    assert updates(peer) == {
        **{(note.as_uri(), number): ROUNDS for number in range(COUNT)},
        (marker.as_uri(), "m"): 1,
    }


@pytest.mark.requirement("G-resource-changes")
def test_many_files_are_told_once_each(new_stand: NewStand, record_property: Record) -> None:
    stand = new_stand()
    paths = resources(stand, COUNT)
    peer = stand.start_peer()
    peer.send(*(request(path.name, "resources/subscribe", {"uri": path.as_uri()}) for path in paths))
    peer.send(listen_to("all", [path.as_uri() for path in paths]))
    sync(peer, "subscribed", listens=1)
    record_property("idle CPU, % of a core", idle_cpu_percent(peer.pid))
    sync(peer, "idle")
    early = updates(peer)  # on a loaded machine, what was first seen after the acknowledgement

    replace(paths[COUNT // 2], "second\n")
    receive_updates(peer, 2 + early.total())
    assert updates(peer) - early == {(paths[COUNT // 2].as_uri(), None): 1, (paths[COUNT // 2].as_uri(), "all"): 1}

    for path in paths:
        replace(path, "third\n")
    receive_updates(peer, 2 * COUNT + 2 + early.total())
    sync(peer, "told")
    told = updates(peer) - early
    del told[paths[COUNT // 2].as_uri(), None], told[paths[COUNT // 2].as_uri(), "all"]
    assert set(told.values()) == {1}
    assert len(told) == 2 * (COUNT - 1)


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
    assert peer.process.wait(15) == 0
    assert os.listdir(stand.tmp) == []
