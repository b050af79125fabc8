"""A log file: private, bounded, and never in the way."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpgreen.logs import outputs
from mcpgreen.logs.outputs import LogFile
from tests.support.waiting import eventually

Open = Callable[..., LogFile]


class Told(list[str]):
    """What the file had to say about itself."""


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def opened(told: Told) -> Iterator[Open]:
    files: list[LogFile] = []

    def open_file(path: Path, *, max_bytes: int = 1 << 20, keep: int = 3) -> LogFile:
        file = LogFile(
            str(path), max_bytes=max_bytes, keep=keep, tell=told.append, gap=lambda lines: b"gap of %d\n" % lines
        )
        files.append(file)
        return file

    yield open_file
    for file in files:
        file.close()


def test_lines_are_appended_and_nobody_else_may_read_them(tmp_path: Path, opened: Open, told: Told) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    path.chmod(0o644)
    file = opened(path)
    file.write(b"one\n")
    file.write(b"two\n")
    file.close()

    assert path.read_text() == "before\none\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert told == []


def test_a_full_file_is_renamed_and_the_oldest_one_goes(tmp_path: Path, opened: Open) -> None:
    file = opened(tmp_path / "log", max_bytes=100, keep=2)
    for number in range(50):
        file.write(b"%029d\n" % number)
    file.close()

    kept = {path.name: path.read_text().split() for path in tmp_path.iterdir()}
    assert sorted(kept) == ["log", "log.1", "log.2"]
    assert [int(number) for name in ("log.2", "log.1", "log") for number in kept[name]] == list(range(42, 50))
    assert all(path.stat().st_size <= 100 and stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())


def test_two_servers_share_a_file_and_lose_no_line(tmp_path: Path, opened: Open) -> None:
    first, second = (opened(tmp_path / "log", max_bytes=300, keep=100) for _ in range(2))
    for number in range(100):
        first.write(b"a%028d\n" % number)
        second.write(b"b%028d\n" % number)
    first.close()
    second.close()

    lines = [line for path in tmp_path.iterdir() for line in path.read_text().split()]
    assert len(lines) == len(set(lines)) == 200


def test_a_file_that_somebody_else_has_just_renamed_is_not_renamed_again(tmp_path: Path, opened: Open) -> None:
    """Two servers that did so at the same time overwrote a file of each other."""
    path = tmp_path / "log"
    file = opened(path, max_bytes=100, keep=5)
    file.write(b"mine\n")
    file.close()
    file._require_current()
    path.rename(tmp_path / "log.1")
    path.write_bytes(b"theirs\n")

    file._begin_anew()
    file._let_go()
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"log": "theirs\n", "log.1": "mine\n"}


def test_a_file_that_was_removed_is_made_again(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "log"
    file = opened(path)
    file.write(b"one\n")
    eventually(lambda: path.exists() and path.stat().st_size)
    path.unlink()
    file.write(b"two\n")
    file.close()

    assert path.read_text() == "two\n"


@pytest.mark.parametrize("kind", ["link", "dangling link", "fifo", "directory", "missing directory"])
def test_what_is_no_file_is_left_alone_and_told_once(tmp_path: Path, opened: Open, told: Told, kind: str) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    if kind == "link":
        other.write_text("of somebody else")
    if "link" in kind:
        path.symlink_to(other)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path = tmp_path / "nowhere" / "log"
    file = opened(path)
    for _ in range(3):
        file.write(b"line\n")
    file.close()

    (message,) = told
    assert message.startswith(f"log_file: {path} cannot be written: ")
    assert not other.exists() or other.read_text() == "of somebody else"


def test_a_disk_that_hangs_does_not_hold_up_the_server(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for a network that is gone: the write waits, whoever logs does not, and what waits is bounded."""
    path = tmp_path / "log"
    file = opened(path)
    read_end, write_end = os.pipe()
    real_write = os.write

    def slow_write(fd: int, data: bytes) -> int:
        os.read(read_end, 1)
        return real_write(fd, data)

    monkeypatch.setattr(outputs.os, "write", slow_write)
    line = b"x" * 65535 + b"\n"
    for _ in range(200):
        file.write(line)
    assert file._queued_bytes <= outputs.MAX_QUEUED_BYTES + len(line) * 2
    monkeypatch.undo()
    os.close(write_end)
    file.write(b"after\n")
    file.close()
    os.close(read_end)

    assert path.stat().st_size < 200 * len(line)
