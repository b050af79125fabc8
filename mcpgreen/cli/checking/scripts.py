"""Check scripts: permissions, first line, syntax and imports, without running them. Part of `validate`.

The interpreter that a script's first line names is asked if it is a shell, Python or node, and not in the project. Perl
is not asked, because `perl -c` runs BEGIN blocks and imports modules.

Rule: nothing of a project is run here. Every question has a time limit. A module that may exist is not called missing.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple

from mcpgreen.cli import children
from mcpgreen.cli.checking import python_reader
from mcpgreen.cli.checking.findings import Position, Problem
from mcpgreen.files.regular_files import without_waiting
from mcpgreen.project.project import Project
from mcpgreen.running.scripts import jq, shebang
from mcpgreen.running.scripts.environment import PYTHON_DIR
from mcpgreen.running.scripts.packages import REMEDY, REQUIREMENTS, Packages, packages_of
from mcpgreen.running.scripts.shebang import SHELLS, program_of
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

MAX_SCRIPT_BYTES = 1 << 20
MAX_SCRIPTS = 2000
NODE = ("node", "nodejs")
AT_ONCE = 40  # scripts for one start of Python
_PYTHON = re.compile(r"python3?(\.\d+)?")
_ISOLATED = re.compile(rb"#![^\n]*python[^\n]*\s-[a-zA-Z]*[EI]")
_SHELL_COMPLAINT = re.compile(r": (?:line )?(\d+): (.*)")
_NODE_COMPLAINT = re.compile(r":(\d+)\n(.*)\n([ \t]*)\^", re.MULTILINE)
_NODE_REASON = re.compile(r"^(SyntaxError: .*)$", re.MULTILINE)
_OPTIONS = {"bash": ("--noprofile", "--norc", "-n"), **dict.fromkeys(NODE, ("--check",))}
_HARMLESS_PTH = ("distutils-precedence.pth", "_virtualenv.pth")

PUT_SDK_FIRST = 'remove -I or -E from its shebang, or put sys.path.insert(0, os.environ["MCP_SDK"]) before the import'
MEND_LINE_ENDS = "run mcpgreen validate --fix, or save it with Unix line endings"
LIST_PACKAGE = f"list its package in a # /// script comment or {REQUIREMENTS}, then {REMEDY} (docs/dependencies.md)"
FROM_FASTMCP = "to turn the functions of a FastMCP server into tools, see docs/from-fastmcp.md"
WRITABLE = "writable"  # the code of a file that others may write to
MEND_SYNTAX = "fix the script at that line"
# A part of the sentence about the first line, its code, and the fix.
FIRST_LINES = (
    ("Windows line endings", "crlf", MEND_LINE_ENDS),
    ("byte order mark", "byte-order-mark", "save it as UTF-8 without a byte order mark"),
    ("", "interpreter", "install that interpreter, or fix the shebang"),
)


class Complaint(NamedTuple):
    """What is wrong at a place in a script."""

    position: Position
    sentence: str
    code: str = "syntax"
    fix: str = MEND_SYNTAX


class Reading(NamedTuple):
    """What was read of a script."""

    language: str = ""
    interpreter: str = ""  # the path of the program that the first line names
    is_isolated: bool = False  # the first line keeps Python from looking where the SDK is
    is_empty: bool = False
    first_crlf: Position | None = None
    fault: Complaint | None = None  # a syntax error
    imports: tuple[Complaint, ...] = ()
    packages: Packages | None = None  # that it needs


class Scripts:
    """The scripts of one project. `read` has to come first, because many scripts are read at once."""

    def __init__(self, project: Project, environ: Mapping[str, str]) -> None:
        self._project = project
        self._root = root = project.root
        self._search_path = jq.path_in(environ)
        places = (place for place in self._search_path.split(os.pathsep) if os.path.isabs(place))
        self._path = os.pathsep.join(place for place in places if not is_within(os.path.realpath(place), root))
        self._own_places = [place for place in environ.get("PYTHONPATH", "").split(os.pathsep) if place]
        self._readings: dict[str, Reading] = {}

    def problems(self, path: str, *, below: str, obeys_first_line: bool) -> Iterator[Problem]:
        """Yield all problems of a script. `below` is the directory that it has to stay in."""
        try:
            if problem := self._project.ground(below).problem_with(path):
                yield refused(f"calls will fail: {problem}", problem, path)
        except FileNotFoundError:
            yield Problem("error", "missing", "its script is missing", "put it back, or remove its description")
        yield from self.faults(path, obeys_first_line=obeys_first_line)

    def faults(self, path: str, *, obeys_first_line: bool, subject: str = "") -> Iterator[Problem]:
        """Problems of its content. `obeys_first_line`: it is run by the interpreter that its first line names."""
        shown = f"{subject}{self._project.shown(path)}"
        reading = self._readings.get(path, Reading())
        if reading.is_empty:
            fix = "write the script, or remove the file"
            yield Problem("warning", "empty", f"{shown} is empty, so it does nothing", fix, path)
        fault = shebang.fault_of(path, search_path=self._search_path) if obeys_first_line else None
        complaints = list(reading.imports)
        if fault:
            code, fix = next(row[1:] for row in FIRST_LINES if row[0] in fault)
            yield Problem("error", code, f"{shown} {fault}", fix, path, Position(1, 1))
        elif reading.first_crlf and reading.language in SHELLS:
            trouble = "has Windows line endings, which its shell reads as part of each line"
            yield Problem("error", "crlf", f"{shown} {trouble}", MEND_LINE_ENDS, path, reading.first_crlf)
        elif reading.fault:
            complaints.insert(0, reading.fault)
        for position, sentence, code, fix in complaints:
            yield Problem("error", code, f"{shown}: line {position.line}: {sentence}", fix, path, position)

    def read(self, paths: Iterable[str]) -> None:
        """Read scripts. A file that is not a script, or is too long, has an empty reading."""
        self._readings = found = {path: self._first_look(path) for path in sorted(set(paths))[:MAX_SCRIPTS]}
        of_python: dict[str, list[str]] = {}
        for path, reading in found.items():
            if reading.language in (*SHELLS, *NODE):
                found[path] = reading._replace(fault=self.syntax_fault(path, reading.language))
            elif _PYTHON.fullmatch(reading.language):
                program = reading.interpreter
                if not program or self._is_of_project(program):
                    program = shutil.which(reading.language, path=self._path) or sys.executable
                of_python.setdefault(program, []).append(path)
        for program, scripts in of_python.items():
            for start in range(0, len(scripts), AT_ONCE):
                some = scripts[start : start + AT_ONCE]
                for path, answer in zip(some, self._answers(program, some), strict=True):
                    found[path] = self._with_answer(path, found[path], answer)

    def _first_look(self, path: str) -> Reading:
        content = content_of(path)
        if content is None:
            return Reading()
        program = program_of(path, content)
        first_line = content[: shebang.LINE_BYTES].partition(b"\n")[0]
        words = first_line[len(shebang.MARK) :].decode("utf-8", "replace").split()
        if first_line.startswith(shebang.MARK) and words and os.path.basename(words[0]) != "env":
            interpreter = words[0] if os.path.isabs(words[0]) and os.access(words[0], os.X_OK) else ""
        else:
            interpreter = shutil.which(program, path=self._search_path) or ""
        packages = packages_of(self._root, path)
        if packages is not None and packages.are_installed:
            interpreter = packages.interpreter
        crlf = content.find(b"\r\n")
        first_crlf = Position(content.count(b"\n", 0, crlf) + 1) if crlf >= 0 else None
        is_isolated = _ISOLATED.match(content) is not None
        return Reading(program, interpreter, is_isolated, not content.strip(), first_crlf, packages=packages)

    def syntax_fault(self, path: str, program: str) -> Complaint | None:
        """Return the syntax error that a shell or node finds in a file."""
        shell = shutil.which(program, path=self._path)
        options = _OPTIONS.get(program, ("-n",))
        status, said = children.answer_of([shell, *options, path], path=self._path) if shell else (0, "")
        if not status:
            return None
        if program in NODE:
            place, reason = _NODE_COMPLAINT.search(said), _NODE_REASON.search(said)
            position = Position(int(place[1]), len(place[3]) + 1) if place else Position(1)
            # Otherwise it is not about the script: node is too old, or out of memory.
            return Complaint(position, reason[1][:200]) if reason else None
        if complaint := _SHELL_COMPLAINT.search(said):
            return Complaint(Position(int(complaint[1])), complaint[2][:200])
        return Complaint(Position(1), f"{program} rejected it with status {status}")

    def _is_of_project(self, interpreter: str) -> bool:
        return any(is_within(way(interpreter), self._root) for way in (os.path.abspath, os.path.realpath))

    def _answers(self, program: str, paths: list[str]) -> list[Json]:
        """Let `python_reader` read scripts. If one of them brings it down, each is read alone."""
        command = [program, "-I", "-W", "ignore", os.path.abspath(python_reader.__file__), *paths]
        _, said = children.answer_of(command, path=self._path)
        try:
            answers: list[Json] = [jsontext.loads(line) for line in said.splitlines() if line.startswith("{")]
        except ValueError:
            answers = []
        if len(answers) < len(paths):
            return [self._answers(program, [path])[0] for path in paths] if len(paths) > 1 else [{}]
        return answers

    def _with_answer(self, path: str, reading: Reading, answer: Json) -> Reading:
        if fault := answer.get("fault"):
            line, column, message = fault
            return reading._replace(fault=Complaint(Position(line, column or None), f"SyntaxError: {message}"))
        known_at = answer.get("knows_sdk_at", 0)
        # A script that changes where Python looks may find more than we do.
        needs = [] if known_at or not reading.interpreter else answer.get("needs", ())
        complaints = [*self._missing(path, reading.interpreter, needs)]
        if (packages := reading.packages) and not packages.are_installed:
            complaints = [each._replace(code="packages", fix=REMEDY) for each in complaints]
            if not packages.is_optional:
                complaints = [Complaint(Position(1), f"it needs {packages.lack}", "packages", REMEDY)]
        # A module of its own may have the name of the SDK.
        if not os.path.exists(os.path.join(os.path.dirname(path), "mcp_tool.py")):
            for line, column, names in answer.get("imports", ()):
                is_found = not reading.is_isolated or 0 < known_at <= line
                complaints += _sdk_complaints(Position(line, column), names, is_found=is_found)
        return reading._replace(imports=tuple(complaints))

    def _missing(self, path: str, interpreter: str, needs: Iterable[list[Any]]) -> Iterator[Complaint]:
        """Yield the modules that an interpreter does not find; of one in the project, only the files are looked at."""
        is_asked = not self._is_of_project(interpreter)
        known = None if is_asked else _modules_in_environment(interpreter)
        for line, column, module, is_found in needs:
            may_exist = is_found if is_asked else known is None or module in known
            if may_exist or module.startswith(python_reader.SDK):
                continue
            if not any(is_beside(place, module) for place in (os.path.dirname(path), *self._own_places)):
                fix = FROM_FASTMCP if module == "fastmcp" else LIST_PACKAGE
                if not is_within(path, self._project.tools_dir):  # only tools have environments
                    fix = f"install {module} for that interpreter, or use another one in the shebang"
                yield Complaint(Position(line, column), f"{interpreter} has no module {module}", "import", fix)


def refused(sentence: str, problem: str, path: str) -> Problem:
    """Make the problem for a file that is not trusted. `problem` is the reason, with the remedy in brackets."""
    remedy = problem[problem.rfind("(") + 1 : -1] if problem.endswith(")") else ""
    code = WRITABLE if "written to by others" in problem else "owner" if "another user" in problem else "untrusted"
    fix = "replace it with a regular file that belongs to you" if code == "untrusted" else remedy
    return Problem("error", code, sentence.removesuffix(f" ({remedy})"), fix, path)


def content_of(path: str) -> bytes | None:
    """Read a whole script; return None if it is not a script, or is too long."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            content = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError:
        return None
    return None if len(content) > MAX_SCRIPT_BYTES or b"\0" in content[: shebang.LINE_BYTES] else content


