"""`mcpgreen wrap`: make a tool out of a command, or out of each task of a file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mcpgreen.catalog.tools import discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.clients.launch import shell_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.names import SAFE_NAME
from mcpgreen.cli.opening import open_named, seconds
from mcpgreen.cli.output import say, tell
from mcpgreen.cli.wrapping import justfiles, makefiles
from mcpgreen.cli.wrapping.asking_help import ask_help
from mcpgreen.cli.wrapping.reading.help_text import read_help
from mcpgreen.cli.wrapping.task_files import Runner, Task, blueprints_of, runner_of_scripts, scripts_in
from mcpgreen.cli.wrapping.tool_file import blueprint_of, existing_tool, tool_name, write_tool
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.project.project import Project

SUBCOMMAND = re.compile(r"[A-Za-z0-9@][\w.:@+-]{0,100}")
INTERPRETER = re.compile(r"(?:python|node|ruby|perl|bash|sh|deno|php)[\d.]*")
MODULE = re.compile(r"[A-Za-z_][\w.]{0,200}")

# For each option, the function that reads the file, and the one that finds out how its tasks are run.
TASK_FILES: dict[str, tuple[Callable[[str], list[Task]], Callable[[str, str], Runner]]] = {
    "--makefile": (makefiles.targets_in, makefiles.runner_for),
    "--justfile": (justfiles.recipes_in, justfiles.runner_for),
    "--package-json": (scripts_in, runner_of_scripts),
}
MANY_ARGUMENTS = 40


class Target(NamedTuple):
    """The directory to write tools to, and the root that they will run in."""

    directory: str
    root: str
    project: Project | None

    def other(self, name: str) -> str | None:
        """The path of an existing tool with this name."""
        if self.project is not None and _is_below(self.directory, self.project.tools_dir):
            for tool in discover_tools(self.project, survey(self.project, [self.project.tools_dir])).items:
                if tool.name == name:
                    return str(tool.path)
        return existing_tool(self.directory, name)


def run(options: Options) -> int:
    """Write the tools. Raises ProjectError and UsageError, which say what to do."""
    name = options["--name"]
    if name is not None and not SAFE_NAME.fullmatch(name):
        raise UsageError(f"--name {name}: a name has 1 to 64 of A-Z a-z 0-9 _ -")
    target = _target(options)
    for option in TASK_FILES:
        if options[option]:
            return _wrap_tasks(option, options[option], prefix=name, target=target)
    return _wrap_command([options["CMD"], *options["SUBCOMMAND"]], name, target, secs=seconds(options))


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
    if output is not None:
        directory = os.path.abspath(os.path.expanduser(output))
        return Target(directory, project.root if project else os.getcwd(), project)
    assert project is not None
    return Target(project.tools_dir, project.root, project)


def _wrap_command(words: Sequence[str], name: str | None, target: Target, *, secs: float | None) -> int:
    program = _program(words[0])
    rest = _subcommands(words)
    name = name or tool_name(" ".join([os.path.basename(words[0]), *(word for word in words[1:] if word[0] != "-")]))
    if not name:
        raise UsageError(f"no name can be made of {words[0]!r}; give one with --name")
    other = target.other(name)
    if other is not None:  # before the command is run
        raise ProjectError(other, f"there is a tool {name} already; choose another name with --name")
    found = ask_help([program, *rest], directory=target.root, secs=secs)
    shown = [_shown(words[0], program, target.root), *rest]
    documented = read_help(found.text, [os.path.basename(words[0]), *rest])
    if not documented.options and not documented.operands and not documented.has_usage:
        reason = "its help has no options and no usage that can be read; write a tool by hand, as docs/tools.md shows"
        raise ProjectError(" ".join(words), reason)
    blueprint = blueprint_of(name, shown, documented, asked_by=found.option)
    say("".join(f"{path}\n" for path in write_tool(blueprint, target.directory)), is_exact=True)
    guesses = f", with {blueprint.guesses} guesses to look at" if blueprint.guesses else ""
    count = len(blueprint.arguments)
    advice = " More than models cope with: remove the ones that are not needed." if count > MANY_ARGUMENTS else ""
    tell(f"{name}: {count} arguments{guesses}.{advice} Try: {shell_words(os.environ)} run-tool {name}\n")
    if documented.subcommands and any(argument.name == "command" for argument in blueprint.arguments):
        example = f"mcpgreen wrap -- {' '.join(words)} {documented.subcommands[0]}"
        tell(f"It has subcommands, and each makes a better tool of its own: {example}\n")
    return 0


def _program(word: str) -> str:
    """The command as a path. Raises ProjectError."""
    if os.sep in word:
        path = os.path.abspath(os.path.expanduser(word))
        if not os.path.isfile(path):
            raise ProjectError(word, "there is no such file")
        if not os.access(path, os.X_OK):
            raise ProjectError(word, "it is not executable; make it so with chmod +x")
        return path
    if shutil.which(word) is None:
        raise ProjectError(word, "there is no such command on the PATH; install it, or name it with its path")
    return word


def _subcommands(words: Sequence[str]) -> list[str]:
    """The words after the command. Raises UsageError for a word that the command might act on: it may only show its
    help."""
    rest = list(words[1:])
    checked = rest
    if INTERPRETER.fullmatch(os.path.basename(words[0])):
        if len(rest) > 1 and rest[0] == "-m" and MODULE.fullmatch(rest[1]):
            checked = rest[2:]
        elif rest and os.path.isfile(rest[0]):
            rest[0] = os.path.abspath(rest[0])
            checked = rest[1:]
    for word in checked:
        kind = "is a file" if os.path.isfile(word) else "is no subcommand" if not SUBCOMMAND.fullmatch(word) else ""
        if kind:
            advice = "name only the command and its subcommands; wrap finds the rest in its help"
            raise UsageError(f"{word} {kind}: {advice}")
    return rest


def _shown(word: str, program: str, root: str) -> str:
    """The command for the script: a name as it is, a path relative to the root, where tools run."""
    if os.sep not in word:
        return word
    return os.path.join(os.curdir, os.path.relpath(program, root)) if _is_below(program, root) else program


def _wrap_tasks(option: str, path: str, *, prefix: str | None, target: Target) -> int:
    path = os.path.abspath(os.path.expanduser(path))
    read, runner_for = TASK_FILES[option]
    found = read(path)
    tasks = [task for task in found if not task.needs_refused]
    if refused := ", ".join(dict.fromkeys(name for task in found for name in task.refused)):
        tell(f"No arguments, since a client could choose with them what is run: {refused}.\n")
        tell("If you need them, write a tool that runs the task, with an enum or a pattern: see docs/tools.md.\n")
    if missing := ", ".join(task.name for task in found if task.needs_refused):
        tell(f"No tools, since they need such an argument: {missing}.\n")
    if not tasks:
        raise ProjectError(path, "it has nothing that a tool could be made of")
    runner = runner_for(path, target.root)
    written = 0
    for blueprint in blueprints_of(tasks, runner, path=path, prefix=prefix or runner.name):
        other = target.other(blueprint.name)
        if other is not None:
            tell(f"{other} exists, and is left as it is.\n")
            continue
        say("".join(f"{path}\n" for path in write_tool(blueprint, target.directory)), is_exact=True)
        written += 1
    if not written:
        raise ProjectError(path, "there is a tool for each of its tasks already")
    tell(f"{written} tools from {os.path.basename(path)}.\n")
    return 0


def _is_below(path: str, root: str) -> bool:
    return os.path.commonpath([os.path.realpath(path), os.path.realpath(root)]) == os.path.realpath(root)
