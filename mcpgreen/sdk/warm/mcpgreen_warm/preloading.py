"""Scripts that are at hand: compiled, with the modules of the standard library that they use."""

from __future__ import annotations

import io
import os
import sys
import warnings
from contextlib import contextmanager, suppress

from mcpgreen_warm.surroundings import signature_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, ModuleType
    from typing import Any

MAX_SOURCE_BYTES = 1 << 20
PARSE_ONLY = 0x400  # ast.PyCF_ONLY_AST; `ast` itself would be one more module for everybody
# They open windows, take over the terminal, or are made for a person's amusement.
LEFT_ALONE = {"antigravity", "this", "turtle", "tkinter", "idlelib", "readline", "curses", "test", "__main__"}
LIBRARY = os.path.dirname(os.__file__) + os.sep
UNFIT = (SyntaxError, ValueError, MemoryError, RecursionError, OSError)


class Kept:
    """A script as it was when it was last looked at."""

    def __init__(self, signature: bytes, code: CodeType | None, *, needs_sdk: bool) -> None:
        self.signature = signature
        self.code = code  # None if it is compiled for each run: the warnings about it belong to its stderr
        self.needs_sdk = needs_sdk


def kept(path: str) -> Kept | None:
    """None for what only a fresh start can tell what is wrong with it."""
    try:
        source, signature = contents(path)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            names = set(_used(compile(source, path, "exec", PARSE_ONLY, dont_inherit=True)))
            code = compile(source, path, "exec", dont_inherit=True)
    except UNFIT:
        return None
    with quietly():
        needs_sdk = _preload(names)
    return Kept(signature, None if told else code, needs_sdk=needs_sdk)


def contents(path: str) -> tuple[bytes, bytes]:
    """A file and its signature. Raises ValueError if it is too long for us."""
    with open(path, "rb") as file:
        signature = signature_of(os.fstat(file.fileno()))
        source = file.read(MAX_SOURCE_BYTES + 1)
    if len(source) > MAX_SOURCE_BYTES:
        raise ValueError("too long")
    return source, signature


@contextmanager
def quietly() -> Iterator[None]:
    """What modules say when they are imported is not for the scripts that are forked later."""
    streams = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = io.StringIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout, sys.stderr = streams


def is_of_the_library(module: ModuleType) -> bool:
    """Where no script keeps anything."""
    return is_file_of_the_library(getattr(module, "__file__", None))


def is_file_of_the_library(file: str | None) -> bool:
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
    """Import what is of the standard library, or of the SDK; whether the latter was among it."""
    needs_sdk = False
    for name in sorted(names):
        top = name.partition(".")[0]
        if top == "mcp_tool":
            needs_sdk = _preload_sdk(name.partition(".")[2]) or needs_sdk
        elif top not in LEFT_ALONE and _is_in_the_library(top):
            # No module of that name, perhaps, but something in one; or the script will meet what is wrong.
            with suppress(Exception):
                __import__(name)
    return needs_sdk


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
