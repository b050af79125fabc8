"""Where frames wait for the connection that carries them, as a class: answers, streams, what is kept."""

from __future__ import annotations

import gc
import time
import weakref
from itertools import islice

import gevent
import pytest

from mcpgreen.transports.http.streams import events
from mcpgreen.transports.http.streams.outlet import MAX_KEPT_BYTES, MAX_KEPT_FRAMES, Outlet, Outlets

LARGE_BYTES = 1 << 30
MUCH_BYTES = 1 << 20  # for one answer


class Carrier:
    """A connection, as far as an outlet knows it."""

    has_ended = False
    sent_at = 0.0

    def end(self) -> None:
        self.has_ended = True


class FakeCall:
    id = 1
    is_cancelled = False


def outlet_of(**options: object) -> Outlet:
    return Outlets(max_backlog_bytes=LARGE_BYTES).new(**options)  # type: ignore[arg-type]


def stream_of(outlet: Outlet, carrier: Carrier, *, after: int | None = None) -> list[bytes]:
    """All that goes out before the outlet falls silent, or is over."""
    parts = []
    for part in outlet.stream(carrier, keep_alive_secs=0.001, after=after):
        if part == events.KEEP_ALIVE:
            break
        parts.append(part)
    return parts


def test_nothing_comes_after_the_answer() -> None:
    outlet = outlet_of()
    outlet.respond(b"{}")
    outlet.notify(b"late")
    outlet.respond(b"again")

    assert stream_of(outlet, Carrier()) == [b"data: {}\n\n"]


def test_a_frame_that_nobody_asks_for_again_is_sent_once() -> None:
    outlet = outlet_of(key=0)
    outlet.notify(b"a")
    assert stream_of(outlet, Carrier()) == [b"id: 0-1\ndata: a\n\n"]
    outlet.notify(b"b")

    assert stream_of(outlet, Carrier()) == [b"id: 0-2\ndata: b\n\n"]


def test_a_second_connection_takes_the_place_of_the_first() -> None:
    outlet, first, second = outlet_of(key=0), Carrier(), Carrier()
    parts: list[bytes] = []
    reading = gevent.spawn(lambda: parts.extend(outlet.stream(first, keep_alive_secs=10)))
    gevent.sleep(0)
    outlet.stream(second, keep_alive_secs=10)
    outlet.notify(b"news")
    reading.join(5)

    assert reading.ready()
    assert parts == [events.OPENED]
    assert stream_of(outlet, second) == [b"id: 0-1\ndata: news\n\n"]


def test_the_same_news_wait_once_for_a_client_that_is_away() -> None:
    outlet = outlet_of(key=0)
    for _ in range(3):
        outlet.notify(b"tools changed")

    assert stream_of(outlet, Carrier()) == [b"id: 0-1\ndata: tools changed\n\n"]


def test_what_waits_for_a_client_that_is_away_is_bounded() -> None:
    outlet = outlet_of(key=0)
    for number in range(MAX_KEPT_FRAMES * 3):
        outlet.notify(b"%d" % number)
    outlet.notify(b"x" * MAX_KEPT_BYTES)
    outlet.notify(b"last")

    (sent,) = stream_of(outlet, Carrier())
    assert sent.endswith(b"data: last\n\n")
    assert len(sent) < 2 * MAX_KEPT_BYTES


def test_what_is_kept_for_a_client_is_bounded() -> None:
    outlet = outlet_of(key=3)
    for number in range(MAX_KEPT_FRAMES + 10):
        outlet.notify(b"%d" % number)
    stream_of(outlet, Carrier())

    again = b"".join(stream_of(outlet, Carrier(), after=0))
    assert again.count(b"data:") == MAX_KEPT_FRAMES
    assert outlet.kept_bytes <= MAX_KEPT_BYTES


def test_who_has_read_nothing_for_longest_makes_way_for_an_answer_that_waits() -> None:
    outlets = Outlets(max_backlog_bytes=1000, patience_secs=0)
    carriers = [Carrier() for _ in range(3)]
    reading, idle, waiting = (outlets.new(carrier=each) for each in carriers)
    for outlet in (reading, idle):
        outlet.respond(b"x" * 900)
    carriers[0].sent_at = time.monotonic()

    waiting.wait_for_room_for(MUCH_BYTES)

    assert [each.has_ended for each in carriers] == [False, True, False]


def test_nobody_makes_way_who_may_still_read() -> None:
    outlets = Outlets(max_backlog_bytes=1000, patience_secs=3600)
    carrier = Carrier()
    slow, next_one = outlets.new(carrier=carrier), outlets.new()
    slow.respond(b"x" * 1100)
    waiting = gevent.spawn(next_one.wait_for_room_for, MUCH_BYTES)
    gevent.sleep(0)
    assert not waiting.ready() and not carrier.has_ended
    assert not next_one.has_room  # no script should start that makes another answer

    slow.take_answer()
    slow.lose()

    waiting.join(5)
    assert waiting.ready() and next_one.has_room


