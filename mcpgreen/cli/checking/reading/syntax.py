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
from collections.abc import Iterable
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

_HARMLESS_PTH = ("distutils-precedence.pth", "_virtualenv.pth")


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
    missing: tuple[Need, ...] = ()  # the modules that the interpreter does not find
    interpreter: str = ""  # the path of the program that the first line names
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
        of_python: dict[str, list[str]] = {}
        for path, reading in found.items():
            if reading.language in (*SHELLS, *NODE):
                found[path] = reading._replace(fault=self.fault(path, reading.language))
            elif _PYTHON.fullmatch(reading.language):
                of_python.setdefault(self._python_for(reading), []).append(path)
        for program, scripts in of_python.items():
            for start in range(0, len(scripts), AT_ONCE):
                some = scripts[start : start + AT_ONCE]
                for path, answer in zip(some, self._answers(program, some), strict=True):
                    found[path] = self._with_answer(path, found[path], answer)
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

    def _python_for(self, reading: Reading) -> str:
        """The interpreter that reads a script: its own, unless that lies in the project."""
        if reading.interpreter and not self._is_of_project(reading.interpreter):
            return reading.interpreter
        return shutil.which(reading.language, path=self._path) or sys.executable

    def _is_of_project(self, interpreter: str) -> bool:
        return is_within(os.path.abspath(interpreter), self._root) or is_within(
            os.path.realpath(interpreter), self._root
        )

    def fault(self, path: str, program: str) -> Fault | None:
        """The syntax error that a shell or node finds in a file."""
        place = shutil.which(program, path=self._path)
        options = _OPTIONS.get(program, ("-n",))
        status, said = children.answer_of([place, *options, path], path=self._path) if place else (0, "")
        if not status:
            return None
        return _fault_by_node(said) if program in NODE else _fault_by_shell(program, status, said)

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
            return reading._replace(fault=(f"SyntaxError: {message}", Position(line, column or None)))
        known_at = answer.get("knows_sdk_at", 0)
        imports = tuple(
            SdkImport(Position(line, column), tuple(names), is_found=not reading.is_isolated or 0 < known_at <= line)
            for line, column, names in answer.get("imports", ())
        )
        # A script that changes where Python looks may find more than we do. The SDK is always there.
        needs = [] if known_at or not reading.interpreter else answer.get("needs", ())
        absent = {module for _, _, module, is_found in needs if not is_found}
        if self._is_of_project(reading.interpreter):
            absent = _missing_from_environment(reading.interpreter, {module for _, _, module, _ in needs})
        missing = tuple(
            Need(Position(line, column), module)
            for line, column, module, _ in needs
            if module in absent
            and not module.startswith(python_reader.SDK)
            and not is_beside(os.path.dirname(path), module)
        )
        return reading._replace(sdk_imports=imports, missing=missing)


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


def _missing_from_environment(interpreter: str, names: set[str]) -> set[str]:
    """The modules that a virtual environment of the project lacks. It is not run: its files tell."""
    place = os.path.dirname(os.path.dirname(os.path.abspath(interpreter)))
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
    return names - {entry.partition(".")[0] for entry in entries} - sys.stdlib_module_names


def is_beside(directory: str, name: str) -> bool:
    """Whether a script in this directory would find the module there."""
    try:
        entries = os.listdir(directory)
    except OSError:
        return False
    return any(entry == name or entry.startswith(f"{name}.") for entry in entries)
