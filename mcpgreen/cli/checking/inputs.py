"""Inputs that a script reads but would not get from a server: environment variables and command-line arguments. Part of
`validate` and `run-tool`.

The script is searched, not understood. To give no false alarm, a variable is reported only if the script cannot do
without it, if its name is that of a secret, or if it is set here; and not if the script may set it itself.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.comments import ARGUMENT
from mcpgreen.catalog.descriptions.in_script import variable_of
from mcpgreen.catalog.tools import Tool
from mcpgreen.cli.checking.findings import Position, Problem
from mcpgreen.cli.checking.scripts import NODE, content_of
from mcpgreen.logs.secrets import is_secret_name
from mcpgreen.running.scripts.environment import MINIMAL_NAMES, PREFIXES
from mcpgreen.running.scripts.shebang import SHELLS, is_python, program_of
from mcpgreen.settings.settings import Settings

MOST_NAMED = 4
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
DECLARED = r"\benv\s*=\s*[\[(]([^\])]*)"
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


# How a shell script reads the words of its command line.
WORDS = r"\$(?:[1-9@*#]|\{[1-9@*#])|\bgetopts\b"
# A script with one of these reads its arguments in another way, or may mean those of a function.
OTHER_ARGUMENTS = r"\bmcp_args|MCP_TOOL_ARGS|\bset --|\w\s*\(\)|\bfunction\s"


def unseen_inputs(tool: Tool, shown: str, settings: Settings, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for all that the script of a tool reads and will not get."""
    yield from _unseen_arguments(tool, shown)
    yield from _unseen_variables(tool, shown, settings, environ)


def _unseen_arguments(tool: Tool, shown: str) -> Iterator[Problem]:
    """Yield a problem if the script of a tool with arguments expects them on its command line."""
    content = content_of(tool.path) or b""
    names = list(tool.definition["inputSchema"].get("properties") or ())
    if not names or program_of(tool.path, content) not in SHELLS:
        return
    text = _without(content.decode("utf-8", "replace"), COMMENTS, QUOTES_OF_SHELL)
    found = None if re.search(OTHER_ARGUMENTS, text) else re.search(WORDS, text)
    if found is None:
        return
    line = text.count("\n", 0, found.start()) + 1
    sentence = f"{shown}: line {line}: it reads {found[0].replace('{', '')}, but a tool gets no command-line arguments"
    values = " ".join(f'"$(mcp_args_get {shlex.quote(f".{name}")})"' for name in names[:MOST_NAMED])
    parse = ""
    if ARGUMENT in content:
        parse, values = "; mcp_args_parse", " ".join(f'"${variable_of(name)}"' for name in names[:MOST_NAMED])
    fix = f'write above it: source "$MCP_SDK/tool-sdk.sh"{parse}; set -- {values}'
    yield Problem("warning", "command-line", sentence, fix, tool.path, Position(line))


def _unseen_variables(tool: Tool, shown: str, settings: Settings, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each variable that the script reads and will not get."""
    content = content_of(tool.path) or b""
    program, text = program_of(tool.path, content), content.decode("utf-8", "replace")
    patterns = SHELL if program in SHELLS else JAVASCRIPT if program in NODE else PYTHON
    is_known = patterns is not PYTHON or is_python(tool.path, content)
    if settings.tool_env_mode == "inherit" or not is_known or re.search(PREPARED, text):
        return
    text = _without(text, COMMENTS, *((QUOTES_OF_SHELL,) if patterns is SHELL else ()))
    allowed = settings.tool_env_allowlist if settings.tool_env_mode == "allowlist" else ()
    seen = {*MINIMAL_NAMES, *_USUAL.split(), *allowed, *(each.removesuffix("!") for each in tool.description.env)}
    read, needed, written = (_found(pattern, text) for pattern in patterns)
    marks = MARK.findall(text) if patterns is PYTHON and "mcp_tool" in text else []
    if marks:  # which function reads a variable is not known here, unless it is read outside of all
        declared = re.findall(_NAME, " ".join(re.findall(DECLARED, text)))
        seen.update(name for name in declared if text.split("\n")[read.get(name, 1) - 1][:1].isspace())
    directory, file_name = os.path.split(tool.path)
    is_described = b"mcp:" in content or metadata.meta_files_for(file_name, os.listdir(directory))
    for name, line in read.items():
        is_wanted = name in needed or name in environ or is_secret_name(name)
        if is_wanted and name not in seen and name not in written and not name.startswith(USUAL_PREFIXES):
            sentence = f"{shown}: line {line}: it reads {name}, which the server does not pass on to it"
            way = f'"env": ["{name}!"] in its description'
            if patterns is SHELL and not is_described:
                way = f"# @env {name}!"
            elif marks:
                way = f'@{marks[0]}(env=["{name}!"])'
                if len(marks) > 1:
                    way += f', or # mcp: {{"env": ["{name}!"]}} for all functions in the file'
            fix = f"declare it: {way}; without ! if it is optional"
            yield Problem("warning", "env", sentence, fix, tool.path, Position(line))


def _without(text: str, *patterns: str) -> str:
    """Remove what the patterns find, except for line breaks: the other lines keep their numbers."""
    for pattern in patterns:
        text = re.sub(pattern, lambda found: "\n" * found[0].count("\n"), text)
    return text


def _found(pattern: str, text: str) -> dict[str, int]:
    """Return the names that a pattern finds, each with its first line."""
    found: dict[str, int] = {}
    for match in re.finditer(pattern, text):
        for name in filter(None, match.groups()):
            found.setdefault(name, text.count("\n", 0, match.start()) + 1)
    return found
