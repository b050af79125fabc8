"""Which interpreter a script asks for, if that is a Python whose start can be spared.

Only a first line that names a Python, directly or by `env`, and nothing else. Options, other programs in between
(`uv run`) and variables that make a start differ are left to a fresh start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mcpgreen.files.regular_files import without_waiting
from mcpgreen.running.scripts.shebang import LINE_BYTES, MARK

if TYPE_CHECKING:
    from mcpgreen.running.processes.run import Script

# The variables that a helper is started with: what the start of an interpreter, its libraries and usual packages depend
# on. All scripts that it forks have them in memory, so there is none here that may hold a secret, or belongs to a call.
LASTING = frozenset(
    b"PATH HOME USER LOGNAME SHELL LANG LANGUAGE LOCPATH TZ TZDIR TMPDIR TMP TEMP VIRTUAL_ENV CONDA_PREFIX "
    b"CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION GLIBC_TUNABLES OPENSSL_CONF OPENSSL_MODULES COVERAGE_PROCESS_START "
    b"OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS MPLBACKEND MPLCONFIGDIR".split()
)
LASTING_PREFIXES = (b"PYTHON", b"LC_", b"LD_", b"MALLOC_", b"XDG_")
# Variables that a helper obeys in the same way at its own start.
OBEYED = frozenset(
    b"PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED "
    b"PYTHONWARNINGS PYTHONNOUSERSITE PYTHONOPTIMIZE PYTHONCOERCECLOCALE PYTHONPYCACHEPREFIX "
    b"PYTHONINTMAXSTRDIGITS PYTHONUSERBASE PYTHONPLATLIBDIR".split()
)
_PYTHON = re.compile(r"python(3(\.\d+)?)?")

Words = tuple[str, ...]


def interpreter_of(path: str, command: Sequence[str]) -> Words | None:
    """The words that start the interpreter of the script at `path`, which is run by this command; None if its start
    cannot be spared."""
    if command[-1] != path:
        return None  # it has arguments
    try:
        return plain_python(_first_words(path, command))
    except OSError:
        return None


def plain_python(words: Sequence[str]) -> Words | None:
    """The words, if they are a Python, or `env` and a Python, and nothing else."""
    names = [os.path.basename(word) for word in words]
    if len(words) == 2 and names[0] == "env" and names[1] == words[1]:
        names = names[1:]
    return tuple(words) if len(names) == 1 and _PYTHON.fullmatch(names[0]) else None


def lasting(env: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The variables of an environment that a helper is started with."""
    return {name: value for name, value in env.items() if name in LASTING or name.startswith(LASTING_PREFIXES)}


def unusual_variables(env: Mapping[bytes, bytes]) -> list[str]:
    """Names of variables that ask for a start that a helper could not make in the same way."""
    return [os.fsdecode(name) for name in env if name.startswith(b"PYTHON") and name not in OBEYED]


def why_fresh(script: Script, env: Mapping[bytes, bytes]) -> str | None:
    """Say why each run of this Python script starts its interpreter; empty if there is no reason for that, and None if
    it is no Python script."""
    try:
        words = _first_words(script.path, script.command)
    except OSError:
        return None
    if not any(os.path.basename(word).startswith("python") for word in words):
        return None
    if script.warm is None:
        return "its description says so"
    if plain_python(words) is None or script.command[-1] != script.path:
        return "its first line asks for more than a Python"
    names = unusual_variables(env)
    return f"{names[0]} is set" if names else ""


def _first_words(path: str, command: Sequence[str]) -> Sequence[str]:
    """The words that start the interpreter: those before the path, or those of the first line. Raises OSError."""
    if len(command) > 1:
        return command[:-1]
    with open(path, "rb", opener=without_waiting) as file:
        head = file.read(LINE_BYTES)
    line, newline, _ = head.partition(b"\n")
    if not line.startswith(MARK) or not newline or line.endswith(b"\r"):
        return ()
    return [os.fsdecode(word) for word in line[len(MARK) :].split()]
