"""Which environment variables a script reads, and a server would not pass on to it. Part of `validate` and `run-tool`.

The script is searched, not understood. To give no false alarm, a variable is reported only if the script cannot do
without it, if its name is that of a secret, or if it is set here; and not if the script may set it itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mcpgreen.catalog.tools import Tool
from mcpgreen.cli.checking.findings import Position, Problem
from mcpgreen.cli.checking.scripts import NODE, content_of
from mcpgreen.logs.secrets import is_secret_name
from mcpgreen.running.scripts.environment import MINIMAL_NAMES, PREFIXES
from mcpgreen.running.scripts.shebang import SHELLS, is_python, program_of
from mcpgreen.settings.settings import Settings

_NAME = r"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)"
_QUOTED = rf"""\(?\s*["'`]{_NAME}["'`]"""


# How scripts of a language read variables, read those that they cannot do without, and set them.
SHELL = (
    rf"(?<!\\)\$(?:\{{[#!]?)?{_NAME}(?!\w)",
    rf"\$\{{{_NAME}:?\?",
    rf"(?:^|[\s;&|({{]){_NAME}\+?=|\$\{{{_NAME}:?=|\b(?:for|local|declare|typeset|readonly|mapfile|readarray|getopts"
    rf"|printf -v|read)\b[^\n;|&]*\b{_NAME}\b",
)
PYTHON = (
    rf"\benviron(?:\.get|\.pop)?\[?{_QUOTED}|\bgetenv{_QUOTED}",
    rf"\benviron\[{_QUOTED}\s*\]",
    rf"""\benviron\[{_QUOTED}\s*\]\s*=[^=]|\benviron\.setdefault{_QUOTED}|["']{_NAME}["']\s*(?:not\s+)?in\s""",
)
JAVASCRIPT = (
    rf"\bprocess\.env(?:\.{_NAME}\b|\[{_QUOTED})",
    r"(?!)()",
    rf"\bprocess\.env(?:\.{_NAME}|\[{_QUOTED}\])\s*(?:\?\?|\|\|)?=[^=]",
)
MARK = re.compile(r"(?m)^\s*@((?:\w+\.)?tool)\b")
COMMENTS = r"(?m)^\s*(?:#|//|\*).*"
QUOTES_OF_SHELL = r"(?<=\s)#[^\n]*|'[^']*'"
# A script with one of these may get variables in another way.
PREPARED = (
    r"(?m)^\s*(?:\.|source)\s+(?!.*MCP_SDK)|<<-?\s*[\\'\"]|\beval\b|\bset -a\b|\bdotenv\b|environ\.update|loadEnvFile"
)
# Variables of every login, of terminals and of shells, which are rarely the reason why a tool fails.
_USUAL = """USER LOGNAME SHELL PWD OLDPWD TERM EDITOR VISUAL PAGER DISPLAY COLUMNS LINES HOSTNAME HOSTTYPE OSTYPE
    MACHTYPE UID EUID GROUPS PPID RANDOM SRANDOM SECONDS LINENO REPLY IFS OPTARG OPTIND OPTERR FUNCNAME PIPESTATUS SHLVL
    DIRSTACK EPOCHSECONDS EPOCHREALTIME COPROC MAPFILE READLINE_LINE TZ CI DEBUG VERBOSE NO_COLOR FORCE_COLOR TMP TEMP
    MAIL ENV NODE_ENV VIRTUAL_ENV CONDA_PREFIX"""
USUAL_PREFIXES = (*PREFIXES, "BASH", "LC_", "XDG_", "SSH_", "PYTHON", "COMP_")


def unseen_variables(tool: Tool, shown: str, settings: Settings, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each variable that the script reads and will not get."""
    content = content_of(tool.path) or b""
    program, text = program_of(tool.path, content), content.decode("utf-8", "replace")
    patterns = SHELL if program in SHELLS else JAVASCRIPT if program in NODE else PYTHON
    is_known = patterns is not PYTHON or is_python(tool.path, content)
    if settings.tool_env_mode == "inherit" or not is_known or re.search(PREPARED, text):
        return
    for inert in (COMMENTS, *((QUOTES_OF_SHELL,) if patterns is SHELL else ())):
        text = re.sub(inert, lambda found: "\n" * found[0].count("\n"), text)
    allowed = settings.tool_env_allowlist if settings.tool_env_mode == "allowlist" else ()
    seen = {*MINIMAL_NAMES, *_USUAL.split(), *allowed, *(each.removesuffix("!") for each in tool.description.env)}
    read, needed, written = (_found(pattern, text) for pattern in patterns)
    marks = MARK.findall(text) if patterns is PYTHON and "mcp_tool" in text else []
    for name, line in read.items():
        is_wanted = name in needed or name in environ or is_secret_name(name)
        if is_wanted and name not in seen and name not in written and not name.startswith(USUAL_PREFIXES):
            sentence = f"{shown}: line {line}: it reads {name}, which the server does not pass on to it"
            way = f'"env": ["{name}!"] in its description'
            if patterns is SHELL and b"# @arg " in content:
                way = f"# @env {name}!"
            elif marks:
                way = f'@{marks[0]}(env=["{name}!"])'
                if len(marks) > 1:
                    way += f', or # mcp: {{"env": ["{name}!"]}} for all functions in the file'
            fix = f"declare it: {way}; without ! if it is optional"
            yield Problem("warning", "env", sentence, fix, tool.path, Position(line))


def _found(pattern: str, text: str) -> dict[str, int]:
    """Return the names that a pattern finds, each with its first line."""
    found: dict[str, int] = {}
    for match in re.finditer(pattern, text):
        for name in filter(None, match.groups()):
            found.setdefault(name, text.count("\n", 0, match.start()) + 1)
    return found
