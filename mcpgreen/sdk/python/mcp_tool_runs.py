"""Run a program and report the progress that it prints. A part of `mcp_tool`, loaded on demand."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from subprocess import CompletedProcess, Popen
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import mcp_tool

__all__ = ["run_with_progress"]

EXTRACTS = ("json", "match1", "ratio")
CANCELLED = 130
WORKING = "Working..."
MAX_MESSAGE_CHARS = 1000


class _Reading(NamedTuple):
    """The progress in a matching line; `percent` is None if it has no usable number."""

    percent: float | None
    message: str


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
    problem = _misuse(command, pattern, extract, total, interval)
    if problem:
        raise ValueError(f"run_with_progress: {problem}")
    search = re.compile(pattern).search
    if mcp_tool.is_cancelled():
        return CompletedProcess(command, CANCELLED, "", "")
    reporter = _Reporter(dry_run=dry_run)
    # Files instead of pipes, so that the command never waits for a reader. Temporary files have no names to clean up.
    with (
        _opened(stdout_file) as out,
        TemporaryFile() as err,
        _opened(progress_file or os.devnull) as followed,
        _opened(stderr_file) as others,
    ):
        # Children inherit ignored signals, and this one must end on SIGTERM.
        preexec = _restore_sigterm if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN else None
        process = Popen(command, stdout=out, stderr=err, start_new_session=True, preexec_fn=preexec)
        try:
            for line in _lines(process, followed if progress_file else err, interval):
                if match := search(line):
                    reporter.report(_reading(match, extract, total))
                    continue
                if not quiet:
                    mcp_tool.debug(line)
                if not progress_file:
                    others.write(f"{line}\n".encode("utf-8", "replace"))
        finally:
            status = _stop(process)
        if progress_file:
            others.write(_content(err))
            for line in [] if quiet else _content(err).decode("utf-8", "replace").splitlines():
                mcp_tool.debug(line)
        others.flush()
        texts = [
            "" if name else _content(file).decode("utf-8", "replace")
            for name, file in ((stdout_file, out), (stderr_file, others))
        ]
    return CompletedProcess(command, status, *texts)


def _restore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _misuse(command: Sequence[str], pattern: str, extract: str, total: float | None, interval: float) -> str:
    if not command or isinstance(command, (str, bytes)) or not isinstance(command, Sequence):
        return "the command must be a list of a program and its arguments"
    if not pattern:
        return "a pattern is required"
    if extract not in EXTRACTS:
        return f"unknown extract {extract!r}; it is one of {', '.join(EXTRACTS)}"
    if total is not None and not total > 0:
        return "total must be positive"
    return "" if interval > 0 else "interval must be positive"


class _Reporter:
    """Reports progress to the client, or with `dry_run` prints it on stderr."""

    def __init__(self, *, dry_run: bool) -> None:
        self._is_dry = dry_run
        self._last = 0.0

    def report(self, reading: _Reading) -> None:
        if self._is_dry:
            if reading.percent is not None:
                percent = int(max(0, min(reading.percent, 100)))
                print(json.dumps({"progress": percent, "message": reading.message}), file=sys.stderr, flush=True)
            return
        # Without a number, repeat the last one: the server extends the timeout for each report.
        self._last = self._last if reading.percent is None else reading.percent
        mcp_tool.progress(self._last, reading.message)


def _opened(path: str) -> IO[bytes]:
    """An empty file of that name, or a temporary file."""
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


def _reading(match: re.Match[str], extract: str, total: float | None) -> _Reading:
    try:
        if extract == "json":
            event: dict[str, Any] = json.loads(match.string)
            return _Reading(float(event["progress"]), str(event.get("message") or WORKING))
        whole = float(match[2] if extract == "ratio" else total or 100)
        return _Reading(round(100 * float(match[1]) / whole, 6), match.string[:MAX_MESSAGE_CHARS])
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return _Reading(None, WORKING if extract == "json" else match.string[:MAX_MESSAGE_CHARS])


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
