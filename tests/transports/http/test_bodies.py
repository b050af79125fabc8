"""The body of a request, as a function over what a connection hands out, in pieces of every size."""

from __future__ import annotations

import sys

import pytest

from mcpgreen.transports.http.wire import connection as bodies
from mcpgreen.transports.http.wire.connection import Body, Buffer
from mcpgreen.transports.http.wire.heads import BadRequest
from tests.support.effort import lines_run

LIMIT = 100


def buffer_of(raw: bytes, step: int) -> Buffer:
    pieces = [raw[start : start + step] for start in range(0, len(raw), step)]

    def receive() -> bytes:
        if not pieces:
            raise ConnectionError
        return pieces.pop(0)

    return Buffer(receive)


def read(
    raw: bytes, length_bytes: int | None = None, *, step: int = 1000, size: int = sys.maxsize
) -> tuple[bytes, bytes]:
    """The body, and what comes after it."""
    buffer = buffer_of(raw, step)
    body = Body(buffer, length_bytes, limit_bytes=LIMIT)
    pieces = []
    while not body.is_at_end:
        pieces.append(body.read(size))
    assert body.read(size) == b""
    return b"".join(pieces), buffer.take(len(buffer)) if len(buffer) else b""


def refusal_of(raw: bytes, length_bytes: int | None = None, *, step: int = 1000) -> int:
    with pytest.raises(BadRequest) as refusal:
        read(raw, length_bytes, step=step)
    return int(refusal.value.status[:3])


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("size", [sys.maxsize, 1, 2, 5, 64])
@pytest.mark.parametrize(
    ("raw", "length_bytes"), [(b"hello, world!", 13), (b"5\r\nhello\r\n007\r\n, world\r\n1\r\n!\r\n0\r\n\r\n", None)]
)
def test_a_body_ends_with_its_length_or_an_empty_chunk(
    raw: bytes, length_bytes: int | None, step: int, size: int
) -> None:
    whole, after = read(raw + b"GET", length_bytes, step=step, size=size)
    assert whole == b"hello, world!"
    assert b"GET".startswith(after)


def test_an_empty_body_is_at_its_end() -> None:
    assert read(b"GET", 0) == (b"", b"")
    assert read(b"0\r\n\r\nGET") == (b"", b"GET")
    assert read(b"00000000\r\n\r\n") == (b"", b"")


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize(
    "raw",
    [
        b"\r\nhello\r\n0\r\n\r\n",
        b"5;name=value\r\nhello\r\n0\r\n\r\n",
        b"5;\r\nhello\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"\t5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5_\r\nhello\r\n0\r\n\r\n",
        b"g\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\n0\n\n" + b"x" * 40,
        b"5\rhello\r0\r\r" + b"x" * 40,
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello\n0\n\n" + b"x" * 40,
        b"5\r\nhello!\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
        b"5\r\nhello\r\n0\r\nGET / HTTP/1.1\r\n\r\n",
        b"000000005\r\nhello\r\n0\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"1" * 40 + b"\r\n",
        b"1" * 1000,
        b"\x00\r\nx",
        b"\xb2\r\nxx\r\n0\r\n\r\n",
        b"5\x00\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_chunks_are_as_they_should_be_or_refused(raw: bytes, step: int) -> None:
    assert refusal_of(raw, step=step) == 400


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_line_end_in_two_halves_is_one(step: int) -> None:
    assert read(b"1\r\n\r\r\n0\r\n\r\n", step=step)[0] == b"\r"
    assert read(b"1\r\n\n\r\n0\r\n\r\n", step=step)[0] == b"\n"


def test_a_body_that_says_that_it_is_too_long_is_not_begun() -> None:
    with pytest.raises(BadRequest) as refusal:
        Body(buffer_of(b"", 1), LIMIT + 1, limit_bytes=LIMIT)
    assert refusal.value.status.startswith("413")
    assert "max_line_bytes" in refusal.value.reason


@pytest.mark.parametrize("first", [b"65", b"7fffffff", b"80000000", b"ffffffff"])
def test_a_chunk_that_is_too_long_is_not_begun(first: bytes) -> None:
    assert refusal_of(first + b"\r\n") == 413


def test_chunks_are_too_long_together() -> None:
    assert refusal_of(b"32\r\n" + b"x" * 50 + b"\r\n" + b"33\r\n") == 413
    assert read(b"32\r\n" + b"x" * 50 + b"\r\n" + b"32\r\n" + b"x" * 50 + b"\r\n0\r\n\r\n")[0] == b"x" * LIMIT


def test_who_leaves_in_the_middle_is_gone() -> None:
    for raw, length in ((b"hel", 5), (b"5\r\nhel", None), (b"5", None), (b"", None), (b"0\r\n", None)):
        with pytest.raises(ConnectionError):
            read(raw, length)


def test_tiny_chunks_may_not_weigh_more_than_what_they_carry_for_long() -> None:
    """4 MiB in chunks of a byte are four million chunks: some seconds of work for one request."""
    many = bodies.FREE_CHUNKS + 10
    raw = b"1\r\nx\r\n" * many + b"0\r\n\r\n"
    with pytest.raises(BadRequest) as refusal:
        Body(buffer_of(raw, 65536), None, limit_bytes=1 << 20).read()
    assert refusal.value.status.startswith("400")
    assert "chunks" in refusal.value.reason


def test_large_chunks_may_be_many() -> None:
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    raw = chunk * (bodies.FREE_CHUNKS + 10) + b"0\r\n\r\n"
    body = Body(buffer_of(raw, 65536), None, limit_bytes=len(raw))
    assert len(body.read()) == 1024 * (bodies.FREE_CHUNKS + 10)


def test_work_grows_with_the_number_of_chunks_alone() -> None:
    def effort(chunks: int) -> int:
        raw = b"1\r\nx\r\n" * chunks + b"0\r\n\r\n"
        return lines_run(lambda: Body(buffer_of(raw, 65536), None, limit_bytes=LIMIT).read(), module=bodies)

    assert effort(80) < 9 * effort(10)


def test_others_have_a_turn_between_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[None] = []
    monkeypatch.setattr(bodies, "let_others", lambda: turns.append(None))
    raw = b"1\r\nx\r\n" * 640 + b"0\r\n\r\n"
    Body(buffer_of(raw, 65536), None, limit_bytes=1000).read()
    assert len(turns) == 10


def test_a_few_line_ends_before_a_request_are_skipped_and_no_more() -> None:
    for step in (1, 3, 1000):
        for before in (b"", b"\r\n", b"\r\n" * 8):
            buffer = buffer_of(before + b"GET", step)
            buffer.skip_line_ends(8)
            assert buffer.take(1) == b"G"
        many = buffer_of(b"\r\n" * 9, step)
        many.skip_line_ends(8)
        assert many.take(1) == b"\r"


def test_half_a_line_end_is_none() -> None:
    for raw in (b"\nGET", b"\rGET", b"\n", b"\r\rGET"):
        buffer = buffer_of(raw, 1)
        buffer.skip_line_ends(8)
        assert buffer.take(1) == raw[:1]
