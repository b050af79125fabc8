"""Lines for the operator."""

from __future__ import annotations

import os
import sys

import pytest

from tests.support.programs import completed
from tests.support.wire import clean_environment

HOSTILE = "a\nmcpgreen: error: forged\x1b[2J\r\u2028é"


def said(program: str) -> str:
    done = completed(
        [sys.executable, "-c", f"from mcpgreen import journal\n{program}"],
        env=clean_environment(),
        check=True,
        encoding=None,
    )
    return done.stderr.decode()


@pytest.mark.parametrize("value", [repr(HOSTILE), f"ValueError({HOSTILE!r})"], ids=["text", "exception"])
def test_what_others_chose_stays_in_its_line_and_commands_no_terminal(value: str) -> None:
    line = said(f"journal.warning('no file %s (%d)', {value}, 5)")

    assert line == f"mcpgreen: warning: no file a\\nmcpgreen: error: forged\\x1b[2J\\r\\u2028é (5){os.linesep}"


def test_each_line_of_a_traceback_is_marked_as_ours() -> None:
    lines = said(
        "try:\n    raise ValueError('x\\ny')\nexcept ValueError:\n    journal.exception('failed')"
    ).splitlines()

    assert lines[0] == "mcpgreen: error: failed"
    assert lines[1].startswith("mcpgreen: error: | Traceback")
    assert all(line.startswith("mcpgreen: error: ") for line in lines)


def test_a_line_that_was_written_in_part_does_not_swallow_the_next() -> None:
    """Half a line, and the next one behind it, is no line of JSON any more."""
    program = (
        "import fcntl, os\n"
        "read_end, write_end = os.pipe()\n"
        "fcntl.fcntl(write_end, 1031, 4096)\n"
        "os.set_blocking(write_end, False)\n"
        "journal._fd = write_end\n"
        "journal.error('x' * 5000)\n"
        "os.read(read_end, 4096)\n"
        "journal.error('next')\n"
        "os.write(2, os.read(read_end, 4096))"
    )

    assert said(program).endswith("\nmcpgreen: error: next\n")
