"""Make the private environment of a single-file launcher, and become the server.

    python -I LAUNCHER ENVIRONMENT [ARGUMENT ...]

The `__main__` of the archive inside LAUNCHER, for the first start and for those that find no environment that works;
see scripts/mcpgreen for all others. It has the standard library and nothing else.

Rules: stdout belongs to the protocol and stdin to the server, so nothing that is started here has either. An
environment appears whole or not at all: it is made beside its place, by whoever holds the lock, and renamed.
"""

from __future__ import annotations

import compileall
import contextlib
import fcntl
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator
from typing import NoReturn

REMEDY = "Set XDG_CACHE_HOME to a directory that you can write to."
# All that a server and the commands will import. What is tried is compiled by that, too.
OURS = "mcpgreen.__main__, mcpgreen.first_answer, mcpgreen.engine.server, mcpgreen.transports.stdio, mcpgreen.cli.main"
PROBE = f"import {OURS}, docopt, jsonschema, yaml"
WHEELS = "wheels/"
SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
NEW, OLD = "new-", "old-"  # what directories begin with that are being made, and removed
LOCK = "lock"
PLAIN = re.compile(r"[\w.+-]+", re.ASCII)  # what means nothing to a shell
MAX_WAIT_SECS = 600.0  # for another launcher
PAUSE_SECS = 0.05


class Unusable(Exception):
    """Why there will be no environment; a sentence for the person."""


def main(launcher: str, environment: str, arguments: list[str]) -> NoReturn:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    mask = os.umask(0o077)
    place = os.path.dirname(environment)
    try:
        _require_private(place)
        with _locked(place):
            if not _works(environment):
                _make(launcher, environment)
            _remove_older(place, environment)
    except Unusable as reason:
        say(str(reason))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    os.umask(mask)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so
    python = _python_of(environment)
    os.execv(python, [python, "-I", os.path.join(environment, "start.py"), *arguments])


def say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"mcpgreen: {text}\n".encode("utf-8", "backslashreplace"))


def _python_of(environment: str) -> str:
    return os.path.join(environment, "bin", "python")


def _require_private(place: str) -> None:
    try:
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(place, 0o700)
        status = os.lstat(place)
    except OSError as error:
        raise Unusable(f"{place} cannot be created: {error.strerror}. {REMEDY}") from None
    if not stat.S_ISDIR(status.st_mode):
        raise Unusable(f"{place} is a link, or not a directory. Remove it, or set XDG_CACHE_HOME to another directory.")
    if status.st_uid != os.geteuid():
        raise Unusable(f"{place} belongs to another user, who could change what is run. {REMEDY}")
    if status.st_mode & 0o077:
        raise Unusable(f"{place} is open to others, who could change what is run. Run: chmod 700 '{place}'")


