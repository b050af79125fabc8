"""The command line: its text, and which function serves which command.

The text is the parser: docopt reads it, `docs/cli.md` shows it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcpgreen import __version__, journal
from mcpgreen.errors import InternalError, ProjectError, UsageError
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext

REPORTED_KINDS = ("tools", "resources", "resourceTemplates", "prompts", "ui")

COMMANDS = ("serve", "scan", "registry", "validate", "run-tool", "health", "ready")
NEEDED_AFTER = {"registry": "refresh or status", "run-tool": "a NAME"}
# Whoever comes from there may look for them.
COMMANDS_OF_MCP_BASH = ("new", "init", "scaffold", "config", "doctor", "vendor", "bundle", "publish", "debug")
HINT = "Try: mcpgreen --help\n"

USAGE = """mcpgreen: serve a folder of scripts as an MCP server.

Usage:
  mcpgreen [serve] [--project-root DIR]
  mcpgreen scan [--project-root DIR] [--filter PATH] [--quiet]
  mcpgreen registry refresh [--project-root DIR] [--filter PATH] [--quiet] [--no-notify]
  mcpgreen registry status [--project-root DIR]
  mcpgreen validate [--project-root DIR] [--fix] [--json] [--explain-defaults] [--strict]
  mcpgreen run-tool NAME [--args JSON] [--roots PATHS] [--timeout SECS] [--project-root DIR]
                    [--allow TOOL]... [--allow-self] [--allow-all] [--no-refresh] [--minimal]
                    [--dry-run] [--print-env] [--verbose] [--with-server-env] [--source FILE]...
  mcpgreen (health | ready | --health | --ready) [--project-root DIR] [--timeout SECS]
  mcpgreen --help
  mcpgreen --version

Commands:
  serve     Serve the project over stdin and stdout. This is what a client's configuration
            starts. `serve` may be left out, at a terminal only if a project is named.
  scan      Read the project, rewrite its .registry files and print a status as JSON.
  registry  `refresh` is another name of scan; `status` prints as JSON what the .registry
            files hold.
  validate  Say what is wrong with the project: what will not be served, and what could be
            better.
  run-tool  Run one tool as a client would and print its result, one line of JSON:
            {"content": [...], "isError": ..., "_meta": {"exitCode": ...}}, with
            structuredContent if it has some; or an error of the protocol, as
            {"_mcpToolError": true, "code": ..., "message": ..., "data": ...}.
  health    Say as JSON whether the project can be served, its own server.d/health-checks.sh
            included; `ready` is the same.

Options:
  --project-root DIR  The project. Default: the one around the current directory; if there is
                      none, `serve` serves the bundled example and all other commands fail.
  --filter PATH       Scan only below this subdirectory of tools/.
  --quiet             Print nothing when all went well.
  --no-notify         Accepted for older scripts; a running server looks for itself.
  --fix               Make scripts executable that are described as tools, by a file or a comment.
  --json              Print the findings as one line of JSON.
  --explain-defaults  Say how the server calls itself without server.d/server.meta.json.
  --strict            Warnings count as errors.
  --args JSON         The arguments, a JSON object, or @FILE to read them from a file
                      [default: {}].
  --roots PATHS       Comma-separated directories that the tool may consider its roots.
  --timeout SECS      How long the tool, or the project's own health checks, may take.
  --allow TOOL        Allow this tool, too, whatever the allow-list says; may be repeated.
  --allow-self        Allow the tool that is run.
  --allow-all         Allow every tool.
  --no-refresh        Accepted for older scripts; the project is always read.
  --minimal           Run as a server in forced minimal mode would: without tools.
  --dry-run           Check name, permission, arguments and roots; do not run the tool.
  --print-env         Print the variables that every tool sees, and the roots; run nothing.
  --verbose           Show progress, log messages and the end of the tool's stderr, on stderr.
  --with-server-env   Accepted for older scripts; server.d/env.sh is always sourced.
  --source FILE       Source this shell file first, as you would before you start the server;
                      looked for here and then in the project; may be repeated.
  --health, --ready   As the commands of these names.
  -h --help           This text.
  -v --version        The version.

