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
WRAP_IT = "or move the script out of tools/ and run mcpgreen wrap -- SCRIPT, which leaves it as it is"
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
QUOTES_OF_SHELL = r"""(?<=\s)#[^\n]*|'[^']*'|"(?:[^"\\\n$`]|\\.|\$(?!\())*\""""
# Text of a shell script in which nothing is expanded.
LITERAL = r"(?s)<<-?[ \t]*[\\'\"](\w+)(?:['\"][^\n]*)?\n.{0,4000}?\n[ \t]*\1\n"
# A script with one of these may get variables in another way.
PREPARED = r"(?m)^\s*(?:\.|source)\s+(?!.*MCP_SDK)|\beval\b|\bset -a\b|\bdotenv\b|environ\.update|loadEnvFile"
# Variables of every login, of terminals and of shells, which are rarely the reason why a tool fails.
_USUAL = """USER LOGNAME SHELL PWD OLDPWD TERM EDITOR VISUAL PAGER DISPLAY COLUMNS LINES HOSTNAME HOSTTYPE OSTYPE
    MACHTYPE UID EUID GROUPS PPID RANDOM SRANDOM SECONDS LINENO REPLY IFS OPTARG OPTIND OPTERR FUNCNAME PIPESTATUS SHLVL
    DIRSTACK EPOCHSECONDS EPOCHREALTIME COPROC MAPFILE READLINE_LINE TZ CI DEBUG VERBOSE NO_COLOR FORCE_COLOR TMP TEMP
    MAIL ENV NODE_ENV VIRTUAL_ENV CONDA_PREFIX"""
USUAL_PREFIXES = (*PREFIXES, "BASH", "LC_", "XDG_", "SSH_", "PYTHON", "COMP_")


# How a shell script reads the words of its command line.
WORDS = r"(?<!\\)\$(?:[1-9@*#]|\{(?:[1-9@*]|#[@*}]))|\bgetopts\b"
FUNCTION = r"""(?smx)^([ \t]*)(?:function\s+[\w:-]+(?:\s*\(\))?|[\w:-]+\s*\(\))\s*[{(](?:[^\n]*[;\s][})][ \t]*$
    |.{0,9000}?\n\1[})])"""
# How a shell script takes options: with getopts, or with a branch such as -n|--count) in a loop.
OPTIONS = r"""\bgetopts\b|[\s(]["']?--?\w[\w-]*["']?(?:[ \t]*\|[^)\n]*)?\)"""


