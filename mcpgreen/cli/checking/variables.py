"""Which environment variables a script reads, and a server would not pass on to it. Part of `validate` and `run-tool`.

The script is searched, not understood. To give no false alarm, a variable is reported only if the script cannot do
without it, if its name is that of a secret, or if it is set here; and not if the script may set it itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mcpgreen.catalog.tools import Tool
from mcpgreen.cli.checking.findings import Position, Problem
from mcpgreen.logs.secrets import is_secret_name
from mcpgreen.running.scripts.environment import MINIMAL_NAMES, PREFIXES
from mcpgreen.running.scripts.shebang import SHELLS, is_python, program_of
from mcpgreen.settings.settings import Settings

_NAME = r"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)"
_QUOTED = rf"""\(?\s*["'`]{_NAME}["'`]"""


class Reading(NamedTuple):
    """How scripts of a language read variables, by patterns. `needed`: they fail without the variable. What is `inert`
    is not searched. A script that may be given variables in another way is `prepared`."""

    read: str
    needed: str
    written: str
    inert: str
    prepared: str


OF_SHELL = Reading(
    read=rf"(?<!\\)\$(?:\{{[#!]?)?{_NAME}(?![\w])",
    needed=rf"\$\{{{_NAME}:?\?",
    written=rf"(?:^|[\s;&|({{]){_NAME}\+?=|\$\{{{_NAME}:?=|\b(?:for|local|declare|typeset|readonly|mapfile|readarray|getopts"
    rf"|printf -v|read)\b[^\n;|&]*\b{_NAME}\b",
    inert=r"(?m)^[ \t]*#.*|(?<=\s)#[^\n]*|'[^']*'",
    prepared=r"(?m)^\s*(?:\.|source)\s+(?!.*MCP_SDK)|<<-?\s*[\\'\"]|\beval\b|\bset -a\b",
)
OF_PYTHON = Reading(
    read=rf"\benviron(?:\.get|\.pop)?\[?{_QUOTED}|\bgetenv{_QUOTED}",
    needed=rf"""\benviron\[\s*["']{_NAME}["']\s*\]""",
    written=rf"""\benviron\[\s*["']{_NAME}["']\s*\]\s*=[^=]|\benviron\.setdefault{_QUOTED}|["']{_NAME}["']\s*(?:not\s+)?in\s""",
    inert=r"(?m)^\s*#.*",
    prepared=r"\bdotenv\b|environ\.update",
)
OF_NODE = Reading(
    read=rf"\bprocess\.env(?:\.{_NAME}\b|\[{_QUOTED})",
    needed=r"(?!)()",
    written=rf"\bprocess\.env(?:\.{_NAME}|\[{_QUOTED}\])\s*(?:\?\?|\|\|)?=[^=]",
    inert=r"(?m)^\s*(?://|\*).*",
    prepared=r"\bdotenv\b|loadEnvFile",
)
# Variables of every login, of terminals and of shells, which are rarely the reason why a tool fails.
_USUAL = """USER LOGNAME SHELL PWD OLDPWD TERM EDITOR VISUAL PAGER DISPLAY COLUMNS LINES HOSTNAME HOSTTYPE OSTYPE
    MACHTYPE UID EUID GROUPS PPID RANDOM SRANDOM SECONDS LINENO REPLY IFS OPTARG OPTIND OPTERR FUNCNAME PIPESTATUS SHLVL
    DIRSTACK EPOCHSECONDS EPOCHREALTIME COPROC MAPFILE READLINE_LINE TZ CI DEBUG VERBOSE NO_COLOR FORCE_COLOR TMP TEMP
    MAIL ENV NODE_ENV VIRTUAL_ENV CONDA_PREFIX"""
USUAL_PREFIXES = (*PREFIXES, "BASH", "LC_", "XDG_", "SSH_", "PYTHON", "COMP_")


def unseen_variables(
    tool: Tool, content: bytes, *, settings: Settings, environ: Mapping[str, str]
) -> Iterator[tuple[str, int]]:
    """Yield each variable that the script reads and will not get, with its first line."""
    if settings.tool_env_mode == "inherit":
        return
    program = program_of(tool.path, content)
    reading = OF_SHELL if program in SHELLS else OF_NODE if program in ("node", "nodejs", "deno", "bun") else OF_PYTHON
    text = content.decode("utf-8", "replace")
    is_known = reading is not OF_PYTHON or is_python(tool.path, content)
    if not is_known or re.search(reading.prepared, text):
        return
    text = re.sub(reading.inert, lambda found: "\n" * found[0].count("\n"), text)
    allowed = settings.tool_env_allowlist if settings.tool_env_mode == "allowlist" else ()
    seen = {*MINIMAL_NAMES, *_USUAL.split(), *allowed, *(each.removesuffix("!") for each in tool.description.env)}
    seen |= _names(reading.written, text).keys()
    needed = _names(reading.needed, text)
    for name, line in _names(reading.read, text).items():
        if name in seen or name.startswith(USUAL_PREFIXES):
            continue
        if name in needed or name in environ or is_secret_name(name):
            yield name, line


def variable_problems(
    tool: Tool, content: bytes, shown: str, *, settings: Settings, environ: Mapping[str, str]
) -> Iterator[Problem]:
    for name, line in unseen_variables(tool, content, settings=settings, environ=environ):
        sentence = f"{shown}: line {line}: it reads {name}, which the server does not pass on to it"
        fix = f"""declare it: {_declaration(tool, content, name)}"""
        yield Problem("warning", "env", sentence, fix, tool.path, Position(line))


def _declaration(tool: Tool, content: bytes, name: str) -> str:
    if b"mcp_tool.tool" in content:
        return f'@mcp_tool.tool(env=["{name}!"]); without ! if it is optional'
    if b"# @arg " in content:
        return f"add the comment # @env {name}!; without ! if it is optional"
    return f'"env": ["{name}!"] in its description; without ! if it is optional'


def _names(pattern: str, text: str) -> dict[str, int]:
    """Return what the groups of a pattern find, each with the first line."""
    found: dict[str, int] = {}
    for match in re.finditer(pattern, text):
        for name in filter(None, match.groups()):
            found.setdefault(name, text.count("\n", 0, match.start()) + 1)
    return found
