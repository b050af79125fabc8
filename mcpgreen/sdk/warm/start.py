"""The program that Python scripts are forked from; its arguments are the modules to preload.

Not a part of the server: it imports nothing from mcpgreen, and runs on any CPython since 3.8. The server starts it with
the interpreter that scripts ask for. On descriptor 3 comes a packet with sockets whenever the server wants spares: one
process is forked for each socket, and waits there for its script (`mcpgreen_spare`).

Rule: nothing that belongs to a call ever comes here. What is in the memory of this process is in that of all scripts.
"""

from __future__ import annotations

import atexit
import gc
import os
import site
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.machinery import all_suffixes
from typing import Any

import mcpgreen_spare

SOCKET_FD = 3
# What scripts usually import: each makes all forks a little slower. Not multiprocessing: it makes a key at its import,
# which scripts must not share.
USUAL_MODULES = (
    "ast base64 collections contextlib copy csv dataclasses datetime decimal enum functools glob hashlib "
    "inspect itertools json logging math opcode operator pathlib pkgutil random re shutil string struct subprocess "
    "tempfile textwrap traceback typing urllib.parse mcp_tool mcp_tool_functions"
).split()
ENDINGS = tuple(all_suffixes())
# When the interpreter was started, in the time of files: that is told by a clock with long ticks.
BEGAN_NS = time.time_ns() - time.process_time_ns() - 10_000_000


class SearchedPlaces(dict):  # type: ignore[type-arg]  # as in Python 3.8
    """Notes each directory before it is searched: later, another module may be found there. A finder of nothing."""

    def find_spec(self, _name: str, path: Iterable[str] | None = None, _target: object = None) -> None:
        for place in sys.path if path is None else path:
            if place not in self:
                self[place] = state_of(place), modules_in(place)


def files_of_start(environment: dict[bytes, bytes]) -> Iterator[str]:
    """Name the files that decide which interpreter this is, and what it does at its start."""
    yield sys.executable
    yield os.path.join(sys.prefix, "pyvenv.cfg")
    for directory in [*site.getsitepackages(), site.getusersitepackages()]:
        yield directory
        if os.path.isdir(directory):
            yield from (os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".pth"))
    yield from places_of_interpreter(environment)
    root = os.fsdecode(environment.get(b"PYENV_ROOT", b"")) or os.path.expanduser("~/.pyenv")
    if sys.executable.startswith(root + os.sep):
        yield os.path.join(root, "version")
        directory = os.getcwd()
        while directory != os.path.dirname(directory):
            yield os.path.join(directory, ".python-version")
            directory = os.path.dirname(directory)
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    yield from filter(mcpgreen_spare.is_foreign, files)


def places_of_interpreter(environment: dict[bytes, bytes]) -> Iterator[str]:
    """Name the files that `env` looks for to find the interpreter, up to the one that is it."""
    name = sys.orig_argv[0] if sys.version_info >= (3, 10) else os.path.basename(sys.executable)
    if os.sep in name:
        return  # the first line of the script has its path
    for directory in os.fsdecode(environment.get(b"PATH", b"")).split(os.pathsep):
        candidate = os.path.join(directory or ".", name)
        yield candidate
        if os.access(candidate, os.X_OK):
            return


def state_of(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def modules_in(directory: str) -> set[str]:
    """The names of what may be modules. Others come and go, such as data and what is compiled."""
    with suppress(OSError), os.scandir(directory or ".") as entries:
        return {each.name for each in entries if each.name.endswith(ENDINGS) or each.is_dir()} - {"__pycache__"}
    return set()


def problem_with_start(modules: list[str]) -> str:
    """Load what is to be loaded ahead. Say why nothing can be forked from this process then; empty if it can."""
    if sys.implementation.name != "cpython":
        return "it is not CPython"
    if len(os.listdir("/proc/self/task")) > 1:
        return "it starts threads on startup"
    for name in (*USUAL_MODULES, *modules):
        try:
            import_module(name)
        except Exception as error:
            if name in modules:  # else the SDK needs a newer Python, or is not on the path
                return f"it cannot import {name}: {type(error).__name__}: {error}"
    return "its modules start threads" if threading.active_count() > 1 else ""


def serve(modules: list[str]) -> None:
    """Fork whenever the server asks for it. A spare returns from here when its script is over."""
    with open("/proc/self/environ", "rb") as file:
        environment = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    # Registered before modules are loaded, so that it runs after what they register.
    mcpgreen_spare.script.note_start(environment, has_exit_functions=bool(atexit._ncallbacks()))
    atexit.register(mcpgreen_spare.leave)
    channel = socket.socket(fileno=SOCKET_FD)
    channel.set_inheritable(False)
    searched: Any = SearchedPlaces()
    sys.meta_path.insert(0, searched)
    problem = problem_with_start(modules)
    sys.meta_path.remove(searched)
    states = {path: state_of(path) for path in files_of_start(environment)}
    for path, state in states.items():
        if state and state[1] > BEGAN_NS and not os.path.isdir(path):
            problem = problem or f"{path} was changed while it started"
    sys.stdout.flush()  # the server refuses a start that prints something
    if problem:
        channel.send(b"no " + problem.encode("utf-8", "replace")[:1000])
        return

    def is_outdated() -> bool:
        """Tell whether a start of the interpreter might be different now."""
        return any(state_of(path) != state for path, state in states.items()) or any(
            state_of(place) != state and modules_in(place) != names for place, (state, names) in searched.items()
        )

    mcpgreen_spare.script.may_leave &= not mcpgreen_spare.may_print_by_c(sys.modules.values())
    gc.collect()
    gc.freeze()  # collections in a spare look only at what its script has made
    channel.send(b"ready")
    while True:
        packet, sockets = mcpgreen_spare.receive(channel)
        if not packet or is_outdated():
            return  # the server has gone, or starts another helper
        own = mcpgreen_spare.fork_spares(sockets)
        if own is not None:
            channel.close()
            mcpgreen_spare.become_script(own, is_outdated=is_outdated)
            return


serve(sys.argv[1:])
