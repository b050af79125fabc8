"""Turn the way a script ended into a tool result (in the newest revision), or into an exception that says why.

First match wins: an error that the script chose, output over its limit, deadline, exit status, then what it printed.
Several rows of that table exist because scripts in the wild rely on them; the tests name each.
"""

from __future__ import annotations

import signal
from codecs import getincrementaldecoder, iterdecode
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen.errors import ERROR_CODES, OutputTooLarge, ScriptAsks, ScriptError, ToolFailure, UnexpectedOutput
from mcpgreen.protocol.content import problem_of_block
from mcpgreen.running.processes.run import Ending, Outcome
from mcpgreen.running.shares import LANE, Turns, in_turns, let_others
from mcpgreen.text import jsontext

if TYPE_CHECKING:
    from mcpgreen.logs.last_words import LastWords

    Words = Callable[[], LastWords]

Json = dict[str, Any]
OutputProblems = Callable[[Any], Sequence[str]]

MAX_DOCUMENTS_CHARS = 1 << 20
LARGE_TEXT_BYTES = 1 << 18
NOT_FOUND = 127  # as `env` and shells say of a program
MAX_STRAY_BYTES = 1 << 18  # of an output in which stray text is looked for
MAX_STRAY_TRIES = 10
SHOWN_CHARS = 60
CLOSING = {"{": "}", "[": "]"}
REMEDY = "print everything but the result to stderr (>&2)"
CONVERT = "convert its output, for example with iconv -f latin1 -t utf-8"


class Expectation(NamedTuple):
    """What the caller knows about the run: its limits, its deadline, what the output has to look like."""

    stdout_limit_bytes: int
    stderr_limit_bytes: int
    stderr_tail_bytes: int
    timeout_secs: float
    meta_on: str = "failures"  # the setting result_meta: on which results exit status and stderr are told
    timeout_hint: str | None = None
    timeout_reason: str = "fixed"
    max_timeout_secs: float | None = None
    response_limit_bytes: int = 0  # 0: none
    output_problems: OutputProblems | None = None


def tool_result(
    outcome: Outcome, expected: Expectation, *, error_report: bytes, resources: Sequence[Json], last_words: Words
) -> Json:
    """The canonical CallToolResult. Raises ScriptError, OutputTooLarge or ToolFailure."""
    try:
        result = _result(outcome, expected, error_report=error_report, last_words=last_words)
    except ToolFailure as failure:
        failure.meta = _diagnostics(outcome, expected, last_words)
        raise
    if result["isError"] and (outcome.exit_code or outcome.stderr):
        turns = Turns()
        for block in result["content"]:
            if block["type"] == "text" and (outcome.exit_code or last_words().are_in(block["text"])):
                block["text"] = "".join(last_words().cleaned_output(block["text"], turns.pause))
    if outcome.exit_code == 0:
        result["content"].extend(resources)
    if result["isError"] or expected.meta_on == "always":
        result["_meta"] = {**result.get("_meta", {}), **_diagnostics(outcome, expected, last_words)}
    return result


def _result(outcome: Outcome, expected: Expectation, *, error_report: bytes, last_words: Words) -> Json:
    if error_report.strip():
        raise chosen_error(error_report)
    if outcome.ended_by == Ending.STDOUT_LIMIT:
        raise OutputTooLarge(f"Tool output exceeded {expected.stdout_limit_bytes} bytes")
    if outcome.ended_by == Ending.STDERR_LIMIT:
        raise OutputTooLarge(f"Tool stderr exceeded {expected.stderr_limit_bytes} bytes")
    if outcome.ended_by == Ending.DEADLINE:
        raise _timeout(outcome, expected)
    if outcome.fault:
        reason = last_words().reason
        raise ToolFailure(f"{outcome.fault}: {reason}" if reason else f"{outcome.fault}.")
    printed = Printed(outcome.stdout, limit_bytes=expected.response_limit_bytes)
    with LANE if printed.is_large else nullcontext():
        result = _understood(outcome, printed, last_words, is_declared=expected.output_problems is not None)
    if expected.output_problems is not None and not result["isError"]:
        _require_declared_output(result, printed, expected.output_problems, last_words)
    return result


