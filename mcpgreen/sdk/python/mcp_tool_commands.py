"""Run other programs. A part of `mcp_tool`, loaded on demand.

`CommandLine` takes the arguments of the call. No shell reads the words, and a client cannot add options: a value that
begins with `-` is refused where the command could take it for an option. `run_with_progress` reports what a program
prints, `with_retry` tries again, and `download_safe` leaves fetching to the https provider of the server, which checks
hosts, addresses, redirects, size and time.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from subprocess import DEVNULL, PIPE, CompletedProcess, Popen
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn, TypeVar, overload

import mcp_tool

__all__ = ["CommandLine", "download_safe", "download_safe_or_fail", "run_with_progress", "with_retry"]

Json = dict[str, Any]
T = TypeVar("T")

LIMIT_BYTES = 1_000_000  # of the output of the command
STDERR_BYTES = 4000  # of the end of its stderr
MAX_COUNT = 10
CHUNK_BYTES = 65536
TASK_RUNNERS = ("make", "gmake", "just", "npm", "pnpm", "yarn", "bun")  # they pass their words to a shell
PLACE = "{}"
ALL_PLACES = "{}..."
EXTRACTS = ("json", "match1", "ratio")
CANCELLED = 130
WORKING = "Working..."
MAX_MESSAGE_CHARS = 1000
FINAL_STATUSES = (0, 1, 2)  # success, failure, wrong usage: another try would end the same way
MAX_TIMEOUT_SECS = 60
# The exit statuses of a provider, and whether another try may help.
PROVIDER_ENDINGS = {
    4: ("host_blocked", False),
    5: ("network_error", True),
    6: ("size_exceeded", False),
    7: ("redirect", False),
}


class CommandLine:
    """The words of a command. Each method takes the name of an argument of the call, and adds words if it is given."""

    def __init__(self, *words: str) -> None:
        self.words = list(words)
        self._stdin = ""
        self._is_open = True  # a word that begins with `-` may still be an option
        self._has_pending_end = False
        self._absent = ""  # an operand that is missing before the next one

    def flag(self, name: str, word: str, off: str = "") -> None:
        """Add the word if the argument is true. If it is false, add `off` unless that is empty."""
        value = mcp_tool.arg(name)
        if value is True:
            self.words.append(word)
        elif value is False and off:
            self.words.append(off)

    def count(self, name: str, word: str) -> None:
        """Add the word as many times as the argument says."""
        self.words += [word] * mcp_tool.arg_int(name, 0, min=0, max=MAX_COUNT)

    def option(self, name: str, *words: str, bare: str = "") -> None:
        """Add words with the value in them: `"--size={}"`, or `"-s", "{}"`. A list adds them for each of its items.

        Several `{}` take the items of a list one after the other, and `"{}..."` takes all of them. For an empty value,
        `bare` is added instead unless it is empty."""
        value = mcp_tool.arg(name)
        if value is None or value == []:
            return
        if value == "" and bare:
            self.words.append(bare)
            return
        places = words.count(PLACE)
        if places > 1:
            rows = value if value and all(isinstance(item, list) for item in value) else [value]
            for row in map(_items, rows):
                if len(row) != places:
                    _end(1, f"{name} needs {places} values.")
                rest = iter(row)
                self.words += [self._value(name, next(rest)) if word == PLACE else word for word in words]
        elif ALL_PLACES in words:
            for word in words:
                self.words += [self._value(name, item) for item in _items(value)] if word == ALL_PLACES else [word]
        else:
            for item in _items(value):
                self.words += [self._filled(name, word, item) for word in words]

    def operand(self, name: str) -> None:
        """Add the value, or all items of a list. Refused are a value that begins with `-` before the end of options,
        and a value after a missing operand, because the command would take it for that operand."""
        value = mcp_tool.arg(name)
        if value is None or value == []:
            self._absent = self._absent or name
            return
        if self._absent:
            _end(1, f"{name} can only be given together with {self._absent}, which must come before it.")
        if self._has_pending_end:
            self.words.append("--")
            self._has_pending_end, self._is_open = False, False
        self.words += [self._operand(name, item) for item in _items(value)]

    def end_of_options(self) -> None:
        """Add `--` before the next operand. No word after it is an option."""
        self._has_pending_end = True
        self._absent = ""

    def stdin(self, name: str) -> None:
        """Pass this argument as standard input, which is empty otherwise."""
        self._stdin = str(mcp_tool.arg(name, ""))

    def run(self, limit_bytes: int = LIMIT_BYTES, fine: Mapping[int, str] = {}) -> NoReturn:
        """Run the command, print its output as the result of the tool, and end the script with its status; with 0 if
        the status is in `fine`, which has the result for a command that prints nothing then."""
        is_runner = os.path.basename(self.words[0]) in TASK_RUNNERS
        if is_runner and any(ord(char) < 32 or 127 <= ord(char) < 160 for word in self.words for char in word):
            _end(1, "A value has a newline or another control character, which a shell could mistake for a command.")
        with TemporaryFile() if self._stdin else open(os.devnull, "w+b") as stdin:
            stdin.write(self._stdin.encode("utf-8", "replace"))
            stdin.seek(0)
            try:
                process = Popen(self.words, stdin=stdin, stdout=PIPE, stderr=PIPE)
            except FileNotFoundError:
                _end(127, f"{self.words[0]} cannot be found. Is it installed, and on the server's PATH?")
            except (OSError, ValueError) as error:  # not executable, too long, or with a NUL
                _end(126, f"{self.words[0]} cannot be started: {getattr(error, 'strerror', None) or error}")
        printed, complaint, is_too_much = _output(process, limit_bytes)
        if is_too_much:
            process.kill()
        status = process.wait()
        status = 128 - status if status < 0 else status
        name, text = os.path.basename(self.words[0]), printed.decode("utf-8", "replace")
        sys.stderr.write(complaint.decode("utf-8", "backslashreplace"))
        end = complaint.decode("utf-8", "replace").strip()
        if is_too_much:
            _end(1, f"{name} was stopped: it printed more than {limit_bytes} bytes.", end, text)
        if status and status not in fine:
            _end(status, f"{name} failed with exit status {status}.", end, text)
        mcp_tool.result(text if text.strip() else end or fine.get(status, "It printed nothing."))
        raise SystemExit(0)

    def _filled(self, name: str, word: str, item: object) -> str:
        if word == PLACE:
            return self._value(name, item)
        text = _text(item)
        if not text and word.endswith(PLACE) and word[-3:-2] not in ("=", ","):
            _end(1, f"{name} must not be empty.")  # the command would take the next word as the value
        return word.replace(PLACE, text)

    def _value(self, name: str, item: object) -> str:
        """Return a value that is a word of its own. A negative number is allowed."""
        return self._operand(name, item) if isinstance(item, str) else _text(item)

    def _operand(self, name: str, item: object) -> str:
        text = _text(item)
        if self._is_open and text.startswith("-") and text != "-":
            shown = text if len(text) <= 60 else f"{text[:60]}..."
            _end(1, f"{name} must not begin with '-', so that the command cannot mistake it for an option: {shown}")
        return text


def _end(status: int, reason: str, complaint: str = "", printed: str = "") -> NoReturn:
    """Print a failed result for the model, and end the script."""
    reason = f"{reason}\n{complaint}" if complaint else reason
    mcp_tool.result(reason, *([printed] if printed.strip() else []), is_error=True)
    raise SystemExit(status)


def _output(process: Popen[bytes], limit_bytes: int) -> tuple[bytes, bytes, bool]:
    """Return the output up to the limit, the end of stderr, and whether there was more output."""
    assert process.stdout is not None and process.stderr is not None
    printed, complaint = bytearray(), bytearray()
    with process.stdout, process.stderr, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, printed)
        selector.register(process.stderr, selectors.EVENT_READ, complaint)
        while selector.get_map():
            for key, _ in selector.select():
                chunk = os.read(key.fd, CHUNK_BYTES)
                if not chunk:
                    selector.unregister(key.fileobj)
                key.data.extend(chunk)
            del complaint[:-STDERR_BYTES]
            if len(printed) > limit_bytes:
                return bytes(printed[:limit_bytes]), bytes(complaint), True
    return bytes(printed), bytes(complaint), False


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():  # JSON does not tell 5 from 5.0
        value = int(value)
    return value if isinstance(value, str) else str(value)


def run_with_progress(
    command: Sequence[str],
    pattern: str,
    *,
    extract: str = "match1",
    total: float | None = None,
    progress_file: str = "",
    stdout_file: str = "",
    stderr_file: str = "",
    interval: float = 0.05,
    quiet: bool = False,
    dry_run: bool = False,
) -> CompletedProcess[str]:
    """Run a command. Lines of its stderr, or of a file, that match are progress. The status is 130 after a cancel."""
    is_list = isinstance(command, Sequence) and not isinstance(command, (str, bytes))
    problems = {
        "the command must be a list of a program and its arguments": not command or not is_list,
        "a pattern is required": not pattern,
        f"unknown extract {extract!r}; use one of {', '.join(EXTRACTS)}": extract not in EXTRACTS,
        "total must be positive": total is not None and not total > 0,
        "interval must be positive": not interval > 0,
    }
    for problem, is_so in problems.items():
        if is_so:
            raise ValueError(f"run_with_progress: {problem}")
    search = re.compile(pattern).search
    if mcp_tool.is_cancelled():
        return CompletedProcess(command, CANCELLED, "", "")
    last = 0.0
    # Files instead of pipes, so that the command never waits for a reader. Temporary files have no names to clean up.
    with (
        _opened(stdout_file) as out,
        TemporaryFile() as err,
        _opened(progress_file or os.devnull) as followed,
        _opened(stderr_file) as others,
    ):
        # Children inherit ignored signals, and this one must end on SIGTERM.
        is_ignored = signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        preexec = partial(signal.signal, signal.SIGTERM, signal.SIG_DFL) if is_ignored else None
        process = Popen(command, stdout=out, stderr=err, start_new_session=True, preexec_fn=preexec)
        try:
            for line in _lines(process, followed if progress_file else err, interval):
                if match := search(line):
                    last = _report(*_reading(match, extract, total), last=last, dry_run=dry_run)
                    continue
                if not quiet:
                    mcp_tool._write_debug(line)
                if not progress_file:
                    others.write(f"{line}\n".encode("utf-8", "replace"))
        finally:
            status = _stop(process)
        if progress_file:
            others.write(_content(err))
            for line in [] if quiet else _content(err).decode("utf-8", "replace").splitlines():
                mcp_tool._write_debug(line)
        others.flush()
        texts = [
            "" if name else _content(file).decode("utf-8", "replace")
            for name, file in ((stdout_file, out), (stderr_file, others))
        ]
    return CompletedProcess(command, status, *texts)


def _report(percent: float | None, message: str, *, last: float, dry_run: bool) -> float:
    """Report progress to the client, or with `dry_run` print it on stderr. Return the last percentage."""
    if not dry_run:
        # Without a number, repeat the last one: the server extends the timeout for each report.
        mcp_tool.progress(last if percent is None else percent, message)
    elif percent is not None:
        shown = {"progress": int(max(0, min(percent, 100))), "message": message}
        print(json.dumps(shown), file=sys.stderr, flush=True)
    return last if percent is None else percent


def _opened(path: str) -> IO[bytes]:
    """Return an empty file of that name, or a temporary file."""
    return open(path, "w+b") if path else TemporaryFile()


def _content(file: IO[bytes]) -> bytes:
    # The command shares the position of the file, so do not move it.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _lines(process: Popen[bytes], source: IO[bytes], interval: float) -> Iterator[str]:
    offset, rest, is_over = 0, b"", False
    while not is_over:
        time.sleep(interval)
        # Checked before reading, so that the last line is not missed.
        is_over = process.poll() is not None or mcp_tool.is_cancelled()
        data = os.pread(source.fileno(), max(0, os.fstat(source.fileno()).st_size - offset), offset)
        offset += len(data)
        *lines, rest = (rest + data + b"\n" * is_over).replace(b"\r", b"\n").split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in lines if line)


def _reading(match: re.Match[str], extract: str, total: float | None) -> tuple[float | None, str]:
    """Return the progress in a matching line, or None if it has no usable number; and its message."""
    try:
        if extract == "json":
            event: dict[str, Any] = json.loads(match.string)
            return float(event["progress"]), str(event.get("message") or WORKING)
        whole = float(match[2] if extract == "ratio" else total or 100)
        return round(100 * float(match[1]) / whole, 6), match.string[:MAX_MESSAGE_CHARS]
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None, WORKING if extract == "json" else match.string[:MAX_MESSAGE_CHARS]


def _stop(process: Popen[bytes]) -> int:
    """Stop the process group if it still runs: SIGTERM, and a second later SIGKILL. Return the exit status."""
    try:
        for number in [15, *[0] * 20, 9] if mcp_tool.is_cancelled() or process.poll() is None else []:
            os.killpg(process.pid, number)
            time.sleep(0.05)
            process.poll()
    except OSError:
        pass  # the group has ended
    status = process.wait()
    return CANCELLED if mcp_tool.is_cancelled() else status


@overload
def with_retry(
    attempts: int, delay_secs: float, operation: Sequence[str], *, retry_on: tuple[type[Exception], ...] = ...
) -> CompletedProcess[str]: ...
@overload
def with_retry(
    attempts: int, delay_secs: float, operation: Callable[[], T], *, retry_on: tuple[type[Exception], ...] = ...
) -> T: ...
def with_retry(
    attempts: int,
    delay_secs: float,
    operation: Sequence[str] | Callable[[], Any],
    *,
    retry_on: tuple[type[Exception], ...] = (OSError,),
) -> Any:
    """Run a program, or call a function, until it succeeds or `attempts` are used up. Return the last outcome.

    A program is tried again after any exit status except 0, 1 and 2; a function after the exceptions in `retry_on`. The
    delay doubles each time, and a random time of up to half of it is added.
    """
    if attempts < 1 or delay_secs < 0:
        raise ValueError("with_retry: attempts must be at least 1, and delay not negative")
    while True:
        attempts -= 1
        if callable(operation):
            try:
                return operation()
            except retry_on:
                if not attempts or mcp_tool.is_cancelled():
                    raise
        else:
            ended = subprocess.run(operation, stdin=DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
            if ended.returncode in FINAL_STATUSES or not attempts or mcp_tool.is_cancelled():
                return ended
        _pause(delay_secs)
        delay_secs *= 2


def download_safe(
    url: str,
    out: str | os.PathLike[str],
    *,
    allow: Iterable[str] = (),
    deny: Iterable[str] = (),
    max_bytes: int | None = None,
    timeout: float | None = None,
    user_agent: str | None = None,
    retry: int = 1,
    retry_delay: float = 1.0,
) -> Json:
    """Fetch an https URL into a file: {"success": True, "bytes", "path"}, or {"success": False, "error"}."""
    problems = {
        "max_bytes must be positive.": max_bytes is not None and max_bytes < 1,
        f"timeout must be positive, and at most {MAX_TIMEOUT_SECS} seconds.": timeout is not None
        and not 0 < timeout <= MAX_TIMEOUT_SECS,
        "retry must be at least 1, and retry_delay not negative.": retry < 1 or not retry_delay >= 0,
    }
    for problem, is_so in problems.items():
        if is_so:
            return _failure("invalid_params", problem)
    if not isinstance(url, str) or not url.lower().startswith("https://"):
        return _failure("invalid_url", "The URL must begin with https://.")
    here = os.path.dirname(os.path.abspath(__file__))
    homes = filter(None, (os.environ.get("MCPBASH_HOME"), os.path.dirname(os.path.dirname(here))))
    providers = (os.path.join(home, "providers", "https.sh") for home in homes)
    provider = next(filter(os.path.isfile, providers), None)
    if provider is None:
        return _failure("provider_unavailable", "The https provider is not installed with this SDK.")
    # The operator's denied hosts stay denied.
    denied = os.environ.get("MCPGREEN_HTTPS_DENY_HOSTS") or os.environ.get("MCPBASH_HTTPS_DENY_HOSTS") or ""
    # An empty entry allows no host, and an empty setting would be none.
    allowed = "".join(f",{host}" for host in _hosts(allow))
    settings = {
        "ALLOW_HOSTS": allowed,
        "ALLOW_ALL": "false" if allowed else "",
        "DENY_HOSTS": " ".join([denied, *_hosts(deny)]).strip(),
        "MAX_BYTES": max_bytes,
        "TIMEOUT_SECS": timeout,
        "USER_AGENT": user_agent,
    }
    env = {**os.environ, **{f"MCPGREEN_HTTPS_{name}": str(value) for name, value in settings.items() if value}}
    target = os.fspath(out)
    draft = f"{target}.{os.urandom(8).hex()}.part"
    try:
        for attempt in range(1, retry + 1):
            with open(draft, "xb" if attempt == 1 else "wb") as file:
                ended = subprocess.run(["sh", provider, url], env=env, stdin=DEVNULL, stdout=file, stderr=PIPE)
            if ended.returncode == 0:
                size = os.path.getsize(draft)
                os.replace(draft, target)
                return {"success": True, "bytes": size, "path": target}
            kind, may_help = PROVIDER_ENDINGS.get(ended.returncode, ("provider_error", True))
            if not may_help or attempt == retry or mcp_tool.is_cancelled():
                break
            _pause(retry_delay * 2 ** (attempt - 1))
        text = ended.stderr.decode("utf-8", "replace").strip()
        if kind == "redirect":
            location = text.partition("\n")[0].removeprefix("redirect:")
            return _failure(kind, "The URL has moved; redirects are not followed.", location=location)
        return _failure(kind, text or f"The https provider exited with status {ended.returncode}.")
    except OSError as error:
        return _failure("write_error", f"{target} cannot be written: {error.strerror}.")
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


def download_safe_or_fail(url: str, out: str | os.PathLike[str], **options: Any) -> str:
    """Like `download_safe`, but return the path, or end the call with -32602."""
    outcome = download_safe(url, out, **options)
    if not outcome["success"]:
        mcp_tool.fail_invalid_args(f"Download failed ({outcome['error']['type']}): {outcome['error']['message']}")
    return str(outcome["path"])


def _pause(secs: float) -> None:
    from random import random

    time.sleep(secs * (1 + random() / 2))


def _hosts(hosts: Iterable[str]) -> list[str]:
    return [hosts] if isinstance(hosts, str) else list(hosts)


def _failure(kind: str, message: str, **more: str) -> Json:
    return {"success": False, "error": {"type": kind, "message": message, **more}}
