"""What `validate` and `lint` find about each item, and what is left out.

Runs as a process of its own, because the checks start interpreters and take seconds in a large project, and the
workbench serves its page meanwhile. Prints one line of JSON.
"""

from __future__ import annotations

from mcpgreen.cli import linting
from mcpgreen.cli.checking import validate
from mcpgreen.cli.checking.findings import OK, Finding
from mcpgreen.cli.checking.item_checks import WORD_OF, discoveries
from mcpgreen.cli.checking.remedies import explained
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import print_json
from mcpgreen.errors import McpgreenError
from mcpgreen.text.json_types import Json

# Run with the modules of this process, wherever it has them from, and nothing from the current directory.
PROGRAM = "import sys; root, *sys.path = sys.argv[1:]; from mcpgreen.cli.workbench.report import main; main(root)"
SECTION_OF = {"resourceTemplates": "templates", "ui": "resources"}  # on the page; the others have their own names


def main(root: str) -> None:
    try:
        print_json(report_on(root))
    except McpgreenError as error:
        problem = {"level": "error", "code": "project", "sentence": str(error), "fix": "run mcpgreen doctor"}
        print_json({"items": {}, "leftOut": [], "findings": [problem]})


def report_on(root: str) -> Json:
    """Return findings by section and `key_of`, what is left out, and the findings that are about no item."""
    project, settings, environ = open_named({"--project-root": root})
    registration, _ = validate.registration_of(project, settings, environ)
    items: dict[str, dict[str, list[Json]]] = {}
    homes: dict[str, list[list[Json]]] = {}  # where findings about a subject or a file belong
    for kind, discovery in discoveries(project, registration).items():
        for item in [] if isinstance(discovery, OSError) else discovery.items:
            key, file = key_of(item.definition), project.shown(item.path) if item.path else None
            key = key.replace(".", "_") if kind == "tools" and settings.replace_dots else key
            home = items.setdefault(SECTION_OF.get(kind, kind), {}).setdefault(key, [])
            for place in filter(None, (f"{WORD_OF[kind]} {item.name}", file)):
                homes.setdefault(place, []).append(home)
    missing = []
    for each in validate.left_out(project, settings):
        remedy = explained(project, each.kind, f"{each.path}: {each.reason}").fix
        missing.append({"kind": each.kind, "item": each.path, "reason": each.reason, "remedy": remedy})
    general: list[Json] = []
    found = [*validate.server_findings(project, settings), *validate.item_findings(project, settings, environ)]
    found += linting.findings_in(project, settings, environ)
    told = {each["item"] for each in missing}
    for finding in dict.fromkeys(each for each in found if each.level != OK and each.code != "tokens"):
        for home in homes.get(finding.subject) or homes.get(finding.file or "") or [general]:
            if home is not general or finding.subject not in told:
                home.append(_shown(finding))
    return {"items": items, "leftOut": missing, "findings": general}


def key_of(definition: Json) -> str:
    """Return what tells an item from the others in its list."""
    return str(definition.get("uri") or definition.get("uriTemplate") or definition.get("name"))


def _shown(finding: Finding) -> Json:
    _, sentence = finding.parts()
    line = finding.position.line if finding.position else None
    return {
        "level": finding.level,
        "code": finding.code,
        "sentence": sentence,
        "fix": finding.fix,
        "file": finding.file,
        "line": line,
    }