def _understood(outcome: Outcome, printed: Printed, last_words: Words, *, is_declared: bool) -> Json:
    """What the script printed, as a result."""
    text = printed.text_to_parse(may_be_scalar=is_declared)
    value, is_json = _json_value(text, wants_scalars=is_declared)
    if is_json and outcome.exit_code == 0 and isinstance(value, dict) and value.get("resultType") == "input_required":
        raise ScriptAsks(value.get("inputRequests"), value.get("requestState"))
    result = _ready_made(value, text) if is_json or text.lstrip()[:1] == "{" else None
    if outcome.exit_code != 0:
        return _failed(outcome, result, value, printed, last_words)
    if result is None:
        result = {"content": [{"type": "text", "text": printed.text_to_send()}], "isError": False}
        if is_json and (is_declared or isinstance(value, dict)):
            result["structuredContent"] = value
    return result


class Printed:
    """What a script printed, to look at and to send. Large output is encoded in turns, and parsed if it may be JSON."""

    def __init__(self, chunks: Sequence[bytes], *, limit_bytes: int) -> None:
        self.chunks = chunks
        self._limit_bytes = limit_bytes
        self.is_large = sum(map(len, chunks)) > LARGE_TEXT_BYTES
        self._text = "" if self.is_large else b"".join(chunks).decode("utf-8", "replace")

    @property
    def is_blank(self) -> bool:
        return not any(chunk.strip() for chunk in self.chunks)

    def text_to_parse(self, *, may_be_scalar: bool) -> str:
        """The text, or nothing if it is long and certainly no JSON."""
        if not self.is_large:
            return self._text
        start = next(filter(None, (chunk.lstrip() for chunk in self.chunks)), b"")
        if not may_be_scalar and start[:1] not in (b"{", b"["):
            return ""
        try:
            text = b"".join(self.chunks).decode("utf-8")
            let_others()
            return text
        except UnicodeDecodeError:
            return ""  # at the first byte that is wrong; to replace them all would take a while

    def text_to_send(self) -> Any:
        """A string or a LargeText. Raises OutputTooLarge. May wait."""
        if not self.is_large:
            return self._text
        return self._large(in_turns(self.chunks))

    def cleaned(self, words: LastWords) -> tuple[Any, ...]:
        """The blocks of a failed call with what it printed, without secrets and paths, as `text_to_send`."""
        if self.is_blank:
            return ()
        if not self.is_large:
            return ("".join(words.cleaned_output(self._text, Turns().pause)),)
        text = "".join(iterdecode(in_turns(self.chunks), "utf-8", "replace"))
        pieces = words.cleaned_output(text, Turns().pause)
        return (self._large(piece.encode("utf-8", "surrogatepass") for piece in pieces),)

    def _large(self, chunks: Iterable[bytes]) -> jsontext.LargeText:
        try:
            return jsontext.LargeText(chunks, limit_bytes=self._limit_bytes)
        except jsontext.TooLong:
            raise OutputTooLarge(f"Response exceeded response size limit ({self._limit_bytes} bytes)") from None


def has_failed(outcome: Outcome) -> bool:
    """Tell whether the script itself reported a failure."""
    return outcome.ended_by == Ending.EXIT and outcome.exit_code != 0


def chosen_error(report: bytes) -> ScriptError:
    """`mcp_fail`: the script wrote code, message and data itself."""
    text = report.decode("utf-8", "replace")
    try:
        chosen = jsontext.loads(text)
    except ValueError:
        chosen = None
    error = _as_chosen_error(chosen) if jsontext.is_writable(chosen) else None
    return error or ScriptError(-32603, "Tool failed", data=text)


def _as_chosen_error(value: Any) -> ScriptError | None:
    if not isinstance(value, dict) or not isinstance(value.get("message"), str):
        return None
    if type(value.get("code")) is int and value["code"] in ERROR_CODES:
        return ScriptError(value["code"], value["message"], data=value.get("data"))
    return None


