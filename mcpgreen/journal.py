"""What the operator reads: one line an event, on stderr.

Not `logging`: that would cost 15 ms before the first answer, and a blocking write to a stderr pipe that nobody drains
would stop every greenlet. Here a line that does not fit is dropped. Other formats and files are in `logs`, which is
loaded when a setting asks for it.

Rule: who would have to put a line together first asks whether anybody wants it (`tells_calls` and its neighbours): at
the default level a call that succeeds costs one such question.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    Fields = Mapping[str, Any]
    Output = Callable[[str, str, str, Fields], None]  # level, message, what follows it in a line of text, fields

    class Writer(Protocol):
        def __call__(self, text: str, *values: Any) -> None: ...


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

MAX_CHARS = 16_384  # of one line: parts of it may come from clients and scripts

NO_FIELDS: Fields = {}

_threshold = LEVELS.index("info")
_fd = 2
_is_torn = False  # whether stderr took only a part of the last line

# Whether calls that fail, all calls, and every frame have a line each. Nobody wants that of a server inside another
# program or a command, so it takes `set_level`.
tells_failures = tells_calls = tells_frames = False


def set_level(level: str) -> None:
    global _threshold, tells_failures, tells_calls, tells_frames
    _threshold = LEVELS.index(level)
    tells_failures, tells_calls, tells_frames = (
        _threshold <= LEVELS.index(least) for least in ("warning", "info", "debug")
    )


def send_to(*outputs: Output) -> None:
    """Where lines go from now on."""
    global _outputs
    _outputs = outputs


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


def in_one_line(value: Any) -> Any:
    """What a client or a script chose must not look like a line of ours, nor tell a terminal what to do."""
    if not isinstance(value, (str, BaseException)):
        return value
    text = str(value)
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def record(level: str, message: str, rest: str = "", fields: Fields = NO_FIELDS) -> None:
    """One line, if this level is wanted: all of it is printable by now. A line of text ends with `rest`; a program that
    reads lines of JSON finds the same, and more, in the fields."""
    if LEVELS.index(level) >= _threshold:
        for output in _outputs:
            output(level, message, rest, fields)


def as_text(level: str, message: str, rest: str, mark: str = "mcpgreen") -> bytes:
    line = f"{mark}: {level}: {message}{rest}"
    line = f"{line[:MAX_CHARS]}... (cut)\n" if len(line) > MAX_CHARS else f"{line}\n"
    return line.encode("utf-8", "backslashreplace")


def write(line: bytes) -> None:
    """To stderr, as far as that takes it."""
    global _is_torn
    if _is_torn:
        line = b"\n" + line
    try:
        _is_torn = os.write(_fd, line) < len(line)
    except OSError:
        return  # stderr is full or closed; diagnostics must never cost us the protocol


def to_stderr(level: str, message: str, rest: str, fields: Fields) -> None:
    write(as_text(level, message, rest))


_outputs: tuple[Output, ...] = (to_stderr,)


def _writer(level: str) -> Writer:
    rank = LEVELS.index(level)

    def tell(text: str, *values: Any) -> None:
        if rank >= _threshold:
            record(level, text % tuple(map(in_one_line, values)) if values else text)

    return tell


debug, info, warning, error, critical = map(_writer, ("debug", "info", "warning", "error", "critical"))
