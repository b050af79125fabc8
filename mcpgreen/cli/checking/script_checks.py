"""Check one script: permissions, first line, syntax and imports. Part of `validate`."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from mcpgreen.cli.checking.findings import Position, Problem
from mcpgreen.cli.checking.reading.syntax import Reading, SdkImport, content_of, is_beside
from mcpgreen.project.project import Project
from mcpgreen.running.scripts import jq, shebang
from mcpgreen.running.scripts.environment import PYTHON_DIR
from mcpgreen.running.scripts.shebang import SHELLS

PUT_SDK_FIRST = 'take -I or -E from its first line, or put sys.path.insert(0, os.environ["MCP_SDK"]) before the import'
MEND_LINE_ENDS = "save it with Unix line endings, or run validate --fix"
# A part of the sentence about the first line, its code, and the fix.
FIRST_LINES = (
    ("line ends of Windows", "crlf", MEND_LINE_ENDS),
    ("byte order mark", "byte-order-mark", "save it as UTF-8 without a byte order mark"),
)
INTERPRETER = ("interpreter", "install that interpreter, or correct the first line")


class ScriptChecks:
    def __init__(self, project: Project, environ: Mapping[str, str], readings: Mapping[str, Reading]) -> None:
        self._project = project
        self._search_path = jq.path_in(environ)
        self._readings = readings
        self._own_places = [place for place in environ.get("PYTHONPATH", "").split(os.pathsep) if place]

    def problems(self, path: str, *, below: str, obeys_first_line: bool) -> Iterator[Problem]:
        """All problems of a script. `below` is the directory that it has to stay in."""
        if refusal := self.refusal(path, below=below):
            yield refusal
        yield from self.faults(path, obeys_first_line=obeys_first_line)

    def refusal(self, path: str, *, below: str) -> Problem | None:
        """The reason why calls will be refused, or None."""
        try:
            problem = self._project.ground(below).problem_with(path)
        except FileNotFoundError:
            return Problem("error", "missing", "its script has been removed", "put it back, or remove its description")
        return refused(f"calls will be refused: {problem}", problem, path) if problem else None

    def faults(self, path: str, *, obeys_first_line: bool, subject: str = "") -> Iterator[Problem]:
        """Problems of its content. `obeys_first_line`: it is run by the interpreter that its first line names."""
        shown = self._project.shown(path)
        if _is_empty(path):
            fix = "write the script, or remove the file"
            yield Problem("warning", "empty", f"{subject}{shown} is empty, so it does nothing", fix, path)
        reading = self._readings.get(path, Reading())
        fault = shebang.fault_of(path, search_path=self._search_path) if obeys_first_line else None
        if fault:
            code, fix = next((row[1:] for row in FIRST_LINES if row[0] in fault), INTERPRETER)
            yield Problem("error", code, f"{subject}{shown} {fault}", fix, path, Position(1, 1))
        elif reading.has_crlf and reading.language in SHELLS:
            trouble = "has lines with the line ends of Windows, which its shell takes for a part of words"
            yield Problem("error", "crlf", f"{subject}{shown} {trouble}", MEND_LINE_ENDS, path, _first_crlf(path))
        elif reading.fault:
            message, position = reading.fault
            sentence = f"{subject}{shown}: line {position.line}: {message}"
            yield Problem("error", "syntax", sentence, "correct the script at that line", path, position)
        for need in reading.missing:
            if not any(is_beside(place, need.module) for place in self._own_places):
                lack = f"{reading.interpreter} has no module {need.module}"
                sentence = f"{subject}{shown}: line {need.position.line}: {lack}"
                fix = f"install {need.module} for it, or let the first line name another (docs/dependencies.md)"
                yield Problem("error", "import", sentence, fix, path, need.position)
        for each in reading.sdk_imports:
            yield from _sdk_problems(each, path, f"{subject}{shown}")


def refused(sentence: str, problem: str, path: str) -> Problem:
    """A file that is not trusted. `problem` is the reason, and has the remedy in brackets."""
    remedy = problem[problem.rfind("(") + 1 : -1] if problem.endswith(")") else ""
    if "written to by others" in problem:
        return Problem("error", "writable", sentence, f"{remedy}, or run validate --fix", path)
    if "another user" in problem:
        return Problem("error", "owner", sentence, remedy, path)
    return Problem("error", "untrusted", sentence, "put the file itself there, as a regular file of your own", path)


def _is_empty(path: str) -> bool:
    content = content_of(path)
    return content is not None and not content.strip()


def _first_crlf(path: str) -> Position | None:
    content = content_of(path) or b""
    at = content.find(b"\r\n")
    return Position(content.count(b"\n", 0, at) + 1) if at >= 0 else None


def _sdk_problems(found: SdkImport, path: str, shown: str) -> Iterator[Problem]:
    if os.path.exists(os.path.join(os.path.dirname(path), "mcp_tool.py")):
        return  # it has a module of its own with this name
    if not found.is_found:
        sentence = f"{shown}: line {found.position.line}: mcp_tool cannot be imported: Python is told not to look"
        yield Problem("error", "sdk-import", sentence, PUT_SDK_FIRST, path, found.position)
    for name in found.names:
        if name != "*" and name not in sdk_names():
            near = get_close_matches(name, sdk_names(), n=1)
            fix = f"import {near[0]} instead" if near else "import one of the names in docs/sdk-python.md"
            sentence = f"{shown}: line {found.position.line}: mcp_tool has no {name}"
            yield Problem("error", "sdk-name", sentence, fix, path, found.position)


@functools.cache
def sdk_names() -> frozenset[str]:
    """The public names of mcp_tool, read from its text, because only tools may import it."""
    with open(os.path.join(PYTHON_DIR, "mcp_tool.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.add(node.targets[0].id)
            if node.targets[0].id == "_ELSEWHERE":
                names.update(" ".join(ast.literal_eval(node.value).values()).split())
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return frozenset(names)
