"""`mcpgreen wrap`: create a tool from a command, or from each task in a file or operation of a REST service.

A command is asked for its help, and for nothing else. It gets no stdin, no terminal, little time and limited output. It
runs in a session of its own, which is killed at the end; on Linux, so are processes that have left the session.

Rule: only the words of the command with `--help` are run; `-h` only if `--help` is refused, because it means something
else to many commands.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from mcpgreen.catalog.tools import discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli import children
from mcpgreen.cli.checking.inputs import is_wanted, wanted_variables
from mcpgreen.cli.checking.scripts import content_of
from mcpgreen.cli.clients.launch import shell_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import SAFE_NAME
from mcpgreen.cli.opening import open_named, seconds
from mcpgreen.cli.output import can_ask, say, tell
from mcpgreen.cli.wrapping import justfiles, makefiles, tool_file
from mcpgreen.cli.wrapping.choosing import choose
from mcpgreen.cli.wrapping.reading.help_text import read_help
from mcpgreen.cli.wrapping.shell_lines import INTERPRETER
from mcpgreen.cli.wrapping.task_files import Task, blueprints_of, runner_of, scripts_in
from mcpgreen.cli.wrapping.tool_file import Blueprint, plain, script_of
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.project.project import Project
from mcpgreen.running.processes.stopping import adopted_strays
from mcpgreen.running.scripts.shebang import SHELLS, program_of
from mcpgreen.text.uris import is_within

SUBCOMMAND = re.compile(r"[A-Za-z0-9@][\w.:@+-]{0,100}")
MODULE = re.compile(r"[A-Za-z_][\w.]{0,200}")

# For each option, the function that reads the tasks of the file, the program that runs them, and the file's name.
TASK_FILES: dict[str, tuple[Callable[[str], list[Task]], str, str]] = {
    "--makefile": (makefiles.targets_in, "make", r"(?i)(?:gnu)?makefile|.+\.mk"),
    "--justfile": (justfiles.recipes_in, "just", r"(?i)\.?justfile|.+\.just"),
    "--package-json": (scripts_in, "npm", r"package\.json"),
}
# With an argument of these programs, a client could choose what is run.
WRAPPED_BY_FILE = dict.fromkeys(("npm run", "yarn run", "pnpm run"), "--package-json package.json")
WRAPPED_BY_FILE |= {"make": "--makefile Makefile", "gmake": "--makefile Makefile", "just": "--justfile justfile"}

HELP_SECS = 20.0
MAX_HELP_BYTES = 1 << 20
STRAYS_SECS = 1.0
SHOWN_CHARS = 200
MAX_MANUAL_BYTES = 20_000
# The sentence in `.SH NAME`, after the name and a dash; of mdoc, the line `.Nd`.
MANUAL_NAME = re.compile(
    r'^\.S[Hh] +"?NAME"?\n(?:\.[^\n]{0,200}\n){0,4}[^\n]{1,200}? \\?[-\u2014]+ +(.{1,300})$|^\.Nd +(.{1,300})$', re.M
)
ROFF = re.compile(r"\\f[A-Z]|\\f\([A-Z]{2}|\\&")

# What is said about an existing tool, by how it differs from the new one.
STATES = {
    "changed": "it is out of date; to replace it, add --update",
    "edited": "you have edited it, so it is kept",
    "conflict": "it is out of date, but you have edited it, so it is kept; compare it with --output DIR",
    "other": "it is not written, because {} already has that name; choose a prefix with --name",
}
# Not in the name of a command, such as "disk-usage.sh: illegal option". Then the variables that a command reads.
USAGE = re.compile(r"(?i)(?<![\w./-])(?:usage|synopsis)\b(?!\.\w|-)|^ +--?\w", re.MULTILINE)
VARIABLES = re.compile(r"(?im)^environment(?: variables)?:?[ \t]*\n((?:[ \t]+\S.*\n|[ \t]*\n)+)")
VARIABLE = re.compile(r"(?m)^[ \t]+\$?([A-Z][A-Z0-9_]{1,63})\b(.*(?i:(?<!not )required|must be set))?")
SHOWS_HELP = re.compile(r"(?i)--help|(?<![\w-])-h\b|usage|getopts|\$\{?[@*]")  # or passes its words on
BY_HAND = "write a tool by hand, as docs/tools.md#a-script-that-reads-1-or-takes-options shows"
# English, no colours, no pager, and long lines.
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "LANGUAGE": "", "TERM": "dumb", "NO_COLOR": "1"}
ENVIRONMENT |= {"COLUMNS": "200", "MANWIDTH": "200", "PAGER": "cat", "MANPAGER": "cat", "GIT_PAGER": "cat"}
UNWANTED = ("FORCE_COLOR", "CLICOLOR_FORCE", "PYTHONINSPECT")


class Target(NamedTuple):
    """The directory to write tools to, and the root that they will run in."""

    directory: str
    root: str
    project: Project | None

    def taken(self) -> dict[str, str]:
        """Return the names of tools, and of files that keep a tool from being written, each with its path."""
        taken: dict[str, str] = {}
        with suppress(OSError):
            for entry in sorted(os.listdir(self.directory)):
                taken.setdefault(entry.partition(".")[0], os.path.join(self.directory, entry))
        if self.project and is_within(*map(os.path.realpath, (self.directory, self.project.tools_dir))):
            tools = discover_tools(self.project, survey(self.project, [self.project.tools_dir])).items
            taken |= {tool.name: str(tool.path) for tool in tools}
        return taken


def run(options: Options) -> int:
    """Write the tools. Raises ProjectError and UsageError, which say what to do."""
    name = options["--name"]
    if name is not None and not SAFE_NAME.fullmatch(name):
        raise UsageError(f"--name {name}: a name has 1 to 64 characters from A-Z a-z 0-9 _ -")
    target = _target(options)
    only = options["--only"]
    chosen = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    if chosen == []:
        raise UsageError("--only needs names, separated by commas")
    for option in TASK_FILES:
        if options[option]:
            _write_all(_task_tools(option, chosen, options, target), options[option], options, target)
            return 0
    if options["--openapi"]:
        from mcpgreen.cli.wrapping import openapi

        place = options["--openapi"]
        document = openapi.Document(place, openapi.read_document(place), f"{name}-" if name else "")
        made = document.tools_made(target.directory)
        tools = list(openapi.tools_in(document, chosen, options, made))
        gone = [name for name, is_known in made.items() if not is_known]
        say("".join(f"{'gone':8} {name}\n" for name in gone if options["--dry-run"]))
        written = _write_all(tools, openapi.source_name(place), options, target)
        if gone and not options["--dry-run"]:
            stems = [os.path.relpath(os.path.join(target.directory, name)) for name in gone]
            files = [stem + suffix for stem in stems for suffix in (".py", tool_file.DESCRIPTION_SUFFIX)]
            tell(f"The document no longer has the operations of these tools; to delete them: rm {shlex.join(files)}\n")
        if variables := sorted({variable.rstrip("!") for blueprint in written for variable in blueprint.env}):
            config = f"{shell_words(os.environ)} config --client CLIENT --install --env {' --env '.join(variables)}"
            tell(f"The tools need the service's keys. To try a tool, set {', '.join(variables)} in your shell. ")
            tell(f"To pass them on to a client, run {config}\n")
        return 0
    return _wrap_command(options, chosen, target)


def _target(options: Options) -> Target:
    output = options["--output"]
    if output == "":
        raise UsageError("--output needs a directory")
    try:
        project = open_named(options)[0]
    except ProjectError:
        if output is None or options["--project-root"]:
            raise
        project = None  # the folder may become a project later
    directory = os.path.abspath(os.path.expanduser(output)) if project is None or output else project.tools_dir
    return Target(directory, project.root if project else os.getcwd(), project)


def _wrap_command(options: Options, only: Sequence[str] | None, target: Target) -> int:
    words, name, takes_all = [options["CMD"], *options["SUBCOMMAND"]], options["--name"], bool(options["--all"])
    program, rest = _program(words[0]), _subcommands(words)
    program_name = os.path.basename(words[0])
    if instead := WRAPPED_BY_FILE.get(program_name) or WRAPPED_BY_FILE.get(f"{program_name} {words[-1]}"):
        raise ProjectError(words[0], f"it runs the targets or scripts that you name; use mcpgreen wrap {instead}")
    stem = re.sub(r"(?<=.)\.(?:sh|bash|py)$", "", os.path.basename(words[0]))
    name = name or tool_file.tool_name(" ".join([stem, *(word for word in words[1:] if word[0] != "-")]))
    if not name:
        raise UsageError(f"no tool name can be derived from {words[0]!r}; choose one with --name")
    if other := target.taken().get(name):  # before the command is run
        raise ProjectError(other, f"there is already a tool named {name}; choose another name with --name")
    script = next(filter(os.path.isabs, [*rest, program]), "")  # not one that somebody else has installed
    content = content_of(script) or b""
    if program_of(script, content) in SHELLS and not SHOWS_HELP.search(content.decode("utf-8", "replace")):
        raise ProjectError(words[0], f"it does not seem to have a --help, and might run for real; {BY_HAND}")
    text, asked_by = _ask_help([program, *rest], directory=target.root, secs=seconds(options))
    variables = _variables(text, script or shutil.which(program) or program)
    for path in filter(os.path.isabs, [program, *rest]):
        text = text.replace(path, os.path.basename(path))  # models need not know where it is
    if os.sep in words[0] and is_within(os.path.realpath(program), os.path.realpath(target.root)):
        program = os.path.join(os.curdir, os.path.relpath(program, target.root))  # tools run in the root
    called = [os.path.basename(words[0]), *rest]
    documented = read_help(text, called)
    if not documented.options and not documented.operands and not documented.has_usage:
        raise ProjectError(" ".join(words), f"its help has no usage line that wrap can parse; add one, or {BY_HAND}")
    is_installed = os.sep not in words[0]  # a script of the project has no manual, and nothing is known about it
    if is_installed and not documented.summary:
        documented = documented._replace(summary=_manual_name(called))
    choice = choose(documented, only=only, takes_all=takes_all, asks=only is None and not takes_all and can_ask())
    # Without this option, tar and cpio take HOST:FILE for a file of another host, and start rsh.
    always = ["--force-local"] if any("--force-local" in option.names for option in documented.options) else []
    blueprint = tool_file.blueprint_of(name, [program, *rest, *always], choice.documented, asked_by=asked_by)
    blueprint = blueprint._replace(env=variables)
    if is_installed:
        hints = tool_file.annotations_of(called, is_harmless=choice.is_harmless)
        blueprint = blueprint._replace(annotations=hints, status_1=tool_file.STATUS_1.get("-".join(called), ""))
    tool_file.write_tool(tool_file.files_of(blueprint, script_of(blueprint), target.directory))
    count, guesses = len(blueprint.arguments), blueprint.guesses
    told = f", with {guesses} guess{'' if guesses == 1 else 'es'} to check" if guesses else ""
    told = f"{name}: {count} argument{'' if count == 1 else 's'}{told}."
    place = ["--project-root", options["--project-root"]] if options["--project-root"] else []
    example = shlex.join([name, *tool_file.example_words(blueprint), *place])
    tell(f"{told} Try: {shell_words(os.environ)} run-tool {example}\n")
    if variables:
        read = [variable.rstrip("!") for variable in variables]
        tell(f"It reads {', '.join(read)} (passed on by env in its description). To set this for a client, run ")
        added = shlex.join([*place, *(word for name in read for word in ("--env", name))])
        tell(f"{shell_words(os.environ)} config --client CLIENT --install {added}\n")
    for names, why in (
        (choice.left, "choose with --only NAME,... or take all with --all"),
        (choice.risky, "they can run programs, or write or delete files; take one with --only"),
    ):
        if names and only is None:
            tell(f"Left out {len(names)}: {plain(', '.join(names), 2 * SHOWN_CHARS)} ({why})\n")
    if choice.missing:
        tell(f"The command requires {', '.join(choice.missing)}, which the tool does not have.\n")
    if documented.subcommands and any(argument.name == "command" for argument in blueprint.arguments):
        example = f"mcpgreen wrap -- {' '.join(words)} {documented.subcommands[0]}"
        tell(f"It has subcommands; wrapping one of them makes a better tool: {example}\n")
    return 0


def _variables(text: str, path: str) -> tuple[str, ...]:
    """Return the variables that a command needs, by its help and its script, as a description names them."""
    found = [each for section in VARIABLES.findall(f"{text}\n") for each in VARIABLE.findall(section)]
    found += [(name, "!" * needs) for name, (_, needs) in wanted_variables(path, os.environ).items()]
    needed = {name for name, needs in found if needs}
    names = {name for name, _ in found if is_wanted(name, os.environ, is_needed=name in needed)}
    return tuple(name + "!" * (name in needed) for name in sorted(names)[:20])


def _manual_name(command: Sequence[str]) -> str:
    """Return the sentence after the name at the beginning of a manual page, or nothing."""
    prefix = os.path.dirname(os.path.dirname(shutil.which(command[0]) or ""))
    for directory in (prefix, "/usr"):
        page = os.path.join(directory, "share", "man", "man1", f"{'-'.join(command)}.1")
        for opened, path in ((gzip.open, f"{page}.gz"), (open, page)):
            with suppress(OSError, EOFError, zlib.error), opened(path, "rb") as stream:
                if found := MANUAL_NAME.search(stream.read(MAX_MANUAL_BYTES).decode("utf-8", "replace")):
                    return ROFF.sub("", found[1] or found[2]).replace("\\-", "-")
    return ""


def _program(word: str) -> str:
    """Return the command as a name on the PATH, or as an absolute path. Raises ProjectError."""
    fitting = [option for option, row in TASK_FILES.items() if re.fullmatch(row[2], os.path.basename(word))]
    fitting += ["--openapi"] if re.fullmatch(r"https?://.+|.+\.(?:json|ya?ml)", word) else []
    if fitting and ("://" in word or os.path.isfile(word)):
        meant = f"{shell_words(os.environ)} wrap {fitting[0]} {shlex.quote(word)}"
        raise ProjectError(word, f"it is not a command; did you mean {meant}?")
    if os.sep in word:
        path = os.path.abspath(os.path.expanduser(word))
        if not os.path.isfile(path):
            raise ProjectError(word, "there is no such file")
        if not os.access(path, os.X_OK):
            raise ProjectError(word, "it is not executable; run chmod +x on it")
        return path
    if shutil.which(word) is None:
        raise ProjectError(word, "there is no such command on the PATH; install it, or give its full path")
    return word


def _subcommands(words: Sequence[str]) -> list[str]:
    """Return the words after the command. Raises UsageError for a word that the command might act on: it may only show
    its help."""
    rest = checked = list(words[1:])
    if INTERPRETER.fullmatch(words[0]):
        if len(rest) > 1 and rest[0] == "-m" and MODULE.fullmatch(rest[1]):
            checked = rest[2:]
        elif rest and os.path.isfile(rest[0]):
            rest[0] = os.path.abspath(rest[0])
            checked = rest[1:]
    for word in checked:
        kind = "is a file" if os.path.isfile(word) else "is not a subcommand" if not SUBCOMMAND.fullmatch(word) else ""
        if kind:
            raise UsageError(f"{word} {kind}: name only the command and its subcommands; its help has the rest")
    return rest


def _ask_help(command: Sequence[str], *, directory: str, secs: float | None) -> tuple[str, str]:
    """Run a command with --help, or else -h. Return its help and the option. Raises ProjectError if it has none."""
    secs = secs or HELP_SECS
    shown = " ".join(command)[:SHOWN_CHARS]
    for option in ("--help", "-h"):
        ended = _run([*command, option], directory=directory, secs=secs)
        # A command that does not know the option may print its usage all the same.
        is_known = ended.status == 0 and "illegal option --" not in ended.stderr.lower()
        is_help: Callable[[str], object] = str.strip if is_known else USAGE.search
        if text := next(filter(is_help, (ended.stdout, ended.stderr)), ""):
            return text, option
        if ended.is_late:
            reason = f"it did not finish within {secs:g} s, and was stopped; allow it more time with --timeout"
            raise ProjectError(f"{shown} {option}", reason)
        if is_known:
            break  # it knows --help, and prints nothing
    said = " ".join((ended.stderr or ended.stdout).split())[:SHOWN_CHARS]
    reason = "its --help could not be read" + (f" ({said})" if said.isprintable() and said else "")
    raise ProjectError(shown, f"{reason}; make it print a usage line, set the variables that it needs, or {BY_HAND}")


def _run(words: Sequence[str], *, directory: str, secs: float) -> children.Ended:
    strays = adopted_strays(set(), set())
    environ = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    try:
        return children.run(
            words, env=environ | ENVIRONMENT, cwd=directory, stderr=subprocess.PIPE, secs=secs, max_bytes=MAX_HELP_BYTES
        )
    except OSError as error:
        raise ProjectError(words[0], f"it cannot be started: {error.strerror}") from error
    finally:
        # Kill processes that left the session and became our children; repeatedly, because they may be forking.
        until = time.monotonic() + STRAYS_SECS
        while strays is not None and strays.kill_others({}) and time.monotonic() < until:
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.005)
        if strays is not None:
            strays.close()


def _task_tools(option: str, only: list[str] | None, options: Options, target: Target) -> list[tuple[Blueprint, str]]:
    path = os.path.abspath(os.path.expanduser(options[option]))
    read, program, _ = TASK_FILES[option]
    found = read(path)
    if unknown := set(only or ()) - {task.name for task in found}:
        raise UsageError(f"--only: {path} has no {', '.join(sorted(unknown))}")
    found = [task for task in found if only is None or task.name in only]
    tasks = [task for task in found if not task.needs_refused]
    if refused := ", ".join(dict.fromkeys(name for task in found for name in task.refused)):
        tell(f"These arguments are left out, because clients could use them to choose a program or file: {refused}.\n")
        tell("If you need them, write a tool that runs the task, with an enum or a pattern: see docs/wrap.md.\n")
    if missing := ", ".join(task.name for task in found if task.needs_refused):
        tell(f"These tasks are left out, because they need such an argument: {missing}.\n")
    if not tasks:
        raise ProjectError(path, "nothing in it can become a tool")
    blueprints = blueprints_of(tasks, runner_of(path, target.root, program), path=path, prefix=options["--name"])
    return [(blueprint, script_of(blueprint)) for blueprint in blueprints]


def _write_all(tools: Sequence[tuple[Blueprint, str]], place: str, options: Options, target: Target) -> list[Blueprint]:
    """Write and return tools whose names are free and, with `--update`, those that have changed and were not edited."""
    written, taken = [], target.taken()
    for blueprint, script in tools:
        files = tool_file.files_of(blueprint, script, target.directory)
        state = tool_file.state_of(files) if blueprint.name in taken else "new"
        is_replaced = state == "changed" and options["--update"]
        if options["--dry-run"]:
            say(f"{state:8} {blueprint.name}: {blueprint.description}\n")
        elif state == "new" or is_replaced:
            tool_file.write_tool(files, replaces=is_replaced)
            written.append(blueprint)
        elif state in STATES and (state != "edited" or options["--only"]):
            tell(f"{blueprint.name}: {STATES[state].format(taken[blueprint.name])}.\n")
    count = f"{len(written)} tool{'' if len(written) == 1 else 's'}" if written else "No new tools"
    tell("Nothing was written.\n" if options["--dry-run"] else f"{count} from {os.path.basename(place)}.\n")
    return written