def unseen_inputs(tool: Tool, shown: str, settings: Settings, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for all that the script of a tool reads and will not get."""
    yield from _unseen_arguments(tool, shown)
    if settings.tool_env_mode != "inherit":
        yield from _unseen_variables(tool, shown, settings, environ)


def _unseen_arguments(tool: Tool, shown: str) -> Iterator[Problem]:
    """Yield a problem if the script of a tool expects arguments on its command line."""
    content = content_of(tool.path) or b""
    script = _without(content.decode("utf-8", "replace"), LITERAL, COMMENTS)
    text = _without(script, QUOTES_OF_SHELL, FUNCTION)
    names = list(tool.definition["inputSchema"].get("properties") or ())
    found = re.search(WORDS, text) if program_of(tool.path, content) in SHELLS else None
    if found is None or re.search(r"\bset --", text[: found.start()]) or re.search(r"\bmcp_args|MCP_TOOL_ARGS", script):
        return
    is_passed_on = not names and not re.search(r"\$\{?[1-9]|\bgetopts\b", script)  # "$@", to another program
    if is_passed_on or re.search(r"\w\s*\(\)|\bfunction\s", text):  # what is read may be that of a function
        return
    line = text.count("\n", 0, found.start()) + 1
    reads = f"reads {found[0].replace('{', '')}" if "$" in found[0] else "uses getopts"
    sentence = f"{shown}: line {line}: it {reads}, but a tool gets no command-line arguments"
    fix = "" if names else "describe each argument (# @arg name!  TEXT), and "
    values, parse = [f"$(mcp_args_get {shlex.quote(f'.{name}')})" for name in names[:MOST_NAMED]], ""
    if ARGUMENT in content or not names:
        values, parse = [f"${variable_of(name)}" for name in names[:MOST_NAMED] or ["name"]], "; mcp_args_parse"
    words = " ".join(f'"{value}"' for value in values)
    if re.search(OPTIONS, script):
        words = f'OPTIONS {words}, where OPTIONS are the options that it accepts, such as -n "{values[-1]}"'
    fix += f'write above it: source "$MCP_SDK/tool-sdk.sh"{parse}; set -- {words}'
    fix += "; " if "set -e" in text else " (and set +euo pipefail, which the SDK turns on); "
    yield Problem("warning", "command-line", sentence, fix + WRAP_IT, tool.path, Position(line))


def wanted_variables(path: str, environ: Mapping[str, str]) -> dict[str, tuple[int, bool]]:
    """Return the variables that a script has to get, each with its first line and whether it cannot do without it."""
    content = content_of(path) or b""
    program, text = program_of(path, content), content.decode("utf-8", "replace")
    patterns = SHELL if program in SHELLS else JAVASCRIPT if program in NODE else PYTHON
    if (patterns is PYTHON and not is_python(path, content)) or re.search(PREPARED, text):
        return {}
    text = _without(text, *((LITERAL, COMMENTS, QUOTES_OF_SHELL) if patterns is SHELL else (COMMENTS,)))
    read, needed, written = (_found(pattern, text) for pattern in patterns)
    wanted = (name for name in read if name not in written and is_wanted(name, environ, is_needed=name in needed))
    return {name: (read[name], name in needed) for name in wanted}


def is_wanted(name: str, environ: Mapping[str, str], *, is_needed: bool) -> bool:
    """Tell whether a tool should get a variable that its script or command reads."""
    is_usual = name in (*MINIMAL_NAMES, *_USUAL.split()) or name.startswith(USUAL_PREFIXES)
    return (is_needed or name in environ or is_secret_name(name)) and not is_usual


def _unseen_variables(tool: Tool, shown: str, settings: Settings, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each variable that the script reads and will not get."""
    content = content_of(tool.path) or b""
    wanted, text = wanted_variables(tool.path, environ), _without(content.decode("utf-8", "replace"), COMMENTS)
    allowed = settings.tool_env_allowlist if settings.tool_env_mode == "allowlist" else ()
    seen = {*allowed, *(each.removesuffix("!") for each in tool.description.env)}
    marks = MARK.findall(text) if is_python(tool.path, content) and "mcp_tool" in text else []
    if marks:  # which function reads a variable is not known here, unless it is read outside of all
        declared = re.findall(_NAME, " ".join(re.findall(DECLARED, text)))
        seen.update(name for name in declared if text.split("\n")[wanted.get(name, (1,))[0] - 1][:1].isspace())
    directory, file_name = os.path.split(tool.path)
    is_described = b"mcp:" in content or metadata.meta_files_for(file_name, os.listdir(directory))
    for name in (name for name in wanted if name not in seen):
        sentence = f"{shown}: line {wanted[name][0]}: it reads {name}, which the server does not pass on to it"
        way = f'"env": ["{name}!"] in its description'
        if marks:
            more = f', or # mcp: {{"env": ["{name}!"]}} for all functions in the file' if marks[1:] else ""
            way = f'@{marks[0]}(env=["{name}!"]){more}'
        elif program_of(tool.path, content) in SHELLS and not is_described:
            way = f"# @env {name}!"
        fix = f"declare it: {way}; without ! if it is optional"
        yield Problem("warning", "env", sentence, fix, tool.path, Position(wanted[name][0]))


def _without(text: str, *patterns: str) -> str:
    """Remove what the patterns find, except for line breaks (lines keep their numbers) and text in double quotes."""
    for pattern in patterns:
        text = re.sub(pattern, lambda found: found[0] if found[0][0] == '"' else "\n" * found[0].count("\n"), text)
    return text


def _found(pattern: str, text: str) -> dict[str, int]:
    """Return the names that a pattern finds, each with its first line."""
    found: dict[str, int] = {}
    for match in re.finditer(pattern, text):
        for name in filter(None, match.groups()):
            found.setdefault(name, text.count("\n", 0, match.start()) + 1)
    return found
