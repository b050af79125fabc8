"""`mcpgreen lint`: what breaks clients that people use, and what models cannot make sense of, with what it costs them.

What keeps something from being served, and what is wrong with files and scripts, is told by `validate`, and not again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import ResourceTemplate
from mcpgreen.catalog.tools import Tool
from mcpgreen.cli.checking.findings import Finding, Problem, Report
from mcpgreen.cli.checking.item_checks import WORD_OF, discoveries
from mcpgreen.cli.checking.reading.sources import Source, source_of
from mcpgreen.cli.checking.validate import registration_of
from mcpgreen.cli.commands import Options
from mcpgreen.cli.linting import item_rules, list_rules, schema_rules, tool_rules
from mcpgreen.cli.linting.tokens import tokens_of
from mcpgreen.cli.opening import opened
from mcpgreen.project.project import Project


def run(options: Options) -> int:
    """0 when all is well, 1 when there are errors, or warnings and `--strict`."""
    return report_on(options).print(as_json=options["--json"])


def report_on(options: Options) -> Report:
    project, settings, environ = opened(options)
    registration, _ = registration_of(project, settings, environ)
    findings: list[Finding] = list(list_rules.server_findings(project))
    for kind, discovery in discoveries(project, registration).items():
        if isinstance(discovery, OSError) or kind == "ui":  # pages are resources, too
            continue
        items = [(item, source_of(project, registration, kind, item)) for item in discovery.items]
        for item, source in items:
            findings += _findings(project, kind, item, source)
        findings += list_rules.findings(project, kind, items)
    return Report(project, findings, 0, options["--strict"])


def _findings(project: Project, kind: str, item: Any, source: Source) -> Iterator[Finding]:
    subject = f"{WORD_OF[kind]} {item.name}"
    problems = list(_problems(project, item, source))
    for problem in problems:
        yield problem.about(project, kind, subject)
    level = "info" if problems else "ok"
    file = project.shown(source.path) if source.path else None
    if isinstance(item, Tool):
        tokens = tokens_of(item.definition)
        yield Finding(level, kind, f"{subject}: about {tokens} tokens", "tokens", file=file, tokens=tokens)
    elif not problems:
        yield Finding(level, kind, subject, file=file)


def _problems(project: Project, item: Any, source: Source) -> Iterator[Problem]:
    if isinstance(item, Tool):
        yield from tool_rules.problems(item, source, server_name=project.server_name())
        yield from schema_rules.problems(item, source)
    elif isinstance(item, Prompt):
        yield from item_rules.prompt_problems(item, source)
    elif isinstance(item, ResourceTemplate):
        yield from item_rules.template_problems(item, source)
    yield from item_rules.common_problems(item, source)
