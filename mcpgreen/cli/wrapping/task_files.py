"""Create a tool for each task in a Makefile, justfile or package.json. The scripts in a package.json are read here.

Rule: such a file is read as text and never evaluated, and values of clients must not be evaluated either. make, just
and npm pass values to a shell, so only plain values are accepted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from mcpgreen.cli.wrapping import tool_file
from mcpgreen.cli.wrapping.reading.value_types import words_in
from mcpgreen.cli.wrapping.shell_lines import EDGE, PLAIN_VALUE, is_destructive, is_harmless
from mcpgreen.cli.wrapping.tool_file import Argument, Blueprint, list_schema, plain
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_FILE_BYTES = 1 << 20
MAX_TASKS = 200
NAME_CHARS = 100
# Other package managers, by the lock file beside package.json.
OTHERS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
DIRECTORY_OPTION = {"make": "-C", "npm": "--prefix", "pnpm": "--dir", "yarn": "--cwd", "bun": "--cwd"}
USUAL_NAMES = words_in("Makefile makefile GNUmakefile justfile Justfile .justfile")
DESTROYS = "!"  # among the names that readers collect from the lines of a task: one of the lines is destructive
ABOUT_VALUES = "{runner} passes values to a shell, so the description allows only plain ones (see its patterns)"


class Parameter(NamedTuple):
    """A parameter of a task. With `words` it is an option, the last of which is such as NAME={}; else an operand."""

    name: str
    text: str = ""
    words: tuple[str, ...] = ()
    is_required: bool = False
    is_repeated: bool = False


class Task(NamedTuple):
    name: str
    text: str = ""
    parameters: tuple[Parameter, ...] = ()
    refused: tuple[str, ...] = ()  # parameters that clients must not choose, each with its place
    needs_refused: bool = False  # the task cannot be run without one of them
    is_destructive: bool = False


def text_of(path: str) -> str:
    """The file as text. Raises ProjectError."""
    return content_of(path, MAX_FILE_BYTES).decode("utf-8", "replace").replace("\r\n", "\n")


def runner_of(path: str, root: str, program: str) -> list[str]:
    """Return the words that run a task of a file, for tools that run in `root`: the program, and where the file is."""
    directory, name = os.path.split(os.path.realpath(path))
    relative = os.path.relpath(directory, root)
    directory = directory if relative.startswith(os.pardir) else relative
    is_elsewhere, is_unusual = directory != os.curdir, name not in USUAL_NAMES
    if program == "just":
        place = ["--justfile", os.path.normpath(os.path.join(directory, name)), "--working-directory", directory]
        return [program, *(place if is_elsewhere or is_unusual else [])]
    if program == "npm":
        beside = os.path.dirname(os.path.realpath(path))
        program = next((name for file, name in OTHERS.items() if os.path.exists(os.path.join(beside, file))), program)
    words = [program, *([DIRECTORY_OPTION[program], directory] if is_elsewhere else [])]
    if program == "make":
        return [*words, *(["-f", name] if is_unusual else [])]
    return [*words, "run", *(["--silent"] if program == "npm" else [])]


def blueprints_of(tasks: Sequence[Task], runner: Sequence[str], *, path: str, prefix: str | None) -> list[Blueprint]:
    found: dict[str, Blueprint] = {}
    for task in tasks[:MAX_TASKS]:
        name = tool_file.unique_name(tool_file.tool_name(f"{prefix or runner[0]}-{task.name}"), found, joint="-")
        arguments = _arguments(task)
        command = (*runner, task.name)
        first = next((argument.name for argument in arguments if argument.method == "operand"), None)
        found[name] = Blueprint(
            name,
            f"{task.name} in {os.path.basename(path)}",
            tool_file.describe(task.text, command),
            command,
            arguments,
            (ABOUT_VALUES.format(runner=runner[0]),) if arguments else (),
            first if runner[0] == "npm" else None,
            annotations={"destructiveHint": True} if task.is_destructive else {},
        )
    return list(found.values())


def _arguments(task: Task) -> tuple[Argument, ...]:
    arguments: list[Argument] = []
    taken: set[str] = set()
    for parameter in task.parameters:
        schema: Json = {"type": "string", "pattern": PLAIN_VALUE}
        if parameter.is_repeated:
            schema = list_schema(schema, is_required=parameter.is_required)
        schema["description"] = plain(parameter.text) or f"The value of {parameter.name}."
        method = "option" if parameter.words else "operand"
        name = tool_file.take_name(parameter.name, taken)
        arguments.append(Argument(name, schema, method, parameter.words, is_required=parameter.is_required))
    return tuple(arguments)


def scripts_in(path: str) -> list[Task]:
    """The scripts of a package.json, with their descriptions. Raises ProjectError."""
    try:
        package = jsontext.loads(text_of(path))
    except ValueError as error:
        raise ProjectError(path, f"it is not JSON: {error}") from error
    scripts = package.get("scripts") if isinstance(package, dict) else None
    if not isinstance(scripts, dict):
        raise ProjectError(path, 'it has no "scripts"')
    infos = package.get("scripts-info")
    tasks = []
    for name, script in scripts.items():
        is_hook = any(name.startswith(when) and name[len(when) :] in scripts for when in ("pre", "post"))
        is_name = 0 < len(name) <= NAME_CHARS and name.isprintable() and not name.startswith(("-", "/", "?", "_"))
        if not isinstance(script, str) or is_hook or not is_name:
            continue
        info = infos.get(name) if isinstance(infos, dict) else None
        said = info or scripts.get(f"//{name}") or scripts.get(f"?{name}")
        text = said if isinstance(said, str) else f"Run the script {name}: {script}"
        words = Parameter("arguments", "Words to append to the script's command line.", is_repeated=True)
        is_plain = is_harmless(f"{script.replace(EDGE, '')} {EDGE}{words.name}{EDGE}", {words.name})
        parameters, refused = ((words,), ()) if is_plain else ((), (f"words after {name}",))
        destroys = any(is_destructive(name, str(scripts.get(f"{when}{name}", ""))) for when in ("pre", "", "post"))
        tasks.append(Task(name, text, parameters, refused, is_destructive=destroys))
    return tasks
