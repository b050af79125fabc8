"""Run a script in this process as `python FILE` does, from its first line to its exit status.

At its end there is usually nothing left that would do or say anything, and the process goes at once, which takes no
time. What is left otherwise (threads, open files, objects with a `__del__`) goes in an order of its own, and sees what
is still there by then.

Rule: whatever is unusual is left to the interpreter's own end. `start.py` brings it about, as `Script.end` tells.
"""

from __future__ import annotations

import sys
from _thread import _count as count_of_threads
from _weakref import ReferenceType
from atexit import _ncallbacks as count_of_exit_functions
from atexit import _run_exitfuncs as run_exit_functions
from gc import collect, get_objects, unfreeze  # by these names: a script may put something else in their places
from os import P_ALL, WEXITED, WNOHANG, WNOWAIT, fstat, getpid, write
from types import BuiltinFunctionType, GeneratorType, ModuleType

from mcpgreen_warm.preparing.library import is_file_of_the_library
from mcpgreen_warm.surroundings import descriptors as count_of_descriptors
from mcpgreen_warm.system import fflush, leave, waitid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

MAIN = [name for name in vars(sys.modules["__main__"]) if name[:2] == "__"]  # names and order depend on the version
STDOUT, STDERR, display = sys.stdout, sys.stderr, sys.__excepthook__
OF_A_FAILURE = ("excepthook", "last_type", "last_value", "last_traceback", "last_exc")
IS_IMMUTABLE, IS_ON_THE_HEAP, IS_COLLECTED = 1 << 8, 1 << 9, 1 << 14  # Py_TPFLAGS_IMMUTABLETYPE, _HEAPTYPE, _HAVE_GC
COMPILED = (".so", ".pyd")
NOTHING = (lambda: None).__code__
STATUS_BITS = 31  # what any interpreter takes
IS_ANYBODY_THERE = WEXITED | WNOHANG | WNOWAIT
modules = sys.modules
SourceFileLoader: Any = type(vars(modules["__main__"])["__loader__"])  # without `importlib`


class Script:
    """A script to be run, as soon as it is known which."""

    def __init__(self, harmless: frozenset[type], *, descriptors: int, leave: Callable[[int], object] = leave) -> None:
        """`harmless` are kinds of objects that it may leave, `descriptors` is how many it has; `leave` ends the
        process."""
        main = ModuleType("__main__")
        self._main: ModuleType | None = main
        self.names = vars(main)
        self._loader = SourceFileLoader("__main__", "")
        values: dict[str, Any] = {
            "__builtins__": modules["builtins"],
            "__annotations__": {},
            "__loader__": self._loader,
        }
        self.names.update((name, values.get(name)) for name in MAIN if name != "__name__")
        self.code = NOTHING
        self.error: BaseException | None = None  # that it ended with
        self._last_word = b""
        self._pid = -1
        self._control = -1
        self._looks: tuple[Any, ...] | None = None  # of its control pipe
        self._descriptors = descriptors
        self._leave = leave
        self._exit_functions = _count_of_other_exit_functions()
        self._is_harmless = harmless.issuperset
        threading = modules.get("threading")
        self._wait_for_threads = getattr(threading, "_shutdown", None)
        self._ends_of_threads: list[Any] = getattr(threading, "_threading_atexits", [])
        modules["__main__"] = main

    def become(self, code: CodeType, path: str, control: int, last_word: bytes) -> None:
        self.code = code
        self.names["__file__"] = self._loader.path = path
        self._control = control
        self._looks = fstat(control)[1:3]
        self._last_word = last_word
        self._pid = getpid()

    def end(self) -> BaseException | None:
        """Ends the process, or gives what is to be raised for its end; None if nothing is."""
        error, self.error = self.error, None
        failure: BaseException | None = None
        if error is not None and not isinstance(error, SystemExit):
            flush()
            failure = KeyboardInterrupt() if type(error) is KeyboardInterrupt else Exception()
            error = _shown(error)
        status: int | None = 1 if failure is not None else 0
        if error is None:  # as the interpreter does, unless there is a SystemExit
            self.names.pop("__file__", None)
            self.names.pop("__cached__", None)
        else:
            code: Any = 0 if error.code is None else error.code
            is_plain = type(code) is int and code.bit_length() <= STATUS_BITS
            status = code & 0xFF if is_plain else None  # None: it is the interpreter that makes something of it
            error = SystemExit(code) if is_plain else error.with_traceback(None)  # without what its traceback keeps
        if type(failure) is KeyboardInterrupt:
            status = None
        threading = modules.get("threading")
        if threading is not None and getattr(threading, "_shutdown", None) is self._wait_for_threads:
            threading = None  # nothing is waited for there, unless there are threads, or their ends
        if status is not None and (threading is not None or count_of_threads() or self._ends_of_threads):
            status = status if have_threads_ended() else None
        if status is not None and self.is_over():
            self._go(status)
            return None
        flush()
        if self._leaves_nothing(is_usual=status is not None) and status is not None:
            self._go(status)
        if error is not None:
            return error
        # Where no SystemExit is, the interpreter lets go of `__main__` before it clears all modules.
        self._main, self.names = None, {}
        return _unseen(failure) if failure is not None else None

    def _go(self, status: int) -> None:
        """All has been written, and nobody could tell how the process ends. The server is told, unless we are a fork
        of the script, or there may be somebody else who belongs to it."""
        try:
            if self._last_word and getpid() == self._pid and waitid(P_ALL, 0, None, IS_ANYBODY_THERE) < 0:
                if fstat(self._control)[1:3] == self._looks:
                    write(self._control, b"\0%s%03d" % (self._last_word, status))
        except Exception:
            pass  # its end will be seen
        self._leave(status)

    def is_over(self) -> bool:
        """Whether there is nothing left to do, as at most ends: all that is looked at here takes a page or two."""
        try:
            if sys.stdout is not STDOUT or sys.stderr is not STDERR:
                return False
            STDERR.flush()
            STDOUT.flush()
            if count_of_threads() or count_of_exit_functions() or count_of_descriptors() > self._descriptors:
                return False
            objects = get_objects()
            if not self._is_harmless(map(type, objects)) and is_anything_left(objects):
                return False
            fflush(None)
        except BaseException:
            return False
        return True

    def _leaves_nothing(self, *, is_usual: bool) -> bool:
        """Whether all has been written, and nobody could tell how the process ends."""
        try:
            has_streams = sys.stdout is STDOUT and sys.stderr is STDERR
            is_usual = is_usual and has_streams and not count_of_threads()
            is_usual = is_usual and _count_of_other_exit_functions() == self._exit_functions
            if is_usual:
                run_exit_functions()  # of modules that were there before the script, mostly
            is_left = is_anything_left(get_objects())
            if is_left and is_usual:
                collect()
                is_left = is_anything_left(get_objects())
            if is_left or not has_streams:
                unfreeze()  # else what is held by the library never goes
            if not is_usual or is_left or not flush() or count_of_descriptors() > self._descriptors:
                return False
            fflush(None)
        except BaseException:  # something that is needed here has been tampered with
            unfreeze()
            return False
        return True


