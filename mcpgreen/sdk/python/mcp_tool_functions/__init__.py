"""A tool that is a function: marked by `tool`, described by its signature, run by `run` or at the end of the file.

A part of `mcp_tool`, loaded on demand. The server reads the signature from the source; here the function gets its
arguments as it wants them, and what it returns becomes the result.

Rule: the result alone goes to stdout. What the function or its children print goes to stderr, unless it returns
nothing: then that is the result.
"""

from __future__ import annotations

import os
import sys

import mcp_tool

from mcp_tool_functions.conversion import Unfit, resolved
from mcp_tool_functions.printing import Printed
from mcp_tool_functions.results import result_of
from mcp_tool_functions.signature import Signature, call_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, TypeVar, overload

    Function = Callable[..., Any]
    Marked = TypeVar("Marked", bound=Function)

__all__ = ["Arg", "ToolError", "run", "tool"]

_USED_LATER = ("opcode", "threading")  # when a function is run; for whoever wants to import it ahead


class ToolError(Exception):
    """Raise it for what the model should read as it stands, without the name of an exception before it."""

    __module__ = "mcp_tool"


class Arg:
    """What JSON Schema can say of an argument: `Annotated[int, Arg("How many", minimum=1)]`. The server reads it from
    the source, so its values have to be constants."""

    def __init__(
        self,
        description: str = "",
        *,
        title: str | None = None,
        minimum: float | None = None,
        maximum: float | None = None,
        exclusiveMinimum: float | None = None,
        exclusiveMaximum: float | None = None,
        multipleOf: float | None = None,
        minLength: int | None = None,
        maxLength: int | None = None,
        pattern: str | None = None,
        format: str | None = None,
        minItems: int | None = None,
        maxItems: int | None = None,
        uniqueItems: bool | None = None,
        examples: list[Any] | None = None,
        **more: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "more") and value is not None}
        self.keywords: dict[str, Any] = {**given, **more}


class _Registered:
    """What this file has marked, and whether it has been run."""

    functions: list[Function] = []
    is_run = False
    frame: Any = None  # of the file itself
    pid = 0
    exit_code: Any = None
    printed: Printed | None = None


if TYPE_CHECKING:

    @overload
    def tool(function: Marked) -> Marked: ...

    @overload
    def tool(
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        scopes: list[str] | None = None,
    ) -> Callable[[Marked], Marked]: ...


def tool(
    function: Any = None,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    scopes: list[str] | None = None,
) -> Any:
    """Mark the function that is the tool. It is called at the end of the file, unless `run` was; whoever imports the
    file gets the function as it is. The options describe the tool, and the server reads them from the source."""
    if function is None:
        return tool
    if getattr(function, "__module__", "") == "__main__":
        if not _Registered.functions:
            _watch_the_end(sys._getframe(1))
            if _is_called():
                # From here on, because Python flushes what a file has printed before anybody hears of its end.
                _Registered.printed = _aside(function)
        _Registered.functions.append(function)
    return function


def run(function: Function | None = None) -> None:
    """Call the function now: this one, else the one that is marked, else the only one that is not private."""
    _Registered.is_run = True
    status = _run(function)
    if status:
        raise SystemExit(status)


def _watch_the_end(frame: Any) -> None:
    """Run the function when the file is through. Not by `atexit`: threads cannot be started then any more. Python waits
    for threads before that, by a function that can be replaced."""
    import threading

    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    _Registered.frame, _Registered.pid = frame, os.getpid()
    wait_for_threads: Any = getattr(threading, "_shutdown", None)
    if wait_for_threads is None:
        import atexit

        atexit.register(_run_at_the_end, lambda: None)
        return
    leave = sys.exit

    def noted_exit(status: Any = None, /) -> NoReturn:
        _Registered.exit_code = 0 if status is None else status
        leave(status)

    sys.exit = noted_exit
    threading._shutdown = lambda: _run_at_the_end(wait_for_threads)  # type: ignore[attr-defined]


def _run_at_the_end(wait_for_threads: Callable[[], object]) -> None:
    if _Registered.is_run or _Registered.pid != os.getpid() or not _has_ended_well():
        if _Registered.printed is not None and _Registered.pid == os.getpid():
            _Registered.printed.is_result = True
            _Registered.printed.restore()
        wait_for_threads()
        return
    _Registered.is_run = True
    try:
        status = _run(None)
    except SystemExit as end:
        status = _status_of(end)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    wait_for_threads()
    if status:  # what Python would leave with has been decided already
        import atexit
        from contextlib import suppress

        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it
                stream.flush()
        os._exit(status)


