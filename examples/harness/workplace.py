"""A copy of an example to work in, and a server for it.

The copy keeps the checkout clean, since a server writes what it has found into the project, and some conversations
change files. It also heals a clone whose scripts others could write to: such a script is not run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from examples.harness.ladder import EXAMPLES, Example

LAUNCHER = EXAMPLES.parent / "scripts" / "mcpgreen"
OTHERS_WRITE = 0o022
LAST_SECS = 2.0  # for a server whose client has left
# An example is played with its own settings, and not with those of the shell; but the launcher is told its Python.
SETTINGS = ("MCPGREEN_", "MCPBASH_")
OURS = ("MCPGREEN_PYTHON",)


class NoServer(Exception):
    """mcpgreen itself is not to be found."""


@contextlib.contextmanager
def copy_of(example: Example) -> Iterator[Path]:
    """The project to serve; it is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mcpgreen-") as directory:
        project = Path(directory).resolve() / example.name
        shutil.copytree(example.folder, project, ignore=shutil.ignore_patterns(".registry", "__pycache__"))
        for path in (project, *project.rglob("*")):
            path.chmod(path.stat().st_mode & ~OTHERS_WRITE)
        yield project


def command() -> str:
    """The launcher of this checkout, which finds its environment; else what is installed. Raises NoServer."""
    found = str(LAUNCHER) if LAUNCHER.is_file() else shutil.which("mcpgreen")
    if found is None:
        raise NoServer(
            "mcpgreen is not installed. Run `make run` once in a checkout, elsewhere `pip install mcpgreen`."
        )
    return found


def environment() -> dict[str, str]:
    """Ours, with the command `mcpgreen` for what is typed in a conversation."""
    kept = {name: value for name, value in os.environ.items() if name in OURS or not name.startswith(SETTINGS)}
    return {**kept, "PATH": f"{Path(command()).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


@contextlib.contextmanager
def serving(project: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server; what it has to say about itself, on stderr, goes where ours goes. Afterwards it is gone."""
    server = subprocess.Popen(
        [command(), "serve", "--project-root", str(project)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        yield server
    finally:
        with contextlib.suppress(BrokenPipeError):
            server.stdin.close()
        try:
            server.wait(LAST_SECS)
        except subprocess.TimeoutExpired:
            server.terminate()
            server.wait()
        # Last: whoever reads it has to see its end first, or would keep us waiting.
        server.stdout.close()
