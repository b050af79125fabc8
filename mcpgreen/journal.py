"""What the operator reads: one line an event, on stderr.

Not `logging`: that would cost 15 ms before the first answer, and a blocking write to a stderr pipe that nobody drains
would stop every greenlet. Here a line that does not fit is dropped.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Writer(Protocol):
        def __call__(self, text: str, *values: Any) -> None: ...


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

MAX_CHARS = 16_384  # of one line: parts of it may come from clients and scripts

_threshold = LEVELS.index("info")
_fd = 2


def set_level(level: str) -> None:
    global _threshold
    _threshold = LEVELS.index(level)


def never_block() -> None:
    """Write through a private, non-blocking description of stderr from now on, where the system offers one.

    The flag would otherwise change the description that we share with whoever started us. A plain file never blocks,
    and there others write where the shared description says: a private one would write at the same place.
    """
    global _fd
    try:
        if stat.S_ISREG(os.fstat(2).st_mode):
            return
        _fd = os.open("/proc/self/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        _fd = 2


def exception(text: str, *values: Any) -> None:
    """As `error`, with the traceback of the exception being handled."""
    import traceback

    error(text, *values)
    for line in traceback.format_exc().rstrip().splitlines():
        error("| %s", line)


def _in_one_line(value: Any) -> Any:
    """What a client or a script chose must not look like a line of ours, nor tell a terminal what to do."""
    if not isinstance(value, (str, BaseException)):
        return value
    text = str(value)
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _writer(level: str) -> Writer:
    rank = LEVELS.index(level)

    def write(text: str, *values: Any) -> None:
        if rank < _threshold:
            return
        line = f"mcpgreen: {level}: {text % tuple(map(_in_one_line, values)) if values else text}"
        line = f"{line[:MAX_CHARS]}... (cut)\n" if len(line) > MAX_CHARS else f"{line}\n"
        try:
            os.write(_fd, line.encode("utf-8", "backslashreplace"))
        except OSError:
            return  # stderr is full or closed; diagnostics must never cost us the protocol

    return write


debug, info, warning, error, critical = map(_writer, ("debug", "info", "warning", "error", "critical"))
