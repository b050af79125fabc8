"""`mcpgreen deps`: make the environments with the packages that Python tools need (`running.scripts.packages`).

Rule: an environment counts only when everything is in it. One that could not be finished is removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from mcpgreen.cli.checking.item_checks import discoveries
from mcpgreen.cli.checking.validate import registration_of
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import say, tell
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.running.scripts import jq
from mcpgreen.running.scripts.packages import PLACE, READY, REQUIREMENTS, Packages, packages_of
from mcpgreen.settings.settings import Settings

INSTALL_SECS = 3600
# In the new environment: does its Python fit? pip knows how to compare versions.
FITS = (
    "import platform, sys; from pip._vendor.packaging.specifiers import SpecifierSet; "
    "sys.exit(platform.python_version() not in SpecifierSet(sys.argv[1]))"
)


def run(options: Options) -> int:
    project, settings, environ = open_named(options)
    needed = needed_packages(project, settings, environ)
    if options["install"] and needed:
        _install_all(project, needed, environ)
    for each in needed:
        names = ", ".join(each.names) or "all that it lists"
        say(f"{project.shown(each.source)}: {names}: {'installed' if each.are_installed else 'not installed'}\n")
    if not needed:
        say(f"No tool names packages: none has a # /// script header, and there is no {REQUIREMENTS}.\n")
    return 0 if all(each.are_installed for each in needed) else 1


def needed_packages(project: Project, settings: Settings, environ: Mapping[str, str]) -> list[Packages]:
    """Return the sets of packages of all tools, each once."""
    tools = discoveries(project, registration_of(project, settings, environ)[0])["tools"]
    found = [packages_of(project.root, tool.path) for tool in tools.items] if not isinstance(tools, OSError) else []
    return list({each.place: each for each in found if each is not None}.values())


def _install_all(project: Project, needed: list[Packages], environ: Mapping[str, str]) -> None:
    home = Path(project.root, PLACE)
    os.umask(0o022)  # the server refuses what others can write to
    try:
        home.mkdir(exist_ok=True)
        ignored = (home / ".gitignore").open("w")
    except OSError as error:
        raise ProjectError(str(home), f"it cannot be written: {error.strerror}") from error
    with ignored:
        ignored.write("*\n")
        fcntl.flock(ignored, fcntl.LOCK_EX)  # another process may be installing the same
        for each in needed:
            if not each.are_installed:
                _install(project, each, environ)
        for place in home.iterdir():
            if place.is_dir() and str(place) not in [each.place for each in needed]:
                shutil.rmtree(place)  # of an earlier set


def _install(project: Project, packages: Packages, environ: Mapping[str, str]) -> None:
    shown = project.shown(packages.source)
    if packages.fault:
        raise ProjectError(shown, packages.fault)
    shutil.rmtree(packages.place, ignore_errors=True)
    tell(f"Installing the packages of {shown} ...\n")
    env = {name: value for name, value in environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    try:
        for command, failure in _commands(packages, jq.path_in(environ)):
            # What the installer prints shows its progress.
            if subprocess.call(
                command, cwd=project.root, env=env, stdin=subprocess.DEVNULL, stdout=2, timeout=INSTALL_SECS
            ):
                raise ProjectError(shown, failure)
        Path(packages.place, READY).touch()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProjectError(shown, f"its packages cannot be installed: {error}") from error
    finally:
        if not packages.are_installed:
            shutil.rmtree(packages.place, ignore_errors=True)


def _commands(packages: Packages, path: str) -> Iterator[tuple[list[str], str]]:
    """Yield the commands that make the environment, each with what to say if it fails."""
    python = shutil.which("python3", path=path) or sys.executable
    what = list(packages.names) or ["-r", REQUIREMENTS]
    no_python = f"there is no Python {packages.python} here; install one, or install uv, which fetches it"
    failed = "its packages could not be installed; the lines above say why"
    if uv := shutil.which("uv", path=f"{path}:{os.path.expanduser('~/.local/bin')}:/usr/local/bin"):
        yield [uv, "venv", "--quiet", "--python", packages.python or python, packages.place], no_python
        yield [uv, "pip", "install", "--python", packages.interpreter, *what], failed
        return
    yield [python, "-m", "venv", packages.place], f"{python} -m venv failed; install python3-venv, or install uv"
    if packages.python:
        yield [packages.interpreter, "-c", FITS, packages.python], no_python
    yield [packages.interpreter, "-m", "pip", "install", "--disable-pip-version-check", *what], failed
