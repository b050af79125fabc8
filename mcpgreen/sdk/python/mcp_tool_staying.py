"""Serve calls in a resident process. A part of `mcp_tool`, loaded on demand.

The main thread reads the calls. As long as all functions are plain and one call comes at a time, it runs them itself,
one after the other. Otherwise there is an event loop: coroutines run side by side there, and plain functions in threads
if `concurrency` is more than 1. `progress`, `log`, `ask` and the rest find their call by context.

Rule: whatever a function does, its call gets one answer, and the process goes on. Only what happens before the process
is ready ends it.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from copy import deepcopy
from functools import cached_property, partial
from itertools import chain, count
from traceback import format_exception_only
from typing import Any, TypeVar

import mcp_tool
import mcp_tool_functions as functions
from mcp_tool_functions import conversion

__all__ = ["lifespan", "shutdown", "startup"]

Json = dict[str, Any]
Hook = TypeVar("Hook")

READ_BYTES = 65536
ASYNC = 0x80 | 0x200  # flags of code objects: a coroutine, or an async generator

_startups: list[Any] = []
_shutdowns: list[Any] = []
_lifespans: list[Any] = []
hooks = (_startups, _shutdowns, _lifespans)


def startup(hook: Hook) -> Hook:
    """Mark a function that runs before the first call. It may be async."""
    _startups.append(hook)
    return hook


def shutdown(hook: Hook) -> Hook:
    """Mark a function that runs when no more calls come. It may be async."""
    _shutdowns.append(hook)
    return hook


def lifespan(generator: Hook) -> Hook:
    """Mark a generator that opens what the calls share, yields once, and closes it. It may be async."""
    _lifespans.append(generator)
    return generator


class Call:
    """One call that is being served."""

    descriptions: Json = {}  # of all tools, by name
    meta: Json = {}  # of the last call: what is the same in the next one is kept once

    def __init__(self, message: Json) -> None:
        self.number, self.tool, self.arguments = message["call"], message["tool"], message["arguments"]
        known = Call.meta.get
        meta = {name: found if (found := known(name)) == value else value for name, value in message["meta"].items()}
        if meta != Call.meta:
            Call.meta = meta
        self.meta = Call.meta
        self.printed: list[str] = []
        self.noted: Json = {}  # the error that the function has chosen, and files to embed
        self.is_cancelled = False
        self.task: Any = None

    @cached_property
    def documents(self) -> Json:
        return {
            "MCP_TOOL_ARGS": self.arguments,
            "MCP_TOOL_META": deepcopy(self.meta["_meta"]),  # other calls may have the same one
            "MCP_TOOL_METADATA": self.descriptions.get(self.tool, {}),
            "MCP_INPUT_RESPONSES": self.meta.get("inputResponses", {}),
        }

    @cached_property
    def variables(self) -> dict[str, str]:
        """What a script that is started for the call would find in its environment."""
        return {
            **{f"{name}_JSON": json.dumps(document) for name, document in self.documents.items()},
            **self.meta["client"],
            "MCP_TOOL_NAME": self.tool,
            "MCP_AUTH_JSON": json.dumps(self.meta["auth"] or {}),
            "MCP_ROOTS_PATHS": "\n".join(root["path"] for root in self.meta["roots"]),
            "MCP_REQUEST_STATE": self.meta.get("requestState") or "",
        }


NO_CALL = Call({"call": None, "tool": "", "arguments": {}, "meta": {"_meta": {}}})
NO_CALL.variables = {}  # there is only the environment
_current = ContextVar("call", default=NO_CALL)


class Printing:
    """Stands for stdout: keeps what a call prints until it is known whether that is its result."""

    def __init__(self, stdout: Any) -> None:
        self._stdout = stdout

    def write(self, text: str) -> int:
        call = _current.get()
        if call is NO_CALL:
            self._stdout.write(text)
        else:
            call.printed.append(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        if name in ("buffer", "writelines"):  # would pass by
            raise AttributeError(name)
        return getattr(self._stdout, name)


class Process:
    """What all calls share: the lines, the event loop, the threads."""

    def __init__(self, function: Any) -> None:
        self._function = function
        # Programs that a function starts are not to read calls, nor to answer them.
        self._calls_fd, self._answers_fd = (int(os.environ.pop(f"MCP_{name}_FD")) for name in ("CALLS", "ANSWERS"))
        for descriptor in (self._calls_fd, self._answers_fd):
            os.set_inheritable(descriptor, False)
        self._concurrency = int(os.environ.get("MCP_CONCURRENCY", "1"))
        self._most_bytes = int(os.environ.get("MCP_MAX_ANSWER_BYTES", sys.maxsize))
        self._begun: list[bytes] = []  # pieces of a line without its end
        self._waiting: list[Call] = []
        self._calls: dict[Any, Call] = {}
        self._replies: dict[int, Json] = {}
        self._questions = count(1)
        self._news = threading.Condition()
        self._writing = threading.Lock()
        self._main = threading.get_ident()
        self._is_open = True
        self._loop: Any = None
        self._ended: Any = None
        self._threads: Any = None

    def run(self) -> None:
        found = [self._function] if self._function else [row[0] for row in functions._Registered.marked]
        if self._concurrency > 1 or any(map(_is_async, [*found, *chain(*hooks)])):
            import asyncio

            asyncio.run(self._run_loop(asyncio))
            return
        shared = _opened()
        _finished(shared.__aenter__())
        self.write({"ready": True})
        while self._waiting or self._receive():
            while self._waiting:
                _finished(self._serve(self._waiting.pop(0)))
        _finished(shared.__aexit__(None, None, None))

    async def _run_loop(self, asyncio: Any) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        if self._concurrency > 1:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self._concurrency)
        async with _opened():
            self._loop.add_reader(self._calls_fd, self._receive)
            self.write({"ready": True})
            await self._ended.wait()
            self._loop.remove_reader(self._calls_fd)

    def write(self, message: Json) -> None:
        """Raises TypeError or ValueError for what cannot be sent."""
        line = mcp_tool._line(message).encode("ascii")
        if len(line) > self._most_bytes:
            raise ValueError(f"the answer has {len(line)} bytes, and {self._most_bytes} are allowed")
        with self._writing:
            while line:
                line = line[os.write(self._answers_fd, line) :]

    def _receive(self) -> bool:
        """Read what has come, and take each line. Return False at the end."""
        chunk = os.read(self._calls_fd, READ_BYTES)
        self._begun.append(chunk)
        if b"\n" in chunk:
            *lines, rest = b"".join(self._begun).split(b"\n")
            self._begun = [rest]
            for line in lines:
                self._take(json.loads(line))
        if not chunk:
            self._is_open = False
            if self._ended is not None:
                self._ended.set()
        with self._news:
            self._news.notify_all()
        return bool(chunk)

    def _take(self, message: Json) -> None:
        if "arguments" in message:
            call = self._calls[message["call"]] = Call(message)
            if self._loop is None:
                self._waiting.append(call)
            else:
                call.task = self._loop.create_task(self._serve(call))
        elif "reply" in message:
            self._replies[message["id"]] = message["reply"]
        elif message.get("cancel") in self._calls:
            call = self._calls[message["cancel"]]
            call.is_cancelled = True
            if call.task is not None:
                call.task.cancel()

    async def _serve(self, call: Call) -> None:
        token = _current.set(call)
        try:
            answer = await self._answer(call)
            sys.stderr.write("".join(call.printed))
            sys.stderr.flush()  # before the answer: then it is in the log of the call
            self.write({**call.noted, **answer, "call": call.number})
        except (TypeError, ValueError) as problem:  # JSON cannot express the result, or it is too long
            self.write({"error": _failure(problem), "call": call.number})
        finally:
            _current.reset(token)
            del self._calls[call.number]

    async def _answer(self, call: Call) -> Json:
        """Return the result or the error of a call."""
        try:
            function = self._function or functions._called_function(call.tool)
            functions._require_scopes(function)
            placed, named = conversion.call_arguments(function, call.arguments)
            if self._loop is None:
                result = functions._outcome(function, placed, named)
            elif self._threads is None or _is_async(function):
                result = function(*placed, **named)
                if hasattr(result, "__await__"):
                    result = await result
            else:
                job = partial(copy_context().run, function, *placed, **named)
                result = await _settled(await self._loop.run_in_executor(self._threads, job))
            kind = conversion.result_kind(function)
            if result is not None or conversion.promises_null(kind):
                return {"result": conversion.result_of(result, kind, function.__globals__)}
        except SystemExit as leaving:
            if leaving.code and "error" not in call.noted:
                is_number = isinstance(leaving.code, int)
                return {"error": f"Tool failed: exit code {leaving.code}" if is_number else str(leaving.code)}
        except (conversion.Unfit, functions.ToolError) as problem:
            return {"error": str(problem)}
        except Exception as problem:
            functions._print_traceback(problem)
            return {"error": _failure(problem)}
        except BaseException as problem:
            if type(problem).__name__ != "CancelledError":
                raise
            return {"error": "The call was cancelled."}
        printed, call.printed = "".join(call.printed), []
        return {"result": printed}

    # What `mcp_tool` asks for.

    def get(self, name: str, default: Any = None) -> Any:
        """Return a variable of the current call, or of the environment."""
        return _current.get().variables.get(name, os.environ.get(name, default))

    def document(self, name: str) -> Json:
        document: Json = _current.get().documents.get(name, {})
        return document

    def is_cancelled(self) -> bool:
        if threading.get_ident() == self._main:
            while self._is_open and select.select([self._calls_fd], [], [], 0)[0]:
                self._receive()
        return _current.get().is_cancelled

    def note(self, what: str, value: object) -> None:
        _current.get().noted[what] = value

    def notify(self, method: str, params: Json) -> None:
        if (call := _current.get()) is not NO_CALL:
            self.write({"progress" if method.endswith("progress") else "log": params, "call": call.number})

    def begin_task(self) -> None:
        if (call := _current.get()) is not None:
            self.write({"task": "begin", "call": call.number})

    def ask(self, question: Json) -> Json | None:
        """Ask, and wait for the replies; None if the call was cancelled. In the main thread nothing else happens
        meanwhile; `await asyncio.to_thread(mcp_tool.ask, ...)` lets others run."""
        call, number = _current.get(), next(self._questions)
        if call is NO_CALL:
            return {key: {"status": "unsupported", "message": "There is no client to ask."} for key in question["ask"]}
        del question["reply"]
        self.write({**question, "id": number, "call": call.number})
        if threading.get_ident() == self._main:
            while number not in self._replies and not call.is_cancelled and self._receive():
                pass
        else:
            with self._news:
                self._news.wait_for(lambda: number in self._replies or not self._is_open or call.is_cancelled)
        return self._replies.pop(number, None)


def serve(function: Any = None) -> int:
    """Serve calls until no more come."""
    Call.descriptions = json.loads(os.environ.get("MCP_TOOLS_JSON") or "{}")
    process = mcp_tool._staying = mcp_tool._environ = Process(function)
    sys.stdout = Printing(sys.stdout)
    process.run()
    return 0


@asynccontextmanager
async def _opened() -> AsyncIterator[None]:
    """Have everything open that calls share."""
    lifespans = [generator() for generator in _lifespans]
    for each in lifespans:
        await _settled(anext(each) if hasattr(each, "__anext__") else next(each))
    for hook in _startups:
        await _settled(hook())
    try:
        yield
    finally:
        for hook in reversed(_shutdowns):
            await _settled(hook())
        for each in reversed(lifespans):
            await _settled(anext(each, None) if hasattr(each, "__anext__") else next(each, None))


async def _settled(result: Any) -> Any:
    return await result if hasattr(result, "__await__") else result


def _finished(coroutine: Any) -> Any:
    """Run a coroutine that never waits, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("this waits, and there is no event loop")


def _is_async(function: Any) -> bool:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & ASYNC)


def _failure(problem: BaseException) -> str:
    return f"Tool failed: {''.join(format_exception_only(type(problem), problem)).strip()}"
