"""Many calls that ask and are abandoned, in both eras: not one process, file, descriptor or greenlet is left."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.stress.support import (
    IS_FULL,
    Peer,
    Stand,
    call,
    cancel,
    guardian_of,
    processes_with,
    request,
    require_all_gone,
    require_no_new_descriptors,
    require_only_server,
    settle,
)
from tests.support.processes import MIB, peak_bytes
from tests.support.questions import FORM, form
from tests.support.waiting import eventually
from tests.support.wire import Json, modern_meta, text_of

NewStand = Callable[..., Stand]

COUNT = 1000 if IS_FULL else 200
AT_ONCE = 25
PARKED_MAX = 8

ASKS = f"""
reply="$MCP_ASK_REPLY.$$.1"
mkfifo -m 600 "$reply"
printf '{{"ask":{{"who":{json.dumps(form("Who?", name={"type": "string"}))}}},"reply":"%s"}}\\n' "$reply" \\
  > "$MCP_PROGRESS_STREAM"
read -r said < "$reply"
echo "$said"
"""


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    stand = new_stand(MAX_PARKED=PARKED_MAX, PARKED_SECS=3)
    stand.script("asker", ASKS)
    stand.script("plain", "echo still here")
    return stand


def scripts_of(stand: Stand, pid: int) -> list[int]:
    spared = {pid, guardian_of(stand)}
    return [found for found, _ in processes_with(stand.mark) if found not in spared]


def stateless_call(id: str, name: str = "asker", **params: object) -> Json:
    return request(id, "tools/call", {"name": name, "arguments": {}, "_meta": modern_meta(capabilities=FORM), **params})


def warm_up(stand: Stand, peer: Peer) -> list[str]:
    """The descriptors of a server that has run something, and watches."""
    peer.send(call("warm", "plain"))
    peer.answer("warm")

    def settled() -> list[str]:
        held = stand.descriptors_of(peer.pid)
        return held if "anon_inode:inotify" in held and not any(each.endswith(".pyc") for each in held) else []

    return eventually(settled)


@pytest.mark.requirement("G-ask-leaves-nothing", "G-parked")
def test_many_stateless_calls_that_never_come_back_leave_nothing(stand: Stand) -> None:
    peer = stand.start_peer()
    before = warm_up(stand, peer)
    peak_mib = 0.0
    for first in range(0, COUNT, AT_ONCE):
        ids = [f"{number}" for number in range(first, first + AT_ONCE)]
        peer.send(*map(stateless_call, ids))
        answers = peer.answers(ids)
        assert {answer["result"]["resultType"] for answer in answers.values()} == {"input_required"}
        settle(lambda: scripts_of(stand, peer.pid)[PARKED_MAX:], "more scripts wait than may")
        if not peak_mib:
            peak_mib = peak_bytes(peer.pid) / MIB

    require_only_server(stand, peer.pid)
    require_no_new_descriptors(peer.pid, before)
    assert peak_bytes(peer.pid) / MIB < peak_mib + 16
    peer.send(call("after", "plain"))
    assert text_of(peer.answer("after")["result"]) == "still here\n"


@pytest.mark.requirement("G-ask-leaves-nothing", "G-ask-live")
def test_many_calls_that_are_cancelled_while_they_ask_leave_nothing(stand: Stand) -> None:
    peer = stand.start_peer(capabilities=FORM)
    before = warm_up(stand, peer)
    for first in range(0, COUNT, AT_ONCE):
        ids = [f"{number}" for number in range(first, first + AT_ONCE)]
        peer.send(*(call(id, "asker") for id in ids))
        # One asks, the others are anywhere on their way.
        peer.receive_until(lambda message: message.get("method") == "elicitation/create")
        peer.send(*map(cancel, ids))

    require_only_server(stand, peer.pid)
    require_no_new_descriptors(peer.pid, before)
    peer.send(call("after", "plain"))
    assert text_of(peer.answer("after")["result"]) == "still here\n"
    asked = {message["id"] for message in peer.seen if message.get("method") == "elicitation/create"}
    taken_back = {
        message["params"]["requestId"] for message in peer.seen if message.get("method") == "notifications/cancelled"
    }
    assert asked == taken_back


@pytest.mark.requirement("G-ask-leaves-nothing", "G-parked")
@pytest.mark.parametrize("kills", [False, True])
def test_a_server_that_goes_takes_all_who_ask_with_it(stand: Stand, kills: bool) -> None:
    peer = stand.start_peer(capabilities=FORM)
    peer.send(*(stateless_call(f"s{number}") for number in range(PARKED_MAX)))
    peer.answers([f"s{number}" for number in range(PARKED_MAX)])
    peer.send(*(call(f"h{number}", "asker") for number in range(PARKED_MAX)))
    settle(lambda: [1] * (2 * PARKED_MAX - len(scripts_of(stand, peer.pid))), "scripts are missing")
    if kills:
        peer.process.kill()
    else:
        assert peer.process.stdin is not None
        peer.process.stdin.close()
    peer.process.wait(60)

    require_all_gone([stand])