@contextlib.contextmanager
def _locked(place: str) -> Iterator[None]:
    """The lock goes with the process, however it ends."""
    try:
        fd = os.open(os.path.join(place, LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Unusable(f"{place} cannot be written to: {error.strerror}. {REMEDY}") from None
    try:
        give_up_at = time.monotonic() + MAX_WAIT_SECS
        is_told = False
        while not _is_taken(fd):
            if not is_told:
                say("another process is setting up; waiting for it ...")
                is_told = True
            if time.monotonic() > give_up_at:
                raise Unusable(f"another process has held {place}/{LOCK} for {MAX_WAIT_SECS:.0f} seconds.")
            time.sleep(PAUSE_SECS)
        yield
    finally:
        os.close(fd)


def _is_taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _works(environment: str) -> bool:
    return os.path.isfile(os.path.join(environment, "ready")) and _fault_of(environment) is None


def _fault_of(environment: str) -> str | None:
    """The last line that its Python says when it cannot import everything."""
    try:
        done = subprocess.run(
            [_python_of(environment), "-I", "-c", PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        return str(error)
    lines = done.stderr.decode("utf-8", "replace").split("\n")
    return None if done.returncode == 0 else next((line for line in reversed(lines) if line), "it gave no reason")


def _make(launcher: str, environment: str) -> None:
    place = os.path.dirname(environment)
    began_at = time.monotonic()
    say(f"setting up {environment} with Python {sys.version.split()[0]}, once ...")
    try:
        _sweep(place)
        directory = tempfile.mkdtemp(prefix=NEW, dir=place)
        try:
            _fill(directory, launcher)
            _put_aside(environment)
            os.rename(directory, environment)
        finally:
            _sweep(place)
    except OSError as error:
        raise Unusable(f"{place}: {error.strerror}. {REMEDY}") from None
    say(f"done in {time.monotonic() - began_at:.0f} s.")


def _fill(directory: str, launcher: str) -> None:
    venv.EnvBuilder(symlinks=True, with_pip=False).create(directory)
    with zipfile.ZipFile(launcher) as archive:
        wheels = [name for name in archive.namelist() if name.startswith(WHEELS)]
        archive.extractall(directory, ["start.py", *wheels])
    _install(directory, [name.removeprefix(WHEELS) for name in wheels])
    shutil.rmtree(os.path.join(directory, WHEELS))
    _remove_programs(os.path.join(directory, "bin"))
    compileall.compile_dir(os.path.join(directory, SITE, "mcpgreen"), quiet=2)
    fault = _fault_of(directory)
    if fault is not None:
        raise Unusable(f"the installed packages do not work: {fault}")
    with open(os.path.join(directory, "ready"), "w", encoding="utf-8") as file:
        # For scripts/mcpgreen, which would take a millisecond to read names: a shell reads them letter by letter.
        file.writelines(f'[ -e "$environment/{path}" ] || return 1\n' for path in _telling_files(directory))


def _install(directory: str, wheels: list[str]) -> None:
    place = os.path.join(directory, WHEELS)
    own = next(name for name in wheels if name.startswith("mcpgreen-"))
    pip = next(name for name in wheels if name.startswith("pip-"))
    is_complete = len(wheels) > len((own, pip))
    # To compile all would take twice as long, for a test suite of gevent's that nobody runs.
    options = ["--quiet", "--no-compile", "--no-input", "--disable-pip-version-check", "--no-warn-script-location"]
    # -I also here: of pip's own settings those in its files and PIP_ variables count, such as another index.
    command = [_python_of(directory), "-I", os.path.join(place, pip, "pip"), "install", *options]
    if is_complete:
        command += ["--no-index", "--no-cache-dir", "--find-links", place]
    try:
        subprocess.run([*command, os.path.join(place, own)], stdin=subprocess.DEVNULL, stdout=2, check=True)
    except subprocess.CalledProcessError:
        # pip has said why.
        advice = "" if is_complete else " Without a network, use a launcher that has them: make launcher OFFLINE=1"
        raise Unusable(f"mcpgreen's packages could not be installed.{advice}") from None


def _remove_programs(place: str) -> None:
    """All but Python: each of them has the name in it that its directory has only until it is ready."""
    for name in os.listdir(place):
        if not name.startswith("python"):
            os.unlink(os.path.join(place, name))


def _telling_files(directory: str) -> Iterator[str]:
    """Paths whose absence tells that an environment was damaged: one for each package."""
    yield "start.py"
    yield "pyvenv.cfg"
    for name in sorted(os.listdir(os.path.join(directory, SITE))):
        if name.endswith((".dist-info", ".pth")) or name == "__pycache__" or not PLAIN.fullmatch(name):
            continue
        inside = f"{SITE}/{name}/__init__.py"
        yield inside if os.path.exists(os.path.join(directory, inside)) else f"{SITE}/{name}"


def _remove_older(place: str, environment: str) -> None:
    """Environments of launchers that are no newer, unless a server runs in one."""
    ours = os.path.basename(environment)
    for name in os.listdir(place):
        path = os.path.join(place, name)
        if name in (ours, LOCK) or name.startswith((NEW, OLD)) or _version_of(name) > _version_of(ours):
            continue
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if _is_taken(fd):
                    _put_aside(path)
            finally:
                os.close(fd)
    _sweep(place)


def _version_of(name: str) -> tuple[int, ...]:
    """Of an environment called 1.2.3-0a1b2c."""
    return tuple(map(int, re.findall(r"\d+", name.partition("-")[0])))


def _put_aside(path: str) -> None:
    if os.path.lexists(path):
        os.rename(path, os.path.join(tempfile.mkdtemp(prefix=OLD, dir=os.path.dirname(path)), "it"))


def _sweep(place: str) -> None:
    """What was put aside, and what others left half-made when they were killed."""
    for name in os.listdir(place):
        if name.startswith((NEW, OLD)):
            shutil.rmtree(os.path.join(place, name), ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[0], sys.argv[1], sys.argv[2:])
