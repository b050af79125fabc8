"""What `validate` finds, and how it is printed: lines for people, or one line of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mcpgreen.project.project import Project
from mcpgreen.text import jsontext

SIGN_OF = {"ok": "✓", "info": "·", "warning": "⚠", "error": "✗"}


class Finding(NamedTuple):
    """An error means that something of the project is not served, a warning that it could be better."""

    level: str
    section: str
    message: str


class Report(NamedTuple):
    project: Project
    findings: Sequence[Finding]
    fixes: int
    is_strict: bool

    def count(self, level: str) -> int:
        return sum(finding.level == level for finding in self.findings)

    def is_good(self) -> bool:
        return not self.count("error") and not (self.is_strict and self.count("warning"))

    def as_json(self) -> bytes:
        report = {
            "projectRoot": self.project.root,
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "fixesApplied": self.fixes,
            "strict": self.is_strict,
            "defaults": self.project.default_info(),
            "messages": [finding._asdict() for finding in self.findings],
        }
        return jsontext.dumps(report) + b"\n"

    def as_text(self, *, shows_defaults: bool) -> bytes:
        lines = [f"Project: {self.project.root}"]
        if shows_defaults:
            defaults = ", ".join(f"{name} {value}" for name, value in self.project.default_info().items())
            lines.append(f"Without server.d/server.meta.json: {defaults}")
        lines += [f"{SIGN_OF[finding.level]} {finding.message}" for finding in self.findings]
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
