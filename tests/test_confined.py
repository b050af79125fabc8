"""Files as resources: whatever is tried, nothing outside the allowed directories is read or revealed."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.files import confined
from mcpgreen.files.confined import FileFailure, NotFound, OutsideRoots, Private, TooLarge, open_file
from mcpgreen.text.uris import MAX_PATH_PARTS, file_uri, path_of

MAX_WAIT_SECS = 30
SECRET = b"secret"
NOTHING = Private("/nothing/is/private")

# Makes a name a link to the one and to the other in turn, as quickly as it can.
LINK_SWAPPER = """
import itertools, os, sys
name, *links = sys.argv[1:]
for kind, target in itertools.cycle(zip(links[::2], links[1::2])):
    getattr(os, kind)(target, name + ".new")
    os.rename(name + ".new", name)
"""
# The same with a directory, which cannot be replaced in one step.
DIRECTORY_SWAPPER = """
import os, sys
name, target = sys.argv[1:]
while True:
    os.rename(name, name + ".aside")
    os.symlink(target, name)
    os.unlink(name)
    os.rename(name + ".aside", name)
"""


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    """What blocks fails."""

    def fail(*_: Any) -> None:
        raise AssertionError("something waited for a file")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(MAX_WAIT_SECS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    directory = tmp_path.resolve() / "inside"
    directory.mkdir()
    (directory / "fine.txt").write_bytes(b"fine")
    return directory


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path.resolve() / "outside"
    directory.mkdir()
    (directory / "secret.txt").write_bytes(SECRET)
    return directory


def content(path: Path | str, *allowed: Path, limit_bytes: int = 1_000_000) -> bytes:
    with open_file(str(path), allowed=[str(each) for each in allowed], private=NOTHING) as file:
        return b"".join(file.chunks(limit_bytes))


def outcome(read: Callable[[], bytes]) -> bytes | type[FileFailure]:
    try:
        return read()
    except FileFailure as failure:
        return type(failure)


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read everything, so be somebody else for a moment."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@contextmanager
def running(code: str, *arguments: Path | str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", code, *arguments])
    try:
        yield
        assert process.poll() is None, "it ended by itself"
    finally:
        process.kill()
        process.wait()


def outcomes_while(code: str, *arguments: Path | str, read: Callable[[], bytes]) -> set[bytes | type[FileFailure]]:
    with running(code, *arguments):
        return {outcome(read) for _ in range(5000)}


def test_a_file_inside_is_read(inside: Path) -> None:
    with open_file(str(inside / "fine.txt"), allowed=[str(inside)], private=NOTHING) as file:
        assert (file.size, file.path) == (4, str(inside / "fine.txt"))
        assert b"".join(file.chunks(4)) == b"fine"


def test_a_file_comes_in_chunks_as_it_is(inside: Path) -> None:
    written = os.urandom(200_000) + b"\n\n"
    (inside / "large").write_bytes(written)
    with open_file(str(inside / "large"), allowed=[str(inside)], private=NOTHING) as file:
        chunks = list(file.chunks(1_000_000))

    assert b"".join(chunks) == written
    assert max(map(len, chunks)) == confined.CHUNK_BYTES


def test_one_of_several_directories_is_enough(inside: Path, outside: Path) -> None:
    assert content(inside / "fine.txt", outside, inside) == b"fine"


def test_without_a_directory_nothing_is_allowed(inside: Path) -> None:
    with pytest.raises(OutsideRoots):
        content(inside / "fine.txt")


def test_a_directory_whose_name_only_begins_alike_is_outside(inside: Path) -> None:
    sibling = inside.with_name("inside-too")
    sibling.mkdir()
    (sibling / "x").write_bytes(SECRET)

    with pytest.raises(OutsideRoots):
        content(sibling / "x", inside)


def test_links_that_end_inside_are_followed(inside: Path) -> None:
    (inside / "sub").mkdir()
    (inside / "link").symlink_to("fine.txt")
    (inside / "sub" / "up").symlink_to(inside)

    assert content(inside / "link", inside) == b"fine"
    assert content(inside / "sub" / "up" / "link", inside / "fine.txt", inside) == b"fine"


def test_a_hard_link_is_the_file_itself(inside: Path, outside: Path) -> None:
    """Nothing tells the two names apart, so whoever may create links inside decides."""
    os.link(outside / "secret.txt", inside / "linked")

    assert content(inside / "linked", inside) == SECRET


@pytest.mark.parametrize("name", ["secret.txt", "missing.txt", "missing/x", ".", "secret.txt/x"])
@pytest.mark.parametrize("way", ["directly", "up", "file link", "directory link"])
def test_outside_nothing_is_read_and_nothing_revealed(inside: Path, outside: Path, name: str, way: str) -> None:
    (inside / "file-link").symlink_to(outside / name)
    (inside / "directory-link").symlink_to(outside)
    path = {
        "directly": f"{outside}/{name}",
        "up": f"{inside}/../outside/{name}",
        "file link": f"{inside}/file-link",
        "directory link": f"{inside}/directory-link/{name}",
    }[way]

    with pytest.raises(OutsideRoots) as refusal:
        content(path, inside)

    assert str(refusal.value) == "Resource outside allowed roots"


@pytest.mark.parametrize(
    "path", ["/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/self/root/etc/passwd", "/proc/self/fd/0", "/"]
)
def test_the_files_of_the_system_are_outside(inside: Path, path: str) -> None:
    with pytest.raises(OutsideRoots):
        content(path, inside)


@pytest.mark.parametrize(
    "escape", ["..", "%2e%2e", ".%2E", "%2e%2e%2foutside", "..%5c", "%252e%252e", "%252e%252e%252foutside"]
)
def test_no_spelling_of_a_uri_leads_outside(inside: Path, outside: Path, escape: str) -> None:
    uri = f"{file_uri(str(inside))}/{escape}/outside/secret.txt"

    with pytest.raises((ValueError, NotFound)):
        content(path_of(uri, base=str(inside)), inside)


def test_a_path_of_thousands_of_parts_is_refused_before_anybody_looks(inside: Path) -> None:
    """To find out where such a path leads took 15 ms for each request, and a client can send hundreds at once."""
    names = "a/" * (MAX_PATH_PARTS - len("///"))
    assert path_of(f"file:///{names}", base=str(inside)).count("/") == MAX_PATH_PARTS - len("///")
    with pytest.raises(ValueError, match="more than 256 parts"):
        path_of(f"file:///{names}a/", base=str(inside))


@pytest.mark.parametrize("name", ["missing", "missing/x", "fine.txt/x", "x" * 300, "nul\0", "lone\ud800", "loop"])
def test_what_does_not_exist_inside_is_not_found(inside: Path, name: str) -> None:
    (inside / "loop").symlink_to("loop")

    with pytest.raises(NotFound) as refusal:
        content(f"{inside}/{name}", inside)

    assert str(inside) not in str(refusal.value)


def test_fifos_sockets_and_directories_are_refused_without_waiting(inside: Path, monkeypatch: Any) -> None:
    os.mkfifo(inside / "fifo")
    (inside / "directory").mkdir()
    monkeypatch.chdir(inside)  # the address of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for name in ("fifo", "directory", "socket"):
            with pytest.raises(NotFound, match=r"directory|regular"):
                content(inside / name, inside)


def test_a_device_is_refused_even_where_everything_is_allowed() -> None:
    with pytest.raises(OutsideRoots):
        content("/dev/zero", Path("/"))


@pytest.mark.parametrize("path", ["/proc/self/environ", "//proc/self/environ", "/sys/kernel/notes", "/dev/fd/0"])
def test_nor_are_the_kernels_files_inside_where_everything_is_allowed(path: str) -> None:
    with pytest.raises(OutsideRoots):
        content(path, Path("/"))


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")
def test_nor_where_they_are_mounted_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers often have the /proc of their host in another place."""
    monkeypatch.setattr("mcpgreen.files.confined.KERNEL_DIRECTORIES", ())
    descriptors = open_descriptors()
    with pytest.raises(OutsideRoots):
        content("/proc/self/environ", Path("/"))
    assert open_descriptors() == descriptors