def _count_of_other_exit_functions() -> int:
    """Without that of finalizers, which is there from the first one on: temporary directories have some."""
    weakref = modules.get("weakref")
    has_finalizers = weakref is not None and vars(weakref.finalize)["_registered_with_atexit"]
    return count_of_exit_functions() - bool(has_finalizers)


def have_threads_ended() -> bool:
    """The interpreter waits for them first, and again if it ends the process; what goes wrong by that is told then."""
    flush()
    try:
        modules["threading"]._shutdown()
    except BaseException:
        return False
    return True


def flush() -> bool:
    """Whether all that was printed has been taken."""
    is_taken = True
    for name in ("stderr", "stdout"):
        try:
            stream = vars(sys).get(name)
            if stream is not None:
                stream.flush()
        except BaseException:
            is_taken = False
    return is_taken


def _shown(error: BaseException) -> SystemExit | None:
    """Tell of an exception as Python does at the end, without our own frame. Gives what the script's own function for
    that ends the process with."""
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
    error = error.with_traceback(trace)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        hook = sys.excepthook
    except AttributeError:
        _say("sys.excepthook is missing\n")
        display(type(error), error, trace)
        return None
    try:
        hook(type(error), error, trace)
        return None
    except SystemExit as end:
        return end
    except BaseException as failure:
        another = failure
    inner = another.__traceback__.tb_next if another.__traceback__ is not None else None
    _say("Error in sys.excepthook:\n")
    display(type(another), another.with_traceback(inner), inner)
    _say("\nOriginal exception was:\n")
    display(type(error), error, trace)
    return None


def _say(text: str) -> None:
    try:
        sys.stderr.write(text)
    except Exception:
        pass  # there is nobody to tell


def _unseen(failure: BaseException) -> BaseException:
    """See to it that nothing is said of this when it is raised; all that it was about has been said."""
    kept = {name: vars(sys)[name] for name in OF_A_FAILURE if name in vars(sys)}

    def put_back(*_: object) -> None:
        for name in OF_A_FAILURE:
            vars(sys).pop(name, None)
        vars(sys).update(kept)

    sys.excepthook = put_back
    return failure


def harmless_kinds() -> frozenset[type]:
    """Of objects: they do nothing when they go, and nobody can change that."""
    kinds: set[type] = set()
    pending: list[type] = [object]
    while pending:
        more: set[type] = set(type.__subclasses__(pending.pop())) - kinds
        kinds |= more
        pending += more
    return frozenset(kind for kind in kinds if _is_fixed(kind) and not _may_tell(kind))


def _is_fixed(kind: type) -> bool:
    return not kind.__flags__ & IS_ON_THE_HEAP or bool(kind.__flags__ & IS_IMMUTABLE)


def is_anything_left(objects: list[Any]) -> bool:
    """Whether one of these objects of the script does something when it goes."""
    kinds = set(map(type, objects))
    telling = {kind for kind in kinds if _may_tell(kind)}
    return any(_is_telling(each) for each in objects if type(each) in telling)


def _may_tell(kind: type) -> bool:
    return _has_finalizer(kind) or issubclass(kind, (type, ModuleType, ReferenceType))


def _has_finalizer(kind: type) -> bool:
    try:
        type.__getattribute__(kind, "__del__")
    except AttributeError:
        return False
    return True


def _is_telling(each: Any) -> bool:
    if isinstance(each, type):
        return not each.__flags__ & IS_COLLECTED and _has_finalizer(each)  # its objects cannot be found
    if isinstance(each, ModuleType):
        file = vars(each).get("__file__") or ""
        return file.endswith(COMPILED) and not is_file_of_the_library(file)
    if isinstance(each, ReferenceType):
        called = each.__callback__
        return called is not None and type(called) is not BuiltinFunctionType and not _is_of_the_library(called)
    if isinstance(each, GeneratorType):
        return each.gi_frame is not None
    if type(each).__module__ == "subprocess":
        return each.returncode is None
    return not (type(each).__module__ == "_io" and each.closed)


def _is_of_the_library(called: Any) -> bool:
    code = getattr(called, "__code__", None)
    return code is not None and (code.co_filename[:1] == "<" or is_file_of_the_library(code.co_filename))
