"""The welcome of `serve` at a terminal, where it would seem to hang."""

from __future__ import annotations

import shlex

from mcpgreen.cli.commands import text_named
from mcpgreen.cli.output import tell
from mcpgreen.engine.server import Server
from mcpgreen.errors import InternalError

KINDS = {"tools": "tool", "resources": "resource", "resourceTemplates": "template", "prompts": "prompt"}


def welcome(server: Server) -> None:
    """Print on stderr, because stdout belongs to the protocol."""
    services = server.services
    counts, tool = [], "NAME"
    for kind, word in KINDS.items():
        try:
            items = services.snapshot(kind).items
        except InternalError as error:
            counts.append(f"{kind} cannot be read: {error}")
            continue
        counts.append(f"{len(items)} {word}{'' if len(items) == 1 else 's'}")
        if kind == "tools" and items:
            tool = items[0].name
    root = services.project.root
    values = {"name": services.identity.info["name"], "counts": ", ".join(counts), "root": root}
    tell(text_named("welcome").format(**values, quoted=shlex.quote(root), tool=shlex.quote(tool)))