def test_a_file_that_we_may_not_read_exists_all_the_same() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name).resolve()
        directory.chmod(0o755)
        (directory / "file").touch(mode=0)
        with without_privileges(), pytest.raises(FileFailure, match="may not read") as refusal:
            content(directory / "file", directory)
        assert not isinstance(refusal.value, NotFound)


def test_a_file_that_is_too_large_is_refused_unread(inside: Path) -> None:
    with (inside / "huge").open("wb") as file:
        file.truncate(2**40)
    opened = open_file(str(inside / "huge"), allowed=[str(inside)], private=NOTHING)

    with pytest.raises(TooLarge) as refusal:
        opened.chunks(10_000_000)

    assert str(refusal.value) == "Resource content exceeds 10000000 bytes"
    opened.close()


def test_a_file_that_grows_is_refused_at_the_limit(inside: Path) -> None:
    growing = inside / "growing"
    growing.write_bytes(bytes(100_000))
    opened = open_file(str(growing), allowed=[str(inside)], private=NOTHING)
    chunks = opened.chunks(100_000)
    next(chunks)
    with growing.open("ab") as file:
        file.write(b"x")

    with pytest.raises(TooLarge):
        list(chunks)
    opened.close()


def test_no_descriptor_is_left_open(inside: Path, outside: Path) -> None:
    os.mkfifo(inside / "fifo")
    before = open_descriptors()
    for path in ("fine.txt", "fifo", "missing", "../outside/secret.txt"):
        for limit_bytes in (1, 100):
            outcome(lambda path=path, limit=limit_bytes: content(inside / path, inside, limit_bytes=limit))
    abandoned = open_file(str(inside / "fine.txt"), allowed=[str(inside)], private=NOTHING)
    half_read = open_file(str(inside / "fine.txt"), allowed=[str(inside)], private=NOTHING)
    half = half_read.chunks(100)
    next(half)
    half_read.close()
    abandoned.close()
    abandoned.close()

    assert open_descriptors() == before


