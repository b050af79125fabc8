"""`mcpgreen deps`: create environments with the packages that Python tools need (`running.scripts.packages`).

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
from typing import Any

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
# Does the Python of the new environment fit? pip knows how to compare versions.
FITS = """import platform, sys, pip._vendor.packaging.specifiers as known
sys.exit(platform.python_version() not in known.SpecifierSet(sys.argv[1]))"""


def run(options: Options) -> int:
    project, settings, environ = open_named(options)
    needed = needed_packages(project, settings, environ)
    if options["install"] and needed:
        _install_all(project, needed, environ)
    for each in needed:
        names = ", ".join(each.names) or "all of its packages"
        state = f"installed for {project.shown(each.interpreter)}" if each.are_installed else "not installed"
        say(f"{project.shown(each.source)}: {names}: {state}\n")
    if not needed:
        say(f"No tool needs packages: none has a # /// script header, and there is no {REQUIREMENTS}.\n")
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
        with (home / ".gitignore").open("w") as ignored:
            ignored.write("*\n")
            fcntl.flock(ignored, fcntl.LOCK_EX)  # another process may be installing the same
            for each in needed:
                if not each.are_installed:
                    _install(project, each, environ)
            for place in home.iterdir():
                if place.is_dir() and str(place) not in [each.place for each in needed]:
                    shutil.rmtree(place)  # of an earlier set
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProjectError(str(home), f"packages cannot be installed there: {error}") from error


def _install(project: Project, packages: Packages, environ: Mapping[str, str]) -> None:
    shown = project.shown(packages.source)
    if not packages.place:
        raise ProjectError(shown, f"it needs {packages.lack}")
    shutil.rmtree(packages.place, ignore_errors=True)
    tell(f"Installing packages for {shown} ...\n")
    env = {name: value for name, value in environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    options: Any = {"cwd": project.root, "env": env, "stdin": subprocess.DEVNULL, "stdout": 2, "timeout": INSTALL_SECS}
    try:
        for command, failure in _commands(packages, jq.path_in(environ)):
            if subprocess.call(command, **options):  # it shows its progress
                raise ProjectError(shown, failure)
        Path(packages.place, READY).touch()
    finally:
        if not packages.are_installed:
            shutil.rmtree(packages.place, ignore_errors=True)


def _commands(packages: Packages, path: str) -> Iterator[tuple[list[str], str]]:
    """Yield the commands that make the environment, each with what to say if it fails."""
    python = shutil.which("python3", path=path) or sys.executable
    place, versions, what = packages.place, packages.python, list(packages.names) or ["-r", REQUIREMENTS]
    no_python = f"there is no Python {versions} here; install one, or install uv, which can download one"
    if uv := shutil.which("uv", path=f"{path}:{os.path.expanduser('~/.local/bin')}:/usr/local/bin"):
        yield [uv, "venv", "--quiet", "--python", versions or python, place], no_python
        install = [uv, "pip", "install", "--python", packages.interpreter, *what]
    else:
        yield [python, "-m", "venv", place], f"{python} -m venv failed; install python3-venv, or install uv"
        yield [packages.interpreter, "-c", FITS, versions], no_python
        install = [packages.interpreter, "-m", "pip", "install", "--disable-pip-version-check", *what]
    yield install, "its packages could not be installed; the lines above say why"
