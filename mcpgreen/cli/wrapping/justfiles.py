"""The recipes of a justfile, with their parameters and what is written about them.

Rule: as in a Makefile, a parameter is an argument only if every line that uses it is harmless, as `shell_lines` says.
"""

from __future__ import annotations

import os
import re

from mcpgreen.cli.wrapping.makefiles import OBEYED
from mcpgreen.cli.wrapping.shell_lines import EDGE, IDENTIFIER, SHELLS, has_computed_name, is_harmless, is_plain
from mcpgreen.cli.wrapping.task_files import Parameter, Runner, Task, place_of, text_of

USUAL_NAMES = ("justfile", "Justfile", ".justfile")
MAX_PARAMETERS = 20

RECIPE = re.compile(r"^@?([A-Za-z][\w-]{0,100})(?=[\s:])")
PARAMETER = re.compile(
    r"\s+([+*]?)\$?([A-Za-z_][\w-]{0,60})"
    r"(?:\s?=\s?('[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`|\([^()\n]{0,200}\)|[^\s:'\"`(]{1,200}))?"
)
END = re.compile(r"\s*:(?!=)")
DOC = re.compile(r"\bdoc\s?(?:\(\s*|:\s*)['\"]([^'\"]{0,500})['\"]")
CONSTANT = re.compile(r"(?:export\s+)?([A-Za-z_][\w-]*)\s*:=\s*('[^'\n]*'|\"[^\"\\\n]*\")\s*")
SHELL = re.compile(r"\s*set\s+[\w-]*(?:shell|interpreter)\s*:=\s*\[\s*['\"](?:[^'\"]*/)?([^'\"/]*)")
INTERPOLATION = re.compile(r"\{\{\s*([A-Za-z_][\w-]*)\s*\}\}")
POSITIONAL = re.compile(r"\$(?:[@*0-9]|\{[@*0-9]\})")  # where a setting has them, they are all parameters
USES_POSITIONAL = re.compile(r"\$\{[@*0-9]|\bfor\s+\w+\s*;|\b(?:for|select)\s+\w+\s+do\b|\b(?:shift|set|getopts)\b")
QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
NOT_RECIPES = ("alias", "export", "import", "mod", "set", "unexport")


def runner_for(path: str, root: str) -> Runner:
    directory, name = place_of(path, root), os.path.basename(path)
    place = ("--justfile", os.path.join(directory, name), "--working-directory", directory or ".")
    return Runner("just", ("just", *(place if directory or name not in USUAL_NAMES else ())))


def recipes_in(path: str) -> list[Task]:
    lines = re.sub(r"(?<!\\)\\\n[ \t]*", "", text_of(path)).split("\n")
    constants = {found[1] for line in lines if (found := CONSTANT.fullmatch(line)) and is_plain(found[2][1:-1])}
    is_shell = all(found[1] in SHELLS for line in lines if (found := SHELL.match(line)))
    tasks: dict[str, Task] = {}
    refused: dict[str, set[str]] = {}
    comment = doc = ""
    is_private = is_script = False
    task: Task | None = None
    for line in lines:
        if task and line.startswith((" ", "\t")):
            names = {each.name for each in task.parameters}
            is_line = is_shell and not is_script and not line.lstrip().startswith("#!")
            refused[task.name] |= _refused_in(line, names, constants) if is_line else names
            is_script = not is_line
            continue
        if line.startswith("#"):
            comment = line.lstrip("# ").strip() if not line.startswith("#!") else ""
            continue
        if line.startswith("["):
            is_private = is_private or re.search(r"\bprivate\b", line) is not None
            is_script = is_script or re.search(r"\bscript\b", line) is not None
            found = DOC.search(line)
            doc = found[1] if found else doc
            continue
        task = _recipe(line) if line else task
        if line and task and not is_private and task.name not in tasks:
            tasks[task.name] = task._replace(text=doc or comment)
            refused[task.name] = _refused_in_head(line, task)
        elif line:
            task, is_script = None, False
        comment = doc = ""
        is_private = False
    return [_without(task, refused[task.name]) for task in tasks.values()]


def _refused_in(line: str, names: set[str], constants: set[str]) -> set[str]:
    """The parameters that a line of a recipe does not use as words for a program."""
    if "{{" in INTERPOLATION.sub("", line):
        return set(names)  # an expression, or braces that mean themselves
    marked = INTERPOLATION.sub(rf"{EDGE}\1{EDGE}", line.replace(EDGE, ""))
    marked = POSITIONAL.sub("".join(f"{EDGE}{name}{EDGE}" for name in names), marked)
    for name in names:
        marked = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", f"{EDGE}{name}{EDGE}", marked)
    if is_harmless(marked.lstrip(" \t@-"), names | constants):
        return set()
    is_any = has_computed_name(marked) or USES_POSITIONAL.search(marked)
    return set(names) if is_any else names & set(IDENTIFIER.findall(marked))


def _refused_in_head(line: str, task: Task) -> set[str]:
    """Parameters that are a part of another one's default, or are passed on to another recipe."""
    words = IDENTIFIER.findall(QUOTED.sub("", line.partition(task.name)[2]))
    return {name for each in task.parameters if words.count(name := each.name) > 1 or OBEYED.fullmatch(name)}


def _without(task: Task, refused: set[str]) -> Task:
    """Parameters are told apart by their place, so that none can be given behind one that cannot."""
    count = next((at for at, each in enumerate(task.parameters) if each.name in refused), len(task.parameters))
    given, others = task.parameters[:count], task.parameters[count:]
    is_needed = any(each.is_required for each in others)
    return task._replace(parameters=given, refused=tuple(each.name for each in others), needs_refused=is_needed)


def _recipe(line: str) -> Task | None:
    found = RECIPE.match(line)
    if found is None or (found[1] in NOT_RECIPES and ":=" in line):
        return None
    position = found.end()
    parameters: list[Parameter] = []
    while len(parameters) < MAX_PARAMETERS:
        if END.match(line, position):
            return Task(found[1], "", tuple(parameters))
        word = PARAMETER.match(line, position)
        if word is None:
            return None  # an assignment, or a line of something else
        default = word[3]
        text = f"{default[1:-1]} by default." if default and default[0] in "'\"" and len(default) > 2 else ""
        is_required = default is None and word[1] != "*"
        parameters.append(Parameter(word[2], text, "", is_required, bool(word[1])))
        position = word.end()
    return None
