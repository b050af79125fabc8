"""The findings of `validate`, `lint` and `doctor`, printed as lines for people or one line of JSON.

Rule: each error and warning has a `fix`. Programs rely on the codes; sentences may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mcpgreen.cli.output import print_json, say
from mcpgreen.journal import in_one_line
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json

OK, WARNING, ERROR = "ok", "warning", "error"
SIGN_OF = {OK: "✓", "info": "·", WARNING: "⚠", ERROR: "✗"}


class Position(NamedTuple):
    """A place in text, in characters counted from 1."""

    line: int
    column: int | None = None


class Finding(NamedTuple):
    """An error means that something does not work, a warning that it could be better. `file` is below the root."""

    level: str
    section: str
    message: str
    code: str = "ok"
    fix: str | None = None
    file: str | None = None
    position: Position | None = None
    tokens: int | None = None  # estimated, that a model reads

    def as_json(self) -> Json:
        line, column = self.position or (None, None)
        members = {**self._asdict(), "position": None, "line": line, "column": column}
        return {name: value for name, value in members.items() if value is not None}

    def as_line(self) -> str:
        place = ""
        if self.file and (self.position or (self.fix and self.file not in self.message)):
            position = self.position or ()
            place = f" ({':'.join(str(part) for part in (self.file, *position) if part is not None)})"
        remedy = f" → {self.fix}" if self.fix else ""
        return in_one_line(f"{SIGN_OF[self.level]} {self.message}{place}{remedy}")


class Problem(NamedTuple):
    """A problem of an item. `path` is the file to change."""

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
    """A line of `doctor`."""

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

    def print(self, *, as_json: bool, shows_defaults: bool = False) -> int:
        """Print the report and return the exit status of the command."""
        status = 0 if self.is_good() else 1
        errors, warnings = self.count("error"), self.count("warning")
        if as_json:
            report = {
                "projectRoot": self.project.root,
                "errors": errors,
                "warnings": warnings,
                "fixesApplied": self.fixes,
                "strict": self.is_strict,
                "defaults": self.project.default_info(),
                "messages": [finding.as_json() for finding in self.findings],
            }
            print_json(report)
            return status
        lines = [f"Project: {self.project.root}"]
        if shows_defaults:
            defaults = ", ".join(f"{name} {value}" for name, value in self.project.default_info().items())
            lines.append(f"Without server.d/server.meta.json: {defaults}")
        lines += [finding.as_line() for finding in self.findings]
        verdict = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
        if self.fixes:
            verdict += f", {self.fixes} fixed"
        if self.is_strict and warnings and not errors:
            verdict += " (strict: warnings count as errors)"
        say("\n".join([*lines, verdict, ""]))
        return status