def _diagnostics(outcome: Outcome, expected: Expectation, last_words: Words) -> Json:
    """Exit status and the end of stderr: for programs that want it always as it is, else as a model may read it."""
    if expected.meta_on == "never":
        return {}
    meta: Json = {"exitCode": outcome.exit_code}
    if outcome.stderr and expected.stderr_tail_bytes:
        if expected.meta_on == "always":
            tail = outcome.stderr[-expected.stderr_tail_bytes :].decode("utf-8", "replace").replace("\0", "")
        else:
            tail = last_words().tail[-expected.stderr_tail_bytes :]
        meta["stderr"] = tail
    return meta


def _timeout(outcome: Outcome, expected: Expectation) -> ToolFailure:
    reason = expected.timeout_reason
    text = f"Tool timed out after {expected.timeout_secs:g}s"
    if reason == "max_exceeded":
        text = f"Tool exceeded maximum runtime of {expected.max_timeout_secs:g}s"
    elif reason == "idle":
        text += " (no progress reported)"
    details: Json = {
        "type": "timeout",
        "message": text,
        "timeoutSecs": _whole(expected.timeout_secs),
        "reason": reason,
        "exitCode": outcome.exit_code,
    }
    if reason != "fixed":
        details["progressExtendsTimeout"] = True
        if expected.max_timeout_secs is not None:
            details["maxTimeoutSecs"] = _whole(expected.max_timeout_secs)
    if expected.timeout_hint:
        details["hint"] = expected.timeout_hint
        text += f"\n\nSuggestion: {expected.timeout_hint}"
    return ToolFailure(text, structured={"success": False, "error": details})


def _whole(secs: float) -> float:
    """The number without a fraction where there is none, as it was written."""
    return int(secs) if float(secs).is_integer() else secs


def _failed(outcome: Outcome, result: Json | None, value: Any, printed: Printed, last_words: Words) -> Json:
    """A non-zero exit status: what the script printed as a result or an error, else a failure in words."""
    if result is not None:
        return {**result, "isError": True}
    error = _as_chosen_error(value)
    if error is not None:
        raise error
    words = last_words()
    raise ToolFailure(f"Tool failed: {reason_of(outcome, words)}", more_text=printed.cleaned(words))


def reason_of(outcome: Outcome, words: LastWords) -> str:
    """Why a script failed: what it said last, or its exit status."""
    reason = words.reason or _status_in_words(outcome.exit_code)
    if outcome.exit_code == NOT_FOUND and "\\r" in reason:
        reason += " (the script has Windows line endings; mcpgreen validate --fix converts them)"
    if outcome.exit_code == 128 + signal.SIGPIPE and not words.reason:
        reason += ", which can happen under set -o pipefail if a pipeline ends with head"
    return reason


def _status_in_words(exit_code: int) -> str:
    try:
        return f"killed by {signal.Signals(exit_code - 128).name} (exit code {exit_code})"
    except ValueError:
        return f"exit code {exit_code}"


def _json_value(text: str, *, wants_scalars: bool) -> tuple[Any, bool]:
    """The one JSON value that the script printed, and whether there is one.

    Without a declared schema a bare `42` or `true` is text like any other.
    """
    if not wants_scalars and text.lstrip()[:1] not in ("{", "["):
        return None, False
    try:
        value = jsontext.loads(text, turn=let_others)
    except ValueError:
        return None, False
    if len(text) > LARGE_TEXT_BYTES:
        let_others()
    if not jsontext.is_writable(value):
        return None, False  # a number such as 1e999 could not be sent on
    if len(text) > LARGE_TEXT_BYTES:
        let_others()
    return value, True


def _ready_made(value: Any, text: str) -> Json | None:
    """A CallToolResult that the script built itself; the first one when it printed several documents."""
    if value is None:
        value = _first_document(text)
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        return None
    blocks = value["content"]
    if not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks):
        return None
    if not blocks and not value.keys() & {"isError", "structuredContent", "_meta"}:
        return None
    for index, block in enumerate(blocks):
        problem = problem_of_block(block)
        if problem:
            raise ToolFailure(f"Tool returned an invalid content block: content[{index}]{problem}")
    result = {key: value[key] for key in ("content", "structuredContent", "isError", "_meta") if key in value}
    result["isError"] = value.get("isError") is True
    if not isinstance(result.get("_meta", {}), dict):
        del result["_meta"]
    if result.get("structuredContent", ...) is None:
        del result["structuredContent"]
    return result


