"""The recipes in a justfile, with their parameters and comments.

Rule: as in a Makefile, a parameter is an argument only if every line that uses it is harmless, as `shell_lines` says,
and if it is not exported: nobody knows which variables the programs of a recipe obey.
"""

from __future__ import annotations

import re

from mcpgreen.cli.wrapping import shell_lines
from mcpgreen.cli.wrapping.shell_lines import EDGE, IDENTIFIER, SHELLS, is_destructive, is_plain
from mcpgreen.cli.wrapping.task_files import DESTROYS, Parameter, Task, text_of

MAX_PARAMETERS = 20

RECIPE = re.compile(r"^@?([A-Za-z][\w-]{0,100})(?=[\s:])")
PARAMETER = re.compile(
    r"\s+([+*]?)\$?([A-Za-z_][\w-]{0,60})"
    r"(?:\s?=\s?('[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`|\([^()\n]{0,200}\)|[^\s:'\"`(]{1,200}))?"
)
END = re.compile(r"\s*:(?!=)")
DOC = re.compile(r"\bdoc\s?(?:\(\s*|:\s*)['\"]([^'\"]{0,500})['\"]")
ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][\w-]*)\s*:=\s*(.*?)\s*$")
TEXT = re.compile(r"'[^']*'|\"[^\"\\]*\"")
# With these, a recipe may be in another file, is not run by a shell, or all programs get the parameters.
UNCLEAR = re.compile(
    r"import\??\s*x?['\"]|set\s+export\b(?!\s*:=\s*false\b)|\[(?!.*\]\s*$)|set\s+[\w-]*(?:shell|interpreter)\b"
    rf"(?!\s*:=\s*\[\s*(['\"])(?:[^'\"]*/)?(?:{'|'.join(sorted(SHELLS))})\1\s*[,\]])"
)
INTERPOLATION = re.compile(r"\{\{\s*([A-Za-z_][\w-]*)\s*\}\}")
POSITIONAL = re.compile(r"\$(?:[@*0-9]|\{[@*0-9]\})")  # where a setting has them, they are all parameters
USES_POSITIONAL = re.compile(r"\$\{[@*0-9]|\bfor\s+\w+\s*;|\b(?:for|select)\s+\w+\s+do\b|\b(?:shift|set|getopts)\b")
QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
NOT_RECIPES = ("alias", "export", "import", "mod", "set", "unexport")


def recipes_in(path: str) -> list[Task]:
    """The recipes that are not private. All definitions of a name count: just takes that for the system or the last."""
    lines = re.sub(r"(?<!\\)\\\n[ \t]*", "", text_of(path)).split("\n")
    values = [found.groups() for line in lines if (found := ASSIGNMENT.match(line))]
    odd = {name for name, value in values if not TEXT.fullmatch(value) or not is_plain(value[1:-1])}
    constants = {name for name, _ in values} - odd
    is_clear = not any(map(UNCLEAR.match, lines))
    tasks: dict[str, Task] = {}
    heads: dict[str, set[object]] = {}  # the different parameters of each name
    refused: dict[str, set[str]] = {}
    comment = attributes = ""
    is_script = False
    task: Task | None = None
    for line in lines:
        if task and line.startswith((" ", "\t")):
            names = {each.name for each in task.parameters}
            is_script = is_script or line.lstrip().startswith("#!")
            refused[task.name] |= names if is_script else _refused_in(line, names, constants)
            refused[task.name] |= {DESTROYS} if is_destructive("", line) else set()
        elif line.startswith("#"):
            comment = line.lstrip("# ").strip() if not line.startswith("#!") else ""
        elif line.startswith("["):
            attributes += line
        elif line:
            task = _recipe(line)
            name = found[1] if (found := RECIPE.match(line)) else ""
            heads.setdefault(name, set()).add(task and tuple((each.name, each.is_repeated) for each in task.parameters))
            bare = QUOTED.sub("", attributes)
            if task:
                refused.setdefault(name, set()).update(_refused_in_head(line, attributes, task))
                refused[name] |= {DESTROYS} if is_destructive(f"{name} {line.partition(':')[2]}") else set()
                is_script = re.search(r"\bscript\b", bare) is not None
            if task and not re.search(r"\bprivate\b", bare):
                doc = DOC.search(attributes)
                tasks.setdefault(name, task._replace(text=doc[1] if doc else comment))
            comment = attributes = ""
        else:
            comment = ""
    for name, task in tasks.items():
        if not is_clear or len(heads[name]) > 1:
            refused[name] |= {each.name for each in task.parameters}
    return [_without(task, refused[task.name]) for task in tasks.values()]


def _refused_in(line: str, names: set[str], constants: set[str]) -> set[str]:
    """The parameters that a line of a recipe does not use as words for a program."""
    if "{{" in INTERPOLATION.sub("", line):
        return set(names)  # an expression, or braces that mean themselves
    marked = INTERPOLATION.sub(rf"{EDGE}\1{EDGE}", line.replace(EDGE, ""))
    marked = POSITIONAL.sub("".join(f"{EDGE}{name}{EDGE}" for name in names), marked)
    if shell_lines.is_harmless(marked.lstrip(" \t@-"), names | constants):
        return set()
    is_any = shell_lines.COMPUTED_NAME.search(marked) or USES_POSITIONAL.search(marked)
    return set(names) if is_any else names & set(IDENTIFIER.findall(marked))


def _refused_in_head(line: str, attributes: str, task: Task) -> set[str]:
    """Parameters that programs find in their environment (`$`), that are a part of another one's default or of an
    attribute, or are passed on to another recipe; all, if the head has text with expressions or goes on below."""
    names = {each.name for each in task.parameters}
    head = QUOTED.sub("", line.partition(task.name)[2])
    if "{{" in line + attributes or re.search("['\"`]", head) or head.count("(") != head.count(")"):
        return names
    words = IDENTIFIER.findall(head + QUOTED.sub("", attributes))
    return {name for name in names if words.count(name) > 1 or re.search(rf"\${name}\b", head)}


def _without(task: Task, refused: set[str]) -> Task:
    """Parameters are told apart by their place, so that none can be given behind one that cannot."""
    count = next((at for at, each in enumerate(task.parameters) if each.name in refused), len(task.parameters))
    given, others = task.parameters[:count], task.parameters[count:]
    without = tuple(f"{each.name} of {task.name}" for each in others)
    return Task(task.name, task.text, given, without, any(each.is_required for each in others), DESTROYS in refused)


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
        parameters.append(Parameter(word[2], text, (), is_required, bool(word[1])))
        position = word.end()
    return None
