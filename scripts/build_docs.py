"""Write the reference pages from the tables that the server itself uses.

    python scripts/build_docs.py [--check] [DIRECTORY]

Writes settings.md, errors.md, events.md, revisions.md, cli.md, modules.md and the manual page mcpgreen.1 into
DIRECTORY (docs/ by default), and the JSON Schemas of our files into mcpgreen/templates/schemas/ (or
DIRECTORY/schemas). With --check nothing is written: stale pages are named, and the exit status is 1 if there is one.

No page has text of its own beyond headings: to change a page, change the table.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

import file_schemas  # noqa: E402
from known_messages import MESSAGES, Known  # noqa: E402

from mcpgreen import __version__, errors  # noqa: E402
from mcpgreen.cli import schema  # noqa: E402
from mcpgreen.cli.commands import COMMANDS  # noqa: E402
from mcpgreen.cli.commands import GROUPS as COMMAND_GROUPS  # noqa: E402
from mcpgreen.cli.output import filled  # noqa: E402
from mcpgreen.events.kinds import KINDS  # noqa: E402
from mcpgreen.protocol.revisions import REVISIONS  # noqa: E402
from mcpgreen.settings.rows import Row, rows_of  # noqa: E402
from mcpgreen.settings.settings import Settings  # noqa: E402

HELP_WIDTH = 96  # of the help texts on the pages
GENERATED = "<!-- Generated from {source} by `make docs` (scripts/build_docs.py); edit that file, not this page. -->"


def settings_page() -> str:
    lines = [
        GENERATED.format(source="mcpgreen/settings/settings.py"),
        "",
        "# Settings",
        "",
        "This page lists all settings. Their defaults suit most projects.",
        "",
        "**To change a setting**, set its environment variable in the `env` object of the [client's",
        "entry](clients.md#settings-and-secrets). To change it for everyone who serves the project, add a line to",
        "`server.d/env`:",
        "",
        "```text",
        "MCPGREEN_DEFAULT_TOOL_TIMEOUT=120",
        "```",
        "",
        "`mcpgreen doctor` shows which settings differ from their defaults, and where each value comes from. The",
        "server uses the first value that it finds in:",
        "",
        "1. the command line;",
        "2. the environment: the `MCPGREEN_…` variable, then the other names in the table;",
        "3. the project's `server.d/env.sh`, then `server.d/env`, with the same names;",
        "4. the default.",
        "",
        "An empty value is ignored. If a value is out of range, the server uses the nearest allowed value; if",
        "it cannot be parsed, the server uses the default. A message on stderr says so.",
        "",
        "Settings whose names end in `_secs` are in seconds; `_bytes` and `_size` are in bytes.",
        "",
        "| Group | For | Settings |",
        "| --- | --- | --- |",
        *map(group_line, Settings.__bases__),
    ]
    for group in Settings.__bases__:
        lines += ["", f"## {title_of(group)}", ""]
        lines += table(("Setting", "Variables", "Default", "Allowed", "Meaning"), map(setting_cells, rows_of(group)))
    return page(lines)


def group_line(group: type) -> str:
    names = ", ".join(f"`{row.name}`" for row in rows_of(group))
    purpose = inspect.getdoc(group) or ""
    return f"| {link_to(title_of(group))} | {purpose[0].lower()}{purpose[1:].rstrip('.')} | {names} |"


def title_of(group: type) -> str:
    """RemoteToken becomes "Remote token", and Http "HTTP"."""
    title = re.sub(r"(?<=[a-z])[A-Z]", lambda letter: f" {letter[0].lower()}", group.__name__)
    return title.replace("Http", "HTTP")


def link_to(heading: str) -> str:
    return f"[{heading}](#{heading.lower().replace(' ', '-')})"


def setting_cells(row: Row) -> tuple[str, ...]:
    variables = [f"`{variable}`" for variable in row.variables]
    for switch in row.switches:
        ours, alias = switch.variables
        variables.append(f"`{ours}` or `{alias}`, if {str(switch.when).lower()}: `{switch.value}`")
    return f"`{row.name}`", "<br>".join(variables), shown_default(row), shown_bounds(row), row.doc


def shown_default(row: Row) -> str:
    if row.default in ("", ()):
        return "(empty)"
    if isinstance(row.default, bool):
        return f"`{str(row.default).lower()}`"
    return f"`{row.default:g}`" if isinstance(row.default, float) else f"`{row.default}`"


def shown_bounds(row: Row) -> str:
    if row.allowed:
        return ", ".join(f"`{word}`" for word in row.allowed)
    if isinstance(row.default, bool):
        return "`true`, `false`"
    if row.low is not None and row.high is not None:
        return f"{row.low} to {row.high}"
    if row.low is not None:
        return f"{row.low} or more"
    return f"up to {row.high}" if row.high is not None else ""


def errors_page() -> str:
    classes = [each for each in vars(errors).values() if inspect.isclass(each) and each.__module__ == errors.__name__]
    replies = [each for each in classes if issubclass(each, errors.RpcError)]
    others = [each for each in classes if each not in replies]
    lines = [
        GENERATED.format(source="mcpgreen/errors.py and scripts/known_messages.py"),
        "",
        "# Errors",
        "",
        "This page explains error messages, their causes and how to fix them. Search it for words from your",
        "message, or start where you saw it:",
        "",
        *(f"* {link_to(group)}" for group in MESSAGES),
        "",
        "If you write a client, see [all error codes](#error-codes).",
        "",
        "There are two kinds of failures. If a tool fails, the client gets a *result* with `isError`, which the",
        "model can read and react to. If a request is invalid or cannot be served, the client gets an *error object*",
        "with a code, which most clients show to you.",
        "",
        "## Messages",
        "",
        "`…` stands for a part that varies, such as a name, a number or a reason.",
        *(line for group, rows in MESSAGES.items() for line in message_lines(group, rows)),
        "",
        "## Error codes",
        "",
        "The codes are defined by JSON-RPC and MCP. *Handshake era* refers to clients that start with `initialize`",
        "(MCP revisions up to 2025-11-25); *stateless era* refers to clients that identify themselves in each request",
        "(2026-07-28).",
        "",
        *table(("Class", "Code", "When"), ((f"`{each.__name__}`", code_of(each), summary(each)) for each in replies)),
        "",
        "## Inside the server",
        "",
        "These exceptions never reach a client directly.",
        "",
        *table(("Class", "What it means"), ((f"`{each.__name__}`", summary(each)) for each in others)),
    ]
    return page(lines)


def message_lines(group: str, rows: tuple[Known, ...]) -> list[str]:
    cells = ((f"`{known.message}`", known.cause, known.cure) for known in rows)
    return ["", f"### {group}", "", *table(("Message", "Cause", "What to do"), cells)]


def code_of(error: type[errors.RpcError]) -> str:
    # A class whose instances are made with a code has none of its own.
    if "code" in inspect.signature(error).parameters:
        return "any"
    return f"{error.code}, stateless {error.stateless_code}" if error.stateless_code else str(error.code)


def summary(documented: type) -> str:
    return " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())


def revisions_page() -> str:
    names = [revision.name for revision in REVISIONS]
    lines = [
        GENERATED.format(source="mcpgreen/protocol/revisions.py"),
        "",
        "# Protocol revisions",
        "",
        "This page lists which requests and features exist in which version of MCP. To see what that means for your",
        "tools, read [What clients get](what-clients-get.md).",
        "",
        "MCP versions are called *revisions* and are named by date. The server answers in the revision that the",
        "client uses; you do not have to configure anything. Up to 2025-11-25, a client starts with a *handshake*: it",
        "sends `initialize`, and both sides declare their capabilities for the rest of the connection. Since",
        "2026-07-28, clients are *stateless*: every request identifies its client and says what it supports, so there",
        "is no handshake.",
        "",
        *table(("", *names), [("How a client introduces itself", *(text_of(each.era) for each in REVISIONS))]),
        "",
        "## Requests",
        "",
        *table(("Request", *names), matrix([each.requests for each in REVISIONS], as_code=True)),
        "",
        "## Features",
        "",
        *table(("Feature", *names), matrix([each.features for each in REVISIONS], as_code=False)),
    ]
    return page(lines)


def matrix(columns: list[frozenset[Any]], *, as_code: bool) -> Iterator[tuple[str, ...]]:
    """A row for each member of any column, with a mark where it is in."""
    held = [{text_of(member) for member in column} for column in columns]
    for name in sorted(set().union(*held)):
        yield (f"`{name}`" if as_code else name, *("yes" if name in column else "" for column in held))


def text_of(word: Any) -> str:
    return str(getattr(word, "value", word))


def cli_page() -> str:
    lines = [
        GENERATED.format(source="mcpgreen/cli/texts/"),
        "",
        "# Command line",
        "",
        "This page contains the output of `mcpgreen COMMAND --help` for every command:",
        "",
    ]
    for title, commands in COMMAND_GROUPS.items():
        lines += [f"**{title}**", ""]
        lines += [f"* [`{each.name}`](#{each.name}): {each.summary()}" for each in commands]
        lines += [""]
    lines += [
        "Almost every command accepts `--project-root DIR`. Without it, mcpgreen looks for a project in the current",
        "directory and its parents. `mcpgreen --version` prints the version.",
    ]
    for command in COMMANDS:
        lines += ["", f"## {command.name}", "", *_as_text(filled(command.text(), HELP_WIDTH))]
    return page(lines)


def _as_text(text: str) -> list[str]:
    return ["```text", text.strip(), "```"]


def modules_page() -> str:
    package = REPOSITORY / "mcpgreen"
    lines = [
        GENERATED.format(source="the modules' first sentences"),
        "",
        "# Modules",
        "",
        "This page lists all modules. [Architecture](ARCHITECTURE.md) explains how they work together.",
    ]
    for directory in sorted({path.parent for path in package.rglob("*.py")}):
        modules = [path for path in sorted(directory.iterdir()) if path.suffix in (".py", ".sh")]
        if "default_project" in directory.parts:
            continue
        rows = [(f"`{path.name}`", first_sentence(path)) for path in modules if path.name != "__init__.py"]
        init = directory / "__init__.py"
        title = directory.relative_to(REPOSITORY).as_posix()
        lines += ["", f"## {title}/", "", *([first_sentence(init), ""] if init.is_file() else [])]
        lines += table(("Module", "What it is for"), rows)
    return page(lines)


def first_sentence(path: Path) -> str:
    """Of its docstring, or of the comment at the head of a shell script."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        told = ast.get_docstring(ast.parse(text)) or ""
    else:
        told = next(line for line in text.splitlines() if line.startswith("# ") and "shellcheck" not in line)[2:]
    sentence = " ".join(told.split("\n\n")[0].split()).partition(". ")[0]
    return sentence if sentence.endswith((".", "?")) else sentence + "."


