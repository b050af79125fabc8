"""A spare: a process that is forked ahead of a call, and then runs one script.

The script is run by `runpy`, and Python itself shows its exceptions and ends it: it waits for threads, and calls what
was registered with `atexit`, at last `leave`. That spares the rest, because to take apart an interpreter that was
forked takes longer than to run most scripts.

Rule: what cannot be done here as `python FILE` does it is left to a fresh start: the process executes the command
instead, and keeps its number and its pipes.
"""

from __future__ import annotations

import builtins
import gc
import io
import os
import resource
import runpy
import signal
import socket
import sys
import threading
import time
import types
import warnings
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

PACKET_BYTES = 1 << 16
MAX_DESCRIPTORS = 64
KEY_BYTES = 32  # of multiprocessing
EXTENSIONS = (".so", ".pyd")
WRITERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
LIBRARY = os.path.dirname(os.__file__) + os.sep


class Script:
    """The script that this process becomes, and what is known before: where the interpreter stands after its start."""

    status: int | None = None  # that the process ends with; None if Python has to find out

    def note_start(self, environment: dict[bytes, bytes], *, has_exit_functions: bool) -> None:
        """Note what the start of the interpreter has done, for each script as for the helper. It was given this
        environment, and may have changed it. Functions that it has registered for the exit would come after `leave`."""
        self._changed = {name: value for name, value in os.environb.items() if environment.get(name) != value}
        self.may_leave = not has_exit_functions

    def prepare(self) -> None:
        """Do what can be done before the job comes, in each fork: so pages are copied now, and not during the call."""
        self.names: dict[str, Any] = {}
        self.loaded = frozenset(sys.modules)
        os.environb.clear()
        sys.meta_path.insert(0, LoadedSdk())
        self._known = frozenset(sys.modules)

    def run(self, path: str, environment: dict[bytes, bytes]) -> None:
        """Run it to the end of its file. Raises what it raises, and has Python show that without our own frames."""
        os.environb.update({**environment, **self._changed})
        sys.argv[:] = [path]
        getattr(sys, "orig_argv", [""])[1:] = [path]
        sys.path[0] = os.path.dirname(os.path.realpath(path))
        try:
            self.names = runpy.run_path(path, {"__builtins__": builtins}, "__main__")
            self.status = 0
        except BaseException as error:
            trace = part_of_script(error, path)
            if trace is not None:
                self.names = trace.tb_frame.f_globals
            self.status = self._status_after(error)
            if not isinstance(error, SystemExit) and hasattr(sys, "excepthook"):
                sys.excepthook = shown_by(sys.excepthook, path)
            raise
        finally:
            # `runpy` has put back our own module. What runs at the end of a script looks for its names here.
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            vars(main).update(self.names)

    def _status_after(self, error: BaseException) -> int | None:
        """Return the status of a process that ends with this; None if only Python knows."""
        if isinstance(error, SystemExit):
            code: Any = 0 if error.code is None else error.code
            if not isinstance(code, int):
                return 1
            return code & 0xFF if code.bit_length() <= 31 else None  # larger numbers are left to Python
        # A hook may exit by itself, and an interrupted process ends by a signal.
        has_own_hook = getattr(sys, "excepthook", None) is not sys.__excepthook__
        return None if has_own_hook or type(error) is KeyboardInterrupt else 1

    def drop(self) -> bool:
        """Write the files and delete the objects of the script. Return False, and do nothing, if Python must do it."""
        new = set(sys.modules) - self._known
        has_threads = threading.active_count() > 1  # such a thread may hold the lock of a file
        if not self.may_leave or has_threads or may_print_by_c(map(sys.modules.get, new)):
            return False
        for each in gc.get_objects():
            # Before the collection: in a cycle, a file may be closed before what is to be written to it.
            if issubclass(type(each), WRITERS) and not each.closed:
                each.flush()
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            vars(sys).pop(name, None)
        sys.modules.pop("__main__", None)
        self.names = {}
        for name in new:
            del sys.modules[name]
        gc.collect()
        return True


script = Script()


class LoadedSdk(Loader):
    """Gives a script the SDK that has been loaded ahead, at the moment of its import: then it changes PYTHONPATH."""

    def __init__(self) -> None:
        names = [name for name in sys.modules if name.partition(".")[0] in ("mcp_tool", "mcp_tool_functions")]
        self._modules = {name: sys.modules.pop(name) for name in names}

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in self._modules else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self._modules[spec.name]

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ == "mcp_tool" and "MCP_SDK" in os.environ:
            module._leave_path()


def is_foreign(file: str | None) -> bool:
    """Tell whether this file of a module does not belong to the standard library."""
    return bool(file and (not file.startswith(LIBRARY) or "-packages" + os.sep in file))


