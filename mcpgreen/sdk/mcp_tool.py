"""Python SDK for tool scripts: arguments in, results, progress and log lines out.

Not a part of the server: it imports nothing from mcpgreen and runs inside the tool, on any Python since 3.8. A tool
finds it after `sys.path.insert(0, os.environ["MCP_SDK"])`.

Rule: the import stays light, because each call of a tool pays for it. Only os, sys and json at the top.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from subprocess import CompletedProcess, Popen
    from typing import Any, NoReturn

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_ABSENT: Any = object()  # None is a value one may want as a default
_documents: dict[tuple[str, str], dict[str, Any]] = {}


def args() -> dict[str, Any]:
    """The arguments of this call."""
    return _document("MCP_TOOL_ARGS")


def meta() -> dict[str, Any]:
    """The `_meta` object the client sent with this call."""
    return _document("MCP_TOOL_META")


def arg(name: str, default: Any = None) -> Any:
    """One argument. Absent and null both give the default."""
    value = args().get(name)
    return default if value is None else value


def require(name: str, message: str | None = None) -> Any:
    """One argument, or the call ends with -32602 when it is absent, null or an empty string."""
    value = arg(name, "")
    if value == "":
        fail_invalid_args(message or f"{name} is required")
    return value


def arg_bool(name: str, default: bool = _ABSENT) -> bool:
    """True for true, 1, "true" and "1"; False for every other value."""
    return _value_or_default(name, default) in (True, "true", "1")


def arg_int(name: str, default: int = _ABSENT, *, min: int | None = None, max: int | None = None) -> int:
    """An integer, or the call ends with -32602. The default has to keep the bounds, too."""
    if min is not None and max is not None and min > max:
        fail_invalid_args("arg_int: min cannot exceed max")
    number = _integer(name, _value_or_default(name, default))
    if min is not None and number < min:
        fail_invalid_args(f"{name} must be >= {min}")
    if max is not None and number > max:
        fail_invalid_args(f"{name} must be <= {max}")
    return number


def emit_text(text: str) -> None:
    """Print text as it stands, in UTF-8 whatever the locale says."""
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:  # a test has put a StringIO there
        sys.stdout.write(text)
    else:
        binary.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def emit_json(value: Any) -> None:
    """Print one value as one line. Raises TypeError or ValueError for what JSON cannot express."""
    emit_text(_line(value))


def result_success(value: Any, max_text_bytes: int | None = None) -> None:
    """Print the result of a call that worked, and go on. Beyond `max_text_bytes` its text is a summary."""
    envelope = {"success": True, "result": value}
    text = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if max_text_bytes is None:
        configured = os.environ.get("MCPBASH_MAX_TEXT_BYTES", "")
        max_text_bytes = int(configured) if configured.isdigit() else 102400
    if len(text.encode("utf-8", "replace")) > max_text_bytes:
        text = _summary(value)
    _emit_result(text, envelope, is_error=False)


def result_error(error: Mapping[str, Any] | BaseException | str) -> None:
    """Print the result of a call that failed, and go on. What is not a mapping becomes the message."""
    if isinstance(error, (str, BaseException)):
        error = {"message": str(error) or type(error).__name__}
    fields = dict(error)
    fields["type"] = fields.get("type") or "internal_error"
    fields["message"] = fields.get("message") or "Unknown error"
    text = fields["message"] if isinstance(fields["message"], str) else json.dumps(fields["message"])
    _emit_result(text, {"success": False, "error": fields}, is_error=True)


def error(type: str, message: str, *, hint: str | None = None, data: Any = None) -> None:
    """Print a failed result made of its parts. A hint is also logged as a warning. Does not end the script."""
    fields = {"type": type, "message": message}
    if hint is not None:
        fields["hint"] = hint
        log_warn(os.environ.get("MCP_TOOL_NAME", "tool"), f"{type}: {message} ({hint})")
    if data is not None:
        fields["data"] = data
    result_error(fields)


def result_text_with_resource(value: Any, *resources: str | os.PathLike[str] | Mapping[str, str]) -> None:
    """Print a success with embedded files: paths or {"path", "mimeType"?, "uri"?}. Unreadable ones are left out."""
    entries = [entry for entry in map(_resource_entry, resources) if entry is not None]
    if target := os.environ.get("MCP_TOOL_RESOURCES_FILE"):
        with open(target, "w", encoding="utf-8") as file:
            file.write(_line(entries))
    result_success(value)


def fail(code: int, message: str = "Tool failed", data: Any = None) -> NoReturn:
    """End the script; the client gets a JSON-RPC error. In a thread other than the main one, only the thread ends."""
    line = _line({"code": code, "message": message, "data": data}, default=str)
    if target := os.environ.get("MCP_TOOL_ERROR_FILE"):
        try:
            with open(target, "w", encoding="utf-8") as file:
                file.write(line)
        except OSError:
            pass  # stdout says the same
    emit_text(line)
    print(message, file=sys.stderr)
    raise SystemExit(1)


def fail_invalid_args(message: str = "Invalid params", data: Any = None) -> NoReturn:
    """End the script with -32602."""
    fail(-32602, message, data)


def progress(percent: float, message: str = "", total: float | None = None) -> None:
    """Report progress, cut to a whole number from 0 to 100. Does nothing outside of the server."""
    params: dict[str, Any] = {"progress": int(max(0, min(percent, 100)))}
    if total is not None:
        params["total"] = total
    if message:
        params["message"] = message
    if "progressToken" in meta():
        params["progressToken"] = meta()["progressToken"]
    _notify("MCP_PROGRESS_STREAM", "notifications/progress", params)


def log(level: str, logger: str, data: Any) -> None:
    """Send a log line to the client. Does nothing outside of the server."""
    known = level.lower()
    if known not in LEVELS:
        print(f"log: unknown level {level}, using info", file=sys.stderr)
        known = "info"
    _notify("MCP_LOG_STREAM", "notifications/message", {"level": known, "logger": logger, "data": data})


def log_debug(logger: str, data: Any) -> None:
    log("debug", logger, data)


def log_info(logger: str, data: Any) -> None:
    log("info", logger, data)


def log_warn(logger: str, data: Any) -> None:
    log("warning", logger, data)


def log_error(logger: str, data: Any) -> None:
    log("error", logger, data)


def is_cancelled() -> bool:
    """Whether the client has given up on this call."""
    return os.path.exists(os.environ.get("MCP_CANCEL_FILE", ""))


def run_with_progress(
    command: list[str], pattern: str, *, extract: str = "match1", total: float | None = None, progress_file: str = ""
) -> CompletedProcess[str]:
    """Run a command; what matches in its stderr, or in a file, is progress. Returns 130 when the call is cancelled."""
    from re import compile
    from subprocess import CompletedProcess, Popen
    from tempfile import TemporaryFile
    from time import sleep

    if not pattern or extract not in ("json", "match1", "ratio") or (total is not None and total <= 0):
        raise ValueError("run_with_progress: a pattern, json, match1 or ratio, and a positive total are needed")
    search, reading, others = compile(pattern).search, (0.0, ""), ""
    # Files instead of pipes: the command never waits for a reader. They have no names, so that none remains.
    with TemporaryFile() as out, TemporaryFile() as err, open(progress_file or os.devnull, "w+b") as followed:
        fds = out.fileno(), err.fileno()
        process = Popen(command, stdout=out, stderr=err, start_new_session=True)
        try:
            for line in _lines(process, followed.fileno() if progress_file else fds[1], sleep):
                if match := search(line):
                    progress(*(reading := _reading(match, extract, total, reading[0])))
                elif not progress_file:
                    others += f"{line}\n"
        finally:
            status = _stop(process, sleep)
        stdout, stderr = (os.pread(fd, os.fstat(fd).st_size, 0).decode("utf-8", "replace") for fd in fds)
    return CompletedProcess(command, status, stdout, stderr if progress_file else others)


def roots() -> list[str]:
    """The directories this call may work in."""
    return [path for path in os.environ.get("MCP_ROOTS_PATHS", "").split("\n") if path]


def roots_contains(path: str | os.PathLike[str]) -> bool:
    """Whether the path, with links resolved, is a root or lies below one."""
    inner = os.path.join(os.path.realpath(path), "")
    return os.fspath(path) != "" and any(inner.startswith(os.path.join(os.path.realpath(root), "")) for root in roots())


def require_path(name: str, *, default_to_single_root: bool = False, allow_empty: bool = False) -> str:
    """A path argument as absolute path without links, inside the roots if there are any. It need not exist."""
    path: str = arg(name, "")
    if not isinstance(path, str) or "\0" in path:
        fail_invalid_args(f"{name} must be a path")
    if not path and default_to_single_root and len(roots()) == 1:
        path = roots()[0]
    if not path and allow_empty:
        return ""
    if not path:
        when = " when zero or multiple roots are configured" if default_to_single_root else ""
        fail_invalid_args(f"{name} is required{when}")
    physical = os.path.realpath(path)
    if roots() and not roots_contains(physical):
        fail_invalid_args(f"{name} is outside configured MCP roots")
    return physical


def _document(name: str) -> dict[str, Any]:
    path = os.environ.get(f"{name}_FILE", "")
    text = os.environ.get(f"{name}_JSON", "")
    key = (path, text)
    if key not in _documents:
        if path and os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                _documents[key] = json.load(file)
        else:
            _documents[key] = json.loads(text or "{}")
    return _documents[key]


def _value_or_default(name: str, default: Any) -> Any:
    value = arg(name, "")
    if value == "" and default is _ABSENT:
        fail_invalid_args(f"{name} is required")
    return default if value == "" else value


def _integer(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():  # JSON does not tell 5 from 5.0
        return int(value)
    digits = value[1:] if isinstance(value, str) and value.startswith("-") else value
    if isinstance(digits, str) and digits.isascii() and digits.isdigit():
        return int(value)
    fail_invalid_args(f"{name} must be an integer")


def _line(value: Any, default: Any = None) -> str:
    # ASCII only: a lone surrogate in a file name is legal here and would not survive UTF-8.
    return json.dumps(value, separators=(",", ":"), allow_nan=False, default=default) + "\n"


def _emit_result(text: str, structured: dict[str, Any], *, is_error: bool) -> None:
    emit_json({"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": is_error})


def _summary(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"Success: array with {len(value)} items"
    if isinstance(value, dict):
        return f"Success: object with {len(value)} keys"
    return f"Success: {(value if isinstance(value, str) else json.dumps(value))[:100]}"


def _lines(process: Popen[bytes], source: int, sleep: Callable[[float], None]) -> Iterator[str]:
    offset, rest, is_over = 0, b"", False
    while not is_over:
        sleep(0.05)
        is_over = process.poll() is not None or is_cancelled()  # asked before reading: no last word is missed
        data = os.pread(source, max(0, os.fstat(source).st_size - offset), offset)  # the command has its own position
        offset += len(data)
        *lines, rest = (rest + data + b"\n" * is_over).replace(b"\r", b"\n").split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in lines if line)


def _reading(match: Any, extract: str, total: float | None, last: float) -> tuple[float, str]:
    try:
        if extract == "json":
            event = json.loads(match.string)
            return float(event["progress"]), str(event.get("message") or "Working...")
        whole = float(match[2] if extract == "ratio" else total or 100)
        return round(100 * float(match[1]) / whole, 6), "Working..."
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return last, "Working..."  # the server takes it for a sign of life


def _stop(process: Popen[bytes], sleep: Callable[[float], None]) -> int:
    try:
        for number in [15, *[0] * 20, 9] if is_cancelled() or process.poll() is None else []:  # TERM, a second, KILL
            os.killpg(process.pid, number)
            sleep(0.05)
            process.poll()
    except OSError:
        pass  # everybody has left
    status = process.wait()
    return 130 if is_cancelled() else status


def _resource_entry(resource: Any) -> dict[str, str] | None:
    entry = dict(resource) if hasattr(resource, "keys") else {"path": os.fspath(resource)}
    path = os.path.abspath(entry.get("path", ""))  # an absent path gives a directory, which is no file either
    if os.path.isfile(path) and os.access(path, os.R_OK):
        return {**entry, "path": path}
    log_warn(os.environ.get("MCP_TOOL_NAME", "tool"), f"Skipped the embedded resource {path}: not a readable file")
    return None


def _notify(stream_variable: str, method: str, params: dict[str, Any]) -> None:
    stream = os.environ.get(stream_variable, "")
    if not stream:
        return
    number = stream[len("/dev/fd/") :] if stream.startswith("/dev/fd/") else ""
    try:
        line = _line({"jsonrpc": "2.0", "method": method, "params": params}, default=str).encode("ascii")
        # Unbuffered: one line is one write, so that lines of parallel writers do not mix.
        if number.isdigit():
            os.write(int(number), line)
        else:
            with open(stream, "ab", buffering=0) as file:
                file.write(line)
    except (OSError, ValueError):
        pass  # nobody listens, or NaN in a log line: no reason to stop the tool's own work