Exit status: 0 when all went well; 1 when something failed, for validate when there is an error
(with --strict a warning), for run-tool when the tool's own status is not 0, its arguments are
refused or the protocol has an error for it: a tool that ends with 0 and says isError has done
its work; 2 when the command line is wrong, for health when a server would not start or has
nothing to serve, and for serve when it cannot write its answers; 130 after Ctrl-C.

Without arguments, at a terminal, mcpgreen prints this text; scripts/mcpgreen, the launcher of
a checkout, serves.
"""


def run(arguments: Sequence[str], *, serve: Callable[[str], int]) -> int:
    """Obey one command line. The exit status: 0 done, 1 failed, 2 wrong usage.

    `serve` serves a project root; it comes from `__main__`, which has the shortest way to it.
    """
    if not arguments:
        sys.stdout.write(USAGE)
        return 0
    from docopt import DocoptExit, docopt

    version = f"mcpgreen {__version__}"
    try:
        options: dict[str, Any] = docopt(USAGE, argv=list(arguments), version=version, default_help=True)
    except DocoptExit:
        sys.stderr.write(_what_is_wrong(arguments))
        return 2
    except SystemExit:
        return 0  # --help and --version have printed
    if options["--project-root"] == "":
        sys.stderr.write(f"mcpgreen: --project-root needs a value\n{HINT}")
        return 2
    try:
        if options["scan"] or options["refresh"]:
            return _scan(options)
        if options["status"]:
            from mcpgreen.cli.registry_status import registry_status

            return registry_status(_flags(options), os.environ, kinds=REPORTED_KINDS)
        if options["validate"]:
            from mcpgreen.cli.validate import validate

            return validate(_flags(options), os.environ, options)
        if options["run-tool"]:
            return _run_tool(options)
        if any(options[word] for word in ("health", "ready", "--health", "--ready")):
            from mcpgreen.cli.health import health

            return health(_flags(options), os.environ, timeout_secs=_seconds(options["--timeout"]))
        return serve(options["--project-root"] or "")
    except (UsageError, ProjectError, InternalError) as error:
        journal.error("%s", error)
        return 2 if isinstance(error, UsageError) else 1


def _what_is_wrong(arguments: Sequence[str]) -> str:
    usage = USAGE[USAGE.index("Usage:") : USAGE.index("Commands:")]
    words, fault = _words_of(arguments, dict(re.findall(r"(--[a-z-]+)(?: ([A-Z]+))?", usage)))
    if words and words[0] in COMMANDS_OF_MCP_BASH:
        fault = f"{words[0]} is a command of mcp-bash that mcpgreen does not have; see docs/from-mcp-bash.md"
    elif words and words[0] not in COMMANDS:
        fault = f"unknown command: {words[0]}"
    fault = fault or _fault_of_words(words)
    return f"mcpgreen: {fault or 'this command line is not understood.'}\n{'' if fault else usage}{HINT}"


def _words_of(arguments: Sequence[str], values: Mapping[str, str]) -> tuple[list[str], str | None]:
    """The words that belong to no option, and what is wrong with the first wrong option. `values` names what each
    option takes, if it takes something. Options may be shortened."""
    words: list[str] = []
    fault = None
    rest = iter(arguments)
    for word in rest:
        name, equals, _ = word.partition("=")
        if not name.startswith("-") or name == "-":
            words.append(word)
            continue
        meant = next((option for option in values if option.startswith(name)), None) if name[:2] == "--" else None
        if meant is None:
            fault = fault or (None if name in ("-h", "-v") else f"unknown option: {name}")
        elif values[meant] and not equals and next(rest, None) is None:
            fault = fault or f"{meant} needs a value"
    return words, fault


def _fault_of_words(words: Sequence[str]) -> str | None:
    command, others = (words[0], words[1:]) if words else ("", words)
    if command in NEEDED_AFTER:
        if not others:
            return f"{command} needs {NEEDED_AFTER[command]}"
        if command == "run-tool" or others[0] in ("refresh", "status"):
            others = others[1:]
    return f"unexpected word: {others[0]}" if others else None


def _scan(options: dict[str, Any]) -> int:
    from mcpgreen.catalog.catalog import Catalog
    from mcpgreen.catalog.item_kinds import SOURCES
    from mcpgreen.catalog.manual.current import Registrar
    from mcpgreen.project.project import open_project
    from mcpgreen.running.hooks.shell import HookShell

    project, settings, environ = open_project(_flags(options), os.environ, needs_own=True)
    _tell_notes(settings)
    project.server_info()  # complains about what it cannot use
    only_below = options["--filter"] or None
    shell = HookShell(environ, settings=settings, directory=project.root)
    catalog = Catalog(
        project,
        ttl_secs=0,
        max_bytes=settings.registry_max_bytes,
        only_below=only_below,
        on_hint=journal.info,
        registrar=Registrar(project, settings=settings, shell=shell),
    )
    for source in catalog.sources_of(only_below) if only_below else SOURCES:
        try:
            catalog.refresh(source, force=True)
        except InternalError:
            journal.debug("the status below says what went wrong")
    statuses = {kind: catalog.status(kind) for kind in REPORTED_KINDS}
    mode = "minimal" if settings.force_minimal else "full"
    is_failed = any(status["status"] == "failed" for status in statuses.values())
    if is_failed or not options["--quiet"]:
        sys.stdout.buffer.write(jsontext.dumps({**statuses, "notificationsSent": False, "mode": mode}) + b"\n")
    return 1 if is_failed else 0


def _tell_notes(settings: Settings) -> None:
    """What was not taken as it was written."""
    for note in settings.notes:
        journal.warning("%s", note)


def _run_tool(options: dict[str, Any]) -> int:
    from mcpgreen.cli.run_tool import run_tool
    from mcpgreen.project.project import open_project
    from mcpgreen.project.start_checks import require_tmp_root

    timeout_secs = _seconds(options["--timeout"])
    project, settings, environ = open_project(_flags(options), _sourced(options), needs_own=True)
    _tell_notes(settings)
    require_tmp_root(project, settings)
    return run_tool(options, project, settings, environ, timeout_secs=timeout_secs)


def _sourced(options: dict[str, Any]) -> Mapping[str, str]:
    """The environment after the shell files that `--source` names."""
    environ: Mapping[str, str] = os.environ
    for file in options["--source"]:
        from mcpgreen.running.hooks.shell import sourced_variables
        from mcpgreen.settings.table import load

        path = _file_to_source(file, load(_flags(options), environ, {}).project_root)
        environ = sourced_variables(path, environ, directory=os.getcwd()).applied_to(environ)
    return environ


def _file_to_source(file: str, project_root: str) -> str:
    """Here, or else below the project."""
    from mcpgreen.project.project import find_project

    if os.path.isfile(file):
        return os.path.abspath(file)
    project = find_project(project_root or None, cwd=os.getcwd(), directories={})
    path = os.path.join(project.root, file) if project is not None else file
    if not os.path.isfile(path):
        raise UsageError(f"--source {file}: there is no such file here or in the project.")
    return path


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        secs = float(text)
    except ValueError:
        secs = 0.0
    if not 0 < secs < float("inf"):
        raise UsageError("--timeout must be a positive number of seconds.")
    return secs


def _flags(options: dict[str, Any]) -> dict[str, str]:
    """The settings that this command line sets."""
    flags = {"project_root": options["--project-root"], "force_minimal": "true" if options["--minimal"] else None}
    return {name: value for name, value in flags.items() if value}
