"""The recipes of a justfile, with their parameters and what is written about them."""

from __future__ import annotations

import os
import re

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
NOT_RECIPES = ("alias", "export", "import", "mod", "set", "unexport")


def runner_for(path: str, root: str) -> Runner:
    directory, name = place_of(path, root), os.path.basename(path)
    if not directory and name in USUAL_NAMES:
        return Runner("just", ("just",))
    words = ("just", "--justfile", os.path.join(directory, name), "--working-directory", directory or ".")
    return Runner("just", words)


def recipes_in(path: str) -> list[Task]:
    tasks: dict[str, Task] = {}
    comment = doc = ""
    is_private = False
    for line in text_of(path).split("\n"):
        if line.startswith("#"):
            comment = line.lstrip("# ").strip() if not line.startswith("#!") else ""
            continue
        if line.startswith("["):
            is_private = is_private or re.search(r"\bprivate\b", line) is not None
            found = DOC.search(line)
            doc = found[1] if found else doc
            continue
        task = _recipe(line)
        if task and not is_private:
            tasks.setdefault(task.name, task._replace(text=doc or comment))
        comment = doc = ""
        is_private = False
    return list(tasks.values())


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