def events_page() -> str:
    lines = [
        GENERATED.format(source="mcpgreen/events/kinds.py"),
        "",
        "# Events",
        "",
        "This page lists the events that `mcpgreen watch --json` and",
        "[`mcpgreen trace`](debugging.md#keep-what-happened) write, one JSON object in each line.",
        "",
        "Each event has `kind` and `at` (seconds since 1970). `n` counts the events of a server, `call` and `link` are",
        "the server's numbers for a call and for a client, and `server` is the number of its process. A field with a",
        "question mark may be absent. Kinds that are *kept* are remembered for those who look later; all others are",
        "only made while somebody watches.",
        "",
        "A *word* is one of the server's, or a name. A *tail* is the end of a text. A *value* is JSON. What is *shown*",
        "is JSON as text. Long values are cut, and secrets are removed from all of them.",
        "",
    ]
    rows = []
    for name, kind in KINDS.items():
        fields = ", ".join(f"`{field}`: {type}" for field, type in kind.fields.items())
        when = f"{kind.when[0].upper()}{kind.when[1:]}."
        rows.append((f"`{name}`{', kept' if kind.is_kept else ''}", when, fields))
    return page([*lines, *table(("Kind", "When", "Fields"), rows)])


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    cells = [head, tuple("---" for _ in head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]


def page(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def manual_page() -> str:
    """The same texts for `man mcpgreen`."""
    lines = [
        '.\\" Generated from mcpgreen/cli/texts/ by `make docs` (scripts/build_docs.py).',
        f'.TH MCPGREEN 1 "" "mcpgreen {__version__}" "User Commands"',
        ".SH NAME",
        "mcpgreen \\- serve a folder of scripts as an MCP server",
        ".SH SYNOPSIS",
        ".B mcpgreen",
        "COMMAND [OPTIONS]",
        ".SH COMMANDS",
    ]
    for command in COMMANDS:
        _, _, text = filled(command.text(), HELP_WIDTH).partition("\n\n")
        shown = [roff(line) for line in text.rstrip().splitlines()]
        lines += [f".SS {roff(command.name)}", roff(command.summary()) + ".", ".PP", ".nf", *shown, ".fi"]
    lines += [".SH ENVIRONMENT", "Every setting is an environment variable; docs/settings.md lists them."]
    return page(lines)


def roff(line: str) -> str:
    """A line that troff prints as it is."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


PAGES = {
    "settings.md": settings_page,
    "errors.md": errors_page,
    "revisions.md": revisions_page,
    "cli.md": cli_page,
    "events.md": events_page,
    "modules.md": modules_page,
    "mcpgreen.1": manual_page,
}


def stale_pages(directory: Path) -> Iterator[tuple[Path, str]]:
    """The pages whose file is missing or differs, each with the text that it should have."""
    for name, build in PAGES.items():
        path, text = directory / name, build()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            yield path, text


def stale_schemas(directory: Path) -> Iterator[tuple[Path, str]]:
    """The JSON Schemas that are installed for editors."""
    for kind in schema.FILES:
        path, text = directory / (kind + schema.SUFFIX), file_schemas.text_of(kind)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path, text


def main(arguments: list[str]) -> int:
    is_check = "--check" in arguments
    directories = [argument for argument in arguments if argument != "--check"]
    directory = Path(directories[0]) if directories else REPOSITORY / "docs"
    schemas = directory / "schemas" if directories else REPOSITORY / "mcpgreen" / "templates" / "schemas"
    stale = [*stale_pages(directory), *stale_schemas(schemas)]
    if is_check:
        for path, _ in stale:
            print(f"{path} is not current; run `make docs`.")
        return 1 if stale else 0
    for path, text in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