def _modules_in_environment(interpreter: str) -> set[str] | None:
    """List the modules of a virtual environment by its files; return None if there may be others."""
    place = os.path.dirname(os.path.dirname(os.path.abspath(interpreter)))
    try:
        with open(os.path.join(place, "pyvenv.cfg"), encoding="utf-8") as file:
            settings = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in file)}
        libraries = os.path.join(place, "lib")
        sites = [os.path.join(libraries, version, "site-packages") for version in os.listdir(libraries)]
        entries = [entry for site in sites for entry in os.listdir(site)]
    except OSError:
        return None
    others = any(entry.endswith(".pth") and entry not in _HARMLESS_PTH for entry in entries)
    if others or settings.get("include-system-site-packages") == "true":
        return None  # modules may lie elsewhere
    return {entry.partition(".")[0] for entry in entries} | sys.stdlib_module_names


def is_beside(directory: str, name: str) -> bool:
    """Tell whether a script in this directory would find the module there."""
    with suppress(OSError):
        return any(entry.partition(".")[0] == name for entry in os.listdir(directory))
    return False


def _sdk_complaints(position: Position, names: Iterable[str], *, is_found: bool) -> Iterator[Complaint]:
    if not is_found:
        sentence = "mcp_tool cannot be imported: -I or -E in the shebang keeps Python from finding it"
        yield Complaint(position, sentence, "sdk-import", PUT_SDK_FIRST)
    for name in names:
        if name != "*" and name not in sdk_names():
            near = get_close_matches(name, sdk_names(), n=1)
            fix = f"import {near[0]} instead" if near else "import one of the names in docs/sdk-python.md"
            yield Complaint(position, f"mcp_tool has no {name}", "sdk-name", fix)


@functools.cache
def sdk_names() -> frozenset[str]:
    """Return the names of mcp_tool, read from its text, because only tools may import it."""
    with open(os.path.join(PYTHON_DIR, "mcp_tool.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.add(node.targets[0].id)
            if node.targets[0].id == "_ELSEWHERE":
                names.update(" ".join(ast.literal_eval(node.value).values()).split())
    return frozenset(names)
