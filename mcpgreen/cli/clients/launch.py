"""How a client starts this server: command, arguments and variables that work from anywhere.

A desktop client has another PATH, directory and environment. So paths are absolute, and the entry has the variables
that decide what is served, except for secrets.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from shutil import which
from typing import NamedTuple

from mcpgreen import PACKAGE_DIR
from mcpgreen.project.project import Project
from mcpgreen.settings.rows import ALIAS_PREFIX, OUR_PREFIX
from mcpgreen.settings.settings import ROWS, Settings

LAUNCHER = "MCPGREEN_LAUNCHER"  # the single-file launcher that started us
ALLOW_LIST = ALIAS_PREFIX + "TOOL_ALLOWLIST"
ROOT = ALIAS_PREFIX + "PROJECT_ROOT"

# They belong to one process, or the arguments say the same.
_NOT_FOR_ENTRIES = (LAUNCHER, "MCPGREEN_CALL", "MCPBASH_HOME", "MCPGREEN_PROJECT_ROOT", ROOT)
_SETTINGS = {variable: row for row in ROWS for variable in row.all_variables}
_MAY_BE_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY")


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


def launch_of(project: Project, settings: Settings, environ: Mapping[str, str], name: str = "") -> Launch:
    info = project.server_info()
    program = program_words(environ)
    names = [name for name in sorted(environ) if environ[name] and _is_ours(name) and not _is_secret(name)]
    secrets = [name for name in sorted(environ) if _is_ours(name) and _is_secret(name)]
    # Variables that are passed to tools by name may be private, too.
    named = {*settings.tool_env_allowlist, *settings.provider_env_allowlist}
    private = [name for name in sorted(named) if environ.get(name) and not _is_ours(name)]
    # Allow all tools, as mcp-bash requires, unless the project decides: the variable would overrule it.
    is_decided = any(settings.origin(name) != "default" for name in ("tool_allowlist", "tool_allow_default"))
    allow_list = {} if is_decided else {ALLOW_LIST: "*"}
    return Launch(
        name=name or info["name"],
        description=str(info.get("description") or info["title"]),
        command=program[0],
        arguments=(*program[1:], "serve", "--project-root", project.root),
        env={ROOT: project.root, **allow_list, **{name: environ[name] for name in names}},
        tool_secs=settings.default_tool_timeout,
        left_out=(*secrets, *private),
    )


def program_words(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command that starts us again: what started us, or the script of the checkout or environment."""
    # The command of an installed package continues as mcpgreen-python.
    started = os.path.abspath(sys.argv[0]).removesuffix("-python") if sys.argv and sys.argv[0] else ""
    for place in (
        environ.get(LAUNCHER, ""),
        started if os.path.basename(started) == "mcpgreen" else "",
        os.path.join(os.path.dirname(PACKAGE_DIR), "scripts", "mcpgreen"),
        os.path.join(os.path.dirname(sys.executable), "mcpgreen"),
    ):
        if os.path.isabs(place) and os.path.isfile(place) and os.access(place, os.X_OK):
            return (place,)
    # Python must not look for modules in the working directory, which others may write to.
    return (sys.executable, "-P" if sys.version_info >= (3, 11) else "-I", "-m", "mcpgreen")


def shell_words(environ: Mapping[str, str]) -> str:
    """Return the command for a person at a shell: the name if it is on the PATH, else a path."""
    return "mcpgreen" if which("mcpgreen", path=environ.get("PATH", "")) else shlex.join(program_words(environ))


def _is_ours(name: str) -> bool:
    return (name in _SETTINGS or name.startswith((OUR_PREFIX, ALIAS_PREFIX))) and name not in _NOT_FOR_ENTRIES


def _is_secret(name: str) -> bool:
    row = _SETTINGS.get(name)
    return row.secret if row else _MAY_BE_SECRET.search(name) is not None
