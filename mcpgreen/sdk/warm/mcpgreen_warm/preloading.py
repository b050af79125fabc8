"""Scripts that are at hand: compiled, with the modules of the standard library that they use."""

from __future__ import annotations

import io
import os
import sys
import time
import warnings
from contextlib import contextmanager, suppress

from mcpgreen_warm.surroundings import signature_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType
    from typing import Any

MAX_SOURCE_BYTES = 1 << 20
SETTLED_SECS = 1.0
PARSE_ONLY = 0x400  # ast.PyCF_ONLY_AST; `ast` itself would be one more module for everybody
# They open windows, take over the terminal, or are made for a person's amusement.
LEFT_ALONE = frozenset(
    "antigravity this turtle tkinter idlelib readline rlcompleter curses _curses test __main__".split()
)
LIBRARY = os.path.dirname(os.__file__) + os.sep
talkative: set[str] = set()  # modules that say something when they are imported
UNFIT = (SyntaxError, ValueError, MemoryError, RecursionError, OSError)


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

    def __init__(self, path: str, signature: bytes, code: CodeType | None, *, imports_sdk: bool) -> None:
        self.path = path
        self.place = Place(path)
        self.signature = signature
        self.code = code  # None if it is compiled for each run: the warnings about it belong to its stderr
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
    try:
        source, signature = contents(path)
        with quietly() as said:
            tree: Any = compile(source, path, "exec", PARSE_ONLY, dont_inherit=True)
            code = compile(source, path, "exec", dont_inherit=True)
    except UNFIT:
        return None
    has_sdk = _preload(set(_used(tree)))
    try:
        return Kept(path, signature, None if said else code, imports_sdk=has_sdk and _begins_with_sdk(tree.body))
    except OSError:
        return None  # it has just been taken away


def contents(path: str) -> tuple[bytes, bytes]:
    """A file and its signature. Raises ValueError if it is too long for us."""
    with open(path, "rb") as file:
        signature = signature_of(os.fstat(file.fileno()))
        source = file.read(MAX_SOURCE_BYTES + 1)
    if len(source) > MAX_SOURCE_BYTES:
        raise ValueError("too long")
    return source, signature


@contextmanager
def quietly() -> Iterator[list[Any]]:
    """What modules say when they are imported is not for the scripts that are forked later. It is in the list, at the
    end."""
    streams = sys.stdout, sys.stderr
    filters: Any = warnings.filters
    kept = filters[:]
    sys.stdout = sys.stderr = output = io.StringIO()
    try:
        with warnings.catch_warnings(record=True) as told:
            said: list[Any] = told
            warnings.filters = filters  # no other list: the interpreter goes by the last one that it saw
            warnings.simplefilter("always")
            yield said
    finally:
        filters[:] = kept
        sys.stdout, sys.stderr = streams
    if output.getvalue():
        said.append(output.getvalue())


def is_file_of_the_library(file: str | None) -> bool:
    """Where no script keeps anything."""
    return not file or (file.startswith(LIBRARY) and "-packages" + os.sep not in file)


def _used(tree: Any) -> Iterator[str]:
    """What a script imports, and what it takes of our SDK, as dotted names."""
    pending = [tree]
    while pending:
        node = pending.pop()
        kind = type(node).__name__
        if kind == "Import":
            for alias in node.names:
                yield alias.name
        elif kind == "ImportFrom" and node.module and not node.level:
            yield node.module
            for alias in node.names:
                yield node.module + "." + alias.name
        elif kind == "Attribute" and getattr(node.value, "id", None) == "mcp_tool":
            yield "mcp_tool." + node.attr
        for field in getattr(node, "_fields", ()):
            value = getattr(node, field, None)
            pending.extend(value if isinstance(value, list) else [value])


def _preload(names: set[str]) -> bool:
    """Import what is of the standard library, or of the SDK; whether the latter is there."""
    has_sdk = False
    for name in sorted(names):
        top = name.partition(".")[0]
        if top == "mcp_tool":
            with quietly():
                has_sdk = _preload_sdk(name.partition(".")[2]) or has_sdk
        elif top not in LEFT_ALONE and name not in talkative and _is_in_the_library(top):
            _preload_one(name)
    return has_sdk


def _preload_one(name: str) -> None:
    """Unless it has something to say, which is for the script that imports it, or needs what is left alone."""
    before = set(sys.modules)
    guard = Guard()
    sys.meta_path.insert(0, guard)
    try:
        # No module of that name, perhaps, but something in one; or the script will meet what is wrong.
        with quietly() as said, suppress(Exception):
            __import__(name)
    finally:
        sys.meta_path.remove(guard)
    if said or guard.is_met:
        talkative.add(name)
        for new in set(sys.modules) - before:
            del sys.modules[new]


def _begins_with_sdk(statements: list[Any]) -> bool:
    """Whether a script imports the SDK before it could notice that it is there already."""
    for statement in statements:
        kind = type(statement).__name__
        names = [alias.name for alias in statement.names] if kind == "Import" else []
        if kind == "ImportFrom" and not statement.level:
            names = [statement.module]
        if "mcp_tool" in names:
            return True
        is_text = kind == "Expr" and type(statement.value).__name__ in ("Constant", "Str")
        if not is_text and not (names and all(_is_in_the_library(name.partition(".")[0]) for name in names)):
            return False
    return False


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


def _is_in_the_library(top: str) -> bool:
    if sys.version_info >= (3, 10):
        return top in sys.stdlib_module_names
    from importlib.util import find_spec

    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return False
    return spec is not None and (spec.origin in ("built-in", "frozen") or is_file_of_the_library(spec.origin))
