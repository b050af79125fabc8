"""The log for the operator: one line per event, on stderr.

It does not use `logging`: a blocking write to a full stderr pipe would stop every greenlet. Here a line that does not
fit is dropped. Other formats and files are in `logs`, which is loaded when a setting asks for it.

Rule: code that has to compose a line first checks whether the line is wanted (`tells_calls` and the like), so that at
the default level a call that succeeds costs one check.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping

Fields = Mapping[str, object]
Output = Callable[[str, str, str, Fields], None]  # level, message, what follows it in a line of text, fields
Writer = Callable[..., None]  # takes a string, and the values for its placeholders


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

MAX_CHARS = 16_384  # of one line: parts of it may come from clients and scripts

NO_FIELDS: Fields = {}

_threshold = LEVELS.index("info")
_fd = 2
_is_torn = False  # stderr took only a part of the last line

# Whether failed calls, all calls, and all frames have a line each. Off until `set_level`, because a server inside
# another program or a command must not write them.
tells_failures = tells_calls = tells_frames = False


def set_level(level: str) -> None:
    global _threshold, tells_failures, tells_calls, tells_frames
    _threshold = LEVELS.index(level)
    tells_failures, tells_calls, tells_frames = (
        _threshold <= LEVELS.index(least) for least in ("warning", "info", "debug")
    )


def send_to(*outputs: Output) -> None:
    """Send lines to these outputs from now on."""
    global _outputs
    _outputs = outputs


def never_block() -> None:
    """Write through a private, non-blocking description of stderr from now on, where the system offers one.

    Otherwise the flag would change the description that we share with the process that started us. A plain file never
    blocks, and a private description of it would overwrite what other processes write.
    """
    global _fd
    try:
        if stat.S_ISREG(os.fstat(2).st_mode):
            return
        _fd = os.open("/proc/self/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        _fd = 2


def exception(text: str, *values: object) -> None:
    """As `error`, with the traceback of the exception being handled."""
    import traceback

    error(text, *values)
    for line in traceback.format_exc().rstrip().splitlines():
        error("| %s", line)


def in_one_line(text: str) -> str:
    """Escape text from a client or script, so that it neither looks like another line nor controls a terminal."""
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def cut(text: str, limit_chars: int) -> str:
    return text if len(text) <= limit_chars else f"{text[:limit_chars]}... (cut)"


def record(level: str, message: str, rest: str = "", fields: Fields = NO_FIELDS) -> None:
    """Write one line, if its level is wanted. All of it must be printable. A line of text ends with `rest`; a line of
    JSON has the same, and more, as fields."""
    if LEVELS.index(level) >= _threshold:
        for output in _outputs:
            output(level, message, rest, fields)


def as_text(level: str, message: str, rest: str, mark: str = "mcpgreen") -> bytes:
    line = cut(f"{mark}: {level}: {message}{rest}", MAX_CHARS)
    return f"{line}\n".encode("utf-8", "backslashreplace")


def write(line: bytes) -> None:
    """Write to stderr, as far as it takes the line."""
    global _is_torn
    if _is_torn:
        line = b"\n" + line
    try:
        _is_torn = os.write(_fd, line) < len(line)
    except OSError:
        return  # stderr is full or closed; that must not disturb the protocol


def to_stderr(level: str, message: str, rest: str, fields: Fields) -> None:
    write(as_text(level, message, rest))


_outputs: tuple[Output, ...] = (to_stderr,)


def _printable(value: object) -> object:
    return in_one_line(str(value)) if isinstance(value, (str, BaseException)) else value


def _writer(level: str) -> Writer:
    rank = LEVELS.index(level)

    def tell(text: str, *values: object) -> None:
        if rank >= _threshold:
            record(level, text % tuple(map(_printable, values)) if values else in_one_line(text))

    return tell


debug, info, warning, error, critical = map(_writer, ("debug", "info", "warning", "error", "critical"))
