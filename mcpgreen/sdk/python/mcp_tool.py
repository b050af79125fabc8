"""Python SDK for tool scripts: read arguments, print results, report progress, write log lines.

It runs inside the tool, on any Python since 3.10, and imports nothing from mcpgreen. The server puts its folder on the
PYTHONPATH of scripts; the import takes it off again, so that programs which the script starts do not see it. The
functions that most tools need are here. A file next to this one is loaded when one of its names is used.

Rule: each call pays for the import, so only os, sys and json at the top. Names with an underscore are private.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from mcp_tool_asking import *  # noqa: F403  # for type checkers: the same names as in _ELSEWHERE
    from mcp_tool_commands import *  # noqa: F403
    from mcp_tool_content import *  # noqa: F403
    from mcp_tool_documents import *  # noqa: F403
    from mcp_tool_functions import *  # noqa: F403
    from mcp_tool_staying import *  # noqa: F403
    from mcp_tool_testing import *  # noqa: F403

    Json = dict[str, Any]

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

# Names that are loaded on demand, by the file that has them.
_ELSEWHERE = {
    "mcp_tool_asking": "Answer AskFailed AskTimeout CallCancelled Declined Dismissed NotAnswered Reply Sample "
    "Unsupported ask ask_string can_elicit can_sample choice confirm elicit elicit_url form_request input_required "
    "input_responses multi_choice request_state roots_request sample sampling_request titled_choice "
    "titled_multi_choice url_request",
    "mcp_tool_commands": "CommandLine download_safe download_safe_or_fail run_with_progress with_retry",
    "mcp_tool_content": "Block audio_block client_supports_ui image_block resource_block resource_link_block result "
    "result_text_with_resource result_with_ui text_block",
    "mcp_tool_documents": "config_get config_load extract_cli_error json_truncate",
    "mcp_tool_functions": "Arg ToolError run tool",
    "mcp_tool_staying": "lifespan shutdown startup",
    "mcp_tool_testing": "testing",
}

_ABSENT: Any = object()  # because None may be a default
_environ: Any = os.environ  # in a resident process, the variables of the current call
_staying: Any = None  # what serves the calls of a resident process
_documents: dict[tuple[str, str], Json] = {}
_HERE = os.path.dirname(os.path.abspath(__file__))


def _leave_path() -> None:
    """Take our folder off PYTHONPATH, for programs that the script starts. A forked script does it in each call."""
    *path, last = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if last == _HERE:
        del os.environ["PYTHONPATH"]
        os.environ.update({"PYTHONPATH": os.pathsep.join(path)} if path else {})


if "MCP_SDK" in os.environ:  # only in a call; otherwise the user has set PYTHONPATH
    _leave_path()


def __getattr__(name: str) -> Any:
    for module, names in _ELSEWHERE.items():
        if name in names.split():
            if _HERE not in sys.path:  # a tool may have removed it
                sys.path.append(_HERE)
            globals()[name] = value = getattr(__import__(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def args() -> Json:
    """Return the arguments of this call."""
    return _document("MCP_TOOL_ARGS")


def meta() -> Json:
    """Return the `_meta` object the client sent with this call."""
    return _document("MCP_TOOL_META")


def args_raw() -> str:
    """Return the arguments of this call as JSON text."""
    return _text("MCP_TOOL_ARGS")


def meta_raw() -> str:
    """Return the `_meta` object of this call as JSON text."""
    return _text("MCP_TOOL_META")


def meta_get(name: str, default: object = None) -> Any:
    """Return a member of `_meta`, or the default if it is absent or null."""
    value = meta().get(name)
    return default if value is None else value


def arg(name: str, default: object = None) -> Any:
    """Return an argument, or the default if it is absent or null."""
    value = args().get(name)
    return default if value is None else value


def require(name: str, message: str | None = None) -> Any:
    """Return an argument. If it is absent, null or an empty string, the call ends with -32602."""
    value = arg(name, "")
    if value == "":
        fail_invalid_args(message or f"{name} is required")
    return value


def arg_bool(name: str, default: bool = _ABSENT) -> bool:
    """True for true, 1, "true" and "1"; False for every other value."""
    return _value_or_default(name, default) in (True, "true", "1")


def arg_int(name: str, default: int = _ABSENT, *, min: int | None = None, max: int | None = None) -> int:
    """Return an integer argument within the bounds, or end the call with -32602. The default is checked, too."""
    if min is not None and max is not None and min > max:
        fail_invalid_args("arg_int: min cannot exceed max")
    number = _integer(name, _value_or_default(name, default))
    if min is not None and number < min:
        fail_invalid_args(f"{name} must be >= {min}")
    if max is not None and number > max:
        fail_invalid_args(f"{name} must be <= {max}")
    return number


def emit_text(text: str) -> None:
    """Print text unchanged, always in UTF-8."""
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:  # a test has replaced it by a StringIO
        sys.stdout.write(text)
    else:
        binary.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def emit_json(value: object) -> None:
    """Print a value as one line of JSON. Raises TypeError or ValueError for what JSON cannot express."""
    line = _line(value, ensure_ascii=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        line = _line(value)
    emit_text(line)


def result_success(value: object, max_text_bytes: int | None = None) -> None:
    """Print the result of a successful call, and go on. A text beyond `max_text_bytes` is replaced by a summary."""
    envelope = {"success": True, "result": value}
    text = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if max_text_bytes is None:
        configured = _environ.get("MCPBASH_MAX_TEXT_BYTES", "")
        max_text_bytes = int(configured) if configured.isdigit() else 102400
    if len(text.encode("utf-8", "replace")) > max_text_bytes:
        text = _summary(value)
    _emit_result(text, envelope, is_error=False)


def result_error(error: Mapping[str, Any] | BaseException | str) -> None:
    """Print the result of a failed call, and go on. A string or an exception becomes the message."""
    if isinstance(error, (str, BaseException)):
        error = {"message": str(error) or type(error).__name__}
    _emit_error(dict(error))


def error(type: str, message: str | None = None, *, hint: str | None = None, data: object = None) -> None:
    """Print the result of a failed call, and go on. A hint is also logged as a warning. One text alone is logged."""
    if message is None:
        log("error", type)
        return
    fields: Json = {"type": type, "message": message}
    if hint is not None:
        fields["hint"] = hint
        log_warn(_tool_name(), f"{type}: {message} ({hint})")
    if data is not None:
        fields["data"] = data
    _emit_error(fields, f"\nHint: {hint}" if hint else "")


def fail(code: int, message: str = "Tool failed", data: object = None) -> NoReturn:
    """End the script with a JSON-RPC error for the client. Outside of the main thread, only the thread ends."""
    line = _line({"code": code, "message": message, "data": data}, default=str)
    if _staying is not None:
        _staying.note("error", json.loads(line))
    if target := _environ.get("MCP_TOOL_ERROR_FILE"):
        try:
            with open(target, "w", encoding="utf-8") as file:
                file.write(line)
        except OSError:
            pass  # stdout says the same
    emit_text(line)
    print(message, file=sys.stderr)
    raise SystemExit(1)


def fail_invalid_args(message: str = "Invalid params", data: object = None) -> NoReturn:
    """End the script with -32602."""
    fail(-32602, message, data)


def progress(percent: float, message: str | float = "", total: float | str | None = 100) -> None:
    """Report progress as a number from 0 to `total`; of a percentage, fractions are cut off. A value that is not a
    number counts as 0. `progress(3, 12, "text")`, with the total before the message as in FastMCP, is understood."""
    if isinstance(message, (int, float)):
        message, total = (total if isinstance(total, str) else ""), message
    try:
        value = float(percent)
    except (TypeError, ValueError):
        value = 0
    # Without a total a client cannot draw a bar.
    limit = total if isinstance(total, (int, float)) else 100
    value = max(0.0, float(min(value, limit)))
    params: Json = {"progress": int(value) if limit == 100 or value.is_integer() else value, "total": limit}
    if message:
        params["message"] = message
    if "progressToken" in meta():
        params["progressToken"] = meta()["progressToken"]
    _notify("MCP_PROGRESS_STREAM", "notifications/progress", params)


def begin_task() -> None:
    """Let the call become a task here, if its client supports that. Does nothing otherwise."""
    try:
        if _staying is not None:
            _staying.begin_task()
        elif stream := _environ.get("MCP_LOG_STREAM"):
            _send(stream, b'{"task": "begin"}\n')
    except OSError:
        pass  # the server has closed the pipe


def log(level: str, logger: object, data: object = _ABSENT) -> None:
    """Send a log line to the client. Does nothing outside of a call. Without a logger, it is named after the tool."""
    if data is _ABSENT:
        logger, data = _tool_name(), logger
    known = str(level).lower()
    if known not in LEVELS:
        print(f"log: unknown level {level}, using info", file=sys.stderr)
        known = "info"
    _notify("MCP_LOG_STREAM", "notifications/message", {"level": known, "logger": logger, "data": data})


def info(data: object) -> None:
    log("info", data)


def warning(data: object) -> None:
    log("warning", data)


def log_debug(logger: str, data: object) -> None:
    log("debug", logger, data)


def log_info(logger: str, data: object) -> None:
    log("info", logger, data)


def log_warn(logger: str, data: object) -> None:
    log("warning", logger, data)


def log_error(logger: str, data: object) -> None:
    log("error", logger, data)


def debug(*words: Any) -> None:
    """Send a line to the client's log, and append it to the debug log of the call. Does nothing outside of a call."""
    log("debug", text := " ".join(map(str, words)))
    _write_debug(text)


