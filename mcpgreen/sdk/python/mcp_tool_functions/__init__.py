"""Run a function as a tool. A part of `mcp_tool`, loaded on demand.

`tool` marks functions; the one that a client calls is run by `run`, or at the end of the file. The server reads its
signature from the source. Here its arguments are converted to the annotated types, and its return value becomes the
result. Without a server, the arguments are words of the command line.

Rule: only the result goes to stdout. What the function and its children print goes to stderr, unless the function
returns None: then it is the result.
"""

from __future__ import annotations

import json
import os
import sys

import mcp_tool

from mcp_tool_functions import conversion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, TypeVar, overload

    from mcp_tool import Json

    Function = Callable[..., Any]
    Marked = TypeVar("Marked", bound=Function)

__all__ = ["Arg", "ToolError", "run", "tool"]


class ToolError(Exception):
    """Raise it with a message for the model. Unlike with other exceptions, the model reads the message alone."""

    __module__ = "mcp_tool"


class Arg:
    """Keywords of JSON Schema for an argument: `Annotated[int, Arg("How many", minimum=1)]`. The server reads them from
    the source, so the values must be constants."""

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
        self.keywords: Json = {**given, **more}


class Printed:
    """Keeps what is printed on stdout in a file, until it is known whether it is the result."""

    def __init__(self, function: Function | None) -> None:
        self.is_result = getattr(function, "__annotations__", {}).get("return", ...) in (None, "None")
        self._stdout = -1
        if self.is_result:
            return
        if hasattr(os, "memfd_create"):
            self._aside = os.memfd_create("printed")
        else:
            from tempfile import TemporaryFile

            with TemporaryFile() as file:
                self._aside = os.dup(file.fileno())
        # No flush before: output that is still in the buffer is not the result either.
        self._stdout = os.dup(1)
        os.dup2(self._aside, 1)

    def restore(self) -> None:
        """Restore stdout, and print what was kept: on stdout if it is the result, else on stderr."""
        if self._stdout < 0:
            return
        try:
            sys.stdout.flush()
        finally:
            os.dup2(self._stdout, 1)
            os.close(self._stdout)
            self._stdout = -1
        os.lseek(self._aside, 0, os.SEEK_SET)
        target = 1 if self.is_result else 2
        while chunk := os.read(self._aside, 65536):
            while chunk:
                chunk = chunk[os.write(target, chunk) :]
        os.close(self._aside)


class _Registered:
    """The functions that this file has marked, each with its name and scopes, and whether one has been run."""

    marked: list[tuple[Function, str, tuple[str, ...]]] = []
    scopes: dict[str, None] = {}  # of all marks, in order
    is_run = False
    frame: Any = None  # of the file itself
    pid = 0
    exit_code: Any = None
    status = 0  # that the process has to end with, if the function failed at the end of the file
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
        env: list[str] | None = None,
        stays: str | Json | None = None,
        task: str | None = None,
        task_after_secs: float | None = None,
        task_timeout_secs: float | None = None,
        task_keep_secs: float | None = None,
        task_begins: str | None = None,
        task_survives_client: bool | None = None,
        rerun: bool | None = None,
        run_on: str | list[str] | None = None,
        retries: int | None = None,
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
    env: list[str] | None = None,
    stays: str | Json | None = None,
    task: str | None = None,
    task_after_secs: float | None = None,
    task_timeout_secs: float | None = None,
    task_keep_secs: float | None = None,
    task_begins: str | None = None,
    task_survives_client: bool | None = None,
    rerun: bool | None = None,
    run_on: str | list[str] | None = None,
    retries: int | None = None,
) -> Any:
    """Mark a function as a tool. The one that a client calls is run at the end of the file, unless `run` was called;
    importing the file runs none. The server reads the options from the source. The scopes are checked here as well, in
    case the server could not read them."""
    if scopes is not None and not (isinstance(scopes, (list, tuple)) and all(isinstance(each, str) for each in scopes)):
        raise TypeError("scopes of mcp_tool.tool must be a list of strings")
    _Registered.scopes.update(dict.fromkeys(scopes or ()))

    def mark(function: Any) -> Any:
        if getattr(function, "__module__", "") == "__main__":
            is_first = not _Registered.marked
            if is_first:
                _watch_the_end(sys._getframe(1))
            if _is_called() and (_Registered.printed is None or _Registered.printed.is_result):
                # Already here, because Python flushes stdout before the file has ended. Another function may be called.
                _Registered.printed = Printed(function if is_first else None)
            _Registered.marked.append((function, name or str(getattr(function, "__name__", "")), tuple(scopes or ())))
        return function

    return mark if function is None else mark(function)


