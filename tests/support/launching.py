"""The single file and its first starts, as clients start it: what several tests of it share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.programs import completed

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
OUR_PYTHON: str = sys._base_executable  # type: ignore[attr-defined]
NO_PATH = "/nonexistent"
# As long as another worker may take to make the environment that all share.
FIRST_START_SECS = 120

# A real one that says that it is older: what matters is what the launcher asks for.
OLD_PYTHON = f"""#!/bin/sh
exec '{OUR_PYTHON}' -I -c 'import sys; sys.version_info = (3, 9, 18, "final", 0); exec(sys.argv[1])' "$3"
"""


class FirstStart(NamedTuple):
    """How one of two starts ended that came at the same time, with no environment there."""

    status: int
    stdout: str
    stderr: str


def started(
    command: Sequence[str], *, prefix: Sequence[str] = (), given: bytes = PING, path: str = NO_PATH, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """A start as some clients have it: no variables but these, and the current directory is /."""
    return completed(
        [*prefix, *command], input=given, cwd="/", env={"PATH": path, **env}, timeout=FIRST_START_SECS, encoding=None
    )


def with_old_python(directory: Path) -> str:
    """A directory for the PATH whose python3 is too old."""
    directory.mkdir()
    python = directory / "python3"
    python.write_text(OLD_PYTHON, encoding="utf-8")
    python.chmod(0o755)
    return str(directory)


def environment_in(cache: Path) -> Path:
    """The one environment that a launcher has made there."""
    (found,) = (each for each in (cache / "mcpgreen").iterdir() if each.is_dir())
    return found
