"""Scripts that are at hand: compiled, with the modules of the standard library that they use."""

from __future__ import annotations

import os
import sys
import time

from mcpgreen_warm.preparing.library import is_in_the_library
from mcpgreen_warm.preparing.quiet import quietly
from mcpgreen_warm.preparing.reading import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType

SETTLED_SECS = 1.0
# They open windows, take over the terminal, are made for a person's amusement, or change what others say at their end.
LEFT_ALONE = frozenset(
    "antigravity this turtle tkinter idlelib readline rlcompleter curses _curses tracemalloc test __main__".split()
)
talkative: set[str] = set()  # modules that say something when they are imported


class Place:
    """The directory in which a script really lies, and the names of what is there, as it was when we looked."""

    def __init__(self, path: str) -> None:
        self.directory = os.path.dirname(os.path.realpath(path))
        self._seen_as = os.path.dirname(path)
        status = os.stat(self.directory)
        self._looks = status.st_mtime_ns, status.st_ino, status.st_dev
        # Another change in the same moment could not be told from this one.
        self.is_settled = time.time() - status.st_mtime > SETTLED_SECS
        self._names = {name.partition(".")[0] for name in os.listdir(self.directory) if name[:2] != "__"}

    def has_any_of(self, modules: frozenset[str]) -> bool:
        """Whether a file there has the name of one of them."""
        return not modules.isdisjoint(self._names)

    def has_changed(self) -> bool:
        """Or may have."""
        status = os.stat(self._seen_as)
        return not self.is_settled or self._looks != (status.st_mtime_ns, status.st_ino, status.st_dev)


class Kept:
    """A script as it was when it was last looked at."""

    def __init__(
        self, path: str, signature: bytes, code: CodeType | None, used: Iterable[str] = (), *, imports_sdk: bool
    ) -> None:
        self.path = path
        self.place = Place(path)
        self.signature = signature
        self.code = code  # None if it is compiled for each run: the warnings about it belong to its stderr
        self.used = used  # names of modules, and of what they have
        self.imports_sdk = imports_sdk  # before it does anything else
        self.is_fit = False  # to be run as it is, as far as we know

    def look_again(self, loaded: frozenset[str]) -> None:
        """At what is beside it, if that has changed, or was still changing."""
        try:
            if self.place.has_changed():
                self.place = Place(self.path)
        except OSError:
            self.is_fit = False  # it is gone
            return
        is_shadowed = self.place.has_any_of(loaded)  # then it gets what is beside it, by a fresh start
        self.is_fit = self.place.is_settled and not is_shadowed


class Guard:
    """Keeps modules from importing what is left alone."""

    is_met = False

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] in LEFT_ALONE:
            self.is_met = True
            raise ImportError(name)


def kept(path: str) -> Kept | None:
    """None for what only a fresh start can tell what is wrong with it."""
    found = read(path)
    if found is None:
        return None
    code, signature, used, begins_with_sdk = found
    has_sdk = _preload(used)
    try:
        return Kept(path, signature, code, used, imports_sdk=has_sdk and begins_with_sdk)
    except OSError:
        return None  # it has just been taken away


def _preload(names: list[str]) -> bool:
    """Import what is of the standard library, or of the SDK; whether the latter is there."""
    has_sdk = False
    for name in names:
        top = name.partition(".")[0]
        if top == "mcp_tool":
            with quietly():
                has_sdk = _preload_sdk(name.partition(".")[2]) or has_sdk
        elif top not in LEFT_ALONE and name not in talkative and is_in_the_library(top):
            _preload_one(name)
    return has_sdk


def _preload_one(name: str) -> None:
    """Unless it has something to say, which is for the script that imports it, or needs what is left alone."""
    before = set(sys.modules)
    guard = Guard()
    sys.meta_path.insert(0, guard)
    with quietly() as said:
        try:
            __import__(name)
        except Exception:
            pass  # no module of that name, perhaps, but something in one; or the script will meet what is wrong
        finally:
            sys.meta_path.remove(guard)
    if said or guard.is_met:
        talkative.add(name)
        for new in set(sys.modules) - before:
            del sys.modules[new]


def _preload_sdk(name: str) -> bool:
    try:
        sdk = __import__("mcp_tool")
        getattr(sdk, name, None)  # which may load another file
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("mcp_tool"):
                for later in getattr(module, "_USED_LATER", ()):
                    __import__(later)
    except Exception:
        return False  # it is for newer interpreters, or another module of that name
    return hasattr(sdk, "_leave_path")
