"""What `validate`, `lint` and `doctor` find, and how it is printed: lines for people, or one line of JSON.

Rule: an error and a warning say what to do about it (`fix`). Codes are words that programs rely on; the sentences may
become better.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from mcpgreen.cli.output import print_json
from mcpgreen.project.project import Project

OK, WARNING, ERROR = "ok", "warning", "error"
SIGN_OF = {OK: "✓", "info": "·", WARNING: "⚠", ERROR: "✗"}


class Position(NamedTuple):
    """In a text, counted from 1, in characters."""

    line: int
    column: int | None = None


class Finding(NamedTuple):
    """An error means that something of the project does not work, a warning that it could be better. `file` is as
    people call it, from the project's root on."""

    level: str
    section: str
    message: str
    code: str = "ok"
    fix: str | None = None
    file: str | None = None
    position: Position | None = None
    tokens: int | None = None  # an estimate of what a model has to read for it

    def as_json(self) -> dict[str, Any]:
        members = {
            "level": self.level,
            "section": self.section,
            "message": self.message,
            "code": self.code,
            "file": self.file,
            "line": self.position.line if self.position else None,
            "column": self.position.column if self.position else None,
            "fix": self.fix,
            "tokens": self.tokens,
        }
        return {name: value for name, value in members.items() if value is not None}

    def as_line(self) -> str:
        place = ""
        if self.file and (self.position or (self.fix and self.file not in self.message)):
            position = self.position or ()
            place = f" ({':'.join(str(part) for part in (self.file, *position) if part is not None)})"
        remedy = f" → {self.fix}" if self.fix else ""
        return f"{SIGN_OF[self.level]} {self.message}{place}{remedy}"


class Problem(NamedTuple):
    """Something that is wrong with an item. `path` is the file that has to be changed."""

    level: str
    code: str
    sentence: str
    fix: str
    path: str | None = None
    position: Position | None = None

    def about(self, project: Project, section: str, subject: str) -> Finding:
        file = project.shown(self.path) if self.path else None
        message = f"{subject}: {self.sentence}" if subject else self.sentence
        return Finding(self.level, section, message, self.code, self.fix, file, self.position)


class Check(NamedTuple):
    """What `doctor` says of one thing."""

    name: str
    status: str
    message: str
    fix: str | None = None


class Report(NamedTuple):
    project: Project
    findings: Sequence[Finding]
    fixes: int
    is_strict: bool

    def count(self, level: str) -> int:
        return sum(finding.level == level for finding in self.findings)

    def is_good(self) -> bool:
        return not self.count("error") and not (self.is_strict and self.count("warning"))

    def as_json(self) -> dict[str, Any]:
        return {
            "projectRoot": self.project.root,
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "fixesApplied": self.fixes,
            "strict": self.is_strict,
            "defaults": self.project.default_info(),
            "messages": [finding.as_json() for finding in self.findings],
        }

    def print(self, *, as_json: bool, shows_defaults: bool = False) -> int:
        """The exit status of the command: 1 for what is not good."""
        if as_json:
            print_json(self.as_json())
        else:
            sys.stdout.buffer.write(self.as_text(shows_defaults=shows_defaults))
        return 0 if self.is_good() else 1

    def as_text(self, *, shows_defaults: bool = False) -> bytes:
        lines = [f"Project: {self.project.root}"]
        if shows_defaults:
            defaults = ", ".join(f"{name} {value}" for name, value in self.project.default_info().items())
            lines.append(f"Without server.d/server.meta.json: {defaults}")
        lines += [finding.as_line() for finding in self.findings]
        return "\n".join([*lines, self._verdict(), ""]).encode("utf-8", "backslashreplace")

    def _verdict(self) -> str:
        errors, warnings = self.count("error"), self.count("warning")
        verdict = f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}"
        if self.fixes:
            verdict += f", {self.fixes} fixed"
        if self.is_strict and warnings and not errors:
            verdict += " (strict: warnings count as errors)"
        return verdict


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
