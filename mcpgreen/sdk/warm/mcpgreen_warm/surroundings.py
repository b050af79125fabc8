"""What a start of the interpreter depends on, and whether it would be the same now."""

from __future__ import annotations

import os
import sys

from mcpgreen_warm.preparing.library import is_file_of_the_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Surroundings:
    """Files that decide which interpreter this is and what it does at its start, as they looked then; and the
    environment that it was given."""

    def __init__(self) -> None:
        with open("/proc/self/environ", "rb") as file:
            entries = [entry.partition(b"=") for entry in file.read().split(b"\0")]
        self.environment = {name: value for name, _, value in entries if name}
        self._signatures: dict[str, tuple[int, int, int] | None] = {}
        for path in _decisive(self.environment):
            self.watch(path)

    def watch(self, path: str) -> None:
        if path not in self._signatures:
            self._signatures[path] = looks_at(path)

    def have_changed(self) -> bool:
        """Whether a fresh start might be another one by now."""
        for path, looks in self._signatures.items():
            if looks_at(path) != looks:
                return True
        return False


def signature_of(status: os.stat_result) -> bytes:
    """As the server writes it, too."""
    return b"%d %d %d" % (status.st_mtime_ns, status.st_size, status.st_ino)


def looks_at(path: str) -> tuple[int, int, int] | None:
    """None if there is nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def descriptors() -> int:
    """How many are open. Since Linux 6.2 their number is the size of the directory."""
    return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd")) - 1


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def libraries() -> set[str]:
    """Those that are loaded, without those of the standard library."""
    with open("/proc/self/maps") as file:
        lines = [line.rstrip("\n").split(None, 5) for line in file]
    return {
        words[5] for words in lines if len(words) > 5 and ".so" in words[5] and not is_file_of_the_library(words[5])
    }


def _decisive(environment: dict[bytes, bytes]) -> Iterator[str]:
    yield sys.executable
    yield os.path.join(sys.prefix, "pyvenv.cfg")
    yield from _sites()
    yield from _candidates(environment)
    root = os.fsdecode(environment.get(b"PYENV_ROOT", b"")) or os.path.expanduser("~/.pyenv")
    if sys.executable.startswith(root + os.sep):
        yield os.path.join(root, "version")
        yield from _up_from(os.getcwd(), ".python-version")


def _sites() -> Iterator[str]:
    """Where packages are installed, and what of them is read at the start."""
    import site

    for directory in [*site.getsitepackages(), site.getusersitepackages()]:
        yield directory
        if os.path.isdir(directory):
            for name in os.listdir(directory):
                if name.endswith(".pth"):
                    yield os.path.join(directory, name)


def _candidates(environment: dict[bytes, bytes]) -> Iterator[str]:
    """Where `env` looks for the interpreter, up to the place where it is. Nowhere if we were started by its path."""
    name = sys.orig_argv[0] if sys.version_info >= (3, 10) else os.path.basename(sys.executable)
    if os.sep in name:
        return
    for directory in os.fsdecode(environment.get(b"PATH", b"")).split(os.pathsep):
        candidate = os.path.join(directory or ".", name)
        yield candidate
        if os.access(candidate, os.X_OK):
            return


def _up_from(directory: str, name: str) -> Iterator[str]:
    while True:
        yield os.path.join(directory, name)
        if directory == os.path.dirname(directory):
            return
        directory = os.path.dirname(directory)
