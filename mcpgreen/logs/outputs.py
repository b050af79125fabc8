"""Where lines of the journal go by the settings `log_format` and `log_file`, and how they are written there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from mcpgreen import journal
from mcpgreen.logs.log_file import LogFile
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext


def set_up(settings: Settings, root: str) -> Callable[[], None]:
    """Send the journal where the settings say. What is returned is to be called at the end of the process."""
    is_json = settings.log_format == "json"
    to_stderr: journal.Output = _json_to_stderr if is_json else journal.to_stderr
    if not settings.log_file:
        journal.send_to(to_stderr)
        return lambda: None
    line_of = json_line if is_json else dated_line
    file = LogFile(
        os.path.join(root, settings.log_file),
        max_bytes=settings.log_file_max_bytes,
        keep=settings.log_file_keep,
        tell=lambda text: to_stderr("warning", journal.in_one_line(text), "", journal.NO_FIELDS),
        gap=lambda lines: line_of("warning", f"{lines} lines are missing here", "", journal.NO_FIELDS),
    )

    def to_file(level: str, message: str, rest: str, fields: journal.Fields) -> None:
        file.write(line_of(level, message, rest, fields))

    journal.send_to(to_stderr, to_file)
    return file.close


def json_line(level: str, message: str, rest: str, fields: journal.Fields) -> bytes:
    """One object. What a line of text has behind the message is among the fields."""
    common = {"time": _now(), "level": level, "pid": os.getpid(), "message": message[: journal.MAX_CHARS]}
    try:
        return jsontext.dumps({**common, **fields}) + b"\n"
    except ValueError:  # a field that JSON cannot express, such as an id of a hundred digits
        return jsontext.dumps({**common, **{name: str(value) for name, value in fields.items()}}) + b"\n"


def dated_line(level: str, message: str, rest: str, fields: journal.Fields) -> bytes:
    """As on stderr, with the time: there it is added by the program that reads."""
    return journal.as_text(level, message, rest, mark=f"{_now()} mcpgreen[{os.getpid()}]")


def _json_to_stderr(level: str, message: str, rest: str, fields: journal.Fields) -> None:
    journal.write(json_line(level, message, rest, fields))


def _now() -> str:
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