def run(function: Function | None = None) -> None:
    """Call the function now: this one, else the marked one, else the only public one."""
    _Registered.is_run = True
    status = _run(function)
    if status:
        raise SystemExit(status)


def _watch_the_end(frame: Any) -> None:
    """Run the function at the end of the file. `atexit` is too late, because threads cannot be started then; Python
    waits for threads before that, with a function that can be replaced."""
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
        is_number = end.code is None or isinstance(end.code, int)
        status = int(end.code or 0) if is_number else 1
        if not is_number:
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    wait_for_threads()
    if status:  # Python has already decided its own exit status
        import atexit
        from contextlib import suppress

        _Registered.status = status
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # closed, or without a reader
                stream.flush()
        os._exit(status)


def _has_ended_well() -> bool:
    """Tell whether the file was executed to its end, or left with status 0."""
    if getattr(sys, "last_value", None) is not None:
        return False
    frame = _Registered.frame
    if frame is None or _Registered.exit_code == 0:
        return True
    import opcode

    last = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else 0
    return opcode.opname[last].startswith(("RETURN", "INSTRUMENTED_RETURN"))


def _run(function: Function | None) -> int:
    if "MCP_CALLS_FD" in os.environ:
        import mcp_tool_staying

        return mcp_tool_staying.serve(function)
    try:
        if not _is_called():
            return _run_by_hand(function)
        chosen = function or _called_function(mcp_tool._tool_name())
        _require_scopes(chosen)
        arguments = conversion.call_arguments(chosen, mcp_tool.args())
    except (conversion.Unfit, ToolError) as problem:
        if _is_called():
            if _Registered.printed is not None:
                _Registered.printed.restore()
            return _failed(str(problem))
        print(problem, file=sys.stderr)
        return 2
    return _run_for_a_client(chosen, *arguments)


def _require_scopes(chosen: Function) -> None:
    """Refuse a caller without the scopes of this function; if it is not marked, without those of all that are. As in
    the server, a caller without claims is not restricted."""
    own = [scopes for function, _, scopes in _Registered.marked if function is chosen]
    needed = [scope for scopes in own for scope in scopes] if own else list(_Registered.scopes)
    claims = mcp_tool.auth() if needed else {}
    if not claims:
        return
    granted = claims.get("scope", claims.get("scp", ()))
    granted = granted.split() if isinstance(granted, str) else granted if isinstance(granted, list) else ()
    missing = [scope for scope in needed if scope not in granted]
    if missing:
        raise ToolError(f"This needs the scope {' '.join(missing)}, which the caller does not have.")


def _is_called() -> bool:
    """Tell whether a server runs this file, and not a person."""
    return "MCP_TOOL_ARGS_JSON" in os.environ or "MCP_TOOL_ARGS_FILE" in os.environ


def _called_function(called: str) -> Function:
    """Return the only function; of several marked ones, the one of this name. Raises ToolError."""
    marked = _Registered.marked
    functions = {id(function): function for function, _, _ in marked}
    if len(functions) > 1:
        named = [row for row in marked if row[1] == called] or [row for row in marked if row[0].__name__ == called]
        functions = {id(row[0]): row[0] for row in named} or functions
    candidates = list(functions.values()) if marked else _public_functions()
    if len(candidates) != 1:
        names = ", ".join(each.__name__ for each in candidates) or "none"
        raise ToolError(f"It is not clear which function is the tool: {names}. Mark each tool with @mcp_tool.tool.")
    return candidates[0]


def _public_functions() -> list[Function]:
    """Return the public functions of the file, except running ones, because one of them has called `run`."""
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


