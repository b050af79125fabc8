"""What interpreters say of scripts that they shall not run: is this your language?

Asked are bash, other shells, Python and node, each by the name that the script's first line has, as it is found on the
PATH: never a program of the project. Perl is not asked: `perl -c` runs BEGIN blocks and whatever `use` brings in.

Rule: nothing of a project is run here. Every question has a time limit.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mcpgreen.cli import children
from mcpgreen.cli.checking.findings import Position
from mcpgreen.cli.checking.reading import python_reader
from mcpgreen.cli.checking.reading.python_modules import is_beside, missing_from
from mcpgreen.files.regular_files import without_waiting
from mcpgreen.running.scripts import shebang
from mcpgreen.running.scripts.shebang import SHELLS, program_of
from mcpgreen.text import jsontext
from mcpgreen.text.uris import is_within

MAX_SCRIPT_BYTES = 1 << 20
MAX_SCRIPTS = 2000
NODE = ("node", "nodejs")
ANY_PYTHON = ("python", "python3")
AT_ONCE = 40  # scripts for one start of Python
_PYTHON = re.compile(r"python3?(\.\d+)?")
_ISOLATED = re.compile(rb"#![^\n]*python[^\n]*\s-[a-zA-Z]*[EI]")
_SHELL_COMPLAINT = re.compile(r": (?:line )?(\d+): (.*)")
_NODE_COMPLAINT = re.compile(r":(\d+)\n(.*)\n([ \t]*)\^", re.MULTILINE)
_NODE_REASON = re.compile(r"^(SyntaxError: .*)$", re.MULTILINE)


_OPTIONS = {"bash": ("--noprofile", "--norc", "-n"), **dict.fromkeys(NODE, ("--check",))}

Fault = tuple[str, Position]  # what is wrong, and where


class SdkImport(NamedTuple):
    """Of mcp_tool: where, and which names."""

    position: Position
    names: tuple[str, ...]
    is_found: bool  # as far as the script sees to it before


class Need(NamedTuple):
    """A module that a script imports, and where."""

    position: Position
    module: str


class Reading(NamedTuple):
    """What was read of a script. `fault` is what keeps it from being run, and where."""

    language: str = ""
    fault: Fault | None = None
    sdk_imports: tuple[SdkImport, ...] = ()
    has_crlf: bool = False
    needs: tuple[Need, ...] = ()
    missing: tuple[Need, ...] = ()  # those that its interpreter would not find
    interpreter: str = ""
    is_isolated: bool = False  # its first line keeps Python from looking where the SDK is


class Reader:
    """Reads the scripts of one project."""

    def __init__(self, root: str, search_path: str) -> None:
        places = (place for place in search_path.split(os.pathsep) if os.path.isabs(place))
        self._root = root
        self._search_path = search_path
        self._path = os.pathsep.join(place for place in places if not is_within(os.path.realpath(place), root))

    def readings(self, paths: Iterable[str]) -> dict[str, Reading]:
        """By path. A file that is no script, or too long to be one, has an empty reading."""
        found: dict[str, Reading] = {}
        for path in sorted(set(paths))[:MAX_SCRIPTS]:
            content = content_of(path)
            program = program_of(path, content) if content is not None else ""
            is_isolated = content is not None and _ISOLATED.match(content) is not None
            found[path] = Reading(program, has_crlf=content is not None and b"\r\n" in content, is_isolated=is_isolated)
        questions = [(path, each.language) for path, each in found.items() if each.language in (*SHELLS, *NODE)]
        faults = self._faults(questions)
        of_python: dict[str, list[str]] = {}
        for path, reading in found.items():
            if path in faults:
                found[path] = reading._replace(fault=faults[path])
            elif _PYTHON.fullmatch(reading.language):
                of_python.setdefault(reading.language, []).append(path)
        for program, scripts in of_python.items():
            for path, said in self._read_by_python(program, scripts):
                found[path] = _with_python(found[path], said)
        return {**found, **self._with_missing({path: each for path, each in found.items() if each.needs})}

    def _with_missing(self, readings: dict[str, Reading]) -> dict[str, Reading]:
        """With the modules that are missing, where the interpreter can be asked: one question for each."""
        users: dict[str, list[str]] = {}
        for path in readings:
            interpreter = self._interpreter(path)
            if interpreter:
                users.setdefault(interpreter, []).append(path)
        found: dict[str, Reading] = {}
        for interpreter, paths in users.items():
            names = {need.module for path in paths for need in readings[path].needs}
            missing = missing_from(interpreter, names, root=self._root, path=self._path)
            for path in paths:
                lost = [
                    need
                    for need in readings[path].needs
                    if need.module in missing and not is_beside(os.path.dirname(path), need.module)
                ]
                found[path] = readings[path]._replace(missing=tuple(lost), interpreter=interpreter)
        return found

    def _interpreter(self, path: str) -> str | None:
        """Of a Python script, as its first line names it."""
        words = _words(content_of(path) or b"")
        if words and os.path.basename(words[0]) != "env":
            return words[0] if os.path.isabs(words[0]) and os.access(words[0], os.X_OK) else None
        return shutil.which(program_of(path, content_of(path) or b""), path=self._search_path)

    def reading(self, path: str) -> Reading:
        return self.readings([path])[path]

    def fault_by_bash(self, path: str) -> Fault | None:
        """Of a file that is sourced, whatever its first line says."""
        return self._faults([(path, "bash")]).get(path)

    def _faults(self, questions: list[tuple[str, str]]) -> dict[str, Fault]:
        """Of these files by these programs."""
        places = {program: shutil.which(program, path=self._path) for _, program in questions}
        asked = [(path, program) for path, program in questions if places[program]]
        commands = [[places[program] or "", *_OPTIONS.get(program, ("-n",)), path] for path, program in asked]
        faults: dict[str, Fault] = {}
        for (path, program), (status, said) in zip(asked, children.outputs_of(commands, path=self._path), strict=True):
            fault = (
                (_fault_by_node(said) if program in NODE else _fault_by_shell(program, status, said))
                if status
                else None
            )
            if fault is not None:
                faults[path] = fault
        return faults

    def _read_by_python(self, program: str, paths: list[str]) -> Iterator[tuple[str, Any]]:
        own = shutil.which(program, path=self._path) or sys.executable
        # Ours is quick to start; the one that runs the scripts may be newer, and has the last word.
        place = sys.executable if program in ANY_PYTHON else own
        for start in range(0, len(paths), AT_ONCE):
            some = paths[start : start + AT_ONCE]
            for path, said in zip(some, self._answers(place, some), strict=True):
                is_doubtful = "fault" in said and place != own
                yield path, self._answers(own, [path])[0] if is_doubtful else said

    def _answers(self, place: str, paths: list[str]) -> list[Any]:
        answers = self._asked_python(place, paths)
        if len(answers) < len(paths):  # one of them was too much for it
            return [(self._asked_python(place, [path]) or [{}])[0] for path in paths]
        return answers

    def _asked_python(self, place: str, paths: list[str]) -> list[Any]:
        command = [place, "-I", "-S", "-W", "ignore", os.path.abspath(python_reader.__file__), *paths]
        ((_, said),) = children.outputs_of([command], path=self._path)
        try:
            return [jsontext.loads(line) for line in said.splitlines() if line.startswith("{")]
        except ValueError:
            return []


def _fault_by_shell(program: str, status: int, said: str) -> Fault:
    for line in said.splitlines():
        if complaint := _SHELL_COMPLAINT.search(line):
            return complaint[2][:200], Position(int(complaint[1]))
    return f"{program} rejects it with status {status}", Position(1)


def _fault_by_node(said: str) -> Fault | None:
    place, reason = _NODE_COMPLAINT.search(said), _NODE_REASON.search(said)
    if reason is None:
        return None  # not about the script: node is too old, or out of memory
    return reason[1][:200], Position(int(place[1]), len(place[3]) + 1) if place else Position(1)


def content_of(path: str) -> bytes | None:
    """A script whole; None for what is none, or too long to look at."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            content = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError:
        return None
    return None if len(content) > MAX_SCRIPT_BYTES or b"\0" in content[: shebang.LINE_BYTES] else content


def _words(content: bytes) -> list[str]:
    """Of the first line, if that names an interpreter."""
    if not content.startswith(shebang.MARK):
        return []
    return content[len(shebang.MARK) : shebang.LINE_BYTES].partition(b"\n")[0].decode("utf-8", "replace").split()


def _with_python(reading: Reading, said: Any) -> Reading:
    if fault := said.get("fault"):
        line, column, message = fault
        return reading._replace(fault=(f"SyntaxError: {message}", Position(line, column or None)))
    known_at = said.get("knows_sdk_at", 0)
    imports = tuple(
        SdkImport(Position(line, column), tuple(names), is_found=not reading.is_isolated or 0 < known_at <= line)
        for line, column, names in said.get("imports", ())
    )
    # A script that changes where Python looks may find more than we do; and our own modules are always there.
    needs = tuple(
        Need(Position(line, column), module)
        for line, column, module in said.get("needs", ())
        if not known_at and not module.startswith(python_reader.SDK)
    )
    return reading._replace(sdk_imports=imports, needs=needs)
