"""How a client starts this server: command, arguments and variables that work from anywhere.

A desktop client has another PATH, directory and environment. So paths are absolute, unless the client has a word for
the folder that is open in it. The entry has the settings that are set here by variables, except for secrets.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from shutil import which
from typing import NamedTuple

from mcpgreen import PACKAGE_DIR
from mcpgreen.catalog.tools import Tool
from mcpgreen.project.project import Project
from mcpgreen.settings.rows import OUR_PREFIX
from mcpgreen.settings.settings import ROWS, Settings
from mcpgreen.text.uris import is_within

LAUNCHER = "MCPGREEN_LAUNCHER"  # the single-file launcher that started us

# They belong to one process, or the arguments say the same.
_NOT_FOR_ENTRIES = (LAUNCHER, "MCPGREEN_CALL", "MCPGREEN_PROJECT_ROOT", "MCPBASH_PROJECT_ROOT")
_SETTINGS = {variable: row for row in ROWS for variable in row.all_variables}
_SYNONYMS = [names for row in ROWS for names in (row.variables, *(switch.variables for switch in row.switches))]
_OWN_NAMES = {variable: names[0] for names in _SYNONYMS for variable in names}
_MAY_BE_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY")


def unset_keys(project: Project, tools: Iterable[Tool], env: Mapping[str, str]) -> list[str]:
    """Return the variables that tools require, and that neither the environment of the server nor the project sets."""
    needed = sorted({each[:-1] for tool in tools for each in tool.description.env if each.endswith("!")})
    given = {**(own := project.variables()), **env}
    if not all(map(given.get, needed)) and os.path.lexists(project.server_file("env.sh")):
        sourced = project.sourced(env, own)  # in the environment that the client gives
        given |= sourced.changed if sourced else {}
    return [name for name in needed if not given.get(name)]


class Launch(NamedTuple):
    name: str
    description: str
    command: str
    arguments: tuple[str, ...]
    env: Mapping[str, str]
    tool_secs: float  # the default time limit of tools
    left_out: tuple[str, ...]  # variables that are set here, but not put into `env`

    @property
    def words(self) -> tuple[str, ...]:
        return (self.command, *self.arguments)

    def inside(self, root: str, workspace: str) -> Launch:
        """Return the launch for a client that replaces the word `workspace` by the path of the folder `root`."""

        def moved(text: str) -> str:
            return workspace + text[len(root) :] if is_within(text, root) else text

        env = {name: moved(value) for name, value in self.env.items()}
        return self._replace(command=moved(self.command), arguments=tuple(map(moved, self.arguments)), env=env)


def launch_of(project: Project, settings: Settings, environ: Mapping[str, str], name: str = "") -> Launch:
    info = project.server_info()
    program = program_words(environ)
    names = [name for name in sorted(environ) if environ[name] and _is_ours(name) and not _is_secret(name)]
    secrets = [name for name in sorted(environ) if _is_ours(name) and _is_secret(name)]
    # Variables that are passed to tools by name may be private, too.
    named = {*settings.tool_env_allowlist, *settings.provider_env_allowlist}
    private = [name for name in sorted(named) if environ.get(name) and not _is_ours(name)]
    env: dict[str, str] = {}
    for variable in sorted(names, key=lambda name: name != _OWN_NAMES.get(name, name)):  # an alias counts last
        env.setdefault(_OWN_NAMES.get(variable, variable), environ[variable])
    return Launch(
        name=name or info["name"],
        description=str(info.get("description") or info["title"]),
        command=program[0],
        arguments=(*program[1:], "serve", "--project-root", project.root),
        env=env,
        tool_secs=settings.default_tool_timeout,
        left_out=(*secrets, *private),
    )


def program_words(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command that starts us again: what started us, or the script of the checkout or environment."""
    # The command of an installed package continues as mcpgreen-python.
    started = os.path.abspath(sys.argv[0]).removesuffix("-python") if sys.argv and sys.argv[0] else ""
    for place in (
        os.path.normpath(environ.get(LAUNCHER) or "."),
        started if os.path.basename(started) == "mcpgreen" else "",
        os.path.join(os.path.dirname(PACKAGE_DIR), "scripts", "mcpgreen"),
        os.path.normpath(os.path.join(os.path.dirname(sys.executable), "mcpgreen")),
    ):
        if os.path.isabs(place) and os.path.isfile(place) and os.access(place, os.X_OK):
            return (place,)
    # Python must not look for modules in the working directory, which others may write to.
    return (sys.executable, "-P" if sys.version_info >= (3, 11) else "-I", "-m", "mcpgreen")


def shell_words(environ: Mapping[str, str]) -> str:
    """Return the command for a person at a shell: the name if it is on the PATH, else a path."""
    return "mcpgreen" if which("mcpgreen", path=environ.get("PATH", "")) else shlex.join(program_words(environ))


def _is_ours(name: str) -> bool:
    return (name in _SETTINGS or name.startswith(OUR_PREFIX)) and name not in _NOT_FOR_ENTRIES


def _is_secret(name: str) -> bool:
    row = _SETTINGS.get(name)
    return row.secret if row else _MAY_BE_SECRET.search(name) is not None