def _write_debug(text: str) -> None:
    from time import strftime

    if target := _environ.get("MCPBASH_DEBUG_LOG"):
        try:
            with open(target, "a", encoding="utf-8", errors="replace") as file:
                file.write(f"[{strftime('%H:%M:%S')}] {text}\n")
        except OSError:
            pass  # the tool can go on without it


def is_cancelled() -> bool:
    """Tell whether the client has cancelled this call."""
    if _staying is not None:
        return bool(_staying.is_cancelled())
    return os.path.exists(_environ.get("MCP_CANCEL_FILE", ""))


def auth() -> Json:
    """Return the claims of the caller's token; empty if the transport does not identify callers."""
    claims: Json = json.loads(_environ.get("MCP_AUTH_JSON") or "{}")
    return claims


def auth_get(name: str, default: object = None) -> Any:
    """Return a claim, or the default if it is absent or null."""
    value = auth().get(name)
    return default if value is None else value


def roots() -> list[str]:
    """Return the directories that this call may work in."""
    return [path for path in _environ.get("MCP_ROOTS_PATHS", "").split("\n") if path]


def roots_count() -> int:
    """Return the number of roots."""
    return len(roots())


def roots_contains(path: str | os.PathLike[str]) -> bool:
    """Tell whether the path, links resolved, is a root or below one. The root / does not contain the kernel's files."""
    inner = os.path.join(os.path.realpath(path), "")
    outer = [os.path.join(os.path.realpath(root), "") for root in roots()]
    if inner.startswith(("/proc/", "/sys/", "/dev/")):
        outer = [root for root in outer if root != "/"]
    return os.fspath(path) != "" and inner.startswith(tuple(outer))


