"""Many calls, slow clients, floods: every request is answered once, in bounded memory, and nobody waits for others."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stress.support import (
    IS_FULL,
    Peer,
    Stand,
    call,
    cancel,
    processes_with,
    request,
    require_all_gone,
    require_only_server,
    settle,
    sleepers,
    wait_until_up,
)
from tests.support.processes import MIB, peak_bytes
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of

NewStand = Callable[..., Stand]

MOST_MEMORY_MIB = 200.0
SILENCE_SECS = 10.0 if IS_FULL else 1.0
CALLS = 1000 if IS_FULL else 300
TEXT_BYTES = 20_000
LONG_BYTES = 8_000_000
PIPE_BYTES = 1 << 20  # the server may enlarge the pipe up to here
LOUD = f"#!/bin/sh\necho x >> \"{{up}}/started\"\nprintf '%0{TEXT_BYTES}d' 7\n"


def started(stand: Stand) -> int:
    """How many of the loud scripts have been started."""
    path = Path(stand.up / "started")
    return path.stat().st_size // 2 if path.exists() else 0


def note_figure(record_property: Callable[[str, object], None], name: str, value: float) -> None:
    """A figure for the report; with `-s` it is also printed."""
    record_property(name, value)
    print(f"\n{name}: {value:.1f}")


def peers_peak_mib(peer: Peer, record_property: Callable[[str, object], None]) -> float:
    peak_mib = peak_bytes(peer.pid) / MIB
    note_figure(record_property, "peak memory in MiB", peak_mib)
    return peak_mib


def test_no_script_is_started_for_a_client_with_a_full_backlog(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    """Calls that had been admitted before the backlog was full used to pass it one after the other."""
    backlog_bytes = 65536
    stand = new_stand(MAX_BACKLOG_BYTES=backlog_bytes)
    stand.script("loud", LOUD)
    peer = stand.start_peer(reads=False)
    ids = range(CALLS)
    slots = 16

    peer.send_aside(*(call(id, "loud") for id in ids))
    eventually(lambda: started(stand) >= slots)
    time.sleep(SILENCE_SECS)
    started_in_silence = started(stand)
    peer.read()
    answers = peer.answers(ids)

    assert len(answers) == len(ids)
    assert started_in_silence <= (backlog_bytes + PIPE_BYTES) // TEXT_BYTES + 2 * slots
    assert peers_peak_mib(peer, record_property) < MOST_MEMORY_MIB
    peer.send(request("ping", "ping"))
    assert peer.answer("ping")["result"] == {}


def test_memory_is_bounded_for_a_client_that_never_reads_long_outputs(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    """300 answers of 2 MB would be 600 MB."""
    stand = new_stand(MAX_BACKLOG_BYTES=1 << 20)
    stand.script("loud", "#!/bin/sh\necho x >> \"{up}/started\"\nhead -c 2000000 /dev/zero | tr '\\0' x\n")
    peer = stand.start_peer(reads=False)

    peer.send_aside(*(call(id, "loud") for id in range(300)))
    eventually(lambda: started(stand) >= 16)

    def have_all_ended() -> bool:
        """Those that were started, and no other has followed them meanwhile."""
        before = started(stand)
        require_only_server(stand, peer.pid)
        return started(stand) == before

    eventually(have_all_ended, within_secs=60)

    assert peers_peak_mib(peer, record_property) < MOST_MEMORY_MIB
    peer.process.send_signal(signal.SIGTERM)
    peer.process.wait(60)
    require_all_gone([stand])


def test_memory_is_bounded_when_one_read_brings_many_requests_for_long_texts(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    """40 answers of 8 MB would be 320 MB, and the requests fit into one read."""
    stand = new_stand()
    text = stand.project.write("resources/long.txt", "x" * LONG_BYTES)
    peer = stand.start_peer(reads=False)
    ids = range(40)

    peer.send_aside(*(request(id, "resources/read", {"uri": text.as_uri()}) for id in ids))
    eventually(lambda: peak_bytes(peer.pid) / MIB > 2 * LONG_BYTES / (1 << 20))
    peer.read()
    answers = peer.answers(ids)

    assert {len(answer["result"]["contents"][0]["text"]) for answer in answers.values()} == {LONG_BYTES}
    assert peers_peak_mib(peer, record_property) < MOST_MEMORY_MIB


@pytest.mark.parametrize("slots", [16, 256])
def test_others_are_served_at_once_while_two_hundred_slow_calls_wait(new_stand: NewStand, slots: int) -> None:
    """Each of the answers comes although not one of the calls is over."""
    stand = new_stand(max_concurrent_requests=slots)
    stand.script("slow", '#!/bin/sh\necho "$MCP_TOOL_ARGS_JSON" > "{up}/{name}.$$"\nexec sleep {mark}\n')
    peer = stand.start_peer()
    ids = [f"slow-{number}" for number in range(200)]
    running = min(slots, len(ids))

    peer.send(*(call(id, "slow", arguments={"id": id}) for id in ids))
    wait_until_up([stand], running)
    eventually(lambda: len(sleepers(stand)) == running)
    peer.send(request("ping", "ping"), request("list", "tools/list"))
    assert peer.answer("ping")["result"] == {}
    assert [tool["name"] for tool in peer.answer("list")["result"]["tools"]] == ["slow"]
    up = stand.ups()[0]  # one of those that run, whichever it is
    pid = int(up.rpartition(".")[2])
    peer.send(cancel(json.loads((stand.up / up).read_text(encoding="utf-8"))["id"]))
    eventually(lambda: not is_alive(pid))
    peer.send(*(cancel(id) for id in ids), request("after", "ping"))
    assert peer.answer("after")["result"] == {}

    require_only_server(stand, peer.pid)
    assert [message["id"] for message in peer.seen] == ["hello", "ping", "list", "after"]


def test_a_tool_that_never_stops_writing_is_stopped_in_bounded_memory(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    stand = new_stand()
    stand.script("endless", "head -c 100000000 /dev/zero\nexec sleep {mark}\n")
    stand.script("endless-in-words", "head -c 100000000 /dev/zero >&2\nexec sleep {mark}\n")
    peer = stand.start_peer()
    ids = ["endless", "endless-in-words"]

    peer.send(*(call(id, id) for id in ids))
    answers = peer.answers(ids)

    assert [answers[id]["error"]["code"] for id in ids] == [-32603, -32603]
    assert peers_peak_mib(peer, record_property) < MOST_MEMORY_MIB
    require_only_server(stand, peer.pid)


@pytest.mark.parametrize(
    "content",
    [
        "head -c 100000000 /dev/zero",
        "yes | head -c 100000",
        "head -c 500000 /dev/zero | tr '\\0' '['; echo",
        'seq 20000 | sed "s|.*|{|"',
    ],
    ids=["one endless line", "words", "deep", "halves"],
)
def test_rubbish_on_the_control_pipe_does_no_harm(
    new_stand: NewStand, record_property: Callable[[str, object], None], content: str
) -> None:
    stand = new_stand()
    stand.script("odd", f'{{ {content}; }} > "$MCP_PROGRESS_STREAM"\necho done\n')
    peer = stand.start_peer()

    peer.send(call(1, "odd", _meta={"progressToken": "t"}), call(2, "odd"))
    answers = peer.answers([1, 2])

    assert [text_of(answers[id]["result"]) for id in (1, 2)] == ["done\n", "done\n"]
    assert peers_peak_mib(peer, record_property) < MOST_MEMORY_MIB
    require_only_server(stand, peer.pid)


def test_a_thousand_short_lived_calls_leave_the_memory_as_it_was(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    stand = new_stand()
    stand.script("quick", "#!/bin/sh\necho done\n")
    peer = stand.start_peer()
    peer.send(*(call(f"warm-{number}", "quick") for number in range(300)))
    peer.answers([f"warm-{number}" for number in range(300)])
    before_mib = peak_bytes(peer.pid) / MIB

    for part in range(4 if not IS_FULL else 20):
        ids = [f"{part}-{number}" for number in range(250)]
        peer.send(*(call(id, "quick") for id in ids), *(cancel(id) for id in ids[::5]))
        peer.answers([id for index, id in enumerate(ids) if index % 5])

    assert peers_peak_mib(peer, record_property) < before_mib + 5
    require_only_server(stand, peer.pid)
    settle(lambda: [found for found in processes_with(stand.mark) if "quick" in found[1]], "processes are left")
