"""What Makefiles, justfiles and package.json have in common: a file that names tasks, and a tool for each of them.

Rule: such a file is read as text and never evaluated, and what a client sends must not be evaluated either. make, just
and npm all hand values to a shell, so only plain ones are let through.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from mcpgreen.cli.wrapping.blueprint import (
    Argument,
    Blueprint,
    list_schema,
    plain,
    property_name,
    tool_name,
    unique_name,
)
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import without_waiting

MAX_FILE_BYTES = 1 << 20
MAX_TASKS = 200
# Nothing that a shell or make would expand, split or take for an option.
PLAIN_VALUE = "^[A-Za-z0-9_./:,@%+=][A-Za-z0-9_./:,@%+=-]*$"
ABOUT_VALUES = "{runner} gives values to a shell, so the description lets only plain ones through (see its patterns)"


class Parameter(NamedTuple):
    """What a task can be given. With `word` it is an assignment, such as NAME={}, else an operand."""

    name: str
    text: str = ""
    word: str = ""
    is_required: bool = False
    is_repeated: bool = False


class Task(NamedTuple):
    name: str
    text: str = ""
    parameters: tuple[Parameter, ...] = ()


class Runner(NamedTuple):
    """How a task of this file is run."""

    name: str  # what its tools begin with
    command: tuple[str, ...]
    ends_options: bool = False


def text_of(path: str) -> str:
    """The file as text. Raises ProjectError."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ProjectError(path, f"it cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise ProjectError(path, f"it has more than {MAX_FILE_BYTES} bytes")
    return content.decode("utf-8", "replace").replace("\r\n", "\n")


def place_of(path: str, root: str) -> str:
    """The directory of a file as a tool will see it, whose own is `root`; empty if they are the same."""
    directory = os.path.dirname(os.path.realpath(path))
    relative = os.path.relpath(directory, root)
    if relative == os.curdir:
        return ""
    return directory if relative.startswith(os.pardir) else relative


def blueprints_of(tasks: Sequence[Task], runner: Runner, *, path: str, prefix: str) -> list[Blueprint]:
    found: dict[str, Blueprint] = {}
    for task in tasks[:MAX_TASKS]:
        name = unique_name(tool_name(f"{prefix}-{task.name}"), found, joint="-")
        arguments = _arguments(task)
        command = (*runner.command, task.name)
        shown = plain(" ".join(command), 200)
        first = next((argument.name for argument in arguments if argument.method == "operand"), None)
        found[name] = Blueprint(
            name,
            f"{task.name} in {os.path.basename(path)}",
            plain(f"{(task.text or f'Run {task.name}').rstrip('.')}. (Runs {shown}.)"),
            command,
            arguments,
            (ABOUT_VALUES.format(runner=runner.command[0]),) if arguments else (),
            first if runner.ends_options else None,
        )
    return list(found.values())


def _arguments(task: Task) -> tuple[Argument, ...]:
    arguments: dict[str, Argument] = {}
    for parameter in task.parameters:
        name = property_name(parameter.name, arguments)
        schema: dict[str, Any] = {"type": "string", "pattern": PLAIN_VALUE}
        if parameter.is_repeated:
            schema = list_schema(schema, is_required=parameter.is_required)
        schema["description"] = plain(parameter.text) or f"The value of {parameter.name}."
        words = (parameter.word,) if parameter.word else ()
        method = "option" if parameter.word else "operand"
        arguments[name] = Argument(name, schema, method, words, is_required=parameter.is_required)
    return tuple(arguments.values())