def _first_document(text: str) -> Any:
    """The first of several values; None without one. The standard library can stop where it ends, but takes its time,
    and reads what we could not send on."""
    import json

    if len(text) > MAX_DOCUMENTS_CHARS:
        return None
    try:
        jsontext.require_parsable(text.encode("utf-8"))
        value, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    return value if jsontext.is_writable(value) else None


def _require_declared_output(result: Json, printed: Printed, output_problems: OutputProblems, words: Words) -> None:
    problems: Sequence[str] = ()
    if printed.is_blank:
        fault = "Tool output is empty for declared outputSchema"
    elif "structuredContent" not in result:
        fault = "Tool output is not valid JSON for declared outputSchema"
        stray = stray_in(printed.chunks, openers="{[")
        problems = [stray.shown()] if stray else ()
    else:
        problems = output_problems(result["structuredContent"])
        if not problems:
            if not result["content"]:
                twin = jsontext.dumps(result["structuredContent"]).decode("ascii")
                result["content"] = [{"type": "text", "text": twin}]
            return
        fault = "Tool output does not satisfy outputSchema"
    problems = ["".join(words().cleaned_output(problem)) for problem in problems]
    raise UnexpectedOutput(fault, problems=problems, more_text=printed.cleaned(words()))


class Stray(NamedTuple):
    """The first line that is not part of the JSON which a script printed. `echo "Loading ..."` before the result turns
    structured content into text, and the author wonders why."""

    line: int
    text: str

    def told(self) -> str:
        """For a log, which repeats nothing of a result."""
        return f"line {self.line} of the output is not JSON; {REMEDY}"

    def shown(self) -> str:
        """For a reader that gets the output anyway."""
        return f"line {self.line} of the output is not JSON ({self.text!r}); {REMEDY}"


def bad_byte_in(chunks: Sequence[bytes]) -> str | None:
    """Name the first byte that is not UTF-8, if it is near the start."""
    if all(map(bytes.isascii, chunks)):
        return None
    start = b"".join(chunks)[:MAX_STRAY_BYTES]
    try:
        getincrementaldecoder("utf-8")().decode(start, len(start) < MAX_STRAY_BYTES)
    except UnicodeDecodeError as error:
        line = start.count(b"\n", 0, error.start) + 1
        return f"0x{start[error.start]:02x} on line {line}"
    return None


def stray_in(chunks: Sequence[bytes], *, openers: str = "{") -> Stray | None:
    """What stands before the JSON; None if nothing does. `openers` are the characters with which JSON may begin that is
    meant as such. Only what is cheap to see is looked for: lines, and then one JSON value up to the end."""
    if sum(map(len, chunks)) > MAX_STRAY_BYTES:
        return None
    text = b"".join(chunks).decode("utf-8", "replace").rstrip()
    opener = next((each for each in openers if text.endswith(CLOSING[each])), None)
    at, left_chars = 0, MAX_STRAY_BYTES  # to parse all that is left takes some tens of milliseconds, and may be in vain
    for _ in range(MAX_STRAY_TRIES if opener else 0):
        at = text.find(f"\n{opener}", at) + 1
        left_chars -= len(text) - at
        if not at or left_chars < 0:
            return None
        if _is_json(text[at:]):
            return _first_line(text[:at])
    return None


def _first_line(before: str) -> Stray | None:
    lines = before.splitlines()
    first = next((number for number, line in enumerate(lines, 1) if line.strip()), None)
    if first is None or _is_json(before):
        return None  # several documents are another matter
    line = lines[first - 1].strip()
    return Stray(first, line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 3] + "...")


def _is_json(text: str) -> bool:
    try:
        jsontext.loads(text)
    except ValueError:
        return False
    return True