def _has_ended_well() -> bool:
    """Whether the file came to its end, or left with 0."""
    if getattr(sys, "last_value", None) is not None:
        return False
    frame = _Registered.frame
    if frame is None or _Registered.exit_code == 0:
        return True
    import opcode

    last = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else 0
    return opcode.opname[last].startswith(("RETURN", "INSTRUMENTED_RETURN"))


def _status_of(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _run(function: Function | None) -> int:
    """The exit status."""
    try:
        chosen = function or _only_function()
        if not _is_called():
            from mcp_tool_functions.by_hand import run_by_hand

            return run_by_hand(chosen, lambda placed, named: _outcome(chosen, placed, named))
        arguments = call_arguments(chosen, mcp_tool.args())
    except (Unfit, ToolError) as problem:
        if _is_called():
            if _Registered.printed is not None:
                _Registered.printed.restore()
            return _failed(str(problem))
        print(problem, file=sys.stderr)
        return 2
    return _run_for_a_client(chosen, *arguments)


def _is_called() -> bool:
    """By a server, and not by a person."""
    return "MCP_TOOL_ARGS_JSON" in os.environ or "MCP_TOOL_ARGS_FILE" in os.environ


def _aside(function: Function) -> Printed:
    return Printed(is_result=getattr(function, "__annotations__", {}).get("return", ...) in (None, "None"))


def _only_function() -> Function:
    candidates = _Registered.functions or _public_functions()
    if len(candidates) != 1:
        names = ", ".join(each.__name__ for each in candidates) or "none"
        raise ToolError(f"Which function is the tool is not clear: {names}. Mark one with @mcp_tool.tool.")
    return candidates[0]


def _public_functions() -> list[Function]:
    """Of the file, without those that are running: one of them has called `run`."""
    running = set()
    frame: Any = sys._getframe(1)
    while frame is not None:
        running.add(frame.f_code)
        frame = frame.f_back
    found = {}
    for value in vars(sys.modules["__main__"]).values():
        code = getattr(value, "__code__", None)
        if code is not None and value.__module__ == "__main__" and code not in running:
            found[id(value)] = value
    return [each for each in found.values() if each.__name__[:1] not in ("_", "<")]


def _run_for_a_client(function: Function, placed: list[Any], named: dict[str, Any]) -> int:
    kind = resolved(Signature(function).kinds.get("return", object), function.__globals__)
    printed = _Registered.printed or _aside(function)
    try:
        result = _outcome(function, placed, named)
        if result is None:
            printed.is_result = True
            return 0
        made = result_of(result, kind, function.__globals__)
    except ToolError as problem:
        printed.restore()
        return _failed(str(problem), status=0)
    except Exception as problem:
        printed.restore()
        _print_traceback(problem)
        if any(each.__name__ == "NotAnswered" for each in type(problem).__mro__):
            return 1  # who can ask may try again: the server says so, by the last line of the traceback
        return _failed(_named(problem))
    except SystemExit:
        printed.is_result = True
        raise
    finally:
        printed.restore()
    mcp_tool.emit_json(made)
    return 0


def _outcome(function: Function, placed: list[Any], named: dict[str, Any]) -> Any:
    result = function(*placed, **named)
    if hasattr(result, "__await__"):
        import asyncio

        async def awaited() -> Any:
            return await result

        return asyncio.run(awaited())
    return result


def _rehearse() -> None:
    """Do what a call does, without a result: for whoever has imported us ahead of the calls, and is forked for each."""

    def greet(name: str) -> str:
        return name

    placed, named = call_arguments(greet, {"name": "value"})
    kind = resolved(Signature(greet).kinds["return"], greet.__globals__)
    mcp_tool._line(result_of(_outcome(greet, placed, named), kind, greet.__globals__), ensure_ascii=False)
    _aside(greet).restore()


def _failed(message: str, status: int = 1) -> int:
    mcp_tool.emit_json({"content": [{"type": "text", "text": message}], "isError": True})
    return status


def _named(problem: BaseException) -> str:
    name, text = type(problem).__name__, str(problem)
    return f"{name}: {text}" if text else name


def _print_traceback(problem: BaseException) -> None:
    from traceback import print_exception

    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next  # what is ours tells nobody anything
    print_exception(type(problem), problem, trace)
