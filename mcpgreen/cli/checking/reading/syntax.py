"""Ask interpreters whether they can parse scripts, and which modules they lack, without running anything.

The interpreter that a script's first line names is asked if it is a shell, Python or node, and if it is on the PATH and
not in the project. Perl is not asked, because `perl -c` runs BEGIN blocks and imports modules.

Rule: nothing of a project is run here. Every question has a time limit. A module that may exist is not called missing.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Collection, Iterable
from typing import NamedTuple

from mcpgreen.cli import children
from mcpgreen.cli.checking.findings import Position
from mcpgreen.cli.checking.reading import python_reader
from mcpgreen.files.regular_files import without_waiting
from mcpgreen.running.scripts import shebang
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

Fault = tuple[str, Position]  # what is wrong, and where

# Asks only for the first part of a name, because Python imports that to look for the second.
_QUESTION = """
import importlib.util, site, sys
sys.path.append(site.getusersitepackages())
for name in sys.argv[1:]:
    try:
        found = importlib.util.find_spec(name) is not None
    except Exception:
        found = True
    if not found:
        print("missing", name)
"""
_HARMLESS_PTH = ("distutils-precedence.pth", "_virtualenv.pth")
MODULES_AT_ONCE = 500


class SdkImport(NamedTuple):
    """An import of mcp_tool: where it is, and which names it imports."""

    position: Position
    names: tuple[str, ...]
    is_found: bool  # the script can import it, as far as its text shows


class Need(NamedTuple):
    """A module that a script imports, and where."""

    position: Position
    module: str


class Reading(NamedTuple):
    """What was read of a script. `fault` is a syntax error."""

    language: str = ""
    fault: Fault | None = None
    sdk_imports: tuple[SdkImport, ...] = ()
    has_crlf: bool = False
    needs: tuple[Need, ...] = ()
    missing: tuple[Need, ...] = ()  # the needs that the interpreter does not find
    interpreter: str = ""  # the path of the Python that the first line names
    is_isolated: bool = False  # the first line keeps Python from looking where the SDK is


class Reader:
    """Reads the scripts of one project."""

    def __init__(self, root: str, search_path: str) -> None:
        places = (place for place in search_path.split(os.pathsep) if os.path.isabs(place))
        self._root = root
        self._search_path = search_path
        self._path = os.pathsep.join(place for place in places if not is_within(os.path.realpath(place), root))

    def readings(self, paths: Iterable[str]) -> dict[str, Reading]:
        """Read scripts, by path. A file that is no script, or too long to be one, has an empty reading."""
        found = {path: self._first_look(path) for path in sorted(set(paths))[:MAX_SCRIPTS]}
        questions = [(path, each.language) for path, each in found.items() if each.language in (*SHELLS, *NODE)]
        for path, fault in self._faults(questions).items():
            found[path] = found[path]._replace(fault=fault)
        of_python: dict[str, list[str]] = {}
        for path, reading in found.items():
            if _PYTHON.fullmatch(reading.language):
                of_python.setdefault(reading.language, []).append(path)
        for program, scripts in of_python.items():
            place = shutil.which(program, path=self._path) or sys.executable
            for start in range(0, len(scripts), AT_ONCE):
                some = scripts[start : start + AT_ONCE]
                for path, answer in zip(some, self._answers(place, some), strict=True):
                    found[path] = _with_answer(found[path], answer)
        self._find_missing(found)
        return found

    def _first_look(self, path: str) -> Reading:
        content = content_of(path)
        if content is None:
            return Reading()
        program = program_of(path, content)
        words = _first_line_words(content)
        if words and os.path.basename(words[0]) != "env":
            interpreter = words[0] if os.path.isabs(words[0]) and os.access(words[0], os.X_OK) else ""
        else:
            interpreter = shutil.which(program, path=self._search_path) or ""
        is_isolated = _ISOLATED.match(content) is not None
        return Reading(program, has_crlf=b"\r\n" in content, interpreter=interpreter, is_isolated=is_isolated)

    def _find_missing(self, readings: dict[str, Reading]) -> None:
        """Add the missing modules to the readings: one question for each interpreter."""
        users: dict[str, list[str]] = {}
        for path, reading in readings.items():
            if reading.needs and reading.interpreter:
                users.setdefault(reading.interpreter, []).append(path)
        for interpreter, paths in users.items():
            names = {need.module for path in paths for need in readings[path].needs}
            missing = missing_from(interpreter, names, root=self._root, path=self._path)
            for path in paths:
                needs = (need for need in readings[path].needs if need.module in missing)
                lost = tuple(need for need in needs if not is_beside(os.path.dirname(path), need.module))
                readings[path] = readings[path]._replace(missing=lost)

    def reading(self, path: str) -> Reading:
        return self.readings([path])[path]

    def fault_by_bash(self, path: str) -> Fault | None:
        """The syntax error in a file that bash sources, whatever its first line says."""
        return self._faults([(path, "bash")]).get(path)

    def _faults(self, questions: list[tuple[str, str]]) -> dict[str, Fault]:
        """The syntax errors that programs find, from pairs of file and program."""
        faults: dict[str, Fault] = {}
        for path, program in questions:
            place = shutil.which(program, path=self._path)
            options = _OPTIONS.get(program, ("-n",))
            status, said = children.answer_of([place, *options, path], path=self._path) if place else (0, "")
            if status:
                fault = _fault_by_node(said) if program in NODE else _fault_by_shell(program, status, said)
                faults |= {path: fault} if fault else {}
        return faults

    def _answers(self, place: str, paths: list[str]) -> list[Json]:
        """Let `python_reader` read scripts. If one of them brings it down, each is read alone."""
        command = [place, "-I", "-S", "-W", "ignore", os.path.abspath(python_reader.__file__), *paths]
        _, said = children.answer_of(command, path=self._path)
        try:
            answers: list[Json] = [jsontext.loads(line) for line in said.splitlines() if line.startswith("{")]
        except ValueError:
            answers = []
        if len(answers) < len(paths):
            return [self._answers(place, [path])[0] for path in paths] if len(paths) > 1 else [{}]
        return answers


def _fault_by_shell(program: str, status: int, said: str) -> Fault:
    for line in said.splitlines():
        if complaint := _SHELL_COMPLAINT.search(line):
            return complaint[2][:200], Position(int(complaint[1]))
    return f"{program} rejects it with status {status}", Position(1)


def _fault_by_node(said: str) -> Fault | None:
    place, reason = _NODE_COMPLAINT.search(said), _NODE_REASON.search(said)
    if reason is None:
        return None  # it is not about the script: node is too old, or out of memory
    return reason[1][:200], Position(int(place[1]), len(place[3]) + 1) if place else Position(1)


def content_of(path: str) -> bytes | None:
    """The whole script; None if it is none, or too long to read."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            content = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError:
        return None
    return None if len(content) > MAX_SCRIPT_BYTES or b"\0" in content[: shebang.LINE_BYTES] else content


