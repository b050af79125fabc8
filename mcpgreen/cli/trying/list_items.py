"""`mcpgreen list`: what a client would be offered, and what was left out and why."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from mcpgreen.cli.commands import Options
from mcpgreen.cli.output import print_json
from mcpgreen.cli.trying.client import LocalClient, serving
from mcpgreen.cli.trying.nearest import left_out
from mcpgreen.cli.trying.screen import Screen
from mcpgreen.engine.server import Server
from mcpgreen.errors import UsageError
from mcpgreen.text.json_types import Json


class Kind(NamedTuple):
    word: str  # on the command line
    member: str  # of the answer
    method: str
    columns: tuple[str, ...]


KINDS = (
    Kind("tools", "tools", "tools/list", ("name", "description", "arguments", "from")),
    Kind("resources", "resources", "resources/list", ("uri", "name", "type", "from")),
    Kind("templates", "resourceTemplates", "resources/templates/list", ("uri template", "name", "type", "from")),
    Kind("prompts", "prompts", "prompts/list", ("name", "description", "arguments", "from")),
)


def run(options: Options) -> int:
    word = options["KIND"]
    if word is not None and word not in [kind.word for kind in KINDS]:
        raise UsageError(f"{word}: a kind is one of {', '.join(kind.word for kind in KINDS)}.")
    kinds = [kind for kind in KINDS if word in (None, kind.word)]
    with serving(options) as (server, project):
        client = LocalClient(server)
        lists = {kind.member: client.all_of(kind.method, kind.member) for kind in kinds}
        members = {kind.member for kind in kinds}
        missing = [each for each in left_out(server) if each.kind in members or word is None]
        if options["--json"]:
            print_json({**lists, "leftOut": [each._asdict() for each in missing]})
            return 0
        screen = Screen(options)
        for kind in kinds:
            rows = _rows(kind, lists[kind.member], server)
            if rows:
                screen.table(f"{kind.word} ({len(rows)})", kind.columns, rows)
        if missing:
            screen.table("left out", ("file", "reason"), dict.fromkeys((each.path, each.reason) for each in missing))
        if not any(lists.values()) and not missing:
            screen.note(f"{project.root} offers nothing yet. Put an executable into tools/ and list again.")
    return 0


def _rows(kind: Kind, items: Iterable[Json], server: Server) -> list[tuple[str, ...]]:
    snapshot = server.services.snapshot(kind.member)
    rows: list[tuple[str, ...]] = []
    for entry, item in zip(items, snapshot.items, strict=True):
        path = getattr(item, "path", None)
        origin = os.path.relpath(path, server.services.project.root) if path else ""
        if kind.member in ("tools", "prompts"):
            rows.append((entry["name"], entry.get("description", ""), _arguments(entry), origin))
        else:
            uri = entry.get("uri") or entry.get("uriTemplate", "")
            rows.append((uri, entry["name"], entry.get("mimeType", ""), origin))
    return rows


def _arguments(entry: Json) -> str:
    """The names, with a mark at those that are required."""
    if "arguments" in entry:
        return " ".join(each["name"] + ("!" if each.get("required") else "") for each in entry["arguments"])
    schema = entry.get("inputSchema", {})
    required = schema.get("required", ())
    return " ".join(name + ("!" if name in required else "") for name in schema.get("properties") or {})