def _run_for_a_client(function: Function, placed: list[Any], named: Json) -> int:
    kind = conversion.result_kind(function)
    printed = _Registered.printed or Printed(function)
    try:
        result = _outcome(function, placed, named)
        if result is None and not conversion.promises_null(kind):
            printed.is_result = True
            return 0
        made = conversion.result_of(result, kind, function.__globals__)
    except ToolError as problem:
        printed.restore()
        return _failed(str(problem), status=0)
    except Exception as problem:
        printed.restore()
        _print_traceback(problem)  # the server sends its last line, without paths
        return 1
    except SystemExit:
        printed.is_result = True
        raise
    finally:
        printed.restore()
    mcp_tool.emit_json(made)
    return 0


def _outcome(function: Function, placed: list[Any], named: Json) -> object:
    staying = sys.modules.get("mcp_tool_staying")
    if staying is not None and any(staying.hooks) and mcp_tool._staying is None:
        raise ToolError("startup, shutdown and lifespan are for resident tools: add stays= to @mcp_tool.tool.")
    result = function(*placed, **named)
    if hasattr(result, "__await__"):
        import asyncio

        async def awaited() -> Any:
            return await result

        return asyncio.run(awaited())
    return result


def _failed(message: str, status: int = 1) -> int:
    mcp_tool.emit_json({"content": [{"type": "text", "text": message}], "isError": True})
    return status


def _print_traceback(problem: BaseException) -> None:
    from traceback import print_exception

    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in (__name__, "mcp_tool_staying"):
        trace = trace.tb_next  # skip our own frames
    print_exception(type(problem), problem, trace)


def _run_by_hand(function: Function | None) -> int:
    """Call the function, of several the one that the first word names, with the words of the command line."""
    names = list(dict.fromkeys(name for _, name, _ in _Registered.marked))
    given = sys.argv[1:]
    if function is None and len(names) > 1:
        if not given or given[0] not in names:
            raise ToolError(f"Usage: {os.path.basename(sys.argv[0])} {'|'.join(names)} [NAME=VALUE …]")
        sys.argv[0] += f" {given[0]}"  # for the usage
        function = _called_function(given.pop(0))
    function = function or _called_function("")
    signature = conversion.signature_of(function)
    words = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals:
            return _usage(function, signature, "" if word in ("-h", "--help") else f"{word} is not NAME=VALUE")
        words[name] = text
    missing = [name for name in signature.required if name not in words]
    if missing:
        return _usage(function, signature, f"missing: {', '.join(missing)}")
    result = _outcome(function, *conversion.call_arguments(function, _from_words(words, signature)))
    blocks = conversion.content_of(result)
    if blocks is not None and all(block["type"] == "text" for block in blocks):
        mcp_tool.emit_text("\n".join(block["text"] for block in blocks) + "\n")
    elif result is not None:
        print(json.dumps(blocks or conversion.plain(result), ensure_ascii=False, indent=2))
    return 0


def _usage(function: Function, signature: conversion.Signature, problem: str) -> int:
    stream = sys.stderr if problem else sys.stdout
    words = [f"{name}=…" if name in signature.required else f"[{name}=…]" for name in signature.names]
    lines = [f"{problem}\n"] if problem else []
    lines += [f"Usage: {os.path.basename(sys.argv[0])} {' '.join(words)}", ""]
    if function.__doc__:
        lines += [function.__doc__.strip(), ""]
    lines.append("Write values other than text as JSON. To call it as a client would: mcpgreen run-tool NAME")
    print("\n".join(lines), file=stream)
    return 2 if problem else 0


def _from_words(words: Json, signature: conversion.Signature) -> Json:
    """Return the arguments that a person typed. A value is read as JSON unless the function wants text."""
    from contextlib import suppress

    found = dict(words)
    for name, text in words.items():
        kind = conversion.resolved(signature.kinds.get(name, object), signature.scope)
        members = [conversion.resolved(each, signature.scope) for each in conversion.union_members(kind) or (kind,)]
        choices = [conversion.member_of_enum(member) for each in members if conversion.is_enum(each) for member in each]
        if str not in members and text not in choices:
            with suppress(ValueError):  # the conversion will report the problem
                found[name] = json.loads(text)
    return found