def may_print_by_c(modules: Iterable[object]) -> bool:
    """Tell whether one of the modules may print by means of C: that is written when Python ends the process itself."""
    files = [getattr(module, "__file__", None) or "" for module in modules]
    return any(file.endswith(EXTENSIONS) and (is_foreign(file) or "_ctypes" in file) for file in files)


def fork_spares(sockets: Sequence[int]) -> socket.socket | None:
    """Fork a process for each of the sockets. Return its socket in such a process, and None in the helper.

    They are forked by a process in between, which ends: then the server, which adopts orphans, is their parent."""
    own = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads of libraries, which know how to handle a fork
        with suppress(OSError):  # there are too many processes; the server sees that the sockets are closed
            between = os.fork()
            if between:
                os.waitpid(between, 0)
            else:
                own = _fork_each(sockets)
    for number in sockets:
        if number != own:
            os.close(number)
    return socket.socket(fileno=own) if own is not None else None


def _fork_each(sockets: Sequence[int]) -> int:
    """In the process in between, which ends here. Return in each fork when the server is its parent."""
    between = os.getpid()
    with suppress(OSError):
        for number in sockets:
            if os.fork() == 0:
                while os.getppid() == between:
                    time.sleep(0.0002)
                return number
    os._exit(0)


def receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Wait for a packet, and the descriptors that come with it. It is empty when the other end has gone."""
    numbers = array("i")
    try:
        packet, parts, _, _ = channel.recvmsg(
            PACKET_BYTES, socket.CMSG_SPACE(MAX_DESCRIPTORS * numbers.itemsize), socket.MSG_CMSG_CLOEXEC
        )
    except OSError:
        return b"", []
    for _, _, data in parts:
        numbers.frombytes(data)
    return packet, list(numbers)


def become_script(channel: socket.socket, *, is_outdated: Callable[[], bool]) -> None:
    """Wait for the job, and run it. Raises what the script raises."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # that of the helper is shared by all spares
    os.close(nothing)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(KEY_BYTES)
    script.prepare()
    with suppress(OSError):
        channel.send(b"ready %d" % os.getpid())
    packet, outputs = receive(channel)
    if not packet:
        os._exit(0)  # it is not needed
    head, path, words, variables = packet.split(b"\0\0", 3)
    tag, control = map(int, head.split())
    for number, place in zip(outputs, (1, 2, control)):  # noqa: B905  # Python 3.8 has no `strict`
        os.dup2(number, place)
        os.close(number)
    resource.setrlimit(resource.RLIMIT_RTTIME, (tag, resource.getrlimit(resource.RLIMIT_RTTIME)[1]))
    environment = dict(entry.split(b"=", 1) for entry in variables.split(b"\0"))
    name = os.fsdecode(path)
    needs_fresh_start = is_outdated() or not can_run_here(name)
    with suppress(OSError):
        channel.send(b".")  # from now on the script is to blame for how this process ends
    channel.close()
    if needs_fresh_start:
        execute([os.fsdecode(word) for word in words.split(b"\0")], environment)
    script.run(name, environment)


def can_run_here(path: str) -> bool:
    """Tell whether this is a file in UTF-8 (about others, a fresh start has its own messages), and no file next to it
    has the name of a module that is loaded already: the script wants that file."""
    try:
        with open(path, "rb") as file:
            is_text = "\0" not in file.read().decode("utf-8")
        names = os.listdir(os.path.dirname(os.path.realpath(path)))
    except (OSError, UnicodeDecodeError):
        return False
    return is_text and script.loaded.isdisjoint(name.partition(".")[0] for name in names)


def execute(command: list[str], environment: dict[bytes, bytes]) -> NoReturn:
    """Start the script afresh, in this process."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and what it executes would, too
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        os.write(2, os.fsencode(f"{command[0]}: {error.strerror}\n"))
    os._exit(127)  # as a shell does


def part_of_script(error: BaseException, path: str) -> types.TracebackType | None:
    """Return the traceback from the first frame of the script on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return trace


def shown_by(hook: Any, path: str) -> Callable[..., None]:
    """Return a hook for exceptions that hides our own frames from this one."""

    def show(kind: type[BaseException], error: BaseException, _: object) -> None:
        sys.excepthook = hook
        sys.last_traceback = trace = part_of_script(error, path)
        hook(kind, error.with_traceback(trace), trace)

    return show


def leave() -> None:
    """Runs last of all that is registered with `atexit`. End the process, with everything that was printed written;
    or return, and let Python take everything apart, if something is unusual."""
    functions: Any = getattr(sys.modules.get("mcp_tool_functions"), "_Registered", None)
    status = getattr(functions, "status", 0) or script.status
    try:
        if status is None or not script.drop():
            return
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            if stream is not None and not stream.closed:
                stream.flush()
    except Exception:
        return  # Python says what cannot be written. Or the script has changed something that is used here.
    os._exit(status)
