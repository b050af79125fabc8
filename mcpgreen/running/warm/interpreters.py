"""Which interpreter a script asks for, if that is a Python whose start can be spared.

Only what is plain: a first line that names a Python, directly or by `env`, and nothing else. Options, other programs in
between (`uv run`) and variables that make a start differ are left to a fresh start.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from mcpgreen.files.regular_files import without_waiting
from mcpgreen.running.scripts.shebang import LINE_BYTES, MARK

if TYPE_CHECKING:
    from mcpgreen.running.scripts.launch import Script

MAX_KNOWN = 1000
# What a call adds to the environment; all else is the same for many calls.
OF_A_CALL = (b"MCP_", b"MCPBASH_", b"MCPGREEN_", b"TRACEPARENT", b"TRACESTATE", b"BAGGAGE")
# Those that a helper obeys in the same way at its own start.
OBEYED = frozenset(
    b"PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED "
    b"PYTHONWARNINGS PYTHONNOUSERSITE PYTHONOPTIMIZE PYTHONCOERCECLOCALE PYTHONPYCACHEPREFIX "
    b"PYTHONINTMAXSTRDIGITS PYTHONUSERBASE PYTHONPLATLIBDIR".split()
)
_PYTHON = re.compile(r"python(3(\.\d+)?)?")

Words = tuple[str, ...]


class Interpreter(NamedTuple):
    """The words that start it, and how the script looked whose first line they are."""

    words: Words
    signature: bytes


class Interpreters:
    """Remembers first lines, as long as their files look the same."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bytes, Words | None]] = {}

    def of(self, path: str, command: Sequence[str]) -> Interpreter | None:
        """Of the script at `path`, which is run by this command; None if its start cannot be spared."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        signature = signature_of(status)
        known = self._known.get(path)
        if known is None or known[0] != signature:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            words = _words(path, command) if stat.S_ISREG(status.st_mode) else None
            known = self._known[path] = signature, words
        return Interpreter(known[1], signature) if known[1] is not None else None


def signature_of(status: os.stat_result) -> bytes:
    """As the helper writes it, too."""
    return b"%d %d %d" % (status.st_mtime_ns, status.st_size, status.st_ino)


def _words(path: str, command: Sequence[str]) -> Words | None:
    if command[-1] != path:
        return None  # with arguments
    try:
        return plain_python(_first_words(path, command))
    except OSError:
        return None


def _first_words(path: str, command: Sequence[str]) -> Sequence[str]:
    """By which it is started: those before its path, or else of its first line. Raises OSError."""
    if len(command) > 1:
        return command[:-1]
    with open(path, "rb", opener=without_waiting) as file:
        head = file.read(LINE_BYTES)
    line, newline, _ = head.partition(b"\n")
    if not line.startswith(MARK) or not newline or line.endswith(b"\r"):
        return ()
    return [os.fsdecode(word) for word in line[len(MARK) :].split()]


def plain_python(words: Sequence[str]) -> Words | None:
    """The words, if they are a Python, or `env` and a Python, and nothing else."""
    names = [os.path.basename(word) for word in words]
    if len(words) == 2 and names[0] == "env" and names[1] == words[1]:
        names = names[1:]
    return tuple(words) if len(names) == 1 and _PYTHON.fullmatch(names[0]) else None


def lasting(env: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """What of an environment is not of one call."""
    return {name: value for name, value in env.items() if not name.startswith(OF_A_CALL)}


class Lasting:
    """The same, quickly, for calls one after the other: most differ in the variables of a call alone."""

    def __init__(self) -> None:
        self._names: frozenset[bytes] = frozenset()
        self._read: Callable[[Mapping[bytes, bytes]], object] = len
        self._values: object = None
        self.variables: dict[bytes, bytes] = {}
        self.items: frozenset[tuple[bytes, bytes]] = frozenset()

    def look_at(self, env: Mapping[bytes, bytes]) -> None:
        """From now on this is about that environment."""
        if env.keys() == self._names and self._read(env) == self._values:
            return
        self.variables = lasting(env)
        self.items = frozenset(self.variables.items())
        self._names = frozenset(env)
        self._read = itemgetter(*self.variables) if self.variables else len
        self._values = self._read(env)


def is_ordinary(env: Mapping[bytes, bytes]) -> bool:
    """Whether no variable asks for a start that a helper could not make in the same way."""
    return not _extraordinary(env)


def why_fresh(script: Script, env: Mapping[bytes, bytes]) -> str | None:
    """Why each run of this Python script is a start of its interpreter; empty if there is no reason for that, and None
    if it is no Python script."""
    try:
        words = _first_words(script.path, script.command)
    except OSError:
        return None
    if not any(os.path.basename(word).startswith("python") for word in words):
        return None
    if script.warm is None:
        return "its description says so"
    if plain_python(words) is None or script.command[-1] != script.path:
        return "its first line asks for more than a Python"
    names = _extraordinary(env)
    return f"{names[0]} is set" if names else ""


def _extraordinary(env: Mapping[bytes, bytes]) -> list[str]:
    return [os.fsdecode(name) for name in env if name.startswith(b"PYTHON") and name not in OBEYED]
