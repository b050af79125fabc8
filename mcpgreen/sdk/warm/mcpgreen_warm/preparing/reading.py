"""Reads a script: its code, and what it uses.

That is done in a fork, which takes the parser's memory along when it goes. Each page that the helper has, used or not,
takes time in every later fork.
"""

from __future__ import annotations

import marshal
import os

from mcpgreen_warm.preparing.library import is_in_the_library
from mcpgreen_warm.preparing.quiet import quietly
from mcpgreen_warm.surroundings import signature_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType
    from typing import Any

    # Its code, or None if that is compiled for each run: the warnings about it belong to its stderr. How it looked.
    # What it imports, and what it takes of our SDK, as dotted names. Whether it begins with the SDK.
    Read = tuple[CodeType | None, bytes, list[str], bool]

MAX_SOURCE_BYTES = 1 << 20
PARSE_ONLY = 0x400  # ast.PyCF_ONLY_AST; `ast` itself would be one more module for everybody
UNFIT = (SyntaxError, ValueError, MemoryError, RecursionError, OSError)


def read(path: str) -> Read | None:
    """None for what only a fresh start can tell what is wrong with it."""
    try:
        ours, theirs = os.pipe()
    except OSError:
        return None
    with open(ours, "rb") as pipe:
        try:
            with quietly():  # about threads, which are not there any more when it is forked
                reader = os.fork()
            if reader == 0:
                _tell(path, theirs)
        except OSError:
            return None  # there are too many processes
        finally:
            os.close(theirs)
        data = pipe.read()
    os.waitpid(reader, 0)
    try:
        found: Read = marshal.loads(data)
        return found
    except (EOFError, ValueError, TypeError):
        return None  # it is unfit, or the reader has been killed


def contents(path: str) -> tuple[bytes, bytes]:
    """A file and its signature. Raises ValueError if it is too long for us, and for what a fresh start does not accept
    although `compile` does: other bytes than UTF-8 in a comment."""
    with open(path, "rb") as file:
        signature = signature_of(os.fstat(file.fileno()))
        source = file.read(MAX_SOURCE_BYTES + 1)
    if len(source) > MAX_SOURCE_BYTES:
        raise ValueError("too long")
    if not source.isascii() and b"coding" not in b"".join(source.split(b"\n", 2)[:2]):
        source.decode("utf-8")
    return source, signature


def _tell(path: str, pipe: int) -> None:
    """In the fork, whose end this is."""
    try:
        with open(pipe, "wb") as file:
            file.write(marshal.dumps(_read(path)))
    except UNFIT:
        pass
    finally:
        os._exit(0)


def _read(path: str) -> Read:
    source, signature = contents(path)
    with quietly() as said:
        tree: Any = compile(source, path, "exec", PARSE_ONLY, dont_inherit=True)
        code = compile(source, path, "exec", dont_inherit=True)
    return None if said else code, signature, sorted(set(_used(tree))), _begins_with_sdk(tree.body)


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
        if not is_text and not (names and all(is_in_the_library(name.partition(".")[0]) for name in names)):
            return False
    return False