def test_nothing_waits_for_a_client_that_leaves() -> None:
    outlets = Outlets(max_backlog_bytes=1000, patience_secs=3600)
    slow, next_one = outlets.new(), outlets.new()
    slow.respond(b"x" * 1100)
    waiting = gevent.spawn(next_one.wait_for_room_for, MUCH_BYTES)
    gevent.sleep(0)

    next_one.lose()

    waiting.join(5)
    assert waiting.ready()


def test_one_large_answer_alone_is_no_reason_to_lose_the_connection() -> None:
    outlets = Outlets(max_backlog_bytes=1000)
    only = outlets.new()
    only.respond([b"x" * 3000, b"y" * 3000])

    assert not only.is_lost
    assert only.take_answer() == [b"x" * 3000, b"y" * 3000]


def test_what_streams_keep_is_bounded_for_all_together() -> None:
    outlets = Outlets(max_backlog_bytes=1000)
    older, newer = outlets.new(key=1), outlets.new(key=2)
    for outlet in (older, newer):
        outlet.notify(b"x" * 600)
        stream_of(outlet, Carrier())

    assert older.kept_bytes == 0
    assert newer.kept_bytes == 600


def test_a_caller_with_many_unread_answers_leaves_room_for_another() -> None:
    outlets = Outlets(max_backlog_bytes=1000)
    while (outlet := outlets.new(owner="mallory")).has_room_for(MUCH_BYTES):
        outlet.respond(b"y" * 100)

    assert outlets.new(owner="ada").has_room_for(MUCH_BYTES)


def test_a_caller_with_many_streams_does_not_cost_another_what_is_kept_for_it() -> None:
    outlets = Outlets(max_backlog_bytes=1000)
    kept = outlets.new(key=1, owner="ada")
    kept.notify(b"x" * 300)
    stream_of(kept, Carrier())
    for _ in range(20):
        outlet = outlets.new(key=1, owner="mallory")
        outlet.notify(b"y" * 100)
        stream_of(outlet, Carrier())

    assert kept.kept_bytes == 300


def test_who_does_not_read_has_no_room() -> None:
    outlet = Outlets(max_backlog_bytes=100).new()
    outlet.notify(b"x" * 200)
    assert not outlet.has_room
    outlet.notify(b"dropped")
    outlet.notify(b"kept", is_droppable=False)
    waiting = gevent.spawn(outlet.wait_for_room)
    gevent.sleep(0)
    assert not waiting.ready()

    assert stream_of(outlet, Carrier()) == [b"data: " + b"x" * 200 + b"\n\ndata: kept\n\n"]
    waiting.join(5)
    assert waiting.ready()


def test_nobody_waits_for_room_at_a_client_that_is_gone() -> None:
    outlet = Outlets(max_backlog_bytes=100).new()
    outlet.notify(b"x" * 200)
    waiting = gevent.spawn(outlet.wait_for_room)
    gevent.sleep(0)

    outlet.lose()

    waiting.join(5)
    assert waiting.ready()


def test_a_client_that_is_gone_has_room_for_calls_but_for_no_more_news() -> None:
    """A call that stood behind others of its batch asked for ever whether there was room, and the hub never ran again:
    the whole server hung, because one client had left much unread when it went."""
    outlet, carrier = Outlets(max_backlog_bytes=100).new(key=1), Carrier()
    outlet.stream(carrier, keep_alive_secs=10)
    outlet.notify(b"x" * 200)

    outlet.lose(carrier)

    assert outlet.has_room
    outlet.notify(b"dropped")
    assert outlet.unread_bytes == 200


def test_a_stream_that_nobody_reads_to_the_end_leaves_nothing() -> None:
    outlets = Outlets(max_backlog_bytes=LARGE_BYTES)
    outlet, carrier = outlets.new(), Carrier()
    outlet.notify(b"x" * 100)
    outlet.respond(b"y" * 100)
    stream = outlet.stream(carrier, keep_alive_secs=10)
    list(islice(stream, 1))

    stream.close()  # type: ignore[attr-defined]

    assert outlet.unread_bytes == 0
    assert "0 bytes unread, of 0 streams" in repr(outlets)
    gc.collect()


def test_what_a_client_has_left_on_the_way_is_not_unread_for_ever() -> None:
    """Each connection that was lost while it sent added to what its session seemed to have left unread."""
    outlets = Outlets(max_backlog_bytes=LARGE_BYTES)
    outlet = outlets.new(key=0)
    carrier = Carrier()
    outlet.notify(b'{"first"}')
    stream = outlet.stream(carrier, keep_alive_secs=1)
    next(stream)

    stream.close()

    assert outlet.unread_bytes == 0


def test_what_waits_for_a_client_to_come_back_counts() -> None:
    """It was held without being counted, once the call was over."""
    outlet = outlet_of(key=1)
    carrier = Carrier()
    outlet.notify(b"x" * (MAX_KEPT_BYTES + 1))
    outlet.respond(b"y" * 1000)
    stream = outlet.stream(carrier, keep_alive_secs=1)
    next(stream)

    stream.close()

    assert outlet.unread_bytes == 1000
    assert any(b"y" * 1000 in part for part in stream_of(outlet, Carrier(), after=1))
    assert outlet.unread_bytes == 0


