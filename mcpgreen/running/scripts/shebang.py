"""Find the command that runs a script: what its first line asks for, and whether that is available.

The kernel says "no such file" of a script that is there when the interpreter is not; the reason is in the file.
"""

from __future__ import annotations

import os
import re

from mcpgreen.files.regular_files import without_waiting

MARK = b"#!"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_BYTES = 256  # the kernel reads no more
SHELL_SUFFIXES = (".sh", ".bash")
PLAIN_SHELL = "/bin/sh"
SHELLS = ("bash", "sh", "dash", "ash", "ksh", "mksh", "zsh")
SDK_SHELLS = ("bash", "sh")  # in which the SDK for shell works; in sh where that is bash
PYTHON_SUFFIX = ".py"
# By `env`, which looks on the PATH that the script has, and not on the server's own.
PYTHON = ("env", "python3")
# How files begin that can be run: scripts, ELF, the kinds of Mach-O, PE.
BEGINNINGS = (MARK, b"\x7fELF", b"\xfe\xed\xfa", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
_PYTHON = rb"[^\n]*(?:[/ \t](?:python|pypy)[0-9.]*|[/ \t]uv)\b"


def head_of(path: str, size: int = LINE_BYTES) -> bytes:
    """Return the beginning of a file, by default as much as the kernel reads; empty if it cannot be read."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            return file.read(size)
    except OSError:
        return b""


def command_of(path: str, head: bytes, *, is_executable: bool, is_described: bool = False) -> list[str] | None:
    """Return the command for a file with this head; None if it is not a script. Without the executable bit, a script is
    run by bash, or by what its first line asks for, as the kernel would read it. Python without a first line is run by
    the first `python3`; if it lacks the bit as well, it could be a module, unless it is described."""
    if path.endswith(PYTHON_SUFFIX) and head and not head.startswith(MARK) and (is_executable or is_described):
        return [*PYTHON, path]
    if is_executable:
        return [path]
    if path.endswith(SHELL_SUFFIXES):
        return ["bash", path]
    if not head.startswith(MARK):
        return None
    words = head[len(MARK) :].partition(b"\n")[0].strip().split(None, 1)
    return [*map(os.fsdecode, words or [b"bash"]), path]


def program_of(path: str, head: bytes) -> str:
    """Return the program that runs a script with this head, without its directory; empty if it is not known."""
    if not head.startswith(MARK):
        if path.endswith(PYTHON_SUFFIX):
            return PYTHON[-1]
        return "bash" if path.endswith(SHELL_SUFFIXES) else ""
    words = head[len(MARK) : LINE_BYTES].partition(b"\n")[0].decode("utf-8", "replace").split()
    names = [os.path.basename(word) for word in words if not word.startswith("-") and "=" not in word]
    if names and names[0] == "env":
        names = names[1:]
    return names[0] if names else ""


def may_use_shell_sdk(path: str) -> bool:
    """Tell whether a script is run by a shell in which the SDK for shell works."""
    return program_of(path, head_of(path)) in SDK_SHELLS


def runner_of(path: str) -> list[str]:
    """Return what runs an executable script without a `#!` line: bash or Python by its suffix, else sh."""
    if path.endswith(PYTHON_SUFFIX):
        return list(PYTHON)
    if path.endswith(SHELL_SUFFIXES):
        import shutil  # takes milliseconds that start-up does not have

        return [shutil.which("bash") or PLAIN_SHELL]
    return [PLAIN_SHELL]


def is_python(path: str, head: bytes) -> bool:
    """Tell whether a file that begins so is Python: by its first line, or by its name if it has none."""
    if not head.startswith(MARK):
        return path.endswith(PYTHON_SUFFIX)
    line = head[:LINE_BYTES]
    return (b"py" in line or b"uv" in line) and re.search(_PYTHON, line) is not None


def is_program(path: str, head: bytes) -> bool:
    """Tell whether a file with this head is meant to be run: the executable bit alone does not show it."""
    return path.endswith(SHELL_SUFFIXES) or head.startswith(BEGINNINGS)


def fault_of(path: str, *, search_path: str | None = None, shows_directory: bool = True) -> str | None:
    """Say why a script cannot be run as its first line asks, as the end of a sentence; None if it can.
    With a `search_path`, `env` has to find its program there. Without `shows_directory` a client may read it."""
    head = head_of(path)
    if head.startswith(BYTE_ORDER_MARK + MARK):
        return "begins with a byte order mark, so its shebang is not found, and sh runs it"
    if not head.startswith(MARK):
        return None
    line = head[len(MARK) :].partition(b"\n")[0]
    if line.endswith(b"\r"):
        return "has Windows line endings, so the interpreter in its shebang is not found"
    words = [os.fsdecode(word) for word in line.split()]
    if not words:
        return "has a shebang without an interpreter"
    if not os.path.exists(words[0]):
        shown = words[0] if shows_directory else os.path.basename(words[0])
        return f"needs the interpreter {shown}, which does not exist"
    if search_path is not None and os.path.basename(words[0]) == "env":
        import shutil  # takes milliseconds that start-up does not have

        program = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
        if program is not None and shutil.which(program, path=search_path) is None:
            return f"needs the interpreter {program}, which is not on the PATH"
    return None
