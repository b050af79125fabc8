"""Many calls, slow clients, floods: every request is answered once, in bounded memory, and nobody waits for others."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stress.support import (
    IS_FULL,
    Peer,
    Stand,
    call,
    cancel,
    notification,
    peak_memory_mib,
    processes_with,
    request,
    require_all_gone,
    require_only_server,
    settle,
    sleepers,
    wait_until_up,
)
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
    peak_mib = peak_memory_mib(peer.pid)
    note_figure(record_property, "peak memory in MiB", peak_mib)
    return peak_mib


def test_a_client_that_stops_reading_gets_every_response_afterwards(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    stand = new_stand()
    stand.script("loud", LOUD)
    peer = stand.start_peer(reads=False)
    ids = range(CALLS)

    peer.send_aside(*(call(id, "loud") for id in ids))
    silent_until = time.monotonic() + SILENCE_SECS
    eventually(lambda: started(stand) >= 50)
    time.sleep(max(0.0, silent_until - time.monotonic()))
    peer.read()
    answers = peer.answers(ids)

    assert {text_of(answer["result"]) for answer in answers.values()} == {"7".rjust(TEXT_BYTES, "0")}
    assert peers_peak_mib(peer, record_property) < MOST_MEMORY_MIB
    peer.send(request("ping", "ping"))
    assert peer.answer("ping")["result"] == {}
    assert Counter(message.get("id") for message in peer.seen).most_common(1)[0][1] == 1
    require_only_server(stand, peer.pid)


def test_no_script_is_started_for_a_client_with_a_full_backlog(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    """Calls that had been admitted before the backlog was full used to pass it one after the other."""
    backlog_bytes = 65536
    stand = new_stand(max_backlog_bytes=backlog_bytes)
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
    stand = new_stand(max_backlog_bytes=1 << 20)
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
    eventually(lambda: peak_memory_mib(peer.pid) > 2 * LONG_BYTES / (1 << 20))
    peer.read()
    answers = peer.answers(ids)

    assert {len(answer["result"]["contents"][0]["text"]) for answer in answers.values()} == {LONG_BYTES}
    assert peers_peak_mib(peer, record_property) < MOST_MEMORY_MIB


def test_memory_is_bounded_when_a_batch_asks_for_many_long_texts(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    """A batch has one answer, however long; what does not fit into it is refused."""
    stand = new_stand(compat_batches="true")
    text = stand.project.write("resources/long.txt", "x" * LONG_BYTES)
    stand.script("loud", f"#!/bin/sh\nhead -c {LONG_BYTES} /dev/zero | tr '\\0' x\n")
    wire = stand.start()
    reads = [request(f"read {number}", "resources/read", {"uri": text.as_uri()}) for number in range(50)]
    wire.send([*reads, *(call(f"call {number}", "loud") for number in range(20))])
    batch = wire.receive(lambda message: "batch" in message, within_secs=60)["batch"]

    assert len({answer["id"] for answer in batch}) == len(batch) == 70
    refused = [answer["error"] for answer in batch if "error" in answer]
    assert 60 < len(refused) < 70
    assert {(error["code"], error["message"]) for error in refused} == {
        (-32603, "The reply to this batch would be too long; ask for less at a time.")
    }
    peak_mib = peak_memory_mib(wire.process.pid)
    note_figure(record_property, "peak memory in MiB", peak_mib)
    assert peak_mib < 2 * MOST_MEMORY_MIB


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


def test_five_hundred_requests_at_once_are_each_answered_once(new_stand: NewStand) -> None:
    stand = new_stand()
    stand.script("quick", '#!/bin/sh\necho "$MCP_TOOL_ARGS_JSON"\n')
    peer = stand.start_peer()

    peer.send(*(call(id, "quick", arguments={"id": id}) for id in range(500)))
    answers = peer.answers(range(500))

    for id, answer in answers.items():
        assert json.loads(text_of(answer["result"])) == {"id": id}
    peer.send(request("end", "ping"))
    peer.answer("end")
    assert len(peer.seen) == 502
    require_only_server(stand, peer.pid)


def test_more_requests_than_may_wait_are_refused_and_the_rest_served(new_stand: NewStand) -> None:
    stand = new_stand(max_concurrent_requests=2, max_queued_requests=10)
    stand.script("quick", "#!/bin/sh\necho done\n")
    peer = stand.start_peer()

    peer.send(*(call(id, "quick") for id in range(300)))
    answers = peer.answers(range(300))

    served = [answer for answer in answers.values() if "result" in answer]
    refused = [answer["error"]["code"] for answer in answers.values() if "error" in answer]
    assert len(served) >= 10
    assert set(refused) == {-32603}
    peer.send(call("later", "quick"))
    assert text_of(peer.answer("later")["result"]) == "done\n"


def rubbish(lot: random.Random) -> bytes:
    """A line that is not a request: noise, half a message, or JSON of another kind."""
    kinds = lot.randrange(8)
    noise = lot.randbytes(lot.randrange(1, 80)).replace(b"\n", b" ")
    message = json.dumps(request(lot.randrange(10**6), "tools/call", {"name": "x" * lot.randrange(20)})).encode()
    if kinds == 0:
        return noise
    if kinds == 1:
        return message[: lot.randrange(1, len(message))]
    if kinds == 2:
        cut = lot.randrange(len(message))
        return message[:cut] + noise + message[cut:]
    if kinds == 3:
        return json.dumps(lot.choice([None, True, 1, -1.5, "text", [], [1], {}, [[]], [{}], {"a": 1}])).encode()
    if kinds == 4:
        return b"[" * lot.randrange(1, 5000)
    if kinds == 5:
        return json.dumps({"jsonrpc": lot.choice(["2.0", "1.0", 2]), "id": lot.choice([None, {}, [], 1.5])}).encode()
    if kinds == 6:
        method = lot.choice(["notifications/cancelled", "no/such", "", "tools/call"])
        params: object = lot.choice([None, 1, [], {"requestId": []}])
        return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()
    return b" \t\r" * lot.randrange(5)


def test_every_ping_in_a_flood_of_rubbish_is_answered(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    stand = new_stand()
    stand.script("quick", "#!/bin/sh\necho done\n")
    peer = stand.start_peer()
    lot = random.Random(1)
    lines: list[bytes] = []
    for number in range(10_000):
        lines.append(rubbish(lot))
        if number % 10 == 0:
            lines.append(json.dumps(request(f"ping-{number}", "ping")).encode())

    peer.send_bytes(b"\n".join(lines) + b"\n")
    answers = peer.answers([f"ping-{number}" for number in range(0, 10_000, 10)])

    assert all(answer.get("result") == {} for answer in answers.values())
    peer.send(call("call", "quick"))
    assert text_of(peer.answer("call")["result"]) == "done\n"
    assert peers_peak_mib(peer, record_property) < MOST_MEMORY_MIB


def test_a_tool_killed_from_outside_is_a_failure_with_its_exit_code(new_stand: NewStand) -> None:
    stand = new_stand()
    stand.script("slow", "exec sleep {mark}\n")
    peer = stand.start_peer()

    peer.send(call(1, "slow"))
    (pid,) = eventually(lambda: sleepers(stand))
    os.kill(pid, signal.SIGKILL)
    result = peer.answer(1)["result"]

    assert result["isError"] is True
    assert result["_meta"]["exitCode"] == 137
    require_only_server(stand, peer.pid)


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


PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":&}}'
LOG = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"line &"}}'


@pytest.mark.parametrize(
    ("method", "line"), [("notifications/progress", PROGRESS), ("notifications/message", LOG)], ids=["progress", "log"]
)
def test_a_flood_of_reports_is_throttled_and_the_response_arrives(
    new_stand: NewStand, record_property: Callable[[str, object], None], method: str, line: str
) -> None:
    stand = new_stand()
    stand.script("flood", f"seq 30000 | sed 's|.*|{line}|' > \"$MCP_PROGRESS_STREAM\"\necho done\n")
    peer = stand.start_peer()

    peer.send(call(1, "flood", _meta={"progressToken": "t"}))
    answer = peer.answer(1)
    peer.send(request("end", "ping"))
    peer.answer("end")

    assert text_of(answer["result"]) == "done\n"
    reports = [message for message in peer.seen if message.get("method") == method]
    assert 1 <= len(reports) <= 100
    assert peer.seen.index(answer) == len(reports) + 1, "reports come before the response"
    assert peers_peak_mib(peer, record_property) < MOST_MEMORY_MIB


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
def test_rubbish_on_the_control_pipe_harms_nobody(
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


@pytest.mark.parametrize("line", ["y", "", PROGRESS.replace("&", "1")], ids=["rubbish", "empty lines", "progress"])
def test_others_are_served_while_a_script_floods_the_control_pipe(new_stand: NewStand, line: str) -> None:
    """A chunk of the pipe is worked off in one go, so it must be a small one."""
    stand = new_stand()
    stand.script("flood", f"""yes '{line}' > "$MCP_PROGRESS_STREAM" &\nexec sleep {{mark}}\n""")
    peer = stand.start_peer()
    peer.send(call(1, "flood", _meta={"progressToken": "t"}))
    eventually(lambda: sleepers(stand))

    for number in range(10):
        peer.send(request(f"ping-{number}", "ping"))
        peer.answer(f"ping-{number}")
    peer.send(cancel(1), request("end", "ping"))
    peer.answer("end")

    require_only_server(stand, peer.pid)


def test_the_server_goes_on_when_nobody_reads_its_diagnostics(new_stand: NewStand) -> None:
    stand = new_stand(stderr_level="debug")
    stand.script("quick", "#!/bin/sh\necho done\n")
    peer = stand.start_peer(stderr=subprocess.PIPE)
    unknown = notification("notifications/" + "x" * 100)

    # Each is worth a line of a hundred characters; the pipe holds 64 KiB.
    for number in range(20):
        peer.send(*[unknown] * 250, request(f"ping-{number}", "ping"), call(f"call-{number}", "quick"))
    answers = peer.answers([f"{kind}-{number}" for kind in ("ping", "call") for number in range(20)])

    assert all("result" in answer for answer in answers.values())
    peer.process.send_signal(signal.SIGTERM)
    peer.process.wait(60)
    require_all_gone([stand])


def test_a_client_that_goes_without_reading_does_not_hold_the_server(new_stand: NewStand) -> None:
    stand = new_stand()
    stand.script("loud", LOUD)
    peer = stand.start_peer(reads=False)
    peer.send(*(call(id, "loud") for id in range(100)))
    eventually(lambda: started(stand) >= 20)

    assert peer.process.stdin is not None and peer.process.stdout is not None
    peer.process.stdin.close()
    peer.process.stdout.close()

    assert peer.process.wait(60) == 0
    require_all_gone([stand])


def test_a_thousand_short_lived_calls_leave_the_memory_as_it_was(
    new_stand: NewStand, record_property: Callable[[str, object], None]
) -> None:
    stand = new_stand()
    stand.script("quick", "#!/bin/sh\necho done\n")
    peer = stand.start_peer()
    peer.send(*(call(f"warm-{number}", "quick") for number in range(300)))
    peer.answers([f"warm-{number}" for number in range(300)])
    before_mib = peak_memory_mib(peer.pid)

    for part in range(4 if not IS_FULL else 20):
        ids = [f"{part}-{number}" for number in range(250)]
        peer.send(*(call(id, "quick") for id in ids), *(cancel(id) for id in ids[::5]))
        peer.answers([id for index, id in enumerate(ids) if index % 5])

    assert peers_peak_mib(peer, record_property) < before_mib + 5
    require_only_server(stand, peer.pid)
    settle(lambda: [found for found in processes_with(stand.mark) if "quick" in found[1]], "processes are left")