def require_path(name: str, *, default_to_single_root: bool = False, allow_empty: bool = False) -> str:
    """Return a path argument as an absolute path without links, inside any roots. It need not exist."""
    path = arg(name, "")
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


def _document(name: str) -> Json:
    if _staying is not None:
        found: Json = _staying.document(name)
        return found
    path, text = os.environ.get(f"{name}_FILE", ""), os.environ.get(f"{name}_JSON", "")
    if (path, text) not in _documents:
        _documents[path, text] = json.loads(_text(name) if path else text or "{}")
    return _documents[path, text]


def _text(name: str) -> str:
    path = _environ.get(f"{name}_FILE", "")
    if path and os.path.isfile(path):
        with open(path, encoding="utf-8") as file:
            return file.read()
    return _environ.get(f"{name}_JSON", "") or "{}"


def _value_or_default(name: str, default: object) -> Any:
    value = arg(name, "")
    if value == "" and default is _ABSENT:
        fail_invalid_args(f"{name} is required")
    return default if value == "" else value


def _integer(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():  # JSON does not tell 5 from 5.0
        return int(value)
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if digits.isascii() and digits.isdigit():
            return int(value)
    fail_invalid_args(f"{name} must be an integer")


def _line(value: object, default: Any = None, ensure_ascii: bool = True) -> str:
    # ASCII, because a file name may contain a lone surrogate, which UTF-8 cannot encode.
    return json.dumps(value, separators=(",", ":"), allow_nan=False, default=default, ensure_ascii=ensure_ascii) + "\n"


def _emit_error(fields: Json, more_text: str = "") -> None:
    fields["type"] = fields.get("type") or "internal_error"
    fields["message"] = fields.get("message") or "Unknown error"
    text = fields["message"] if isinstance(fields["message"], str) else json.dumps(fields["message"])
    _emit_result(text + more_text, {"success": False, "error": fields}, is_error=True)


def _emit_result(text: str, structured: Json, *, is_error: bool) -> None:
    emit_json({"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": is_error})


def _summary(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"Success: array with {len(value)} items"
    if isinstance(value, dict):
        return f"Success: object with {len(value)} keys"
    return f"Success: {(value if isinstance(value, str) else json.dumps(value))[:100]}"


def _tool_name() -> str:
    return _environ.get("MCP_TOOL_NAME") or "tool"


def _notify(stream_variable: str, method: str, params: Json) -> None:
    try:
        if _staying is not None:
            _staying.notify(method, params)
            return
        line = _line({"jsonrpc": "2.0", "method": method, "params": params}, default=str)
        if stream := _environ.get(stream_variable):
            _send(stream, line.encode("ascii"))
    except (OSError, TypeError, ValueError):
        pass  # the server has closed the pipe, or JSON cannot express the data; the tool can go on


def _send(stream: str, line: bytes) -> None:
    """Append one line in one unbuffered write, so that lines of parallel writers do not mix."""
    number = stream[len("/dev/fd/") :] if stream.startswith("/dev/fd/") else ""
    if number.isdigit():
        while line:
            line = line[os.write(int(number), line) :]
    else:
        with open(stream, "ab", buffering=0) as file:
            file.write(line)


__all__ = ["LEVELS", *(name for name, value in list(globals().items()) if name[0] != "_" and callable(value))]
__all__ += " ".join(_ELSEWHERE.values()).split()