def test_a_lack_of_descriptors_is_not_mistaken_for_a_missing_file(inside: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        found = outcome(lambda: content(inside / "fine.txt", inside))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert found is FileFailure


@pytest.mark.parametrize("kind", ["symlink", "link"])
def test_a_name_that_is_swapped_meanwhile_never_leads_outside(inside: Path, outside: Path, kind: str) -> None:
    """With a hard link, the path has no symbolic link when it is judged."""
    getattr(os, kind)(inside / "fine.txt", inside / "name")
    swaps = ("symlink", outside / "secret.txt", kind, inside / "fine.txt")
    outcomes = outcomes_while(LINK_SWAPPER, inside / "name", *swaps, read=lambda: content(inside / "name", inside))

    assert outcomes <= {b"fine", OutsideRoots, NotFound}


def test_a_directory_that_is_swapped_for_a_link_meanwhile_never_leads_outside(inside: Path, outside: Path) -> None:
    path = inside / "name" / "secret.txt"
    path.parent.mkdir()
    path.write_bytes(b"fine")
    outcomes = outcomes_while(DIRECTORY_SWAPPER, path.parent, outside, read=lambda: content(path, inside))

    assert outcomes <= {b"fine", OutsideRoots, NotFound}


def test_a_file_that_becomes_a_fifo_meanwhile_is_refused_without_waiting(inside: Path) -> None:
    os.mkfifo(inside / "fifo")
    os.link(inside / "fine.txt", inside / "name")
    swaps = ("link", inside / "fifo", "link", inside / "fine.txt")
    outcomes = outcomes_while(LINK_SWAPPER, inside / "name", *swaps, read=lambda: content(inside / "name", inside))

    assert outcomes <= {b"fine", NotFound}


@pytest.mark.parametrize("name", [".env", ".git/config", "deep/.hidden/x", "deep/.x"])
def test_what_is_hidden_in_a_project_counts_as_outside(inside: Path, name: str) -> None:
    (inside / name).parent.mkdir(parents=True, exist_ok=True)
    (inside / name).write_bytes(SECRET)
    (inside / "link").symlink_to(inside / name)

    for path in (inside / name, inside / "link"):
        with pytest.raises(OutsideRoots):
            open_file(str(path), allowed=[str(inside)], private=Private(str(inside)))
    open_file(str(inside / name), allowed=[str(inside)], private=Private(str(inside / "elsewhere"))).close()
