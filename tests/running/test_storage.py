"""What counts as a full disk, and when calls are served again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from mcpgreen.errors import InternalError
from mcpgreen.running.storage import Storage


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def storage_with_news() -> tuple[Storage, list[tuple[str, str]], Clock]:
    news: list[tuple[str, str]] = []
    clock = Clock()
    return Storage(on_news=lambda level, text: news.append((level, text)), clock=clock), news, clock


def failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.requirement("G-disk-full")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_full_disk_is_critical_news_once(tmp_path: Path, number: int) -> None:
    storage, news, _ = storage_with_news()
    for _ in range(3):
        refusal = storage.failed(failure(number), directory=str(tmp_path), what="the registry")
        assert refusal is not None
        assert refusal.message.startswith("The disk ")
        assert str(tmp_path) not in refusal.message

    assert [level for level, _ in news] == ["critical"]
    with pytest.raises(InternalError, match="The disk "):
        storage.require_room()


@pytest.mark.requirement("G-disk-full")
@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR])
def test_a_directory_that_may_not_be_written_is_no_full_disk(tmp_path: Path, number: int) -> None:
    storage, news, _ = storage_with_news()

    assert storage.failed(failure(number), directory=str(tmp_path), what="the registry") is None
    storage.require_room()
    assert news == []


@pytest.mark.requirement("G-disk-full")
def test_calls_are_refused_until_a_probe_succeeds_and_probes_are_a_second_apart(tmp_path: Path) -> None:
    storage, news, clock = storage_with_news()
    storage.failed(failure(errno.ENOSPC), directory=str(tmp_path), what="a temporary file")
    clock.now += 0.9
    with pytest.raises(InternalError, match="The disk is full: a temporary file cannot be written"):
        storage.require_room()
    clock.now += 0.2
    storage.require_room()

    assert [level for level, _ in news] == ["critical", "notice"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("G-disk-full")
def test_one_directory_with_room_does_not_excuse_another(tmp_path: Path) -> None:
    storage, news, clock = storage_with_news()
    storage.failed(failure(errno.ENOSPC), directory="/dev/full", what="one thing")  # a probe there tells nothing
    storage.failed(failure(errno.ENOSPC), directory=str(tmp_path), what="another thing")
    storage.succeeded("/dev/full")
    with pytest.raises(InternalError, match="another thing"):
        storage.require_room()
    clock.now += 2

    storage.require_room()
    assert [level for level, _ in news] == ["critical", "critical", "notice", "notice"]


def test_a_write_that_succeeds_by_itself_ends_it_too(tmp_path: Path) -> None:
    storage, news, _ = storage_with_news()
    storage.succeeded(str(tmp_path))
    assert news == []
    storage.failed(failure(errno.ENOSPC), directory=str(tmp_path), what="the registry")
    storage.succeeded(str(tmp_path))

    storage.require_room()
    assert [level for level, _ in news] == ["critical", "notice"]
