"""Run a script in this process as `python FILE` does, from its first line to its exit status."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import signal
import sys
from importlib.machinery import SourceFileLoader
from itertools import islice

from mcpgreen_warm.preloading import is_of_the_library
from mcpgreen_warm.surroundings import descriptors as count_of_descriptors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType

# Which of them a script has depends on the version.
MAIN_NAMES = [name for name in ("__annotations__", "__cached__") if name in vars(sys.modules["__main__"])]

libc = ctypes.PyDLL(None)


def run(code: CodeType, path: str, *, known: frozenset[str], descriptors: int) -> int:
    """Ends the process. Gives the status if that is better done by the interpreter itself."""
    main = type(sys)("__main__")
    vars(main).update(__builtins__=sys.modules["builtins"], __file__=path)
    vars(main).update((name, {} if name == "__annotations__" else None) for name in MAIN_NAMES)
    main.__loader__ = SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    status = 0
    try:
        try:
            exec(code, vars(main))
        finally:
            _flush()
    except SystemExit as end:
        status = _status_of(end)
    except BaseException as error:
        status = _shown(error)
    return _finish(main, status, known, descriptors)


def _status_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF if -(1 << 63) <= end.code < 1 << 63 else 0xFF
    try:
        sys.stderr.write(f"{end.code}\n")
        sys.stderr.flush()
    except Exception:
        return 1  # there is nobody to tell
    return 1


def _shown(error: BaseException) -> int:
    """The status, after telling of an exception as Python does at the end, without our own frame."""
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
    error = error.with_traceback(trace)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, trace)
    except SystemExit as end:
        return _status_of(end)
    except BaseException as another:
        inner = another.__traceback__.tb_next if another.__traceback__ is not None else None
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(another), another.with_traceback(inner), inner)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, trace)
    return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def _finish(main: ModuleType, status: int, known: frozenset[str], descriptors: int) -> int:
    """Wait for threads, do what is to be done at exit, write what is left, and go at once if nothing can be lost by it.
    Else give the status, for the interpreter's own end."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()
    if status < 0:
        _flush()
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    new = [module for module in _new_modules(known) if not is_of_the_library(module)]
    if not _flush() or any(map(_is_compiled, new)):
        return status
    for module in [main, *new]:
        _clear(module)
    if getattr(sys, "last_value", None) is not None:
        sys.last_type = sys.last_value = sys.last_traceback = None
        if sys.version_info >= (3, 12):
            sys.last_exc = None  # type: ignore[assignment]  # as the interpreter does
    del main, new
    gc.collect()
    if not _flush() or count_of_descriptors() > descriptors:
        return status  # a file may be open, with something in it that has not been written
    libc.fflush(None)
    os._exit(status)


def _flush() -> bool:
    """Whether all that was printed has been taken."""
    is_taken = True
    for stream in (sys.stderr, sys.stdout):
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except Exception:
            is_taken = False
    return is_taken


def _new_modules(known: frozenset[str]) -> list[ModuleType]:
    """Those that the script has imported, the last one first. Only these are looked at: to look at all of them would
    make our own what is shared."""
    names = list(islice(reversed(sys.modules), max(0, len(sys.modules) - len(known))))
    return [sys.modules[name] for name in names]


def _is_compiled(module: ModuleType) -> bool:
    """It may do something of its own at the end."""
    return not (getattr(module, "__file__", None) or ".py").endswith((".py", ".pyc"))


def _clear(module: ModuleType) -> None:
    """As the interpreter does: first what is private, then the rest."""
    names = vars(module)
    for is_private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") == is_private:
                names[name] = None
