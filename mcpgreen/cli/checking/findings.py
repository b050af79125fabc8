"""The findings of `validate`, `lint` and `doctor`, printed for people or as one line of JSON.

Rule: each error and warning has a `fix`. Programs rely on the codes; sentences may change.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TextIO

from mcpgreen.cli.output import BOLD, CYAN, DIM, GREEN, RED, YELLOW, painted, print_json, put, say, width_of, wrapped
from mcpgreen.journal import in_one_line
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json

OK, WARNING, ERROR = "ok", "warning", "error"
SIGN_OF = {OK: "✓", "info": "·", WARNING: "⚠", ERROR: "✗"}
STYLE_OF = {ERROR: RED, WARNING: YELLOW, "info": DIM, OK: GREEN}  # the worst first


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
    subject: str = ""  # what the message begins with: an item or a file

    def as_json(self) -> Json:
        line, column = self.position or (None, None)
        members = {**self._asdict(), "position": None, "subject": None, "line": line, "column": column}
        return {name: value for name, value in members.items() if value is not None}

    def parts(self) -> tuple[str, str]:
        """Return the place in a file, as editors and terminals understand it, and the message without its subject."""
        text = self.message.removeprefix(f"{self.subject}: ") if self.subject else self.message
        if not self.file or (not self.position and self.file in text.removeprefix(f"{self.file}: ")):
            return "", text
        place = ":".join(str(part) for part in (self.file, *(self.position or ())) if part is not None)
        text = text.removeprefix(f"{self.file}: ").removeprefix(f"{self.file} ").replace(f" {self.file} ", " ", 1)
        return place, text.removeprefix(f"line {self.position.line}: ") if self.position else text


class Problem(NamedTuple):
    """A problem of an item. `path` is the file to change. `subject` is that file if several items have the problem."""

    level: str
    code: str
    sentence: str
    fix: str
    path: str | None = None
    position: Position | None = None
    subject: str = ""

    def about(self, project: Project, section: str, subject: str) -> Finding:
        file = project.shown(self.path) if self.path else None
        subject = self.subject or subject
        message = self.sentence if self.sentence.startswith(subject) else f"{subject}: {self.sentence}"
        return Finding(self.level, section, message, self.code, self.fix, file, self.position, subject=subject)


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

    def print(self, *, as_json: bool, shows_defaults: bool = False) -> int:
        """Print the report and return the exit status of the command."""
        errors, warnings = (sum(each.level == level for each in self.findings) for level in (ERROR, WARNING))
        status = 1 if errors or (self.is_strict and warnings) else 0
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
        defaults = ", ".join(f"{name} {value}" for name, value in self.project.default_info().items())
        note = f"Without server.d/server.meta.json: {defaults}\n" if shows_defaults else ""
        say(f"Project: {self.project.root}\n{note}\n")
        end = f", {self.fixes} fixed" if self.fixes else ""
        if self.is_strict and warnings and not errors:
            end += " (strict: warnings count as errors)"
        print_findings(self.findings, end=end)
        return status


def print_findings(findings: Iterable[Finding], *, end: str = "", file: TextIO = sys.stdout) -> None:
    """Print findings by subject: errors first, then warnings, then notes and what is well, and a line that counts.

    What is about the file of one item is about the item. Findings that say the same about the same place are printed
    once, as when several items use one broken script."""
    ranked = sorted(findings, key=lambda each: list(STYLE_OF).index(each.level))
    owners: dict[str | None, set[str]] = {}
    for each in ranked:
        owners.setdefault(each.file, set()).update({each.subject} - {"", each.file})
    told: dict[object, tuple[Finding, list[str]]] = {}
    for each in ranked:
        same = (each.level, each.parts(), each.fix) if each.file and each.fix else each
        is_of_item = each.subject == each.file and len(owners[each.file]) == 1
        subject = min(owners[each.file]) if is_of_item else each.subject
        told.setdefault(same, (each, []))[1].append(subject or each.file or each.message)
    groups: dict[str, list[Finding]] = {}
    for each, subjects in told.values():
        groups.setdefault(", ".join(dict.fromkeys(subjects)), []).append(each)
    blocks, notes = [], []
    for subject, group in groups.items():
        if group[0].level in (ERROR, WARNING):
            blocks.append(_group(subject, [each for each in group if each.level != OK], file))
        else:
            notes += [_block(each, "", each.message, indent="", file=file) for each in group]
    counts = {level: sum(each.level == level for each, _ in told.values()) for level in (ERROR, WARNING)}
    verdict = ", ".join(f"{count} {level}{'s' * (count != 1)}" for level, count in counts.items()) + end
    worst = next((level for level in counts if counts[level]), OK)
    blocks += ["\n".join(notes)] if notes else []
    put("\n\n".join([*blocks, painted(verdict, STYLE_OF[worst], file)]) + "\n", file)


def _group(subject: str, group: Sequence[Finding], file: TextIO) -> str:
    said = [(each, *each.parts()) for each in group]
    indent = "  " * any(each.subject not in ("", each.file) for each in group)  # there is a heading
    # The heading names a file, so that findings without a line need not.
    home = next((place for each, place, _ in said if indent and place and not each.position), "")
    lines = [_block(each, "" if at == home else at, text, indent=indent, file=file) for each, at, text in said]
    place = f" ({painted(in_one_line(home), CYAN, file)})" if home else ""
    return "\n".join([painted(in_one_line(subject), BOLD, file) + place, *lines] if indent else lines)


def _block(finding: Finding, place: str, text: str, *, indent: str, file: TextIO) -> str:
    place, sign, deeper = in_one_line(place), SIGN_OF[finding.level], f"{indent}  "
    text = in_one_line(f"{place}: {text}" if place else text)
    said = wrapped(text, width_of(file), first=f"{indent}{sign} ", rest=deeper)
    for part, style in ((place, CYAN), (sign, STYLE_OF[finding.level])):
        said = said.replace(part, painted(part, style, file), 1)
    if not finding.fix:
        return said
    remedy = wrapped(in_one_line(finding.fix), width_of(file), first=f"{deeper}→ ", rest=f"{deeper}  ")
    return f"{said}\n{remedy.replace('→', painted('→', GREEN, file), 1)}"
