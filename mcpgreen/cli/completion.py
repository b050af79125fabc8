"""`mcpgreen completion`: completion for shells.

The scripts, `templates/completion/`, are short, because they ask `mcpgreen completion words`, which knows the tools of
the current project.

Rule: a Tab runs nothing of the project, neither its hooks nor commands in its names. So files are only read, and the
scripts quote what they insert; fish does that by itself.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

from mcpgreen.cli.commands import BY_NAME, COMMANDS, Command, Options
from mcpgreen.cli.making.drafts import filled
from mcpgreen.errors import McpgreenError
from mcpgreen.text.json_types import Json

SHELLS = ("bash", "zsh", "fish")


def run(options: Options) -> int:
    if options["words"]:
        sys.stdout.writelines(f"{word}\n" for word in candidates(options["WORD"]))
    else:
        sys.stdout.write(filled(f"completion/{next(shell for shell in SHELLS if options[shell])}"))
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    """Return the candidates for the last word."""
    *before, last = words or [""]
    command = BY_NAME.get(before[0]) if before else None
    found: Iterable[str] = ()
    if not before:
        found = [command.name for command in COMMANDS]
    elif command and last.startswith("-"):
        _, _, about = command.text().partition("Options:")
        found = dict.fromkeys(re.findall(r"^  (?:-\w )?(--[a-z-]+)", about, re.MULTILINE))
    elif command:
        with suppress(McpgreenError):  # there is no project here, or it cannot be read
            values = _values_of(before[-1])
            found = _words_of(command, [word for word in before[1:] if word[:1] != "-"]) if values is None else values
    return [each for each in found if each.startswith(last) and each.isprintable()]


def _values_of(option: str) -> list[str] | None:
    """Return the values of an option, if the word is one. A Tab has to be quick, so imports are where needed."""
    if option in ("--client", "--as"):
        from mcpgreen.cli.clients.table import CLIENTS

        return [client.word for client in CLIENTS]
    if option == "--lang":
        from mcpgreen.cli.making.scaffold import LANGUAGES

        return list(LANGUAGES)
    return ["user", "project"] if option == "--scope" else None


def _words_of(command: Command, earlier: Sequence[str]) -> list[str]:
    """Return the words that can follow a command and the words after it."""
    if command.name in ("run-tool", "prompt"):
        items = {item["name"]: item for item in _listed("tools" if command.name == "run-tool" else "prompts")}
        if not earlier:
            return list(items)
        item = items.get(earlier[0], {})
        named = [argument["name"] for argument in item.get("arguments", ())]
        return [f"{name}=" for name in (*named, *(item.get("inputSchema", {}).get("properties") or {}))]
    if earlier:
        return []
    if command.name == "read":
        return [each["uri"] for each in _listed("resources")]
    if command.name == "list":
        from mcpgreen.cli.trying.requests import KINDS

        return [kind.word for kind in KINDS]
    if command.name == "scaffold":
        from mcpgreen.cli.making import scaffold

        return list(scaffold.KINDS)
    words = {"registry": ["refresh", "status"], "tasks": ["list", "show", "result", "cancel", "clear"]}
    return {**words, "completion": list(SHELLS)}.get(command.name, [])


def _listed(kind: str) -> list[Json]:
    """List the items, without any that a hook would register."""
    from mcpgreen.catalog.catalog import Catalog
    from mcpgreen.catalog.manual.registration import Registrar
    from mcpgreen.project.project import open_project

    project, settings, _ = open_project({}, os.environ, needs_own=True, runs_hooks=False)
    registrar = Registrar(project, settings=settings)
    most = settings.registry_max_bytes
    catalog = Catalog(project, ttl_secs=0, max_bytes=most, registrar=registrar, writes_files=False)
    return [item.definition for item in catalog.snapshot(kind).items]