def _first_line_words(content: bytes) -> list[str]:
    """The words of a first line that names an interpreter."""
    if not content.startswith(shebang.MARK):
        return []
    return content[len(shebang.MARK) : shebang.LINE_BYTES].partition(b"\n")[0].decode("utf-8", "replace").split()


def _with_answer(reading: Reading, answer: Json) -> Reading:
    if fault := answer.get("fault"):
        line, column, message = fault
        return reading._replace(fault=(f"SyntaxError: {message}", Position(line, column or None)))
    known_at = answer.get("knows_sdk_at", 0)
    imports = tuple(
        SdkImport(Position(line, column), tuple(names), is_found=not reading.is_isolated or 0 < known_at <= line)
        for line, column, names in answer.get("imports", ())
    )
    # A script that changes where Python looks may find more than we do. The SDK is always there.
    needs = tuple(
        Need(Position(line, column), module)
        for line, column, module in answer.get("needs", ())
        if not known_at and not module.startswith(python_reader.SDK)
    )
    return reading._replace(sdk_imports=imports, needs=needs)


def missing_from(interpreter: str, names: Collection[str], *, root: str, path: str) -> set[str]:
    """The names of modules that this interpreter does not find.

    One that lies in the project, in a virtual environment, is not run: the files of the environment tell."""
    wanted = sorted(names)[:MODULES_AT_ONCE]
    if is_within(os.path.abspath(interpreter), root):
        return _missing_from_environment(os.path.dirname(os.path.dirname(os.path.abspath(interpreter))), wanted)
    command = [interpreter, "-I", "-W", "ignore", "-c", _QUESTION, *wanted]
    status, said = children.answer_of(command, path=path)
    if status != 0:
        return set()
    return {line.split()[1] for line in said.splitlines() if line.startswith("missing ")}


def _missing_from_environment(place: str, names: list[str]) -> set[str]:
    try:
        with open(os.path.join(place, "pyvenv.cfg"), encoding="utf-8") as file:
            settings = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in file)}
        libraries = os.path.join(place, "lib")
        sites = [os.path.join(libraries, version, "site-packages") for version in os.listdir(libraries)]
        entries = [entry for site in sites for entry in os.listdir(site)]
    except OSError:
        return set()
    others = any(entry.endswith(".pth") and entry not in _HARMLESS_PTH for entry in entries)
    if others or settings.get("include-system-site-packages") == "true":
        return set()  # modules may lie elsewhere
    known = {entry.partition(".")[0] for entry in entries} | set(sys.stdlib_module_names)
    return {name for name in names if name not in known}


def is_beside(directory: str, name: str) -> bool:
    """Whether a script in this directory would find the module there."""
    try:
        entries = os.listdir(directory)
    except OSError:
        return False
    return any(entry == name or entry.startswith(f"{name}.") for entry in entries)
