"""Run a command line, or say what is wrong with it."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from itertools import combinations, takewhile

from mcpgreen import __version__, journal
from mcpgreen.cli.commands import BY_NAME, Command, Options, first_screen
from mcpgreen.errors import McpgreenError, UsageError

# Users of mcp-bash may look for them.
COMMANDS_OF_MCP_BASH = ("publish", "debug")
ROOT = "--project-root"

Serve = Callable[..., int]  # a project root and, for HTTP, an address


def run(arguments: Sequence[str], *, serve: Serve) -> int:
    """Run one command line. Return the exit status: 0 done, 1 failed, 2 wrong usage, 141 the reader of stdout is gone.

    `serve` comes from `__main__`, which imports it quickly.
    """
    try:
        status = _run_command(arguments, serve)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # as with `mcpgreen list | head -1`
        failure = 128 + signal.SIGPIPE
    except OSError as error:
        if error.filename is not None:  # not stdout
            raise
        journal.error("the output cannot be written: %s", error.strerror)
        failure = 1
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try again at exit
    return failure


def _run_command(arguments: Sequence[str], serve: Serve) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        return _help(arguments[1:])
    if arguments[0] in ("-v", "--version"):
        sys.stdout.write(f"mcpgreen {__version__}\n")
        return 0
    name = _command_in(arguments)
    command = BY_NAME.get(name)
    if command is None:
        return _refused(_unknown(name))
    from docopt import DocoptExit, docopt

    text = command.text()
    try:
        with redirect_stdout(StringIO()):  # --help has other words for a terminal
            options: Options = docopt(text, argv=list(arguments), default_help=True)
    except DocoptExit:
        return _refused(_fault(arguments, command, text), command)
    except SystemExit:
        return _help([name])
    if options.get(ROOT) == "":
        return _refused(f"{ROOT} needs a value", command)
    try:
        if command.function:
            return command.load()(options)
        if options["--fleet"]:
            from mcpgreen.cli.fleet.commands import use_fleet

            use_fleet(options)
        return serve(options[ROOT] or "", http=(options["ADDRESS"] or "") if options["--http"] else None)
    except McpgreenError as error:
        journal.error("%s", error)
        return 2 if isinstance(error, UsageError) else 1


def _help(words: Sequence[str]) -> int:
    command = BY_NAME.get(words[0]) if words else None
    if words and command is None:
        return _refused(_unknown(words[0]))
    from mcpgreen.cli.output import say_help

    say_help(command.text() if command else first_screen())
    return 0


def _command_in(arguments: Sequence[str]) -> str:
    """Return the first word that is neither an option nor the value of `--project-root`, which may come first."""
    is_value = False
    for word in arguments:
        if not is_value and (not word.startswith("-") or word in BY_NAME):
            return word
        is_value = len(word) > len("--") and ROOT.startswith(word)
    return "serve"


def _unknown(name: str) -> str:
    if name in COMMANDS_OF_MCP_BASH:
        return f"{name} is a command of mcp-bash that mcpgreen does not have; see docs/from-mcp-bash.md"
    from mcpgreen.cli.output import did_you_mean

    return f"unknown command: {name}" + did_you_mean(name, (each for each in BY_NAME if not each.startswith("-")))


def _refused(fault: str, command: Command | None = None) -> int:
    about = f"{command.name} " if command else ""
    sys.stderr.write(f"mcpgreen: {fault}\nTry: mcpgreen {about}--help\n")
    return 2


def _fault(arguments: Sequence[str], command: Command, text: str) -> str:
    usage = text[text.index("Usage:") :].partition("\n\n")[0]
    words, fault = _words_of(arguments, dict(re.findall(r"(--[a-z-]+)(?: ([A-Z]+))?", usage)))
    words = words[1:]
    max_words = command.max_words if not command.words_need or command.words_need in arguments else 0
    if fault is None and len(words) > max_words:
        fault = f"unexpected word: {words[max_words]}"
    given = [word.partition("=")[0] for word in takewhile("--".__ne__, arguments) if word.startswith("--")]
    alternatives = re.findall(r"[\[(]([^\[\]()]+\|[^\[\]()]+)[\])]", usage)
    for one, other in combinations(given, 2):
        are_in_a_form = any(one in form and other in form for form in usage.split("\n  mcpgreen "))
        if not are_in_a_form or any(one in group and other in group for group in alternatives if one != other):
            fault = fault or f"{other} cannot be used with {one}; leave out one of them"
        if one == other and not re.search(rf"{one}(?: [A-Z=]+)?\]\.\.\.", usage):
            fault = fault or f"{one} may be given only once"
    if fault is None and command.needs:
        fault = f"{command.name} needs {command.needs}"
    return fault or f"this command line is not valid. {' '.join(usage.split())}"


def _words_of(arguments: Sequence[str], values: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Return the words that belong to no option, and what is wrong with the first wrong option. `values` has the value
    of each option, or "". Options may be shortened."""
    words: list[str] = []
    fault = None
    rest = iter(arguments)
    for word in rest:
        if word == "--":  # the rest is not for us
            words += rest
            break
        name, equals, _ = word.partition("=")
        if not name.startswith("-") or name == "-":
            words.append(word)
            continue
        meant = next((option for option in values if option.startswith(name)), None) if name[:2] == "--" else None
        if meant is None:
            fault = fault or f"unknown option: {name}"
        elif values[meant] and not equals and next(rest, None) is None:
            fault = fault or f"{meant} needs a value"
    return words, fault
