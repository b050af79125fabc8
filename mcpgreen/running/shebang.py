"""What the first line of a script asks for, and whether it can be had.

The kernel says "no such file" of a script that is there when the interpreter is not; the reason is in the file.
"""

from __future__ import annotations

import os
import shutil

from mcpgreen.regular_files import without_waiting

MARK = b"#!"
LINE_BYTES = 256  # the kernel reads no more


def fault_of(path: str, *, search_path: str | None = None) -> str | None:
    """Why a script cannot be run as its first line asks, for a sentence about the file; None if that is not the reason.

    With a `search_path` it is also said of a program that `env` would not find there."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            head = file.read(LINE_BYTES)
    except OSError:
        return None
    if not head.startswith(MARK):
        return None
    line = head[len(MARK) :].partition(b"\n")[0]
    if line.endswith(b"\r"):
        return "has the line ends of Windows, of which the first is taken for a part of the interpreter's name"
    words = [os.fsdecode(word) for word in line.split()]
    if not words:
        return "names no interpreter in its first line"
    if not os.path.exists(words[0]):
        return f"is for the interpreter {words[0]}, which does not exist"
    if search_path is not None and os.path.basename(words[0]) == "env":
        program = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
        if program is not None and shutil.which(program, path=search_path) is None:
            return f"is for the interpreter {program}, which is not on the PATH"
    return None