def test_a_connection_that_carried_it_once_cannot_lose_it() -> None:
    """A client that came back was cut off when its first connection was found dead."""
    outlet = outlet_of(key=1)
    first, second = Carrier(), Carrier()
    outlet.stream(first, keep_alive_secs=10)
    outlet.stream(second, keep_alive_secs=10)

    outlet.lose(first)

    assert not outlet.is_lost
    outlet.lose(second)
    assert outlet.is_lost


def test_news_for_a_client_that_leaves_while_much_is_sent_to_it_are_no_error() -> None:
    """What was on its way counted, and news were dropped until there were none left to drop: the look for changes on
    disk that told them failed, or the call whose answer it was."""
    outlet, carrier = outlet_of(key=0), Carrier()
    stream = outlet.stream(carrier, keep_alive_secs=10)
    outlet.respond(b"x" * (MAX_KEPT_BYTES + 1))
    next(stream)

    outlet.lose(carrier)
    outlet.notify(b"news")

    stream.close()
    assert outlet.unread_bytes == 0


def test_what_is_unread_never_counts_below_nothing() -> None:
    """A connection that was broken off while it sent took what it had sent from the count of what came later."""
    outlets = Outlets(max_backlog_bytes=1000)
    outlet, other, carrier, call = outlets.new(key=1), outlets.new(key=2), Carrier(), FakeCall()
    outlet.notify(b"x" * 900)
    stream = outlet.stream(carrier, keep_alive_secs=10)
    next(stream)
    other.notify(b"y" * 200)
    outlet.break_off()
    outlet.notify(b"z" * 100, call)
    stream.close()
    call.is_cancelled = True

    stream_of(outlet, Carrier())

    assert outlet.unread_bytes == 0
    assert "200 bytes unread, of 1 streams" in repr(outlets)


def test_what_is_sent_again_counts_as_long_as_it_is_there() -> None:
    outlet = outlet_of(key=1)
    for _ in range(3):
        outlet.notify(b"x" * 300)
    stream_of(outlet, Carrier())

    outlet.stream(Carrier(), keep_alive_secs=10, after=0)

    assert outlet.unread_bytes == 900
    outlet.break_off()
    assert outlet.is_lost and outlet.is_silent
    assert outlet.unread_bytes == 0


@pytest.mark.parametrize("has_progress", [True, False])
def test_a_stream_that_is_over_holds_none_of_its_calls(has_progress: bool) -> None:
    """Clients may come back for what was sent. The arguments of the calls, megabytes of them, were kept as well."""
    outlet, call = outlet_of(key=1), FakeCall()
    gone = weakref.ref(call)
    if has_progress:
        outlet.notify(b"progress", call)
        stream_of(outlet, Carrier())
        outlet.notify(b"more", call)
    outlet.respond(b"{}", call)
    stream_of(outlet, Carrier())

    del call

    assert gone() is None
    again = b"".join(stream_of(outlet, Carrier(), after=0))
    assert again.count(b"data:") == (3 if has_progress else 1)


def test_nothing_that_was_said_of_a_cancelled_call_is_said_again() -> None:
    outlet, call = outlet_of(key=1), FakeCall()
    outlet.notify(b"progress", call)
    stream_of(outlet, Carrier())
    outlet.notify(b"more", call)
    call.is_cancelled = True
    outlet.withdraw()

    assert stream_of(outlet, Carrier(), after=0) == [events.OPENED]
    assert (outlet.unread_bytes, outlet.kept_bytes) == (0, 0)


def lived(outlet: Outlet, *events: str) -> str:
    """What becomes of an outlet and the one event that it has sent, as its methods are called."""
    for event in events:
        if event == "stream":
            outlet.notify(b"progress")
            list(islice(outlet.stream(Carrier(), keep_alive_secs=10), 1))
        else:
            {"end": lambda: outlet.respond(b"{}"), "take": outlet.take_answer, "lose": outlet.lose}[event]()
    facts = {"over": outlet.is_over, "lost": outlet.is_lost, "resumable": outlet.can_resume_after(0)}
    return " ".join(name for name, is_so in facts.items() if is_so)


@pytest.mark.parametrize(
    ("key", "events", "expected"),
    [
        (7, "", ""),
        (7, "end", "over"),
        (7, "end take lose", "over lost"),
        (7, "end stream", "over lost resumable"),
        (7, "stream", "lost resumable"),
        (7, "stream end", "over lost resumable"),
        (7, "stream stream end", "over lost resumable"),
        (7, "lose", "lost"),
        (7, "lose end", "over lost"),
        (None, "stream", "lost"),
        (None, "stream end", "over lost"),
        (None, "end stream", "over lost"),
        (None, "end take lose lose", "over lost"),
        (0, "", "lost resumable"),
        (0, "stream lose", "lost resumable"),
        (0, "stream end", "lost resumable"),
    ],
)
def test_the_life_of_an_answer(key: int | None, events: str, expected: str) -> None:
    assert lived(outlet_of(key=key), *events.split()) == expected
