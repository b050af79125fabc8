"""`mcpgreen completion`: completion for shells.

The scripts are short, because they ask `mcpgreen completion words`, which knows the tools of the current project.

Rule: a Tab runs nothing of the project, neither its hooks nor commands in its names. So files are only read, and the
scripts quote what they insert; fish does that by itself.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence

from mcpgreen.cli.commands import BY_NAME, COMMANDS, Command, Options
from mcpgreen.errors import McpgreenError
from mcpgreen.text.json_types import Json

SCRIPTS = {
    "bash": """_mcpgreen() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    printf -v word %q "$word"
    COMPREPLY+=("$word")
  done < <(mcpgreen completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [ "${COMPREPLY[0]-}" = "${COMPREPLY[0]%=}" ] || compopt -o nospace
}
complete -o default -F _mcpgreen mcpgreen
""",
    "zsh": """#compdef mcpgreen
_mcpgreen() {
  local -a found
  found=(${(f)"$(mcpgreen completion words -- "${words[@]:1:$((CURRENT - 1))}" 2>/dev/null)"})
  compadd -S '' -- ${(M)found:#*=} || compadd -- ${found:#*=} || _files
}
# Loaded by the first Tab, this file has to answer it; read by a start file, it says whom it is for.
if [[ $funcstack[1] == _mcpgreen ]]; then _mcpgreen "$@"; else compdef _mcpgreen mcpgreen; fi
""",
    "fish": """function _mcpgreen
  mcpgreen completion words -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete -c mcpgreen -f -a '(_mcpgreen)'
""",
}


def run(options: Options) -> int:
    if options["words"]:
        sys.stdout.writelines(f"{word}\n" for word in candidates(options["WORD"]))
    else:
        sys.stdout.write(SCRIPTS[next(shell for shell in SCRIPTS if options[shell])])
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    """The candidates for the last word."""
    last = words[-1] if words else ""
    if len(words) <= 1:
        return _beginning_with(last, (command.name for command in COMMANDS))
    command = BY_NAME.get(words[0])
    if command is None:
        return []
    if last.startswith("-"):
        return _beginning_with(last, _options_of(command))
    if words[-2] in VALUES_OF:
        return _beginning_with(last, VALUES_OF[words[-2]]())
    return _beginning_with(last, _words_of(command, [word for word in words[1:-1] if not word.startswith("-")]))


def _beginning_with(last: str, found: Iterable[str]) -> list[str]:
    return [each for each in found if each.startswith(last) and each.isprintable()]


def _options_of(command: Command) -> list[str]:
    text = command.text()
    return list(dict.fromkeys(re.findall(r"^  (?:-\w )?(--[a-z-]+)", text[text.index("Options:") :], re.MULTILINE)))


def _words_of(command: Command, earlier: Sequence[str]) -> list[str]:
    try:
        return WORDS_OF[command.name](earlier) if command.name in WORDS_OF else []
    except McpgreenError:
        return []  # there is no project here, or it cannot be read


def _kinds(earlier: Sequence[str]) -> list[str]:
    from mcpgreen.cli.trying.offers import KINDS

    return [] if earlier else [kind.word for kind in KINDS]


def _tools(earlier: Sequence[str]) -> list[str]:
    tools = {tool["name"]: tool for tool in _listed("tools")}
    if not earlier:
        return list(tools)
    properties = tools.get(earlier[0], {}).get("inputSchema", {}).get("properties") or {}
    return [f"{name}=" for name in properties]


def _prompts(earlier: Sequence[str]) -> list[str]:
    prompts = {prompt["name"]: prompt for prompt in _listed("prompts")}
    if not earlier:
        return list(prompts)
    return [f"{each['name']}=" for each in prompts.get(earlier[0], {}).get("arguments", ())]


def _items(earlier: Sequence[str]) -> list[str]:
    from mcpgreen.cli.making.scaffold import KINDS

    return [] if earlier else list(KINDS)


def _uris(earlier: Sequence[str]) -> list[str]:
    return [] if earlier else [each["uri"] for each in _listed("resources")]


def _listed(kind: str) -> list[Json]:
    """The listed items, without those that a hook would register."""
    from mcpgreen.catalog.catalog import Catalog
    from mcpgreen.catalog.manual.registration import Registrar
    from mcpgreen.project.project import open_project

    project, settings, _ = open_project({}, os.environ, needs_own=True, runs_hooks=False)
    catalog = Catalog(
        project,
        ttl_secs=0,
        max_bytes=settings.registry_max_bytes,
        registrar=Registrar(project, settings=settings),
        writes_files=False,
    )
    return [item.definition for item in catalog.snapshot(kind).items]


def _clients() -> list[str]:
    from mcpgreen.cli.clients.table import CLIENTS

    return [client.word for client in CLIENTS]


def _languages() -> list[str]:
    from mcpgreen.cli.making.languages import LANGUAGES

    return list(LANGUAGES)


VALUES_OF: dict[str, Callable[[], list[str]]] = {
    "--client": _clients,
    "--as": _clients,
    "--lang": _languages,
    "--scope": lambda: ["user", "project"],
}
WORDS_OF: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "help": lambda earlier: [] if earlier else [command.name for command in COMMANDS],
    "list": _kinds,
    "run-tool": _tools,
    "prompt": _prompts,
    "read": _uris,
    "scaffold": _items,
    "registry": lambda earlier: [] if earlier else ["refresh", "status"],
    "completion": lambda earlier: [] if earlier else list(SCRIPTS),
}
